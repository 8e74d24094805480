"""GELU by its sigmoid form: x / (1 + exp(-1.702 x)).

Teaches: helper functions called from a kernel, constants that specialise it, several blocks.
"""

import numpy as np
from harness import Case, main

from ptokit import *

ROWS = 16


def gelu_tile(out, x):
    """A helper is ordinary Python: it is lowered into the kernel that calls it."""
    TMULS(out, x, -1.702)
    TEXP(out, out)
    TADDS(out, out, 1.0)
    TDIV(out, x, out)


@kernel(mode="auto")
def gelu(x, y, *, cols):
    TileT = Tile[TileType.Vec, float32, ROWS, cols]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, b = TileT(), TileT()
    row = get_block_idx() * ROWS  # each block takes its own rows
    TLOAD(a, gx[row : row + ROWS, :])
    gelu_tile(b, a)
    TSTORE(gy[row : row + ROWS, :], b)


def inputs(rng):
    x = rng.standard_normal((64, 128)).astype(np.float32) * 2
    return x, np.zeros_like(x)


def expected(x, y):
    x = x.astype(np.float64)
    return (x / (1 + np.exp(-1.702 * x)),)


CASES = [
    Case("gelu, four blocks", gelu, inputs, expected, rtol=1e-5, blocks=4, consts={"cols": 128})
]

if __name__ == "__main__":
    main(CASES)
