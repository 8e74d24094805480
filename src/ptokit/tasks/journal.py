"""What came of tasks, kept as it comes: a run that was stopped goes on where it was.

A journal is a file of JSON lines. The first says what was asked; each of the others is a name with
a value. One that was kept for something else begins anew. In memory there is a number and a place
in the file for each line of an earlier run, and nothing of this one.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ptokit.base.cache import cache_folder
from ptokit.base.plain import plain, typed


def digest(asked: object, folders: Iterable[Path] = (Path(__file__).parent.parent,)) -> str:
    """A name for what was asked of the sources in some folders, as they are; else of our own."""
    found = hashlib.sha256(repr(asked).encode())
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            seen = path.stat()
            found.update(repr((str(path), seen.st_size, seen.st_mtime_ns)).encode())
    return found.hexdigest()[:16]


class Journal:
    """Values of a type, by name."""

    def __init__(self, path: Path, asked: str, kind: Any = None, *, resume: bool = True) -> None:
        self.path, self._kind = path, kind
        self._numbers, self._places = np.empty(0, np.uint64), np.empty(0, np.int64)
        head = (json.dumps({"asked": asked}) + "\n").encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        end = self._index(head) if resume and path.is_file() else 0
        self._file = path.open("r+b" if end else "w+b")
        self._file.truncate(end)  # a run may be stopped in the middle of a line
        self._file.seek(end)
        if not end:
            self._file.write(head)
            self._file.flush()

    @staticmethod
    def of(asked: object, kind: Any, *, resume: bool) -> Journal:
        """The one of a question to our own sources, in the folder where such things are kept."""
        name = digest(asked)
        return Journal(cache_folder() / "journals" / f"{name}.jsonl", name, kind, resume=resume)

    @property
    def count(self) -> int:
        """How many values an earlier run has left."""
        return len(self._numbers)

    def known(self, name: str) -> tuple[Any] | None:
        """The value that an earlier run has left for a name, where there is one."""
        number = np.uint64(_number(name))
        first, last = (int(np.searchsorted(self._numbers, number, s)) for s in ("left", "right"))
        here = self._file.tell()
        try:
            for place in self._places[first:last]:
                self._file.seek(int(place))
                found, value = json.loads(self._file.readline())
                if found == name:
                    return (typed(self._kind, value),)
        finally:
            if first < last:
                self._file.seek(here)
        return None

    def add(self, name: str, value: Any) -> None:
        """Keep a value."""
        self._file.write((json.dumps((name, plain(value))) + "\n").encode())
        self._file.flush()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """All names and values, also those of this run."""
        with self.path.open("rb") as file:
            file.readline()
            for line in file:
                name, value = json.loads(line)
                yield name, typed(self._kind, value)

    def close(self) -> None:
        """Let go of the file, which stays."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Let go of the file; it is gone where all was done, and nobody will go on with it."""
        self.close()
        if kind is None:
            self.path.unlink(missing_ok=True)

    def _index(self, head: bytes) -> int:
        """Note where which name is; gives back where the last whole line ends."""
        numbers, places = array("Q"), array("q")
        with self.path.open("rb") as file:
            end = len(head)
            if file.readline() != head:
                return 0
            for line in file:
                try:
                    name, _ = json.loads(line) if line.endswith(b"\n") else ("", None)
                except ValueError:
                    name = ""
                if not name:
                    break
                numbers.append(_number(name))
                places.append(end)
                end += len(line)
        order = np.argsort(np.array(numbers, np.uint64), kind="stable")
        self._numbers = np.array(numbers, np.uint64)[order]
        self._places = np.array(places, np.int64)[order]
        return end


def _number(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
