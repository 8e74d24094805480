"""What operations of FIFOs say: the template arguments of a pipe, and where its buffer lies.

The engines and the emitter read them here, so that both mean the same pipe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType, f32, i8, i32, u8
from ptokit.base.enums import Direction, LayoutMode_t, QuantMode_t, ReluPreMode
from ptokit.base.namedtuple import NamedTuple
from ptokit.ir.attributes import Attribute, BoolAttr, EnumAttr, IntAttr, SymbolAttr
from ptokit.ir.core import Function, Module, Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.fifo import GM_PIPE, OPENINGS, RESERVE, TRANSFERS
from ptokit.ir.dialects.memory import DECLARE_VIEW
from ptokit.ir.flow import allocates
from ptokit.ir.types import PlacedType, TileBufType, bytes_of
from ptokit.isa.fifos import FixpipeParams, PipeSpec
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Target


def opens_pipe(op: Op) -> bool:
    """Whether an operation opens a FIFO."""
    return definition_of(op) in OPENINGS


def is_transfer(op: Op) -> bool:
    """Whether an operation is an act at an end of a FIFO that a handle names."""
    return op.insn is not None and op.insn.moves_entries


def front_insn(op: Op) -> Insn | None:
    """The act at an end of a FIFO that a front end writes; None: it is none."""
    definition = definition_of(op)
    return None if definition is None else TRANSFERS.get(definition)


def entry_of(op: Op) -> Value | None:
    """What a transfer moves, a tile or a slot in hand; a TFREE may name none."""
    return op.operand("tile") or op.operand("gmTensor")


def fifo_of(op: Op) -> Value:
    """The FIFO that an operation opens or uses."""
    handle = op.result if opens_pipe(op) else op.operand("pipe")
    assert handle is not None
    return handle


def number_of(op: Op, key: str, default: int = 0) -> int:
    """An integer that an operation of FIFOs states."""
    return _number(op.attrs.get(key), default)


def slots_of(opening: Op) -> int:
    """How many slots a FIFO has: eight for one direction, four each for two, unless it says so."""
    both = number_of(opening, "dir_mask") == Direction.DIR_BOTH
    return number_of(opening, "slot_num", 4 if both else 8)


def flags_of(opening: Op) -> int:
    """How many cross-core flags a FIFO takes."""
    return 4 if number_of(opening, "dir_mask") in (Direction.DIR_BOTH, Direction.DIR_BOTH_GM) else 2


def is_slot(value: Value) -> bool:
    """Whether a view is one that a FIFO may point at its slots."""
    return isinstance(value.owner, Op) and DECLARE_VIEW.matches(value.owner)


def split_of(op: Op) -> int:
    """How a transfer divides its entry."""
    return number_of(op, "split")


def takes_whole_entries(function: Function) -> bool:
    """Whether a function uses pipes, and never splits an entry between the vector cores."""
    splits = [split_of(op) for op in function.walk() if is_transfer(op)]
    return bool(splits) and not any(splits)


def leaves_core_idle(function: Function, target: Target) -> bool:
    """Whether vector code runs on vector core 0 alone: there whole entries go to it directly."""
    return target.fifos is not None and target.fifos.is_direct and takes_whole_entries(function)


# ---- what happens to an accumulator on its way ---------------------------------------------------

_LAYOUTS = {"nz2nd": LayoutMode_t.NZ2ND, "nz2dn": LayoutMode_t.NZ2DN, "nz2nz": LayoutMode_t.NZ2NZ}
_QUANTS = {
    "no_convert": QuantMode_t.NoQuant,
    "f32_f16": QuantMode_t.F322F16,
    "f32_bf16": QuantMode_t.F322BF16,
    "deqf16_scalar": QuantMode_t.DEQF16,
    "deqf16_vec": QuantMode_t.VDEQF16,
    "req8_scalar": QuantMode_t.REQ8,
    "req8_vec": QuantMode_t.VREQ8,
    "qf322b8_pre_scalar": QuantMode_t.QF322B8_PRE,
    "qf322b8_pre_vec": QuantMode_t.VQF322B8_PRE,
    "qf322f16_pre_scalar": QuantMode_t.QF322F16_PRE,
    "qf322bf16_pre_scalar": QuantMode_t.QF322BF16_PRE,
    "qs322bf16_pre_scalar": QuantMode_t.QS322BF16_PRE,
    "qs322bf16_pre_vec": QuantMode_t.VQS322BF16_PRE,
    "qf322hif8_pre_scalar": QuantMode_t.QF322HIF8_PRE,
    "qf322fp8_pre_scalar": QuantMode_t.QF322FP8_PRE,
}
_RELUS = {"no_relu": ReluPreMode.NoRelu, "normal_relu": ReluPreMode.NormalRelu}
EPILOGUE = {"layout": _LAYOUTS, "quant": _QUANTS, "relu": _RELUS}  # its keys and their words


class Epilogue(NamedTuple):
    """What `#pto.acc_push_epilogue<layout = ..., quant = ..., relu = ...>` says, word by word."""

    words: Mapping[str, str]

    @property
    def faults(self) -> list[str]:
        """Keys and words that there are not, or that are missing."""
        missing = [key for key in EPILOGUE if key not in self.words]
        return missing + [
            f"{key} = {word}"
            for key, word in self.words.items()
            if word not in EPILOGUE.get(key, ())
        ]

    @property
    def params(self) -> FixpipeParams:
        """The same, as a push takes it."""
        layout, quant, relu = (table[self.words[key]] for key, table in EPILOGUE.items())
        return FixpipeParams(layout, quant, relu)  # pyright: ignore[reportArgumentType]

    @property
    def setter(self) -> Insn | None:
        """The instruction that gives the scales it needs."""
        from ptokit.isa.binding import SET_QUANT_SCALAR, SET_QUANT_VECTOR  # where a FIFO quantises

        quant = self.words["quant"]
        if quant.endswith("_scalar"):
            return SET_QUANT_SCALAR
        return SET_QUANT_VECTOR if quant.endswith("_vec") else None

    @property
    def sources(self) -> tuple[DType, ...]:
        """Element types of accumulators that it converts."""
        quant = self.words["quant"]
        if quant == "no_convert":
            return (f32, i32)
        return (f32,) if quant.startswith(("f32", "qf32")) else (i32,)

    def is_popped_as(self, source: DType, type_: TileBufType) -> bool:
        """Whether a tile has the element type that arrives; 8 bits say whether they have a sign."""
        from ptokit.isa.binding import SET_QUANT_VECTOR  # where a FIFO quantises

        made, popped = self.params.result(source), type_.spec.dtype
        if made is not i8:
            return popped is made
        is_vector = self.setter is SET_QUANT_VECTOR
        return type_.is_signed if popped is i8 else popped is u8 and not is_vector


def epilogue_of(opening: Op) -> Epilogue | None:
    """What a FIFO does to the accumulators that are pushed into it."""
    given = opening.attrs.get("acc_push_epilogue")
    if given is None:
        return None
    inside = re.fullmatch(r"#pto\.acc_push_epilogue<(.*)>", str(given))
    pairs = (part.partition("=") for part in inside[1].split(",")) if inside else ()
    return Epilogue({key.strip(): word.strip() for key, _, word in pairs})


# ---- the type of a pipe --------------------------------------------------------------------------


def pipe_spec(op: Op, function: Function, target: Target) -> PipeSpec:
    """The template arguments of the pipe that an operation opens."""
    mask = number_of(op, "dir_mask")
    directions = {int(d): d for d in Direction if d != Direction.UNDEFINED}
    if mask not in directions:
        known = ", ".join(f"{number} ({d.name})" for number, d in directions.items())
        raise fail("pipe-direction", f"{op.name}: dir_mask is one of {known}", site=op.location)
    is_direct = target.fifos is not None and target.fifos.is_direct
    if is_direct and GM_PIPE.matches(op) and mask <= Direction.DIR_BOTH:
        mask += Direction.DIR_C2V_GM - Direction.DIR_C2V  # there a ring in global memory is another
    direction, slots = directions[mask], slots_of(op)
    given = op.attrs.get("nosplit")
    if isinstance(given, BoolAttr):
        whole = given.value
    else:  # what is not said follows from the users
        users = [o for o in function.walk() if is_transfer(o) and fifo_of(o) is op.result]
        whole = bool(users) and not any(split_of(user) for user in users)
    local = number_of(op, "local_slot_num", slots)
    flag, size = number_of(op, "flag_base"), number_of(op, "slot_size")
    unit_flag = op.attrs.get("unit_flag") == BoolAttr(True)
    return PipeSpec(flag, direction, size, slots, local, whole, unit_flag)


# ---- buffers of consumers ------------------------------------------------------------------------


def buffer_address(op: Op, function: Function, module: Module) -> int | None:
    """The address of a reserved or imported buffer; None when the peer reserves none.

    Those without a base lie one after the other, behind the tiles of their memory whose addresses
    are known.
    """
    peer_name = op.attrs.get("peer_func")
    if isinstance(peer_name, SymbolAttr):
        peer = module.function(peer_name.name)
        for found in peer.walk() if peer else ():
            if RESERVE.matches(found) and found.attrs["name"] == op.attrs["name"]:
                assert peer is not None
                return buffer_address(found, peer, module)
        return None
    if "base" in op.attrs:
        return _number(op.attrs["base"])
    location = op.attrs["location"]
    assert isinstance(location, EnumAttr)
    ends = [_end(tile, location.value) for tile in function.walk() if allocates(tile)]
    at = max(ends, default=0)
    for other in function.walk():
        if RESERVE.matches(other) and "base" not in other.attrs:
            at = -(-at // _ALIGNMENT) * _ALIGNMENT
            if other is op:
                break
            at += _number(other.attrs["size"]) if other.attrs["location"] == location else 0
    return at


_ALIGNMENT = 256  # bytes, of a buffer that a tool places


def _end(alloc: Op, location: str) -> int:
    """Where a tile with a known address ends, 0 for all others."""
    address, kind = alloc.operand("addr"), alloc.result.type
    assert isinstance(kind, PlacedType)
    owner = address.owner if address is not None else None
    if kind.spec.loc.name.lower() != location or not isinstance(owner, Op):
        return 0
    number = owner.attrs.get("value")
    return number.value + bytes_of(kind) if isinstance(number, IntAttr) else 0


def _number(attr: Attribute | None, default: int = 0) -> int:
    return attr.value if isinstance(attr, IntAttr) else default
