"""Checking a Python file: its kernels, for the arguments that they declare or are called with.

The file is imported in a process of its own, which is stopped when its time is over
(`examining.py`). What comes back are messages: what the process works on, what it found, which
kernels it has checked. So this process loads nothing that runs kernels.
"""

from __future__ import annotations

import ast
import linecache
import os
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, InternalError, PtoWarning
from ptokit.base.location import Location
from ptokit.base.process import Copied, end_group
from ptokit.base.starting import uncollected
from ptokit.cli.verdicts import Checked, Rules

if TYPE_CHECKING:
    from ptokit.repair.search import Repair
    from ptokit.tasks import Jobs


# Threads of the library that NumPy multiplies with sleep when they have nothing to do. Otherwise
# they spin for a while, from when they are made on: a quarter of what `import numpy` takes.
_SLEEPING = ("OPENBLAS_THREAD_TIMEOUT", "4")


@dataclass(frozen=True)
class Job:
    """What the process is asked to do."""

    name: str  # as the file was given: diagnostics name it so
    text: str
    targets: tuple[str, ...]  # none: the ones each kernel is for
    defines: Mapping[str, int]
    rules: Rules
    work: str = "check"  # or "fix", "explore"
    schedules: int = 0  # to be explored
    jobs: Jobs = 1  # for that
    resume: bool = False
    is_script: bool = False  # what stands under `if __name__ == "__main__"` runs as well


@dataclass(frozen=True)
class Explored:
    """A kernel that was run under many schedules on one target."""

    kernel: str
    target: str
    verdict: str
    schedules: int
    is_complete: bool


@dataclass
class Verdict:
    """What is known of a file."""

    found: list[Diagnostic] = field(default_factory=list[Diagnostic])
    checked: list[Checked] = field(default_factory=list[Checked])
    doing: str = "importing it"
    repair: Repair | None = None  # when it was asked for
    explored: list[Explored] = field(default_factory=list[Explored])


def check_python(job: Job, seconds: float) -> Verdict:
    """Do the work on a file in a process of its own, for so long at most."""
    verdict = Verdict()
    remember_lines(job)
    try:
        ast.parse(job.text, job.name)
    except (SyntaxError, ValueError) as error:
        verdict.found.append(not_python(job.name, error))
        return verdict
    worker = Copied(partial(_serve, job))
    try:
        _listen(worker, verdict, job, seconds)
    finally:
        end_group(worker)
    return verdict


def not_python(name: str, error: SyntaxError | ValueError) -> Diagnostic:
    if not isinstance(error, SyntaxError):
        return Diagnostic("check.syntax", f"this is not Python: {error}", Location(name, 0))
    at = Location(name, error.lineno or 0, error.offset or 0)
    fix = "by its name this is a file of Python; one of PTO text ends in .pto"
    return Diagnostic("check.syntax", f"this is not Python: {error.msg}", at, fix=fix)


def _serve(job: Job, send: Callable[[Any], None]) -> None:
    """What the process does; what runs kernels is loaded there, and only there."""
    os.setsid()
    os.dup2(2, 1)  # what the file prints is not our answer
    warnings.simplefilter("ignore", PtoWarning)  # they are part of the answer
    os.environ.setdefault(*_SLEEPING)
    try:
        with uncollected(for_good=True):
            from ptokit.cli.examining import examine, repair_file
        send("importing it")
        for said in repair_file(job) if job.work == "fix" else examine(job):
            send(said)
    except InternalError as error:
        send(error)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        trace = traceback.format_exc()
        send(InternalError([Diagnostic("internal", what, got=(("traceback", trace),))]))
    send(None)


def remember_lines(job: Job) -> None:
    """Let whoever looks for a line of the file find the text that is checked."""
    linecache.cache[job.name] = len(job.text), None, job.text.splitlines(True), job.name


def _listen(worker: Copied, verdict: Verdict, job: Job, seconds: float) -> None:
    until = 0.0  # from its first word on: then we are loaded, and the time of the file begins
    while True:
        if until and not worker.heard(until - time.monotonic()):
            verdict.found.append(
                Diagnostic(
                    "check.time",
                    f"stopped after {seconds:g} s, while {verdict.doing}",
                    Location(job.name, 0),
                    fix="--seconds gives more time; work at import time belongs under "
                    'if __name__ == "__main__"',
                )
            )
            return
        try:
            said = worker.receive()
        except EOFError:  # it ended without a last word: os._exit, a signal
            end = Diagnostic(
                "check.import", f"the process ended while {verdict.doing}", Location(job.name, 0)
            )
            verdict.found.append(end)
            return
        until = until or time.monotonic() + seconds
        match said:
            case str():
                verdict.doing = said
            case Checked():
                verdict.checked.append(said)
            case Diagnostic():
                verdict.found.append(said)
            case Explored():
                verdict.explored.append(said)
            case InternalError():
                raise said
            case None:
                return
            case _:  # that of `fix`
                verdict.repair = said
