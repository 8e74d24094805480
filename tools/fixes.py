"""Break kernels piece by piece, have every race repaired, and run what comes out.

python tools/fixes.py [-v] [--kernels 200] [--jobs 2] [--cluster ADDRESS] [--resume] [FILE ...]

The broken ones are the race mutants of the examples (`mutation.py`), and random kernels in manual
mode (`tests/fuzz/programs.py`) of which some, many or all barriers are gone. A repaired one is

* clean, when no checker complains and its bytes are those of the unbroken one;
* left, when something remains, and nothing is worse;
* WORSE, when it complains of more than before, or gives other bytes without a complaint.

With `--resume` a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from mutants import EXAMPLES, PARTS, RACES, SUBJECTS, about, load, manual_cases, run  # noqa: E402
from mutation import Mutant, mutants  # noqa: E402
from spread import add_options, answers  # noqa: E402

from ptokit.base.diagnostics import Diagnostic  # noqa: E402
from ptokit.repair.search import Trial, repair  # noqa: E402
from ptokit.tasks import Task  # noqa: E402
from tests.fuzz.programs import random_program  # noqa: E402

TARGET = 0.95  # of all that have a race
ACROSS = ("pipes", "cores", "ranks")  # subjects: order in a core, between cores, between devices
_numbers = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """What became of one broken program."""

    word: str  # "clean", "left" or "WORSE"
    what: str
    why: str = ""


# What ran: all complaints, and whether the bytes are as expected where it came to its end.
Ran = tuple[Trial, bool]


def module_of(text: str, stem: str) -> ModuleType:
    """A source as a module; its lines can be looked up under the name of the module's file."""
    name = f"<{stem} {next(_numbers)}>.py"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    module = ModuleType(stem)
    module.__file__ = name
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    return module


def judge(what: str, broken: str, check: Callable[[str], Ran]) -> Iterator[Outcome]:
    """Repair a program, if it has a race, and look at what comes out."""
    before, _ = check(broken)
    if not any(d.code in RACES for d in before.found):
        return
    fixed = repair(broken, lambda text: check(text)[0], f"{what}.py")
    after, is_same = check(fixed.after)
    if after.badness > before.badness or not (is_same or after.found):
        yield Outcome("WORSE", what, fixed.diff)
    elif after.found:
        said = "; ".join(f"{d.code} {d.location}: {d.message}" for d in after.found)
        yield Outcome("left", what, f"{said}\n{fixed.diff}")
    else:
        yield Outcome("clean", what, fixed.diff)


# ---- mutants of the examples ---------------------------------------------------------------------


class Example:
    """An example with what its cases leave behind when nothing is broken."""

    def __init__(self, path: Path) -> None:
        self.stem = path.stem
        self.cases = manual_cases(load(path))
        self._expected: dict[tuple[str, str], tuple[Counter[str], list[bytes]]] = {}
        for case, target in self.cases:
            usual, left = run(case, target)
            self._expected[case.name, target] = Counter(about(d)[0] for d in usual), left

    def check(self, text: str, chosen: Sequence[tuple[str, str]]) -> Ran:
        """Run some cases of a changed source; what the unbroken one complains of as well is no
        complaint, on whatever line it stands now."""
        module = module_of(text, self.stem)
        found: list[Diagnostic] = []
        is_same = True
        for case, target in manual_cases(module):
            if (case.name, target) in chosen:
                usual, left = self._expected[case.name, target]
                complaints, got = run(case, target)
                kept = Counter(usual)
                for each in complaints:
                    kept[each.code] -= 1
                    if kept[each.code] < 0:
                        found.append(each)
                is_same &= got == left or not got
        return Trial(str(module.__file__), tuple(dict.fromkeys(found))), is_same

    def judge(self, mutant: Mutant) -> Iterator[Outcome]:
        """Repair a mutant for one case of every kernel and target that it reaches."""
        chosen = {
            (case.kernel.name, target): (case.name, target)
            for case, target in self.cases
            if mutant.reaches(case.kernel.name)
        }
        names = list(chosen.values())
        yield from judge(f"{self.stem}: {mutant}", mutant.source, lambda t: self.check(t, names))


