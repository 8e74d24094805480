"""The checker against a second opinion on random programs; `make oracle` for thousands of them."""

from __future__ import annotations

from typing import Any

import pytest

from ptokit.machine.clocks import Clocks
from ptokit.machine.hazards import HazardLog
from tests.hazards.oracle import compare, expected, main, random_program

SEEDS = range(240)
SHARE = 40


@pytest.mark.parametrize("first", SEEDS[::SHARE])
def test_the_checker_says_what_the_oracle_says(first: int) -> None:
    for seed in range(first, first + SHARE):
        program, wrong = compare(seed)
        assert not wrong, program.source


def test_the_programs_are_of_all_kinds() -> None:
    programs = [random_program(seed) for seed in SEEDS]
    worst = [min((severity for _, severity in expected(p)), default="") for p in programs]
    assert {kind: worst.count(kind) >= 8 for kind in ("error", "warning", "")} == {
        "error": True,
        "warning": True,
        "": True,
    }
    assert sum(p.is_cluster for p in programs) > 30
    assert sum(p.is_world for p in programs) > 30
    assert sum(p.is_loop for p in programs) > 30
    text = "".join(p.source for p in programs)
    for what in ("TMATMUL_ACC", "TPOP", "number)", "TCOLEXPANDADD", "get_buf", "wait_flag_dev"):
        assert what in text


def test_a_program_follows_from_its_seed() -> None:
    assert random_program(7).source == random_program(7).source
    assert random_program(7).source != random_program(8).source


def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Barriers of one pipe complete nothing."""
    monkeypatch.setattr(Clocks, "barrier", lambda *_: None)


def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What two pipes do is never looked at."""
    monkeypatch.setattr(HazardLog, "_across", lambda *_: False)


@pytest.mark.parametrize(("how", "word"), [(forgetful, "false"), (blind, "missed")])
def test_a_checker_that_is_wrong_is_found_out(
    how: Any, word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    how(monkeypatch)
    assert main(["--seeds", "0:40"]) == 1
    assert word in capsys.readouterr().out


def test_the_closing_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3:6"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("oracle: 3 programs (")
    assert last.endswith("0 judged otherwise by the checker")
