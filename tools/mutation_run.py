"""Do the tests notice when the package changes its mind? `make mutation`.

A sample of semantic changes - an operator, a constant, a condition, a statement - is made to the
sources, one at a time, and the tests that run the changed block are run against it: some of them
first, and all of them before it counts as one that nobody notices. Such a change is a hole in the
tests, unless it is listed as changing nothing, with a reason (tools/mutating/equivalent.py). Which
tests run which blocks is found out once and kept while sources and tests stay the same.

    python tools/mutation_run.py [--only PART] [--more N] [--jobs 2] [--show]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from kept import state
from mutating.by_hand import BY_HAND
from mutating.changes import Change, all_changes, compiles
from mutating.equivalent import EQUIVALENT

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "ptokit"
KEPT = ROOT / ".pytest_cache" / "mutation"
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
FEW, SECONDS = 48, 25.0  # tests and their time in the first round
MORE_SECONDS = 60.0  # of whole files of tests in the second, and of some tests of the others
SPREAD = 4  # tests of each of those
LIMIT = 400  # seconds, beyond those that the tests took, until a run counts as one without end
NO_TESTS = 5  # pytest ran none


@dataclass(frozen=True)
class Verdict:
    change: Change
    killer: str  # the test that noticed; "": none
    seconds: float
    tests: int


# ---- which tests run which block ---------------------------------------------------------------


def traced() -> dict[str, dict[str, Any]]:
    """Test -> the blocks it runs and its time; from the last run if nothing has changed."""
    kept = KEPT / f"{state(('src', 'tests'))}.json"
    if kept.exists():
        return json.loads(kept.read_text("utf-8"))
    print("mutation: finding out which tests run what ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        env = environment(ROOT / "src") | {"PTOKIT_TRACE": folder}
        env["PYTHONPATH"] += os.pathsep + str(ROOT / "tools")
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "mutating.trace", "tests"],
            cwd=ROOT,
            env=env,
            check=False,
            stdout=subprocess.DEVNULL,
        )
        found: dict[str, dict[str, Any]] = {}
        for part in Path(folder).glob("gw*.json"):
            found |= json.loads(part.read_text("utf-8"))
    found = {test: noted for test, noted in found.items() if "seconds" in noted}
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(parents=True)
    kept.write_text(json.dumps(found), "utf-8")
    return found


def block_of(change: Change) -> str:
    """The innermost block around a change, as the trace names it."""
    source = (PACKAGE / change.file).read_text("utf-8")
    line = change.line
    best = ""
    for node in ast.walk(ast.parse(source)):
        blocks: list[list[Any]] = []
        if isinstance(node, ast.Lambda):
            blocks = [[node.body]]
        elif not isinstance(node, ast.Module | ast.ClassDef):
            parts = [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]
            blocks = [p for p in parts if isinstance(p, list) and p and isinstance(p[0], ast.stmt)]
        for block in blocks:
            if block[0].lineno <= line <= (block[-1].end_lineno or line):
                best = f"{change.file}:{block[0].lineno}"  # inner ones come later
    return best


# ---- running -----------------------------------------------------------------------------------


def environment(sources: Path) -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(sources), "CI": "true"}


class Tests:
    """The tests, with what is known of each."""

    def __init__(self, traced: dict[str, dict[str, Any]]) -> None:
        self.seconds = {test: noted["seconds"] for test, noted in traced.items()}
        self._blocks = {test: noted["blocks"] for test, noted in traced.items()}
        self._running: dict[str, list[str]] = {}
        self._file_seconds: dict[str, float] = {}
        for test, seconds in self.seconds.items():
            file = test.partition("::")[0]
            self._file_seconds[file] = self._file_seconds.get(file, 0.0) + seconds
        for test, blocks in self._blocks.items():
            for block in blocks:
                self._running.setdefault(block, []).append(test)

    def of(self, change: Change) -> dict[str, list[str]]:
        """The tests that run the changed block, by file: those most about its module first."""
        about = {t: self._about(t, change.file) for t in self._running.get(block_of(change), [])}
        files: dict[str, list[str]] = {}
        for test in sorted(about, key=lambda t: (-about[t], self.seconds[t])):
            files.setdefault(test.partition("::")[0], []).append(test)
        return files

    def _about(self, test: str, file: str) -> float:
        """How much of what a test runs lies in a module, in tenths of what any test has.

        Those whose file has the name of the module are the first of all.
        """
        if Path(test.partition("::")[0]).stem == f"test_{Path(file).stem}":
            return 10.0
        blocks = self._blocks[test]
        return round(10 * sum(b.startswith(file) for b in blocks) / (len(blocks) + 50), 1)

    def few(self, files: dict[str, list[str]]) -> list[str]:
        """Some tests of each file, in turn, as far as time allows."""
        found: list[str] = []
        spent = 0.0
        for nth in range(FEW):
            for tests in files.values():
                if nth < len(tests) and len(found) < FEW and spent < SECONDS:
                    found.append(tests[nth])
                    spent += self.seconds[tests[nth]]
        return found

    def more(self, files: dict[str, list[str]]) -> list[str]:
        """Whole files, those most about the module first, then some tests of every other one.

        Kernels keep what was lowered, so only the first test of a file is seen to run it.
        """
        whole: list[str] = []
        spent = 0.0
        for file in files:
            if spent < MORE_SECONDS:
                whole.append(file)
                spent += self._file_seconds[file]
        others = [tests for file, tests in files.items() if file not in whole]
        spread = [test for tests in others for test in tests[:: max(1, len(tests) // SPREAD)]]
        found = list(whole)
        spent = 0.0
        for test in spread:
            if spent < MORE_SECONDS:
                found.append(test)
                spent += self.seconds[test]
        return found


def failing(sources: Path, tests: list[str], limit: float = LIMIT) -> str:
    """The first test that fails against these sources; "": none."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, "--tb=no", *tests],
            cwd=ROOT,
            env=environment(sources),
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no end"
    if run.returncode == 0:
        return ""
    # Tests that are not there notice nothing: what was asked for is wrong, not what was changed.
    if run.returncode == NO_TESTS or "ERROR: not found" in run.stderr + run.stdout:
        raise LookupError(f"no such tests: {' '.join(tests)}")
    failed = [w for w in run.stdout.splitlines() if w.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else "pytest"


def failing_of_many(sources: Path, tests: list[str], limit: float) -> str:
    """The same for more tests than a command line holds."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as listed:
        listed.write("\n".join(tests))
        listed.flush()
        return failing(sources, [f"@{listed.name}"], limit)


def judged(change: Change, sources: Path, tests: Tests) -> Verdict:
    """Make a change, run tests against it, and take it back."""
    began = time.monotonic()
    path = sources / "ptokit" / change.file
    before = path.read_text("utf-8")
    path.write_text(change.applied(before), "utf-8")
    os.utime(path, ns=(time.time_ns(), time.time_ns()))
    files = tests.of(change)
    try:
        killer = failing(sources, tests.few(files)) if files else ""
        if not killer and files:
            killer = failing(sources, tests.more(files))
        if not killer and change.file.startswith("isa"):
            killer = failing(sources, list(TABLE_TESTS))
        if not killer and files:
            every = [test for each in files.values() for test in each]
            seconds = sum(tests.seconds[test] for test in every)
            killer = failing_of_many(sources, every, LIMIT + 3 * seconds)
    finally:
        path.write_text(before, "utf-8")
        os.utime(path, ns=(time.time_ns() + 2_000_000_000,) * 2)
    return Verdict(change, killer, time.monotonic() - began, sum(map(len, files.values())))


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
    tests = Tests(traced())
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
                return judged(change, copy, tests)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(given.jobs) as pool:
            for verdict in pool.map(run, sample):
                verdicts.append(verdict)
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