def of_example(path: Path, first: int, step: int) -> list[Outcome]:
    """Every `step`-th mutant of a file: all that lack something, a third of those with changes."""
    example = Example(path)
    made = enumerate(mutants(path.read_text("utf-8")))
    chosen = [mutant for number, mutant in made if mutant.how == "without" or number % 3 == 0]
    return [outcome for mutant in chosen[first::step] for outcome in example.judge(mutant)]


# ---- random kernels ------------------------------------------------------------------------------


def of_seed(seed: int) -> list[Outcome]:
    """A random kernel that lacks some of its barriers."""
    program = random_program(seed, "manual", "")
    chooser = random.Random(seed)
    gone = chooser.choice([0.1, 0.5, 1.0])
    lines = program.source.splitlines(keepends=True)
    broken = "".join(
        line.replace("pipe_barrier(PIPE_ALL)", "pass") if chooser.random() < gone else line
        for line in lines
    )
    target = chooser.choice(["a2a3", "a5"])

    def ran(text: str) -> tuple[str, tuple[Diagnostic, ...], list[bytes]]:
        module: Any = module_of(text, f"kernel {seed}")
        case = SimpleNamespace(
            kernel=module.k, inputs=lambda _: program.arguments(), blocks=1, consts={}, paths=()
        )
        return str(module.__file__), *run(case, target)

    _, usual, expected = ran(program.source)
    if usual:
        return []

    def check(text: str) -> Ran:
        file, found, got = ran(text)
        return Trial(file, found), got == expected or not got

    return list(judge(f"kernel {seed}", broken, check))


def of_seeds(first: int, step: int, count: int) -> list[Outcome]:
    return [outcome for seed in range(first, count, step) for outcome in of_seed(seed)]


# ---- the command ---------------------------------------------------------------------------------

Piece = tuple[Path | None, tuple[int, ...]]  # an example, or random kernels, and which part of it


def pieces_of(files: Iterable[Path], kernels: int) -> Iterator[Task]:
    """All that is to be done, in pieces."""
    for path in files:
        if path.stem not in ("harness", "run_all") and manual_cases(load(path)):
            for part in range(PARTS):
                yield Task(f"{path.name} {part} of {PARTS}", (path, (part, PARTS)))
    for part in range(2 * PARTS):
        given = part, 2 * PARTS, kernels
        yield Task(f"{_title((None, given))} {part} of {2 * PARTS}", (None, given))


def judged(piece: Piece) -> list[Outcome]:
    """What comes of a piece."""
    path, given = piece
    return of_seeds(*given) if path is None else of_example(path, *given)


def _title(piece: Piece) -> str:
    return "random kernels" if piece[0] is None else piece[0].name


def closing_line(tally: Counter[str]) -> str:
    """The one line that says it all."""
    return f"fixes: {tally['clean']} of {tally.total()} clean, {tally['WORSE']} worse"


def is_fine(tally: Counter[str]) -> bool:
    """Whether nearly all are clean, and none is worse."""
    return not tally["WORSE"] and tally["clean"] >= TARGET * tally.total()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--kernels", type=int, default=200, help="random ones")
    add_options(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="every repair")
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    files = options.files or [
        *sorted(EXAMPLES.glob("*.py")),
        *(SUBJECTS / f"{each}.py" for each in ACROSS),
    ]
    tasks = list(pieces_of(files, options.kernels))
    found = answers("fixes", judged, tasks, options, Outcome)
    for name, pieces in itertools.groupby(found, lambda each: _title(each[0].data)):
        here: Counter[str] = Counter()
        for outcome in (outcome for _, outcomes in pieces for outcome in outcomes):
            here[outcome.word] += 1
            if options.verbose or outcome.word != "clean":
                print(f"{outcome.word}: {outcome.what}: {outcome.why}")
        counts = ", ".join(f"{count} {word}" for word, count in sorted(here.items()))
        print(f"{name:<28} {counts}", flush=True)
        tally += here
    print(closing_line(tally))
    is_met = "met" if is_fine(tally) else "MISSED"
    share = tally["clean"] / max(1, tally.total())
    print(f"goal: at least {TARGET:.0%} clean, none worse: {is_met}, {share:.1%}")
    return 0 if is_fine(tally) else 1


if __name__ == "__main__":
    sys.exit(main())
