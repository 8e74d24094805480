"""Kernels that compute with values, as NumPy and Triton do, over the same instructions.

    from ptokit import *
    from ptokit.values import *

    @kernel(mode="auto")
    def softmax(x, y):
        for i in range(0, x.shape[0], 16):
            t = load(x[i : i + 16, :])
            e = exp(t - rowmax(t))
            store(y[i : i + 16, :], e / rowsum(e))

`softmax.text(x, y)` shows the instructions. Tiles and their memory, scratch tiles, columns and
broadcasts are found; calls of instructions may stand between (`Value(tile)`, `value.tile`).
"""

from ptokit.values.conv import im2col
from ptokit.values.fifo import free, pop, push, share
from ptokit.values.matrix import dot, stage
from ptokit.values.memory import load, store
from ptokit.values.scaled import scaled
from ptokit.values.value import (
    Value,
    absolute,
    colmax,
    colmin,
    colprod,
    colsum,
    exp,
    full,
    log,
    maximum,
    minimum,
    recip,
    relu,
    rowmax,
    rowmin,
    rowprod,
    rowsum,
    rsqrt,
    sqrt,
    where,
)

__all__ = [
    "Value", "load", "store", "stage", "dot", "im2col", "scaled", "full", "where",
    "push", "pop", "free", "share",
    "exp", "log", "sqrt", "rsqrt", "recip", "relu", "absolute", "maximum", "minimum",
    "rowsum", "rowmax", "rowmin", "rowprod", "colsum", "colmax", "colmin", "colprod",
]  # fmt: skip
