"""Take one piece of synchronisation out of every manual example at a time, and see who notices.

python tools/mutants.py [-v] [--schedules 200] [--jobs 2] [FILE ...]

Each wait, set, barrier, push, pop, free and event is removed on its own, and the mutant runs with
all checkers on. It is

* found, when the run complains and names the lines the removed one stood between, or its partner;
* misplaced, when the run complains about something else;
* harmless, when the run is silent and gives the same bytes under every schedule tried;
* MISSED, when the run is silent and some schedule gives other bytes.

A warning that the unmodified example has not is a complaint as well. The example itself must run
without errors under many random schedules: everything else is a false alarm.
An example may name the cases worth mutating in `MUTATED`; otherwise all its manual cases are.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
sys.path[:0] = [str(EXAMPLES), str(Path(__file__).resolve().parent)]

from mutation import Mutant, mutants  # noqa: E402

from ptokit import PtoError  # noqa: E402
from ptokit.base.diagnostics import Diagnostic  # noqa: E402
from ptokit.machine.explore import schedules  # noqa: E402

PROOF = 20  # schedules a silent mutant must survive: 13 worst cases, then random ones
RACES = ("E6", "E7", "E8")
UNFILLED = ("unbound-tile", "unbound-tensor", "poison-read")  # what an entry was to be put into
WORDS = ("found", "misplaced", "harmless", "MISSED", "false alarm")


# Of an unmodified example: the warnings it has, and the bytes of its arrays.
Original = tuple[set[tuple[Any, ...]], list[bytes]]


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant, or of an unmodified example, on one case."""

    word: str
    what: str
    why: str = ""


# ---- running -------------------------------------------------------------------------------------


