"""A recipe: what an instruction does to its operands, as far as types, sizes and addresses tell.

It knows no memory, so launches that repeat each other share recipes. A plan is a recipe over the
memories of one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType
from ptokit.base.layout import Axes, AxisMap, common_steps, divided, flat_map
from ptokit.base.location import Location, Site
from ptokit.isa.facts import Ops
from ptokit.isa.spec import Extent, Insn, Operand, Pipe, View
from ptokit.machine.faults import OutOfBounds
from ptokit.machine.gm import GmAccess
from ptokit.machine.objects import ConvObject, GlobalObject, TileObject

NUMBERS = (int, float, bool)


class Part(NamedTuple):
    """A region of a tile operand."""

    position: int  # of the operand
    declared: Operand
    dtype: DType
    axis_map: AxisMap
    rows: slice
    cols: slice
    lost: bool  # its contents do not survive
    is_handed: bool  # to the body; else the hardware leaves it unspecified
    shape: tuple[int, ...]  # of the array that is handed over
    strides: tuple[int, ...] | None = None  # where that is the memory itself, in boxes

    @property
    def is_view(self) -> bool:
        """Whether the memory itself is a matrix."""
        return self.strides is None and self.axis_map.is_matrix and not self.dtype.is_packed


class Recipe:
    """An instruction with known operand types, sizes and addresses."""

    def __init__(
        self,
        insn: Insn,
        ops: Ops,
        operands: Sequence[Any],
        attrs: tuple[Any, ...],
        site: Site | Location,
    ) -> None:
        self.insn = insn
        self.ops = ops
        self.body = insn.body_for(ops)
        self.pipe = insn.pipe(ops) if callable(insn.pipe) else (insn.pipe or Pipe.S)
        self.effects = insn.effects(ops) if insn.effects and not insn.moves_entries else None
        self.attrs = {
            a.name: v
            for a, v in zip(insn.attrs, attrs, strict=True)
            if a.name in insn.body_parameters
        }
        self.values: list[int] = []  # operands that are handed over as they are
        self.gm: list[tuple[int, GmAccess]] = []
        self.parts: list[Part] = []
        for index, (declared, value) in enumerate(zip(insn.operands, operands, strict=True)):
            if value is not None:
                self._operand(index, declared, value, site)
        copies = any(p.is_handed and not p.is_view for p in self.parts)
        if copies and insn.pointwise is not None and insn.pointwise(ops):
            self._hand_over_boxes()

    def _operand(self, index: int, declared: Operand, value: Any, site: Site | Location) -> None:
        view = declared.view(self.ops) if callable(declared.view) else declared.view
        if view is View.OBJECT or value.__class__ in NUMBERS:
            self.values.append(index)
            return
        if isinstance(value, GlobalObject):
            assert isinstance(view, View)
            self.gm.append((index, GmAccess(value, view, declared, self.insn)))
            return
        kind = value.spec.dtype
        axis_map, rows, cols = self._region(declared, view, value, site)
        lost = declared.role == "tmp" if declared.lost is None else declared.lost(self.ops)
        shape: tuple[int, ...] = (rows.stop - rows.start, cols.stop - cols.start)
        strides: tuple[int, ...] | None = None
        if isinstance(value, ConvObject):
            shape = value.shape
        elif view is View.STORAGE or isinstance(view, slice):
            shape = shape[1:]
        elif declared.boxes and not axis_map.is_matrix:
            axes = _axes(axis_map, kind, rows, cols)
            # Results keep their rows together.
            if axes and (not declared.writes or (len(axes[0]), len(axes[1])) == (1, 2)):
                shape, strides = zip(*axes[0], *axes[1], strict=True)
        self.parts.append(
            Part(index, declared, kind, axis_map, rows, cols, lost, True, shape, strides)
        )
        parts = declared.unspecified(self.ops) if declared.unspecified is not None else None
        for part in parts if isinstance(parts, list) else [parts] if parts else []:
            where = self._region(declared, part, value, site)
            self.parts.append(Part(index, declared, kind, *where, True, False, ()))

    def _region(
        self, declared: Operand, view: View | Extent, value: Any, site: Site | Location
    ) -> tuple[AxisMap, slice, slice]:
        """Where the elements of a view lie, and which of them it takes."""
        if isinstance(value, ConvObject):
            axis_map = value.spec.axis_map(value.shape)
            rows, cols = slice(0, 1), slice(0, axis_map.cols)
        elif view is View.STORAGE or isinstance(view, slice):
            axis_map = flat_map(value.spec.numel)
            rows, cols = slice(0, 1), view if isinstance(view, slice) else slice(0, axis_map.cols)
        else:
            axis_map = value.spec.axis_map(value.vr, value.vc)
            rows, cols = _extent(view, value, axis_map)
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
        return axis_map, rows, cols

    def _hand_over_boxes(self) -> None:
        """Hand operands over where they lie, in the boxes of their layouts, instead of copies.

        A matrix of boxes is an array of four dimensions; any other layout can be divided the same
        way. All operands must have one shape, or nothing changes.
        """
        handed = [part for part in self.parts if part.is_handed]
        axes = [_axes(part.axis_map, part.dtype, part.rows, part.cols) for part in handed]
        axes += [access.axes() for _, access in self.gm]
        shapes = {part.shape for part in handed} | {access.shape for _, access in self.gm}
        known = [pair for pair in axes if pair is not None]
        if len(shapes) != 1 or len(known) < len(axes):
            return
        rows = common_steps([pair[0] for pair in known])
        cols = common_steps([pair[1] for pair in known])
        if rows is None or cols is None:
            return
        shape = (*rows, *cols)
        strides = [(*divided(pair[0], rows), *divided(pair[1], cols)) for pair in known]
        boxed = {
            id(part): part._replace(shape=shape, strides=found)
            for part, found in zip(handed, strides, strict=False)
        }
        self.parts = [boxed.get(id(part), part) for part in self.parts]
        for (_, access), found in zip(self.gm, strides[len(handed) :], strict=True):
            access.hand_over(shape, found)


def _axes(axis_map: AxisMap, dtype: DType, rows: slice, cols: slice) -> tuple[Axes, Axes] | None:
    """The axes behind rows and columns; None where they cut boxes or elements share a byte."""
    if dtype.is_packed or rows.start or cols.start or not rows.stop or not cols.stop:
        return None
    return axis_map.axes(rows.stop, cols.stop)


def _extent(view: View | Extent, tile: TileObject, axis_map: AxisMap) -> tuple[slice, slice]:
    """The rows and columns a view stands for."""
    if view is View.WHOLE:
        return slice(0, axis_map.rows), slice(0, axis_map.cols)
    if isinstance(view, View):
        return slice(0, tile.vr), slice(0, tile.vc)
    assert isinstance(view, tuple)
    rows, cols = (part if isinstance(part, slice) else slice(0, part) for part in view)
    return rows, cols
