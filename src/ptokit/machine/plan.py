"""A plan: an instruction with known operand types, sizes and addresses, verified and ready to run.

Making one costs a hundred microseconds, running one a few. Operands whose layout is a plain matrix
are handed to the body as views of the memory itself; others are gathered before and scattered
after. Global memory is opened per run, since its pointer moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import InternalError, NotSupported, PtoError, fail
from ptokit.base.layout import Array, AxisMap, common_steps, divided, flat_map
from ptokit.base.location import Location, Site
from ptokit.isa.facts import Ops
from ptokit.isa.spec import Extent, Insn, Operand, Pipe, View
from ptokit.machine.context import Context
from ptokit.machine.faults import OutOfBounds, PoisonRead, Unbound, read_by
from ptokit.machine.gm import GmAccess, GmWindow
from ptokit.machine.objects import ConvObject, GlobalObject, TileObject
from ptokit.machine.records import GmWindows, Record
from ptokit.machine.window import Window

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine

NUMBERS = (int, float, bool)
_NO_GM: GmWindows = ()


class Plan:
    """An instruction with known operand types, sizes and addresses, ready to run."""

    def __init__(
        self,
        machine: Machine,
        insn: Insn,
        operands: Sequence[Any],
        attrs: tuple[Any, ...],
        ops: Ops,
        site: Site | Location,
    ) -> None:
        self.insn = insn
        self.ops = ops
        self.machine = machine
        self.pipe = insn.pipe(ops) if callable(insn.pipe) else (insn.pipe or Pipe.S)
        self.windows: list[tuple[str, bool, Window]] = []  # (operand, written, where)
        self._reads: list[tuple[Window, Operand]] = []
        self._writes: list[Window] = []
        self._scratch: list[Window] = []
        # What the body of this run declares undefined: a window, or some of its elements.
        self.undefined: list[tuple[Window, Array | None]] = []
        self._fetch: list[tuple[int, Callable[[Any], Any]]] = []  # arguments made for each run
        self._store: list[tuple[int, Window]] = []  # copies to be scattered afterwards
        self._gm: list[tuple[int, GmAccess]] = []
        self.handed: dict[str, Window] = {}  # what the body is handed of each tile operand
        self._args: list[Any] = []
        for index, (declared, value) in enumerate(zip(insn.operands, operands, strict=True)):
            self._args.append(self._argument(index, declared, value, site))
        self._attrs = {
            a.name: v
            for a, v in zip(insn.attrs, attrs, strict=True)
            if a.name in insn.body_parameters
        }
        if insn.pointwise is not None and (self._fetch or self._store) and insn.pointwise(ops):
            self._hand_over_boxes()
        self._wants_ctx = insn.wants_ctx
        self._body = insn.body
        # Transfers move bits and have no flags to raise; one that adds on the way hides its own.
        self._quiet = self.pipe in (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3)

    def _argument(self, index: int, declared: Operand, value: Any, site: Site | Location) -> Any:
        """Return what the body is handed, or None when it is made anew for each run."""
        if value is None:
            return None
        view = declared.view(self.ops) if callable(declared.view) else declared.view
        if view is View.OBJECT or value.__class__ in NUMBERS:
            self._fetch.append((index, lambda operand: operand))
            return None
        if isinstance(value, GlobalObject):
            assert isinstance(view, View)
            self._gm.append((index, GmAccess(value, view, declared, self.insn)))
            return None
        window = self.handed[declared.name] = self._window(declared, view, value, site)
        if declared.reads:
            if not declared.carries:
                self._reads.append((window, declared))
            self.windows.append((declared.name, False, window))
        lost = declared.role == "tmp" if declared.lost is None else declared.lost(self.ops)
        if lost or declared.role in ("out", "inout"):
            self.windows.append((declared.name, True, window))
            (self._scratch if lost else self._writes).append(window)
        parts = declared.unspecified(self.ops) if declared.unspecified is not None else None
        for part in parts if isinstance(parts, list) else [parts] if parts else []:
            left_open = self._window(declared, part, value, site)
            self.windows.append((declared.name, True, left_open))
            self._scratch.append(left_open)
        if declared.boxes and (boxes := _boxes(window, whole_rows=declared.writes)) is not None:
            return boxes
        shape = value.shape if isinstance(value, ConvObject) else window.shape
        if view is View.STORAGE or isinstance(view, slice):
            shape = window.shape[1:]
        if window.view is not None:
            return window.view if shape == window.shape else window.view.reshape(shape)
        if declared.writes:
            self._store.append((index, window))
        if declared.reads:
            self._fetch.append((index, lambda _: window.read().reshape(shape)))
        else:
            kind = window.dtype.np
            self._fetch.append((index, lambda _: np.empty(shape, kind)))
        return None

    def _hand_over_boxes(self) -> None:
        """Hand operands over where they lie, in the boxes of their layouts, instead of copies.

        A matrix of boxes is an array of four dimensions; any other layout can be divided the same
        way. All operands must have one shape, or nothing changes.
        """
        position = {o.name: index for index, o in enumerate(self.insn.operands)}
        places: list[tuple[int, Window | GmAccess]] = [
            (position[name], window) for name, window in self.handed.items()
        ]
        places += self._gm
        axes = [place.axes() for _, place in places]
        if len({place.shape for _, place in places}) != 1 or None in axes:
            return
        rows = common_steps([pair[0] for pair in axes if pair])
        cols = common_steps([pair[1] for pair in axes if pair])
        if rows is None or cols is None:
            return
        shape = (*rows, *cols)
        for (index, place), pair in zip(places, axes, strict=True):
            assert pair is not None
            strides = divided(pair[0], rows) + divided(pair[1], cols)
            if isinstance(place, Window):
                self._args[index] = place.over(shape, strides)
            else:
                place.hand_over(shape, strides)
        moved = {index for index, _ in places}
        self._fetch = [entry for entry in self._fetch if entry[0] not in moved]
        self._store = [entry for entry in self._store if entry[0] not in moved]

    def _window(
        self, declared: Operand, view: View | Extent, value: Any, site: Site | Location
    ) -> Window:
        if value.storage is None:
            raise fail(
                "unbound-tile",
                f"{self.insn.name}: {declared.name} has no address",
                got=[(declared.name, value)],
                fix="bind it first: TASSIGN(tile, address), or use mode='auto'",
                site=site,
                kind=Unbound,
            )
        if isinstance(value, ConvObject):
            axis_map = value.spec.axis_map(value.shape)
            rows, cols = slice(0, 1), slice(0, axis_map.cols)
        elif view is View.STORAGE or isinstance(view, slice):
            axis_map = flat_map(value.spec.numel)
            part = view if isinstance(view, slice) else slice(0, axis_map.cols)
            rows, cols = slice(0, 1), part
        else:
            axis_map = value.spec.axis_map(value.vr, value.vc)
            rows, cols = _extent(view, value, axis_map)
        self._bounds(declared, value, axis_map, rows, cols, site)
        return Window(
            value.storage, value.address, axis_map, value.spec.dtype, rows, cols, declared.name
        )

    def _bounds(
        self, declared: Operand, value: Any, axis_map: AxisMap, rows: slice, cols: slice, site: Any
    ) -> None:
        bits = 4 if value.spec.dtype.is_packed else 8 * value.spec.itemsize
        stop = value.address + -(-axis_map.span * bits // 8)
        if rows.stop > axis_map.rows or cols.stop > axis_map.cols:
            raise fail(
                "tile-bounds",
                f"{self.insn.name}: the part of {declared.name} that is accessed lies in the tile",
                got=[
                    ("rows", f"{rows.start}..{rows.stop}"),
                    ("cols", f"{cols.start}..{cols.stop}"),
                    ("tile", value.spec),
                ],
                site=site,
                kind=OutOfBounds,
            )
        if value.address < 0 or stop > value.storage.nbytes:
            raise fail(
                "memory-bounds",
                f"{self.insn.name}: {declared.name} lies inside {value.storage.name}",
                got=[
                    ("address", hex(value.address)),
                    ("end", hex(stop)),
                    ("capacity", hex(value.storage.nbytes)),
                ],
                fix="bind the tile to a lower address, or make it smaller",
                site=site,
                kind=OutOfBounds,
            )

    # ---- execution ---------------------------------------------------------------------------

    def run(self, operands: Sequence[Any], site: Site | Location) -> Any:
        """Carry the instruction out on these operands."""
        for window, declared in self._reads:
            if window.clean != window.storage.epoch and not window.is_defined():
                raise self.poisoned(window, declared, site)
        machine = self.machine
        args, gm, context = self._args, _NO_GM, None
        if self._fetch or self._gm:
            args, gm = self._arguments(operands, site)
        more = self._attrs
        if self._wants_ctx:
            context = Context(machine, self, operands, site)
            more = {"ctx": context, **more}
        try:
            if self._quiet or machine.is_quiet:
                result = self._body(*args, **more)
            else:
                with np.errstate(all="ignore"):
                    result = self._body(*args, **more)
        except PtoError:
            raise
        except Exception as error:
            raise self._failed(error, site) from error
        for index, window in self._store:
            window.write(args[index])
        if gm:
            for (index, access), (_, _, opened) in zip(self._gm, gm, strict=True):
                if access.scatters:
                    opened.write_back(args[index])
        if context is not None and context.touched:
            gm = (*gm, *context.touched)
        for window in self._writes:
            if window.clean != window.storage.epoch:
                window.mark_defined()
        for window in self._scratch:
            window.poison()
        while self.undefined:
            window, where = self.undefined.pop()
            window.poison(where)
        record = Record(self, site, gm)
        machine.records.append(record)
        if machine.watch is not None:
            machine.watch(record)
        return result

    def _arguments(
        self, operands: Sequence[Any], site: Site | Location
    ) -> tuple[list[Any], GmWindows]:
        """What the body is handed in this run, and the global memory it reaches."""
        args = self._args.copy()
        for index, fetch in self._fetch:
            args[index] = fetch(operands[index])
        gm: list[tuple[str, bool, GmWindow]] = []
        for index, access in self._gm:
            window = access.open(operands[index], site)
            gm.append((access.name, access.writes, window))
            args[index] = window.array()
        return args, tuple(gm)

    def _failed(self, error: Exception, site: Site | Location) -> PtoError:
        """What a body raised, as an error of ours."""
        if isinstance(error, NotImplementedError):
            return fail(
                f"{self.insn.name}.not-supported",
                f"{self.insn.name}: {error}",
                site=site,
                target=self.ops.target.name,
                kind=NotSupported,
            )
        return fail(
            "internal",
            f"{self.insn.name} failed inside ptokit: {type(error).__name__}: {error}",
            fix="this is a bug of ptokit; please report it with the kernel",
            site=site,
            kind=InternalError,
        )

    def poisoned(
        self,
        window: Window,
        declared: Operand,
        site: Site | Location,
        part: tuple[slice, slice] = (slice(None), slice(None)),
    ) -> PtoError:
        """Build the error for a read of undefined elements."""
        row, col = window.first_poison(part)
        error = fail(
            "poison-read",
            f"{self.insn.name} reads {declared.name}[{row}, {col}], which nothing has written",
            got=[(declared.name, self.ops[declared.name]), ("memory", window.storage.name)],
            fix="load or compute the whole valid region first, or shrink the valid region",
            site=site,
            target=self.ops.target.name,
            kind=PoisonRead,
        )
        return read_by(error, self, declared.name, window)


def _extent(view: View | Extent, tile: TileObject, axis_map: AxisMap) -> tuple[slice, slice]:
    """The rows and columns a view stands for."""
    if view is View.WHOLE:
        return slice(0, axis_map.rows), slice(0, axis_map.cols)
    if isinstance(view, View):
        return slice(0, tile.vr), slice(0, tile.vc)
    assert isinstance(view, tuple)
    rows, cols = (part if isinstance(part, slice) else slice(0, part) for part in view)
    return rows, cols


def _boxes(window: Window, *, whole_rows: bool) -> Array | None:
    """The memory with the boxes of its layout as further dimensions, if it is made of boxes."""
    axes = window.axes()
    if axes is None or len(axes[1]) < 2 or (whole_rows and len(axes[0]) > 1):
        return None
    extents, strides = zip(*axes[0], *axes[1], strict=True)
    return window.over(extents, strides)