def load(path: Path) -> ModuleType:
    """Import an example from a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def manual_cases(module: ModuleType) -> list[tuple[Any, str]]:
    """The cases of an example that order their pipes by hand, per target."""
    chosen = getattr(module, "MUTATED", module.CASES)
    return [(c, target) for c in chosen if c.kernel.source.mode == "manual" for target in c.targets]


def run(case: Any, target: str, **how: Any) -> tuple[tuple[Diagnostic, ...], list[bytes]]:
    """Run a case; return the complaints, and the bytes of all its arrays, unless it failed."""
    arguments = list(case.inputs(np.random.default_rng(7)))
    with warnings.catch_warnings(action="ignore"):
        try:
            ran = case.kernel[case.blocks](*arguments, target=target, **how, **case.consts)
        except PtoError as error:
            return error.diagnostics, []
    return ran.warnings, [np.asarray(a).tobytes() for a in arguments]


# ---- judging -------------------------------------------------------------------------------------


def judge(mutant: Mutant, case: Any, target: str, original: Original, proof: int) -> Verdict:
    """Run a mutant and say what it is."""
    what = f"{mutant} [{case.name}, {target}]"
    usual, expected = original
    complaints, got = run(case, target)
    complaints = [d for d in complaints if about(d) not in usual]
    if complaints:
        why = "; ".join(f"{d.code} {_first(d)}" for d in complaints[:3])
        placed = any(fits(d, mutant, case.kernel.name) for d in complaints)
        return Verdict("found" if placed else "misplaced", what, why)
    if got != expected:
        return Verdict("MISSED", what, "silent, and other bytes in order")
    for schedule in schedules(proof):
        complaints, got = run(case, target, schedule=schedule)
        complaints = [d for d in complaints if about(d) not in usual]
        if complaints:
            return Verdict(
                "MISSED", what, f"silent in order, but {schedule}: {_first(complaints[0])}"
            )
        if got != expected:
            return Verdict("MISSED", what, f"silent, and other bytes with {schedule}")
    return Verdict("harmless", what)


def about(found: Diagnostic) -> tuple[Any, ...]:
    """What a complaint is about; lines of a mutant are those of the example."""
    return found.code, found.severity, *lines_of(found)


def _first(found: Diagnostic) -> str:
    lines = ", ".join(map(str, lines_of(found)))
    return f"lines {lines}: {found.message.splitlines()[0]}"


def lines_of(found: Diagnostic) -> list[int]:
    """The lines a complaint points at, its own first."""
    places = [found.location, *(n.location for n in found.notes)]
    return list(dict.fromkeys(p.line for p in places if p is not None))


def fits(found: Diagnostic, mutant: Mutant, kernel: str) -> bool:
    """Whether a complaint leads to what was removed.

    A race names two lines with the removed one between them: in the text, or around a loop. A hang
    or a leftover names the partner: the other end of the same flag, or of the same FIFO. Without a
    pop, the line that uses the entry finds nothing there.
    """
    lines = lines_of(found)
    if not lines:
        return False
    if found.code in UNFILLED:
        return mutant.removed.startswith(("TPOP", "TALLOC"))
    if found.code in RACES or (found.code == "E10" and "PIPE_" in found.message):
        return mutant.between(kernel, lines[-1], lines[0])
    return any(mutant.is_partner(line) for line in lines)


# ---- the work of one process ---------------------------------------------------------------------


def judge_mutants(path: Path, first: int, step: int, proof: int, line: int = 0) -> list[Verdict]:
    """Every `step`-th mutant of an example."""
    expected: dict[tuple[str, str], Original] = {}
    for case, target in manual_cases(load(path)):
        usual, left = run(case, target)
        expected[case.name, target] = {about(d) for d in usual}, left
    found: list[Verdict] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, mutant in enumerate(mutants(path.read_text("utf-8"))):
            if number % step != first or line not in (0, mutant.line):
                continue
            changed = Path(folder) / f"{path.stem}_{number}.py"
            changed.write_text(mutant.source, "utf-8")
            for case, target in manual_cases(load(changed)):
                if mutant.reaches(case.kernel.name):
                    found.append(judge(mutant, case, target, expected[case.name, target], proof))
    return found


def watch_original(path: Path, count: int, first: int, step: int) -> list[Verdict]:
    """The unmodified example under random schedules; the cases of a kernel share them."""
    found: list[Verdict] = []
    groups: dict[tuple[str, str], list[Any]] = {}
    for case, target in manual_cases(load(path)):
        groups.setdefault((case.kernel.name, target), []).append(case)
    for (_, target), cases in groups.items():
        chosen = itertools.cycle(cases)
        for seed, case in zip(range(max(count, 2 * len(cases))), chosen, strict=False):
            if seed % step == first:
                found += _alarms(path, case, target, seed)
    return found


def _alarms(path: Path, case: Any, target: str, seed: int) -> Iterable[Verdict]:
    complaints = [d for d in run(case, target, seed=seed)[0] if d.severity == "error"]
    if complaints:
        what = f"{path.name} [{case.name}, {target}, seed {seed}]"
        yield Verdict("false alarm", what, _first(complaints[0]))


def examine(
    pool: ProcessPoolExecutor, jobs: int, path: Path, count: int, proof: int, line: int = 0
) -> Iterator[Verdict]:
    """Check one example and all its mutants."""
    parts = 4 * jobs  # small pieces, so that nobody waits long for the last one
    work = [pool.submit(watch_original, path, count, i, parts) for i in range(parts)]
    work += [pool.submit(judge_mutants, path, i, parts, proof, line) for i in range(parts)]
    for number, part in enumerate(work):
        if sys.stderr.isatty():
            print(f"\r{path.name:<28} {number}/{len(work)}", end="\r", file=sys.stderr)
        yield from part.result()


# ---- the command ---------------------------------------------------------------------------------


def closing_line(tally: Counter[str]) -> str:
    """The one line that says it all."""
    all_bad = tally["found"] + tally["misplaced"] + tally["MISSED"]
    return (
        f"mutants: {tally['found']} of {all_bad} found, {tally['harmless']} harmless silent, "
        f"{tally['false alarm']} false alarms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--schedules", type=int, default=200, help="for the unmodified examples")
    parser.add_argument("--proof", type=int, default=PROOF, help="schedules for a silent mutant")
    parser.add_argument("--line", type=int, default=0, help="only mutants of this line")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 8))
    parser.add_argument("-v", "--verbose", action="store_true", help="every verdict")
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    how = (options.schedules, options.proof, options.line)
    files = options.files or sorted(EXAMPLES.glob("*.py"))
    with ProcessPoolExecutor(options.jobs) as pool:
        for path in files:
            if path.stem in ("harness", "run_all") or not manual_cases(load(path)):
                continue
            here: Counter[str] = Counter()
            for verdict in examine(pool, options.jobs, path, *how):
                here[verdict.word] += 1
                if options.verbose or verdict.word not in ("found", "harmless"):
                    print(f"{verdict.word}: {verdict.what}: {verdict.why}")
            counts = ", ".join(f"{here[w]} {w}" for w in WORDS if here[w])
            print(f"{path.name:<28} {counts}", flush=True)
            tally += here
    print(closing_line(tally))
    return 1 if tally["MISSED"] or tally["misplaced"] or tally["false alarm"] else 0


if __name__ == "__main__":
    sys.exit(main())
