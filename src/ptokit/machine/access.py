"""Accesses: what an operand of an instruction touches, in whatever memory it lies.

An `AccessPattern` is all that is known before the place is: the address map of the operand, the
rows and columns of it that are touched, whether they are read or written, and the array that the
body is handed. `at` lays it over a memory, which makes it an `Access`; on-chip memories, the
arrays of the user and the slots of FIFOs are all memories.

An access hides the layout. Where the layout allows, `array` is the memory itself and a body works
in place; otherwise `array` gathers a copy and `store` scatters one. The shadow bytes are reached
through the same address map, so poison needs no code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from ptokit.base.convert import pack4, unpack4
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array, Axes, AxisMap
from ptokit.machine.memory import Storage
from ptokit.machine.regions import Ranges, Rows, behind, evenly

_EVERYTHING = (slice(None), slice(None))


class AccessPattern:
    """The elements that an operand stands for, apart from where they lie."""

    __slots__ = (
        "_extents",
        "axis_map",
        "cols",
        "dtype",
        "high",
        "low",
        "operand",
        "reads",
        "rows",
        "shape",
        "size",
        "start",
        "steps",
        "writes",
    )

    def __init__(
        self,
        operand: str,
        dtype: DType,
        axis_map: AxisMap,
        rows: slice | None = None,
        cols: slice | None = None,
        *,
        reads: bool = False,
        writes: bool = False,
        array: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    ) -> None:
        """`array` is the shape of what a body is handed, and its strides in elements."""
        self.operand = operand
        self.dtype = dtype
        self.axis_map = axis_map
        self.rows = rows = rows or slice(0, axis_map.rows)
        self.cols = cols = cols or slice(0, axis_map.cols)
        self.reads = reads
        self.writes = writes
        self.size = (rows.stop - rows.start, cols.stop - cols.start)
        # The array that is handed over: without steps (its strides in bytes) it is gathered.
        strides = axis_map.matrix_strides
        self.start = 0  # bytes in front of its first element
        if strides is not None:
            first = rows.start * strides[0] + cols.start * strides[1]
            self.start = first * dtype.itemsize
        self.shape: tuple[int, ...] = self.size
        self.steps: tuple[int, ...] | None = None
        if array is not None:
            self.shape, strides = array
        if strides is not None and not dtype.is_packed:
            self.steps = tuple(stride * dtype.itemsize for stride in strides)
        # Bytes before the place (negative strides) and behind it that the whole map covers.
        bits = 4 if dtype.is_packed else 8 * dtype.itemsize
        reach = [(n - 1) * s for n, s in zip(axis_map.shape, axis_map.strides, strict=True)]
        empty = 0 in axis_map.shape
        self.low = 0 if empty else sum(r for r in reach if r < 0) * bits // 8
        self.high = 0 if empty else -(-(1 + sum(r for r in reach if r > 0)) * bits // 8)
        self._extents: Rows | Ranges | None = None

    def at(self, memory: Storage, offset: int) -> Access:
        """The access to a memory, from this byte on."""
        return Access(self, memory, offset)

    def fits(self, memory: Storage, offset: int) -> bool:
        """Whether all of it would lie inside the memory."""
        return offset + self.low >= 0 and offset + self.high <= memory.nbytes

    @property
    def axes(self) -> tuple[Axes, Axes] | None:
        """The axes behind rows and columns, where a body is handed the plain matrix of them.

        None where the region cuts boxes or elements share a byte.
        """
        if self.dtype.is_packed or 0 in self.size or self.shape != self.size:
            return None
        if self.rows.start or self.cols.start:
            return None
        return self.axis_map.axes(*self.size)

    def hand_over(self, shape: tuple[int, ...], strides: Sequence[int]) -> None:
        """Hand the memory itself to the body, as an array with these strides in elements."""
        size = self.dtype.itemsize
        self.shape, self.steps = shape, tuple(stride * size for stride in strides)

    @property
    def extents(self) -> Rows | Ranges:
        """The bytes past the place that are touched."""
        if self._extents is None:
            self._extents = self._find_extents()
        return self._extents

    @extents.setter
    def extents(self, place: Rows | Ranges) -> None:
        self._extents = place

    def _find_extents(self) -> Rows | Ranges:
        axis_map = self.axis_map
        if 0 in self.size:
            return ()
        if self.size == (axis_map.rows, axis_map.cols) and not self.dtype.is_packed:
            return extents(axis_map, self.dtype.itemsize)
        offsets = axis_map.offsets[self.rows, self.cols]
        if self.dtype.is_packed:
            return _merged(np.unique(offsets // 2), 1)
        return _merged(offsets, self.dtype.itemsize)


class Access:
    """An access pattern over a memory."""

    __slots__ = ("_boxes", "clean", "memory", "offset", "pattern")

    def __init__(self, pattern: AccessPattern, memory: Storage, offset: int) -> None:
        self.pattern = pattern
        self.memory = memory
        self.offset = offset
        self.clean = memory.never_checked  # the epoch at which every byte was last seen defined
        self._boxes: Array | None = None  # the memory itself, by the axes behind rows and columns

    @property
    def operand(self) -> str:
        return self.pattern.operand

    @property
    def reads(self) -> bool:
        return self.pattern.reads

    @property
    def writes(self) -> bool:
        return self.pattern.writes

    @property
    def dtype(self) -> DType:
        return self.pattern.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.size

    def chosen(self, where: Sequence[Array]) -> Chosen:
        """Only some elements of it, by their numbers along the axes of the array."""
        return Chosen(self, where)

    def moved(self, memory: Storage) -> Access:
        """The same access to another memory."""
        return Access(self.pattern, memory, self.offset)

    # ---- data ------------------------------------------------------------------------------

    def array(self) -> Array:
        """What a body is handed: the memory itself where the layout allows, otherwise a copy."""
        pattern = self.pattern
        if pattern.steps is None:
            return self.read().reshape(pattern.shape)
        return np.ndarray(
            pattern.shape,
            pattern.dtype.np,
            self.memory.data,
            self.offset + pattern.start,
            pattern.steps,
        )

    def store(self, values: Array) -> None:
        """Put a copy of `array` back."""
        self.write(values.reshape(self.pattern.size))

    def read(self) -> Array:
        """The elements as a matrix: the memory itself, or a copy."""
        pattern, axis_map = self.pattern, self.pattern.axis_map
        if pattern.dtype.is_packed:
            return self._unpack()
        if axis_map.is_matrix:
            return self._matrix(self.memory.data, pattern.dtype.np)
        boxes = self._boxes
        if boxes is None:
            whole = axis_map.array(self.memory.data, self.offset, pattern.dtype.np)
            boxes = self._boxes = whole.transpose(axis_map.row_axes + axis_map.col_axes)
        return boxes.reshape(axis_map.rows, axis_map.cols)[pattern.rows, pattern.cols]

    def write(self, values: Array) -> None:
        """Store all elements, given as a matrix."""
        if self.dtype.is_packed:
            self._pack(values)
        else:
            self._scatter(self.memory.data, self.dtype.np, values)

    # ---- poison ----------------------------------------------------------------------------

    def is_defined(self) -> bool:
        """Whether every byte holds a defined value."""
        memory = self.memory
        if self.clean == memory.epoch:
            return True
        if self.defined().all():
            self.clean = memory.epoch
            return True
        return False

    def defined(self) -> Array:
        """Which elements hold a defined value, as a boolean matrix."""
        memory = self.memory
        if self.clean == memory.epoch:
            return np.ones(self.shape, np.bool_)
        if self.dtype.is_packed:
            return memory.shadow[self._byte_indices()] != 0
        unsigned = self.dtype.uint
        full = unsigned.type(int.from_bytes(b"\x01" * unsigned.itemsize, "little"))
        return self._matrix(memory.shadow, unsigned) == full

    def first_poison(self, part: tuple[slice, slice] = _EVERYTHING) -> tuple[int, int]:
        """Logical row and column of the first element with an undefined byte.

        `part` narrows the search to some rows and columns of the access.
        """
        row, col = np.argwhere(~self.defined()[part])[0]
        row, col = row + (part[0].start or 0), col + (part[1].start or 0)
        return int(row) + self.pattern.rows.start, int(col) + self.pattern.cols.start

    def mark_defined(self) -> None:
        """Note that every byte was written."""
        memory = self.memory
        if self.clean != memory.epoch:
            self._set_shadow(1)
            self.clean = memory.epoch

    def poison(self, where: Array | None = None) -> None:
        """Make the contents, or the chosen elements, undefined."""
        if where is not None:
            self._forget(where)
        elif self._shadow_any():
            self._set_shadow(0)
            self.memory.epoch += 1

    def _forget(self, where: Array) -> None:
        offsets = self._offsets()[where]
        if self.dtype.is_packed:
            self.memory.shadow[self.offset + offsets // 2] = 0
        else:
            self._flat(self.memory.shadow, self.dtype.uint)[offsets] = 0
        self.memory.epoch += 1

    def _shadow_any(self) -> bool:
        if self.dtype.is_packed:
            return bool(self.memory.shadow[self._byte_indices()].any())
        return bool(self._matrix(self.memory.shadow, self.dtype.uint).any())

    def _set_shadow(self, value: int) -> None:
        if self.dtype.is_packed:
            self.memory.shadow[self._byte_indices()] = value
            return
        unsigned = self.dtype.uint
        filled = unsigned.type(int.from_bytes(bytes([value]) * unsigned.itemsize, "little"))
        self._scatter(self.memory.shadow, unsigned, np.broadcast_to(filled, self.shape))

    # ---- addresses -------------------------------------------------------------------------

    def _offsets(self) -> Array:
        pattern = self.pattern
        return pattern.axis_map.offsets[pattern.rows, pattern.cols]

    def _flat(self, buffer: Array, dtype: np.dtype[Any]) -> Array:
        return np.ndarray((self.pattern.axis_map.span,), dtype, buffer, self.offset)

    def _matrix(self, buffer: Array, dtype: np.dtype[Any]) -> Array:
        pattern = self.pattern
        return pattern.axis_map.matrix(buffer, self.offset, dtype)[pattern.rows, pattern.cols]

    def _scatter(self, buffer: Array, dtype: np.dtype[Any], values: Array) -> None:
        axis_map = self.pattern.axis_map
        if axis_map.is_matrix:
            self._matrix(buffer, dtype)[...] = values
        elif self.shape == (axis_map.rows, axis_map.cols):
            target = axis_map.array(buffer, self.offset, dtype)
            target = target.transpose(axis_map.row_axes + axis_map.col_axes)
            target[...] = values.reshape(target.shape)
        else:
            self._flat(buffer, dtype)[self._offsets()] = values

    def addresses(self) -> Array:
        """The first byte of every element, in its memory."""
        if self.dtype.is_packed:
            return self._byte_indices()
        return self.offset + self._offsets() * self.dtype.itemsize

    def _byte_indices(self) -> Array:
        return self.offset + self._offsets() // 2

    def _codes(self) -> tuple[Array, Array]:
        """The bytes of elements that share them, and the elements in memory order."""
        size = -(-self.pattern.axis_map.span // 2)
        piece = self.memory.data[self.offset : self.offset + size]
        return piece, unpack4(piece)

    def _unpack(self) -> Array:
        _, codes = self._codes()
        pattern = self.pattern
        return pattern.axis_map.matrix(codes, 0, codes.dtype)[pattern.rows, pattern.cols]

    def _pack(self, values: Array) -> None:
        piece, codes = self._codes()
        codes[self._offsets()] = values
        piece[...] = pack4(codes)

    # ---- bytes -----------------------------------------------------------------------------

    @property
    def signature(self) -> tuple[int, object]:
        """Equal for accesses to the same bytes of a memory."""
        return self.memory.base + self.offset, self.pattern.extents

    @property
    def place(self) -> Rows | Ranges:
        """The bytes touched, in the address space of the memory."""
        return behind(self.pattern.extents, self.memory.base + self.offset)

    def ranges(self) -> Ranges:
        """The bytes as ascending ranges [start, stop)."""
        place = self.place
        return place.ranges if isinstance(place, Rows) else place

    def __repr__(self) -> str:
        does = "/".join(word for word in ("reads", "writes") if getattr(self, word)) or "names"
        rows, cols = self.shape
        return f"<{does} {self.operand} {rows}x{cols} in {self.memory.name}>"


class Chosen(Access):
    """Some elements of an access, as values have led to them."""

    __slots__ = ("whole",)

    def __init__(self, whole: Access, where: Sequence[Array]) -> None:
        pattern = copy(whole.pattern)
        super().__init__(pattern, whole.memory, whole.offset)
        self.whole = whole
        size = pattern.dtype.itemsize
        if pattern.steps is None:
            places = whole._offsets().reshape(pattern.shape)[tuple(where)] * size
        else:
            places = sum(
                (n * step for n, step in zip(where, pattern.steps, strict=True)),
                np.array(pattern.start),
            )
        starts = np.unique(places)
        ranges = tuple(byte_ranges(starts, size)) if starts.size else ()
        pattern.extents = (evenly(ranges) or ranges) if ranges else ()


def extents(axis_map: AxisMap, size: int) -> Rows | Ranges:
    """The bytes that elements of so many bytes take, behind the first one."""
    if axis_map.stretches is None:
        return () if 0 in axis_map.shape else _merged(axis_map.offsets, size)
    length, pitch, count = axis_map.stretches
    return Rows(0, length * size, pitch * size, count)


def _merged(offsets: Array, size: int) -> Rows | Ranges:
    ranges = tuple(byte_ranges(np.sort(offsets, axis=None) * size, size))
    return evenly(ranges) or ranges


def byte_ranges(starts: Array, size: int) -> Iterator[tuple[int, int]]:
    """Merge elements of `size` bytes at these ascending addresses into ranges [start, stop)."""
    breaks = np.flatnonzero(np.diff(starts) > size)
    first = starts[np.concatenate(([0], breaks + 1))]
    last = starts[np.concatenate((breaks, [starts.size - 1]))] + size
    yield from zip(first.tolist(), last.tolist(), strict=True)
