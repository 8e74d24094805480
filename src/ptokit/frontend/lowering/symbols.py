"""Symbols for data: tiles, pointers, arrays and views that are known only when the kernel runs."""

from __future__ import annotations

from math import prod
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.location import Location
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.frontend.advice import NotANumber
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.heap import Symbol
from ptokit.frontend.lowering.numbers import Number, as_value
from ptokit.ir.attributes import Attribute, EnumAttr, enumeration_of
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.types import INDEX
from ptokit.isa import INSTRUCTIONS
from ptokit.machine.gm import backwards

UNNAMED = (
    "tile",
    "part",
    "slot",
    "chosen",
    "pipe",
    "v",
)  # what takes the name of the variable it is assigned to


@dataclass(frozen=True)
class Gone:
    """A name without a value that can be told: one assigned only inside a loop or branch, say."""

    name: str
    location: Location
    what: str
    why: str = ""


class BufferSymbol(NotANumber, Symbol):
    """A tile or convolution tile of the kernel. `value` is its handle in the IR; `alloc` the
    operation that made it, None for a tile of the caller."""

    __cells__ = ("value",)

    def __init__(
        self, emitter: Emitter, spec: TileSpec | ConvSpec, value: Value, alloc: Op | None = None
    ) -> None:
        self.emitter = emitter
        self.spec = spec
        self.value = value
        self.alloc = alloc
        self.is_chosen = False  # by a run-time index: which tile it is cannot be told

    @property
    def operand_kind(self) -> str:
        return "tile" if isinstance(self.spec, TileSpec) else "conv"

    def renamed(self, value: Value) -> BufferSymbol:
        """The tile under another handle: carried by a loop, or returned by a branch."""
        raise NotImplementedError


class TileSymbol(BufferSymbol):
    """A tile of the kernel.

    `_valid` is its valid region where that is certain: in the block that made the tile. A getter
    inside a loop or branch, where a later line may have changed it, asks at run time.
    """

    def __init__(
        self,
        emitter: Emitter,
        spec: TileSpec,
        value: Value,
        alloc: Op | None = None,
        valid: tuple[Any, Any] | None = None,
    ) -> None:
        super().__init__(emitter, spec, value, alloc)
        self.tile = spec
        self._block: Block | None = emitter.block if valid is not None else None
        self._valid = valid or (DYNAMIC, DYNAMIC)

    def renamed(self, value: Value) -> TileSymbol:
        """The tile under another handle. From here on nothing is certain: either may change it."""
        self._block = None
        return TileSymbol(self.emitter, self.tile, value, self.alloc)

    def _size(self, axis: int) -> Any:
        static = (self.tile.valid_row, self.tile.valid_col)[axis]
        if static != DYNAMIC:
            return static
        if self._block is self.emitter.block:
            return self._valid[axis]
        results = [("valid_row", INDEX), ("valid_col", INDEX)]
        op = self.emitter.emit("pto.get_validshape", [("source", self.value)], results)
        return Number(self.emitter, op.results[axis], nonnegative=True)

    def GetValidRow(self) -> Any:
        return self._size(0)

    def GetValidCol(self) -> Any:
        return self._size(1)

    def SetValidRow(self, rows: Any) -> None:
        self.SetValidShape(rows, self._size(1))

    def SetValidCol(self, cols: Any) -> None:
        self.SetValidShape(self._size(0), cols)

    def SetValidShape(self, rows: Any, cols: Any) -> None:
        """Writes a change of the valid region."""
        values = [as_value(self.emitter, size, INDEX) for size in (rows, cols)]
        labels = ("source", "valid_row", "valid_col")
        operands = list(zip(labels, (self.value, *values), strict=True))
        self.emitter.emit("pto.set_validshape", operands)
        self._valid = (rows, cols)
        if self._block is not self.emitter.block:
            self._block = None

    def GetValue(self, offset: Any) -> Any:
        return Instruction(INSTRUCTIONS["GETVAL"])(self, offset)

    def SetValue(self, offset: Any, value: Any) -> None:
        Instruction(INSTRUCTIONS["SETVAL"])(self, offset, value)

    def __repr__(self) -> str:
        return f"<tile {self.spec}>"


