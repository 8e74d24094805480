"""Fitting: a figure that is left out is predicted from the others."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from fitting import Figure, left_out, solve

from ptokit.timing.params import Params, load


def figure(rows: int, us: float, what: str = "us") -> Figure:
    return Figure("k", (("rows", rows),), what, us, 1)


def error(params: Params, known: list[Figure]) -> np.ndarray:
    """A kernel whose time is a start and a step a row, in percent."""
    start, step = params["scalar.issue"], params["scalar.order"]
    return np.array([100 * ((start + step * dict(f.size)["rows"]) / f.value - 1) for f in known])


def refit(known: list[Figure]) -> Params:
    return solve(
        load("a2a3"), [("scalar.issue",), ("scalar.order",)], lambda p: error(p, known), 60
    )


def test_what_follows_the_law_is_predicted_when_it_is_left_out() -> None:
    known = [figure(rows, 12 + 5 * rows) for rows in (1, 10, 100, 1000)]
    found = left_out(known, refit, error)
    assert len(found) == 4
    assert all(abs(each) < 1 for each in list(found.values())[1:])


def test_what_does_not_is_seen_only_when_it_is_left_out() -> None:
    known = [figure(1, 17), figure(10, 62), figure(100, 1024)]  # the last takes twice as long
    found = left_out(known, refit, error)
    assert found["k rows=100 us"] == pytest.approx(-50, abs=4)


def test_a_single_run_cannot_be_left_out() -> None:
    alone = [figure(10, 62), figure(10, 50, "load")]
    assert left_out(alone, refit, error) == {"k rows=10 us": None}
