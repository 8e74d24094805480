"""Journals, and what they hold."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptokit.base.diagnostics import Diagnostic, Note
from ptokit.base.evidence import Accessed, Evidence, Part
from ptokit.base.location import Location
from ptokit.base.plain import plain, typed
from ptokit.folders.runs import Outcome, Status
from ptokit.tasks import Journal


def kept(path: Path, asked: str = "", kind: Any = None) -> closing[Journal]:
    return closing(Journal(path, asked, kind))


def test_a_journal_is_for_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "some" / "journal.jsonl"
    with kept(path, "this") as journal:
        journal.add("one", {"x": 1})
    with path.open("a") as file:
        file.write('["two", {"x"')  # the run was stopped here
    with kept(path, "this") as journal:
        assert (journal.count, journal.known("one")) == (1, ({"x": 1},))
        assert journal.known("two") is None
        journal.add("two", [2])
    with kept(path, "this") as journal:
        assert dict(journal) == {"one": {"x": 1}, "two": [2]}
    with kept(path, "that") as journal:
        assert journal.count == 0
    with kept(path, "this") as journal:
        assert journal.count == 0


def test_a_journal_begins_anew_unless_it_is_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with kept(path) as journal:
        journal.add("one", 1)
    with closing(Journal(path, "", resume=False)) as journal:
        assert journal.known("one") is None


def test_a_journal_goes_when_all_is_done(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with suppress(KeyboardInterrupt), Journal(path, "") as journal:
        journal.add("one", 1)
        raise KeyboardInterrupt
    with Journal(path, "") as journal:
        assert journal.known("one") == (1,)
    assert not path.exists()


def test_what_one_run_adds_does_not_disturb_what_it_looks_up(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with kept(path) as journal:
        for number in range(50):
            journal.add(f"n {number}", number)
    with kept(path) as journal:
        for number in range(60):
            known = journal.known(f"n {number}")
            assert known == ((number,) if number < 50 else None)
            journal.add(f"m {number}", -number)
    with kept(path) as journal:
        assert len(list(journal)) == 110


AT = Location("k.py", 3, 4, origin=Location("l.py", 1), callers=(Location("m.py", 9),))
FOUND = Diagnostic(
    "E8", "a race", AT, (("a", "b"),), notes=(Note("n", AT), Note("o")),
    evidence=Evidence(Accessed("TLOAD", "dst", "writes", "MTE2", "0", AT, Part((0, 1), (2, 3))),
                      Accessed("TADD", "src", "reads", "V", "0"), "ub", (0, 64), "x", free=(1, 2)),
)  # fmt: skip


@dataclass(frozen=True)
class Odd:
    path: Path
    numbers: dict[str, tuple[int, float]]
    anything: Any = None
    inner: tuple[Odd, ...] = ()
    words: list[str] = field(default_factory=list[str])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Diagnostic, FOUND),
        (tuple[int, Diagnostic | None], (3, FOUND)),
        (tuple[int, Diagnostic | None], (3, None)),
        (list[Outcome], [Outcome("p", "k", "a5", Status.DIFFERS, diagnostics=(FOUND,))]),
        (Odd, Odd(Path("x"), {"a": (1, 2.5)}, [1, "x"], (Odd(Path("y"), {}),), ["w"])),
    ],
)  # fmt: skip
def test_values_come_back_as_they_were(tmp_path: Path, kind: Any, value: Any) -> None:
    path = tmp_path / "journal.jsonl"
    with kept(path) as journal:
        journal.add("one", value)
    with kept(path, kind=kind) as journal:
        assert journal.known("one") == (value,)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_plain_data_stays_as_it_is(data: Any) -> None:
    assert plain(data) == data
    assert typed(Any, plain(data)) == data
