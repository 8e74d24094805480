"""Flash attention on one core: softmax(Q K^T) V without ever holding the whole score matrix.

Each tile of queries walks over the keys once. A running maximum and a running sum are kept per
row; when the maximum grows, what was accumulated so far is scaled down. The cube's results reach
the vector unit through a workspace in global memory, as on A2/A3.

Teaches: cube and vector work in one kernel, column-major views (K transposed for free), online
softmax, column tiles seen as rows (TRESHAPE), a compile-time option.
"""

import numpy as np
from harness import Case, main

from ptokit import *

D = 64
LOWEST = -1.0e30  # instead of -inf: differences of it stay numbers


def boxed(rows, cols, outer=BLayout.ColMajor, inner=SLayout.RowMajor):
    return Tile[TileType.Mat, float16, rows, cols, outer, rows, cols, inner]


def product(acc, left, right, a_l1, b_l1):
    """One cube step: L1 to L0, then multiply."""
    TMOV(left, a_l1)
    TMOV(right, b_l1)
    TMATMUL(acc, left, right)


@kernel(mode="auto")
def flash_attention(q, k, v, mask, work_s, work_p, work_o, out, *, scale, causal, tile=64):
    length, TQ, TK = q.shape[0], tile, tile
    Scores, Weights = Tile[TileType.Vec, float32, TQ, TK], Tile[TileType.Vec, float16, TQ, TK]
    Output = Tile[TileType.Vec, float32, TQ, D]
    Column = Tile[TileType.Vec, float32, TQ, 1, BLayout.ColMajor]
    Row = Tile[TileType.Vec, float32, 1, TQ]  # a column's bytes, for row-major arithmetic
    gq, gv, gout = GlobalTensor(q), GlobalTensor(v), GlobalTensor(out)
    # K as its transpose: D rows, one column per key, columns contiguous.
    kt_shape, kt_stride = Shape[1, 1, 1, D, length], Stride[1, 1, 1, 1, D]
    gkt = GlobalTensor[float16, kt_shape, kt_stride, Layout.DN](k)
    gs, gp, go = GlobalTensor(work_s), GlobalTensor(work_p), GlobalTensor(work_o)

    q_l1, v_l1, p_l1 = boxed(TQ, D)(), boxed(TK, D)(), boxed(TQ, TK)()
    kt_l1 = boxed(D, TK, BLayout.RowMajor, SLayout.ColMajor)()
    q_l0, kt_l0, s_acc = (
        TileLeft[half, TQ, D](),
        TileRight[half, D, TK](),
        TileAcc[float32, TQ, TK](),
    )
    p_l0, v_l0, o_acc = (
        TileLeft[half, TQ, TK](),
        TileRight[half, TK, D](),
        TileAcc[float32, TQ, D](),
    )

    scores, scratch, weights = Scores(), Scores(), Weights()
    total, part = Output(), Output()
    top, new_top, drop, row_sum, norm = Column(), Column(), Column(), Column(), Column()
    top_, new_top_, drop_, row_sum_, norm_ = Row(), Row(), Row(), Row(), Row()
    TRESHAPE(top_, top)
    TRESHAPE(new_top_, new_top)
    TRESHAPE(drop_, drop)
    TRESHAPE(row_sum_, row_sum)
    TRESHAPE(norm_, norm)
    if causal:
        diagonal = Scores()
        TLOAD(diagonal, GlobalTensor(mask))

    for i in range(0, length, TQ):
        TLOAD(q_l1, gq[i : i + TQ, :])
        TEXPANDS(top_, LOWEST)
        TEXPANDS(norm_, 0.0)
        TEXPANDS(total, 0.0)
        for j in range(0, i + TQ if causal else length, TK):
            TLOAD(kt_l1, gkt[:, j : j + TK])
            product(s_acc, q_l0, kt_l0, q_l1, kt_l1)
            TSTORE(gs, s_acc)
            TLOAD(scores, gs)
            TMULS(scores, scores, scale)
            if causal and j == i:  # the tile on the diagonal: keys of the future are masked
                TADD(scores, scores, diagonal)
            # Online softmax.
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
            # Weighted values.
            TCVT(weights, scores, RoundMode.CAST_RINT)
            TSTORE(gp, weights)
            TLOAD(p_l1, gp)
            TLOAD(v_l1, gv[j : j + TK, :])
            product(o_acc, p_l0, v_l0, p_l1, v_l1)
            TSTORE(go, o_acc)
            TLOAD(part, go)
            TROWEXPANDMUL(total, total, drop)
            TADD(total, total, part)
        TROWEXPANDDIV(total, total, norm)
        TSTORE(gout[i : i + TQ, :], total)


def inputs(rng, length=192, tile=64):
    q, k, v = rng.standard_normal((3, length, D)).astype(np.float16)
    mask = np.where(np.tri(tile, tile), 0, LOWEST).astype(np.float32)
    work = [np.zeros((tile, n), kind) for n, kind in ((tile, "f4"), (tile, "f2"), (D, "f4"))]
    return q, k, v, mask, *work, np.zeros((length, D), np.float32)


def attention(causal):
    def expected(q, k, v, *rest):
        q, k, v = (a.astype(np.float64) for a in (q, k, v))
        s = q @ k.T / np.sqrt(D)
        if causal:
            s = np.where(np.tri(*s.shape), s, -np.inf)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        return (p / p.sum(axis=1, keepdims=True) @ v,)

    return expected


CASES = [
    Case(f"flash attention{', causal' if causal else ''}", flash_attention, inputs,
         attention(causal), rtol=2e-3, targets=("a2a3", "a5"),
         consts={"scale": 1 / np.sqrt(D).item(), "causal": causal})
    for causal in (False, True)
]  # fmt: skip

if __name__ == "__main__":
    main(CASES)
