"""The kernels of the demo, written the way a user writes them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptokit import *


@dataclass(frozen=True)
class Shown:
    """What the demo shows of one kernel."""

    title: str
    source: str
    result: Any
    expected: Any
    tiles: dict[str, Any]
    mistake_text: str
    mistake: Callable[[], object]


def _body(kernel: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(kernel)).rstrip()


# ---- vector add --------------------------------------------------------------------------------


def add_kernel(x: Any, y: Any, z: Any) -> dict[str, Any]:
    TileT = Tile[TileType.Vec, float32, 16, 64]
    a, b, c = TileT(), TileT(), TileT()
    TASSIGN[0x0000](a)
    TASSIGN[0x1000](b)
    TASSIGN[0x2000](c)
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(y))
    TADD(c, a, b)
    TSTORE(GlobalTensor(z), c)
    return {"a": a, "b": b, "c": c}


def vector_add() -> Shown:
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 16, 64), np.float32)
    z = np.zeros_like(x)
    tiles = add_kernel(x, y, z)

    def mistake() -> None:
        big = Tile[TileType.Vec, float32, 256, 256]()
        TASSIGN[0x0](big)

    text = "a tile of 256 KB in a unified buffer of 192 KB"
    return Shown("vector add", _body(add_kernel), z, x + y, tiles, text, mistake)


# ---- transpose ---------------------------------------------------------------------------------


def transpose_kernel(x: Any, y: Any) -> dict[str, Any]:
    src = Tile[TileType.Vec, float16, 32, 64]()
    dst = Tile[TileType.Vec, float16, 64, 32]()
    tmp = Tile[TileType.Vec, float16, 64, 32]()
    TASSIGN[0x0000](src)
    TASSIGN[0x1000](dst)
    TASSIGN[0x2000](tmp)
    TLOAD(src, GlobalTensor(x))
    TTRANS(dst, src, tmp)
    TSTORE(GlobalTensor(y), dst)
    return {"src": src, "dst": dst, "tmp": tmp}


def transpose() -> Shown:
    x = np.arange(32 * 64, dtype=np.float16).reshape(32, 64)
    y = np.zeros((64, 32), np.float16)
    tiles = transpose_kernel(x, y)

    def mistake() -> None:
        TADD(tiles["dst"], tiles["dst"], tiles["tmp"])

    text = "TTRANS leaves its scratch tile undefined; adding it reads bytes nothing wrote"
    return Shown("transpose", _body(transpose_kernel), y, x.T, tiles, text, mistake)


# ---- matmul ------------------------------------------------------------------------------------


def matmul_kernel(x: Any, y: Any, z: Any) -> dict[str, Any]:
    NZ = (BLayout.ColMajor, 64, 64, SLayout.RowMajor)
    a_l1, b_l1 = Tile[TileType.Mat, half, 64, 64, *NZ](), Tile[TileType.Mat, half, 64, 64, *NZ]()
    a, b = TileLeft[half, 64, 64](), TileRight[half, 64, 64]()
    acc = TileAcc[float32, 64, 64]()
    TASSIGN[0x0000](a_l1)
    TASSIGN[0x2000](b_l1)
    TASSIGN[0x0000](a)
    TASSIGN[0x0000](b)
    TASSIGN[0x0000](acc)
    TLOAD(a_l1, GlobalTensor(x))
    TLOAD(b_l1, GlobalTensor(y))
    TMOV(a, a_l1)
    TMOV(b, b_l1)
    TMATMUL(acc, a, b)
    TSTORE(GlobalTensor(z), acc)
    return {"a_l1": a_l1, "b_l1": b_l1, "a": a, "b": b, "acc": acc}


def matmul() -> Shown:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((2, 64, 64))).astype(np.float16)
    z = np.zeros((64, 64), np.float32)
    tiles = matmul_kernel(x, y, z)

    def mistake() -> None:
        TMATMUL(tiles["acc"], tiles["b"], tiles["a"])

    text = "the operands exchanged: Right where Left belongs"
    expected = x.astype("f4") @ y.astype("f4")
    return Shown("matmul", _body(matmul_kernel), z, expected, tiles, text, mistake)
