"""The kernels of the demo, written the way a user writes them.

All of them order their pipes; `racy` and `unprimed` are wrong in one place each, and say where.
"""

from __future__ import annotations

from typing import Any

from ptokit import *


@kernel
def add(x: Any, y: Any, z: Any) -> None:
    TileT = Tile[TileType.Vec, float32, 16, 64]
    a, b = TileT(), TileT()
    TASSIGN[0x0000](a)
    TASSIGN[0x1000](b)
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(y))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TADD(a, a, b)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(z), a)


@kernel(mode="auto")
def transpose(x: Any, y: Any, *, rows: int) -> None:
    src = Tile[TileType.Vec, float32, 16, 32]()
    dst = Tile[TileType.Vec, float32, 32, 16]()
    tmp = Tile[TileType.Vec, float32, rows, 16]()  # scratch
    TLOAD(src, GlobalTensor(x))
    TTRANS(dst, src, tmp)
    TSTORE(GlobalTensor(y), dst)


@kernel
def racy(x: Any, y: Any, z: Any) -> None:
    TileT = Tile[TileType.Vec, float32, 16, 64]
    a, b = TileT(), TileT()
    TASSIGN[0x0000](a)
    TASSIGN[0x1000](b)
    TLOAD(a, GlobalTensor(x))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TLOAD(b, GlobalTensor(y))  # behind the flag
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TADD(a, a, b)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(z), a)


@kernel
def unprimed(x: Any, z: Any) -> None:
    a = Tile[TileType.Vec, float32, 16, 64]()
    TASSIGN[0x0000](a)
    for i in range(2):
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)  # until a is free
        TLOAD(a, GlobalTensor(x)[i * 16 : i * 16 + 16, :])
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(z)[i * 16 : i * 16 + 16, :], a)
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)
