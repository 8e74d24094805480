"""The architecture page names what is there, and instructions walk the way it tells."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.machine import entries, executor, fifo, machine, sync
from tests.support import listen

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(ptokit.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
QUOTED = sorted({each for line in PAGE.splitlines() for each in re.findall(r"`([^`]+)`", line)})
FILES = [q for q in QUOTED if re.fullmatch(r"[\w./]+\.(py|pyi|hpp|md)|[\w./]+/", q)]
DOTTED = [q for q in QUOTED if re.fullmatch(r"[A-Za-z]\w*\.[a-z]\w*", q) and q not in FILES]
CLASSES = [q for q in QUOTED if re.fullmatch(r"[A-Z][a-z]\w*", q)]


def defined() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The members of every class of the package, and the names of every module."""
    classes: dict[str, set[str]] = {}
    modules: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        modules.setdefault(path.stem, set()).update(_names(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
                       and isinstance(n.value, ast.Name) and n.value.id == "self"
                       and isinstance(n.ctx, ast.Store)}  # fmt: skip
                classes.setdefault(node.name, set()).update(_names(node) | own)
    return classes, modules


def _names(node: ast.Module | ast.ClassDef) -> set[str]:
    found: set[str] = set()
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            found.add(each.name)
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
        elif isinstance(each, ast.Assign):
            found |= {t.id for t in each.targets if isinstance(t, ast.Name)}
    return found


MEMBERS, MODULES = defined()


@pytest.mark.parametrize("name", FILES)
def test_files_are_there(name: str) -> None:
    """A path from the top or below the package; a bare name is some file of it."""
    known = [ROOT / name, PACKAGE / name, *PACKAGE.rglob(name.rstrip("/"))]
    assert any(each.exists() for each in known)


@pytest.mark.parametrize("name", DOTTED)
def test_members_are_there(name: str) -> None:
    owner, _, member = name.partition(".")
    assert member in MEMBERS.get(owner, set()) | MODULES.get(owner, set())


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_there(name: str) -> None:
    assert name in MEMBERS


def test_the_page_names_enough_to_be_wrong() -> None:
    assert (len(FILES) > 80, len(DOTTED) >= 10, len(CLASSES) > 15) == (True, True, True)


class Stops:
    """Which of the functions that the page names are called, in order."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        self._patch = patch

    def watch(self, owner: Any, *names: str) -> None:
        for name in names:
            word = f"{owner.__name__.rpartition('.')[2]}.{name}"
            self._patch.setattr(owner, name, self._noting(word, getattr(owner, name)))

    def _noting(self, word: str, function: Any) -> Any:
        def called(*args: Any, **named: Any) -> Any:
            self.seen.append(word)
            return function(*args, **named)

        return called


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> Stops:
    return Stops(monkeypatch)


@pytest.mark.parametrize("name", ["TLOAD", "TADD"])
def test_the_walk_of_an_instruction(name: str, stops: Stops) -> None:
    """The five stops; the second time nothing is verified and nothing laid out."""
    source, dest = (Tile[TileType.Vec, float32, 4, 16]() for _ in range(2))
    ones = GlobalTensor(np.ones((4, 16), np.float32))
    with device("a2a3", mode="auto") as here:
        TLOAD(source, ones)
        stops.watch(machine.Machine, "execute", "verified", "enqueue", "publish")
        stops.watch(executor, "cache_key", "Call")
        stops.watch(executor.FastExecutor, "execute")
        events = listen(here)
        rounds: list[list[str]] = []
        for _ in range(2):
            stops.seen.clear()
            TLOAD(dest, ones) if name == "TLOAD" else TADD(dest, source, source)
            rounds.append(list(dict.fromkeys(stops.seen)))
    done = ["Machine.enqueue", "FastExecutor.execute", "Machine.publish"]
    made = ["Machine.verified", "executor.Call"]
    assert rounds[0] == ["Machine.execute", "executor.cache_key", *made, *done]
    assert rounds[1] == ["Machine.execute", "executor.cache_key", *done]
    assert [event.insn.name for event in events] == [name, name]


def test_the_walk_of_a_push(stops: Stops) -> None:
    """It is ordered, not computed: its end moves the entry and tells the other, in one event."""
    ring = np.zeros(2 * 16 * 16, np.float32)
    with device("a2a3") as here:
        pipe = TPipe[0, Direction.DIR_C2V, 16 * 16 * 4, 2](ring, 0, 0)
        tile = TileAcc[float32, 16, 16]()
        TASSIGN(tile, 0)
        tile.fill(np.ones((16, 16), np.float32))
        stops.watch(executor, "order")
        stops.watch(fifo.End, "move")
        stops.watch(sync.Sync, "signal")
        stops.watch(entries, "push")
        events = listen(here)
        TPUSH(pipe, tile)
    assert stops.seen == ["executor.order", "End.move", "entries.push", "Sync.signal"]
    assert [each.insn.name for each in events] == ["TPUSH"]
