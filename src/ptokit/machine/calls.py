"""Calls: an instruction with its operands, verified and laid out, ready to be executed.

What the rules of an instruction look at, and where its operands lie, is decided once per call and
kept in a `CallCache`. A call knows memories but no machine: it serves whoever owns the memories.
Operands whose layout is a plain matrix are handed to the body as the memory itself; others are
gathered before and scattered after, unless their boxes can be handed over as they lie. Global
memory is bound per execution, since its pointer moves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.dtypes import DType, u8
from ptokit.base.enums import TileType
from ptokit.base.layout import AxisMap, common_steps, divided, flat_map
from ptokit.base.location import Location, Site
from ptokit.base.tensors import all_axes, global_axis_map
from ptokit.isa.effects import Effect, InAuto, Scratch, Steps
from ptokit.isa.facts import Ops
from ptokit.isa.regions import Extent, Reach, View
from ptokit.isa.services import CONSTANT
from ptokit.isa.spec import Attr, Insn, Operand, Pipe
from ptokit.isa.targets import Target
from ptokit.machine.access import Access, AccessPattern
from ptokit.machine.core import Core
from ptokit.machine.faults import (
    Spill,
    outside_array,
    outside_memory,
    read_only,
    unbound_tile,
)
from ptokit.machine.objects import ConvObject, GlobalObject, TileObject
from ptokit.machine.unit_flags import phase_of

NUMBERS = (int, float, bool)
_MOST_CALLS = 50_000
Place = Site | Location


class Broken:
    """The rules that a call breaks. What comes of it is asked at each line it stands on."""

    __slots__ = ("found", "has_advice", "kinds")

    def __init__(self, found: Sequence[Diagnostic]) -> None:
        self.found = found  # without lines
        self.has_advice = False  # which takes long to find, and is looked for when it is shown
        self.kinds = tuple((d.code, d.severity, d.is_allowable) for d in found)

    def __bool__(self) -> bool:
        return bool(self.kinds)


NOTHING = Broken(())


class Call:
    """An instruction over operands of known types, sizes and places."""

    __slots__ = (
        "_is_open",
        "accesses",
        "across",
        "args",
        "before",
        "body",
        "checked",
        "cleared",
        "copies",
        "effects",
        "facts",
        "fetches",
        "global_patterns",
        "handed",
        "hidden",
        "insn",
        "is_quiet",
        "keywords",
        "narrows",
        "ops",
        "phase",
        "pipe",
        "scratch",
        "services",
        "spills",
        "steps",
        "values",
        "written",
    )

    def __init__(
        self, insn: Insn, ops: Ops, operands: Sequence[Any], attrs: tuple[Any, ...], site: Place
    ) -> None:
        self.insn = insn
        self.ops = ops
        self.pipe = insn.pipe(ops) if callable(insn.pipe) else (insn.pipe or Pipe.S)
        self.phase = phase_of(self.pipe, ops)
        # Transfers move bits and have no flags to raise; one that adds on the way hides its own.
        self.is_quiet = self.pipe in (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3)
        known = {"target": ops.target, "ops": ops, "pipe": self.pipe}
        known |= {a.name: v for a, v in zip(insn.attrs, attrs, strict=True)}
        asked = insn.body_parameters - {o.name for o in insn.operands}
        self.keywords = {name: known[name] for name in asked if name in known}
        self.services = tuple(insn.services - CONSTANT)
        self.effects = effects_of(insn, ops)
        self.before = effects_before(insn, ops)
        # What the body is handed: arrays that are the memory itself; the rest is made per run.
        self.args: list[Any] = [None] * len(operands)
        self.values: list[int] = []  # positions of operands that are handed over as they are
        self.copies: list[tuple[int, Access]] = []  # what is gathered, scattered if written
        self.global_patterns: list[tuple[int, AccessPattern]] = []  # to be bound per run
        self.accesses: list[Access] = []  # to on-chip memories
        self.handed: dict[str, Access] = {}  # what the body is handed of each tile operand
        self.checked: list[Access] = []  # must hold defined values before
        self.written: list[Access] = []  # holds defined values afterwards
        self.scratch: list[Access] = []  # holds undefined values afterwards
        # What is used beside the operands and bound per run, as it depends on the core: bytes of a
        # memory, and tiles that an operand which is no tile brings along.
        self.steps = insn.case(ops)
        self.hidden: list[Scratch | int] = list(hidden_scratch(self.steps, ops))
        self.cleared: list[Access] = []  # holds zeros afterwards
        self.spills: list[Spill] = []  # scratch that ends past its tile
        self._is_open = insn.leaves_open(ops)
        self._lay_out(operands, site)
        self.across = written_across(ops.target, self.accesses)
        # Whether there is anything to do about its operands each time it runs.
        self.fetches = bool(self.copies or self.values or self.global_patterns or self.across)
        # Of which operands values decide what is touched.
        self.narrows = any(insn.operands[i].touches is not None for i, _ in self.global_patterns)
        self.body = insn.body_for(ops)  # all tiles have an address by now
        self.facts: Any = None  # what the checker must know of it (machine/call_facts.py)

    def _lay_out(self, operands: Sequence[Any], site: Place) -> None:
        """Find the elements each operand stands for, then their place in memory."""
        insn, ops = self.insn, self.ops
        tiles: list[tuple[int, AccessPattern]] = []
        beside: list[tuple[int, AccessPattern, list[Access]]] = []
        for index, (declared, value) in enumerate(zip(insn.operands, operands, strict=True)):
            if value is None:
                continue
            view = declared.view(ops) if callable(declared.view) else declared.view
            if view is View.OBJECT or value.__class__ in NUMBERS:
                self.values.append(index)
                if "async_session" in declared.kinds and self._is_lost(declared):
                    self.hidden.append(index)
            elif isinstance(value, GlobalObject):
                self.global_patterns.append((index, global_pattern(value, view, declared)))
            else:
                tiles.append((index, self._tile_pattern(declared, view, value)))
                for part, kept in self._beside(declared):
                    region = self._region(declared, part, value)
                    pattern = AccessPattern(declared.name, *region, writes=True)
                    beside.append((index, pattern, kept))
        patterns = [pattern for _, pattern in tiles]
        if any(p.steps is None for p in patterns) and insn.pointwise and insn.pointwise(ops):
            _hand_over_boxes([*patterns, *(pattern for _, pattern in self.global_patterns)])
        for index, pattern in tiles:
            self._bind(index, pattern, operands[index], site)
        for index, pattern, kept in beside:
            access = bind_tile(pattern, operands[index], insn, site)
            self.accesses.append(access)
            kept.append(access)

    def _beside(self, declared: Operand) -> Iterator[tuple[Extent, list[Access]]]:
        """What is lost or cleared of an operand beside what the body is handed, and its list."""
        for asked, kept in ((declared.unspecified, self.scratch), (declared.zeroed, self.cleared)):
            parts = None if asked is None else asked(self.ops)
            if parts is not None:
                yield from (
                    (part, kept) for part in (parts if isinstance(parts, list) else [parts])
                )

    def _tile_pattern(self, declared: Operand, view: View | Extent, value: Any) -> AccessPattern:
        kind, axis_map, rows, cols = self._region(declared, view, value)
        array = None
        if view is View.STORAGE or isinstance(view, slice):
            array = (cols.stop - cols.start,), (1,)
        elif isinstance(value, ConvObject):
            array = axis_map.shape, axis_map.strides
        pattern = AccessPattern(
            declared.name,
            kind,
            axis_map,
            rows,
            cols,
            reads=declared.reads,
            writes=self._is_lost(declared) or declared.role in ("out", "inout"),
            array=array,
        )
        axes = pattern.axes if declared.boxes and not axis_map.is_matrix else None
        # Results keep their rows together.
        if axes and (not declared.writes or (len(axes[0]), len(axes[1])) == (1, 2)):
            extents, strides = zip(*axes[0], *axes[1], strict=True)
            pattern.hand_over(extents, strides)
        return pattern

    def _is_lost(self, declared: Operand) -> bool:
        """Whether the contents of an operand do not survive."""
        if self._is_open and declared.role in ("out", "inout"):
            return True
        return declared.is_lost(self.ops)

    def _region(
        self, declared: Operand, view: View | Extent, value: Any
    ) -> tuple[DType, AxisMap, slice, slice]:
        """The elements of a view: their type, where they lie, and which of them it takes."""
        kind, sizes = value.spec.dtype, None
        if isinstance(view, Reach):
            kind, sizes, view = view.dtype or kind, view.sizes, view.places
        if isinstance(view, slice):
            axis_map, rows, cols = flat_map(max(1, view.stop)), slice(0, 1), view
        elif isinstance(view, AxisMap):
            axis_map = view
            rows, cols = (slice(0, size) for size in sizes or (view.rows, view.cols))
        elif isinstance(value, ConvObject):
            axis_map = value.spec.axis_map(value.shape)
            rows, cols = slice(0, 1), slice(0, axis_map.cols)
        elif view is View.STORAGE:
            axis_map = flat_map(value.spec.numel)
            rows, cols = slice(0, 1), slice(0, axis_map.cols)
        else:
            axis_map = value.spec.axis_map(value.vr, value.vc)
            rows, cols = _extent(view, (value.vr, value.vc), axis_map)
        assert min(rows.start, cols.start) >= 0, f"{declared.name} begins before its tile"
        return kind, axis_map.covering(rows.stop, cols.stop), rows, cols

    def region(
        self, name: str, tile: Any, rows: slice | None, cols: slice | None, site: Place
    ) -> Access:
        """Some rows and columns of a tile, whatever the body is handed of it."""
        axis_map = tile.spec.axis_map(tile.vr, tile.vc)
        reach = (
            axis_map.rows if rows is None else rows.stop,
            axis_map.cols if cols is None else cols.stop,
        )
        pattern = AccessPattern(name, tile.spec.dtype, axis_map.covering(*reach), rows, cols)
        return bind_tile(pattern, tile, self.insn, site)

    def _bind(self, index: int, pattern: AccessPattern, tile: Any, site: Place) -> None:
        """Find what the body is handed of a tile in its memory."""
        declared = self.insn.operands[index]
        access = bind_tile(pattern, tile, self.insn, site)
        self.handed[declared.name] = access
        if pattern.reads or pattern.writes:
            self.accesses.append(access)
        if pattern.reads and not declared.carries:
            self.checked.append(access)
        if pattern.writes:
            (self.scratch if self._is_lost(declared) else self.written).append(access)
            if declared.role == "tmp" and pattern.high > tile.spec.nbytes:
                at = access.memory, access.offset
                spill = Spill(declared.name, *at, tile.spec.nbytes, pattern.high)
                self.spills.append(spill)
        if pattern.steps is None:
            self.copies.append((index, access))
        else:
            self.args[index] = access.array()


def written_across(target: Target, accesses: Sequence[Any]) -> list[Any]:
    """What an instruction of a vector core writes in memories of its cluster.

    Both vector cores may write there, as all cores may to global memory.
    """
    space = target.spaces.get(TileType.Vec)
    own = None if space is None else space.memory
    if not any(each.reads and each.memory.name == own for each in accesses):
        return []
    return [each for each in accesses if each.writes and each.memory.name != own]


def effects_of(insn: Insn, ops: Ops) -> Sequence[Effect] | None:
    """All that an instruction does which only orders the work of others; None: it does more.

    In auto mode the compiler orders, and there is nothing left to do. Which end of a FIFO acts is
    known only as it runs.
    """
    if insn.effects is None or not insn.orders:
        return None
    vanishes = ops.mode == "auto" and insn.in_auto is not InAuto.RUNS
    return () if vanishes or insn.moves_entries else insn.effects(ops)


def hidden_scratch(steps: Steps | None, ops: Ops) -> Iterator[Scratch]:
    """What is overwritten beside the operands; placed automatically, nobody sees it."""
    if steps is not None and steps.scratch is not None and ops.mode == "manual":
        yield steps.scratch


def bind_hidden(call: Call, operands: Sequence[Any], core: Core, site: Place) -> list[Access]:
    """The scratch of a run that is no operand."""
    found: list[Access] = []
    for each in call.hidden:
        if isinstance(each, Scratch):
            pattern = AccessPattern("scratch", u8, flat_map(each.nbytes(call.ops)), writes=True)
            found.append(Access(pattern, core.memory(each.loc), each.address))
        elif (tile := operands[each].scratch) is not None:
            name, axis_map = call.insn.operands[each].name, flat_map(tile.spec.numel)
            pattern = AccessPattern(name, tile.spec.dtype, axis_map, writes=True)
            found.append(bind_tile(pattern, tile, call.insn, site))
    return found


def effects_before(insn: Insn, ops: Ops) -> Sequence[Effect]:
    """What an instruction that has a body as well does first."""
    return insn.effects(ops) if insn.effects is not None and not insn.orders else ()


def part_of(
    insn: Insn,
    pipe: Pipe,
    operands: tuple[Operand, ...],
    body: Callable[..., Any],
    attrs: tuple[Attr, ...] = (),
) -> Insn:
    """What an instruction does on a pipe by itself, as a record under its name.

    It has operands of its own, and no rules: those of the instruction hold already.
    """
    return replace(
        insn,
        operands=operands,
        attrs=attrs,
        pipe=pipe,
        types=(),
        rules=(),
        effects=None,
        means=None,
        idiom=None,
        forms=(tuple(o.name for o in operands),),
        body=body,
        body_parameters=frozenset(inspect.signature(body).parameters),
    )


# ---- the key of a call -------------------------------------------------------------------------


class CallCache(dict[tuple[Any, ...], Any]):
    """Verified calls of one target and mode, by all that their legality and layout depend on."""

    def __init__(self, target: Target, mode: str) -> None:
        super().__init__()
        self.target = target
        self.mode = mode
        # Calls that break rules: what comes of it is asked anew at each line.
        self.suspect: dict[tuple[Any, ...], tuple[Any, Broken]] = {}

    def keep(self, key: tuple[Any, ...], call: Any, broken: Broken = NOTHING) -> None:
        """Remember a call; a program that needs too many never repeats itself."""
        if len(self) + len(self.suspect) >= _MOST_CALLS:
            self.clear()
            self.suspect.clear()
        if broken:
            self.suspect[key] = call, broken
        else:
            self[key] = call


def cache_key(
    insn: Insn, attrs: tuple[Any, ...], operands: Sequence[Any], used: Sequence[Any]
) -> tuple[Any, ...]:
    """What the legality and the layout of an instruction depend on, target and mode apart.

    That is the instruction, its template arguments, and of each operand: the value and the type of
    a number; type, memory, address and valid sizes of a tile, parameters of a convolution tile;
    type, sizes and strides of a GlobalTensor, whose pointer is no part of it; the type of a FIFO.
    The objects keep their `key` up to date. `used` are the operands where a device finds them.
    """
    key = (
        insn,
        attrs,
        *[
            o if o is None else (o.__class__, o) if o.__class__ in NUMBERS else o.key
            for o in operands
        ],
    )
    if used is operands:
        return key
    return (*key, *[used[i].key for i in insn.addressed if used[i] is not operands[i]])


# ---- where operands lie ------------------------------------------------------------------------


def where_used(insn: Insn, operands: Sequence[Any], core: Core) -> Sequence[Any]:
    """The operands, those of which a device sees only an address at the place it takes that for.

    Tiles with a storage of their own have no address to speak of.
    """
    if not insn.addressed or not core.target.is_device:
        return operands
    found = list(operands)
    for index in insn.addressed:
        declared, tile = insn.operands[index], operands[index]
        if isinstance(tile, TileObject) and tile.storage is not None and not tile.lease:
            found[index] = _used(declared, tile, core)
    return found


def _used(declared: Operand, tile: TileObject, core: Core) -> TileObject:
    assert declared.memory is not None
    is_there = tile.spec.loc == declared.memory
    memory = tile.storage if is_there else core.memory(declared.memory)
    address = tile.address - tile.address % declared.grain
    if memory is tile.storage and address == tile.address:
        return tile
    assert memory is not None
    twin = TileObject(tile.spec, tile.vr, tile.vc)
    twin.bind(memory, address)
    return twin


def bind_tile(pattern: AccessPattern, tile: Any, insn: Insn, site: Place) -> Access:
    """An access pattern where its tile lies."""
    memory = tile.storage
    if memory is None:
        raise unbound_tile(tile, insn, pattern.operand, site)
    if not pattern.fits(memory, tile.address):
        raise outside_memory(pattern, memory, tile.address, insn, site)
    return Access(pattern, memory, tile.address)


def bind_global(pattern: AccessPattern, tensor: GlobalObject, insn: Insn, site: Place) -> Access:
    """An access pattern where its tensor points to."""
    at = tensor.pointer or tensor.data()
    memory, offset = at.buffer, at.offset
    spills = offset + pattern.low < 0 or offset + pattern.high > memory.data.nbytes
    if spills or not (memory.is_dense or memory.holds(pattern.extents, offset)):
        raise outside_array(pattern, memory, offset, insn, tensor.spec, site)
    if pattern.writes and not memory.writeable:
        raise read_only(pattern, insn, site)
    return Access(pattern, memory, offset)


def tile_access(tile: TileObject | ConvObject, *, whole: bool = False) -> Access:
    """The valid region of a tile, or all of it, looked at from outside any instruction."""
    if isinstance(tile, ConvObject):
        pattern = AccessPattern("tile", tile.spec.dtype, tile.spec.axis_map(tile.shape))
    else:
        axis_map, region = tile.spec.axis_map(tile.vr, tile.vc), (None, None)
        if not whole:  # of a window the rest may lie outside the memory
            axis_map = axis_map.covering(tile.vr, tile.vc)
            region = slice(0, tile.vr), slice(0, tile.vc)
        pattern = AccessPattern("tile", tile.spec.dtype, axis_map, *region)
    if tile.storage is None:
        raise unbound_tile(tile)
    if not pattern.fits(tile.storage, tile.address):
        raise outside_memory(pattern, tile.storage, tile.address)
    return Access(pattern, tile.storage, tile.address)


def global_pattern(tensor: GlobalObject, view: View | Extent, declared: Operand) -> AccessPattern:
    """How an operand reaches a GlobalTensor whose pointer is known only at run time."""
    shape, stride, layout = tensor.shape, tensor.stride, tensor.spec.layout
    array = None
    if view is View.STORAGE:  # dense behind the pointer, whatever the strides say
        axis_map = flat_map(prod(shape))
        array = (axis_map.cols,), (1,)
    elif view is View.WHOLE:
        array = all_axes(shape, stride, layout)
        axis_map = AxisMap(*array, (), tuple(range(len(array[0]))))
    elif isinstance(view, AxisMap):
        axis_map = view
    else:
        assert view is View.VALID
        axis_map = global_axis_map(shape, stride, layout)
    reads, writes = declared.reads, declared.writes
    return AccessPattern(
        declared.name, tensor.spec.dtype, axis_map, reads=reads, writes=writes, array=array
    )


def _hand_over_boxes(patterns: Sequence[AccessPattern]) -> None:
    """Hand operands over where they lie, in the boxes of their layouts, instead of copies.

    A matrix of boxes is an array of four dimensions; any other layout can be divided the same
    way. All operands must have one shape, or nothing changes.
    """
    known = [pattern.axes for pattern in patterns]
    axes = [pair for pair in known if pair is not None]
    if len({pattern.shape for pattern in patterns}) != 1 or len(axes) < len(known):
        return
    rows = common_steps([pair[0] for pair in axes])
    cols = common_steps([pair[1] for pair in axes])
    if rows is None or cols is None:
        return
    for pattern, pair in zip(patterns, axes, strict=True):
        pattern.hand_over((*rows, *cols), (*divided(pair[0], rows), *divided(pair[1], cols)))


def _extent(view: View | Extent, valid: tuple[int, int], axis_map: AxisMap) -> tuple[slice, slice]:
    """The rows and columns a view stands for."""
    if isinstance(view, View):
        view = (axis_map.rows, axis_map.cols) if view is View.WHOLE else valid
    assert isinstance(view, tuple)
    rows, cols = (part if isinstance(part, slice) else slice(0, part) for part in view)
    return rows, cols
