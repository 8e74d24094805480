"""Access of one instruction to global memory: the user's arrays, checked against their bounds."""

from __future__ import annotations

from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array, AxisMap
from ptokit.base.location import Location, Site
from ptokit.base.tensors import global_axis_map
from ptokit.isa.spec import Insn, Operand, View
from ptokit.machine.faults import OutOfBounds
from ptokit.machine.memory import Storage
from ptokit.machine.objects import GlobalObject
from ptokit.machine.window import Window


class GmAccess:
    """How a plan reaches a GlobalTensor whose pointer is known only at run time."""

    __slots__ = ("_dtype", "_map", "_span", "_view")

    def __init__(self, tensor: GlobalObject, view: View) -> None:
        self._map = global_axis_map(tensor.shape, tensor.stride, tensor.spec.layout)
        self._dtype = tensor.spec.dtype
        self._view = view
        bits = 4 if self._dtype.is_packed else 8 * self._dtype.itemsize
        self._span = -(-self._map.span * bits // 8)

    def open(
        self, tensor: GlobalObject, declared: Operand, insn: Insn, site: Site | Location
    ) -> GmWindow:
        """Return the view, after checking that it lies inside its array."""
        at = tensor.pointer or tensor.data()
        buffer = at.buffer
        if at.offset < 0 or at.offset + self._span > buffer.nbytes:
            size = self._dtype.itemsize
            raise fail(
                "gm-bounds",
                f"{insn.name}: the view {declared.name} lies inside its array",
                got=[
                    ("first element", at.offset // size),
                    ("last element", (at.offset + self._span) // size - 1),
                    ("array elements", buffer.nbytes // size),
                    (declared.name, tensor.spec),
                ],
                fix="check shape, stride and pointer of the GlobalTensor against the array",
                site=site,
                kind=OutOfBounds,
            )
        if declared.writes and not buffer.writeable:
            raise fail(
                "gm-readonly",
                f"{insn.name}: {declared.name} is a read-only array",
                fix="pass a writeable array",
                site=site,
            )
        return GmWindow(buffer.data, buffer.base, at.offset, self._map, self._dtype, self._view)


class GmWindow:
    """A GlobalTensor opened for one instruction."""

    __slots__ = ("_base", "_in_place", "_window", "array")

    def __init__(
        self, data: Array, base: int, offset: int, axis_map: AxisMap, dtype: DType, view: View
    ) -> None:
        self._base = base
        rows, cols = slice(0, axis_map.rows), slice(0, axis_map.cols)
        self._window = Window(_UserBytes(data), offset, axis_map, dtype, rows, cols, "GM")
        if view is View.WHOLE and not dtype.is_packed:
            self.array: Array = axis_map.array(data, offset, dtype.np)
            self._in_place = True
        else:
            self.array = self._window.read()
            self._in_place = self._window.view is not None

    def write_back(self, values: Array) -> None:
        """Store a gathered copy; an in-place view needs nothing."""
        if not self._in_place:
            self._window.write(values)

    def ranges(self) -> list[tuple[int, int]]:
        """Byte ranges in the address space of the host, where arrays that overlap do overlap."""
        return [(self._base + a, self._base + b) for a, b in self._window.ranges()]


class _UserBytes(Storage):
    """Global memory as a storage: the user's bytes, which always count as defined."""

    __slots__ = ()

    def __init__(self, data: Array) -> None:
        self.name = "GM"
        self.data = data
        self.epoch = 0
        self.uid = -1
