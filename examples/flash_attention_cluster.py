"""Flash attention on a cluster: the cube multiplies, two vector cores do the softmax in between.

    cube: S = Q K^T  -- scores -->   vector: P = exp(S - max), maximum and sum per row
    cube: O = P V    <-- weights --
                     -- values -->   vector: total = total * drop + O

Every block takes one tile of queries, each vector core half of its rows. The cube works one step
ahead of the weights. The rings lie in global memory (A2/A3), or in UB and L1 (A5) until TFREE.

Teaches: three FIFOs on one cluster, working ahead, one source for both targets.
"""

import numpy as np
from fifo import C2V, UP, V2C, at
from flash_attention import LOWEST, attention
from harness import Case, main

from ptokit import *

T, HALF, SLOTS = 64, 32, 2  # tiles are T x T, the head too; rows of a vector core; depth of FIFOs
SCORES, VALUES, TILES = 0x0, 0x8000, 0x10000  # popped scores and values in UB; other tiles
Matrix = Tile[TileType.Mat, half, T, T, BLayout.ColMajor, T, T, SLayout.RowMajor]
MatrixT = Tile[TileType.Mat, half, T, T, BLayout.RowMajor, T, T, SLayout.ColMajor]
Rows, Weights = Tile[TileType.Vec, float32, HALF, T], Tile[TileType.Vec, half, HALF, T]
Column = Tile[TileType.Vec, float32, HALF, 1, BLayout.ColMajor]
Line = Tile[TileType.Vec, float32, 1, HALF]  # the bytes of a column, for row-major arithmetic


def product(acc, left, right, a_l1, b_l1):
    """acc = a b. L1 is free for PIPE_MTE2 when it is copied, L0 for PIPE_MTE1 when multiplied."""
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
    TMOV(left, a_l1)
    TMOV(right, b_l1)
    PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
    PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
    TMATMUL(acc, left, right)
    PtoSetWaitFlag[PIPE_M, PIPE_MTE1]()
    PtoSetWaitFlag[PIPE_M, PIPE_FIX]()


@kernel(core="mix")
def flash_attention_cluster(q, k, v, ring_s, ring_p, ring_o, out):
    length, first = k.shape[0], get_block_idx() * T
    score_pipe = TPipe[0, C2V, T * T * 4, SLOTS](ptr(ring_s, first * T * SLOTS), SCORES, 0)
    weight_pipe = TPipe[2, V2C, T * T * 2, SLOTS](ptr(ring_p, first * T * SLOTS), 0, 0)
    value_pipe = TPipe[4, C2V, T * T * 4, SLOTS](ptr(ring_o, first * T * SLOTS), VALUES, 0)
    with cube_section():
        gkt = GlobalTensor[half, Shape[1, 1, 1, T, length], Stride[1, 1, 1, 1, T], Layout.DN](k)
        gv, q_l1, p_l1 = GlobalTensor(v), at(Matrix(), TILES), Matrix()  # TPOP binds p_l1
        kt_l1, v_l1 = at(MatrixT(), TILES + 0x2000), at(Matrix(), TILES + 0x4000)
        left, right = at(TileLeft[half, T, T](), 0), at(TileRight[half, T, T](), 0)
        s_acc, o_acc = at(TileAcc[float32, T, T](), 0), at(TileAcc[float32, T, T](), 0x4000)
        TLOAD(q_l1, GlobalTensor(q)[first : first + T, :])
        for key in range(0, length + T, T):
            if key < length:
                TLOAD(kt_l1, gkt[:, key : key + T])
                product(s_acc, left, right, q_l1, kt_l1)
                TPUSH[UP](score_pipe, s_acc)
            if key > 0:  # the weights of the step before
                TLOAD(v_l1, gv[key - T : key, :])
                TPOP[UP](weight_pipe, p_l1)
                product(o_acc, left, right, p_l1, v_l1)
                TFREE[UP](weight_pipe)
                TPUSH[UP](value_pipe, o_acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()  # both accumulators are free
    with vector_section():
        scores, part = Rows(), Rows()  # bound by TPOP
        scratch, weights, total = at(Rows(), TILES), at(Weights(), 0x12000), at(Rows(), 0x13000)
        new_top, drop, row_sum, norm = [at(Column(), 0x15000 + i * 0x100) for i in range(4)]
        new_top_, drop_, row_sum_, norm_, top_ = [at(Line(), 0x15000 + i * 0x100) for i in range(5)]
        TEXPANDS(top_, LOWEST)
        TEXPANDS(norm_, 0.0)
        TEXPANDS(total, 0.0)
        for _ in range(0, length, T):
            TPOP[UP](score_pipe, scores)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            TROWMAX(new_top, scores, scratch)
            pipe_barrier(PIPE_V)
            TMAX(new_top_, new_top_, top_)
            pipe_barrier(PIPE_V)
            TROWEXPANDSUB(scores, scores, new_top)
            TEXP(scores, scores)  # element by element behind the line above: no barrier
            TSUB(drop_, top_, new_top_)
            TEXP(drop_, drop_)
            pipe_barrier(PIPE_V)
            TCVT(weights, scores, RoundMode.CAST_RINT)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TPUSH[UP](weight_pipe, weights)
            TROWSUM(row_sum, scores, scratch)
            TFREE[UP](score_pipe)
            TMOV(top_, new_top_)
            TMUL(norm_, norm_, drop_)
            TROWEXPANDMUL(total, total, drop)
            pipe_barrier(PIPE_V)
            TADD(norm_, norm_, row_sum_)
            TPOP[UP](value_pipe, part)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            TADD(total, total, part)
            TFREE[UP](value_pipe)
            # No flags backward: values come when the weights, and all before them, are through.
        pipe_barrier(PIPE_V)
        TROWEXPANDDIV(total, total, norm)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        mine = first + get_subblockid() * HALF
        TSTORE(GlobalTensor(out)[mine : mine + HALF, :], total)


def inputs(rng, blocks=2, length=256):
    q, k, v = (rng.standard_normal((n, T)).astype(np.float16) for n in (blocks * T, length, length))
    rings = [np.zeros((blocks, SLOTS, T, T), kind) for kind in ("f4", "f2", "f4")]
    return q / 8, k, v, *rings, np.zeros((blocks * T, T), np.float32)  # 8: sqrt(T)


CASES = [
    Case("flash attention, cluster", flash_attention_cluster, inputs, rtol=2e-3, blocks=2,
         expected=lambda q, k, v, *_: attention(False)(q * 8, k, v), targets=("a2a3", "a5"))
]  # fmt: skip

if __name__ == "__main__":
    main(CASES)
