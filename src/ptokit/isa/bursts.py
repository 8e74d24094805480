"""Bursts: what a transfer between a tile and a view of global memory really moves.

A transfer is programmed as so many bursts of so many bytes, with a gap behind each on either side.
Their number comes from the view, their length from the valid region of the tile, and the two
generations of devices count the gaps differently. Where tile and view describe the same matrix,
as the rules ask for, all of this says no more than "the matrix"; where they do not, it says what
happens: one definition serves both. What is moved may reach behind the end of the tile.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import AxisMap
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import ROW_AND_COLUMN_AXES, Dims, global_axis_map
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.targets import PerTarget

# Whether bursts in global memory lie past each other with the gaps that the view has between its
# lines; elsewhere they begin where its lines begin, whatever is moved of each.
_COUNTS_GAPS = PerTarget(False, a2a3=True, kirinx90=True)
_CUTS_BLOCKS = PerTarget(False, a2a3=True)  # Mat tiles and the gaps beside them: whole blocks
_PAIRS_OF_A = (Layout.MX_A_ND, Layout.MX_A_DN)  # scales come in pairs along K
_PAIRS_OF_B = (Layout.MX_B_ND, Layout.MX_B_DN)
_LINES_OUTSIDE = (Layout.MX_A_ND, Layout.MX_B_DN)  # K runs along memory


class Moved(NamedTuple):
    """The elements of a view, and the part of a tile that they meet, as matrices of one size."""

    view: AxisMap
    tile: AxisMap | tuple[int, int]

    @property
    def size(self) -> tuple[int, int]:
        return self.view.rows, self.view.cols


def matrix_of(view: Any) -> AxisMap:
    """The matrix that a view describes, from the facts of the view."""
    return global_axis_map(view.shape, view.stride, view.layout)


def moved(o: Any, tile: str, view: str) -> Moved:
    """What a transfer between a Vec or Mat tile and a view moves."""
    here, there = o[tile], o[view]
    if not o.target.is_device:
        return _all_of(matrix_of(there))
    if there.layout in _PAIRS_OF_A:
        return _all_of(_pairs(there, here.vr, here.vc // 2).covering(here.vr, here.vc // 2 * 2))
    if there.layout in _PAIRS_OF_B:
        return _all_of(_pairs(there, here.vc, here.vr // 2).covering(here.vr // 2 * 2, here.vc))
    if there.layout == Layout.NZ:
        return _column_blocks(o, here, there, is_load=tile == "dst")
    if there.layout in (Layout.ND, Layout.DN):
        return _lines(o, here, there)
    return _all_of(matrix_of(there))


def _pairs(view: Any, lines: int, pairs: int) -> AxisMap:
    """A view of scales, in its steps; of an odd number along K the last one stays behind.

    Where its type leaves open that they come in pairs, only the strides count: the engine moves so
    many pairs of so many lines, whatever the sizes are.
    """
    shape, stride = view.shape, view.stride
    if (*shape[:2], shape[4]) != (1, 1, 2):
        outer = (lines, pairs) if view.layout in _LINES_OUTSIDE else (pairs, lines)
        shape, stride = (1, 1, *outer, 2), (*stride[:3], 2, 1)
    down, across = (_without_ones(shape, axes) for axes in ROW_AND_COLUMN_AXES[view.layout])
    axes = down + across
    return AxisMap(
        tuple(shape[a] for a in axes),
        tuple(stride[a] for a in axes),
        tuple(range(len(down))),
        tuple(range(len(down), len(axes))),
    )


def _without_ones(shape: Dims, axes: Dims) -> Dims:
    """The axes from the outermost that has more than one step on: it is the one that goes on."""
    while len(axes) > 1 and shape[axes[0]] == 1:
        axes = axes[1:]
    return axes


def _all_of(view: AxisMap) -> Moved:
    return Moved(view, (view.rows, view.cols))


def _lines(o: Any, tile: Any, view: Any) -> Moved:
    """The rows of an ND view, or the columns of a DN view: a burst each."""
    upright = view.layout == Layout.DN
    *outer, height, width = view.shape
    *steps, down, across = view.stride
    count, size, pitch = (width, height, across) if upright else (height, width, down)
    valid, room = (tile.vr, tile.rows) if upright else (tile.vc, tile.cols)
    length, step = size, room  # of a burst, and from one to the next in the tile
    if not _COUNTS_GAPS[o.target]:
        length = valid
        if upright and tile.layout == "NZ":  # the rearranging engine turns the view around
            count, length = tile.vc, size
    elif not (tile.is_boxed or _is_one_line(tile, upright)):  # the box engine knows no valid region
        gap, behind = pitch - size, room - (size if upright else valid)
        length = valid
        if tile.loc == TileType.Mat and _CUTS_BLOCKS[o.target]:
            length, gap = blocks(tile, valid), gap if valid == size else blocks(tile, gap)
            behind = room - valid
        pitch, step = length + gap, filled(tile, length) + blocks(tile, behind)
    if upright:
        there = AxisMap((*outer, length, count), (*steps, 1, pitch), (3,), (0, 1, 2, 4))
    else:
        there = AxisMap((*outer, count, length), (*steps, pitch, 1), (0, 1, 2, 3), (4,))
    if step == room or tile.layout != view.layout.name:
        return _all_of(there)
    # Lines at a distance that is not that of the tile; slices of the view begin at its own lines.
    shape, stride = (prod(outer), count, length), (room * count, step, 1)
    return Moved(there, AxisMap(shape, stride, *(((2,), (0, 1)) if upright else ((0, 1), (2,)))))


def _column_blocks(o: Any, tile: Any, view: Any, *, is_load: bool) -> Moved:
    """An NZ view: the rows of a column of boxes follow one another, a burst for each column."""
    slices, columns, *box, width = view.shape
    high = prod(box)
    pitch = view.stride[1]
    if tile.vr == high:
        return _all_of(matrix_of(view))
    if _COUNTS_GAPS[o.target] and not (is_load and tile.loc == TileType.Vec):
        pitch += (tile.vr - high) * width
    return _all_of(
        AxisMap(
            (slices, columns, tile.vr, width), (view.stride[0], pitch, width, 1), (2,), (0, 1, 3)
        )
    )


def _is_one_line(tile: Any, upright: bool) -> bool:
    """A Mat tile of one row (column), which is filled by the engine that fills boxes."""
    return tile.loc == TileType.Mat and (tile.cols if upright else tile.rows) == 1


def blocks(tile: Any, size: int) -> int:
    """So many elements, cut down to whole 32-byte blocks."""
    return size - size % in_block(tile)


def filled(tile: Any, size: int) -> int:
    """So many elements, filled up to whole 32-byte blocks."""
    return size + -size % in_block(tile)


def in_block(tile: Any) -> int:
    """Elements of a 32-byte block; two 4-bit elements share a byte."""
    return 8 * BLOCK_BYTES // (tile.dtype.bits if tile.dtype.is_packed else 8 * tile.itemsize)


# ---- accumulators --------------------------------------------------------------------------------


def drained(view: Any, rows: int, cols: int, c0: int) -> AxisMap:
    """Where so many rows and columns of an accumulator go: the view only gives the distances.

    One step leads from row to row and one from block of columns to block, through all dimensions.
    `c0` is the width of a block where the view does not say it.
    """
    shape, stride = view.shape, view.stride
    matrix = matrix_of(view)
    if view.layout == Layout.NCDHW:  # one plane of D at a time
        planes = tuple(stride[:2] + stride[3:])
        matrix = AxisMap(shape[:2] + shape[3:], planes, (0, 2, 3), (1,))
    is_odd = view.layout == Layout.NDC1HWC0 and stride[4] != c0
    if (matrix.rows, matrix.cols) == (rows, cols) and not is_odd:
        return matrix
    if view.layout in (Layout.ND, Layout.NHWC):
        return AxisMap((rows, cols), (stride[3], 1), (0,), (1,))
    if view.layout in (Layout.NCHW, Layout.NCDHW):
        return AxisMap(
            (rows, cols), (1, stride[2 if view.layout == Layout.NCHW else 1]), (0,), (1,)
        )
    width, pitch = {
        Layout.NZ: (shape[4], prod(shape[2:])),
        Layout.NC1HWC0: (shape[4], shape[0] * stride[1]),
        Layout.NDC1HWC0: (c0, shape[0] * stride[2]),
    }[view.layout]
    blocks = AxisMap((1, rows, width), (pitch, width, 1), (1,), (0, 2))
    return blocks.covering(rows, cols)
