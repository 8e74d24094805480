"""Kernels in the style of values against the same kernels written with tiles: repeated launches.

    python bench/values.py           print the table; exit code 1 where values cost more than 5 %

Both are given the same arrays on one thread, in interleaved rounds; the best call counts. Where one
style seems to cost more, both are given more rounds: others may have used the machine. What is
measured is the repetition as compiled code, on the path of the case and its first target: after
launches that were checked, `check=False`, for two vector cores that write one entry are compared
byte by byte at every other launch, step by step.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import value_style
from harness import Case

from ptokit import PtoWarning

ROUNDS, LEAST, CALLS = 7, 0.02, 8  # rounds, the seconds of each, the calls at least
AGAIN = 5  # as many rounds at most, as often
MOST = 1.05  # times as long as tiles


def seconds(case: Case, kernel: Any, arguments: list[Any]) -> float:
    """The best of some launches, which are repetitions from the third on."""
    launch = kernel[case.blocks]
    best, end, calls = float("inf"), time.perf_counter() + LEAST, 0
    while time.perf_counter() < end or calls < CALLS:
        calls += 1
        started = time.perf_counter()
        launch(*arguments, target=case.targets[0], path="lowered", check=False, **case.consts)
        best = min(best, time.perf_counter() - started)
    return best


def compared(case: Case, values: Any) -> tuple[float, float]:
    """Microseconds with tiles and with values."""
    best = {case.kernel: float("inf"), values: float("inf")}
    arguments = list(case.inputs(np.random.default_rng(7)))
    for kernel in best:
        for _ in range(3):
            kernel[case.blocks](*arguments, target=case.targets[0], path="lowered", **case.consts)
    for _ in range(AGAIN):
        for _ in range(ROUNDS):
            for kernel in best:
                best[kernel] = min(best[kernel], seconds(case, kernel, arguments))
        if best[values] <= best[case.kernel] * MOST:
            break
    return best[case.kernel] * 1e6, best[values] * 1e6


def main() -> int:
    """Print the table."""
    warnings.simplefilter("ignore", PtoWarning)  # what they do is told by their examples
    worst = 0.0
    print(f"{'kernel':<34} {'tiles us':>10} {'values us':>10} {'ratio':>7}")
    for kernel, found in value_style.HERE.items():
        for case in found if isinstance(found, list) else [found]:
            tiles, values = compared(case, kernel)
            worst = max(worst, values / tiles)
            print(f"{case.name:<34} {tiles:>10.1f} {values:>10.1f} {values / tiles:>7.3f}")
    print(f"worst {worst:.3f}, at most {MOST}")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
