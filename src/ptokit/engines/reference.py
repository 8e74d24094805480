"""The reference engine: the definition of what a program means, small, slow and obvious.

Every operand of an instruction is gathered element by element - an address for each, from the
formula of its layout - into a plain array; the rules are checked, undefined bytes are looked for,
the body runs, and the results are scattered back. Nothing is remembered from one instruction to
the next. The operations of a program are interpreted one after the other, as they stand.

The fast engine must leave the same bytes in all memories and raise the same errors. It shares with
this file the table of instructions and the meaning of order (queues, flags, FIFOs), and neither
addresses, nor arrays, nor poison, nor control flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import DType, u8
from ptokit.base.enums import BLayout, CompactMode, SLayout, TileType
from ptokit.base.layout import Array, AxisMap
from ptokit.base.location import Location, Site
from ptokit.base.tensors import ROW_AND_COLUMN_AXES, all_axes
from ptokit.base.tiles import TileSpec
from ptokit.engines import (
    aggregate_ops,
    async_ops,
    conv_ops,
    memory_ops,
    micro_ops,
    sync_ops,
)
from ptokit.engines.interpreter import Interpreter
from ptokit.engines.steps import arithmetic
from ptokit.engines.values import Frame
from ptokit.engines.values import View as ViewValue
from ptokit.ir.attributes import ArrayAttr, IntAttr, SymbolAttr
from ptokit.ir.core import Block, Function, Module, Op
from ptokit.ir.dialects import cf, definition_of, func, scf, sync
from ptokit.ir.flow import core_of, is_terminator
from ptokit.ir.instructions import (
    RETURNED,
    group_operands,
    literal,
    run_time_operands,
    template_arguments,
)
from ptokit.ir.types import BufferType, is_column_tile
from ptokit.isa.facts import Ops
from ptokit.isa.regions import Reach, View
from ptokit.isa.services import CONSTANT, Refused
from ptokit.isa.spec import Insn, Operand, Pipe
from ptokit.machine import faults
from ptokit.machine.calls import (
    effects_before,
    effects_of,
    hidden_scratch,
    where_used,
    written_across,
)
from ptokit.machine.executor import judge_scratch, named, order
from ptokit.machine.gm import GmBuffer
from ptokit.machine.machine import Machine
from ptokit.machine.memory import Storage
from ptokit.machine.objects import ConvObject, GlobalObject, TileObject
from ptokit.machine.poison import spread, taken
from ptokit.machine.providers import Services
from ptokit.machine.unit_flags import phase_of

Place = Site | Location
_ALL = (slice(None), slice(None))


# ---- where elements lie ------------------------------------------------------------------------


def tile_size(spec: TileSpec, valid_rows: int, valid_cols: int) -> tuple[int, int]:
    """Rows and columns that a tile has: of a compact one, the boxes in use."""
    high, wide = spec.box
    if spec.compact == CompactMode.Normal and spec.is_boxed:
        return up(valid_rows, high), up(valid_cols, wide)
    return spec.rows, spec.cols


def up(size: int, unit: int) -> int:
    """Round up to a multiple."""
    return -(-size // unit) * unit


def tile_places(spec: TileSpec, valid_rows: int, valid_cols: int, reach: tuple[int, int]) -> Array:
    """The place of so many rows and columns of a tile, counted in elements, in whole boxes."""
    rows, cols = tile_size(spec, valid_rows, valid_cols)
    high, wide = spec.box  # of one: a tile without boxes is one element after the other
    high = 1 if rows == 1 else high
    # Rows of NZ and columns of ZN tiles go on across the borders of boxes.
    listed = (
        reach[0] if spec.layout == "NZ" else up(reach[0], high),
        reach[1] if spec.layout == "ZN" else up(reach[1], wide),
    )
    column_of_boxes = (up(rows, 16) if spec.loc == TileType.Acc else rows) * wide
    if spec.compact == CompactMode.RowPlusOne and spec.layout == "NZ":  # with a row to spare
        column_of_boxes = (-(-valid_rows // 16) * 16 + 1) * wide
    r, c = np.indices(listed)
    if spec.blayout == BLayout.RowMajor:
        box = r // high * high * cols + c // wide * high * wide
    else:
        box = c // wide * column_of_boxes + r // high * high * wide
    if spec.slayout == SLayout.ColMajor:
        return box + c % wide * high + r % high
    return box + r % high * wide + c % wide


def view_places(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The place of every element of a view, counted in elements, a dimension for every axis."""
    places = np.zeros(shape, np.int64)
    for index, stride in zip(np.indices(shape), strides, strict=True):
        places += index * stride
    return places


