"""Running what `ptokit check --run` is given: a text program, or an example with its cases."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ptokit.base.diagnostics import Diagnostic, PtoError, usage_error
from ptokit.cli.run import arguments
from ptokit.from_text import load
from ptokit.isa.targets import target


def run_checked(
    path: Path, targets: list[str], words: list[str], overrides: dict[str, int]
) -> list[Diagnostic]:
    """Run with all checkers on and return every complaint."""
    if path.suffix == ".py":
        return _run_example(path, targets, overrides)
    return _run_text(path, targets, words, overrides)


def _run_text(
    path: Path, targets: list[str], words: list[str], overrides: dict[str, int]
) -> list[Diagnostic]:
    program = load(path)
    kernel = program.entry()
    found: list[Diagnostic] = []
    for name in targets or [program.target().name]:
        chosen = target(name, overrides)
        try:
            kernel[1](*arguments(kernel, words), target=chosen)
        except PtoError as error:
            found += error.diagnostics
    return found


def _run_example(path: Path, targets: list[str], overrides: dict[str, int]) -> list[Diagnostic]:
    """Run the kernels of a Python file that lists them as `CASES`."""
    found: list[Diagnostic] = []
    for case in _cases(path):
        for name in targets or case.targets:
            if name not in case.targets:
                continue
            values = list(case.inputs(np.random.default_rng(7)))
            chosen = target(name, overrides)
            try:
                case.kernel[case.blocks](*values, target=chosen, **case.consts)
            except PtoError as error:
                found += error.diagnostics
    return found


def _cases(path: Path) -> list[Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.exists():
        raise usage_error("check.file", f"cannot read {path}")
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    cases = getattr(module, "CASES", None)
    if cases is None:
        raise usage_error(
            "check.cases",
            f"{path} has no list CASES",
            fix="see examples/harness.py for what a case is",
        )
    return list(cases)
