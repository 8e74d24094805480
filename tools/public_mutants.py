"""Take pairs of signal and wait, and barriers, out of public test programs: who notices?

    python tools/public_mutants.py DIR --target a2a3 --programs 20

DIR is the folder that `systemtests.py` takes. Of its programs those are tried that hold the most
order; of each, one case that fails with its kernels left out. Nothing of a source is changed: the
calls that are taken out do not reach the machine (cpp_mutants.py). A program that is reported as it
stands is named, with what is reported, and another one is tried in its place.
"""

from __future__ import annotations

import argparse
import pickle
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from cpp_mutants import AllSeen, Seen, Watcher, told
from mutants import Ran
from systemtests import Task, generate, tasks

from ptokit.base.diagnostics import PtoError
from ptokit.base.location import Location
from ptokit.base.policy import Policy
from ptokit.frontend.launch import Options
from ptokit.native.program import execute
from ptokit.native.recording import CoreName

_ORDER = re.compile(r"\b(set_flag|wait_flag|pipe_barrier|PtoSetWaitFlag|TSYNC|Event\s*<)")


@dataclass(frozen=True)
class Case:
    """A case of a test program, run by itself."""

    task: Task
    case: str

    @property
    def name(self) -> str:
        return f"{self.task.name}, {self.case.partition('.')[2]}"

    def run(self, stand_in: Callable[[Any], Any], **how: Any) -> Ran:
        """What is found, and what the program's own comparison says."""
        ran = execute(
            self.task.program,
            [f"--gtest_filter={self.case}"],
            options=Options(policy=Policy(self.task.rules), **how),
            time_limit=self.task.time_limit,
            folder=self.task.work / "build",
            output=self.task.work / "output-mutant.txt",
            in_place_of=stand_in,
        )
        return tuple(d for _, d in ran.found), [ran.cases.get(self.case, "none").encode()]

    def seen(self) -> AllSeen:
        """What its cores call: told through a file, since they run in another process."""
        path = self.task.work / "seen"
        with path.open("wb", buffering=0) as file:

            def note(core: CoreName, at: Location, effects: Sequence[Any]) -> None:
                file.write(pickle.dumps((core, at, tuple(effects))))

            self.run(lambda machine: Watcher(machine, note), hazards=False)
        found: AllSeen = defaultdict(Seen)
        with path.open("rb") as file:
            while file.peek(1):
                core, at, effects = pickle.load(file)
                found[core].note(at, effects)
        return found


def held(task: Task) -> int:
    """How many words of order stand in the sources of a program."""
    return sum(len(_ORDER.findall(each.path.read_text("utf-8"))) for each in task.sources)


def cases(known: list[Task]) -> Iterator[Case]:
    """A case of each program that is clean as it stands, those with the most order first."""
    for task in sorted(known, key=held, reverse=True):
        try:
            task.program.built()
        except PtoError:
            continue
        if generate(task):
            continue
        where = {"folder": task.work / "build", "output": task.work / "output-control.txt"}
        options = Options(policy=Policy(task.rules))
        control = execute(task.program, options=options, without_kernels=True, **where)
        for name in [name for name, outcome in control.cases.items() if outcome == "failed"][:1]:
            case = Case(task, name)
            found, left = case.run(lambda machine: machine)
            codes = Counter(d.code for d in found if d.severity == "error")
            if not codes and left == [b"passed"]:
                yield case
            else:
                said = ", ".join(codes) or "its results differ"
                print(f"{case.name:<44} as it stands: {said}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("folder", type=Path, help="the public folder, unpacked")
    parser.add_argument("--target", default="a2a3", help="a2a3 or a5")
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--only", default="", help="programs, with commas between")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of generators")
    parser.add_argument("--work", type=Path, help="keep data and output there")
    parser.add_argument("--proof", type=int, default=6, help="schedules for a silent mutant")
    parser.add_argument("-v", "--verbose", action="store_true", help="every verdict")
    parser.set_defaults(rules="release", time_limit=30.0, seconds=900.0, other_compiler="")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ptokit-mutants-") as temporary:
        known = list(tasks(args.folder.resolve(), args.target, args, args.work or Path(temporary)))
        tally = told(islice(cases(known), args.programs), args.proof, args.verbose)
    return 1 if tally["MISSED"] or tally["misplaced"] else 0


if __name__ == "__main__":
    sys.exit(main())
