"""Running all programs of a folder, each by itself: one that fails does not stop the others."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import (
    Diagnostic,
    InternalError,
    ProgramError,
    PtoError,
    PtoWarning,
    usage_error,
)
from ptokit.base.dtypes import DType
from ptokit.base.entry import public
from ptokit.folders.arrays import difference, is_changed, read_array
from ptokit.folders.inputs import attempts, element_of, is_memory, is_misled
from ptokit.folders.manifest import Case, cases_in
from ptokit.folders.parcels import Movable, journal_of, packed
from ptokit.from_text import Program, load_parts
from ptokit.ir.core import Function
from ptokit.kernels import Kernel
from ptokit.tasks import Executor, Jobs, Task, Trouble, progress
from ptokit.tasks.work import Kind


class Status(StrEnum):
    """What became of a run."""

    AGREES = "agrees"  # with the arrays that were expected
    RAN = "ran"  # nothing was expected
    DIFFERS = "differs"
    STOPPED = "stopped"  # by an error while it ran
    REFUSED = "refused"  # it cannot be read, or breaks a rule
    BUG = "bug"  # of ptokit
    LEFT_OUT = "left out"  # somebody stopped the whole


GOOD = frozenset({Status.AGREES, Status.RAN})


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    program: str
    kernel: str
    target: str
    status: Status
    name: str = ""  # that a manifest gives the run
    seconds: float = 0.0  # of the launch, its checks included
    reason: str = ""
    inputs: str = ""  # what random arguments were drawn from
    changed: tuple[str, ...] = ()  # the arrays that the kernel has written
    diagnostics: tuple[Diagnostic, ...] = ()  # of what stopped it, or its warnings

    def to_json(self) -> dict[str, Any]:
        """Return plain data for tools."""
        data = {k: v for k, v in vars(self).items() if k != "diagnostics"}
        return {**data, "status": self.status.value, "changed": list(self.changed),
                "diagnostics": [d.to_json() for d in self.diagnostics]}  # fmt: skip


@dataclass(frozen=True)
class Outcomes(Sequence[Outcome]):
    """What became of every run of a folder, in the order of the programs."""

    outcomes: tuple[Outcome, ...]

    def __getitem__(self, place: Any) -> Any:
        return self.outcomes[place]

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def counts(self) -> dict[str, int]:
        """How many runs ended in which way; those that none did are left out."""
        found = Counter(each.status for each in self.outcomes)
        return {status.value: found[status] for status in Status if found[status]}

    @property
    def is_clean(self) -> bool:
        """Whether all of them ran, and agree with what was expected."""
        return all(each.status in GOOD for each in self.outcomes)

    def __str__(self) -> str:
        """A table, and a line that counts."""
        rows = [
            (
                each.status.value,
                f"{each.seconds:.3f}",
                each.target,
                each.program,
                f"{each.kernel}, {each.name}" if each.name else each.kernel,
            )
            for each in self.outcomes
        ]
        widths = [max((len(row[n]) for row in rows), default=0) for n in range(5)]
        lines: list[str] = []
        for each, row in zip(self.outcomes, rows, strict=True):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append(f"{'  '.join(cells)}  {each.reason}".rstrip())
        return "\n".join([*lines, self.closing])

    @property
    def closing(self) -> str:
        """The line that counts."""
        told = ", ".join(f"{count} {status}" for status, count in self.counts.items())
        seconds = sum(each.seconds for each in self.outcomes)
        return f"{len(self)} runs: {told}; {seconds:.1f} s"


@public
def run_folder(
    place: str | Path,
    *,
    seed: int = 0,
    grid: int = 1,
    target: str | None = None,
    sync: str | None = None,
    place_tiles: bool | None = None,
    rules: str | None = None,
    jobs: Jobs = 1,
    max_seconds: float | None = None,
    resume: bool | None = None,
) -> Outcomes:
    """Run every program of a folder, and of the folders in it, as its `runs.toml` says.

    Arguments that no manifest gives are drawn from `seed`: arrays as long as the views over them.
    The other options hold where a manifest says nothing. `jobs` runs so many programs at a time in
    processes, or on a cluster. Ctrl-C ends the whole; what was not run yet is `left out`. With
    `resume` outcomes are kept until all are there: True goes on where a run was stopped.
    """
    options: dict[str, Any] = {"seed": seed, "grid": grid, "target": target, "sync": sync,
               "place": place_tiles, "rules": rules, "max_seconds": max_seconds}  # fmt: skip
    root = Path(place)
    cases = cases_in(root, options)
    found = run_each(cases, [*map(_left_out, cases)], run_case, jobs, "programs", resume)
    base = root if root.is_dir() else root.parent
    every = [o for outcomes in found for o in outcomes]
    return Outcomes(tuple(replace(o, program=_short(o.program, base)) for o in every))


def _left_out(case: Case) -> Outcome:
    return Outcome(str(case.program), case.kernel, case.target or "", Status.LEFT_OUT, case.name)


def _short(program: str, base: Path) -> str:
    return str(Path(program).relative_to(base))


# ---- one run -------------------------------------------------------------------------------------


def run_case(case: Case) -> list[Outcome]:
    """Run a program as a case says: one outcome per kernel; raises nothing but Ctrl-C."""
    started = time.perf_counter()
    made = replace(_left_out(case), status=Status.RAN)
    try:
        parts = load_parts(case.program).values()
        chosen = [(part, name) for part in parts for name in _kernels(part, case)]
        targets = [part.target(case.target).name for part, _ in chosen]
    except Exception as error:
        return [failed(made, error, Status.REFUSED, started)]
    return [
        _run(replace(made, kernel=name, target=target), case, part)
        for (part, name), target in zip(chosen, targets, strict=True)
    ]


def _kernels(program: Program, case: Case) -> list[str]:
    """The kernels of a program that a case is about."""
    return [case.kernel] if case.kernel else program.kernels or [program.entry().name]


def _run(made: Outcome, case: Case, program: Program) -> Outcome:
    started = time.perf_counter()
    status = Status.REFUSED
    try:
        kernel = program[made.kernel]
        options: dict[str, Any] = {"target": case.target, "sync": case.sync, "place": case.place,
                   "rules": case.rules}  # fmt: skip
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            kernel.lower(*[None] * len(kernel.function.params), **options)
            status = Status.STOPPED
            return _launched(made, case, kernel, program, options)
    except Exception as error:
        return failed(made, error, status, started)


def _launched(
    made: Outcome, case: Case, kernel: Kernel, program: Program, options: Mapping[str, Any]
) -> Outcome:
    """Run a kernel on what is given, and on random inputs for the rest."""
    params = [p.name for p in kernel.function.params]
    _check_names(case, kernel.function)
    kinds = {p.name: element_of(p) for p in kernel.function.params if is_memory(p)}
    given = {
        name: read_array(value, name, kinds.get(name)) if isinstance(value, str) else value
        for name, value in case.args.items()
    }
    first: PtoError | None = None
    for within, make in attempts(program.launchable, kernel.function, case.seed, given):
        drawn = make()
        after = dict(zip(params, drawn, strict=True))
        started = time.perf_counter()
        try:
            run = kernel[case.grid](*drawn, **options, max_seconds=case.max_seconds)
        except ProgramError as error:
            first = first or error
            if set(given) == set(params) or not is_misled(error, kernel.function, within):
                raise
            continue
        made = replace(
            made,
            seconds=time.perf_counter() - started,
            inputs="" if set(given) == set(params) else str(within),
            changed=tuple(
                name
                for name, old in zip(params, make(), strict=True)
                if name in kinds and is_changed(old, after[name])
            ),
            diagnostics=run.warnings,
        )
        return _compared(made, case, after, kinds)
    assert first is not None
    raise first


def _check_names(case: Case, function: Function) -> None:
    """Refuse values for what the kernel does not take, or not as such."""
    kinds = {p.name: is_memory(p) for p in function.params}
    for name, value in (*case.args.items(), *case.expected.items()):
        listed = ", ".join(f"%{p.name}: {p.type}" for p in function.params)
        if name not in kinds:
            raise usage_error("manifest", f"there is no parameter %{name}", fix=f"one of {listed}")
        if kinds[name] != isinstance(value, str | dict):
            what = "an .npy file or a table" if kinds[name] else "a number"
            raise usage_error("manifest", f"%{name} is given as {what}", fix=listed)


def _compared(
    made: Outcome, case: Case, after: Mapping[str, Any], kinds: Mapping[str, DType]
) -> Outcome:
    """The outcome of a run that has ended, held against what was expected."""
    if not case.expected:
        return made
    reasons: list[str] = []
    for name, given in case.expected.items():
        if isinstance(given, str):
            wanted = read_array(given, name, kinds[name])
        else:
            wanted = np.full(after[name].shape, given["fill"], kinds[name].np)
        found = difference(after[name], wanted, kinds[name], case.rtol, case.atol)
        reasons += [f"%{name}: {found}"] if found else []
    status = Status.DIFFERS if reasons else Status.AGREES
    return replace(made, status=status, reason="; ".join(reasons))


def failed(made: Outcome, error: Exception, status: Status, started: float) -> Outcome:
    """The outcome of a run that an error has ended."""
    seconds = time.perf_counter() - started
    found = error.diagnostics if isinstance(error, PtoError) else ()
    if isinstance(error, InternalError) or not isinstance(error, PtoError):
        status = Status.BUG
    reason = f"{type(error).__name__}: {error}"
    if found:
        first = next((d for d in found if d.severity == "error"), found[0])
        at = f"{first.location.line}: " if first.location else ""
        reason = f"{at}{first.code}: {first.message}"
    elif not isinstance(error, MemoryError):
        reason += "".join(traceback.format_tb(error.__traceback__)[-1:]).replace("\n", " ")
    return replace(made, status=status, seconds=seconds, reason=reason, diagnostics=tuple(found))


# ---- many runs -----------------------------------------------------------------------------------


def run_each(
    cases: Sequence[Movable],
    left_out: Sequence[Outcome],
    run: Callable[[Any], list[Outcome]],
    jobs: Jobs,
    of_what: str,
    resume: bool | None,
) -> list[list[Outcome]]:
    """The outcomes of every case; of those that Ctrl-C has left out what stands for them.

    With `resume` they are kept until all are there: True goes on where a run was stopped.
    """
    executor, kind = Executor.of(jobs), list[Outcome]
    found = [[each] for each in left_out]
    work, pack = packed(executor, run, kind)
    tasks = (Task(str(number), pack(case)) for number, case in enumerate(cases))
    kept = journal_of(of_what, cases, kind, resume)
    with suppress(KeyboardInterrupt), kept as journal, progress(len(cases), of_what, 2) as done:
        for each in executor.results(work, tasks, journal=journal):
            found[each.number] = each.value or [_lost(left_out[each.number], each.trouble)]
            if done is not None:
                done(1)
    return found


def _lost(blank: Outcome, trouble: Trouble | None) -> Outcome:
    """The outcome of a case that has said nothing."""
    assert trouble is not None
    status = Status.STOPPED if trouble.kind is Kind.TIME else Status.BUG
    return replace(blank, status=status, reason=trouble.reason)
