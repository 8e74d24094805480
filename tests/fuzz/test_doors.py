"""One kernel, one verdict: random kernels through every door."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fuzz.doors import compared
from tests.fuzz.programs import Program, kept_programs, random_program

CHUNK = 10


def agree(programs: Iterable[Program], folder: Path) -> None:
    problems: list[str] = []
    for program in programs:
        found = compared(program, folder)
        if found.differences:
            problems += [f"seed {program.seed} on {found.target}:", *found.differences]
            problems.append(program.source)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_doors_agree(first: int, tmp_path: Path) -> None:
    agree(map(random_program, range(first, first + CHUNK)), tmp_path)


def test_doors_agree_about_what_they_once_did_not(tmp_path: Path) -> None:
    agree(kept_programs(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 2200, CHUNK))
def test_doors_agree_for_long(first: int, tmp_path: Path) -> None:
    agree(map(random_program, range(first, first + CHUNK)), tmp_path)
