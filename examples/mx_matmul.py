"""Block-scaled (MX) matrix product on A5: fp8 elements with a power-of-two scale per 32 of K.

A is stored with its scales [M, K/32], B with one row of scales per column [N, K/32]. Each product
the cube adds up is a * 2^ea * b * 2^eb. The cube finds the scales of a tile at a sixteenth of the
tile's address: TGET_SCALE_ADDR says which belong together where ptokit chooses the addresses, and
in manual mode the author binds them there.

Teaches: TMATMUL_MX with its scale tiles, MX views of global memory, accumulation over K, views at
a pointer with an offset, helpers shared by an auto and a manual kernel.
"""

import ml_dtypes
import numpy as np
from harness import Case, main

from ptokit import *

M, N, K, TK, BLOCK = 64, 64, 256, 64, 32
FP8, E8M0 = float8_e4m3, float8_e8m0
COL, ROW = BLayout.ColMajor, BLayout.RowMajor

DataA = Tile[TileType.Mat, FP8, M, TK, COL, M, TK, SLayout.RowMajor]
DataB = Tile[TileType.Mat, FP8, TK, N, COL, TK, N, SLayout.RowMajor]
S = TK // BLOCK  # scales per row of a tile
ScalesA = Tile[TileType.Mat, E8M0, M, S, ROW, M, S, SLayout.RowMajor, 32]
ScalesB = Tile[TileType.Mat, E8M0, S, N, COL, S, N, SLayout.ColMajor, 32]
# Scales travel in pairs: the last dimension of a view is 2. Both matrices have M = N rows of them.
Rows, Steps = Shape[1, 1, M, S // 2, 2], Stride[1, 1, K // BLOCK, 2, 1]
ViewA, ViewB = (GlobalTensor[E8M0, Rows, Steps, x] for x in (Layout.MX_A_ND, Layout.MX_B_DN))


def load(tiles, a, a_scale, b, b_scale, k):
    """Columns k.. of A and rows k.. of B, with their scales, into L1."""
    TLOAD(tiles[0], GlobalTensor(a)[:, k : k + TK])
    TLOAD(tiles[1], ViewA(ptr(a_scale, k // BLOCK)))
    TLOAD(tiles[2], GlobalTensor(b)[k : k + TK, :])
    TLOAD(tiles[3], ViewB(ptr(b_scale, k // BLOCK)))


def multiply(acc, l0, is_first):
    """Start a sum, or add to it: `l0` is the left tile, its scales, the right tile, its scales."""
    if is_first:
        TMATMUL_MX(acc, *l0)
    else:
        TMATMUL_MX(acc, acc, *l0)


@kernel(mode="auto")
def mx_matmul(a, a_scale, b, b_scale, c):
    l1 = [DataA(), ScalesA(), DataB(), ScalesB()]
    left, left_scale = TileLeft[FP8, M, TK](), TileLeftScale[E8M0, M, S]()
    right, right_scale = TileRight[FP8, TK, N](), TileRightScale[E8M0, S, N]()
    l0, acc = [left, left_scale, right, right_scale], TileAcc[float32, M, N]()
    TGET_SCALE_ADDR(left_scale, left)
    TGET_SCALE_ADDR(right_scale, right)
    for k in static_range(0, K, TK):
        load(l1, a, a_scale, b, b_scale, k)
        for i in static_range(4):
            TMOV(l0[i], l1[i])
        multiply(acc, l0, k == 0)
    TSTORE(GlobalTensor(c), acc)


@kernel(mode="manual")
def mx_matmul_manual(a, a_scale, b, b_scale, c):
    """The same with every address and flag by hand."""
    l1 = [DataA(), ScalesA(), DataB(), ScalesB()]
    left, left_scale = TileLeft[FP8, M, TK](), TileLeftScale[E8M0, M, S]()
    right, right_scale = TileRight[FP8, TK, N](), TileRightScale[E8M0, S, N]()
    l0, acc = [left, left_scale, right, right_scale], TileAcc[float32, M, N]()
    for i in static_range(4):
        TASSIGN(l1[i], i * 0x2000)
        TASSIGN(l0[i], 0x1000 if i % 2 == 0 else 0x1000 >> 4)  # every tile has its own memory
    TASSIGN(acc, 0)
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)  # L1 is free
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)  # L0 is free
    for k in static_range(0, K, TK):
        wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)
        load(l1, a, a_scale, b, b_scale, k)
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0)
        wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)
        for i in static_range(4):
            TMOV(l0[i], l1[i])
        set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0)
        wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0)
        multiply(acc, l0, k == 0)
        set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
    TSTORE(GlobalTensor(c), acc)
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)


def quantised(x):
    """Rows of x as fp8 codes and one e8m0 scale per 32: the largest element lands near 448."""
    blocks = x.reshape(len(x), -1, BLOCK)
    exponent = np.floor(np.log2(np.abs(blocks).max(axis=2))) - 8
    codes = (blocks * 2.0 ** -exponent[..., None]).clip(-448, 448)
    codes = codes.astype(ml_dtypes.float8_e4m3fn).reshape(x.shape)
    return codes, (2.0**exponent).astype(ml_dtypes.float8_e8m0fnu)


def inputs(rng):
    a, a_scale = quantised(rng.standard_normal((M, K)))
    b, b_scale = quantised(rng.standard_normal((N, K)))
    return a, a_scale, np.ascontiguousarray(b.T), b_scale, np.zeros((M, N), np.float32)


def expected(a, a_scale, b, b_scale, c):
    left = a.astype(np.float64) * np.repeat(a_scale.astype(np.float64), BLOCK, axis=1)
    right = b.astype(np.float64) * np.repeat(b_scale.astype(np.float64), BLOCK, axis=1).T
    return (left @ right,)


CASES = [
    Case("MX fp8 matmul, auto", mx_matmul, inputs, expected, rtol=1e-6, targets=("a5",)),
    Case("MX fp8 matmul, manual", mx_matmul_manual, inputs, expected, rtol=1e-6, targets=("a5",)),
]

if __name__ == "__main__":
    main(CASES)
