"""Types of global tensors and convolution tiles: five-dimensional views and dense N-D arrays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from math import prod

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import AxisMap, dense_strides
from ptokit.base.tiles import BLOCK_BYTES, DYNAMIC, Interned, Violation, interned

Dims = tuple[int, ...]

# Which of the five dimensions run over the logical rows and which over the columns.
ROW_AND_COLUMN_AXES: dict[Layout, tuple[Dims, Dims]] = {
    Layout.ND: ((0, 1, 2, 3), (4,)),
    Layout.DN: ((3,), (0, 1, 2, 4)),
    Layout.NZ: ((2, 3), (0, 1, 4)),
    Layout.MX_A_ND: ((0, 1, 2), (3, 4)),
    Layout.MX_A_DN: ((0, 1, 3), (2, 4)),
    Layout.MX_A_ZZ: ((0, 1, 3), (2, 4)),
    Layout.MX_B_ND: ((2, 4), (0, 1, 3)),
    Layout.MX_B_DN: ((3, 4), (0, 1, 2)),
    Layout.MX_B_NN: ((2, 4), (0, 1, 3)),
    Layout.NC1HWC0: ((0, 2, 3), (1, 4)),  # N C1 H W C0
    Layout.NDC1HWC0: ((0, 3, 4), (1, 2, 5)),  # N D C1 H W, then C0
    Layout.NHWC: ((0, 1, 2, 3), (4,)),  # 1 N H W C
    Layout.NCHW: ((0, 1, 3, 4), (2,)),  # 1 N C H W
    Layout.NCDHW: ((0, 3, 4), (1, 2)),  # N C D H W
}


@dataclass(frozen=True, eq=False)
class GlobalSpec(Interned):
    """Element type, static shape and stride (DYNAMIC where run time decides) and layout."""

    dtype: DType
    shape: Dims
    stride: Dims
    layout: Layout = Layout.ND

    @staticmethod
    def of(dtype: DType, shape: Dims, stride: Dims, layout: Layout = Layout.ND) -> GlobalSpec:
        """Return the one spec with these parameters."""
        return interned(GlobalSpec, dtype, shape, stride, layout)

    @cached_property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def is_static(self) -> bool:
        return DYNAMIC not in self.shape

    def __str__(self) -> str:
        shape = "x".join("?" if n == DYNAMIC else str(n) for n in self.shape)
        return f"GM {self.dtype.name} {shape} {self.layout.name}"

    __repr__ = __str__


@lru_cache(maxsize=4096)
def global_axis_map(shape: Dims, stride: Dims, layout: Layout) -> AxisMap:
    """The address map of a view with these run-time sizes, as a logical matrix."""
    rows, cols = ROW_AND_COLUMN_AXES[layout]
    return AxisMap(*all_axes(shape, stride, layout), rows, cols)


def all_axes(shape: Dims, stride: Dims, layout: Layout) -> tuple[Dims, Dims]:
    """Shape and stride of every axis in memory: NDC1HWC0 has a sixth one, which it leaves unsaid.

    C0 channels lie together at each w, so the stride of W says how many there are.
    """
    if layout == Layout.NDC1HWC0:
        return (*shape, stride[4]), (*stride, 1)
    return shape, stride


@dataclass(frozen=True, eq=False)
class ConvSpec(Interned):
    """A convolution tile: a dense row-major array of one to six named dimensions."""

    loc: TileType
    dtype: DType
    buffer_size: int  # elements reserved
    layout: Layout
    shape: Dims  # DYNAMIC where run time decides

    @staticmethod
    def of(loc: TileType, dtype: DType, buffer_size: int, layout: Layout, shape: Dims) -> ConvSpec:
        """Return the one spec with these parameters."""
        return interned(ConvSpec, loc, dtype, buffer_size, layout, shape)

    @cached_property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @cached_property
    def nbytes(self) -> int:
        return self.buffer_size * self.itemsize

    def axis_map(self, shape: Dims) -> AxisMap:
        """All dimensions as one long row: convolution tiles are addressed by dimension."""
        return AxisMap(shape, dense_strides(shape), (), tuple(range(len(shape))))

    @property
    def dynamic(self) -> int:
        """How many dimensions run time decides."""
        return self.shape.count(DYNAMIC)

    def in_force(self, sizes: Dims) -> Dims:
        """The shape with these sizes for its DYNAMIC dimensions, in order."""
        given = iter(sizes)
        return tuple(next(given) if n == DYNAMIC else n for n in self.shape)

    def size_violations(self, sizes: Dims) -> Iterator[Violation]:
        """Yield every rule that run-time sizes for the DYNAMIC dimensions break."""
        if len(sizes) != self.dynamic:
            yield Violation(
                "conv-dynamic",
                "SetDynamicShape takes one value per DYNAMIC dimension",
                (("values", len(sizes)), ("DYNAMIC dimensions", self.dynamic)),
            )
        elif min(sizes, default=1) < 1 or prod(self.in_force(sizes)) > self.buffer_size:
            yield Violation(
                "conv-size",
                "sizes are positive, and the shape fits into BufferSize elements",
                (("shape", self.in_force(sizes)), ("BufferSize", self.buffer_size)),
            )

    def violations(self) -> Iterator[Violation]:
        """Yield every static rule of the tile type that does not hold."""
        if not 1 <= len(self.shape) <= 6:
            yield Violation(
                "conv-rank", "a ConvTileShape has one to six dimensions", (("shape", self.shape),)
            )
        elif any(n != DYNAMIC and n < 1 for n in self.shape):
            yield Violation(
                "conv-extent",
                "the dimensions of a convolution tile are positive, or DYNAMIC",
                (("shape", self.shape),),
            )
        elif DYNAMIC not in self.shape and prod(self.shape) > self.buffer_size:
            yield Violation(
                "conv-size",
                "the shape fits into BufferSize elements",
                (("shape", self.shape), ("BufferSize", self.buffer_size)),
            )

    def __str__(self) -> str:
        shape = "x".join("?" if n == DYNAMIC else str(n) for n in self.shape)
        return f"{self.loc.name} {self.dtype.name} {self.layout.name} {shape}"

    __repr__ = __str__


# ---- the 2-D helpers of the pages --------------------------------------------------------------


def matrix_shape(dtype: DType, rows: int, cols: int, layout: Layout) -> Dims:
    """Shape of a logical rows x cols matrix in the given arrangement (`TileShape2D`)."""
    c0 = BLOCK_BYTES // dtype.itemsize
    shapes: dict[Layout, Dims] = {
        Layout.ND: (1, 1, 1, rows, cols),
        Layout.DN: (1, 1, 1, rows, cols),
        Layout.NZ: (1, cols // c0, rows // 16, 16, c0),
        Layout.MX_A_ZZ: (1, rows // 16, cols // 2, 16, 2),
        Layout.MX_A_ND: (1, 1, rows, cols // 2, 2),
        Layout.MX_A_DN: (1, 1, cols // 2, rows, 2),
        Layout.MX_B_NN: (1, cols // 16, rows // 2, 16, 2),
        Layout.MX_B_ND: (1, 1, rows // 2, cols, 2),
        Layout.MX_B_DN: (1, 1, cols, rows // 2, 2),
        Layout.HIF4_A_ZZ: (1, rows // 16, cols, 16, 4),
        Layout.HIF4_B_NN: (1, cols // 16, rows, 16, 4),
    }
    if layout not in shapes:
        raise ValueError(f"Layout.{layout.name} is not the layout of a matrix")
    return shapes[layout]


# The boxes, rows by columns, in which scales of matrix operands lie.
_SCALE_BOXES = {Layout.MX_A_ZZ: (16, 2), Layout.MX_B_NN: (2, 16)}


def in_boxes(dtype: DType, shape: Dims, stride: Dims, layout: Layout) -> tuple[Dims, Dims]:
    """A view as it lies: of a matrix of scales, all boxes that it begins; others as they are."""
    if layout not in _SCALE_BOXES or len(shape) != 2:
        return shape, stride
    if DYNAMIC in shape:
        return (1, DYNAMIC, DYNAMIC, 16, 2), (DYNAMIC, DYNAMIC, 32, 2, 1)
    sizes = zip(shape, _SCALE_BOXES[layout], strict=True)
    rows, cols = (-(-size // unit) * unit for size, unit in sizes)
    return matrix_shape(dtype, rows, cols, layout), matrix_stride(dtype, rows, cols, layout)


def strides_in_use(shape: Dims, stride: Dims) -> Dims:
    """The strides of a view; one row of neighbours is dense, whatever it was cut out of."""
    size = shape[-1]
    if stride[-1] != 1 or size == DYNAMIC or any(n != 1 for n in shape[:-1]):
        return stride
    return (size,) * (len(stride) - 1) + (1,)


def matrix_stride(dtype: DType, rows: int, cols: int, layout: Layout) -> Dims:
    """Stride of a logical rows x cols matrix in the given arrangement (`BaseShape2D`)."""
    c0 = BLOCK_BYTES // dtype.itemsize
    whole = rows * cols
    strides: dict[Layout, Dims] = {
        Layout.ND: (whole, whole, whole, cols, 1),
        Layout.DN: (whole, whole, whole, 1, rows),
        Layout.NZ: (whole, rows * c0, 16 * c0, c0, 1),
        Layout.MX_A_ZZ: (whole, 16 * cols, 32, 2, 1),
        Layout.MX_A_ND: (whole, whole, cols, 2, 1),
        Layout.MX_A_DN: (whole, whole, 2 * rows, 2, 1),
        Layout.MX_B_NN: (whole, 16 * rows, 32, 2, 1),
        Layout.MX_B_ND: (whole, whole, 2 * cols, 2, 1),
        Layout.MX_B_DN: (whole, whole, rows, 2, 1),
        Layout.HIF4_A_ZZ: (whole, 16 * cols, 64, 4, 1),
        Layout.HIF4_B_NN: (whole, 16 * rows, 64, 4, 1),
    }
    return strides[layout]


def matrix_violations(dtype: DType, rows: int, cols: int, layout: Layout) -> Iterator[Violation]:
    """Yield the rules of the 2-D helpers that do not hold."""
    if layout == Layout.NZ:
        c0 = BLOCK_BYTES // dtype.itemsize
        if rows % 16 and rows != DYNAMIC:
            yield Violation("SA-0093", "rows of an NZ view are a multiple of 16", (("rows", rows),))
        if cols % c0 and cols != DYNAMIC:
            yield Violation(
                "SA-0007",
                "cols of an NZ view are a multiple of C0 = 32 / sizeof(T)",
                (("cols", cols), ("C0", c0)),
            )
