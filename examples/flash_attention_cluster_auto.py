"""Flash attention on a cluster in auto mode: the same exchange, without one address or flag.

The kernel is that of flash_attention_cluster.py. There the author places every tile and orders
every pipe; here ptokit does, and only the FIFOs say where their slots lie. What each core does, and
what it hands to the other, is all that is left to read.

Teaches: auto mode with FIFOs, how much of a kernel is synchronisation.
"""

from fifo import C2V, UP, V2C
from flash_attention import LOWEST, attention
from flash_attention_cluster import (
    HALF,
    SLOTS,
    Column,
    Line,
    Matrix,
    MatrixT,
    Rows,
    T,
    Weights,
    inputs,
)
from harness import Case, main

from ptokit import *


def product(acc, left, right, a_l1, b_l1):
    """acc = a b."""
    TMOV(left, a_l1)
    TMOV(right, b_l1)
    TMATMUL(acc, left, right)


@kernel(mode="auto", core="mix")
def flash_attention_cluster_auto(q, k, v, ring_s, ring_p, ring_o, out):
    length, first = k.shape[0], get_block_idx() * T
    # Slots in UB: scores from 0 on, values behind them. The weights have L1 to themselves.
    score_pipe = TPipe[0, C2V, T * T * 4, SLOTS](ptr(ring_s, first * T * SLOTS), 0, 0)
    weight_pipe = TPipe[2, V2C, T * T * 2, SLOTS](ptr(ring_p, first * T * SLOTS), 0, 0)
    value_pipe = TPipe[4, C2V, T * T * 4, SLOTS](ptr(ring_o, first * T * SLOTS), 0x8000, 0)
    with cube_section():
        gkt = GlobalTensor[half, Shape[1, 1, 1, T, length], Stride[1, 1, 1, 1, T], Layout.DN](k)
        q_l1, p_l1, kt_l1, v_l1 = Matrix(), Matrix(), MatrixT(), Matrix()
        left, right = TileLeft[half, T, T](), TileRight[half, T, T]()
        s_acc, o_acc = TileAcc[float32, T, T](), TileAcc[float32, T, T]()
        TLOAD(q_l1, GlobalTensor(q)[first : first + T, :])
        for key in range(0, length + T, T):
            if key < length:
                TLOAD(kt_l1, gkt[:, key : key + T])
                product(s_acc, left, right, q_l1, kt_l1)
                TPUSH[UP](score_pipe, s_acc)
            if key > 0:  # the weights of the step before
                TLOAD(v_l1, GlobalTensor(v)[key - T : key, :])
                TPOP[UP](weight_pipe, p_l1)
                product(o_acc, left, right, p_l1, v_l1)
                TFREE[UP](weight_pipe)
                TPUSH[UP](value_pipe, o_acc)
    with vector_section():
        scores, part, scratch, total, weights = Rows(), Rows(), Rows(), Rows(), Weights()
        new_top, drop, row_sum, norm = Column(), Column(), Column(), Column()
        new_top_, drop_, row_sum_, norm_, top_ = Line(), Line(), Line(), Line(), Line()
        TRESHAPE(new_top_, new_top)
        TRESHAPE(drop_, drop)
        TRESHAPE(row_sum_, row_sum)
        TRESHAPE(norm_, norm)
        TEXPANDS(top_, LOWEST)
        TEXPANDS(norm_, 0.0)
        TEXPANDS(total, 0.0)
        for _ in range(0, length, T):
            TPOP[UP](score_pipe, scores)
            TROWMAX(new_top, scores, scratch)
            TMAX(new_top_, new_top_, top_)
            TROWEXPANDSUB(scores, scores, new_top)
            TEXP(scores, scores)
            TSUB(drop_, top_, new_top_)
            TEXP(drop_, drop_)
            TCVT(weights, scores, RoundMode.CAST_RINT)
            TPUSH[UP](weight_pipe, weights)
            TROWSUM(row_sum, scores, scratch)
            TFREE[UP](score_pipe)
            TMOV(top_, new_top_)
            TMUL(norm_, norm_, drop_)
            TADD(norm_, norm_, row_sum_)
            TROWEXPANDMUL(total, total, drop)
            TPOP[UP](value_pipe, part)
            TADD(total, total, part)
            TFREE[UP](value_pipe)
        TROWEXPANDDIV(total, total, norm)
        mine = first + get_subblockid() * HALF
        TSTORE(GlobalTensor(out)[mine : mine + HALF, :], total)


CASES = [
    Case("flash attention, cluster, auto", flash_attention_cluster_auto, inputs, rtol=2e-3,
         expected=lambda q, k, v, *_: attention(False)(q * 8, k, v), blocks=2,
         targets=("a2a3", "a5"))
]  # fmt: skip

if __name__ == "__main__":
    main(CASES)
