"""Softmax over rows, once with values and once by hand."""

from ptokit import *
from ptokit.values import exp, load, rowmax, rowsum, store

ROWS, COLS = 16, 128
Block = Tile[TileType.Vec, float32, ROWS, COLS]
Column = Tile[TileType.Vec, float32, ROWS, 1, BLayout.ColMajor]


@kernel(mode="auto")
def softmax(x: float32[64, COLS], y: float32[64, COLS]):
    for row in range(0, x.shape[0], ROWS):
        t = load(x[row : row + ROWS, :])
        e = exp(t - rowmax(t))
        store(y[row : row + ROWS, :], e / rowsum(e))


@kernel
def scaled_softmax(x: float32[ROWS, COLS], y: float32[ROWS, COLS], scale: float = 0.5):
    """In manual mode: take out one of the flags, and the tests fail at the line of the race."""
    block, scratch, column = Block(), Block(), Column()
    TASSIGN[0x0000](block)
    TASSIGN[0x2000](scratch)
    TASSIGN[0x4000](column)
    TLOAD(block, GlobalTensor(x))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TMULS(block, block, scale)
    pipe_barrier(PIPE_V)
    TROWMAX(column, block, scratch)
    pipe_barrier(PIPE_V)
    TROWEXPANDSUB(block, block, column)
    pipe_barrier(PIPE_V)
    TEXP(block, block)
    pipe_barrier(PIPE_V)
    TROWSUM(column, block, scratch)
    pipe_barrier(PIPE_V)
    TROWEXPANDDIV(block, block, column)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(y), block)
