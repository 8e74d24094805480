"""Random calls with hostile arguments: whatever comes out is a diagnostic, or Python's own word."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fuzz.api import outcomes

# Beyond the first ones, calls that once leaked something of ours, each in a way of its own.
ONCE_WRONG = (1346, 1395, 1786, 2534, 2800, 2944, 3094, 3239, 3744, 3865, 4174, 4376, 5297, 5942)


def only_refusals(seeds: range) -> None:
    leaks = [f"seed {o.seed}: {o.kind}: {o.told}" for o in outcomes(seeds) if o.verdict == "leaked"]
    assert not leaks, "\n".join(leaks)


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_hostile_calls_are_refused(first: int) -> None:
    only_refusals(range(first, first + 250))


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_calls_that_once_leaked_are_refused(seed: int) -> None:
    only_refusals(range(seed, seed + 1))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 101_000, 1000))
def test_hostile_calls_are_refused_for_long(first: int) -> None:
    only_refusals(range(first, first + 1000))


def test_the_closing_line_counts() -> None:
    command = [sys.executable, "-m", "tests.fuzz.api", "--seeds", "0:20"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1].startswith("fuzz.api: 20 calls, seeds 0:20: ")
