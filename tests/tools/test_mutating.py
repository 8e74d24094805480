"""The tool behind `make mutation`: it finds the changes it should, and names them stably."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''\
"""A module."""

BOUND = 7


def small(n: int, limit: int = 4) -> bool:
    """Whether it is."""
    if n is None:
        raise ValueError(f"{n + 1} is not a number")
    note(n)
    return n <= limit and n % 2 == 0


RULES = [lambda o: o.rows < 4096]
'''


@pytest.fixture(scope="module")
def run() -> Any:
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "tools"))
    yield importlib.import_module("mutation_run")
    sys.path[:] = before


@pytest.fixture(scope="module")
def tool(run: Any) -> Any:
    return sys.modules["mutating.changes"]


@pytest.fixture
def found(tool: Any, tmp_path: Path) -> list[Any]:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "module.py").write_text(SOURCE, "utf-8")
    return list(tool.all_changes(tmp_path, "part"))


def test_every_kind_of_change_is_found(found: list[Any]) -> None:
    pairs = {(c.was, c.now) for c in found}
    assert pairs == {
        ("n is None", "n is not None"),
        ("note(n)", "pass"),
        ("n <= limit", "n < limit"),
        ("n <= limit and n % 2 == 0", "n <= limit or n % 2 == 0"),
        ("n % 2 == 0", "n % 2 != 0"),
        ("n % 2", "n // 2"),
        ("2", "3"),
        ("0", "1"),
        ("o.rows < 4096", "o.rows <= 4096"),
        ("4096", "4097"),
    }, "not the words of an error, not a constant of the module"


def test_changed_sources_differ_in_that_place_only(found: list[Any]) -> None:
    for change in found:
        lines = zip(SOURCE.splitlines(), change.applied(SOURCE).splitlines(), strict=True)
        different = [i for i, (was, now) in enumerate(lines, 1) if was != now]
        assert different == [change.line], str(change)


def test_names_do_not_depend_on_what_stands_around(tool: Any, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(SOURCE, "utf-8")
    before = {c.key: c.rank for c in tool.changes(tmp_path, path)}
    path.write_text("def more(n):\n    return n > 3\n\n\n" + SOURCE, "utf-8")
    after = {c.key: c.rank for c in tool.changes(tmp_path, path)}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2


def test_a_folder_inside_another_is_a_part_of_its_own(tool: Any, tmp_path: Path) -> None:
    for folder in ("part", "part/inner"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").write_text(SOURCE, "utf-8")
    files = {c.file for c in tool.all_changes(tmp_path, "part", ("part/inner",))}
    assert files == {"part/module.py"}
    files |= {c.file for c in tool.all_changes(tmp_path, "part/inner")}
    assert files == {"part/module.py", "part/inner/module.py"}


def test_every_change_made_by_hand_has_its_place(run: Any) -> None:
    """What was moved or renamed would be changed no more, and nobody would notice."""
    assert run.stale_entries() == []
    known = {str(path.relative_to(run.PACKAGE)) for path in run.PACKAGE.rglob("*.py")}
    for file, _, was, now in run.BY_HAND:
        found = run.changes_by_hand(file, was, now)
        assert file in known
        assert all(run.compiles(run.PACKAGE, change) for change in found), (file, was, now)


def test_the_sample_is_of_every_part(run: Any) -> None:
    """As many as are asked for, each of which is a program."""
    for part, count in run.SAMPLE.items():
        drawn = [c for c in run.of_part(part) if c.key not in run.EQUIVALENT][:count]
        assert len(drawn) == count
        assert all(change.file.startswith(f"{part}/") for change in drawn)
    assert sum(run.SAMPLE.values()) >= 60


def test_tests_that_are_not_there_notice_nothing(run: Any) -> None:
    with pytest.raises(LookupError, match="no such tests"):
        run.failing(ROOT / "src", ["tests/tools/test_mutating.py::test_nothing_of_the_kind"])


def test_who_noticed_last_time_is_asked_only_if_it_passes_without_a_change(run: Any) -> None:
    here = "tests/tools/test_mutating.py"
    there = f"{here}::test_every_kind_of_change_is_found"
    asked = [there, f"{here}::test_nothing_of_the_kind", "tests/tools/test_gone.py::test_gone"]
    assert run.passing(ROOT / "src", asked) == {there}


def test_time_is_that_of_the_processor(run: Any, tmp_path: Path) -> None:
    """What else a machine does makes no change one that is noticed."""
    file = tmp_path / "test_time.py"
    file.write_text("import time\ndef test_waits(): time.sleep(4)\n", "utf-8")
    assert run.failing(ROOT / "src", [str(file)], limit=3) == ""
    file.write_text("def test_works():\n    while True: pass\n", "utf-8")
    assert run.failing(ROOT / "src", [str(file)], limit=3) == "no end"
