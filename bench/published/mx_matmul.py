"""Block-scaled matrix product (MX) on the cube cores of A5: fp8 or fp4, a scale per 32 of K.

Walks its rectangle of C as gemm.py does. The scales of a row lie close together: one load brings
those of several loads of data, into two buffers of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptokit import *
from published.gemm import L0_HALF, at
from published.grid import Case, across, up

BLOCK = 32  # elements of K that share a scale
E8M0 = float8_e8m0


class Tiling(NamedTuple):
    """Sizes of a product of tiles, steps that a load serves, loads that a load of scales serves."""

    kind: object
    m: int
    k: int
    n: int
    steps: int
    scales: int
    per_byte: int  # elements


FP8 = Tiling(float8_e4m3, 128, 128, 256, 4, 8, 1)
FP4 = Tiling(float4_e2m1x2, 256, 256, 256, 2, 4, 2)


def extract(left, right, scales, l1, scales_l1, turn, step, load, way):
    """A pair of tiles and the scales that belong to them."""
    part = (load % way.scales * way.steps + step) * way.k // BLOCK
    wait_flag(PIPE_M, PIPE_MTE1, turn)
    if step == 0:
        wait_flag(PIPE_MTE2, PIPE_MTE1, 0)
    TEXTRACT(left[turn], l1[0], 0, step * way.k)
    TEXTRACT(scales[0][turn], scales_l1[0], 0, part)
    if step == 0:
        wait_flag(PIPE_MTE2, PIPE_MTE1, 1)
    TEXTRACT(right[turn], l1[1], step * way.k, 0)
    TEXTRACT(scales[1][turn], scales_l1[1], part, 0)
    if step == way.steps - 1:
        set_flag(PIPE_MTE1, PIPE_MTE2, load % 2)


def multiply(acc, left, right, scales, turn, is_first):
    """Start a sum, or add to it."""
    set_flag(PIPE_MTE1, PIPE_M, turn)
    wait_flag(PIPE_MTE1, PIPE_M, turn)
    if is_first:
        TMATMUL_MX(acc, left[turn], scales[0][turn], right[turn], scales[1][turn])
    else:
        TMATMUL_MX(acc, acc, left[turn], scales[0][turn], right[turn], scales[1][turn])
    set_flag(PIPE_M, PIPE_MTE1, turn)


@kernel(mode="manual", core="cube")
def mx_matmul(a, bt, a_scale, b_scale, c, *, m, k, n, cores, way):
    kind, wide = way.kind, way.k * way.steps
    groups = wide * way.scales // BLOCK  # scales of a row that one load brings
    Mat, Acc = TileType.Mat, TileAcc[float32, way.m, way.n]
    A = Tile[Mat, kind, way.m, wide, BLayout.ColMajor, way.m, wide, SLayout.RowMajor]
    B = Tile[Mat, kind, wide, way.n, BLayout.RowMajor, wide, way.n, SLayout.ColMajor]
    SA = Tile[Mat, E8M0, way.m, groups, BLayout.RowMajor, way.m, groups, SLayout.RowMajor, 32]
    SB = Tile[Mat, E8M0, groups, way.n, BLayout.ColMajor, groups, way.n, SLayout.ColMajor, 32]
    of_row = k // BLOCK
    ga = GlobalTensor[kind, Shape[1, 1, 1, m, k], Stride[1, 1, 1, k, 1]](a)
    gb = GlobalTensor[kind, Shape[1, 1, 1, k, n], Stride[1, 1, 1, 1, k], Layout.DN](bt)
    SAView = GlobalTensor[
        E8M0, Shape[1, 1, way.m, groups // 2, 2], Stride[1, 1, of_row, 2, 1], Layout.MX_A_ND
    ]
    SBView = GlobalTensor[
        E8M0, Shape[1, 1, way.n, groups // 2, 2], Stride[1, 1, of_row, 2, 1], Layout.MX_B_DN
    ]
    a_bytes, b_bytes = way.m * wide // way.per_byte, wide * way.n // way.per_byte
    at_scales = 2 * (a_bytes + b_bytes)
    at_b_scales = at_scales + 2 * way.m * groups
    a_l1 = [at(A(), turn * a_bytes) for turn in range(2)]
    b_l1 = [at(B(), 2 * a_bytes + turn * b_bytes) for turn in range(2)]
    sa_l1 = [at(SA(), at_scales + turn * way.m * groups) for turn in range(2)]
    sb_l1 = [at(SB(), at_b_scales + turn * way.n * groups) for turn in range(2)]
    left = [at(TileLeft[kind, way.m, way.k](), turn * L0_HALF) for turn in range(2)]
    right = [at(TileRight[kind, way.k, way.n](), turn * L0_HALF) for turn in range(2)]
    blocks = way.k // BLOCK
    scales = [
        [at(TileLeftScale[E8M0, way.m, blocks](), turn * L0_HALF // 16) for turn in range(2)],
        [at(TileRightScale[E8M0, blocks, way.n](), turn * L0_HALF // 16) for turn in range(2)],
    ]
    acc, gc = at(Acc(), 0), GlobalTensor(c)
    first_m = get_block_idx() % cores[0] * (m // cores[0])
    first_n = get_block_idx() // cores[0] * (n // cores[1])

    for turn in static_range(2):
        set_flag(PIPE_MTE1, PIPE_MTE2, turn)
        set_flag(PIPE_M, PIPE_MTE1, turn)
    for row in range(first_m, first_m + m // cores[0], way.m):
        for column in range(first_n, first_n + n // cores[1], way.n):
            for load in static_range(k // wide):
                start, turn, mine = load * wide, load % 2, load // way.scales % 2
                brings = load % way.scales == 0
                wait_flag(PIPE_MTE1, PIPE_MTE2, turn)
                TLOAD(a_l1[turn], ga[row : row + way.m, start : start + wide])
                if brings:
                    TLOAD(sa_l1[mine], SAView(ptr(a_scale, row * of_row + start // BLOCK)))
                set_flag(PIPE_MTE2, PIPE_MTE1, 0)
                TLOAD(b_l1[turn], gb[start : start + wide, column : column + way.n])
                if brings:
                    TLOAD(sb_l1[mine], SBView(ptr(b_scale, column * of_row + start // BLOCK)))
                set_flag(PIPE_MTE2, PIPE_MTE1, 1)
                for step in static_range(way.steps):
                    half_ = step % 2
                    l1, s_l1 = (a_l1[turn], b_l1[turn]), (sa_l1[mine], sb_l1[mine])
                    extract(left, right, scales, l1, s_l1, half_, step, load, way)
                    multiply(acc, left, right, scales, half_, step + load == 0)
            set_flag(PIPE_M, PIPE_FIX, 0)
            wait_flag(PIPE_M, PIPE_FIX, 0)
            TSTORE(gc[row : row + way.m, column : column + way.n], acc)
            set_flag(PIPE_FIX, PIPE_M, 0)
            wait_flag(PIPE_FIX, PIPE_M, 0)
    for turn in static_range(2):
        wait_flag(PIPE_M, PIPE_MTE1, turn)
        wait_flag(PIPE_MTE1, PIPE_MTE2, turn)


def case(way: Tiling, cores: int, *, m: int, k: int, n: int) -> Case:
    """A size that is no grid of tiles is rounded up to one."""
    import ml_dtypes

    parts = across(cores, m, n, (way.m, way.n))
    m, n = (
        up(size, t * w) * t * w for size, t, w in zip((m, n), (way.m, way.n), parts, strict=True)
    )
    k = up(k, way.k * way.steps) * way.k * way.steps
    kind = np.uint8 if way.per_byte == 2 else ml_dtypes.float8_e4m3fn
    room = up(k, way.k * way.steps * way.scales) * way.k * way.steps * way.scales // BLOCK
    args = (
        np.zeros((m, k // way.per_byte), kind),
        np.zeros((n, k // way.per_byte), kind),
        np.zeros((m, room), ml_dtypes.float8_e8m0fnu),
        np.zeros((n, room), ml_dtypes.float8_e8m0fnu),
        np.zeros((m, n), ml_dtypes.bfloat16),
    )
    consts = {"m": m, "k": k, "n": n, "cores": parts, "way": way}
    # Arrays of bytes that hold two elements each have no pointer type of their own in texts.
    return Case(mx_matmul, cores, args, consts | ({"path": "eager"} if way.per_byte == 2 else {}))
