"""Products of matrices: parts of arrays go through L1 and L0 to the cube, and wait beside it."""

from __future__ import annotations

from typing import Any

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import DType, f32, i32
from ptokit.base.entry import public
from ptokit.base.enums import BLayout, Layout, SLayout, TileType
from ptokit.base.tiles import TileSpec
from ptokit.frontend.api import TLOAD, TMATMUL, TMATMUL_ACC, TMOV
from ptokit.frontend.types import TileAcc, TileLeft, TileRight
from ptokit.values.memory import sizes_of, view_of
from ptokit.values.tiles import beside_cube, made
from ptokit.values.value import Value


@public
def stage(part: Any) -> Value:
    """A part of an array in L1, for several products: `a = stage(x[i : i + 64, :])`."""
    view = view_of(part)
    sizes = sizes_of(view)
    if not all(isinstance(n, int) for n in sizes):
        raise fail(
            "value-shape",
            "the sizes of a matrix for the cube are known when the kernel is lowered",
            got=[("sizes", sizes)],
            fix="cut the array into tiles of one size, and pad the last one",
        )
    # Columns that lie one behind the other are boxed the other way round: a transpose for free.
    tile = made(boxed(view.spec.dtype, sizes, view.spec.layout == Layout.DN), sizes)
    TLOAD(tile, view)
    return Value(tile)


def boxed(element: DType, sizes: tuple[int, int], is_turned: bool = False) -> TileSpec:
    """A tile of L1 as the cube wants it: boxes of rows below each other, or turned round."""
    outer, inner = (BLayout.RowMajor, SLayout.ColMajor) if is_turned else (
        BLayout.ColMajor, SLayout.RowMajor)  # fmt: skip
    return TileSpec.of(TileType.Mat, element, *sizes, outer, *sizes, inner)


@public
def dot(a: Any, b: Any, acc: Value | None = None) -> Value:
    """The product of two matrices, added to `acc` where one is given, which is then used up.

    `a` and `b` are parts of arrays, `dot(x[i : i + 64, :], w[:, j : j + 64])`, or what `stage` has
    brought to L1. Transposed arrays, `k[j : j + 64, :].T`, cost nothing.
    """
    return multiplied(_staged(a), _staged(b), acc)


def multiplied(left: Value, right: Value, acc: Value | None = None) -> Value:
    """The product of matrices in L1, or where the cube takes them from."""
    (rows, inner), (other, cols) = left.shape, right.shape
    if inner != other or left.dtype is not right.dtype:
        raise _mismatch(left, right)
    near_left = _near(left, TileType.Left, TileLeft[left.dtype, rows, inner])
    near_right = _near(right, TileType.Right, TileRight[left.dtype, inner, cols])
    if acc is None:
        acc = Value(beside_cube(TileAcc[_sum_of(left.dtype), rows, cols]))
        TMATMUL(acc.tile, near_left, near_right)
    else:
        TMATMUL_ACC(acc.tile, near_left, near_right)
    return acc


def _near(value: Value, place: TileType, kind: Any) -> Any:
    """The tile of a matrix in L0."""
    if value.spec.loc == place:
        return value.tile
    tile = beside_cube(kind)
    TMOV(tile, value.tile)
    return tile


def _staged(given: Any) -> Value:
    if not isinstance(given, Value):
        return stage(given)
    if given.spec.loc != TileType.Mat:
        raise fail(
            "value-memory",
            "the cube multiplies what lies in L1; load brings a part to the vector unit",
            got=[("value", given.spec)],
            fix="dot(x[i:j, :], ...) takes the part itself, stage(x[i:j, :]) keeps it in L1",
        )
    return given


def _sum_of(kind: DType) -> DType:
    """The element type in which products are added up."""
    return i32 if kind.is_integer else f32


def _mismatch(left: Value, right: Value) -> PtoError:
    return fail(
        "value-shape",
        "the columns of the first matrix are the rows of the second, of one element type",
        got=[("first", left.spec), ("second", right.spec)],
        fix="dot(x[i:j, k:l], w[k:l, m:n])",
    )
