"""Do the tests notice when the package changes its mind? `make mutation`.

A sample of semantic changes - an operator, a constant, a condition, a statement - is made to the
sources, one at a time, and the tests that run the changed block are run against it: the one that
noticed last time (tools/mutating/killers.json), then some, and all of them before it counts as one
that nobody notices. Such a change is a hole in the tests, unless it is listed as changing nothing,
with a reason (tools/mutating/equivalent.py). Who noticed is written down as the run goes on, so
that one that was stopped, or is repeated, is short.

    python tools/mutation_run.py [--only PART] [--more N] [--jobs 2] [--show]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mutating.by_hand import BY_HAND
from mutating.changes import Change, all_changes, compiles
from mutating.equivalent import EQUIVALENT
from mutating.reach import PACKAGE, Tests, traced
from mutating.running import LIMIT, failing, failing_of_many, passing
from spread import ROOT

KILLERS = ROOT / "tools" / "mutating" / "killers.json"
# How many changes are drawn from each part of the package; a folder inside another is its own part.
SAMPLE = {
    "isa": 16,
    "isa/micro": 6,
    "machine": 12,
    "passes": 12,
    "engines": 6,
    "engines/compiled": 6,
    "emit": 4,
    "native": 4,
    "timing": 4,
    "repair": 2,
}
WANTED = 0.95
# A change of what runs when the package is imported shows in the table itself.
TABLE_TESTS = ("tests/isa/test_bounds.py", "tests/isa/test_spec.py", "tests/docs/test_generated.py")


@dataclass(frozen=True)
class Verdict:
    change: Change
    killer: str  # the test that noticed; "": none
    seconds: float
    tests: int


class Killers:
    """Who noticed a change last time: the first to be asked about it."""

    def __init__(self, sample: list[Change]) -> None:
        listed: dict[str, str] = json.loads(KILLERS.read_text("utf-8")) if KILLERS.exists() else {}
        self._listed = listed
        keys = [change.key for change in sample]
        known = sorted({listed[key] for key in keys if key in listed})
        if known:
            print(
                f"mutation: {len(known)} tests that noticed last time, on the sources as they are"
            )
        self._sound = passing(ROOT / "src", known)

    def of(self, change: Change) -> str:
        """The test that noticed a change, if it is there and passes without it; or ""."""
        test = self._listed.get(change.key, "")
        return test if test in self._sound else ""

    def note(self, verdict: Verdict) -> None:
        if verdict.killer.startswith("tests/"):
            self._listed[verdict.change.key] = verdict.killer
        else:
            self._listed.pop(verdict.change.key, None)
        text = json.dumps(dict(sorted(self._listed.items())), indent=1)
        KILLERS.write_text(text + "\n", "utf-8")


class Judge:
    """Makes changes to copies of the sources, and asks the tests."""

    def __init__(self, killers: Killers) -> None:
        self._killers = killers
        self._tests: Tests | None = None
        self._lock = Lock()

    @property
    def tests(self) -> Tests:
        """All tests: it takes long to find out what they run, so only if somebody asks."""
        with self._lock:
            self._tests = self._tests or Tests(traced())
            return self._tests

    def judged(self, change: Change, sources: Path) -> Verdict:
        """Make a change, run tests against it, and take it back."""
        began = time.monotonic()
        path = sources / "ptokit" / change.file
        before = path.read_text("utf-8")
        path.write_text(change.applied(before), "utf-8")
        os.utime(path, ns=(time.time_ns(), time.time_ns()))
        try:
            killer, tests = self._killer(change, sources)
        finally:
            path.write_text(before, "utf-8")
            os.utime(path, ns=(time.time_ns() + 2_000_000_000,) * 2)
        return Verdict(change, killer, time.monotonic() - began, tests)

    def _killer(self, change: Change, sources: Path) -> tuple[str, int]:
        """The test that notices what was changed, and how many run the place."""
        known = self._killers.of(change)
        if known and failing(sources, [known]):
            return known, 1
        tests = self.tests
        files = tests.of(change)
        every = [test for each in files.values() for test in each]
        seconds = sum(tests.seconds[test] for test in every)
        killer = ""
        if files:
            killer = failing(sources, tests.few(files)) or failing(sources, tests.more(files))
        if not killer and change.file.startswith("isa"):
            killer = failing(sources, TABLE_TESTS)
        if not killer and files:
            killer = failing_of_many(sources, every, LIMIT + 3 * seconds)
        return killer, len(every)


def sampled(more: int, only: str) -> Iterator[Change]:
    """The changes made by hand, then the sample: so many of each part of the package."""
    for file, function, was, now in BY_HAND:
        found = [c for c in changes_by_hand(file, was, now) if c.function == function]
        if found and file.startswith(only):
            yield found[0]
    for part, count in SAMPLE.items():
        drawn = (c for c in of_part(part) if c.key not in EQUIVALENT and compiles(PACKAGE, c))
        for change in islice(drawn, count * (1 + more)):
            if change.file.startswith(only):
                yield change


def of_part(part: str) -> list[Change]:
    """The changes of a part of the package, in the order in which they are drawn."""
    inside = tuple(other for other in SAMPLE if other.startswith(f"{part}/"))
    return sorted(all_changes(PACKAGE, part, inside), key=lambda change: change.rank)


def stale_entries() -> list[str]:
    """What the lists name and the sources no longer have."""
    every = {c.key for part in SAMPLE for c in of_part(part)} if EQUIVALENT else set[str]()
    gone = [key for key in EQUIVALENT if key not in every]
    for file, function, was, now in BY_HAND:
        if all(c.function != function for c in changes_by_hand(file, was, now)):
            gone.append(f"{file}:{function}: {was} -> {now}")
    return gone


def changes_by_hand(file: str, was: str, now: str) -> list[Change]:
    """A replacement of text in a function, as a change."""
    path = PACKAGE / file
    if not path.exists():
        return []
    source = path.read_text("utf-8")
    found: list[Change] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            lines = source.splitlines(keepends=True)
            start = sum(map(len, lines[: node.lineno - 1]))
            end = sum(map(len, lines[: node.end_lineno]))
            at = source.find(was, start, end)
            if at >= 0:
                line = source.count("\n", 0, at) + 1
                found.append(Change(file, node.name, line, was, now, at, at + len(was), 1))
    return found


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="", help="changes of files that begin so")
    options.add_argument("--more", type=int, default=0, help="that many further samples")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--show", action="store_true", help="list the sample, run nothing")
    given = options.parse_args()
    sample = list(sampled(given.more, given.only))
    if given.show:
        print(*sample, sep="\n")
        return 0
    stale = stale_entries()
    for key in stale:
        print(f"mutation: the sources have no such place any more: {key}")
    killers = Killers(sample)
    judge = Judge(killers)
    copies: SimpleQueue[Path] = SimpleQueue()
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory() as folder:
        for job in range(given.jobs):
            copy = Path(folder) / str(job)
            shutil.copytree(ROOT / "src", copy)
            copies.put(copy)

        def run(change: Change) -> Verdict:
            copy = copies.get()
            try:
                return judge.judged(change, copy)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(given.jobs) as pool:
            # First those that somebody is known to notice: the others take long.
            ordered = sorted(sample, key=lambda change: not killers.of(change))
            for done in as_completed([pool.submit(run, change) for change in ordered]):
                verdict = done.result()
                verdicts.append(verdict)
                killers.note(verdict)
                word = "killed  " if verdict.killer else "SURVIVED"
                print(
                    f"[{len(verdicts)}/{len(sample)}] {word} {verdict.seconds:5.1f}s "
                    f"{verdict.change}  ({verdict.killer or f'{verdict.tests} tests run it'})",
                    flush=True,
                )
    killed = sum(bool(v.killer) for v in verdicts)
    print(f"mutation: {killed} of {len(verdicts)} killed")
    return 0 if killed >= WANTED * len(verdicts) and not stale else 1


if __name__ == "__main__":
    sys.exit(main())
