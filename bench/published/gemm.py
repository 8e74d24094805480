"""Matrix product on the cube cores: each owns a rectangle of C and walks it tile by tile.

Loads bring panels for several steps of K into two buffers of L1; each step extracts a pair of
tiles into two buffers of L0A and L0B; one accumulator collects a tile of C and is stored before the
next begins. B is laid out column by column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit import *

M, K, N, STEPS = 128, 64, 256, 4  # of a product of tiles, and how many of them a load serves
GRID = (4, 6)  # cores along M and N
L0_HALF = 32 * 1024

LeftL1 = Tile[TileType.Mat, half, M, K * STEPS, BLayout.ColMajor, M, K * STEPS, SLayout.RowMajor]
RightL1 = Tile[TileType.Mat, half, K * STEPS, N, BLayout.RowMajor, K * STEPS, N, SLayout.ColMajor]


def at(tile: Any, address: int) -> Any:
    """A tile bound to an address."""
    TASSIGN(tile, address)
    return tile


@kernel(mode="manual")
def gemm(a, bt, c, *, m, k, n, across):
    core_m, core_n = m // across[0], n // across[1]
    ga, gc = GlobalTensor(a), GlobalTensor(c)
    gb = GlobalTensor[half, Shape[1, 1, 1, k, n], Stride[1, 1, 1, 1, k], Layout.DN](bt)
    a_bytes, b_bytes = M * K * STEPS * 2, K * STEPS * N * 2
    a_l1 = [at(LeftL1(), 0), at(LeftL1(), a_bytes)]
    b_l1 = [at(RightL1(), 2 * a_bytes), at(RightL1(), 2 * a_bytes + b_bytes)]
    left = [at(TileLeft[half, M, K](), 0), at(TileLeft[half, M, K](), L0_HALF)]
    right = [at(TileRight[half, K, N](), 0), at(TileRight[half, K, N](), L0_HALF)]
    acc = at(TileAcc[float32, M, N](), 0)
    first_m = get_block_idx() % across[0] * core_m
    first_n = get_block_idx() // across[0] * core_n

    for turn in static_range(2):
        set_flag(PIPE_MTE1, PIPE_MTE2, turn)
        set_flag(PIPE_M, PIPE_MTE1, turn)
    for row in range(first_m, first_m + core_m, M):
        for column in range(first_n, first_n + core_n, N):
            # Two loads a round, so that the buffers have the same numbers in each.
            for panel in range(0, k, 2 * K * STEPS):
                for load in static_range(2):
                    start = panel + load * K * STEPS
                    wait_flag(PIPE_MTE1, PIPE_MTE2, load)
                    TLOAD(a_l1[load], ga[row : row + M, start : start + K * STEPS])
                    set_flag(PIPE_MTE2, PIPE_MTE1, 0)
                    TLOAD(b_l1[load], gb[start : start + K * STEPS, column : column + N])
                    set_flag(PIPE_MTE2, PIPE_MTE1, 1)
                    for step in static_range(STEPS):
                        turn = step % 2
                        wait_flag(PIPE_M, PIPE_MTE1, turn)
                        if step == 0:
                            wait_flag(PIPE_MTE2, PIPE_MTE1, 0)
                        TEXTRACT(left[turn], a_l1[load], 0, step * K)
                        if step == 0:
                            wait_flag(PIPE_MTE2, PIPE_MTE1, 1)
                        TEXTRACT(right[turn], b_l1[load], step * K, 0)
                        if step == STEPS - 1:
                            set_flag(PIPE_MTE1, PIPE_MTE2, load)
                        set_flag(PIPE_MTE1, PIPE_M, turn)
                        wait_flag(PIPE_MTE1, PIPE_M, turn)
                        if step == 0 and load == 0 and panel == 0:
                            TMATMUL(acc, left[turn], right[turn])
                        else:
                            TMATMUL_ACC(acc, left[turn], right[turn])
                        set_flag(PIPE_M, PIPE_MTE1, turn)
            set_flag(PIPE_M, PIPE_FIX, 0)
            wait_flag(PIPE_M, PIPE_FIX, 0)
            TSTORE(gc[row : row + M, column : column + N], acc)
            set_flag(PIPE_FIX, PIPE_M, 0)
            wait_flag(PIPE_FIX, PIPE_M, 0)
    for turn in static_range(2):
        wait_flag(PIPE_M, PIPE_MTE1, turn)
        wait_flag(PIPE_MTE1, PIPE_MTE2, turn)


def launch(cores: int, m: int, k: int, n: int) -> tuple[Any, int, tuple[Any, ...], dict[str, Any]]:
    """The kernel, its blocks, arguments and constants for a size."""
    args = (np.zeros((m, k), np.float16), np.zeros((n, k), np.float16), np.zeros((m, n), "f4"))
    return gemm, cores, args, {"m": m, "k": k, "n": n, "across": across(cores, m, n)}


def across(cores: int, m: int, n: int) -> tuple[int, int]:
    """Cores along M and N: whole tiles for each, and few bytes to load."""
    ways = [(i, cores // i) for i in range(1, cores + 1) if cores % i == 0]
    fits = [(i, j) for i, j in ways if m % (i * M) == 0 and n % (j * N) == 0]
    if GRID in fits:
        return GRID
    if not fits:
        raise SystemExit(f"{m} x {n} is no grid of {M} x {N} tiles on {cores} cores")
    return min(fits, key=lambda way: n / way[1] + m / way[0])
