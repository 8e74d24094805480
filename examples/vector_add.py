"""Add two matrices, tile by tile: the smallest complete kernel, in auto and in manual mode.

Teaches: tiles, GlobalTensor slices, a loop over run-time sizes, events between pipes.
"""

import numpy as np
from harness import Case, main

from ptokit import *

ROWS, COLS = 16, 64
TileT = Tile[TileType.Vec, float32, ROWS, COLS]


@kernel(mode="auto")
def add_auto(x, y, z):
    """Auto mode: ptokit places the tiles and orders the pipes."""
    gx, gy, gz = GlobalTensor(x), GlobalTensor(y), GlobalTensor(z)
    a, b, c = TileT(), TileT(), TileT()
    for row in range(0, x.shape[0], ROWS):
        TLOAD(a, gx[row : row + ROWS, :])
        TLOAD(b, gy[row : row + ROWS, :])
        TADD(c, a, b)
        TSTORE(gz[row : row + ROWS, :], c)


@kernel(mode="manual")
def add_manual(x, y, z):
    """Manual mode: the author binds addresses and orders the pipes with flags.

    Two reverse flags keep a load from overwriting tiles that are still in use: they are set once
    before the loop, waited for and set again in every round, and drained behind it.
    """
    gx, gy, gz = GlobalTensor(x), GlobalTensor(y), GlobalTensor(z)
    a, b, c = TileT(), TileT(), TileT()
    TASSIGN[0x0000](a)
    TASSIGN[0x1000](b)
    TASSIGN[0x2000](c)
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
    for row in range(0, x.shape[0], ROWS):
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        TLOAD(a, gx[row : row + ROWS, :])
        TLOAD(b, gy[row : row + ROWS, :])
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
        TADD(c, a, b)
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        TSTORE(gz[row : row + ROWS, :], c)
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)


def inputs(rng):
    x, y = rng.standard_normal((2, 64, COLS), np.float32)
    return x, y, np.zeros_like(x)


def expected(x, y, z):
    return (x + y,)


CASES = [
    Case("vector add, auto", add_auto, inputs, expected),
    Case("vector add, manual", add_manual, inputs, expected),
]

if __name__ == "__main__":
    main(CASES)
