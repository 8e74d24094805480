"""Kernels that only the benchmarks have: what a model is made of, at any size.

Rows are normalised, matrices multiplied (`examples/gemm.py`), heads attend - one block each - and
gates open; a decoder layer is their sequence.
"""

from __future__ import annotations

import numpy as np

from ptokit import *

LOWEST = -1.0e30  # instead of -inf: differences of it stay numbers


@kernel(mode="auto")
def chain(x, y, *, side):
    """Four operations on square tiles, one after the other over a matrix."""
    Square = Tile[TileType.Vec, float32, side, side]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, b = Square(), Square()
    for row in range(0, x.shape[0], side):
        for col in range(0, x.shape[1], side):
            TLOAD(a, gx[row : row + side, col : col + side])
            TMULS(b, a, 0.5)
            TADD(a, a, b)
            TRELU(b, a)
            TADDS(a, b, 1.0)
            TSTORE(gy[row : row + side, col : col + side], a)


@kernel(mode="auto")
def banded(x, y):
    """Softmax of the rows of a block."""
    Rows = Tile[TileType.Vec, float32, 32, 128]
    Column = Tile[TileType.Vec, float32, 32, 1, BLayout.ColMajor]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, scratch, column = Rows(), Rows(), Column()
    rows = x.shape[0] // get_block_num()
    for row in range(get_block_idx() * rows, (get_block_idx() + 1) * rows, 32):
        TLOAD(a, gx[row : row + 32, :])
        TROWMAX(column, a, scratch)
        TROWEXPANDSUB(a, a, column)
        TEXP(a, a)
        TROWSUM(column, a, scratch)
        TROWEXPANDDIV(a, a, column)
        TSTORE(gy[row : row + 32, :], a)


@kernel(mode="auto")
def rms_norm(x, gamma, y):
    """x / sqrt(mean(x ** 2) + eps) * gamma, row by row."""
    width = x.shape[1]
    Rows = Tile[TileType.Vec, float32, 16, width]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, square, scratch = Rows(), Rows(), Rows()
    size = Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor]()
    flat = Tile[TileType.Vec, float32, 1, 16]()
    scale = Tile[TileType.Vec, float32, 1, width]()
    TRESHAPE(flat, size)
    TLOAD(scale, GlobalTensor(gamma))
    for row in range(0, x.shape[0], 16):
        TLOAD(a, gx[row : row + 16, :])
        TMUL(square, a, a)
        TROWSUM(size, square, scratch)
        TMULS(flat, flat, 1.0 / width)
        TADDS(flat, flat, 1e-5)
        TSQRT(flat, flat)
        TROWEXPANDDIV(a, a, size)
        TCOLEXPANDMUL(a, a, scale)
        TSTORE(gy[row : row + 16, :], a)


@kernel(mode="auto")
def gated(gate, up, y):
    """gate * sigmoid(gate) * up."""
    Rows = Tile[TileType.Vec, float32, 16, 256]
    gg, gu, gy = GlobalTensor(gate), GlobalTensor(up), GlobalTensor(y)
    a, b, c = Rows(), Rows(), Rows()
    for row in range(0, gate.shape[0], 16):
        for col in range(0, gate.shape[1], 256):
            TLOAD(a, gg[row : row + 16, col : col + 256])
            TLOAD(b, gu[row : row + 16, col : col + 256])
            TMULS(c, a, -1.0)
            TEXP(c, c)
            TADDS(c, c, 1.0)
            TDIV(a, a, c)
            TMUL(a, a, b)
            TSTORE(gy[row : row + 16, col : col + 256], a)


@kernel(mode="auto")
def added(x, y):
    """y += x"""
    Rows = Tile[TileType.Vec, float32, 16, 256]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, b = Rows(), Rows()
    for row in range(0, x.shape[0], 16):
        for col in range(0, x.shape[1], 256):
            TLOAD(a, gx[row : row + 16, col : col + 256])
            TLOAD(b, gy[row : row + 16, col : col + 256])
            TADD(b, b, a)
            TSTORE(gy[row : row + 16, col : col + 256], b)


def boxed(kind, rows, cols, outer=BLayout.ColMajor, inner=SLayout.RowMajor):
    return Tile[TileType.Mat, kind, rows, cols, outer, rows, cols, inner]


