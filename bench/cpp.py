"""C++ kernels: what an instruction costs there, against the same one of a lowered Python kernel.

    python bench/cpp.py         goal: at most 1.1 times the lowered path

One kernel in both languages: the C++ is written by ptokit, compiled, and runs in a process of its
own. The cost of an instruction is the slope between a short and a long run, so that starting that
process, and preparing either program, count for nothing. Rounds are interleaved; the best counts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

from vector_add import add_manual

from ptokit import cpp
from ptokit.kernels import Kernel

ROUNDS = 7
SHORT, LONG = 64, 4096  # trips of the loop
GOAL = 1.1


def measure(kernel: Kernel, rows: int, cols: int, arguments: int, folder: Path) -> None:
    """Print what an instruction of a kernel costs in both languages."""

    def arrays(trips: int) -> list[Any]:
        rng = np.random.default_rng(1)
        *read, _ = (rng.standard_normal((trips * rows, cols), np.float32) for _ in range(arguments))
        return [*read, np.zeros((trips * rows, cols), np.float32)]

    given = {trips: arrays(trips) for trips in (SHORT, LONG)}
    compiled = {}
    for trips, args in given.items():
        source = folder / f"{kernel.name}_{trips}.cpp"
        source.write_text(kernel.cpp(*args))
        compiled[trips] = cpp(source)[kernel.name]
    runs = {n: kernel[1](*args, path="lowered", events=True) for n, args in given.items()}
    count = {n: sum(1 for _ in run.events or ()) for n, run in runs.items()}
    for check in ("full", False):
        ways: dict[str, Callable[..., Any]] = {
            "python": lambda n, check=check: kernel[1](*given[n], path="lowered", check=check),
            "c++": lambda n, check=check: compiled[n][1](*given[n], check=check),
        }
        best = {(way, n): float("inf") for way in ways for n in given}
        for _ in range(ROUNDS):
            for way, n in best:
                started = time.perf_counter()
                ways[way](n)
                best[way, n] = min(best[way, n], time.perf_counter() - started)
        cost = {
            way: (best[way, LONG] - best[way, SHORT]) / (count[LONG] - count[SHORT]) * 1e6
            for way in ways
        }
        ratio = cost["c++"] / cost["python"]
        said = "met" if ratio <= GOAL else "MISSED"
        name = f"{kernel.name}, {'checked' if check else 'unchecked'}"
        print(f"{name:<28}{cost['python']:>10.2f}{cost['c++']:>10.2f}{ratio:>8.2f}  {said}")


def main() -> None:
    print(f"{'kernel':<28}{'python us':>10}{'c++ us':>10}{'ratio':>8}  goal {GOAL}")
    with TemporaryDirectory() as folder:
        measure(add_manual, 16, 64, 3, Path(folder))


if __name__ == "__main__":
    main()
