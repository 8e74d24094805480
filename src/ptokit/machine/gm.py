"""Access of one instruction to global memory: the user's arrays, checked against their bounds.

A plan knows shape and strides of a GlobalTensor but not its pointer, so what can be worked out
beforehand lives in `GmAccess`, and a run only checks the bounds and lays an array over the bytes.
Loads and stores are the most frequent instructions of all; nothing here may be built per run that
could have been built per plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from math import prod

import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.layout import Array, Axes, AxisMap, flat_map
from ptokit.base.location import Location, Site
from ptokit.base.tensors import all_axes, global_axis_map
from ptokit.isa.spec import Insn, Operand, View
from ptokit.machine.faults import OutOfBounds
from ptokit.machine.memory import Storage
from ptokit.machine.objects import GlobalObject, GmBuffer
from ptokit.machine.regions import Ranges, Rows, Use, evenly
from ptokit.machine.window import Window, byte_ranges

_MOST_OPEN = 1024  # windows an access remembers


class GmAccess:
    """How a plan reaches a GlobalTensor whose pointer is known only at run time."""

    def __init__(self, tensor: GlobalObject, view: View, declared: Operand, insn: Insn) -> None:
        self.name = declared.name
        # Loops come back to the same places.
        self._opened: dict[tuple[GmBuffer, int], GmWindow] = {}
        self.writes = declared.writes
        self.dtype = tensor.spec.dtype
        self.map = _axis_map(tensor, view)
        self._insn = insn
        bits = self.dtype.bits if self.dtype.is_packed else 8 * self.dtype.itemsize
        reach = [(n - 1) * s for n, s in zip(self.map.shape, self.map.strides, strict=True)]
        empty = 0 in self.map.shape
        # Bytes before the pointer (negative strides) and behind it that the view covers.
        self._low = 0 if empty else sum(r for r in reach if r < 0) * bits // 8
        self._high = 0 if empty else -(-(1 + sum(r for r in reach if r > 0)) * bits // 8)
        # The array that is handed to the body; without strides it is gathered, then scattered.
        size = self.dtype.itemsize
        strides: tuple[int, ...] | None = self.map.matrix_strides
        self.shape: tuple[int, ...] = (self.map.rows, self.map.cols)
        if view is View.WHOLE:
            self.shape, strides = self.map.shape, self.map.strides
        elif view is View.STORAGE:
            self.shape, strides = (self.map.cols,), (1,)
        self.in_place = strides is not None and not self.dtype.is_packed
        self.scatters = self.writes and not self.in_place
        self.strides = tuple(s * size for s in strides or ())

    def axes(self) -> tuple[Axes, Axes] | None:
        """The axes behind the rows and the columns of the matrix, if the body is handed one."""
        if self.dtype.is_packed or self.shape != (self.map.rows, self.map.cols) or 0 in self.shape:
            return None
        return self.map.axes(*self.shape)

    def hand_over(self, shape: tuple[int, ...], strides: Sequence[int]) -> None:
        """Hand the memory itself to the body, as an array with these strides in elements."""
        size = self.dtype.itemsize
        self.shape, self.strides = shape, tuple(stride * size for stride in strides)
        self.in_place, self.scatters = True, False

    def afresh(self) -> GmAccess:
        """The same access for another plan: it has opened nothing yet."""
        twin = copy(self)
        twin._opened = {}
        return twin

    def forget(self) -> None:
        """Let go of the arrays that were reached."""
        self._opened.clear()

    def open(self, tensor: GlobalObject, site: Site | Location) -> GmWindow:
        """Return the window, after checking that it lies inside its array."""
        at = tensor.pointer or tensor.data()
        buffer, offset = at.buffer, at.offset
        known = self._opened.get((buffer, offset))
        if known is not None:
            return known
        if offset + self._low < 0 or offset + self._high > buffer.data.nbytes:
            raise self._outside(tensor, buffer, offset, site)
        if self.writes and not buffer.writeable:
            raise fail(
                "gm-readonly",
                f"{self._insn.name}: {self.name} is a read-only array",
                fix="pass a writeable array",
                site=site,
            )
        if len(self._opened) >= _MOST_OPEN:
            self._opened.clear()
        window = self._opened[buffer, offset] = GmWindow(self, buffer, offset)
        return window

    def window(self, buffer: GmBuffer, offset: int) -> Window:
        """The view as a logical matrix over the user's bytes."""
        rows, cols = slice(0, self.map.rows), slice(0, self.map.cols)
        storage = _UserBytes(buffer.data)
        return Window(storage, offset, self.map, self.dtype, rows, cols, "GM")

    @cached_property
    def extents(self) -> Rows | Ranges:
        """The bytes behind the pointer that are touched."""
        size, stretches = self.dtype.itemsize, self.map.stretches
        if stretches is not None and not self.dtype.is_packed:
            length, pitch, count = stretches
            return Rows(0, length * size, pitch * size, count)
        offsets = np.sort(self.map.offsets, axis=None)
        if not offsets.size:
            return ()
        if self.dtype.is_packed:
            found = byte_ranges(np.unique(offsets // 2), 1)
        else:
            found = byte_ranges(offsets * size, size)
        ranges = tuple(found)
        return evenly(ranges) or ranges

    def _outside(
        self, tensor: GlobalObject, buffer: GmBuffer, offset: int, site: Site | Location
    ) -> PtoError:
        size = self.dtype.itemsize
        return fail(
            "gm-bounds",
            f"{self._insn.name}: the view {self.name} lies inside its array",
            got=[
                ("first element", (offset + self._low) // size),
                ("last element", (offset + self._high) // size - 1),
                ("array elements", buffer.nbytes // size),
                (self.name, tensor.spec),
            ],
            fix="check shape, stride and pointer of the GlobalTensor against the array",
            site=site,
            kind=OutOfBounds,
        )


class GmWindow:
    """A GlobalTensor opened for one instruction: which bytes of which array.

    Records keep windows, so a window must not keep the copies it makes.
    """

    __slots__ = ("_access", "_array", "_buffer", "_offset", "use")

    def __init__(self, access: GmAccess, buffer: GmBuffer, offset: int) -> None:
        self._access = access
        self._buffer = buffer
        self._offset = offset
        self._array: Array | None = None
        self.use: Use | None = None  # what the hazard log knows of it

    def array(self) -> Array:
        """The elements: the memory itself where the layout allows, otherwise a gathered copy."""
        if self._array is not None:
            return self._array
        access = self._access
        if access.in_place:
            self._array = np.ndarray(
                access.shape, access.dtype.np, self._buffer.data, self._offset, access.strides
            )
            return self._array
        return access.window(self._buffer, self._offset).read().reshape(access.shape)

    @property
    def signature(self) -> tuple[int, object]:
        """Equal for windows over the same bytes."""
        return self._buffer.base + self._offset, self._access.extents

    @property
    def in_place(self) -> bool:
        """Whether `array` is the memory itself."""
        return self._access.in_place

    def write_back(self, values: Array) -> None:
        """Store a gathered copy."""
        access = self._access
        matrix = values.reshape(access.map.rows, access.map.cols)
        access.window(self._buffer, self._offset).write(matrix)

    @property
    def place(self) -> Rows | Ranges:
        """The bytes in the address space of the host, where arrays that overlap do overlap."""
        base, extents = self._buffer.base + self._offset, self._access.extents
        if isinstance(extents, Rows):
            return extents.behind(base)
        return tuple((base + start, base + stop) for start, stop in extents)

    def ranges(self) -> Ranges:
        """The bytes as ascending ranges."""
        place = self.place
        return place.ranges if isinstance(place, Rows) else place


def _axis_map(tensor: GlobalObject, view: View) -> AxisMap:
    if view is View.STORAGE:  # dense behind the pointer, whatever the strides say
        return flat_map(prod(tensor.shape))
    if view is View.WHOLE:
        shape, stride = all_axes(tensor.shape, tensor.stride, tensor.spec.layout)
        return AxisMap(shape, stride, (), tuple(range(len(shape))))
    return global_axis_map(tensor.shape, tensor.stride, tensor.spec.layout)


class _UserBytes(Storage):
    """Global memory as a storage: the user's bytes, which always count as defined."""

    __slots__ = ()

    def __init__(self, data: Array) -> None:
        self.name = "GM"
        self.data = data
        self.epoch = 0
        self.uid = -1
