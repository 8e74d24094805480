"""One kernel, one verdict: random kernels through every door."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fuzz.doors import compared, doors, imported
from tests.fuzz.programs import HEADER, Program, kept_programs, random_program

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


LINES = {
    "TCVT(H(), tile)": ["eager", "lowered", "l2", "l3"],  # all run it
    "TADD(tile, I(), tile)": ["eager", "lowered", "l2", "l3"],  # all refuse it
    "TCVT(R(), tile)": ["eager", "lowered"],  # of another shape: texts have a rule against that
}


@pytest.mark.parametrize("line", LINES)
def test_rules_of_texts_alone_are_no_verdict(line: str, tmp_path: Path) -> None:
    body = f"""@kernel(mode="auto")
def k(x, y, n, ring):
    tile = T()
    TLOAD(tile, part(x, 0))
    {line}
    TSTORE(part(y, 0), tile)
"""
    source = HEADER.format(seed=0, mode="auto", number=1, mistake="") + body
    program = Program(0, source, "auto", "", 1)
    said = dict(doors(imported(program, tmp_path), program, "a2a3"))
    assert [door for door in said if door not in ("l1", "sync")] == LINES[line]
    assert not compared(program, tmp_path).differences
    assert said["eager"].accepted == ("TCVT" in line)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 2200, CHUNK))
def test_doors_agree_for_long(first: int, tmp_path: Path) -> None:
    agree(map(random_program, range(first, first + CHUNK)), tmp_path)
