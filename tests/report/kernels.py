"""Kernels that pages are made of."""

from __future__ import annotations

import numpy as np

from ptokit import *


def at(tile, address):
    TASSIGN(tile, address)
    return tile


@kernel(mode="manual")
def doubles(x, y, *, times):
    a, b = [at(Tile[TileType.Vec, float32, 16, 64](), place) for place in (0, 0x1000)]
    for _ in range(times):
        TLOAD(a, GlobalTensor(x))
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        TADD(b, a, a)
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(y), b)
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)


@kernel(mode="manual")
def races(x, y):
    a = at(Tile[TileType.Vec, float32, 16, 64](), 0)
    TLOAD(a, GlobalTensor(x))
    TADD(a, a, a)


def arrays():
    return np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
