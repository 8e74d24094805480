"""A block-scaled product whose scales are in place long before the data they belong to."""

from __future__ import annotations

from typing import Any

from ptokit import *

M, TK, BLOCK = 64, 64, 32
S = TK // BLOCK
FP8, E8M0 = float8_e4m3, float8_e8m0
COL, ROW = BLayout.ColMajor, BLayout.RowMajor
L1 = (
    Tile[TileType.Mat, FP8, M, TK, COL, M, TK, SLayout.RowMajor],
    Tile[TileType.Mat, E8M0, M, S, ROW, M, S, SLayout.RowMajor, 32],
    Tile[TileType.Mat, FP8, TK, M, COL, TK, M, SLayout.RowMajor],
    Tile[TileType.Mat, E8M0, S, M, COL, S, M, SLayout.ColMajor, 32],
)
L0 = (
    TileLeft[FP8, M, TK],
    TileLeftScale[E8M0, M, S],
    TileRight[FP8, TK, M],
    TileRightScale[E8M0, S, M],
)
Rows, Steps = Shape[1, 1, M, S // 2, 2], Stride[1, 1, 2 * S, 2, 1]
ViewA = GlobalTensor[E8M0, Rows, Steps, Layout.MX_A_ND]
ViewB = GlobalTensor[E8M0, Rows, Steps, Layout.MX_B_DN]


@kernel(mode="auto")
def early_scales(a: Any, a_scale: Any, b: Any, b_scale: Any, c: Any) -> None:
    """c = a b over two steps; the first step's data come after the product of the second."""
    l1 = [[kind() for kind in L1] for _ in range(2)]
    l0 = [[kind() for kind in L0] for _ in range(2)]
    acc = TileAcc[float32, M, M]()
    for n in static_range(2):
        TGET_SCALE_ADDR(l0[n][1], l0[n][0])
        TGET_SCALE_ADDR(l0[n][3], l0[n][2])
        TLOAD(l1[n][0], GlobalTensor(a)[:, n * TK : n * TK + TK])
        TLOAD(l1[n][1], ViewA(ptr(a_scale, n * S)))
        TLOAD(l1[n][2], GlobalTensor(b)[n * TK : n * TK + TK, :])
        TLOAD(l1[n][3], ViewB(ptr(b_scale, n * S)))
    TMOV(l0[0][1], l1[0][1])
    TMOV(l0[0][3], l1[0][3])
    for i in static_range(4):
        TMOV(l0[1][i], l1[1][i])
    TMATMUL_MX(acc, *l0[1])
    TMOV(l0[0][0], l1[0][0])
    TMOV(l0[0][2], l1[0][2])
    TMATMUL_MX(acc, acc, *l0[0])
    TSTORE(GlobalTensor(c), acc)
