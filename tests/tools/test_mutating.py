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
def tool() -> Any:
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "tools"))
    yield importlib.import_module("mutating.changes")
    sys.path[:] = before


@pytest.fixture
def found(tool: Any, tmp_path: Path) -> list[Any]:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "module.py").write_text(SOURCE, "utf-8")
    return list(tool.all_changes(tmp_path, ("part",)))


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