class PointerSymbol(Symbol):
    """A place inside an array. Shape and strides are those of the array."""

    operand_kind = "pointer"

    def __init__(
        self,
        emitter: Emitter,
        value: Value,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self.emitter = emitter
        self.value = value
        self.dtype = dtype
        self.shape = shape
        self.strides = strides  # in elements

    def __add__(self, elements: Any) -> PointerSymbol:
        offset = as_value(self.emitter, elements, INDEX)
        operands = [("ptr", self.value), ("offset", offset)]
        op = self.emitter.emit("pto.addptr", operands, [("result", self.value.type)])
        return PointerSymbol(self.emitter, op.result, self.dtype, self.shape, self.strides)

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"<pointer to {self.dtype.name}>"


class ArraySymbol(NotANumber, PointerSymbol):
    """An array parameter."""

    attributes = ("T", "dtype", "ndim", "shape", "size")

    @property
    def pointer(self) -> PointerSymbol:
        """Its first element."""
        return PointerSymbol(self.emitter, self.value, self.dtype, self.shape, self.strides)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def T(self) -> ArrayPart:
        return self.lower_item(slice(None)).T

    def __len__(self) -> int:
        return self.shape[0]

    def lower_item(self, index: Any) -> ArrayPart:
        """A part of it, for a view. What it holds is known only at run time."""
        parts = index if isinstance(index, tuple) else (index,)
        for step in (part.step for part in parts if isinstance(part, slice)):
            if isinstance(step, int) and step < 0:
                raise backwards("the array", [("step", step)], self.emitter.location)
        if len(parts) == self.ndim and not any(isinstance(part, slice) for part in parts):
            raise self.emitter.fail(
                "array",
                "the elements of an array are known only at run time: a kernel moves them",
                "load_scalar(x, i) reads one, GlobalTensor(x)[...] is a part to load",
            )
        known = zip(parts, self.shape, strict=False)
        return ArrayPart(self, tuple(_from_the_start(part, size) for part, size in known))


def _from_the_start(part: Any, size: int) -> Any:
    """A position or slice whose known numbers do not count from the end, as NumPy has them."""
    if isinstance(part, slice):
        return slice(_from_the_start(part.start, size), _from_the_start(part.stop, size), part.step)
    return part + size if isinstance(part, int) and part < 0 else part


class ArrayPart(NotANumber, PointerSymbol):
    """A slice of an array parameter; a view is made of it, and nothing else."""

    attributes = ("T", "dtype")

    def __init__(self, whole: ArraySymbol, index: Any, is_turned: bool = False) -> None:
        super().__init__(whole.emitter, whole.value, whole.dtype, whole.shape, whole.strides)
        self.whole = whole
        self.index = index
        self.is_turned = is_turned  # rows stand for columns

    @property
    def T(self) -> ArrayPart:
        if len(self.shape) != 2:
            raise self.emitter.fail("array", "what is transposed in a kernel has two dimensions")
        return ArrayPart(self.whole, self.index, not self.is_turned)

    def lower_item(self, index: Any) -> Any:
        raise self.emitter.fail(
            "array", "a part of an array is sliced once", "give all of it in one pair of brackets"
        )


class GlobalSymbol(NotANumber, Symbol):
    """A GlobalTensor: the part of memory it stands for, and the whole it is a part of."""

    operand_kind = "global"

    def __init__(
        self,
        spec: GlobalSpec,
        value: Value,
        whole: Value,
        start: tuple[Any, ...],
        shape: tuple[Any, ...],
        stride: tuple[Any, ...],
    ) -> None:
        self.spec = spec
        self.value = value
        self.whole = whole
        self.start = start
        self.shape = shape
        self.stride = stride
        self.lower_item: Any = None  # how a slice of it is written
        self.rank = 5  # of the array it was made from
        self.is_slot = False  # it has no memory of its own: a FIFO points it at a slot

    def become(self, other: GlobalSymbol) -> None:
        """Stand for another view from here on."""
        self.__dict__.update(other.__dict__)

    def GetShape(self, dim: int) -> Any:
        return self.shape[dim]

    def GetStride(self, dim: int) -> Any:
        return self.stride[dim]

    def __repr__(self) -> str:
        return f"<view {self.spec}>"


class GroupSymbol(Symbol):
    """The members of a collective, and the index of the root among them."""

    operand_kind = "parallel_group"

    def __init__(self, members: tuple[GlobalSymbol, ...], *size_and_root: int) -> None:
        *size, root = size_and_root or (-1,)
        self.members = members[: size[0]] if size else members
        self.root = root


def rank_of(spec: GlobalSpec, shape: tuple[Any, ...]) -> int:
    """Dimensions to write: a plain matrix needs two, the others are 1."""
    return 2 if shape[:3] == (1, 1, 1) and spec.layout in (Layout.ND, Layout.DN) else 5


def layout_attribute(spec: GlobalSpec, stride: tuple[Any, ...]) -> dict[str, Attribute]:
    """The layout of a view; row-major ones say so where the strides alone could mean columns."""
    if spec.layout == Layout.ND and isinstance(stride[3], int) and stride[3] != 1:
        return {}
    layouts = enumeration_of(Layout)
    return {"layout": EnumAttr(layouts.name, layouts.text_of(spec.layout))}
