"""Placement: every tile gets an address in its memory space.

Tiles whose live ranges meet must not share bytes. Greedy best fit is tried in several orders and
the tightest result wins; the lower bound - the most bytes live at one point - tells how good it
is. When nothing fits, the error shows the tiles that are live at the worst point.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, Note, ProgramError
from ptokit.base.enums import TileType
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import TileSpec
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Function, Module, Op, Value
from ptokit.ir.flow import allocates
from ptokit.ir.rewrite import clone
from ptokit.ir.types import (
    I64,
    BufferType,
    ConvTileType,
    MultiTileType,
    PlacedType,
    TileBufType,
    bytes_of,
)
from ptokit.isa.binding import TGET_SCALE_ADDR
from ptokit.isa.targets import Space, Target
from ptokit.passes.accesses import Accesses, accesses_of
from ptokit.passes.base import Pass
from ptokit.passes.call_graph import callees, callers_first
from ptokit.passes.carried import rotate_carried
from ptokit.passes.liveness import Live, live_ranges, read_unwritten


@dataclass(frozen=True)
class Place(Pass):
    """Give an address to every tile that has none; addresses written by hand are kept.

    `is_apart`: the order of the pipes is the author's, who knows nothing of tiles that share bytes.
    None do, as long as the memory is large enough.
    """

    name: ClassVar[str] = "place"
    is_apart: bool = False

    def run(self, module: Module, target: Target) -> Module:
        module = clone(module)
        floors: dict[str, Floor] = {}  # of a function: what the tiles of its callers take up
        for function in callers_first(module):
            assert function.body is not None
            rotate_carried(function.body)
            floor = floors.get(function.name, {})
            reach = _place(function, target, floor, self.is_apart)
            for name in callees(function):
                above = floors.setdefault(name, {})
                above |= {m: max(above.get(m, 0), end) for m, end in reach.items()}
        return module


Floor = dict[str, int]  # of each memory: the address from which on it is free


def _place(function: Function, target: Target, floor: Floor, is_apart: bool) -> Floor:
    """Place the tiles of one function above `floor`; returns how far they reach."""
    accesses = accesses_of(function, target)
    scales = _scales(function, accesses)
    lives, used = (live_ranges(function, accesses, idle=idle) for idle in (True, False))
    for each in (lives, used):
        _live_together(each, scales)
    touched = {live.alloc: live for live in used}
    unwritten = read_unwritten(function, accesses)
    by_space: dict[TileType, list[Live]] = {}
    for live in lives:  # FIFOs place what is popped
        if live.alloc.result not in scales and live.alloc.result not in accesses.fifos.popped:
            by_space.setdefault(_spec(live).loc, []).append(live)
    addresses: dict[Value, int] = {}
    for loc, group in by_space.items():
        # Apart as long as there is room; without, what is read unwritten is not noticed.
        alone = [replace(x, start=0) if x.alloc.result in unwritten else x for x in group]
        always = [Live(live.alloc, 0, 0) for live in group]
        # What nobody touches takes no room, where there is little.
        least = [touched[live.alloc] for live in group]
        memory = _memory(target.spaces[loc], accesses, target, floor)
        found, needed = dict[Value, int](), memory.capacity + 1
        for assumed in (*((always,) if is_apart else ()), alone, group, least):
            if needed > memory.capacity:
                found, needed = _assign(assumed, memory, accesses)
        if needed > memory.capacity:
            raise ProgramError([_overflow(least, memory, needed, target)])
        addresses |= found
    addresses |= {scale: addresses[data] >> 4 for scale, data in scales.items()}
    _rename(accesses, addresses)
    _write(function, addresses)
    _forget(function, lambda op: op.insn is TGET_SCALE_ADDR)  # placed tiles need it no more
    _forget(function, _said_by_addresses(accesses, addresses).__contains__)
    reach = dict(floor)
    for value, address in addresses.items():
        assert isinstance(value.type, PlacedType)
        memory = target.spaces[value.type.spec.loc].memory
        reach[memory] = max(reach.get(memory, 0), address + bytes_of(value.type))
    return reach


def _spec(live: Live) -> TileSpec | ConvSpec:
    return _type(live).spec


def _type(live: Live) -> PlacedType:
    type_ = live.alloc.result.type
    assert isinstance(type_, PlacedType)
    return type_


def _nbytes(live: Live) -> int:
    return bytes_of(_type(live))


def _size(live: Live, alignment: int) -> int:
    return -(-_nbytes(live) // alignment) * alignment


# ---- scales of block-scaled products -----------------------------------------------------------

_SCALED = {TileType.ScaleLeft: TileType.Left, TileType.ScaleRight: TileType.Right}


def _scales(function: Function, accesses: Accesses) -> dict[Value, Value]:
    """Scale tiles with the tile each belongs to: the cube looks at a sixteenth of its address."""
    found: dict[Value, Value] = {}
    for op in function.walk():
        if op.insn is None:
            continue
        tiles = [v for v in op.operands if isinstance(v.type, TileBufType)]
        by_loc = {v.type.spec.loc: v for v in tiles if isinstance(v.type, TileBufType)}
        for scale_loc, data_loc in _SCALED.items():
            if scale_loc in by_loc and data_loc in by_loc:
                (data, *others) = accesses.stands_for(by_loc[data_loc])
                for scale in accesses.stands_for(by_loc[scale_loc]):
                    if not op.insn.binds and _is_given(scale) and _is_given(data):
                        continue  # where they lie is up to the caller
                    if not all(_is_placed_here(tile, accesses) for tile in (scale, data)):
                        raise ProgramError([_foreign(op)])
                    many = others or isinstance(data.type, MultiTileType)
                    if many or found.setdefault(scale, data) is not data:
                        raise ProgramError([_torn(op)])
    return found


def _is_given(tile: Value) -> bool:
    """Whether a tile is a parameter of the function."""
    return not isinstance(tile.owner, Op)


def _is_placed_here(tile: Value, accesses: Accesses) -> bool:
    """Whether a tile is made in this function, and not by a pop, whose FIFO places it."""
    is_made = isinstance(tile.owner, Op) and allocates(tile.owner)
    return is_made and tile not in accesses.fifos.popped


def _foreign(op: Op) -> Diagnostic:
    return Diagnostic(
        "place.scales",
        "scale tiles, and the Left or Right tiles they belong to, are placed together",
        op.location,
        fix="make both tiles in this function: they are no parameters, and not popped",
    )


def _torn(op: Op) -> Diagnostic:
    return Diagnostic(
        "place.scales",
        "a scale tile belongs to one Left or Right tile, whose address decides its own",
        op.location,
        fix="give every buffer of data a scale tile of its own",
    )


def _live_together(lives: list[Live], scales: dict[Value, Value]) -> None:
    """A tile keeps its place while its scales are in use, and the other way round."""
    by_value = {live.alloc.result: live for live in lives}
    for scale, data in scales.items():
        a, b = by_value[scale], by_value[data]
        a.start = b.start = min(a.start, b.start)
        a.stop = b.stop = max(a.stop, b.stop)


def _said_by_addresses(accesses: Accesses, addresses: dict[Value, int]) -> set[Op]:
    """Reshapes that auto mode allows and manual mode, as which a placed program runs, does not.

    Both names have the same address, and that says it all, as long as the new tile is inside the
    old one.
    """
    return {
        op
        for dst, (src, op) in accesses.renamed.items()
        if _is_loose(dst, src, op) and dst in addresses and len(accesses.stands_for(dst)) == 1
    }


def _is_loose(dst: Value, src: Value, op: Op) -> bool:
    """Whether a reshape is one of auto mode's own: between kinds, sizes or layouts of tiles."""
    assert op.insn is not None
    if any("scalar" in declared.kinds for declared in op.insn.operands):
        return False  # a part of a tile, at an offset
    if isinstance(dst.type, ConvTileType) or isinstance(src.type, ConvTileType):
        return True
    assert isinstance(dst.type, TileBufType)
    assert isinstance(src.type, TileBufType)
    new, old = dst.type.spec, src.type.spec
    differ = new.nbytes != old.nbytes or new.is_boxed != old.is_boxed
    return differ and new.nbytes <= old.nbytes


