"""Methods that are compiled once, for all classes and for the next process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Prints how many methods were compiled, and what they do.
_CODE = """
import sys
compiled = []
def heard(event, args):
    if event == "compile" and str(args[1]).startswith("<ptokit"):
        compiled.append(args[1])
sys.addaudithook(heard)
from ptokit.base.dataclass import dataclass
from ptokit.base.namedtuple import NamedTuple
@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
@dataclass(frozen=True)
class Other:
    left: int
    right: int
class Pair(NamedTuple):
    a: int
    b: int = 5
print(Point(1), Other(right=3, left=4), Point(1) == Point(1, 2), Pair(1), Pair.__new__.__qualname__)
print(len(compiled))
"""
_SAID = "Point(x=1, y=2) Other(left=4, right=3) True Pair(a=1, b=5) Pair.__new__"


def ran(cache: Path) -> tuple[str, int]:
    env = {**os.environ, "PTOKIT_CACHE": str(cache)}
    command = [sys.executable, "-c", _CODE]
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    said, count = out.stdout.splitlines()
    return said, int(count)


def file_of(cache: Path) -> Path:
    (found,) = (cache / "methods").iterdir()
    return found


def test_what_is_alike_is_compiled_once_and_kept(tmp_path: Path) -> None:
    # A constructor, what shows each class, one that compares, one of tuples.
    assert ran(tmp_path) == (_SAID, 5)
    assert ran(tmp_path) == (_SAID, 0)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-3],
        lambda content: content[: len(content) // 2] + b"?" + content[len(content) // 2 + 1 :],
        lambda content: b"",
        lambda content: b"nothing of ours",
        lambda content: content + b"\0" * 8,
        lambda content: content + b"ab",
    ],
    ids=["short", "changed", "empty", "foreign", "nothing", "end"],
)
def test_a_damaged_file_is_made_anew(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    ran(tmp_path)
    whole = file_of(tmp_path).read_bytes()
    file_of(tmp_path).write_bytes(damage(whole))
    assert ran(tmp_path) == (_SAID, 5)
    assert file_of(tmp_path).read_bytes() == whole
    assert ran(tmp_path) == (_SAID, 0)


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    (tmp_path / "methods").write_text("a file, where there should be a folder")
    assert ran(tmp_path) == (_SAID, 5)


def test_two_processes_may_write(tmp_path: Path) -> None:
    """What both have compiled is there twice, which does no harm."""
    ran(tmp_path)
    file = file_of(tmp_path)
    file.write_bytes(file.read_bytes() * 2)
    assert ran(tmp_path) == (_SAID, 0)
