"""One core whose pipes are ordered by events, by buffers, and by flags in nested loops."""

import numpy as np
from harness import Case

from ptokit import *

ROWS, COLS = 16, 32
Block = Tile[TileType.Vec, float32, ROWS, COLS]
Column = Tile[TileType.Vec, float32, ROWS, 1, BLayout.ColMajor]


def at(tile, address):
    TASSIGN(tile, address)
    return tile


@kernel
def by_events(x, y):
    """Load, two steps, store: an event for each edge, new ones in every round."""
    a, b, c = at(Block(), 0), at(Block(), 0x800), at(Block(), 0x1000)
    for i in static_range(x.shape[0] // ROWS):
        row = i * ROWS
        loaded = Event[Op.TLOAD, Op.TADDS](TLOAD(a, GlobalTensor(x)[row : row + ROWS, :]))
        TADDS(b, a, 1.0, loaded)
        pipe_barrier(PIPE_V)
        done = Event[Op.TMULS, Op.TSTORE_VEC](TMULS(c, b, 2.0))
        free = Event[Op.TMULS, Op.TLOAD]()
        free.Record()
        stored = Event[Op.TSTORE_VEC, Op.TMULS](
            TSTORE(GlobalTensor(y)[row : row + ROWS, :], c, done)
        )
        stored.Wait()
        free.Wait()


@kernel
def by_buffers(x, y):
    """Each buffer passes from pipe to pipe by its number."""
    a, b = at(Block(), 0), at(Block(), 0x800)
    for row in range(0, x.shape[0], ROWS):
        get_buf(PIPE_MTE2, 0)
        TLOAD(a, GlobalTensor(x)[row : row + ROWS, :])
        rls_buf(PIPE_MTE2, 0)
        get_buf(PIPE_V, 0)
        get_buf(PIPE_V, 1)
        TADDS(b, a, 1.0)
        rls_buf(PIPE_V, 0)
        rls_buf(PIPE_V, 1)
        get_buf(PIPE_MTE3, 1)
        TSTORE(GlobalTensor(y)[row : row + ROWS, :], b)
        rls_buf(PIPE_MTE3, 1)


@kernel
def nested(x, y, *, inner):
    """An accumulation over an inner loop, stored by the outer one."""
    part = [at(Block(), 0), at(Block(), 0x800)]
    total = at(Block(), 0x1000)
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1)
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID2)
    for i in range(y.shape[0] // ROWS):
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID2)
        TEXPANDS(total, 0.0)
        pipe_barrier(PIPE_V)
        for j in static_range(inner):
            row = (i * inner + j) * ROWS
            wait_flag(PIPE_V, PIPE_MTE2, j % 2)
            TLOAD(part[j % 2], GlobalTensor(x)[row : row + ROWS, :])
            set_flag(PIPE_MTE2, PIPE_V, j % 2)
            wait_flag(PIPE_MTE2, PIPE_V, j % 2)
            TADD(total, total, part[j % 2])
            set_flag(PIPE_V, PIPE_MTE2, j % 2)
            pipe_barrier(PIPE_V)
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID3)
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID3)
        TSTORE(GlobalTensor(y)[i * ROWS : i * ROWS + ROWS, :], total)
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID2)
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1)
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID2)


@kernel
def in_place(x, y):
    """What is stored is loaded again: the order goes through global memory."""
    a, peak, scratch = at(Block(), 0), at(Column(), 0x800), at(Block(), 0x1000)
    for row in range(0, x.shape[0], ROWS):
        TLOAD(a, GlobalTensor(x)[row : row + ROWS, :])
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TSTORE(GlobalTensor(y)[row : row + ROWS, :], a)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
        TLOAD(a, GlobalTensor(y)[row : row + ROWS, :])
        PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        TROWMAX(peak, a, scratch)
        pipe_barrier(PIPE_V)
        TROWEXPANDSUB(a, a, peak)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(GlobalTensor(y)[row : row + ROWS, :], a)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
        PtoSetWaitFlag[PIPE_V, PIPE_MTE2]()


def rows(many, fewer=1):
    def inputs(rng):
        x = rng.random((many * ROWS, COLS), np.float32)
        return x, np.zeros((many // fewer * ROWS, COLS), np.float32)

    return inputs


def case(name, kernel, many, fewer=1, **consts):
    return Case(name, kernel, rows(many, fewer), lambda *a: (), targets=("a2a3", "a5"),
                consts=consts)  # fmt: skip


CASES = [
    case("events, one round", by_events, 1),
    case("events, three rounds", by_events, 3),
    Case("buffers", by_buffers, rows(3), lambda *a: (), targets=("a5",)),
    case("nested, two by two", nested, 4, 2, inner=2),
    case("nested, two by three", nested, 6, 3, inner=3),
    case("in place", in_place, 3),
]
