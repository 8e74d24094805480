"""Products of matrices: parts of arrays go through L1 and L0 to the cube, and wait beside it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import DType, f32, i32
from ptokit.base.entry import public
from ptokit.base.enums import BLayout, Layout, SLayout, TileType
from ptokit.base.tiles import BLOCK_BYTES, TileSpec
from ptokit.frontend.api import TLOAD, TMATMUL, TMATMUL_ACC, TMATMUL_MX, TMOV
from ptokit.frontend.types import TileAcc, TileLeft, TileRight
from ptokit.values.memory import sizes_of, view_of
from ptokit.values.tiles import Size, beside_cube, made
from ptokit.values.value import Value

BOX = 16  # rows of a box, and columns of one that is turned round


@runtime_checkable
class Factor(Protocol):
    """A matrix for the cube: what stands beside it once it is asked for."""

    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[Size, Size]: ...
    @property
    def is_scaled(self) -> bool: ...

    def beside(self, place: TileType) -> tuple[Any, ...]:
        """Its tiles in L0A or L0B."""
        ...


@public
def stage(part: Any, side: str | None = None) -> Value:
    """A part of an array in L1, for several products: `a = stage(x[i : i + 64, :])`.

    With `side="left"` or `"right"` it goes on to where the cube takes its first or second matrix,
    and stays there.
    """
    if side not in (None, *_SIDES):
        raise fail("value-operand", "a product has a left and a right side", got=[("side", side)],
                   fix='stage(w, side="right")')  # fmt: skip
    view = view_of(part)
    sizes = known_sizes(sizes_of(view))
    # Columns that lie one after the other are boxed the other way round: a transpose for free.
    tile = made(boxed(view.spec.dtype, sizes, view.spec.layout == Layout.DN), sizes)
    TLOAD(tile, view)
    value = Value(tile)
    if side is None:
        return value
    (near,) = InL1(value).beside(_SIDES[side])
    return Value(near)


def known_sizes(sizes: tuple[Size, Size]) -> tuple[int, int]:
    """Rows and columns of a matrix for the cube."""
    if all(isinstance(n, int) for n in sizes):
        return sizes
    raise fail(
        "value-shape",
        "the sizes of a matrix for the cube are known when the kernel is lowered",
        got=[("sizes", sizes)],
        fix="cut the array into tiles of one size, and pad the last one",
    )


def boxed(element: DType, sizes: tuple[int, int], is_turned: bool = False) -> TileSpec:
    """A tile of L1 as the cube wants it: boxes of rows below each other, or turned round."""
    outer, inner = (BLayout.RowMajor, SLayout.ColMajor) if is_turned else (
        BLayout.ColMajor, SLayout.RowMajor)  # fmt: skip
    return TileSpec.of(TileType.Mat, element, *whole_boxes(element, sizes), outer, *sizes, inner)


def whole_boxes(element: DType, sizes: tuple[int, int]) -> tuple[int, int]:
    """Sizes up to the next whole box, whichever way it is turned."""
    line = max(BOX, BLOCK_BYTES // element.itemsize)
    rows, cols = (-(-n // line) * line for n in sizes)
    return rows, cols


@public
def dot(a: Any, b: Any, acc: Value | None = None) -> Value:
    """The product of two matrices, added to `acc` where one is given, which is then used up.

    `a` and `b` are parts of arrays, `dot(x[i : i + 64, :], w[:, j : j + 64])`, what `stage` or
    `pop` has brought to L1, parts of `im2col(...)`, or both `scaled(...)`. Transposed arrays,
    `k[j : j + 64, :].T`, cost nothing.
    """
    return multiplied(_staged(a), _staged(b), acc)


def multiplied(left: Factor, right: Factor, acc: Value | None = None) -> Value:
    """The product of matrices in L1, or where the cube takes them from."""
    (rows, inner), (other, cols) = left.shape, right.shape
    same = left.is_scaled or left.dtype is right.dtype
    if inner != other or left.is_scaled != right.is_scaled or not same:
        raise _mismatch(left, right)
    near = *left.beside(TileType.Left), *right.beside(TileType.Right)
    kind, sizes = _sum_of(left.dtype), (rows, cols)
    start, add = _PRODUCTS[left.is_scaled]
    if acc is not None:
        add(acc.tile, *near)
        return acc
    acc = Value(beside_cube(TileAcc[kind, *whole_boxes(kind, sizes), rows, cols]))
    start(acc.tile, *near)
    return acc


def _more_scaled(acc: Any, *near: Any) -> None:
    TMATMUL_MX(acc, acc, *near)


_PRODUCTS = {False: (TMATMUL, TMATMUL_ACC), True: (TMATMUL_MX, _more_scaled)}  # start, add
_SIDES = {"left": TileType.Left, "right": TileType.Right}
_NEAR = {TileType.Left: TileLeft, TileType.Right: TileRight}


def near_tile(place: TileType, element: DType, sizes: tuple[int, int]) -> Any:
    """A tile of L0A or L0B."""
    return beside_cube(_NEAR[place][element, *whole_boxes(element, sizes), *sizes])


class InL1:
    """A matrix of L1 as a factor."""

    is_scaled = False

    def __init__(self, value: Value) -> None:
        self.value, self.dtype, self.shape = value, value.dtype, known_sizes(value.shape)

    def beside(self, place: TileType) -> tuple[Any, ...]:
        if self.value.spec.loc == place:
            return (self.value.tile,)
        if self.value.spec.loc != TileType.Mat:
            raise fail(
                "value-memory",
                "a matrix that stays beside the cube stays on its side of the product",
                got=[("value", self.value.spec)],
                fix='stage(x, side="left") for the first matrix of dot, "right" for the second',
            )
        tile = near_tile(place, self.dtype, self.shape)
        TMOV(tile, self.value.tile)
        return (tile,)


def _staged(given: Any) -> Factor:
    if isinstance(given, Factor):
        return given
    value = given if isinstance(given, Value) else stage(given)
    if value.spec.loc not in (TileType.Mat, *_NEAR):
        raise fail(
            "value-memory",
            "the cube multiplies what lies in L1; load brings a part to the vector unit",
            got=[("value", value.spec)],
            fix="dot(x[i:j, :], ...) takes the part itself, stage(x[i:j, :]) keeps it in L1",
        )
    return InL1(value)


def _sum_of(kind: DType) -> DType:
    """The element type in which products are added up."""
    return i32 if kind.is_integer else f32


def _mismatch(left: Factor, right: Factor) -> PtoError:
    what = [f"{'scaled ' if f.is_scaled else ''}{f.dtype} {f.shape}" for f in (left, right)]
    return fail(
        "value-shape",
        "the columns of the first matrix are the rows of the second, of one element type; "
        "both are scaled or none",
        got=[("first", what[0]), ("second", what[1])],
        fix="k[j : j + 64, :].T is a part of an array with rows as columns",
    )
