"""Run-time operands: tiles, convolution tiles and views of global memory.

A tile is a typed window over a memory: `bind` gives it an address, the valid sizes may change while
the kernel runs. Each object keeps a `key`, the tuple of everything the simulator's calls depend on.
"""

from __future__ import annotations

from contextlib import suppress
from operator import index
from typing import Any

import numpy as np

from ptokit.base.convs import ConvParameter, initial_parameters
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType, u8
from ptokit.base.entry import public
from ptokit.base.layout import Array, AxisMap
from ptokit.base.tensors import ConvSpec, GlobalSpec, strides_in_use
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.isa.facts import ConvFacts, GlobalFacts, TileFacts
from ptokit.machine.access import extents
from ptokit.machine.faults import OutOfBounds
from ptokit.machine.gm import GmBuffer, as_array, element_type
from ptokit.machine.memory import Lease, Storage
from ptokit.machine.slices import rank_of, window


class Bound:
    """What tiles and convolution tiles share: a place in a memory."""

    __slots__ = ("_lease", "address", "assigned", "in_ring", "key", "storage")

    def __init__(self) -> None:
        self.storage: Storage | None = None
        self.address = 0
        self.assigned = 0  # of a window: the address of the tile it is a part of
        self.in_ring = False  # placed by a FIFO, over one of its slots
        self._lease: Lease | None = None
        self.key: tuple[Any, ...] = ()

    def bind(self, storage: Storage, address: int, lease: Lease | None = None) -> None:
        """Place the object at a byte address of a memory."""
        self.storage = storage
        self.address = self.assigned = address
        self.in_ring = False
        self._lease = lease
        self.refresh()

    def share(self, other: Bound, offset: int = 0) -> None:
        """Place the object over the storage of another one, `offset` bytes past its start."""
        assert other.storage is not None
        self.bind(other.storage, other.address + offset, other._lease)
        self.assigned = other.assigned
        self.in_ring = other.in_ring

    def refresh(self) -> None:
        """Recompute the key after a change."""
        raise NotImplementedError

    @property
    def lease(self) -> int:
        """The storage that automatic placement gave the object; 0 when it lies in a memory."""
        return 0 if self._lease is None else self._lease.storage.uid + 1

    @property
    def place(self) -> str:
        """Where the object lives, for messages."""
        if self.storage is None:
            return "not bound to an address"
        if self._lease is not None:
            return f"placed automatically in {self.storage.name}"
        return f"at {self.storage.name} 0x{self.address:x}"

    def __repr__(self) -> str:
        return str(self)


class TileObject(Bound):
    """A tile at run time."""

    __slots__ = ("__weakref__", "spec", "vc", "vr")

    def __init__(self, spec: TileSpec, valid_row: int, valid_col: int) -> None:
        super().__init__()
        self.spec = spec
        self.vr = valid_row
        self.vc = valid_col
        self.refresh()

    def refresh(self) -> None:
        storage = self.storage
        uid = -1 if storage is None else storage.uid
        self.key = (self.spec, uid, self.address, self.vr, self.vc)

    def facts(self) -> TileFacts:
        address = None if self.storage is None else self.address
        return TileFacts(self.spec, (self.vr, self.vc), address, self.lease)

    # ---- the accessors of the pages ----------------------------------------------------------

    def GetValidRow(self) -> int:
        """Valid rows in force."""
        return self.vr

    def GetValidCol(self) -> int:
        """Valid columns in force."""
        return self.vc

    @public
    def SetValidRow(self, rows: int) -> None:
        """Change the valid rows of a tile that declares them DYNAMIC."""
        self.SetValidShape(rows, self.vc)

    @public
    def SetValidCol(self, cols: int) -> None:
        """Change the valid columns of a tile that declares them DYNAMIC."""
        self.SetValidShape(self.vr, cols)

    @public
    def SetValidShape(self, rows: int, cols: int) -> None:
        """Change the valid region; only DYNAMIC dimensions may change."""
        spec = self.spec
        for name, static, new, old, most in (
            ("ValidRow", spec.valid_row, rows, self.vr, spec.rows),
            ("ValidCol", spec.valid_col, cols, self.vc, spec.cols),
        ):
            if new != old and static != DYNAMIC:
                raise fail(
                    "static-valid",
                    f"{name} of this tile is fixed at {static} by its type",
                    got=[(name, new)],
                    fix=f"declare {name} as DYNAMIC to change it while the kernel runs",
                )
            if not 0 <= new <= most:
                raise fail(
                    "valid-capacity",
                    f"{name} lies between 0 and the capacity of the tile",
                    got=[(name, new), ("capacity", most)],
                    fix=f"at most {most}, or declare a larger tile",
                )
        self.vr, self.vc = rows, cols
        self.refresh()

    def __str__(self) -> str:
        return f"Tile[{self.spec}] {self.place}"


