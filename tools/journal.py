"""Long runs over many files: in processes, within limits of time, and kept as they go.

A journal is a file of JSON lines. The first says what was asked, and of which sources; each of the
others is what came of one file. A run that was stopped is asked again with the same journal, and
goes on where it was; one of other sources, or with other options, begins anew.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeVar, cast

ROOT = Path(__file__).resolve().parent.parent
TELLS = 20.0  # seconds between two lines that say how far a run is

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
    context = multiprocessing.get_context("fork")
    waiting = list(units)
    running: dict[Any, tuple[list[U], Any]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                mine, waiting = waiting[:share], waiting[share:]
                ours, theirs = cast("tuple[Any, Any]", context.Pipe(duplex=False))
                process = context.Process(target=_share, args=(theirs, mine, work))
                process.start()
                theirs.close()
                running[ours] = mine, process
            for ours in cast("list[Any]", wait(list(running))):
                mine, process = running[ours]
                try:
                    said = ours.recv()
                except EOFError:
                    del running[ours]
                    process.join()
                    if mine:
                        yield lost(mine.pop(0), f"its process ended with code {process.exitcode}")
                        waiting = mine + waiting
                else:
                    mine.pop(0)
                    yield said
    finally:
        for _, process in running.values():
            process.kill()
            process.join()


def _share(to: Any, units: Sequence[U], work: Callable[[U], V]) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # kernels and host programs may print
    for unit in units:
        to.send(work(unit))


def followed(
    found: Iterable[V], title: str, total: int, known: int, is_bad: Callable[[V], bool]
) -> Iterator[V]:
    """The same, with a line now and then on standard error: how far it is, how many are bad."""
    start = told = time.monotonic()
    done, bad = known, 0
    for each in found:
        done, bad = done + 1, bad + is_bad(each)
        yield each
        now = time.monotonic()
        if now - told > TELLS or done == total:
            told = now
            rest = (now - start) / (done - known) * (total - done)
            print(
                f"{title}: {done} of {total}, {bad} of them not as they should; "
                f"{now - start:.0f} s, about {rest:.0f} s more",
                file=sys.stderr,
                flush=True,
            )
