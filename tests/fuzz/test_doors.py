"""One kernel, one verdict: random kernels through every door."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fuzz.doors import outcome

CHUNK = 10
ONCE_WRONG = (368, 507, 656, 680, 2659)  # beyond the first two hundred, which are always looked at


def agree(seeds: Iterable[int], folder: Path) -> None:
    problems: list[str] = []
    for seed in seeds:
        found = outcome(seed, folder)
        if found.differences:
            problems += [f"seed {seed} on {found.target}:", *found.differences]
            problems.append(found.program.source)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_doors_agree(first: int, tmp_path: Path) -> None:
    agree(range(first, first + CHUNK), tmp_path)


def test_doors_agree_about_what_they_once_did_not(tmp_path: Path) -> None:
    agree(ONCE_WRONG, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 2200, CHUNK))
def test_doors_agree_for_long(first: int, tmp_path: Path) -> None:
    agree(range(first, first + CHUNK), tmp_path)
