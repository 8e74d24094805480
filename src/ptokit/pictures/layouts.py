"""Where the elements of a matrix lie: its address map as a picture.

The matrix is drawn as programs see it. Elements that lie together in memory - a box, or a line of
an unboxed matrix - have one colour, in memory order; the line goes from element to element in the
order of addresses, which is where the names N and Z come from. Below it is memory itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.layout import Array, AxisMap
from ptokit.base.tiles import BLOCK_BYTES, TileSpec
from ptokit.pictures.svg import COLOURS, EDGE, INK, PAPER, SOFT, WELL, Picture

WIDTH = 560  # of the matrix, where it has many columns
MOST = 128  # rows and columns that are drawn
PALE = 0.42


def tile_layout(spec: TileSpec, title: str = "", valid: tuple[int, int] | None = None) -> str:
    """A tile type: its boxes or lines in memory, and what of it is valid."""
    rows, cols = valid or (v if v >= 0 else whole for v, whole in _sizes(spec))
    unit = spec.box[0] * spec.box[1] if spec.is_boxed else _line(spec)
    return layout_svg(
        title or f"{spec.layout}: {spec}", spec.axis_map(rows, cols), spec.dtype, unit, (rows, cols)
    )


def _sizes(spec: TileSpec) -> tuple[tuple[int, int], tuple[int, int]]:
    return (spec.valid_row, spec.rows), (spec.valid_col, spec.cols)


def _line(spec: TileSpec) -> int:
    return spec.cols if spec.is_row_major else spec.rows


def layout_svg(
    title: str, of: AxisMap, dtype: DType, unit: int, valid: tuple[int, int] | None = None
) -> str:
    """Draw an address map; `unit` elements in a row of memory have one colour."""
    rows, cols = min(of.rows, MOST), min(of.cols, MOST)
    offsets = of.offsets[:rows, :cols]
    picture = Picture(title)
    cell = _Cells(offsets, 40, 44)
    groups = offsets // unit
    for top, left, tall, wide in _rectangles(groups):
        number = int(groups[top, left])
        picture.box(
            *cell.corner(top, left),
            wide * cell.wide,
            tall * cell.tall,
            COLOURS[number % len(COLOURS)],
            fill_opacity=PALE,
            tip=f"elements {number * unit} to {(number + 1) * unit - 1} of memory",
        )
    for path in _grid(rows, cols, cell):
        picture.line(path, PAPER, stroke_width=0.7)
    picture.line(_visits(offsets, cell), INK, stroke_opacity=0.35, stroke_width=0.9)
    _numbers(picture, offsets, unit, max(1, BLOCK_BYTES // dtype.itemsize), cell)
    if valid is not None and valid != (of.rows, of.cols):
        tall, wide = min(valid[0], rows) * cell.tall, min(valid[1], cols) * cell.wide
        picture.box(*cell.corner(0, 0), wide, tall, stroke=INK, stroke_dasharray="5 3")
        picture.text(cell.left + wide + 4, cell.top + tall - 3, "valid", size=10)
    for row in sorted({0, rows - 1}):
        picture.text(34, cell.middle(row, 0)[1] + 3.5, str(row), fill=SOFT, size=9, anchor="end")
    for col in sorted({0, cols - 1}):
        picture.text(cell.middle(0, col)[0], 40, str(col), fill=SOFT, size=9, anchor="middle")
    end = cell.top + rows * cell.tall
    if (rows, cols) != (of.rows, of.cols):
        picture.text(cell.left, end + 12, f"the first {rows} x {cols} elements", fill=SOFT, size=9)
    _memory(picture, of, dtype, unit, end + 34)
    return str(picture)


class _Cells:
    """Where the elements of the matrix are drawn."""

    def __init__(self, offsets: Array, left: float, top: float) -> None:
        self.left, self.top = left, top
        rows, cols = offsets.shape
        self.wide = min(26.0, max(WIDTH / cols, 3.0))
        self.tall = min(18.0, self.wide, max(420 / rows, 3.0))

    def corner(self, row: int, col: int) -> tuple[float, float]:
        return self.left + col * self.wide, self.top + row * self.tall

    def middle(self, row: int, col: int) -> tuple[float, float]:
        return self.left + (col + 0.5) * self.wide, self.top + (row + 0.5) * self.tall


def _rectangles(groups: Array) -> Iterator[tuple[int, int, int, int]]:
    """Row, column, height and width of rectangles of one number that make up the matrix."""
    open_: dict[tuple[int, int, int], int] = {}  # left, width and number -> first row
    for row in range(groups.shape[0] + 1):
        runs: set[tuple[int, int, int]] = set()
        if row < groups.shape[0]:
            line = groups[row]
            edges = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist(), len(line)]
            runs = {(a, b - a, int(line[a])) for a, b in pairwise(edges)}
        for run in [each for each in open_ if each not in runs]:
            first = open_.pop(run)
            yield first, run[0], row - first, run[1]
        for run in runs:
            open_.setdefault(run, row)


def _grid(rows: int, cols: int, cell: _Cells) -> Iterator[list[tuple[float, float]]]:
    if cell.tall >= 6:
        for row in range(1, rows):
            yield [cell.corner(row, 0), cell.corner(row, cols)]
    if cell.wide >= 6:
        for col in range(1, cols):
            yield [cell.corner(0, col), cell.corner(rows, col)]


def _visits(offsets: Array, cell: _Cells) -> list[tuple[float, float]]:
    """The elements in the order of their addresses; of a straight stretch, its ends."""
    order = np.argsort(offsets, axis=None, kind="stable")
    places = np.stack(np.unravel_index(order, offsets.shape), axis=1)
    steps = np.diff(places, axis=0)
    turns = 1 + np.flatnonzero((steps[1:] != steps[:-1]).any(axis=1))
    kept = [0, *turns.tolist(), len(places) - 1]
    return [cell.middle(int(row), int(col)) for row, col in places[kept]]


def _numbers(picture: Picture, offsets: Array, unit: int, block: int, cell: _Cells) -> None:
    """The offset in its cell: of the first element of a block, or of a colour, as there is room."""
    size = min(9.0, cell.tall - 3)
    every = block if size >= 6 and len(str(int(offsets.max()))) * size * 0.6 < cell.wide else unit
    if size < 6 and unit < offsets.size // 64:
        return
    for row, col in zip(*np.nonzero(offsets % every == 0), strict=True):
        x, y = cell.middle(int(row), int(col))
        size = max(size, 7)
        picture.text(x - cell.wide / 2 + 1, y + size * 0.36, str(int(offsets[row, col])), size=size)


def _memory(picture: Picture, of: AxisMap, dtype: DType, unit: int, top: float) -> None:
    """Memory from its first byte on, in the colours of the matrix; gaps stay empty."""
    left, wide, tall = 40.0, WIDTH, 16.0
    span = max(of.span, 1)
    picture.text(left, top - 5, "memory, in elements", fill=SOFT, size=9)
    picture.box(left, top, wide, tall, WELL, stroke=EDGE)
    filled = np.unique(of.offsets // unit)
    for number in filled[: 4 * MOST].tolist():
        start, stop = number * unit, min((number + 1) * unit, span)
        colour = COLOURS[number % len(COLOURS)]
        x, across = left + wide * start / span, wide * (stop - start) / span
        picture.box(x, top, max(across - 0.6, 0.6), tall, colour, fill_opacity=PALE)
        if across > 7 * len(str(start)):
            picture.text(x + 2, top + 11.5, str(start), size=9)
    nbytes = -(-span // 2) if dtype.is_packed else span * dtype.itemsize
    picture.text(left + wide, top + tall + 12, f"{nbytes:,} bytes", fill=SOFT, size=9, anchor="end")


__all__ = ["layout_svg", "tile_layout"]
