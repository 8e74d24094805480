"""C++ kernels: what an instruction costs there, against the same one of a lowered Python kernel.

    python bench/cpp.py         goal: at most 1.1 times the lowered path

One kernel in both languages: the C++ is written by ptokit, compiled, and runs in a process of its
own. The cost of an instruction is the slope between a short and a long run over the same arrays;
what a launch costs beside, starting that process and bringing the arrays back, is told apart.
Rounds are interleaved; the best one counts. Time is that of the processor, in all processes: others
that run meanwhile make no difference.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from timeit import timeit
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from ptokit import *
from ptokit import cpp

ROUNDS = 9
SHORT, LONG = 16, 4016  # trips of the loop
GOAL = 1.1
TileT = Tile[TileType.Vec, float32, 16, 64]
PARTS = 8


@kernel(mode="manual")
def add(x, y, z, n):
    gx, gy, gz = GlobalTensor(x), GlobalTensor(y), GlobalTensor(z)
    a, b, c = TileT(), TileT(), TileT()
    TASSIGN[0x0000](a)
    TASSIGN[0x1000](b)
    TASSIGN[0x2000](c)
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
    for i in range(n):
        row = i % PARTS * 16
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        TLOAD(a, gx[row : row + 16, :])
        TLOAD(b, gy[row : row + 16, :])
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
        TADD(c, a, b)
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        TSTORE(gz[row : row + 16, :], c)
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)


PER_TRIP = 12  # instructions


def spent() -> float:
    """Seconds of the processor so far, here and in processes that have ended."""
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    x, y = np.random.default_rng(1).standard_normal((2, PARTS * 16, 64), np.float32)
    z = np.zeros_like(x)
    print(f"{'add, 12 instructions a trip':<28}{'python us':>10}{'c++ us':>10}{'ratio':>8}")
    with TemporaryDirectory() as folder:
        source = Path(folder) / "add.cpp"
        source.write_text(add.cpp(x, y, z, 1))
        compiled = cpp(source).add
        for name, check in (("checked", "full"), ("unchecked", False)):
            ways: dict[str, Callable[..., Any]] = {
                "python": lambda n, check=check: add[1](
                    x, y, z, n, path="lowered", check=check, engine="stepwise"
                ),
                "c++": lambda n, check=check: compiled[1](
                    x, y, z, n, check=check, engine="stepwise"
                ),
            }
            best = {(way, n): float("inf") for way in ways for n in (SHORT, LONG)}
            for _ in range(ROUNDS):
                for way, n in best:
                    started = spent()
                    ways[way](n)
                    best[way, n] = min(best[way, n], spent() - started)
            more = (LONG - SHORT) * PER_TRIP
            python, native = ((best[w, LONG] - best[w, SHORT]) / more * 1e6 for w in ways)
            ratio = native / python
            said = "met" if ratio <= GOAL else "MISSED"
            print(f"{name:<28}{python:>10.2f}{native:>10.2f}{ratio:>8.2f}  goal {GOAL}: {said}")
        compiled[1](x, y, z, LONG)  # from here on it is repeated
        times = [timeit(lambda: compiled[1](x, y, z, LONG), number=1) for _ in range(ROUNDS)]
        each = min(times) / (LONG * PER_TRIP) * 1e6
        print(f"{'repeated':<28}{'':>10}{each:>10.2f}   of the clock, with all of its launch")
        launches = " and ".join(f"{best[way, SHORT] * 1e3:.0f} ms ({way})" for way in ways)
        print(f"a launch of {SHORT} trips: {launches}")


if __name__ == "__main__":
    sys.exit(main())