class ConvObject(Bound):
    """A convolution tile at run time."""

    __slots__ = ("__weakref__", "parameters", "shape", "spec")

    def __init__(self, spec: ConvSpec, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.spec = spec
        self.shape = shape
        # Feature-map size, filter, padding ... of the image-to-column instructions.
        self.parameters = initial_parameters()
        self.refresh()

    def refresh(self) -> None:
        storage = self.storage
        uid = -1 if storage is None else storage.uid
        parameters = tuple(self.parameters.values())
        self.key = (self.spec, uid, self.address, self.shape, parameters)

    def facts(self) -> ConvFacts:
        address = None if self.storage is None else self.address
        parameters = dict(self.parameters)
        return ConvFacts(self.spec, self.shape, address, self.lease, parameters=parameters)

    def configure(self, parameter: ConvParameter, value: Any) -> None:
        """Give an image-to-column parameter a value that its register field can hold."""
        for broken in parameter.violations(value):
            raise fail(broken.code, broken.rule, got=broken.got)
        self.parameters[parameter.name] = parameter.converted(value, self.spec.dtype)
        self.refresh()

    @public
    def GetShape(self, dim: int) -> int:
        """Size of a dimension; -1 for a dimension the tile does not have."""
        return self.shape[at] if 0 <= (at := index(dim)) < len(self.shape) else -1

    @public
    def SetDynamicShape(self, *sizes: int) -> None:
        """Give a value to each DYNAMIC dimension, in order."""
        for broken in self.spec.size_violations(sizes):
            raise fail(broken.code, broken.rule, got=broken.got)
        self.shape = self.spec.in_force(sizes)
        self.refresh()

    def __str__(self) -> str:
        return f"ConvTile[{self.spec}] {self.place}"


# ---- global memory -----------------------------------------------------------------------------


class Pointer:
    """A typed address in global memory; adding an integer moves it by elements."""

    __slots__ = ("buffer", "dtype", "key", "offset")

    def __init__(self, buffer: GmBuffer, dtype: DType, offset: int = 0) -> None:
        self.buffer = buffer
        self.dtype = dtype
        self.offset = offset  # bytes
        self.key = dtype

    @public
    def __add__(self, elements: int) -> Pointer:
        try:
            return self.moved(index(elements))
        except TypeError:
            raise fail(
                "pointer",
                "a pointer is moved by a whole number of elements",
                got=[("type", type(elements).__name__)],
            ) from None

    def moved(self, elements: int) -> Pointer:
        """The pointer so many elements further, for callers that count in whole numbers."""
        return Pointer(self.buffer, self.dtype, self.offset + elements * self.dtype.itemsize)

    __radd__ = __add__

    @public
    def __sub__(self, elements: int) -> Pointer:
        return self + (-elements if isinstance(elements, int | np.integer) else elements)

    def __repr__(self) -> str:
        name = self.buffer.title or "array"
        return f"<{self.dtype.name}* {name} + {self.offset // self.dtype.itemsize}>"


def pointer(value: Any, element: DType | None = None) -> Pointer:
    """Return a pointer to the first element of an array; `element` re-reads code types.

    Element types NumPy cannot name (hif8, fp4) are held as bytes: a uint8 array serves for them.
    """
    if isinstance(value, Pointer):
        return value
    array = as_array(value)
    found = element_type(array)
    if element is not None and found.np == np.uint8 and element.np == np.uint8:
        found = element
    low, _ = np.lib.array_utils.byte_bounds(array)
    start = array.__array_interface__["data"][0] - low
    return Pointer(GmBuffer(array), found, start)


class GlobalObject:
    """A five-dimensional view of global memory."""

    __slots__ = ("__weakref__", "key", "pointer", "rank", "shape", "spec", "stride")

    def __init__(
        self,
        spec: GlobalSpec,
        pointer: Pointer | None,
        shape: tuple[int, ...],
        stride: tuple[int, ...],
    ) -> None:
        self.spec = spec
        self.shape = shape
        self.stride = stride
        self.pointer: Pointer | None = None
        self.rank = 0  # of the array it was made from, where there is one
        self.key = (spec, shape, stride)
        if pointer is not None:
            self.point_to(pointer)

    def point_to(self, pointer: Pointer) -> None:
        """Rebind the view; the pointer's element type must be the tensor's.

        Element types NumPy cannot name are held in arrays of bytes.
        """
        if pointer.dtype is u8 and self.spec.dtype.stores_codes:
            pointer = Pointer(pointer.buffer, self.spec.dtype, pointer.offset)
        if pointer.dtype is not self.spec.dtype:
            raise fail(
                "SA-0054",
                "the pointer's element type equals GlobalTensor::DType",
                got=[("pointer", pointer.dtype.name), ("DType", self.spec.dtype.name)],
                fix="pass an array of that element type, or declare the GlobalTensor with it",
            )
        self.pointer = pointer

    def over(self, pointer: Pointer) -> GlobalObject:
        """The same view over another place; the pointer is of its element type."""
        found = GlobalObject.__new__(GlobalObject)
        found.spec, found.shape, found.stride = self.spec, self.shape, self.stride
        found.pointer, found.rank, found.key = pointer, self.rank, self.key
        return found

    def facts(self) -> GlobalFacts:
        return GlobalFacts(self.spec, self.shape, self.stride)

    @public
    def GetShape(self, dim: int) -> int:
        """Size of a dimension."""
        return self.shape[_dimension(dim)]

    @public
    def GetStride(self, dim: int) -> int:
        """Stride of a dimension, in elements."""
        return self.stride[_dimension(dim)]

    @public
    def data(self) -> Pointer:
        """The pointer behind the view."""
        if self.pointer is None:
            raise fail(
                "unbound-tensor",
                "this GlobalTensor has no memory yet",
                got=[("tensor", self.spec)],
                fix="construct it with an array, or bind it with TASSIGN(tensor, pointer)",
            )
        return self.pointer

    @public
    def __getitem__(self, part: Any) -> GlobalObject:
        """`g[r0:r1, c0:c1]`: a part of the view, sharing its memory (slices.py)."""
        rank = self.rank or rank_of(self.shape)
        start, shape = window(part, self.spec, self.shape, rank, None)
        at = self.data()
        skipped = sum(n * s for n, s in zip(start, self.stride, strict=True))
        stride = strides_in_use(shape, self.stride)
        static = GlobalSpec.of(self.spec.dtype, shape, stride, self.spec.layout)
        found = type(self)._sliced(static, at.moved(skipped), shape, stride)
        found.rank = rank
        return found

    @classmethod
    def _sliced(
        cls, spec: GlobalSpec, pointer: Pointer, shape: tuple[int, ...], stride: tuple[int, ...]
    ) -> GlobalObject:
        return GlobalObject(spec, pointer, shape, stride)

    @public
    def numpy(self) -> Array:
        """The memory behind the view, as a five-dimensional array that shares it."""
        at = self.data()
        size = self.spec.itemsize
        strides = tuple(s * size for s in self.stride)
        axes = AxisMap(self.shape, self.stride, (), (0, 1, 2, 3, 4))
        with suppress(ValueError):
            found = np.ndarray(self.shape, self.spec.dtype.np, at.buffer.data, at.offset, strides)
            if at.buffer.is_dense or at.buffer.holds(extents(axes, size), at.offset):
                return found
        raise fail(
            "gm-bounds",
            "the view lies inside its array",
            got=[("view", self), ("array elements", at.buffer.nbytes // size)],
            fix="check shape, stride and pointer of the GlobalTensor against the array",
            kind=OutOfBounds,
        )

    def __str__(self) -> str:
        where = "unbound" if self.pointer is None else repr(self.pointer)
        return f"GlobalTensor[{self.spec}] {where}"

    __repr__ = __str__


def _dimension(dim: int) -> int:
    if not 0 <= dim <= 4:
        raise fail("SA-0086", "a dimension lies in 0..4", got=[("dim", dim)])
    return dim
