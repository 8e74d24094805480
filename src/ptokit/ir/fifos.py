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


def fifo_of(op: Op) -> Value | int:
    """Which pipe of its function an operation opens or uses: the handle, or a front end's id."""
    if opens_pipe(op) and op.results:
        return op.result
    return op.operand("pipe") or _number(op.attrs.get("id"))


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
    # A front end may leave them open: eight slots for one direction, four each for two.
    both = direction == Direction.DIR_BOTH
    slots = _number(op.attrs.get("slot_num"), 4 if both else 8)
    is_direct = target.fifos is not None and target.fifos.is_direct
    is_open = not op.results and "slot_num" not in op.attrs
    local = _number(op.attrs.get("local_slot_num"), 2 if is_open and is_direct and both else slots)
    given = op.attrs.get("nosplit")
    if isinstance(given, BoolAttr):
        whole = given.value
    else:  # what is not said follows from the users
        splits = [split_of(user) for user in _users(op, function)]
        whole = bool(splits) and not any(splits)
    flag, size = _first_flag(op, function), _number(op.attrs["slot_size"])
    unit_flag = op.attrs.get("unit_flag") == BoolAttr(True)
    return PipeSpec(flag, direction, size, slots, local, whole, unit_flag)


def _first_flag(opening: Op, function: Function) -> int:
    """The first flag of a pipe; those of a front end follow each other by their ids."""
    if opening.results:
        return _number(opening.attrs.get("flag_base"))
    mine = _number(opening.attrs.get("id"))
    others = {_number(op.attrs.get("id")): op for op in function.walk() if opens_pipe(op)}
    masks = (_number(op.attrs["dir_mask"]) for id, op in others.items() if id < mine)
    return sum(4 if mask == Direction.DIR_BOTH else 2 for mask in masks)


def _users(opening: Op, function: Function) -> Iterator[Op]:
    """The transfers through a pipe."""
    mine = fifo_of(opening)
    return (op for op in function.walk() if is_transfer(op) and fifo_of(op) == mine)


def buffer_address(op: Op, function: Function, module: Module) -> int | None:
    """The address of a reserved or imported buffer; None when the peer reserves none.

    Those without a base lie one behind the other, behind the tiles of their memory whose addresses
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
