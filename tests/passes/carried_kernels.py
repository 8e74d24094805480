"""Kernels whose loops hand tiles from round to round."""

from __future__ import annotations

from typing import Any

from ptokit import *

T = Tile[TileType.Vec, float32, 8, 32]
Loose = Tile[TileType.Vec, float32, 8, 32, BLayout.RowMajor, DYNAMIC, DYNAMIC]


def part(x: Any, number: Any) -> Any:
    block = GlobalTensor[float32, Shape[1, 1, 1, 8, 32], Stride[256, 256, 256, 32, 1]]
    return block(ptr(x, number * 256))


@kernel(mode="auto")
def neighbours(x: Any, y: Any, n: int) -> None:
    """Sums of neighbours: every round needs the tile that the last one made."""
    before = T()
    TLOAD(before, part(x, 0))
    for i in range(n):
        here = T()
        TLOAD(here, part(x, i + 1))
        total = T()
        TADD(total, before, here)
        TSTORE(part(y, i), total)
        before = here


@kernel(mode="auto")
def fibonacci(x: Any, y: Any, n: int) -> None:
    """A tile lives for two rounds after its own."""
    a, b = T(), T()
    TLOAD(a, part(x, 0))
    TLOAD(b, part(x, 1))
    i = 0
    while i < n:
        total = T()
        TADD(total, a, b)
        TSTORE(part(y, i), total)
        a = b
        b = total
        i = i + 1


@kernel(mode="auto")
def nested(x: Any, y: Any, n: int) -> None:
    """A tile made in the inner loop is still in use in the next round of the outer one."""
    a = T()
    TLOAD(a, part(x, 0))
    for j in range(n):
        b = T()
        TLOAD(b, part(x, j))
        for _ in range(2):
            total = T()
            TADD(total, a, b)
            b = total
        TSTORE(part(y, j), a)
        a = b


@kernel(mode="auto")
def no_round(x: Any, y: Any, n: int) -> None:
    """A loop that may make no round leaves the tile as it was."""
    a, b = T(), T()
    TLOAD(a, part(x, 0))
    TLOAD(b, part(x, 1))
    chosen = a
    for i in range(n):
        c = T()
        TLOAD(c, part(x, i))
        TADD(b, b, c)
        chosen = b
    d = T()
    TLOAD(d, part(x, 2))
    TADD(d, d, chosen)
    TSTORE(part(y, 0), d)


@kernel(mode="auto")
def loaded_once(x: Any, y: Any, n: int) -> None:
    """A tile that the first round fills and all others read, behind one needed for a moment."""
    first = T()
    for i in range(n):
        here = T()
        TLOAD(here, part(x, i))
        TSTORE(part(y, i), here)
        if i == 0:
            TLOAD(first, part(x, 9))
        total = T()
        TADDS(total, first, 1.0)
        TSTORE(part(y, i + 1), total)


@kernel(mode="auto")
def kept(x: Any, y: Any, n: int) -> None:
    """A tile that no number of rounds bounds."""
    best = T()
    TLOAD(best, part(x, 0))
    for i in range(n):
        here = T()
        TLOAD(here, part(x, i + 1))
        if i == 2:
            best = here
        TADD(here, here, best)
    TSTORE(part(y, 0), best)


@kernel(mode="auto")
def sized(x: Any, y: Any, n: int) -> None:
    """A tile whose valid rows differ from round to round."""
    before = Loose(8, 32)
    TLOAD(before, part(x, 0))
    for i in range(n):
        here = Loose(i + 1, 32)
        TLOAD(here, part(x, i + 1))
        TSTORE(part(y, i), before)
        before = here


@kernel(mode="auto")
def in_step(x: Any, y: Any, n: int) -> None:
    """Every vector instruction walks through its tiles as the one before it does."""
    a, b = T(), T()
    TLOAD(a, part(x, 0))
    for _ in range(n):
        TADDS(a, a, 1.0)
        TADD(b, a, a)
        TEXP(a, b)
    TSTORE(part(y, 0), a)


@kernel(mode="auto")
def out_of_step(x: Any, y: Any) -> None:
    """The sum of a row needs all of it."""
    a, b, sums = T(), T(), Tile[TileType.Vec, float32, 8, 8, BLayout.RowMajor, 8, 1]()
    TLOAD(a, part(x, 0))
    TADDS(b, a, 1.0)
    TROWSUM(sums, b, a)
    TSTORE(GlobalTensor(y), b)
