"""What is configured before it is used: unit flags of an accumulator, registers of a core."""

import numpy as np
from harness import Case

from ptokit import *

N = 32
L1 = Tile[TileType.Mat, half, N, N, BLayout.ColMajor, N, N, SLayout.RowMajor]
Wide = Tile[TileType.Mat, float32, 16, 16, BLayout.ColMajor, 16, 16, SLayout.RowMajor]


def at(tile, address):
    TASSIGN(tile, address)
    return tile


@kernel
def handshake(a, b, c, *, steps, rounds):
    """Products and stores of one accumulator, ordered by its unit flag alone."""
    a_l1, b_l1 = at(L1(), 0), at(L1(), 0x1000)
    left, right = at(TileLeft[half, N, N](), 0), at(TileRight[half, N, N](), 0)
    acc = at(TileAcc[float32, N, N](), 0)
    TLOAD(a_l1, GlobalTensor(a))
    TLOAD(b_l1, GlobalTensor(b))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
    TMOV(left, a_l1)
    TMOV(right, b_l1)
    PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
    for i in static_range(rounds):
        TMATMUL[AccPhase.Partial](acc, left, right)
        for _ in static_range(steps - 2):
            TMATMUL_ACC[AccPhase.Partial](acc, acc, left, right)
        TMATMUL_ACC[AccPhase.Final](acc, acc, left, right)
        TSTORE[STPhase.Final](GlobalTensor(c)[i * N : i * N + N, :], acc)


@kernel
def two_halves(a, b, c, *, rounds):
    """Two accumulators in turn; the store of one overlaps the products of the other."""
    a_l1, b_l1 = at(L1(), 0), at(L1(), 0x1000)
    left, right = at(TileLeft[half, N, N](), 0), at(TileRight[half, N, N](), 0)
    even, odd = at(TileAcc[float32, N, N](), 0), at(TileAcc[float32, N, N](), 0x1000)
    TLOAD(a_l1, GlobalTensor(a))
    TLOAD(b_l1, GlobalTensor(b))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
    TMOV(left, a_l1)
    TMOV(right, b_l1)
    PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
    for i in static_range(0, rounds, 2):
        TMATMUL[AccPhase.Final](even, left, right)
        TMATMUL[AccPhase.Final](odd, left, right)
        TSTORE[STPhase.Final](GlobalTensor(c)[i * N : i * N + N, :], even)
        TSTORE[STPhase.Final](GlobalTensor(c)[i * N + N : i * N + 2 * N, :], odd)


@kernel
def precisions(a, b, c, *, rounds):
    """The same product with and without TF32, which is a mode of the core."""
    a_l1, b_l1 = at(Wide(), 0), at(Wide(), 0x400)
    left, right = at(TileLeft[float32, 16, 16](), 0), at(TileRight[float32, 16, 16](), 0)
    acc = at(TileAcc[float32, 16, 16](), 0)
    TLOAD(a_l1, GlobalTensor(a))
    TLOAD(b_l1, GlobalTensor(b))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
    TMOV(left, a_l1)
    TMOV(right, b_l1)
    PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
    for i in static_range(rounds):
        TSETTF32MODE[True]()
        TMATMUL(acc, left, right)
        PtoSetWaitFlag[PIPE_M, PIPE_S]()
        TSETTF32MODE[False]()
        TMATMUL_ACC(acc, acc, left, right)
        PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
        TSTORE(GlobalTensor(c)[i * 16 : i * 16 + 16, :], acc)
        PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
        PtoSetWaitFlag[PIPE_M, PIPE_S]()


def products(rounds, size, kind):
    def inputs(rng):
        a, b = rng.integers(-2, 3, (2, size, size)).astype(kind)
        return a, b, np.zeros((rounds * size, size), np.float32)

    return inputs


def case(name, kernel, rounds, size=N, kind=np.float16, **consts):
    return Case(name, kernel, products(rounds, size, kind), lambda *a: (), targets=("a2a3", "a5"),
                consts={"rounds": rounds, **consts})  # fmt: skip


CASES = [
    case("handshake, 2 steps", handshake, 2, steps=2),
    case("handshake, 4 steps", handshake, 3, steps=4),
    case("two accumulators", two_halves, 4),
    case("precisions, once", precisions, 1, 16, np.float32),
    case("precisions, three rounds", precisions, 3, 16, np.float32),
]
