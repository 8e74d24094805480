"""Take synchronisation out of programs, or get it wrong, one piece at a time, and see who notices.

python tools/mutants.py [-v] [--schedules 60] [--jobs 2] [--cluster ADDRESS] [--resume] [FILE ...]

The programs are the manual examples and the subjects of this folder, whose statements are removed,
changed and moved (`mutation.py`), and the texts of the auto examples, with whatever order the
compiler has put into them (`text_mutation.py`). A mutant runs with all checkers on. It is

* found, when the run complains; of a statement that is gone it must name the lines between which
  it stood, or its partner;
* misplaced, when the run complains about something else;
* harmless, when the run is silent and gives the same bytes under every schedule tried;
* MISSED, when the run is silent and some schedule gives other bytes.

A warning that the unmodified program has not is a complaint as well. The program itself must run
without errors under many random schedules: everything else is a false alarm.
A file may name the cases worth mutating in `MUTATED`; otherwise all its manual cases are. Of the
cases of a kernel each mutant takes a few, in turn. With `--resume` a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
SUBJECTS = Path(__file__).resolve().parent / "subjects"
sys.path[:0] = [str(EXAMPLES), str(Path(__file__).resolve().parent)]

from mutation import KINDS, Mutant, mutants  # noqa: E402
from spread import add_options, answers  # noqa: E402
from text_mutation import text_mutants  # noqa: E402

from ptokit import PtoError, loads  # noqa: E402
from ptokit.base.diagnostics import Diagnostic  # noqa: E402
from ptokit.machine.explore import schedules  # noqa: E402
from ptokit.tasks import Task  # noqa: E402

PROOF = 20  # schedules a silent mutant must survive: 13 worst cases, then random ones
RACES = ("E6", "E7", "E8")
UNFILLED = ("unbound-tile", "unbound-tensor", "poison-read")  # what an entry was to be put into
FAR = ("register", "rank", "cross-core", "unit flag")  # the partner is elsewhere, or there is none
WORDS = ("found", "misplaced", "harmless", "MISSED", "false alarm")
MOST_CASES = 2  # of a kernel and a target, for each mutant that lacks a statement; others have one
MOST_OF_CHANGED = 4  # kernels and targets, for each mutant that has something changed
MOST_OF_TEXT = 60  # mutants of one text, spread over it
PARTS = 8  # pieces of a file
TEXTS = ("a2a3", "a5")  # targets for which texts are made
WANTED = 1500  # mutants, of every kind of order: in a core, between cores, between devices


# Of an unmodified example: the warnings it has, and the bytes of its arrays.
Original = tuple[set[tuple[Any, ...]], list[bytes]]


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant, or of an unmodified example, on one case."""

    word: str
    what: str
    why: str = ""
    kind: str = ""  # of order; empty: of an unmodified program


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


Ran = tuple[tuple[Diagnostic, ...], list[bytes]]


def run(case: Any, target: str, **how: Any) -> Ran:
    """Run a case; return the complaints, and the bytes of all its arrays, unless it failed."""
    with warnings.catch_warnings(action="ignore"):
        try:
            if hasattr(case, "run_once"):  # not a kernel
                return (), case.run_once(target, **how)
            path = "lowered" if "lowered" in case.paths else "eager"
            arguments = list(case.inputs(np.random.default_rng(7)))
            launch = case.kernel[case.blocks]
            ran = launch(*arguments, target=target, path=path, **how, **case.consts)
        except PtoError as error:
            return error.diagnostics, []
    return ran.warnings, [np.asarray(a).tobytes() for a in arguments]


# ---- judging -------------------------------------------------------------------------------------


def judge(mutant: Mutant, case: Any, target: str, original: Original, proof: int) -> Verdict:
    """Run a mutant and say what it is."""

    def placed(found: Diagnostic) -> bool:
        return mutant.how != "without" or fits(found, mutant, case.kernel.name)

    what = f"{mutant} [{case.name}, {target}]"
    return verdict(
        what, mutant.kind, lambda **how: run(case, target, **how), original, proof, placed
    )


