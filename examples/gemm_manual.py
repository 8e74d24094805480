"""The matrix product of gemm.py in manual mode: addresses, ping-pong buffers and flags by hand.

Four pipes work at the same time: MTE2 loads L1, MTE1 moves L1 to L0A and L0B, M multiplies, FIX
stores. Every buffer that passes from one pipe to the next needs two flags: a forward one, "it is
full", and a backward one, "it is free again". Backward flags are set once before the loops, as if
somebody had just freed every buffer, and the last ones are waited for at the end, so that sets and
waits come out even.

Teaches: flags in both directions, one event id per buffer, priming and draining.
"""

import numpy as np
from harness import Case, main

from ptokit import *

TM, TN, TK = 64, 64, 32
L1_A, L1_B, L0 = 0x0000, 0x4000, 0x0000  # where the buffers begin; A and B have memories of L0 each
STEP = 0x2000  # from one buffer of a pair to the other

LeftL1 = Tile[TileType.Mat, half, TM, TK, BLayout.ColMajor, TM, TK, SLayout.RowMajor]
RightL1 = Tile[TileType.Mat, half, TK, TN, BLayout.ColMajor, TK, TN, SLayout.RowMajor]


def at(tile, address):
    """A tile bound to an address."""
    TASSIGN(tile, address)
    return tile


@kernel(mode="manual")
def gemm_manual(a, b, c):
    ga, gb, gc = GlobalTensor(a), GlobalTensor(b), GlobalTensor(c)
    a_l1 = [at(LeftL1(), L1_A), at(LeftL1(), L1_A + STEP)]
    b_l1 = [at(RightL1(), L1_B), at(RightL1(), L1_B + STEP)]
    left = [at(TileLeft[half, TM, TK](), L0), at(TileLeft[half, TM, TK](), L0 + STEP)]
    right = [at(TileRight[half, TK, TN](), L0), at(TileRight[half, TK, TN](), L0 + STEP)]
    acc = at(TileAcc[float32, TM, TN](), 0)

    # Prime: everything is free. The event id is the number of the buffer.
    for turn in static_range(2):
        set_flag(PIPE_MTE1, PIPE_MTE2, turn)  # L1 is free
        set_flag(PIPE_M, PIPE_MTE1, turn)  # L0A and L0B are free
    set_flag(PIPE_FIX, PIPE_M, EVENT_ID0)  # the accumulator is free

    for m in range(0, a.shape[0], TM):
        for n in range(0, b.shape[1], TN):
            wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0)
            for step in static_range(a.shape[1] // TK):
                k, turn = step * TK, step % 2
                wait_flag(PIPE_MTE1, PIPE_MTE2, turn)
                TLOAD(a_l1[turn], ga[m : m + TM, k : k + TK])
                TLOAD(b_l1[turn], gb[k : k + TK, n : n + TN])
                set_flag(PIPE_MTE2, PIPE_MTE1, turn)

                wait_flag(PIPE_MTE2, PIPE_MTE1, turn)
                wait_flag(PIPE_M, PIPE_MTE1, turn)
                TMOV(left[turn], a_l1[turn])
                TMOV(right[turn], b_l1[turn])
                set_flag(PIPE_MTE1, PIPE_MTE2, turn)
                set_flag(PIPE_MTE1, PIPE_M, turn)

                wait_flag(PIPE_MTE1, PIPE_M, turn)
                if step == 0:
                    TMATMUL(acc, left[turn], right[turn])
                else:
                    TMATMUL_ACC(acc, left[turn], right[turn])
                set_flag(PIPE_M, PIPE_MTE1, turn)
            set_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
            wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
            TSTORE(gc[m : m + TM, n : n + TN], acc)
            set_flag(PIPE_FIX, PIPE_M, EVENT_ID0)

    # Drain: what was freed last is waited for.
    for turn in static_range(2):
        wait_flag(PIPE_MTE1, PIPE_MTE2, turn)
        wait_flag(PIPE_M, PIPE_MTE1, turn)
    wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0)


def inputs(rng):
    a, b = rng.integers(-4, 5, (2, 128, 128)).astype(np.float16)
    return a, b, np.zeros((128, 128), np.float32)


def expected(a, b, c):
    return (a.astype(np.float64) @ b.astype(np.float64),)


CASES = [Case("gemm, manual", gemm_manual, inputs, expected, targets=("a2a3", "a5"))]

if __name__ == "__main__":
    main(CASES)
