"""When each tile holds something: live ranges over structured control flow.

Operations are numbered in program order. A tile is live from its first to its last access. A tile
allocated outside a loop and touched inside it is live throughout the loop, because the next
iteration may still need it; one allocated inside lives only within an iteration. A tile that may
be read before anything is written to it lives from the beginning: what it then reads must be
undefined, and not what another tile left behind.
"""

from __future__ import annotations

from ptokit.base.dataclass import dataclass
from ptokit.ir.core import Block, Function, Op, Value
from ptokit.ir.flow import allocates, is_loop
from ptokit.ir.instructions import run_time_operands
from ptokit.ir.types import BufferType, TileBufType
from ptokit.passes.accesses import Accesses, is_binding


@dataclass
class Live:
    """The range of positions, both ends included, in which a tile must keep its bytes."""

    alloc: Op
    start: int
    stop: int


@dataclass
class Order:
    """Positions of operations, and the span of every region they are in."""

    position: dict[Op, int]
    loops: dict[Op, list[tuple[int, int]]]  # spans of the enclosing loops, outermost first


def order_of(function: Function) -> Order:
    """Number the operations of a function; a loop spans its body."""
    assert function.body is not None
    order = Order({}, {})
    _number(function.body, order, [], [0])
    return order


def _number(block: Block, order: Order, loops: list[list[int]], clock: list[int]) -> None:
    for op in block.ops:
        order.position[op] = clock[0]
        order.loops[op] = loops  # type: ignore[assignment]
        clock[0] += 1
        inner = loops
        span = [order.position[op], 0]
        if is_loop(op):
            inner = [*loops, span]
        for region in op.regions:
            _number(region, order, inner, clock)
        span[1] = clock[0]
        clock[0] += 1 if op.regions else 0


def live_ranges(function: Function, accesses: Accesses, *, idle: bool = True) -> list[Live]:
    """The live range of every allocation that owns storage, in program order.

    `idle`: scratch that its target does not touch lives as if it did.
    """
    order = order_of(function)
    ranges: dict[Value, Live] = {}
    for op in function.walk():
        if allocates(op) and op.result not in accesses.renamed:
            place = order.position[op]
            ranges[op.result] = Live(op, place, place)
    for op, touched in accesses.of.items():
        here = order.position[op]
        for access in touched:
            live = ranges.get(access.root)
            if live is not None and (idle or not access.is_idle):
                _extend(live, here, order.loops[op], order.loops[live.alloc])
    started = {live.alloc: False for live in ranges.values()}
    for op in sorted(accesses.of, key=lambda o: order.position[o]):
        for access in accesses.of[op]:
            live = ranges.get(access.root)
            if live is not None and not started[live.alloc] and (idle or not access.is_idle):
                started[live.alloc] = True
                outer = len(order.loops[live.alloc])
                inside = order.loops[op][outer:]
                live.start = inside[0][0] if inside else order.position[op]
    return [live for live in ranges.values() if started[live.alloc]] + [
        live for live in ranges.values() if not started[live.alloc]
    ]


def _extend(
    live: Live, here: int, loops: list[tuple[int, int]], own: list[tuple[int, int]]
) -> None:
    """Reach an access: loops entered since the allocation count as a whole."""
    inside = loops[len(own) :]
    live.stop = max(live.stop, inside[0][1] if inside else here)


def read_unwritten(function: Function, accesses: Accesses) -> set[Value]:
    """The allocations that some path reads before all of them was written."""
    assert function.body is not None
    found: set[Value] = set()
    _read_unwritten(function.body, accesses, set(), found)
    return found


def _read_unwritten(
    block: Block, accesses: Accesses, written: set[Value], found: set[Value]
) -> None:
    """Go through a block with the allocations that are `written` for certain; adds to both sets."""
    for op in block.ops:
        if op.insn is not None and not is_binding(op):
            tiles = [
                (operand, value, accesses.stands_for(value))
                for operand, value in zip(op.insn.operands, run_time_operands(op), strict=True)
                if value is not None and isinstance(value.type, BufferType)
            ]
            for operand, _, roots in tiles:
                if operand.reads:
                    found.update(set(roots) - written)
            for operand, value, roots in tiles:
                if operand.writes and len(roots) == 1 and _is_whole(value):
                    written.update(roots)
        elif op.regions:
            after = [set(written) for _ in op.regions]
            for region, inner in zip(op.regions, after, strict=True):
                _read_unwritten(region, accesses, inner, found)
            if not is_loop(op) and len(op.regions) > 1:  # whichever branch is taken
                written |= set.intersection(*after)


def _is_whole(value: Value) -> bool:
    """Whether what is written to a tile is all of it, as far as its type says."""
    spec = value.type.spec if isinstance(value.type, TileBufType) else None
    return spec is None or (spec.rows, spec.cols) == (spec.valid_row, spec.valid_col)
