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
    is_turned = view.spec.layout == Layout.DN
    outer, inner = (BLayout.RowMajor, SLayout.ColMajor) if is_turned else (
        BLayout.ColMajor, SLayout.RowMajor)  # fmt: skip
    spec = TileSpec.of(TileType.Mat, view.spec.dtype, *sizes, outer, *sizes, inner)
    tile = made(spec, sizes)
    TLOAD(tile, view)
    return Value(tile)


@public
def dot(a: Any, b: Any, acc: Value | None = None) -> Value:
    """The product of two matrices, added to `acc` where one is given, which is then used up.

    `a` and `b` are parts of arrays, `dot(x[i : i + 64, :], w[:, j : j + 64])`, or what `stage` has
    brought to L1. Transposed arrays, `k[j : j + 64, :].T`, cost nothing.
    """
    left, right = _staged(a), _staged(b)
    (rows, inner), (other, cols) = left.shape, right.shape
    if inner != other or left.dtype is not right.dtype:
        raise _mismatch(left, right)
    near_left = beside_cube(TileLeft[left.dtype, rows, inner])
    near_right = beside_cube(TileRight[left.dtype, inner, cols])
    TMOV(near_left, left.tile)
    TMOV(near_right, right.tile)
    if acc is None:
        acc = Value(beside_cube(TileAcc[_sum_of(left.dtype), rows, cols]))
        TMATMUL(acc.tile, near_left, near_right)
    else:
        TMATMUL_ACC(acc.tile, near_left, near_right)
    return acc


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
