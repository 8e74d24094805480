"""Long runs in pieces: what came of each is kept in a file, and a run that was stopped goes on.

The file begins with the state of the sources and the tools; the answers of another state are
forgotten. A piece is known by its name, or by the function that does it and its arguments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "examples", "tools", "tests/fuzz")
T = TypeVar("T")


def state(folders: Iterable[str] = FOLDERS) -> str:
    """A name for all that lies in some folders of the project, as it is now."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pto", ".txt", ".json"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Pieces(Generic[T]):
    """Answers of pieces, each a list of dataclasses of text that `make` makes again."""

    def __init__(self, file: Path | None, make: Callable[..., T]) -> None:
        self._file, self._make = file, make
        self._known: dict[str, list[T]] = {}
        if file is None:
            return
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        if not lines or json.loads(lines[0]) != state():
            file.write_text(json.dumps(state()) + "\n", "utf-8")
            return
        for line in lines[1:]:
            key, found = json.loads(line)
            self._known[key] = [make(**each) for each in found]

    def submit(
        self, pool: Executor, work: Callable[..., list[T]], *given: Any
    ) -> Callable[[], list[T]]:
        """Have a piece done, unless it has been: what waits for its answer."""
        key = _key(work, given)
        if key in self._known:
            return partial(self._known.__getitem__, key)
        future = pool.submit(work, *given)
        future.add_done_callback(partial(self._done, key))
        return future.result

    def do(self, name: str, work: Callable[[], list[T]]) -> list[T]:
        """Do a piece here, unless one of this name has been done."""
        if name not in self._known:
            self._keep(name, work())
        return self._known[name]

    def _done(self, key: str, future: Future[list[T]]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._keep(key, future.result())

    def _keep(self, key: str, found: list[T]) -> None:
        self._known[key] = found
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as kept:
                kept.write(json.dumps([key, [vars(each) for each in found]]) + "\n")


def _key(work: Callable[..., Any], given: Iterable[Any]) -> str:
    words = (each.name if isinstance(each, Path) else str(each) for each in given)
    return " ".join((work.__name__, *words))