def verdict(
    what: str,
    kind: str,
    attempt: Callable[..., Ran],
    original: Original,
    proof: int,
    placed: Callable[[Diagnostic], bool],
) -> Verdict:
    """Run a changed program in order and, while nobody complains, under other schedules."""
    usual, expected = original
    complaints, got = attempt()
    complaints = [d for d in complaints if about(d) not in usual]
    if complaints:
        why = "; ".join(f"{d.code} {_first(d)}" for d in complaints[:3])
        return Verdict("found" if any(map(placed, complaints)) else "misplaced", what, why, kind)
    if got != expected:
        return Verdict("MISSED", what, "silent, and other bytes in order", kind)
    for schedule in schedules(proof):
        complaints, got = attempt(schedule=schedule)
        complaints = [d for d in complaints if about(d) not in usual]
        if complaints:
            said = f"silent in order, but {schedule}: {_first(complaints[0])}"
            return Verdict("MISSED", what, said, kind)
        if got != expected:
            return Verdict("MISSED", what, f"silent, and other bytes with {schedule}", kind)
    return Verdict("harmless", what, kind=kind)


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
    if (
        mutant.kind in ("register", "rank", "cross-core", "unit flag")
        or "the flag" in mutant.removed
    ):
        return True  # its partner is another core, or none
    if found.code in UNFILLED:
        return mutant.removed.startswith(("TPOP", "TALLOC"))
    if found.code in RACES or (found.code == "E10" and "PIPE_" in found.message):
        return mutant.between(kernel, lines[-1], lines[0])
    return any(mutant.is_partner(line) for line in lines)


# ---- the work of one process ---------------------------------------------------------------------


