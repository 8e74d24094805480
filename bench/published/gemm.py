"""Matrix product on the cube cores: each owns a rectangle of C and walks it tile by tile.

Loads bring panels for several steps of K into two buffers of L1; each step extracts a pair of
tiles into two buffers of L0A and L0B; one accumulator collects a tile of C and is stored before the
next begins. B is laid out column by column.
"""

from __future__ import annotations

import numpy as np

from ptokit import *
from published.grid import Case, across, up

M, K, N, STEPS = 128, 64, 256, 4  # of a product of tiles, and how many of them a load serves
WIDE = K * STEPS
L0_HALF = 32 * 1024

LeftL1 = Tile[TileType.Mat, half, M, WIDE, BLayout.ColMajor, M, WIDE, SLayout.RowMajor]
RightL1 = Tile[TileType.Mat, half, WIDE, N, BLayout.RowMajor, WIDE, N, SLayout.ColMajor]


def at(tile, address):
    """A tile bound to an address."""
    TASSIGN(tile, address)
    return tile


def step_of(acc, left, right, a_l1, b_l1, step, load, is_first):
    """Extract one pair of tiles and multiply it."""
    turn = step % 2
    wait_flag(PIPE_M, PIPE_MTE1, turn)
    if step == 0:
        wait_flag(PIPE_MTE2, PIPE_MTE1, 0)
    TEXTRACT(left[turn], a_l1, 0, step * K)
    if step == 0:
        wait_flag(PIPE_MTE2, PIPE_MTE1, 1)
    TEXTRACT(right[turn], b_l1, step * K, 0)
    if step == STEPS - 1:
        set_flag(PIPE_MTE1, PIPE_MTE2, load)
    set_flag(PIPE_MTE1, PIPE_M, turn)
    wait_flag(PIPE_MTE1, PIPE_M, turn)
    if is_first:
        TMATMUL(acc, left[turn], right[turn])
    else:
        TMATMUL_ACC(acc, left[turn], right[turn])
    set_flag(PIPE_M, PIPE_MTE1, turn)


@kernel(mode="manual", core="cube")
def gemm(a, bt, c, *, cores):
    (m, k), n = a.shape, bt.shape[0]
    ga, gc = GlobalTensor(a), GlobalTensor(c)
    gb = GlobalTensor[half, Shape[1, 1, 1, k, n], Stride[1, 1, 1, 1, k], Layout.DN](bt)
    a_bytes, b_bytes = M * WIDE * 2, WIDE * N * 2
    a_l1 = [at(LeftL1(), 0), at(LeftL1(), a_bytes)]
    b_l1 = [at(RightL1(), 2 * a_bytes), at(RightL1(), 2 * a_bytes + b_bytes)]
    left = [at(TileLeft[half, M, K](), 0), at(TileLeft[half, M, K](), L0_HALF)]
    right = [at(TileRight[half, K, N](), 0), at(TileRight[half, K, N](), L0_HALF)]
    acc = at(TileAcc[float32, M, N](), 0)
    first_m = get_block_idx() % cores[0] * (m // cores[0])
    first_n = get_block_idx() // cores[0] * (n // cores[1])

    for turn in static_range(2):
        set_flag(PIPE_MTE1, PIPE_MTE2, turn)
        set_flag(PIPE_M, PIPE_MTE1, turn)
    for row in range(first_m, first_m + m // cores[0], M):
        for column in range(first_n, first_n + n // cores[1], N):
            for panel in range(0, k, 2 * WIDE):  # two loads a round: one for each buffer
                for load in static_range(2):
                    start = panel + load * WIDE
                    wait_flag(PIPE_MTE1, PIPE_MTE2, load)
                    TLOAD(a_l1[load], ga[row : row + M, start : start + WIDE])
                    set_flag(PIPE_MTE2, PIPE_MTE1, 0)
                    TLOAD(b_l1[load], gb[start : start + WIDE, column : column + N])
                    set_flag(PIPE_MTE2, PIPE_MTE1, 1)
                    for step in static_range(STEPS):
                        if step + load == 0:
                            is_first = panel == 0
                        else:
                            is_first = False
                        step_of(acc, left, right, a_l1[load], b_l1[load], step, load, is_first)
            set_flag(PIPE_M, PIPE_FIX, 0)
            wait_flag(PIPE_M, PIPE_FIX, 0)
            TSTORE(gc[row : row + M, column : column + N], acc)
            set_flag(PIPE_FIX, PIPE_M, 0)
            wait_flag(PIPE_FIX, PIPE_M, 0)
    for turn in static_range(2):
        wait_flag(PIPE_M, PIPE_MTE1, turn)
        wait_flag(PIPE_MTE1, PIPE_MTE2, turn)


def case(cores: int, *, m: int, k: int, n: int) -> Case:
    """A size that is no grid of tiles is rounded up to one."""
    way = across(cores, m, n, (M, N))
    m, n = (up(size, t * w) * t * w for size, t, w in zip((m, n), (M, N), way, strict=True))
    k = up(k, 2 * WIDE) * 2 * WIDE
    args = (np.zeros((m, k), "f2"), np.zeros((n, k), "f2"), np.zeros((m, n), "f4"))
    return Case(gemm, cores, args, {"cores": way})