def _forget(function: Function, is_needless: Callable[[Op], bool]) -> None:
    blocks = [function.body, *(r for op in function.walk() for r in op.regions)]
    for block in blocks:
        assert block is not None
        block.ops = [op for op in block.ops if not is_needless(op)]


# ---- choosing addresses ------------------------------------------------------------------------

_ORDERS: tuple[Callable[[Live, int], tuple[int, ...]], ...] = (
    lambda live, size: (-size, live.start),
    lambda live, size: (live.start, -size),
    lambda live, size: (live.stop, -size),
    lambda live, size: (-(live.stop - live.start), -size),
    lambda live, size: (-size * (live.stop - live.start + 1), live.start),
    lambda live, size: (-live.stop, -size),
    lambda live, size: (live.start - live.stop, live.start),
    lambda live, size: (size, live.start),
)


_MANY = 64  # tiles from which on arrays are worth it
_NEVER = 1 << 62


@dataclass(frozen=True)
class Memory:
    """Where tiles go: how much there is, in which steps, and what others have taken of it."""

    name: str
    capacity: int
    alignment: int
    taken: tuple[tuple[int, int], ...]


def _memory(space: Space, accesses: Accesses, target: Target, floor: Floor) -> Memory:
    locs = [loc for loc, each in target.spaces.items() if each.memory == space.memory]
    taken = [range_ for loc in locs for range_ in accesses.fifos.reserved(loc)]
    taken += [(s.address, s.address + s.most) for s in accesses.hidden if s.loc in locs]
    if space.memory in floor:
        taken.append((0, floor[space.memory]))
    return Memory(space.memory, space.capacity, space.alignment, tuple(taken))


