"""Functions that run as they stand are repeated, too, unless somebody would notice."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import Kernel
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.replay import Replay

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

Square = Tile[TileType.Vec, float32, 16, 16]
READ, WRITE = os.pipe()
ADDED = 1.0


@dataclass
class Step:
    by: float


@kernel(mode="auto")
def added(x: Any, y: Any, n: int) -> None:
    """`n` rounds of adding what a global says."""
    t = Square()
    step = Step(ADDED)
    TLOAD(t, GlobalTensor(x))
    for _ in range(n):
        TADDS(t, t, step.by)
    TSTORE(GlobalTensor(y), t)


@kernel(mode="auto")
def telling(x: Any, y: Any) -> None:
    t = Square()
    os.write(WRITE, b".")
    TLOAD(t, GlobalTensor(x))
    TSTORE(GlobalTensor(y), t)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Replay]:
    """The repetitions that took place."""
    found: list[Replay] = []
    inner = Replay.play

    def play(self: Replay, *args: Any) -> bool:
        found.append(self)
        return inner(self, *args)

    monkeypatch.setattr(Replay, "play", play)
    return found


def arrays() -> tuple[Any, Any]:
    x = np.random.default_rng(3).standard_normal((16, 16)).astype(np.float32)
    return x, np.zeros_like(x)


def sum_of(launched: Kernel, n: int, **options: Any) -> float:
    x, y = arrays()
    launched[1](x, y, n, **options)
    found = np.unique(np.round(y - x, 3))
    assert len(found) == 1
    return float(found[0])


@pytest.mark.parametrize("target", ["a2a3", "a5", "cpu"])
@pytest.mark.parametrize("check", [True, False])
def test_a_function_is_repeated(target: str, check: bool, played: list[Replay]) -> None:
    fresh = Kernel(added.source)
    for n in (3, 3, 5, 5, 3):
        assert sum_of(fresh, n, target=target, check=check) == n
    assert len(played) == 3


def test_what_it_finds_outside_is_a_part_of_it(
    played: list[Replay], monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = Kernel(added.source)
    for by in (1.0, 1.0, 2.0, 2.0, 1.0):
        monkeypatch.setattr(sys.modules[__name__], "ADDED", by)
        assert sum_of(fresh, 2) == 2 * by
    assert len(played) == 3


def test_one_that_calls_other_code_runs_each_time(played: list[Replay]) -> None:
    """Nobody knows what that does: here, it writes to a pipe."""
    told: list[int] = []
    for _ in range(3):
        telling[1](*arrays())
        told.append(len(os.read(READ, 100)))
    assert told[1:] == [1, 1]
    assert not played


def test_one_that_is_debugged_runs_each_time(played: list[Replay]) -> None:
    fresh, before = Kernel(added.source), sys.gettrace()
    seen: list[str] = []
    for launch in range(3):
        if launch == 2:
            sys.settrace(lambda frame, *_: seen.append(frame.f_code.co_name))  # type: ignore
        try:
            sum_of(fresh, 1)
        finally:
            sys.settrace(before)
    assert "added" in seen
    assert len(played) == (before is None)


@pytest.mark.parametrize(
    "option",
    [
        {"engine": "stepwise"},
        {"events": True},
        {"check": "full"},
        {"seed": 3},
        {"max_steps": 1000},
        {"timing": True},
    ],
    ids=str,
)
def test_who_wants_to_see_the_steps_sees_them(option: Any, played: list[Replay]) -> None:
    fresh = Kernel(added.source)
    for _ in range(3):
        assert sum_of(fresh, 2, **option) == 2
    assert not played
