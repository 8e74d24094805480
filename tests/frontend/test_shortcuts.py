"""Launches that are recognised by their arguments: those that can only be a repetition."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import Kernel
from ptokit.engines.compiled.library import library
from ptokit.kernels import launch as launches
from ptokit.kernels.execution import Execution
from tests.hazards.test_verdicts import plus

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

Square = Tile[TileType.Vec, float32, 16, 16]


@kernel(mode="auto")
def scaled(x: Any, y: Any, factor: float, *, term: float = 0.5) -> None:
    t = Square()
    TLOAD(t, GlobalTensor(x))
    TMULS(t, t, factor)
    TADDS(t, t, term)
    TSTORE(GlobalTensor(y), t)


def square(kind: Any = np.float32) -> np.ndarray:
    return np.arange(256, dtype=kind).reshape(16, 16)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[Execution]:
    """The launches that were looked at closely."""
    found: list[Execution] = []

    def noted(*args: Any) -> Execution:
        found.append(Execution(*args))
        return found[-1]

    monkeypatch.setattr(launches, "Execution", noted)
    return found


def launch(kernel: Kernel, factor: Any = 2.0, **options: Any) -> Any:
    x, y = square(), np.zeros((16, 16), np.float32)
    kernel[1](x, y, factor, **options)
    return y


def warm() -> Kernel:
    """A kernel of which a launch is known."""
    fresh = Kernel(scaled.source)
    for _ in range(3):
        assert (launch(fresh) == square() * 2 + 0.5).all()
    return fresh


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_the_third_launch_is_recognised(path: str, walked: list[Execution]) -> None:
    fresh = Kernel(scaled.source)
    for _ in range(5):
        x, y = square(), np.zeros((16, 16), np.float32)
        run = fresh[1](x, y, 2.0, path=path)
        assert (run.path, run.mode, run.blocks, run.kernel) == (path, "auto", 1, "scaled")
        assert (y == x * 2 + 0.5).all()
    assert len(walked) == 2


OTHERS: dict[str, Callable[[Kernel], Any]] = {
    "number": lambda k: launch(k, 3.0),
    "type of a number": lambda k: launch(k, 2),
    "sign of zero": lambda k: [launch(k, 0.0), launch(k, 0.0), launch(k, 0.0), launch(k, -0.0)],
    "constant": lambda k: launch(k, term=1.5),
    "type of a constant": lambda k: [launch(k, term=t) for t in (1, 1, 1, True)],
    "target": lambda k: launch(k, target="a5"),
    "path": lambda k: launch(k, path="lowered"),
    "engine": lambda k: launch(k, engine="stepwise"),
    "check": lambda k: launch(k, check=False),
    "full check": lambda k: launch(k, check="full"),
    "events": lambda k: launch(k, events=True),
    "seed": lambda k: launch(k, seed=1),
    "budget": lambda k: launch(k, max_steps=1000),
    "rules": lambda k: launch(k, rules="strict"),
    "timing": lambda k: launch(k, timing=True),
    "blocks": lambda k: k[2](square(), square(), 2.0, check=False),
    "strides": lambda k: k[1](square().T, square(), 2.0),
    "one array": lambda k: k[1](*[square()] * 2, 2.0),
    "a tuple": lambda k: k[1]((square(),), square(), 2.0),
    "elements": lambda k: k[1](square(np.int32), square(), 2.0),
    "sizes": lambda k: k[1](square()[:8], square(), 2.0),
}


@pytest.mark.parametrize("what", OTHERS)
def test_whatever_differs_is_looked_at(what: str, walked: list[Execution]) -> None:
    known = warm()
    walked.clear()
    with suppress(PtoError):  # some cannot be launched
        OTHERS[what](known)
    assert len(walked) >= 1 + (what in ("sign of zero", "type of a constant")) * 2


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_zeros_of_both_signs_are_two_numbers(path: str) -> None:
    fresh = Kernel(scaled.source)
    for zero in (0.0, 0.0, 0.0, -0.0, -0.0, -0.0, 0.0):
        found = launch(fresh, zero, term=-0.0, path=path)
        assert (np.signbit(found) == np.signbit(zero)).all()


def test_read_only_results_are_refused_each_time(walked: list[Execution]) -> None:
    known, y = warm(), square()
    y.flags.writeable = False
    for _ in range(2):
        with pytest.raises(PtoError):
            known[1](square(), y, 2.0)


def test_overlapping_arrays_are_looked_at_each_time(walked: list[Execution]) -> None:
    known, memory = warm(), np.zeros(512, np.float32)
    x, y = memory[:256].reshape(16, 16), memory[128:384].reshape(16, 16)
    walked.clear()
    for _ in range(4):
        known[1](x, y, 2.0)
    assert len(walked) == 4


def test_a_debugger_sees_every_line(walked: list[Execution]) -> None:
    known, before = warm(), sys.gettrace()
    walked.clear()
    sys.settrace(lambda *_: None)
    try:
        launch(known)
    finally:
        sys.settrace(before)
    assert walked


def test_findings_are_told_again(walked: list[Execution]) -> None:
    fresh = Kernel(plus.source)
    told: list[Any] = []
    for _ in range(4):
        x, y = np.ones((32, 16), np.float32), np.zeros((32, 16), np.float32)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = fresh[2](x, y, 2, target="a2a3")
        told.append(([w.code for w in run.warnings], len(caught)))
    assert told == [(["E8"], 1)] * 4
    assert len(walked) == 2


def test_verdicts_that_are_forgotten_are_found_again(walked: list[Execution]) -> None:
    known = warm()
    walked.clear()
    known.programs.memory.forget_verdicts()
    launch(known)
    assert walked
