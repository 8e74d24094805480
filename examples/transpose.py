"""Transpose a matrix tile by tile.

Teaches: TTRANS with its scratch tile, and how much scratch it needs.
"""

import numpy as np
from harness import Case, main

from ptokit import *

ROWS, COLS = 32, 64
Source = Tile[TileType.Vec, float16, ROWS, COLS]
Result = Tile[TileType.Vec, float16, COLS, ROWS]


@kernel(mode="auto")
def transpose(x, y):
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    src, dst, tmp = Source(), Result(), Result()
    for r in range(0, x.shape[0], ROWS):
        for c in range(0, x.shape[1], COLS):
            TLOAD(src, gx[r : r + ROWS, c : c + COLS])
            TTRANS(dst, src, tmp)
            TSTORE(gy[c : c + COLS, r : r + ROWS], dst)


def inputs(rng):
    x = rng.standard_normal((96, 128)).astype(np.float16)
    return x, np.zeros(x.T.shape, np.float16)


def expected(x, y):
    return (x.T,)


CASES = [Case("transpose", transpose, inputs, expected)]

if __name__ == "__main__":
    main(CASES)
