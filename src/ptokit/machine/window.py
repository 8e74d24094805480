"""Windows: the part of a memory an instruction reads or writes, seen as a logical matrix.

A window hides the layout. Where the layout allows, `view` is an array over the memory itself and
the instruction's body works in place; otherwise `read` gathers a copy and `write` scatters one.
The shadow bytes are reached through the same address map, so poison needs no code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ptokit.base.convert import pack4, unpack4
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array, AxisMap
from ptokit.machine.memory import Storage


class Window:
    """Rows and columns of an operand's address map, over one memory."""

    __slots__ = (
        "_boxes",
        "_cols",
        "_map",
        "_rows",
        "clean",
        "dtype",
        "label",
        "offset",
        "shape",
        "storage",
        "view",
    )

    def __init__(
        self,
        storage: Storage,
        offset: int,
        axis_map: AxisMap,
        dtype: DType,
        rows: slice,
        cols: slice,
        label: str,
    ) -> None:
        self.storage = storage
        self.offset = offset
        self.dtype = dtype
        self.label = label
        self.shape = (rows.stop - rows.start, cols.stop - cols.start)
        self.clean = -1  # the epoch at which every byte was last seen defined
        self._map = axis_map
        self._rows, self._cols = rows, cols
        self._boxes: Array | None = None  # the memory itself, by the axes behind rows and columns
        self.view: Array | None = None
        if axis_map.is_matrix and not dtype.is_packed:
            self.view = self._matrix(storage.data, dtype.np)

    def over(self, shape: tuple[int, ...], strides: Sequence[int]) -> Array:
        """The memory from the first element on, as an array with these strides in elements."""
        size = self.dtype.itemsize
        steps = tuple(stride * size for stride in strides)
        return np.ndarray(shape, self.dtype.np, self.storage.data, self.offset, steps)

    def moved_to(self, storage: Storage) -> Window:
        """The same region at the same address of another memory."""
        parts = (self._rows, self._cols)
        return Window(storage, self.offset, self._map, self.dtype, *parts, self.label)

    # ---- data ------------------------------------------------------------------------------

    def read(self) -> Array:
        """The elements, as a view of the memory or as a copy."""
        if self.view is not None:
            return self.view
        if self.dtype.is_packed:
            return self._unpack(self.storage.data)
        boxes = self._boxes
        if boxes is None:
            axes = self._map.row_axes + self._map.col_axes
            whole = self._map.array(self.storage.data, self.offset, self.dtype.np)
            boxes = self._boxes = whole.transpose(axes)
        return boxes.reshape(self._map.rows, self._map.cols)[self._rows, self._cols]

    def write(self, values: Array) -> None:
        """Store all elements."""
        if self.view is not None:
            self.view[...] = values
        elif self.dtype.is_packed:
            self._pack(self.storage.data, values)
        else:
            self._scatter(self.storage.data, self.dtype.np, values)

    # ---- poison ----------------------------------------------------------------------------

    def is_defined(self) -> bool:
        """Whether every byte of the window holds a defined value."""
        storage = self.storage
        if self.clean == storage.epoch:
            return True
        if self._shadow().all():
            self.clean = storage.epoch
            return True
        return False

    def defined(self) -> Array:
        """Which elements hold a defined value, as a boolean matrix."""
        return self._shadow()

    def first_poison(
        self, part: tuple[slice, slice] = (slice(None), slice(None))
    ) -> tuple[int, int]:
        """Logical row and column of the first element with an undefined byte.

        `part` narrows the search to some rows and columns of the window.
        """
        row, col = np.argwhere(~self._shadow()[part])[0]
        row, col = row + (part[0].start or 0), col + (part[1].start or 0)
        return int(row) + self._rows.start, int(col) + self._cols.start

    def mark_defined(self) -> None:
        """Note that every byte was written."""
        storage = self.storage
        if self.clean != storage.epoch:
            self._set_shadow(1)
            self.clean = storage.epoch

    def poison(self, where: Array | None = None) -> None:
        """Make the contents, or the chosen elements, undefined."""
        if where is not None:
            self._forget(where)
        elif self._shadow_any():
            self._set_shadow(0)
            self.storage.epoch += 1

    def _forget(self, where: Array) -> None:
        offsets = self._offsets()[where]
        if self.dtype.is_packed:
            self.storage.shadow[self.offset + offsets // 2] = 0
        else:
            shadow: Array = np.ndarray(
                (self._map.span,), self.dtype.uint, self.storage.shadow, self.offset
            )
            shadow[offsets] = 0
        self.storage.epoch += 1

    def _shadow(self) -> Array:
        """Boolean matrix: is the element wholly defined?"""
        if self.dtype.is_packed:
            return self.storage.shadow[self._byte_indices()] != 0
        unsigned = self.dtype.uint
        full = unsigned.type(int.from_bytes(b"\x01" * unsigned.itemsize, "little"))
        return self._matrix(self.storage.shadow, unsigned) == full

    def _shadow_any(self) -> bool:
        if self.dtype.is_packed:
            return bool(self.storage.shadow[self._byte_indices()].any())
        return bool(self._matrix(self.storage.shadow, self.dtype.uint).any())

    def _set_shadow(self, value: int) -> None:
        if self.dtype.is_packed:
            self.storage.shadow[self._byte_indices()] = value
            return
        unsigned = self.dtype.uint
        filled = unsigned.type(int.from_bytes(bytes([value]) * unsigned.itemsize, "little"))
        if self._map.is_matrix:
            self._matrix(self.storage.shadow, unsigned)[...] = filled
        else:
            self._scatter(self.storage.shadow, unsigned, np.broadcast_to(filled, self.shape))

    # ---- addresses -------------------------------------------------------------------------

    def _offsets(self) -> Array:
        return self._map.offsets[self._rows, self._cols]

    def _matrix(self, buffer: Array, dtype: np.dtype[Any]) -> Array:
        return self._map.matrix(buffer, self.offset, dtype)[self._rows, self._cols]

    def _scatter(self, buffer: Array, dtype: np.dtype[Any], values: Array) -> None:
        whole = (self._map.rows, self._map.cols)
        if self.shape == whole:
            target = self._map.array(buffer, self.offset, dtype)
            target = target.transpose(self._map.row_axes + self._map.col_axes)
            target[...] = values.reshape(target.shape)
        else:
            flat: Array = np.ndarray((self._map.span,), dtype, buffer, self.offset)
            flat[self._offsets()] = values

    def _byte_indices(self) -> Array:
        return self.offset + self._offsets() // 2

    def _unpack(self, buffer: Array) -> Array:
        size = -(-self._map.span // 2)
        codes = unpack4(buffer[self.offset : self.offset + size])
        return self._map.matrix(codes, 0, codes.dtype)[self._rows, self._cols]

    def _pack(self, buffer: Array, values: Array) -> None:
        size = -(-self._map.span // 2)
        piece = buffer[self.offset : self.offset + size]
        codes = unpack4(piece)
        codes[self._offsets()] = values
        piece[...] = pack4(codes)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Byte ranges [start, stop) touched, merged and ascending."""
        if 0 in self.shape:
            return
        whole = (self._map.rows, self._map.cols)
        if self.shape == whole and self._map.span == whole[0] * whole[1]:
            bits = 4 if self.dtype.is_packed else 8 * self.dtype.itemsize
            yield self.offset, self.offset - (-self._map.span * bits // 8)  # no gap anywhere
            return
        if self.dtype.is_packed:
            yield from byte_ranges(np.unique(self._byte_indices()), 1)
        else:
            size = self.dtype.itemsize
            yield from byte_ranges(np.sort(self._offsets(), axis=None) * size + self.offset, size)

    def __repr__(self) -> str:
        return f"<{self.label} {self.shape[0]}x{self.shape[1]} in {self.storage.name}>"


def byte_ranges(starts: Array, size: int) -> Iterator[tuple[int, int]]:
    """Merge elements of `size` bytes at these ascending addresses into ranges [start, stop)."""
    breaks = np.flatnonzero(np.diff(starts) > size)
    first = starts[np.concatenate(([0], breaks + 1))]
    last = starts[np.concatenate((breaks, [starts.size - 1]))] + size
    yield from zip(first.tolist(), last.tolist(), strict=True)
