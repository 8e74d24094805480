"""How an example is run: on every target that has its instructions, on both paths, against NumPy.

An example file defines kernels and a list `CASES`. `python examples/softmax.py` runs one file,
`make examples` runs them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptokit import PtoError
from ptokit.kernels import Kernel

DEVICES = ("a2a3", "a5", "kirin9030", "kirinx90")
PATHS = ("eager", "lowered")


@dataclass(frozen=True)
class Case:
    """A kernel with inputs, and what NumPy says the outputs are."""

    name: str
    kernel: Kernel
    inputs: Callable[[np.random.Generator], Sequence[Any]]  # all arguments, outputs last
    expected: Callable[..., Sequence[np.ndarray]]  # from the inputs, one array per output
    outputs: int = 1
    rtol: float = 0.0  # 0: bit for bit
    targets: tuple[str, ...] = DEVICES
    blocks: int = 1
    paths: tuple[str, ...] = PATHS
    consts: dict[str, Any] = field(default_factory=dict)
    check: Callable[..., str] | None = None  # a further look at all arguments after the run

    def run(self, target: str, path: str) -> str:
        """Run once; returns what is wrong, or nothing."""
        arguments = list(self.inputs(np.random.default_rng(7)))
        wanted = self.expected(*arguments)
        try:
            self.kernel[self.blocks](*arguments, target=target, path=path, **self.consts)
        except PtoError as error:
            return str(error).strip()
        for index, (got, want) in enumerate(zip(arguments[-self.outputs :], wanted, strict=True)):
            a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
            scale = max(np.abs(b).max(), 1e-30)
            if np.abs(a - b).max() > self.rtol * scale:
                return f"output {index} differs by {np.abs(a - b).max() / scale:.2e} of its scale"
        return self.check(*arguments) if self.check else ""


def run_cases(cases: Sequence[Case], quiet: bool = False) -> tuple[int, int]:
    """Run all cases everywhere; returns how many passed and failed."""
    passed = failed = 0
    for case in cases:
        for target in case.targets:
            for path in case.paths:
                complaint = case.run(target, path)
                passed += not complaint
                failed += bool(complaint)
                if complaint or not quiet:
                    verdict = "ok" if not complaint else f"FAILED\n{complaint}"
                    print(f"{case.name:<34} {target:<10} {path:<8} {verdict}")
    return passed, failed


def main(cases: Sequence[Case]) -> None:
    """Entry point of a single example."""
    _, failed = run_cases(cases)
    sys.exit(1 if failed else 0)
