"""One kernel, one verdict: random kernels through every door."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.doors import outcome

CHUNK = 10


def agree(first: int, folder: Path) -> None:
    problems: list[str] = []
    for seed in range(first, first + CHUNK):
        found = outcome(seed, folder)
        if found.differences:
            problems += [f"seed {seed} on {found.target}:", *found.differences]
            problems.append(found.program.source)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_doors_agree(first: int, tmp_path: Path) -> None:
    agree(first, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 2200, CHUNK))
def test_doors_agree_for_long(first: int, tmp_path: Path) -> None:
    agree(first, tmp_path)
