"""Every example, on every target that has its instructions, on both paths, against NumPy."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NOT_EXAMPLES = {"harness", "run_all"}
sys.path.insert(0, str(EXAMPLES))  # examples import their harness by its plain name

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in NOT_EXAMPLES)
RUNS = [
    pytest.param(case, target, path, id=f"{name}-{case.name.replace(' ', '_')}-{target}-{path}")
    for name in NAMES
    for case in importlib.import_module(name).CASES
    for target in case.targets
    for path in case.paths
]
MANY = 12  # cases of an example, of which each then takes one of its paths


def one_target_each() -> list[Any]:
    """Every case on its first target and both paths; of very many cases each on one, in turn."""
    found: list[Any] = []
    for name in NAMES:
        cases = importlib.import_module(name).CASES
        for n, case in enumerate(cases):
            # Not every other one: what differs between neighbours is to meet both paths.
            turn = n.bit_count() % len(case.paths)
            paths = case.paths if len(cases) <= MANY else case.paths[turn : turn + 1]
            on, words = case.targets[0], case.name.replace(" ", "_")
            found += [
                pytest.param(case, on, path, id=f"{name}-{words}-{on}-{path}") for path in paths
            ]
    return found


@pytest.mark.parametrize(("case", "target", "path"), RUNS)
def test_example(case: Any, target: str, path: str) -> None:
    assert case.run(target, path) == ""


@pytest.mark.parametrize("name", NAMES)
def test_example_says_what_it_teaches(name: str) -> None:
    assert "\nTeaches: " in (importlib.import_module(name).__doc__ or "")
