"""Layer normalisation: each row minus its mean, over its standard deviation, scaled and shifted.

Teaches: reductions, tile-scalar arithmetic, broadcasting rows and columns.
"""

import numpy as np
from harness import Case, main

from ptokit import *

ROWS, COLS, EPS = 32, 64, 1e-5
Block = Tile[TileType.Vec, float32, ROWS, COLS]
Column = Tile[TileType.Vec, float32, ROWS, 1, BLayout.ColMajor]
Line = Tile[TileType.Vec, float32, 1, COLS]
Flat = Tile[TileType.Vec, float32, 1, ROWS]  # a column as a row: the same bytes


@kernel(mode="auto")
def layer_norm(x, gamma, beta, y):
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    block, square, scratch = Block(), Block(), Block()
    mean, spread = Column(), Column()
    flat_mean, flat_spread = Flat(), Flat()
    scale, shift = Line(), Line()
    TLOAD(scale, GlobalTensor(gamma))
    TLOAD(shift, GlobalTensor(beta))
    for row in range(0, x.shape[0], ROWS):
        TLOAD(block, gx[row : row + ROWS, :])
        TROWSUM(mean, block, scratch)
        TRESHAPE(flat_mean, mean)  # arithmetic wants row-major tiles
        TMULS(flat_mean, flat_mean, 1.0 / COLS)
        TROWEXPANDSUB(block, block, mean)
        TMUL(square, block, block)
        TROWSUM(spread, square, scratch)
        TRESHAPE(flat_spread, spread)
        TMULS(flat_spread, flat_spread, 1.0 / COLS)
        TADDS(flat_spread, flat_spread, EPS)
        TSQRT(flat_spread, flat_spread)
        TROWEXPANDDIV(block, block, spread)
        TCOLEXPANDMUL(block, block, scale)
        TCOLEXPANDADD(block, block, shift)
        TSTORE(gy[row : row + ROWS, :], block)


def inputs(rng):
    x = rng.standard_normal((64, COLS)).astype(np.float32) * 2 + 1
    gamma, beta = rng.standard_normal((2, 1, COLS)).astype(np.float32)
    return x, gamma, beta, np.zeros_like(x)


def expected(x, gamma, beta, y):
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return (centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPS) * gamma + beta,)


CASES = [Case("layer norm", layer_norm, inputs, expected, rtol=1e-5)]

if __name__ == "__main__":
    main(CASES)