def _assign(group: list[Live], memory: Memory, accesses: Accesses) -> tuple[dict[Value, int], int]:
    """The tightest addresses of all orders, and how far the tiles reach.

    Orders that cannot do better are not gone through to their end: those that reach as far as
    the best one, and all that follow one that is as tight as can be.
    """
    fixed = {
        live.alloc.result: address
        for live in group
        if (address := accesses.known.number(live.alloc.operand("addr"))) is not None
    }
    sizes = {live.alloc.result: _size(live, memory.alignment) for live in group}
    free = [live for live in group if live.alloc.result not in fixed]
    held = [live for live in group if live.alloc.result in fixed]
    least = max((load for _, load in _loads(free, sizes)), default=0)
    best, reach = fixed, 0
    for number, order in enumerate(_ORDERS):
        busy = Busy(memory) if len(group) <= _MANY else BusyArrays(memory, len(group))
        for live in held:
            busy.add(live, fixed[live.alloc.result], sizes[live.alloc.result])
        found = dict(fixed)
        top = 0
        for live in sorted(free, key=lambda live: order(live, sizes[live.alloc.result])):
            size = sizes[live.alloc.result]
            address = found[live.alloc.result] = busy.hole(live, size)
            busy.add(live, address, size)
            top = max(top, address + size)
            if number and top >= reach:
                break
        else:
            best, reach = found, top
        if reach <= least:
            break
    return best, reach


