"""Convolution (3 x 3, padded by one) as a matrix product, unrolled on the way to L0A.

Each core has an image and a range of channels of the result. A load brings a group of 16 channels
of the rows that a tile of 128 positions looks at, and the weights that meet them; three steps of K
are made of it. Otherwise it walks as gemm.py does.
"""

from __future__ import annotations

import numpy as np

from ptokit import *
from published.gemm import L0_HALF, at
from published.grid import Case, up

M, K, N, STEPS = 128, 48, 256, 3
WIDTH, C0, FILTER, IMAGES = 96, 16, 3, 4
WIDE = K * STEPS  # one group of channels, unrolled
WEIGHTS = 0x20000  # where they lie in L1

Weights = ConvTile[
    TileType.Mat, half, WIDE * N * 2, Layout.FRACTAL_Z, ConvTileShape[WIDE // C0, N // 16, 16, C0]
]


def map_of(height, rows, first, address):
    """Rows of the map that a tile of positions looks at; `first` is the first of the result."""
    shape = ConvTileShape[1, 1, rows, WIDTH, C0]
    tile = at(ConvTile[TileType.Mat, half, rows * WIDTH * C0 * 2, Layout.NC1HWC0, shape](), address)
    tile.SetFmapH(rows)
    tile.SetFmapW(WIDTH)
    tile.SetFilterH(FILTER)
    tile.SetFilterW(FILTER)
    tile.SetStrideH(1)
    tile.SetStrideW(1)
    tile.SetDilationH(1)
    tile.SetDilationW(1)
    tile.SetChannelSize(C0)
    tile.SetRepeatTime(1)
    tile.SetPadValue(0)
    last = first + up(M, WIDTH)
    tile.SetPadListArray([1, 1, 1 if first == 0 else 0, 1 if last >= height else 0])
    return tile


@kernel(mode="manual", core="cube")
def conv2d(x, weights, y, *, height, groups, n, cores):
    gy, positions = GlobalTensor(y), height * WIDTH
    image = get_block_idx() // cores[1]
    first_n = get_block_idx() % cores[1] * (n // cores[1])
    w_l1 = [at(Weights(), WEIGHTS + turn * WIDE * N * 2) for turn in range(2)]
    left = [at(TileLeft[half, M, K](), turn * L0_HALF) for turn in range(2)]
    right = [at(TileRight[half, K, N](), turn * L0_HALF) for turn in range(2)]
    acc = at(TileAcc[float32, M, N](), 0)
    WeightView = GlobalTensor[
        half,
        Shape[1, WIDE // C0, N // 16, 16, C0],
        Stride[groups * 9 * n * C0, n * C0, 16 * C0, C0, 1],
        Layout.FRACTAL_Z,
    ]
    for turn in static_range(2):
        set_flag(PIPE_MTE1, PIPE_MTE2, turn)
        set_flag(PIPE_M, PIPE_MTE1, turn)
    for start in static_range(0, positions, M):
        first, last = start // WIDTH, (start + M - 1) // WIDTH
        top, bottom = max(0, first - 1), min(height - 1, last + 1)
        rows = bottom - top + 1
        maps = [map_of(height, rows, first, turn * 0x10000) for turn in range(2)]
        set_flag(PIPE_MTE1, PIPE_S, 0)  # the registers are still read for the tile before
        wait_flag(PIPE_MTE1, PIPE_S, 0)
        SETFMATRIX(maps[0])
        SET_IMG2COL_RPT(maps[0])
        SET_IMG2COL_PADDING(maps[0])
        MapView = GlobalTensor[
            half,
            Shape[1, 1, rows, WIDTH, C0],
            Stride[groups * positions * C0, positions * C0, WIDTH * C0, C0, 1],
            Layout.NC1HWC0,
        ]
        for column in range(first_n, first_n + n // cores[1], N):
            for pair in range(0, groups, 2):
                for load in static_range(2):
                    group = pair + load
                    wait_flag(PIPE_MTE1, PIPE_MTE2, load)
                    TLOAD(
                        maps[load],
                        MapView(ptr(x, ((image * groups + group) * height + top) * WIDTH * C0)),
                    )
                    set_flag(PIPE_MTE2, PIPE_MTE1, 0)
                    TLOAD(w_l1[load], WeightView(ptr(weights, group * 9 * n * C0 + column * C0)))
                    set_flag(PIPE_MTE2, PIPE_MTE1, 1)
                    for step in static_range(STEPS):
                        turn = (load * STEPS + step) % 2
                        wait_flag(PIPE_M, PIPE_MTE1, turn)
                        if step == 0:
                            wait_flag(PIPE_MTE2, PIPE_MTE1, 0)
                        TIMG2COL(left[turn], maps[load], start - first * WIDTH, step * K)
                        if step == 0:
                            wait_flag(PIPE_MTE2, PIPE_MTE1, 1)
                        TEXTRACT(right[turn], w_l1[load], step * K, 0)
                        if step == STEPS - 1:
                            set_flag(PIPE_MTE1, PIPE_MTE2, load)
                        set_flag(PIPE_MTE1, PIPE_M, turn)
                        wait_flag(PIPE_MTE1, PIPE_M, turn)
                        if step + load == 0 and pair == 0:
                            TMATMUL(acc, left[turn], right[turn])
                        else:
                            TMATMUL_ACC(acc, left[turn], right[turn])
                        set_flag(PIPE_M, PIPE_MTE1, turn)
            set_flag(PIPE_M, PIPE_FIX, 0)
            wait_flag(PIPE_M, PIPE_FIX, 0)
            row = image * positions + start
            TSTORE(gy[row : row + M, column : column + N], acc)
            set_flag(PIPE_FIX, PIPE_M, 0)
            wait_flag(PIPE_FIX, PIPE_M, 0)
    for turn in static_range(2):
        wait_flag(PIPE_M, PIPE_MTE1, turn)
        wait_flag(PIPE_MTE1, PIPE_MTE2, turn)


def case(cores: int, *, m: int, k: int, n: int) -> Case:
    """m positions of four images, k unrolled columns, n channels, rounded up to whole tiles."""
    images = IMAGES if cores % IMAGES == 0 else 1
    height = up(m, images * WIDTH * 4) * 4  # four rows are three tiles
    groups, across = up(k, 2 * WIDE) * 2, cores // images
    n = up(n, N * across) * N * across
    args = (
        np.zeros((images, groups, height, WIDTH, C0), "f2"),
        np.zeros((groups * 9, n // 16, 16, C0), "f2"),
        np.zeros((images * height * WIDTH, n), "f2"),
    )
    consts = {"height": height, "groups": groups, "n": n, "cores": (images, across)}
    return Case(conv2d, cores, args, consts)