def judge_mutants(path: Path, first: int, step: int, proof: int, line: int = 0) -> list[Verdict]:
    """Every `step`-th mutant of a file, each with some of the cases it reaches."""
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
            cases = [c for c in manual_cases(load(changed)) if mutant.reaches(c[0].kernel.name)]
            most, tries = (MOST_CASES, proof) if mutant.how == "without" else (1, proof // 2)
            some = list(_some(cases, number, most))
            if mutant.how != "without":
                some = [
                    some[(number + n) % len(some)] for n in range(min(MOST_OF_CHANGED, len(some)))
                ]
            for case, target in some:
                found.append(judge(mutant, case, target, expected[case.name, target], tries))
    return found


def _some(cases: list[tuple[Any, str]], number: int, most: int) -> Iterator[tuple[Any, str]]:
    """A few cases of every kernel and target, others for the next mutant."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for case, target in cases:
        groups.setdefault((case.kernel.name, target), []).append(case)
    for (_, target), of_one in groups.items():
        for offset in range(min(most, len(of_one))):
            yield of_one[(number * most + offset) % len(of_one)], target


def judge_texts(path: Path, first: int, step: int, proof: int) -> list[Verdict]:
    """Every `step`-th mutant of the texts of a file's auto kernels."""
    found: list[Verdict] = []
    number = 0
    for case, target in auto_cases(load(path)):
        with warnings.catch_warnings(action="ignore"):
            arguments = list(case.inputs(np.random.default_rng(7)))
            text = case.kernel.text(*arguments, target=target, **case.consts)
        usual, left = run_text(text, case, target)
        original = {about(d) for d in usual}, left
        made = list(text_mutants(text))
        for mutant in made[:: -(-len(made) // MOST_OF_TEXT)]:
            number += 1
            if number % step == first:
                what = f"{case.name}, {target}: {mutant}"

                def attempt(
                    text: str = mutant.source, case: Any = case, target: str = target, **how: Any
                ) -> Ran:
                    return run_text(text, case, target, **how)

                judged = verdict(what, mutant.kind, attempt, original, proof // 2, lambda _: True)
                found.append(judged)
    return found


def auto_cases(module: ModuleType) -> Iterator[tuple[Any, str]]:
    """One case of each kernel in auto mode, for the targets of texts."""
    chosen = {c.kernel.name: c for c in module.CASES if c.kernel.source.mode == "auto"}
    for case in chosen.values():
        yield from ((case, target) for target in case.targets if target in TEXTS)


def run_text(text: str, case: Any, target: str, **how: Any) -> Ran:
    """Run a text as it stands on the arrays of a case."""
    arguments = list(case.inputs(np.random.default_rng(7)))
    how |= {"target": target, "place": False, "sync": "keep"}
    with warnings.catch_warnings(action="ignore"):
        try:
            ran = loads(text).entry()[case.blocks](*arguments, **how)
        except PtoError as error:
            return error.diagnostics, []
    return ran.warnings, [np.asarray(a).tobytes() for a in arguments]


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


Piece = tuple[str, Path, tuple[int, ...]]  # a function of a file, and what else it is given


def pieces_of(path: Path, count: int, proof: int, line: int = 0) -> Iterator[Task]:
    """All that is to be done about one file, in pieces, so that nobody waits long for the last."""
    module = load(path)
    wanted: list[tuple[Callable[..., list[Verdict]], Callable[[int], tuple[int, ...]]]] = []
    if manual_cases(module):
        if not line:
            wanted.append((watch_original, lambda part: (count, part, PARTS)))
        wanted.append((judge_mutants, lambda part: (part, PARTS, proof, line)))
    if not line and any(auto_cases(module)):
        wanted.append((judge_texts, lambda part: (part, PARTS, proof)))
    for do, given in wanted:
        for part in range(PARTS):
            piece: Piece = do.__name__, path, given(part)
            yield Task(f"{do.__name__} {path.name} {part} of {PARTS}", piece)


def judged(piece: Piece) -> list[Verdict]:
    """What comes of a piece."""
    name, path, given = piece
    do = {each.__name__: each for each in (watch_original, judge_mutants, judge_texts)}[name]
    return do(path, *given)


# ---- the command ---------------------------------------------------------------------------------


def closing_line(tally: Counter[str], kinds: Counter[str]) -> str:
    """The one line that says it all."""
    all_bad = tally["found"] + tally["misplaced"] + tally["MISSED"]
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return (
        f"mutants: {tally['found']} of {all_bad} found, {tally['harmless']} harmless silent, "
        f"{tally['false alarm']} false alarms ({kinds.total()} mutants: {counts})"
    )


def is_fine(tally: Counter[str]) -> bool:
    """Whether all is found, where it is, and nothing else."""
    return not (tally["MISSED"] or tally["misplaced"] or tally["false alarm"])


def goal_line(tally: Counter[str], kinds: Counter[str]) -> str:
    """What is wanted of a whole run, and whether it is so."""
    lacking = sorted(kind for kind in KINDS if not kinds[kind])
    is_met = is_fine(tally) and kinds.total() >= WANTED and not lacking
    wanted = f"at least {WANTED:,} mutants of all {len(KINDS)} kinds, none missed or misplaced"
    without = f" (without {', '.join(lacking)})" if lacking else ""
    return f"goal: {wanted}, no false alarm: {'met' if is_met else 'MISSED'}{without}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--schedules", type=int, default=60, help="for the unmodified programs")
    parser.add_argument("--proof", type=int, default=PROOF, help="schedules for a silent mutant")
    parser.add_argument("--line", type=int, default=0, help="only mutants of this line")
    add_options(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="every verdict")
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    files = options.files or [*sorted(EXAMPLES.glob("*.py")), *sorted(SUBJECTS.glob("*.py"))]
    how = (options.schedules, options.proof, options.line)
    tasks = [
        task
        for path in files
        if path.stem not in ("harness", "run_all")
        for task in pieces_of(path, *how)
    ]
    found = answers("mutants", judged, tasks, options, Verdict)
    for path, pieces in itertools.groupby(found, lambda each: each[0].data[1]):
        here: Counter[str] = Counter()
        for verdict in (verdict for _, verdicts in pieces for verdict in verdicts):
            here[verdict.word] += 1
            if verdict.kind:
                kinds[verdict.kind] += 1
            if options.verbose or verdict.word not in ("found", "harmless"):
                print(f"{verdict.word}: {verdict.what}: {verdict.why}")
        counts = ", ".join(f"{here[w]} {w}" for w in WORDS if here[w])
        print(f"{path.name:<28} {counts}", flush=True)
        tally += here
    print(closing_line(tally, kinds))
    if not options.files:
        print(goal_line(tally, kinds))
    return 0 if is_fine(tally) else 1


if __name__ == "__main__":
    sys.exit(main())