@kernel(mode="auto")
def attention(q, k, v, mask, work_s, work_p, work_o, out, *, kind, causal, tile, heads):
    """Flash attention; the rows of q, k, v and out are those of one head after the other."""
    T, D, length = tile, q.shape[1], q.shape[0] // heads
    Scores, Weights = Tile[TileType.Vec, float32, T, T], Tile[TileType.Vec, kind, T, T]
    Output = Tile[TileType.Vec, float32, T, D]
    Column = Tile[TileType.Vec, float32, T, 1, BLayout.ColMajor]
    Row = Tile[TileType.Vec, float32, 1, T]  # a column's bytes, for row-major arithmetic
    gq, gv, gout = GlobalTensor(q), GlobalTensor(v), GlobalTensor(out)
    kt_shape, kt_stride = Shape[1, 1, 1, D, heads * length], Stride[1, 1, 1, 1, D]
    gkt = GlobalTensor[kind, kt_shape, kt_stride, Layout.DN](k)
    head = get_block_idx()
    first, mine = head * length, head * T
    gs, gp, go = GlobalTensor(work_s), GlobalTensor(work_p), GlobalTensor(work_o)

    q_l1, v_l1, p_l1 = boxed(kind, T, D)(), boxed(kind, T, D)(), boxed(kind, T, T)()
    kt_l1 = boxed(kind, D, T, BLayout.RowMajor, SLayout.ColMajor)()
    q_l0, kt_l0, s_acc = TileLeft[kind, T, D](), TileRight[kind, D, T](), TileAcc[float32, T, T]()
    p_l0, v_l0, o_acc = TileLeft[kind, T, T](), TileRight[kind, T, D](), TileAcc[float32, T, D]()
    scores, scratch = Scores(), Scores()
    total, part = Output(), Output()
    top, new_top, drop, row_sum, norm = Column(), Column(), Column(), Column(), Column()
    top_, new_top_, drop_, row_sum_, norm_ = Row(), Row(), Row(), Row(), Row()
    TRESHAPE(top_, top)
    TRESHAPE(new_top_, new_top)
    TRESHAPE(drop_, drop)
    TRESHAPE(row_sum_, row_sum)
    TRESHAPE(norm_, norm)

    for i in range(0, length, T):
        TLOAD(q_l1, gq[first + i : first + i + T, :])
        TMOV(q_l0, q_l1)
        TEXPANDS(top_, LOWEST)
        TEXPANDS(norm_, 0.0)
        TEXPANDS(total, 0.0)
        for j in range(0, i + T if causal else length, T):
            TLOAD(kt_l1, gkt[:, first + j : first + j + T])
            TMOV(kt_l0, kt_l1)
            TMATMUL(s_acc, q_l0, kt_l0)
            TSTORE(gs[mine : mine + T, :], s_acc)
            TLOAD(scores, gs[mine : mine + T, :])
            TMULS(scores, scores, D**-0.5)
            if causal and j == i:  # the tile on the diagonal: keys of the future are masked
                TLOAD(scratch, GlobalTensor(mask))
                TADD(scores, scores, scratch)
            TROWMAX(new_top, scores, scratch)
            TMAX(new_top_, new_top_, top_)
            TROWEXPANDSUB(scores, scores, new_top)
            TEXP(scores, scores)
            TSUB(drop_, top_, new_top_)
            TEXP(drop_, drop_)
            TROWSUM(row_sum, scores, scratch)
            TMUL(norm_, norm_, drop_)
            TADD(norm_, norm_, row_sum_)
            TMOV(top_, new_top_)
            if kind == float32:
                TSTORE(gp[mine : mine + T, :], scores)
            else:
                weights = Weights()
                TCVT(weights, scores, RoundMode.CAST_RINT)
                TSTORE(gp[mine : mine + T, :], weights)
            TLOAD(p_l1, gp[mine : mine + T, :])
            TLOAD(v_l1, gv[first + j : first + j + T, :])
            TMOV(p_l0, p_l1)
            TMOV(v_l0, v_l1)
            TMATMUL(o_acc, p_l0, v_l0)
            TSTORE(go[mine : mine + T, :], o_acc)
            TLOAD(part, go[mine : mine + T, :])
            TROWEXPANDMUL(total, total, drop)
            TADD(total, total, part)
        TROWEXPANDDIV(total, total, norm)
        TSTORE(gout[first + i : first + i + T, :], total)


def attention_arrays(kind, length, width, tile, heads=1):
    """Inputs, a mask, room for what the units hand each other, and the result."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, heads * length, width)).astype(kind.np)
    mask = np.where(np.tri(tile, tile), 0, LOWEST).astype(np.float32)
    rows = heads * tile
    sizes = (tile, np.float32), (tile, kind.np), (width, np.float32)
    work = [np.zeros((rows, n), each) for n, each in sizes]
    return q, k, v, mask, *work, np.zeros((heads * length, width), np.float32)


@kernel(mode="auto")
def product(a, b, c, *, kind, tile):
    """C = A @ B, a band of rows for each block."""
    M, N, K = tile
    ga, gb, gc = GlobalTensor(a), GlobalTensor(b), GlobalTensor(c)
    a_l1 = [boxed(kind, M, K)(), boxed(kind, M, K)()]
    b_l1 = [boxed(kind, K, N)(), boxed(kind, K, N)()]
    left = [TileLeft[kind, M, K](), TileLeft[kind, M, K]()]
    right = [TileRight[kind, K, N](), TileRight[kind, K, N]()]
    acc = TileAcc[float32, M, N]()
    band = a.shape[0] // get_block_num()
    for m in range(get_block_idx() * band, (get_block_idx() + 1) * band, M):
        for n in range(0, b.shape[1], N):
            for step in static_range(a.shape[1] // K):
                k, turn = step * K, step % 2
                TLOAD(a_l1[turn], ga[m : m + M, k : k + K])
                TLOAD(b_l1[turn], gb[k : k + K, n : n + N])
                TMOV(left[turn], a_l1[turn])
                TMOV(right[turn], b_l1[turn])
                if step == 0:
                    TMATMUL(acc, left[turn], right[turn])
                else:
                    TMATMUL_ACC(acc, left[turn], right[turn])
            TSTORE(gc[m : m + M, n : n + N], acc)


@kernel(mode="auto")
def sums(x, y, *, count):
    """One small addition after the other."""
    a, b = [Tile[TileType.Vec, float32, 16, 16]() for _ in range(2)]
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(x))
    for _ in range(count):
        TADD(a, a, b)
    TSTORE(GlobalTensor(y), a)
