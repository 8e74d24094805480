"""Matrix product with a K loop and ping-pong buffers: C = A @ B.

Teaches: the cube's memories (L1, L0A, L0B, L0C), NZ tiles, accumulation, lists of tiles as
double buffers, and the same kernel for half, bfloat16 and int8.
"""

import ml_dtypes
import numpy as np
from harness import Case, main

from ptokit import *


def boxed(kind, rows, cols):
    """A tile of L1 in NZ order, as the loads of the cube want it."""
    return Tile[TileType.Mat, kind, rows, cols, BLayout.ColMajor, rows, cols, SLayout.RowMajor]


@kernel(mode="auto")
def gemm(a, b, c, *, kind, acc_kind, tile=(64, 64, 32)):
    TM, TN, TK = tile
    ga, gb, gc = GlobalTensor(a), GlobalTensor(b), GlobalTensor(c)
    # Two of each: while the cube works on one pair, the next is on its way.
    a_l1 = [boxed(kind, TM, TK)(), boxed(kind, TM, TK)()]
    b_l1 = [boxed(kind, TK, TN)(), boxed(kind, TK, TN)()]
    left = [TileLeft[kind, TM, TK](), TileLeft[kind, TM, TK]()]
    right = [TileRight[kind, TK, TN](), TileRight[kind, TK, TN]()]
    acc = TileAcc[acc_kind, TM, TN]()
    for m in range(0, a.shape[0], TM):
        for n in range(0, b.shape[1], TN):
            for step in static_range(a.shape[1] // TK):
                k, turn = step * TK, step % 2
                TLOAD(a_l1[turn], ga[m : m + TM, k : k + TK])
                TLOAD(b_l1[turn], gb[k : k + TK, n : n + TN])
                TMOV(left[turn], a_l1[turn])
                TMOV(right[turn], b_l1[turn])
                if step == 0:
                    TMATMUL(acc, left[turn], right[turn])
                else:
                    TMATMUL_ACC(acc, left[turn], right[turn])
            TSTORE(gc[m : m + TM, n : n + TN], acc)


def matrices(element, result):
    def inputs(rng):
        a, b = rng.integers(-4, 5, (2, 128, 128))
        return a.astype(element), b.astype(element), np.zeros((128, 128), result)

    return inputs


def expected(a, b, c):
    return (a.astype(np.float64) @ b.astype(np.float64),)


BIG = ("a2a3", "a5")  # Kirin accumulates half in half
CASES = [
    Case("gemm f16", gemm, matrices("f2", "f4"), expected, targets=BIG,
         consts={"kind": half, "acc_kind": float32}),
    Case("gemm bf16", gemm, matrices(ml_dtypes.bfloat16, "f4"), expected, targets=BIG,
         consts={"kind": bfloat16, "acc_kind": float32}),
    Case("gemm int8", gemm, matrices("i1", "i4"), expected,
         consts={"kind": int8, "acc_kind": int32}),
]  # fmt: skip

if __name__ == "__main__":
    main(CASES)
