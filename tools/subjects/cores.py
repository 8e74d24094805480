"""Cube and vector cores that hand memory over by messages, counters and meetings."""

import numpy as np
from harness import Case

from ptokit import *

N = 32
L1 = Tile[TileType.Mat, half, N, N, BLayout.ColMajor, N, N, SLayout.RowMajor]
Part = Tile[TileType.Vec, float32, N // 2, N]
BUSY, FULL = 1, 0  # counters: the vector cores are through, a product is there


def at(tile, address):
    TASSIGN(tile, address)
    return tile


def load_factors(a, b):
    """Both factors in L0."""
    a_l1, b_l1 = at(L1(), 0), at(L1(), 0x1000)
    left, right = at(TileLeft[half, N, N](), 0), at(TileRight[half, N, N](), 0)
    TLOAD(a_l1, GlobalTensor(a))
    TLOAD(b_l1, GlobalTensor(b))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
    TMOV(left, a_l1)
    TMOV(right, b_l1)
    PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
    return left, right


@kernel(core="mix")
def by_messages(a, b, c, y, *, rounds):
    """A2/A3: a message reaches both vector cores, and a wait needs those of both."""
    set_ffts_base_addr(0)
    with cube_section():
        left, right = load_factors(a, b)
        acc = at(TileAcc[float32, N, N](), 0)
        for i in static_range(rounds):
            TMATMUL(acc, left, right)
            PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
            if i > 0:
                wait_flag_dev(BUSY)
            TSTORE(GlobalTensor(c), acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
            ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(2, FULL))
    with vector_section():
        tile = at(Part(), 0)
        first = get_subblockid() * (N // 2)
        for i in static_range(rounds):
            wait_flag_dev(FULL)
            TLOAD(tile, GlobalTensor(c)[first : first + N // 2, :])
            if i < rounds - 1:
                ffts_cross_core_sync(PIPE_MTE2, getFFTSMsg(2, BUSY))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            TADDS(tile, tile, 1.0)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TSTORE(GlobalTensor(y)[i * N + first : i * N + first + N // 2, :], tile)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()


@kernel(core="mix")
def by_counters(a, b, c, y, *, rounds):
    """A5: a counter per core; those of vector core 1 begin at 16."""
    with cube_section():
        left, right = load_factors(a, b)
        acc = at(TileAcc[float32, N, N](), 0)
        for i in static_range(rounds):
            TMATMUL(acc, left, right)
            PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
            if i > 0:
                wait_intra_block(PIPE_FIX, BUSY)
                wait_intra_block(PIPE_FIX, BUSY + 16)
            TSTORE(GlobalTensor(c), acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
            set_intra_block(PIPE_FIX, FULL)
            set_intra_block(PIPE_FIX, FULL + 16)
    with vector_section():
        tile = at(Part(), 0)
        first = get_subblockid() * (N // 2)
        for i in static_range(rounds):
            wait_intra_block(PIPE_MTE2, FULL)
            TLOAD(tile, GlobalTensor(c)[first : first + N // 2, :])
            if i < rounds - 1:
                set_intra_block(PIPE_MTE2, BUSY)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            TADDS(tile, tile, 1.0)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TSTORE(GlobalTensor(y)[i * N + first : i * N + first + N // 2, :], tile)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()


@kernel(core="vector")
def by_meetings(x, c, y, *, rounds):
    """Every block stores a part, and loads that of its neighbour when all are there."""
    tile = at(Part(), 0)
    mine = get_block_idx() * (N // 2)
    other = (get_block_idx() + 1) % get_block_num() * (N // 2)
    TLOAD(tile, GlobalTensor(x)[mine : mine + N // 2, :])
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
    for _ in static_range(rounds):
        TSTORE(GlobalTensor(c)[mine : mine + N // 2, :], tile)
        pipe_barrier(PIPE_ALL)
        SYNCALL[SyncCoreType.AIVOnly]()
        TLOAD(tile, GlobalTensor(c)[other : other + N // 2, :])
        PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        TADDS(tile, tile, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(GlobalTensor(y)[mine : mine + N // 2, :], tile)
        pipe_barrier(PIPE_ALL)
        SYNCALL[SyncCoreType.AIVOnly]()


def products(rounds):
    def inputs(rng):
        a, b = rng.integers(-2, 3, (2, N, N)).astype(np.float16)
        return a, b, np.zeros((N, N), np.float32), np.zeros((rounds * N, N), np.float32)

    return inputs


def neighbours(blocks):
    def inputs(rng):
        x = rng.random((blocks * N // 2, N), np.float32)
        return x, np.zeros_like(x), np.zeros_like(x)

    return inputs


CASES = [
    *(Case(f"messages, {n} rounds", by_messages, products(n), lambda *a: (), targets=("a2a3",),
           consts={"rounds": n}) for n in (1, 3)),
    *(Case(f"counters, {n} rounds", by_counters, products(n), lambda *a: (), targets=("a5",),
           consts={"rounds": n}) for n in (1, 3)),
    *(Case(f"meetings of {n} blocks", by_meetings, neighbours(n), lambda *a: (), blocks=n,
           targets=("a2a3", "a5"), consts={"rounds": 2}) for n in (2, 3)),
]  # fmt: skip
