"""Take pairs of signal and wait, and barriers, out of C++ kernels, one at a time: who notices?

python tools/cpp_mutants.py [-v] [--proof 6] [--targets a2a3,a5] [--keep ANSWERS] [FILE.py ...]

The kernels are those of the examples, written as C++ and compiled. Nothing of a source is changed:
the calls that are taken out do not reach the machine. A pair is a line that signals and a line that
waits for it; all their meetings are taken out together. The verdicts are those of `mutants.py`;
found means here: a race between the two pipes that the pair ordered, from a call before the signal
to one after the wait. A barrier of all pipes orders any two of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from mutants import (
    EXAMPLES,
    TEXTS,
    WORDS,
    Original,
    Ran,
    Verdict,
    about,
    closing_line,
    is_fine,
    load,
    verdict,
)
from spread import add_resume, journal_of

from ptokit import PtoError, cpp
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.location import Location
from ptokit.frontend.launch import Options, Schedule, run
from ptokit.frontend.policies import policy_for
from ptokit.frontend.session import current, running
from ptokit.isa.effects import Barrier, Pipe, Signal, Wait
from ptokit.isa.spec import Insn
from ptokit.kernels import Kernel, Programs
from ptokit.machine.gm import as_array
from ptokit.machine.jobs import apart
from ptokit.native.recording import CoreName, InItsPlace
from ptokit.tasks import Journal

Places = dict[CoreName, set[int]]  # calls by their number among those of a core


@dataclass
class Seen:
    """The calls of a core: where each stands, and what those that order do."""

    lines: list[Location] = field(default_factory=list[Location])
    orders: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])

    def note(self, at: Location, effects: Sequence[Any]) -> None:
        """A call, with what it orders."""
        self.orders += [(len(self.lines), effect) for effect in effects]
        self.lines.append(at)


AllSeen = dict[CoreName, Seen]
Note = Callable[[CoreName, Location, Sequence[Any]], None]


class Watcher(InItsPlace):
    """Notes what orders."""

    def __init__(self, machine: Any, note: Note) -> None:
        super().__init__(machine)
        core = machine.core
        self._note, self._core = note, CoreName(core.kind, core.block, core.subblock)

    def execute(self, insn: Insn, operands: Any, attrs: Any, site: Any) -> Any:
        value = self.machine.execute(insn, operands, attrs, site)
        effects: Sequence[Any] = ()
        if insn.orders:
            effects = self.machine.executor.call(insn, operands, attrs, site).effects or ()
        at = site if isinstance(site, Location) else site.location
        self._note(self._core, at, effects)
        return value


class Without(InItsPlace):
    """Leaves calls out; `passed` counts those of each core, from one launch to the next."""

    def __init__(self, machine: Any, places: Places, passed: Counter[CoreName]) -> None:
        super().__init__(machine)
        core = machine.core
        self._core = CoreName(core.kind, core.block, core.subblock)
        self._left_out = places.get(self._core, set())
        self._passed = passed

    def execute(self, insn: Insn, operands: Any, attrs: Any, site: Any) -> Any:
        number = self._passed[self._core]
        self._passed[self._core] += 1
        if number not in self._left_out:
            return self.machine.execute(insn, operands, attrs, site)
        return None


class Mutable(Protocol):
    """Something that can be run with other things in the place of its machine."""

    @property
    def name(self) -> str: ...

    def run(self, stand_in: Callable[[Any], Any], **how: Any) -> Ran:
        """What was found, and what is left behind."""
        ...

    def seen(self) -> AllSeen:
        """What its cores call."""
        ...


@dataclass(frozen=True)
class Subject:
    """A kernel with a way to make its arguments."""

    name: str
    kernel: Kernel
    arguments: Callable[[], Sequence[Any]]
    blocks: int = 1
    rules: str | None = None

    def run(self, stand_in: Callable[[Any], Any], **how: Any) -> Ran:
        """Run it with something in the place of its machine."""
        given = tuple(self.arguments())
        arrays = [as_array(a) for a in given if isinstance(a, np.ndarray)]
        programs, body = self._with(stand_in, given)
        source = self.kernel.source
        policy = policy_for(source.file, self.rules, ())
        options = Options(self.blocks, arrays=arrays, policy=policy, **how)
        cores = dict.fromkeys(programs.cores, body)
        with warnings.catch_warnings(action="ignore"):
            try:
                ran = run(cores, source.target, programs.mode, options, programs.keeper)
            except PtoError as error:
                return error.diagnostics, []
        return ran.warnings, [a.tobytes() for a in arrays]

    def seen(self) -> AllSeen:
        """What its cores call."""
        found: AllSeen = defaultdict(Seen)

        def note(core: CoreName, at: Location, effects: Sequence[Any]) -> None:
            found[core].note(at, effects)

        programs, body = self._with(lambda machine: Watcher(machine, note), self.arguments())
        source = self.kernel.source

        def look() -> AllSeen:
            policy = policy_for(source.file, "release", ())
            options = Options(self.blocks, hazards=False, policy=policy)
            run(dict.fromkeys(programs.cores, body), source.target, programs.mode, options)
            return found

        return apart(look, [], programs.keeper)

    def _with(
        self, stand_in: Callable[[Any], Any], given: Sequence[Any]
    ) -> tuple[Programs, Callable[[], None]]:
        source = self.kernel.source
        programs = source.programs(None, source.bind(tuple(given), {}))
        enter = programs.body
        assert enter is not None

        def body() -> None:
            with running(stand_in(current())):
                enter()

        return programs, body


@dataclass
class Pair:
    """What is taken out together: a signal and its wait, or a barrier."""

    what: str
    kind: str
    edge: str
    meetings: list[tuple[CoreName, int, int]] = field(
        default_factory=list[tuple[CoreName, int, int]]
    )

    @property
    def places(self) -> Places:
        found: Places = {}
        for core, first, last in self.meetings:
            found.setdefault(core, set()).update((first, last))
        return found

    def explains(self, found: Diagnostic, seen: AllSeen) -> bool:
        """Whether a race is one that it kept away."""
        evidence, (src, _, dst) = found.evidence, self.edge.partition("->")
        if evidence is None or not found.notes:
            return False
        later, earlier = found.location, found.notes[0].location
        # One that it kept away together with others goes from its pipe on, or ends in it.
        near = evidence.edge.startswith(f"{src}->") or evidence.edge.endswith(f"->{dst}")
        if self.edge == _ALL_PIPES:  # it keeps away those between any two, and inside each
            near = "->" in evidence.edge or evidence.edge.startswith(_barrier(""))
        return (near or evidence.edge == self.edge) and any(
            earlier in seen[core].lines[:first] and later in seen[core].lines[last + 1 :]
            for core, first, last in self.meetings
        )


def _barrier(pipe: str) -> str:
    """The edge of a barrier, as evidence names it."""
    return f"barrier {pipe}"


_ALL_PIPES = _barrier(Pipe.ALL.name)


def pairs(seen: AllSeen) -> list[Pair]:
    """All pairs of a kernel, by their lines."""
    found: dict[tuple[Any, ...], Pair] = {}
    for core, calls in seen.items():
        given: dict[Any, deque[int]] = {}
        for place, effect in calls.orders:
            if isinstance(effect, Barrier):
                edge = _barrier(effect.pipe.name)
                at = calls.lines[place]
                pair = found.setdefault((at, edge), Pair(f"{at}: {edge}", "barrier", edge))
                pair.meetings.append((core, place, place))
            elif isinstance(effect, Signal):
                given.setdefault(effect.token, deque()).append(place)
            elif isinstance(effect, Wait) and given.get(effect.token):
                signal = given[effect.token].popleft()
                src, dst = calls.lines[signal], calls.lines[place]
                edge = f"{effect.token.src.name}->{effect.token.dst.name}"
                named = f"{src} -> {dst.line}: {edge}"
                pair = found.setdefault((src, dst, edge), Pair(named, "pair", edge))
                pair.meetings.append((core, signal, place))
    return list(found.values())


def judged(subject: Mutable, proof: int) -> Iterator[Verdict]:
    """The verdicts on all mutants of a kernel, and on the kernel itself."""
    complaints, left = subject.run(lambda machine: machine)
    for each in complaints:
        if each.severity == "error":
            yield Verdict("false alarm", subject.name, each.render().splitlines()[0])
            return
    original: Original = {about(d) for d in complaints}, left
    seen = subject.seen()
    for pair in pairs(seen):

        def attempt(pair: Pair = pair, schedule: Schedule | None = None) -> Ran:
            how = {} if schedule is None else {"schedule": schedule}
            passed: Counter[CoreName] = Counter()
            return subject.run(lambda machine: Without(machine, pair.places, passed), **how)

        def placed(found: Diagnostic, pair: Pair = pair) -> bool:
            return pair.explains(found, seen)

        what = f"{subject.name}: {pair.what}"
        yield verdict(what, pair.kind, attempt, original, proof, placed)


def subjects(path: Path, targets: Sequence[str], folder: Path) -> Iterator[Subject]:
    """The kernels of an example, one case of each, as C++."""
    module = load(path)
    chosen = {case.kernel.name: case for case in getattr(module, "MUTATED", module.CASES)}
    for case in chosen.values():
        for target in case.targets:
            if target not in targets:
                continue

            def arguments(case: Any = case) -> list[Any]:
                return list(case.inputs(np.random.default_rng(7)))

            text = case.kernel.cpp(*arguments(), target=target, **case.consts)
            source = folder / f"{path.stem}_{case.kernel.name}_{target}.cpp"
            source.write_text(text)
            kernel = cpp(source, target=target)[case.kernel.name]
            missing = len(kernel.source.signature) - len(arguments())  # the base of the signals
            first = [np.zeros(64, np.uint64)] * missing
            yield Subject(
                f"{case.name}, {target}",
                kernel,
                lambda first=first, arguments=arguments: [*first, *arguments()],
                case.blocks,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--proof", type=int, default=6, help="schedules for a silent mutant")
    parser.add_argument("--targets", default=",".join(TEXTS))
    add_resume(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="every verdict")
    options = parser.parse_args()
    files = options.files or sorted(EXAMPLES.glob("*.py"))
    with tempfile.TemporaryDirectory() as folder:
        known = (
            subject
            for path in files
            if path.stem not in ("harness", "run_all")
            for subject in subjects(path, options.targets.split(","), Path(folder))
        )
        with journal_of("cpp_mutants", options, Verdict) as journal:
            tally = told(known, options.proof, options.verbose, journal)
    return 0 if is_fine(tally) else 1


def told(
    subjects: Iterable[Mutable], proof: int, verbose: bool, journal: Journal | None = None
) -> Counter[str]:
    """Print what became of the mutants of each, and of all of them."""
    tally: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for subject in subjects:
        here: Counter[str] = Counter()
        known = None if journal is None else journal.known(subject.name)
        found = [*judged(subject, proof)] if known is None else known[0]
        if journal is not None and known is None:
            journal.add(subject.name, found)
        for each in found:
            here[each.word] += 1
            kinds[each.kind] += bool(each.kind)
            if verbose or each.word not in ("found", "harmless"):
                print(f"{each.word}: {each.what}: {each.why}")
        counts = ", ".join(f"{here[w]} {w}" for w in WORDS if here[w])
        print(f"{subject.name:<44} {counts}", flush=True)
        tally += here
    print(closing_line(tally, kinds))
    return tally


if __name__ == "__main__":
    sys.exit(main())
