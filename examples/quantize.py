"""Quantise rows to int8 with one scale per row, and back; the error is at most half a step.

The step of a row is its largest magnitude over 127. TQUANT multiplies, so it takes 127 / largest;
TDEQUANT multiplies too, so it takes the step itself.

Teaches: TQUANT and TDEQUANT, parameters per row, one tile seen in two shapes, template arguments,
an overload chosen by a compile-time option.
"""

import numpy as np
from harness import Case, main

from ptokit import *

ROWS, COLS = 32, 128
Block = Tile[TileType.Vec, float32, ROWS, COLS]
Codes = Tile[TileType.Vec, int8, ROWS, COLS]
Column = Tile[TileType.Vec, float32, ROWS, 1, BLayout.ColMajor]
Flat = Tile[TileType.Vec, float32, 1, ROWS]  # a column as a row: the same bytes


@kernel(mode="auto")
def quantize(x, codes, back, *, with_scratch):
    gx, gcodes, gback = GlobalTensor(x), GlobalTensor(codes), GlobalTensor(back)
    block, scratch, magnitude, restored = Block(), Block(), Block(), Block()
    small = Codes()
    top, inverse, step, zero = Column(), Column(), Column(), Column()
    top_, inverse_, step_, zero_ = Flat(), Flat(), Flat(), Flat()
    TRESHAPE(top_, top)  # arithmetic wants row-major tiles
    TRESHAPE(inverse_, inverse)
    TRESHAPE(step_, step)
    TRESHAPE(zero_, zero)
    TEXPANDS(zero_, 0.0)  # symmetric: zero is zero
    for row in range(0, x.shape[0], ROWS):
        TLOAD(block, gx[row : row + ROWS, :])
        TABS(magnitude, block)
        TROWMAX(top, magnitude, scratch)
        TDIVS(inverse_, 127.0, top_)
        TMULS(step_, top_, 1.0 / 127.0)
        if with_scratch:  # A2/A3 works in place, and spreads the scales over a scratch tile
            TQUANT[QuantType.INT8_SYM](small, block, inverse, scratch)
        else:
            TQUANT[QuantType.INT8_SYM](small, block, inverse)
        TDEQUANT(restored, small, step, zero)
        TSTORE(gcodes[row : row + ROWS, :], small)
        TSTORE(gback[row : row + ROWS, :], restored)


def inputs(rng):
    x = rng.standard_normal((64, COLS)) * 10.0 ** rng.integers(-3, 4, (64, 1))
    x = x.astype(np.float32)
    return x, np.zeros(x.shape, np.int8), np.zeros_like(x)


def top_of(x):
    return np.abs(x).max(axis=1, keepdims=True)


def expected(x, codes, back):
    codes = np.rint(x * (np.float32(127) / top_of(x)))
    return codes, codes * (top_of(x) * np.float32(1 / 127))


def half_a_step(x, codes, back):
    """What quantising may cost: half a step of the row, and a rounding or two of f32."""
    worst = (np.abs(back - x) / (top_of(x) / 127)).max()
    return "" if worst <= 0.5 + 1e-4 else f"an element is {worst:.3f} steps off"


CASES = [  # Kirin X90 has no TDEQUANT
    Case(name, quantize, inputs, expected, outputs=2, rtol=1e-6, check=half_a_step,
         targets=targets, consts={"with_scratch": with_scratch})
    for name, targets, with_scratch in (
        ("quantise and back, with scratch", ("a2a3",), True),
        ("quantise and back", ("a5", "kirin9030"), False),
    )
]  # fmt: skip

if __name__ == "__main__":
    main(CASES)
