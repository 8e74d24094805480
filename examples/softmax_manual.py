"""Softmax over rows in manual mode, with two buffers so that loads overlap the arithmetic.

On A2/A3 two vector instructions that depend on each other need a barrier of their pipe between
them; A5 keeps that order by itself. Between pipes flags do the work: MTE2 (load), V (compute) and
MTE3 (store) each hand a buffer on and get it back.

Teaches: pipe_barrier(PIPE_V), double buffering with one event id per buffer, several blocks.
"""

import numpy as np
from harness import Case, main

from ptokit import *

ROWS, COLS, BLOCKS = 16, 128, 2
Block = Tile[TileType.Vec, float32, ROWS, COLS]
Column = Tile[TileType.Vec, float32, ROWS, 1, BLayout.ColMajor]


def softmax_rows(result, block, scratch, column):
    """Softmax of one tile; every line reads what the line before it wrote."""
    TROWMAX(column, block, scratch)
    pipe_barrier(PIPE_V)
    TROWEXPANDSUB(result, block, column)
    pipe_barrier(PIPE_V)
    TEXP(result, result)
    pipe_barrier(PIPE_V)
    TROWSUM(column, result, scratch)
    pipe_barrier(PIPE_V)
    TROWEXPANDDIV(result, result, column)
    pipe_barrier(PIPE_V)  # the next round writes column and scratch again


@kernel(mode="manual")
def softmax_manual(x, y):
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    source, result = [Block(), Block()], [Block(), Block()]
    scratch, column = Block(), Column()
    for turn in static_range(2):
        TASSIGN(source[turn], turn * 0x2000)
        TASSIGN(result[turn], 0x4000 + turn * 0x2000)
    TASSIGN(scratch, 0x8000)
    TASSIGN(column, 0xA000)

    for turn in static_range(2):  # prime: all buffers are free
        set_flag(PIPE_V, PIPE_MTE2, turn)
        set_flag(PIPE_MTE3, PIPE_V, turn)

    share = x.shape[0] // BLOCKS
    first = get_block_idx() * share
    for start in range(first, first + share, 2 * ROWS):
        for turn in static_range(2):
            row = start + turn * ROWS
            wait_flag(PIPE_V, PIPE_MTE2, turn)  # source is free
            TLOAD(source[turn], gx[row : row + ROWS, :])
            set_flag(PIPE_MTE2, PIPE_V, turn)  # source is full

            wait_flag(PIPE_MTE2, PIPE_V, turn)
            wait_flag(PIPE_MTE3, PIPE_V, turn)  # result is free
            softmax_rows(result[turn], source[turn], scratch, column)
            set_flag(PIPE_V, PIPE_MTE2, turn)
            set_flag(PIPE_V, PIPE_MTE3, turn)  # result is full

            wait_flag(PIPE_V, PIPE_MTE3, turn)
            TSTORE(gy[row : row + ROWS, :], result[turn])
            set_flag(PIPE_MTE3, PIPE_V, turn)

    for turn in static_range(2):  # drain
        wait_flag(PIPE_V, PIPE_MTE2, turn)
        wait_flag(PIPE_MTE3, PIPE_V, turn)


def inputs(rng):
    x = rng.standard_normal((BLOCKS * 64, COLS)).astype(np.float32) * 3
    return x, np.zeros_like(x)


def expected(x, y):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True),)


CASES = [
    Case("softmax, manual, two blocks", softmax_manual, inputs, expected, rtol=1e-5, blocks=BLOCKS)
]

if __name__ == "__main__":
    main(CASES)
