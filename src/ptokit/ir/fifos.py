"""What operations of FIFOs say: the template arguments of a pipe, and where its buffer lies.

The engines and the emitter read them here, so that both mean the same pipe.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import fail
from ptokit.base.enums import Direction
from ptokit.ir.attributes import Attribute, BoolAttr, EnumAttr, IntAttr, SymbolAttr
from ptokit.ir.core import Function, Module, Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.fifo import OPENINGS, RESERVE
from ptokit.ir.dialects.memory import DECLARE_VIEW
from ptokit.ir.flow import allocates
from ptokit.ir.types import PlacedType, bytes_of
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.targets import Target


def opens_pipe(op: Op) -> bool:
    """Whether an operation opens a FIFO."""
    return definition_of(op) in OPENINGS


def is_transfer(op: Op) -> bool:
    """Whether an operation is an act at an end of a FIFO."""
    return op.insn is not None and op.insn.moves_entries


def entry_of(op: Op) -> Value | None:
    """What a transfer moves, a tile or a slot in hand; a TFREE may name none."""
    return op.results[0] if op.results else op.operand("tile") or op.operand("gmTensor")


def is_slot(value: Value) -> bool:
    """Whether a view is one that a FIFO may point at its slots."""
    return isinstance(value.owner, Op) and DECLARE_VIEW.matches(value.owner)


def split_of(op: Op) -> int:
    """How a transfer divides its entry."""
    return _number(op.attrs.get("split"))


def takes_whole_entries(function: Function) -> bool:
    """Whether a function uses pipes, and never splits an entry between the vector cores."""
    splits = [split_of(op) for op in function.walk() if is_transfer(op)]
    return bool(splits) and not any(splits)


def leaves_core_idle(function: Function, target: Target) -> bool:
    """Whether vector code runs on vector core 0 alone: there whole entries go to it directly."""
    return target.fifos is not None and target.fifos.is_direct and takes_whole_entries(function)


def pipe_spec(op: Op, function: Function, target: Target) -> PipeSpec:
    """The template arguments of the pipe that an operation opens."""
    mask = _number(op.attrs["dir_mask"])
    directions = {int(d): d for d in Direction if d != Direction.UNDEFINED}
    if mask not in directions:
        known = ", ".join(f"{number} ({d.name})" for number, d in directions.items())
        raise fail("pipe-direction", f"{op.name}: dir_mask is one of {known}", site=op.location)
    direction = directions[mask]
    if op.results:
        slots = _number(op.attrs["slot_num"])
        local = _number(op.attrs.get("local_slot_num"), slots)
    else:  # a front end leaves them open: eight slots for one direction, four each for two
        both = direction == Direction.DIR_BOTH
        slots = 4 if both else 8
        is_direct = target.fifos is not None and target.fifos.is_direct
        local = 2 if is_direct and both else slots
    given = op.attrs.get("nosplit")
    if isinstance(given, BoolAttr):
        whole = given.value
    else:  # what is not said follows from the users
        splits = [split_of(user) for user in _users(op, function)]
        whole = bool(splits) and not any(splits)
    flag, size = _number(op.attrs.get("flag_base")), _number(op.attrs["slot_size"])
    unit_flag = op.attrs.get("unit_flag") == BoolAttr(True)
    return PipeSpec(flag, direction, size, slots, local, whole, unit_flag)


def _users(opening: Op, function: Function) -> Iterator[Op]:
    """The transfers through a pipe; those of a front end name none, as there is only one."""
    handle = opening.results[0] if opening.results else None
    for op in function.walk():
        if is_transfer(op) and op.operand("pipe") is handle:
            yield op


def buffer_address(op: Op, function: Function, module: Module) -> int | None:
    """The address of a reserved or imported buffer; None when the peer reserves none.

    One without a base lies behind the tiles of its memory whose addresses are known.
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
    return -(-max(ends, default=0) // _ALIGNMENT) * _ALIGNMENT


_ALIGNMENT = 32  # bytes; what every transfer into UB and L1 asks for


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