class Busy:
    """Ranges of a memory that are taken, for good or while a tile lives, by their addresses."""

    def __init__(self, memory: Memory) -> None:
        self._alignment = memory.alignment
        self._ranges: list[tuple[int, int, int, int]] = []
        for start, stop in memory.taken:
            self._insert((start, self._aligned(stop), 0, _NEVER))

    def add(self, live: Live, address: int, size: int) -> None:
        """A tile takes its bytes while it lives."""
        self._insert((address, self._aligned(address + size), live.start, live.stop))

    def _aligned(self, address: int) -> int:
        return -(-address // self._alignment) * self._alignment

    def _insert(self, taken: tuple[int, int, int, int]) -> None:
        insort(self._ranges, taken)

    def hole(self, live: Live, size: int) -> int:
        """The smallest hole between what is taken while a tile lives; else behind all of it."""
        born, dead = live.start, live.stop
        best, found = _NEVER, -1
        cursor = 0
        for start, stop, first, last in self._ranges:
            if first <= dead and last >= born:
                if size <= start - cursor < best:
                    best, found = start - cursor, cursor
                if stop > cursor:
                    cursor = stop
        return cursor if found < 0 else found


class BusyArrays(Busy):
    """The same for many tiles: a few steps over arrays instead of one for each range."""

    def __init__(self, memory: Memory, tiles: int) -> None:
        self._count = 0
        self._table = np.zeros((4, tiles + len(memory.taken)), np.int64)
        super().__init__(memory)

    def _insert(self, taken: tuple[int, int, int, int]) -> None:
        table, count = self._table, self._count
        at = int(np.searchsorted(table[0, :count], taken[0], "right"))
        table[:, at + 1 : count + 1] = table[:, at:count].copy()
        table[:, at] = taken
        self._count += 1

    def hole(self, live: Live, size: int) -> int:
        table = self._table[:, : self._count]
        starts, stops = table[:2, (table[2] <= live.stop) & (table[3] >= live.start)]
        reached = np.maximum.accumulate(stops)  # behind the ranges so far
        before = np.concatenate(([0], reached))
        sizes = np.append(starts, _NEVER) - before  # of the holes; behind all there is any room
        sizes[sizes < size] = _NEVER
        return int(before[np.argmin(sizes)])


def _loads(lives: list[Live], sizes: dict[Value, int]) -> Iterator[tuple[int, int]]:
    """The bytes that are live at every point where that grows, in order."""
    ends = sorted((live.stop, sizes[live.alloc.result]) for live in lives)
    load = done = 0
    for start, size in sorted((live.start, sizes[live.alloc.result]) for live in lives):
        while ends[done][0] < start:
            load -= ends[done][1]
            done += 1
        load += size
        yield start, load


def _overflow(group: list[Live], memory: Memory, reach: int, target: Target) -> Diagnostic:
    """Show the worst point: which tiles are live there and how large they are."""
    sizes = {live.alloc.result: _nbytes(live) for live in group}
    point, need = max(_loads(group, sizes), key=lambda at: at[1])
    worst = [live for live in group if live.start <= point <= live.stop]
    notes = tuple(
        Note(f"{_nbytes(live)} bytes: {_spec(live)}", live.alloc.location)
        for live in sorted(worst, key=lambda live: -_nbytes(live))
    )
    return Diagnostic(
        "place.overflow",
        f"the tiles do not fit into {memory.name}: {need} bytes are live at one point, in "
        f"{len(worst)} tile{'s'[: len(worst) != 1]}",
        worst[0].alloc.location,
        (
            ("needed", f"{reach} bytes"),
            ("capacity", f"{memory.capacity} bytes"),
            *(("taken by others", f"0x{start:x}..0x{stop:x}") for start, stop in memory.taken),
        ),
        "use smaller tiles, or let one end before the next begins",
        target.name,
        notes=notes,
    )


# ---- writing them down ---------------------------------------------------------------------------


def _rename(accesses: Accesses, addresses: dict[Value, int]) -> None:
    """A reshaped or sub-viewed tile starts where its source starts, plus a known offset."""
    for dst, (src, op) in accesses.renamed.items():
        source = next(iter(accesses.stands_for(src)), None)
        if source in addresses and dst not in addresses and isinstance(dst.type, BufferType):
            addresses[dst] = addresses[source] + _offset(op, src, accesses)


def _offset(op: Op, src: Value, accesses: Accesses) -> int:
    index = [
        accesses.known.number(op.bound(o.name)) or 0
        for o in (op.insn.operands if op.insn else ())
        if "scalar" in o.kinds
    ]
    if len(index) != 2 or not isinstance(src.type, TileBufType):
        return 0
    spec = src.type.spec
    return (index[0] * spec.row_stride + index[1] * spec.col_stride) * spec.itemsize


def _write(function: Function, addresses: dict[Value, int]) -> None:
    """Put the addresses on the allocations, as constants at the head of the function."""
    assert function.body is not None
    constants: dict[int, Op] = {}
    for op in function.walk():
        if not allocates(op) or op.operand("addr") is not None:
            continue
        address = addresses.get(op.result)
        if address is None:
            continue
        if address not in constants:
            constants[address] = _constant(len(constants), address)
        op.operands.insert(0, constants[address].result)
        op.labels = ("addr", *op.labels)
    function.body.ops[:0] = constants.values()


def _constant(index: int, address: int) -> Op:
    made = Op("arith.constant", [], (), [Value(f"addr{index}", I64)], ("result",))
    made.attrs["value"] = IntAttr(address, I64)
    made.result.owner = made
    return made
