"""Choosing addresses: few tiles and many are placed alike, as tightly as trying all holes does."""

from __future__ import annotations

import random

import pytest

from ptokit.ir.core import Op
from ptokit.passes.liveness import Live
from ptokit.passes.place import Busy, BusyArrays, Memory


def smallest_hole(taken: list[tuple[int, int, int, int]], live: Live, size: int, align: int) -> int:
    """By trying every address."""
    bytes_ = {b for start, stop, a, z in taken if a <= live.stop and z >= live.start
              for b in range(start, -(-stop // align) * align)}  # fmt: skip
    end = -(-max(bytes_, default=-1) // align) * align + align
    holes: list[tuple[int, int]] = []
    at = 0
    while at < end:
        if at in bytes_:
            at += align
            continue
        last = at
        while last < end and last not in bytes_:
            last += 1
        if last - at >= size and last < end:
            holes.append((last - at, at))
        at = -(-last // align) * align if last > at else at + align
    return min(holes)[1] if holes else max((b + 1 for b in bytes_), default=0)


@pytest.mark.parametrize("seed", range(60))
def test_the_smallest_hole_is_taken(seed: int) -> None:
    rng = random.Random(seed)
    align = rng.choice((1, 4, 32))
    fixed = [(8 * align, 11 * align), (30 * align, 31 * align)][: rng.randrange(3)]
    memory = Memory("UB", 1 << 20, align, tuple(fixed))
    few, many = Busy(memory), BusyArrays(memory, 40)
    taken = [(start, stop, 0, 1 << 62) for start, stop in fixed]
    for _ in range(40):
        born = rng.randrange(30)
        live = Live(Op("tile"), born, born + rng.randrange(12))
        size = align * rng.randint(1, 6)
        wanted = smallest_hole(taken, live, size, align)
        assert few.hole(live, size) == many.hole(live, size) == wanted
        few.add(live, wanted, size)
        many.add(live, wanted, size)
        taken.append((wanted, wanted + size, live.start, live.stop))