def map_places(axis_map: AxisMap) -> Array:
    """The place of every element of an address map that an instruction gives itself."""
    steps = zip(np.indices(axis_map.shape), axis_map.strides, strict=True)
    places = sum((index * stride for index, stride in steps), np.zeros(axis_map.shape, np.int64))
    return places.transpose(axis_map.row_axes + axis_map.col_axes).reshape(
        axis_map.rows, axis_map.cols
    )


class Elements:
    """Elements of an operand in a memory, each with its place."""

    def __init__(
        self, declared: Operand, dtype: DType, memory: Storage, offset: int, places: Array
    ) -> None:
        self.operand = declared.name
        self.reads, self.writes = declared.reads, declared.writes
        self.dtype, self.memory, self.offset = dtype, memory, offset
        self.array_shape = places.shape  # of the array that a body is handed
        self.whole: Elements | None = None  # of which values have chosen these
        self.places = places if places.ndim == 2 else places.reshape(1, -1)
        self.first = (0, 0)  # the row and column of the operand at which they begin
        bits = 4 if dtype.is_packed else 8 * dtype.itemsize
        self.low = int(places.min()) * bits // 8 if places.size else 0
        self.high = -(-(int(places.max()) + 1) * bits // 8) if places.size else 0

    def part(self, rows: slice, cols: slice) -> Elements:
        """Some rows and columns of them."""
        twin = self.moved(self.memory)
        twin.places = self.places[rows, cols]
        twin.array_shape, twin.first = twin.places.shape, (rows.start or 0, cols.start or 0)
        return twin

    def chosen(self, where: tuple[Array, ...]) -> Elements:
        """Only some of them, by their numbers along the axes of the array."""
        twin = self.moved(self.memory)
        twin.places = self.places.reshape(self.array_shape)[where].reshape(1, -1)
        twin.whole = self
        return twin

    def moved(self, memory: Storage) -> Elements:
        """The same elements of another memory."""
        twin = object.__new__(Elements)
        twin.__dict__.update(self.__dict__, memory=memory)
        return twin

    @property
    def shape(self) -> tuple[int, int]:
        return self.places.shape[0], self.places.shape[1]

    @property
    def bytes(self) -> Array:
        """The bytes of every element, as a last dimension; 4-bit elements share one."""
        if self.dtype.is_packed:
            return (self.offset + self.places // 2)[..., None]
        size = self.dtype.itemsize
        return (self.offset + self.places * size)[..., None] + np.arange(size)

    def addresses(self) -> Array:
        """The first byte of every element."""
        return self.bytes[..., 0]

    def read(self) -> Array:
        """The values, as a matrix of its own."""
        raw = self.memory.data[self.bytes]
        if self.dtype.is_packed:
            return np.where(self.places % 2, raw[..., 0] >> 4, raw[..., 0] & 15)
        return np.ascontiguousarray(raw).view(self.dtype.np)[..., 0]

    def write(self, values: Array) -> None:
        """Store the values."""
        values = np.broadcast_to(values, self.shape).astype(self.dtype.np)
        if not self.dtype.is_packed:
            self.memory.data[self.bytes] = values[..., None].view(np.uint8)
            return
        for half, keep in ((0, 0xF0), (1, 0x0F)):
            mine = self.places % 2 == half
            at = self.bytes[mine, 0]
            self.memory.data[at] = (self.memory.data[at] & keep) | (values[mine] << 4 * half)

    def defined(self) -> Array:
        """Which of them hold a defined value; the arrays of the user always do."""
        if isinstance(self.memory, GmBuffer):
            return np.ones(self.shape, np.bool_)
        return np.all(self.memory.shadow[self.bytes], axis=-1)

    def is_defined(self) -> bool:
        return bool(self.defined().all())

    def first_poison(self, part: tuple[slice, slice] = _ALL) -> tuple[int, int]:
        """Row and column of the first undefined one, in some rows and columns of them."""
        row, col = np.argwhere(~self.defined()[part])[0].tolist()
        row, col = row + (part[0].start or 0), col + (part[1].start or 0)
        return row + self.first[0], col + self.first[1]

    def mark_defined(self) -> None:
        if not isinstance(self.memory, GmBuffer):
            self.memory.shadow[self.bytes] = 1

    def poison(self, where: Array | None = None) -> None:
        """Make all or some of them undefined."""
        self.memory.shadow[self.bytes if where is None else self.bytes[where]] = 0
        self.memory.epoch += 1

    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The bytes they take, as ascending ranges [start, stop)."""
        touched = np.unique(self.bytes) + self.memory.base
        runs = np.split(touched, np.flatnonzero(np.diff(touched) > 1) + 1)
        return tuple((int(run[0]), int(run[-1]) + 1) for run in runs if run.size)

    place = signature = property(ranges)


# ---- instructions ------------------------------------------------------------------------------


class ReferenceCall:
    """An instruction whose rules hold, with the elements of its tiles."""

    def __init__(
        self, insn: Insn, ops: Ops, operands: Sequence[Any], attrs: tuple[Any, ...], site: Place
    ) -> None:
        self.insn, self.ops = insn, ops
        self.pipe = insn.pipe(ops) if callable(insn.pipe) else (insn.pipe or Pipe.S)
        self.phase = phase_of(self.pipe, ops)
        self.effects = effects_of(insn, ops)
        self.before = effects_before(insn, ops)
        self.steps = insn.case(ops)
        known = {"target": ops.target, "ops": ops, "pipe": self.pipe}
        known |= {a.name: value for a, value in zip(insn.attrs, attrs, strict=True)}
        names = insn.body_parameters - {o.name for o in insn.operands}
        self.keywords = {name: known[name] for name in names if name in known}
        self.handed: dict[str, Elements] = {}
        self.lost: list[Elements] = []  # what holds nothing defined afterwards
        self.spills: list[faults.Spill] = []  # scratch that ends past its tile
        self.cleared: list[Elements] = []  # what holds zeros
        for declared, value in zip(insn.operands, operands, strict=True):
            if not isinstance(value, TileObject | ConvObject):
                continue
            view = self.view(declared)
            if view is View.OBJECT:
                continue
            found = self.handed[declared.name] = self._elements(declared, view, value, site)
            lost = declared.is_lost(ops)
            is_result = declared.role in ("out", "inout")
            lost = lost or (is_result and insn.leaves_open(ops))
            found.writes = lost or is_result
            self.lost += [found] * lost
            if lost and declared.role == "tmp" and found.high > value.spec.nbytes:
                at = found.memory, found.offset
                self.spills.append(faults.Spill(declared.name, *at, value.spec.nbytes, found.high))
            for asked, kept in ((declared.unspecified, self.lost), (declared.zeroed, self.cleared)):
                parts = None if asked is None else asked(ops)
                for part in parts if isinstance(parts, list) else [parts] if parts else []:
                    beside = self._elements(declared, part, value, site)
                    beside.reads, beside.writes = False, True
                    kept.append(beside)
        used = [e for e in self.handed.values() if e.reads or e.writes]
        self.accesses = used + [e for e in self.lost if e not in used] + self.cleared
        self.across = written_across(ops.target, self.accesses)
        self.facts: Any = None  # what the checker must know of it (machine/call_facts.py)

    def view(self, declared: Operand) -> Any:
        """Which elements the body is handed."""
        return declared.view(self.ops) if callable(declared.view) else declared.view

    def region(
        self, name: str, tile: Any, rows: slice | None, cols: slice | None, site: Place
    ) -> Elements:
        """Some rows and columns of a tile, whatever the body is handed of it."""
        high, wide = tile_size(tile.spec, tile.vr, tile.vc)
        part = rows or slice(0, high), cols or slice(0, wide)
        return self._elements(self.insn.operand(name), part, tile, site)

    def _elements(self, declared: Operand, view: Any, tile: Any, site: Place) -> Elements:
        spec, name = tile.spec, declared.name
        kind, rows, cols, cut = spec.dtype, slice(0, 1), slice(None), (None, None)
        if isinstance(view, Reach):
            kind, cut, view = view.dtype or kind, view.sizes or cut, view.places
        if isinstance(view, slice):
            cols, places = view, np.arange(view.start, view.stop)
        elif isinstance(tile, ConvObject):
            places = np.arange(prod(tile.shape)).reshape(tile.shape)
        elif view is View.STORAGE:
            cols, places = slice(0, spec.numel), np.arange(spec.numel)
        elif isinstance(view, AxisMap):
            places = map_places(view)[: cut[0], : cut[1]]
        else:
            if isinstance(view, View):
                sizes = (
                    tile_size(spec, tile.vr, tile.vc) if view is View.WHOLE else (tile.vr, tile.vc)
                )
            else:
                sizes = view
            rows, cols = (s if isinstance(s, slice) else slice(0, s) for s in sizes)
            places = tile_places(spec, tile.vr, tile.vc, (rows.stop, cols.stop))
        assert min(rows.start, cols.start or 0) >= 0, f"{name} begins before its tile"
        if tile.storage is None:
            raise faults.unbound_tile(tile, self.insn, name, site)
        whole = Elements(declared, kind, tile.storage, tile.address, places)
        if tile.address < 0 or tile.address + whole.high > tile.storage.nbytes:
            raise faults.outside_memory(whole, tile.storage, tile.address, self.insn, site)
        if isinstance(view, slice):
            whole.first = (0, view.start)
            return whole
        if isinstance(tile, ConvObject) or view is View.STORAGE or isinstance(view, AxisMap):
            return whole
        return whole.part(rows, cols)

    def view_elements(self, declared: Operand, tensor: GlobalObject, site: Place) -> Elements:
        """The elements of a view where it points to now."""
        view, at = self.view(declared), tensor.data()
        axes = all_axes(tensor.shape, tensor.stride, tensor.spec.layout)
        if view is View.STORAGE:  # dense behind the pointer, whatever the strides say
            axes = (prod(tensor.shape),), (1,)
        elif isinstance(view, AxisMap):
            axes = view.shape, view.strides
        is_empty = 0 in axes[0]  # nothing of it lies anywhere
        last = sum((n - 1) * s for n, s in zip(*axes, strict=True))
        ends = Elements(declared, tensor.spec.dtype, at.buffer, at.offset, np.array([[0, last]]))
        # Before they are listed: there may be very many.
        if not is_empty and (at.offset < 0 or at.offset + ends.high > at.buffer.nbytes):
            raise faults.outside_array(ends, at.buffer, at.offset, self.insn, tensor.spec, site)
        places = map_places(view) if isinstance(view, AxisMap) else view_places(*axes)
        if view is View.VALID:
            rows, cols = ROW_AND_COLUMN_AXES[tensor.spec.layout]
            height = prod(places.shape[axis] for axis in rows)
            width = prod(places.shape[axis] for axis in cols)
            places = places.transpose(rows + cols).reshape(height, width)
        found = Elements(declared, tensor.spec.dtype, at.buffer, at.offset, places)
        if not at.buffer.holds(found.ranges(), -at.buffer.base):
            raise faults.outside_array(found, at.buffer, at.offset, self.insn, tensor.spec, site)
        if found.writes and not at.buffer.writeable:
            raise faults.read_only(found, self.insn, site)
        return found


class ReferenceExecutor:
    """Executes instructions by gathering, running the body, and scattering."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def call(
        self, insn: Insn, operands: Sequence[Any], attrs: tuple[Any, ...], site: Place
    ) -> ReferenceCall:
        """The instruction on these operands; raises what its rules forbid."""
        for operand in operands:
            self.machine.place(operand)
        ops, _ = self.machine.verified(insn, operands, attrs, site)
        used = where_used(insn, operands, self.machine.core)
        return ReferenceCall(insn, ops, used, attrs, site)

    def _hidden(self, call: ReferenceCall, operands: Sequence[Any]) -> list[Elements]:
        """What the hardware overwrites beside the operands."""
        found: list[Elements] = []
        for each in hidden_scratch(call.steps, call.ops):
            memory, places = self.machine.core.memory(each.loc), np.arange(each.nbytes(call.ops))
            declared = Operand("scratch", "tmp")
            found.append(Elements(declared, u8, memory, each.address, places))
        for declared, value in zip(call.insn.operands, operands, strict=True):
            tile = getattr(value, "scratch", None)  # of a session
            if tile is not None and declared.lost is not None and declared.lost(call.ops):
                places, where = np.arange(tile.spec.numel), (tile.storage, tile.address)
                found.append(Elements(declared, tile.spec.dtype, *where, places))
                found[-1].reads, found[-1].writes = False, True
        return found

    def execute(self, call: ReferenceCall, operands: Sequence[Any], site: Place) -> Any:
        """Gather, check, run, scatter, mark, publish."""
        insn, machine = call.insn, self.machine
        if call.effects is not None:
            return order(machine, call, operands, site)
        machine.sync.apply(call.before, site, named(call, operands))
        reached: dict[str, Elements] = {}  # of global memory
        args: list[Any] = []
        missing: dict[str, Array | None] = {}  # what nothing has written, where poison travels
        for declared, value in zip(insn.operands, operands, strict=True):
            found = call.handed.get(declared.name)
            is_looked_at = found is not None and found.reads and not declared.carries
            if found is not None and is_looked_at and not found.is_defined():
                missing[declared.name] = taken(machine, call, found, site)
            if isinstance(value, GlobalObject) and call.view(declared) is not View.OBJECT:
                found = reached[declared.name] = call.view_elements(declared, value, site)
            args.append(value if found is None else found.read().reshape(found.array_shape))
        if machine.peek is not None:
            machine.peek(call, (*reached.values(), *call.across))
        services = Services(machine, call, operands, site)
        asked = {name: services.of(name) for name in insn.services - CONSTANT}
        try:
            with np.errstate(all="ignore"):
                result = insn.body_for(call.ops)(*args, **call.keywords, **asked)
        except PtoError:
            raise
        except Refused as error:
            raise faults.refusal(insn, error, site, call.ops.target.name) from None
        except Exception as error:
            raise faults.failure(call, error, site) from error
        for declared, array in zip(insn.operands, args, strict=True):
            found = call.handed.get(declared.name) or reached.get(declared.name)
            if found is not None and found.writes:
                found.write(array.reshape(found.shape))
                found.mark_defined()
        for found in call.cleared:
            found.write(np.zeros(found.shape))
            found.mark_defined()
        hidden = self._hidden(call, operands)
        judge_scratch(machine, call, site)
        for found in (*call.lost, *hidden):
            found.poison()
        services.finish()
        missing |= services.missing
        given = dict(zip(insn.names, args, strict=True))
        touched = [
            found.chosen(touches(call.ops, given))
            if (touches := insn.operand(name).touches) is not None
            else found
            for name, found in reached.items()
        ]
        if missing:
            made = [e for e in (*call.handed.values(), *reached.values()) if e.writes]
            spread(machine, call, missing, [e for e in made if e not in call.lost], site)
        machine.publish(call, site, (*touched, *hidden, *services.far))
        return result


# ---- programs ----------------------------------------------------------------------------------


class ReferenceInterpreter(Interpreter):
    """Runs the operations of a program as they stand."""

    def block(self, block: Block, frame: Frame) -> list[Any]:
        for op in block.ops:
            if is_terminator(op):
                return [frame[v] for v in op.operands]
            if (of_micro := micro_ops.handler_of(op)) is not None:
                of_micro(self, op, frame)
            elif op.insn is not None and definition_of(op) not in sync_ops.HANDLERS:
                self._instruction(op, frame)
            elif op.regions or func.CALL.matches(op):
                frame.update(zip(op.results, self._control_flow(op, frame), strict=True))
            else:
                self._operation(op, frame)
        return []

    def _operation(self, op: Op, frame: Frame) -> None:
        """What makes and reads values, or orders the work of others."""
        handlers = memory_ops.HANDLERS | sync_ops.HANDLERS
        handlers |= conv_ops.HANDLERS | async_ops.HANDLERS | aggregate_ops.HANDLERS
        definition = definition_of(op)
        if definition in handlers:
            handlers[definition](self, op, frame)
        else:
            prepared = memory_ops.PREPARED
            step = prepared[definition](op) if definition in prepared else arithmetic(op)
            step(self, frame)

    def _instruction(self, op: Op, frame: Frame) -> None:
        assert op.insn is not None
        results = list(zip(op.results, op.result_labels, strict=True))
        for result, label in results:
            if isinstance(result.type, BufferType):
                source = op.operand(label)
                frame[result] = self.buffer(result) if source is None else frame[source]
        values = run_time_operands(op)
        in_columns = any(is_column_tile(value.type) for value in values if value is not None)
        operands: list[Any] = []
        groups = group_operands(op)
        for declared, value, members in zip(op.insn.operands, values, groups, strict=True):
            if members:
                operands.append(self.group(op, members, frame))
            elif value is not None:
                found = frame[value]
                operands.append(found.tensor(in_columns) if isinstance(found, ViewValue) else found)
            elif declared.role == "tmp":
                operands.append(self.scratch(op, declared.name))
            else:
                operands.append(literal(op, declared))
        value = self.machine.execute(op.insn, operands, template_arguments(op), op.location)
        frame.update((result, value) for result, label in results if label == RETURNED)

    def _control_flow(self, op: Op, frame: Frame) -> list[Any]:
        given = [frame[v] for v in op.operands]
        match definition_of(op):
            case scf.FOR:
                lower, upper, step, *carried = given
                if step <= 0:
                    raise fail("loop-step", "the step of scf.for is positive", site=op.location)
                (body,) = op.regions
                for index in range(lower, upper, step):
                    self.count(op.location)
                    frame.update(zip(body.args, [index, *carried], strict=True))
                    carried = self.block(body, frame)
                return carried
            case scf.WHILE:
                before, after = op.regions
                while True:
                    self.count(op.location)
                    frame.update(zip(before.args, given, strict=True))
                    goes_on, *passed = self.block(before, frame)
                    if not goes_on:
                        return passed
                    frame.update(zip(after.args, passed, strict=True))
                    given = self.block(after, frame)
            case scf.IF:
                taken = op.regions[:1] if given[0] else op.regions[1:]
                return self.block(taken[0], frame) if taken else []
            case scf.SWITCH:
                cases = op.attrs["cases"]
                assert isinstance(cases, ArrayAttr)
                numbers = [c.value for c in cases.items if isinstance(c, IntAttr)]
                which = 1 + numbers.index(given[0]) if given[0] in numbers else 0
                return self.block(op.regions[which], frame)
            case cf.BLOCKS:
                return self.blocks(op, frame)
            case func.CALL:
                callee = op.attrs["callee"]
                assert isinstance(callee, SymbolAttr)
                function = self.module.function(callee.name)
                assert function is not None
                return self.call(function, given)
            case sync.CUBE_SECTION | sync.VECTOR_SECTION:
                return self.block(op.regions[0], frame) if self.runs_here(core_of(op)) else []
            case _:
                return self.block(op.regions[0], frame)


class ReferenceProgram:
    """A module as it stands: there is nothing to prepare."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def run(self, machine: Machine, function: Function, args: tuple[Any, ...]) -> None:
        """Run a function of the module on the core in force."""
        ReferenceInterpreter(self.module, machine).launch(function, args)


class ReferenceEngine:
    """Runs programs by their definition."""

    executor = ReferenceExecutor
    prepare = ReferenceProgram
