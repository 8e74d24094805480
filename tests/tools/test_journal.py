"""`tools/journal.py`: long runs in processes, within limits, that go on where they were."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.journal import Journal, TimeUp, apart, limited


def _dies_at(number: int) -> Callable[[int], int]:
    def work(unit: int) -> int:
        if unit == number:
            os._exit(7)
        return unit * unit

    return work


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("share", [1, 4, 100])
def test_a_process_that_dies_loses_one_unit(jobs: int, share: int) -> None:
    lost: list[tuple[int, str]] = []

    def keep(unit: int, why: str) -> int:
        lost.append((unit, why))
        return -1

    found = sorted(apart(range(10), _dies_at(5), keep, jobs, share))
    assert found == sorted([-1, *(n * n for n in range(10) if n != 5)])
    assert lost == [(5, "its process ended with code 7")]


def test_a_journal_is_for_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "some" / "journal.jsonl"
    Journal(path, "this").add("one", {"x": 1})
    assert Journal(path, "this").known == {"one": {"x": 1}}
    with path.open("a") as file:
        file.write('["two", {"x"')  # the run was stopped here
    again = Journal(path, "this")
    assert again.known == {"one": {"x": 1}}
    again.add("two", [2])
    assert Journal(path, "this").known == {"one": {"x": 1}, "two": [2]}
    assert Journal(path, "that").known == {}


def _endless() -> None:
    try:
        while True:
            sum(range(1000))
    except Exception:
        pytest.fail("a handler of errors has taken it for one")


@pytest.mark.parametrize("of_computing", [False, True])
def test_a_block_has_so_much_time(of_computing: bool) -> None:
    with pytest.raises(TimeUp), limited(0.02, of_computing=of_computing):
        _endless()
    with limited(0.02, of_computing=of_computing):
        pass
    begun = time.process_time()
    while time.process_time() < begun + 0.05:  # and no more rings
        pass
