"""Address maps: where each logical element of a matrix lives in memory.

Every arrangement of PTO - row-major, column-major, the four boxed tile layouts, the fractal, MX and
convolution views of global memory - is a strided N-dimensional array whose axes are divided between
the rows and the columns of a logical matrix. That one idea is `AxisMap`; a layout is four tuples of
numbers, and reading, writing and computing addresses are written once for all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, ForwardRef

import numpy as np

from ptokit.base.dataclass import dataclass

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
else:  # the name of the type does not load NumPy
    Array = ForwardRef("np.ndarray[Any, Any]")


def raw_bytes(array: Array) -> Array:
    """The bytes of an array's elements, in order; a copy where they do not lie together."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a dense array whose last axis varies fastest."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


@dataclass(frozen=True)
class AxisMap:
    """A logical (rows x cols) matrix laid over a strided array; strides count elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    row_axes: tuple[int, ...]
    col_axes: tuple[int, ...]

    @cached_property
    def rows(self) -> int:
        return prod(self.shape[a] for a in self.row_axes)

    @cached_property
    def cols(self) -> int:
        return prod(self.shape[a] for a in self.col_axes)

    @cached_property
    def span(self) -> int:
        """Number of elements from the base to just behind the last one."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))

    @cached_property
    def is_matrix(self) -> bool:
        """Whether the logical matrix is itself a strided 2-D array (so views need no copy)."""
        return self.matrix_strides is not None

    @cached_property
    def matrix_strides(self) -> tuple[int, int] | None:
        """Row and column stride in elements, when one number each is enough."""
        row = _merged_stride(self.shape, self.strides, self.row_axes)
        col = _merged_stride(self.shape, self.strides, self.col_axes)
        return None if row is None or col is None else (row, col)

    def offset(self, row: int, col: int) -> int:
        """Element offset of one logical element."""
        found = 0
        for place, axes in ((row, self.row_axes), (col, self.col_axes)):
            for axis in reversed(axes):
                place, at = divmod(place, self.shape[axis])
                found += at * self.strides[axis]
        return found

    @cached_property
    def offsets(self) -> Array:
        """Element offset of every logical element, as an int64 matrix."""
        grid = np.zeros((), np.int64)
        for extent, stride in zip(self.shape, self.strides, strict=True):
            grid = grid[..., None] + np.arange(extent, dtype=np.int64) * stride
        return grid.transpose(self.row_axes + self.col_axes).reshape(self.rows, self.cols)

    @cached_property
    def stretches(self) -> tuple[int, int, int] | None:
        """Length, pitch and count of equal stretches of elements that make the map up, if any do.

        A dense map is one stretch, rows inside a wider matrix are many.
        """
        live = [(s, n) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        merged: list[tuple[int, int]] = []  # stride and extent, innermost first
        for stride, extent in sorted(live):
            if merged and stride == merged[-1][0] * merged[-1][1]:
                merged[-1] = (merged[-1][0], merged[-1][1] * extent)
            else:
                merged.append((stride, extent))
        length = merged.pop(0)[1] if merged and merged[0][0] == 1 else 1
        if len(merged) > 1 or 0 in self.shape or (merged and merged[0][0] <= length):
            return None
        pitch, count = merged[0] if merged else (length, 1)
        return length, pitch, count

    def axes(self, rows: int, cols: int) -> tuple[Axes, Axes] | None:
        """The axes behind the first `rows` and `cols`, each list outermost first.

        None when a box would be cut.
        """
        found = _cut(self._merged(self.row_axes), rows), _cut(self._merged(self.col_axes), cols)
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    def covering(self, rows: int, cols: int) -> AxisMap:
        """The same steps through memory for just so many rows and columns, in whole boxes.

        There may be more of them than here: they lie where the steps lead.
        """
        return self if (rows, cols) == (self.rows, self.cols) else _covering(self, rows, cols)

    def _merged(self, axes: tuple[int, ...]) -> Axes:
        """Axes with their strides, those that continue one another taken together."""
        found: Axes = []
        for extent, stride in ((self.shape[a], self.strides[a]) for a in axes):
            if found and (extent == 1 or found[-1][0] == 1 or found[-1][1] == extent * stride):
                found[-1] = (found[-1][0] * extent, found[-1][1] if extent == 1 else stride)
            else:
                found.append((extent, stride))
        return found

    @property
    def row_steps(self) -> Axes:
        """The axes of the rows, outermost first, as few as possible."""
        return self._merged(self.row_axes)

    @property
    def col_steps(self) -> Axes:
        """The axes of the columns."""
        return self._merged(self.col_axes)

    def array(self, buffer: Array, offset: int, dtype: np.dtype[Any]) -> Array:
        """View `buffer` (bytes) from byte `offset` on as the strided N-dimensional array."""
        size = dtype.itemsize
        return np.ndarray(
            self.shape, dtype, buffer, offset, tuple(stride * size for stride in self.strides)
        )

    def matrix(self, buffer: Array, offset: int, dtype: np.dtype[Any]) -> Array:
        """Return the logical matrix: a view where the layout allows one, otherwise a copy."""
        strides = self.matrix_strides
        if strides is not None:
            size = dtype.itemsize
            return np.ndarray(
                (self.rows, self.cols),
                dtype,
                buffer,
                offset,
                (strides[0] * size, strides[1] * size),
            )
        whole = self.array(buffer, offset, dtype)
        return whole.transpose(self.row_axes + self.col_axes).reshape(self.rows, self.cols)


@lru_cache(maxsize=4096)
def _covering(of: AxisMap, rows: int, cols: int) -> AxisMap:
    shape = list(of.shape)
    for axes, count in ((of.row_axes, rows), (of.col_axes, cols)):
        inner = prod(of.shape[a] for a in axes[1:])
        shape[axes[0]] = -(-count // inner) if inner else 0
    return AxisMap(tuple(shape), of.strides, of.row_axes, of.col_axes)


Axes = list[tuple[int, int]]  # extent and stride in elements, outermost first


def _cut(axes: Axes, count: int) -> Axes | None:
    """The axes behind the first `count` elements, when they are whole steps of the outermost."""
    inner = prod(extent for extent, _ in axes[1:])
    if count % inner or count > inner * axes[0][0]:
        return None
    return [(count // inner, axes[0][1]), *axes[1:]]


def common_steps(lists: Sequence[Axes]) -> list[int] | None:
    """Extents, outermost first, into which the axes of every list can be divided."""
    marks: set[int] = set()
    for axes in lists:
        size = 1
        for extent, _ in reversed(axes):
            size *= extent
            marks.add(size)
    steps: list[int] = []
    before = 1
    for mark in sorted(marks):
        if mark % before:
            return None
        steps.append(mark // before)
        before = mark
    return steps[::-1]


def divided(axes: Axes, steps: Sequence[int]) -> list[int]:
    """The stride of every step, when axes are divided into these extents."""
    strides: list[int] = []
    rest = list(axes)
    extent, stride = rest.pop()
    for step in reversed(steps):
        if extent == 1 and rest:
            extent, stride = rest.pop()
        strides.append(stride)
        extent //= step
        stride *= step
    return strides[::-1]


def flat_map(size: int) -> AxisMap:
    """One row of `size` consecutive elements."""
    return AxisMap((1, size), (size, 1), (0,), (1,))


def _merged_stride(
    shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]
) -> int | None:
    """Fold axes (outermost first) into one stride, if each continues where the next one ends."""
    live = [(shape[a], strides[a]) for a in axes if shape[a] != 1]
    if not live:
        return strides[axes[-1]] if axes else 0
    for (_, outer), (extent, inner) in itertools.pairwise(live):
        if outer != extent * inner:
            return None
    return live[-1][1]
