"""Softmax over the rows of a matrix.

Teaches: row reductions with their scratch tile, broadcasting a column over a tile.
"""

import numpy as np
from harness import Case, main

from ptokit import *

ROWS, COLS = 32, 128
Block = Tile[TileType.Vec, float32, ROWS, COLS]
Column = Tile[TileType.Vec, float32, ROWS, 1, BLayout.ColMajor]


@kernel(mode="auto")
def softmax(x, y):
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    block, scratch, column = Block(), Block(), Column()
    for row in range(0, x.shape[0], ROWS):
        TLOAD(block, gx[row : row + ROWS, :])
        TROWMAX(column, block, scratch)
        TROWEXPANDSUB(block, block, column)
        TEXP(block, block)
        TROWSUM(column, block, scratch)
        TROWEXPANDDIV(block, block, column)
        TSTORE(gy[row : row + ROWS, :], block)


def inputs(rng):
    x = rng.standard_normal((96, COLS)).astype(np.float32) * 3
    return x, np.zeros_like(x)


def expected(x, y):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True),)


CASES = [Case("softmax by rows", softmax, inputs, expected, rtol=1e-5)]

if __name__ == "__main__":
    main(CASES)
