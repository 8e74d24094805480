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


@pytest.mark.parametrize(("case", "target", "path"), RUNS)
def test_example(case: Any, target: str, path: str) -> None:
    assert case.run(target, path) == ""


@pytest.mark.parametrize("name", NAMES)
def test_example_says_what_it_teaches(name: str) -> None:
    assert "\nTeaches: " in (importlib.import_module(name).__doc__ or "")
