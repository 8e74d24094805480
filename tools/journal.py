"""Long runs over many files: in processes, within limits of time, and kept as they go.

A journal is a file of JSON lines. The first says what was asked, and of which sources; each of the
others is what came of one file. A run that was stopped is asked again with the same journal, and
goes on where it was; one of other sources, or with other options, begins anew.
"""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ptokit.tasks import Executor, Task, Work, followed

__all__ = ["Journal", "TimeUp", "apart", "followed", "limited"]

ROOT = Path(__file__).resolve().parent.parent

U = TypeVar("U")
V = TypeVar("V")


class Journal:
    """What came of files, by name, of this run and of those that it goes on with."""

    def __init__(self, path: Path | None, asked: object) -> None:
        self.known: dict[str, Any] = {}
        self._path = path
        if path is None:
            return
        head = json.dumps({"asked": repr(asked), "sources": _digest()})
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        if lines[:1] == [head]:
            self.known = dict(_entries(lines[1:]))
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [head, *(json.dumps(each) for each in self.known.items())]
        path.write_text("\n".join(kept) + "\n", "utf-8")

    def add(self, name: str, verdict: Any) -> None:
        """Keep what came of a file."""
        self.known[name] = verdict
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps((name, verdict)) + "\n")


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The lines that are whole: a run may be stopped in the middle of one."""
    for line in lines:
        try:
            name, verdict = json.loads(line)
        except ValueError:
            continue
        yield name, verdict


def _digest() -> str:
    """A number for the sources that verdicts depend on."""
    found = hashlib.sha256()
    for folder in ("src", "tools", "tests/models"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".hpp", ".h"):
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


class TimeUp(BaseException):
    """A step takes longer than it may; no handler of errors takes it for one of its own."""


@contextmanager
def limited(seconds: float, *, of_computing: bool = False) -> Generator[None, None, None]:
    """Raise TimeUp in the block after so many seconds; in the main thread of a process.

    Seconds of computing are the same on a busy machine; what waits for others takes none.
    """
    timer, number = (
        (signal.ITIMER_PROF, signal.SIGPROF)
        if of_computing
        else (signal.ITIMER_REAL, signal.SIGALRM)
    )

    def ring(*_: object) -> None:
        raise TimeUp

    before = signal.signal(number, ring)
    signal.setitimer(timer, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


def apart(
    units: Iterable[U],
    work: Callable[[U], V],
    lost: Callable[[U, str], V],
    jobs: int,
    share: int = 25,
) -> Iterator[V]:
    """What `work` says of every unit, as it comes, from `jobs` processes.

    A process has a share of the units. One that dies has `lost` the unit in hand; the rest of its
    share goes to another.
    """
    executor = Executor(jobs, retries=0, life=share, apart=True)
    for each in executor.results(Work(work), (Task(str(unit), unit) for unit in units)):
        if each.trouble is not None and each.trouble.error is None:
            yield lost(each.task.data, each.trouble.reason)
        else:
            yield each.get()
