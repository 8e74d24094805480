"""Checking a Python file: its kernels, for the arguments that they declare or are called with.

The file is imported in a process of its own, which is stopped when its time is over. There every
kernel is lowered, placed and ordered for each target, and runs with every checker on. What comes
back are messages: what the process works on, what it found, which kernels it has checked.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from multiprocessing import get_context, process
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit import names  # a file asks for these first of all
from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, InternalError, PtoError, PtoWarning, fail
from ptokit.base.location import Location, is_ours
from ptokit.base.usercode import compiled
from ptokit.cli.verdicts import Checked, Rules, no_kernel
from ptokit.from_python import PythonSource
from ptokit.frontend.advice import at_the_users_line, meant
from ptokit.kernels import LISTENERS, Kernel, Launch
from ptokit.tasks import Jobs
from ptokit.tasks.processes import end_group, undisturbed

if TYPE_CHECKING:
    from ptokit.repair.search import Repair, Trial

_MAIN = re.compile(r"^if\b.*\b__name__\b.*\b__main__\b", re.MULTILINE)
_MOST_CALLS = 16  # of a file, that its kernels are checked with
_SEED = 7  # of the arrays that CASES draws


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


@dataclass(frozen=True)
class Case:
    """A kernel with arguments; new ones for every run, for a run may change them."""

    kernel: Kernel
    arguments: Callable[[], Sequence[Any]]
    consts: Mapping[str, Any]
    blocks: int = 1
    targets: tuple[str, ...] = ()
    path: str = "lowered"


def check_python(job: Job, seconds: float) -> Verdict:
    """Do the work on a file in a process of its own, for so long at most."""
    verdict = Verdict()
    _remember_lines(job)
    try:
        ast.parse(job.text, job.name)
    except (SyntaxError, ValueError) as error:
        verdict.found.append(not_python(job.name, error))
        return verdict
    context = get_context("fork")  # which has imported us already
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=_serve, args=(job, theirs))
    with undisturbed():
        worker.start()
    theirs.close()
    try:
        _listen(ours, verdict, job, time.monotonic() + seconds, seconds)
    finally:
        end_group(worker)
    return verdict


def not_python(name: str, error: SyntaxError | ValueError) -> Diagnostic:
    if not isinstance(error, SyntaxError):
        return Diagnostic("check.syntax", f"this is not Python: {error}", Location(name, 0))
    at = Location(name, error.lineno or 0, error.offset or 0)
    fix = "by its name this is a file of Python; one of PTO text ends in .pto"
    return Diagnostic("check.syntax", f"this is not Python: {error.msg}", at, fix=fix)


def _listen(ours: Connection, verdict: Verdict, job: Job, until: float, seconds: float) -> None:
    while True:
        if not ours.poll(max(0.0, until - time.monotonic())):
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
            said = ours.recv()
        except EOFError:  # it ended without a last word: os._exit, a signal
            end = Diagnostic(
                "check.import", f"the process ended while {verdict.doing}", Location(job.name, 0)
            )
            verdict.found.append(end)
            return
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


# ---- in the process ------------------------------------------------------------------------------


def _serve(job: Job, theirs: Connection) -> None:
    os.setsid()
    os.dup2(2, 1)  # what the file prints is not our answer
    _remember_lines(job)
    warnings.simplefilter("ignore", PtoWarning)  # they are part of the answer
    try:
        for said in _repair(job) if job.work == "fix" else _examine(job):
            theirs.send(said)
    except InternalError as error:
        theirs.send(error)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        trace = traceback.format_exc()
        theirs.send(InternalError([Diagnostic("internal", what, got=(("traceback", trace),))]))
    theirs.send(None)


def _remember_lines(job: Job) -> None:
    linecache.cache[job.name] = len(job.text), None, job.text.splitlines(True), job.name


def _repair(job: Job) -> Iterator[Repair]:
    """Mend the file: every text that is tried is imported and checked like the first one."""
    from ptokit.repair.search import Trial, repair

    def check(text: str) -> Trial:
        changed = replace(job, text=text)
        _remember_lines(changed)
        return Trial(job.name, tuple(d for d in _examine(changed) if isinstance(d, Diagnostic)))

    yield repair(job.text, check, job.name)


def _examine(job: Job) -> Iterator[str | Checked | Explored | Diagnostic]:
    calls: list[Case] = []
    module, stop = ModuleType("__main__" if job.is_script else Path(job.name).stem), None
    try:
        _import(job, module, calls)
    except PtoError as error:
        if not (job.is_script and calls):
            yield from error.diagnostics
            return
        stop = error  # the launch that failed is known, and is checked below
    except BaseException as error:
        yield raised(error, job.name, "check.import", "importing the file")
        return
    kernels = [
        k
        for k in vars(module).values()
        if isinstance(k, Kernel)
        and isinstance(k.source, PythonSource)
        and k.function.__code__.co_filename == job.name
    ]
    try:
        cases = list(listed_cases(module))
    except PtoError as error:
        yield from error.diagnostics
        return
    kernels = [k for k in dict.fromkeys(kernels) if all(c.kernel is not k for c in cases)]
    if not kernels and not cases:
        yield no_kernel(job.name, "a kernel is a function of the module under @kernel")
    for kernel in kernels:
        called = [case for case in calls if case.kernel is kernel]
        try:
            cases.append(declared_case(kernel))
        except PtoError as error:
            cases += called
            if not called and stop is None:
                yield from (_with_script(each, job) for each in error.diagnostics)
    if stop is not None and not cases:
        yield from stop.diagnostics
    for case in cases:
        asked = job.targets or case.targets or (case.kernel.source.target.name,)
        for name in asked:
            if name in (case.targets or asked):
                if job.work == "explore":
                    yield f"exploring {case.kernel.name} on {name}"
                    yield from _explore(case, name, job)
                    continue
                yield f"checking {case.kernel.name} on {name}"
                found = _complaints(case, name, job)
                yield from found
                errors = sum(d.severity == "error" for d in found)
                yield Checked(case.kernel.name, name, errors)


def _with_script(found: Diagnostic, job: Job) -> Diagnostic:
    """Who calls the kernel, but only where the file is the program, is told how that is run."""
    if job.is_script or job.work != "check" or not _MAIN.search(job.text):
        return found
    more = 'calls under if __name__ == "__main__" are taken with ptokit check --run'
    return replace(found, fix=f"{found.fix}; {more}")


def _import(job: Job, module: ModuleType, calls: list[Case]) -> None:
    """Run the file; note what its kernels are called with meanwhile, one call of each kind."""
    seen: set[Any] = set()

    def note(launch: Launch, args: tuple[Any, ...], consts: Mapping[str, Any]) -> None:
        kernel, bound = launch.kernel, launch.kernel.source.bind(args, dict(consts))
        key = (kernel.name, launch.blocks, kernel.source.cache_key(bound))
        if key not in seen and len(seen) < _MOST_CALLS:
            seen.add(key)
            before = _copied(args)  # the launch may change its arrays
            calls.append(Case(kernel, lambda: _copied(before), consts, launch.blocks))

    LISTENERS.append(note)
    module.__file__ = job.name
    sys.argv = [job.name]
    sys.path.insert(0, str(Path(job.name).parent))
    sys.modules[module.__name__] = module  # dataclasses and pickles look their module up
    try:
        exec(compiled(job.text, job.name), module.__dict__)
    except SystemExit as stop:
        if stop.code or not job.is_script:
            raise
    finally:
        LISTENERS.remove(note)


def _copied(values: Sequence[Any]) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


def listed_cases(module: ModuleType) -> Iterator[Case]:
    """The cases of a module's CASES: objects with a kernel and its inputs."""
    for each in getattr(module, "CASES", ()):
        if not isinstance(getattr(each, "kernel", None), Kernel) or not hasattr(each, "inputs"):
            raise fail(
                "check.cases",
                "CASES lists objects with a kernel and its inputs, a function of a generator",
                got=[("entry", each)],
                fix="SimpleNamespace(kernel=add, inputs=lambda rng: [rng.random((16, 64), 'f4')])",
                site=Location(str(module.__file__), 0),
            )
        yield Case(
            each.kernel,
            lambda each=each: list(each.inputs(np.random.default_rng(_SEED))),
            getattr(each, "consts", {}),
            getattr(each, "blocks", 1),
            tuple(getattr(each, "targets", ())),
            "lowered" if "lowered" in getattr(each, "paths", ("lowered",)) else "eager",
        )


def declared_case(kernel: Kernel) -> Case:
    """A kernel with the arguments of its signature."""
    _, consts = kernel.source.sampled()
    return Case(kernel, lambda: kernel.source.sampled()[0], consts)


def _complaints(case: Case, name: str, job: Job) -> list[Diagnostic]:
    """All that is wrong with a kernel on one target: as it stands, placed, ordered, and run."""
    kernel, defines = case.kernel, dict(job.defines)
    launch = kernel[case.blocks]
    options: dict[str, Any] = {"defines": defines, **job.rules, **case.consts}
    how: dict[str, Any] = {"target": name, "path": case.path, **options}
    warned: Sequence[Diagnostic] = ()
    try:
        report = kernel.check(name, *case.arguments(), **options)
        warned = report.diagnostics
        if not report:
            return [_at_kernel(found, kernel) for found in report.diagnostics]
        ran = launch(*case.arguments(), engine="stepwise", **how)  # once: nothing is repeated
        return [*warned, *ran.warnings]
    except InternalError:
        raise
    except PtoError as error:
        found = error.diagnostics
        if job.work == "check":
            found = launch.witnessed(found, *case.arguments(), **how)
        return [_at_kernel(each, kernel) for each in (*warned, *found)]
    except Exception as error:
        return [*warned, raised(error, job.name, "check.exception", f"running {kernel.name}", name)]


def _explore(case: Case, name: str, job: Job) -> Iterator[Explored | Diagnostic]:
    """What many schedules show of a kernel."""
    kernel = case.kernel
    how: dict[str, Any] = {"defines": dict(job.defines), **job.rules, **case.consts}
    try:
        found = kernel[case.blocks].explore(
            *case.arguments(),
            schedules=job.schedules,
            jobs=job.jobs,
            resume=job.resume,
            target=name,
            **how,
        )
    except InternalError:
        raise
    except PtoError as error:
        yield from (_at_kernel(each, kernel) for each in error.diagnostics)
        return
    yield from found.found
    yield Explored(kernel.name, name, str(found), found.count, found.is_complete)


def _missing(error: ImportError) -> str:
    """The name that ptokit was asked for and does not have."""
    found = re.match(r"cannot import name '(\w+)' from 'ptokit", str(error))
    return found[1] if found else ""


def _at_kernel(found: Diagnostic, kernel: Kernel) -> Diagnostic:
    """What is said about a call is said about the kernel: here nobody has written the call."""
    if found.location is None or found.location.file != process.__file__:
        return found
    code = kernel.function.__code__
    return replace(found, location=Location(code.co_filename, code.co_firstlineno))


def raised(error: BaseException, name: str, code: str, during: str, target: str = "") -> Diagnostic:
    """An exception of Python's as a finding at the line of the file that it came through last."""
    line, ours = 0, False
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            line, ours = trace.tb_lineno, False
        elif is_ours(trace.tb_frame):
            ours = True
        trace = trace.tb_next
    if ours and not line:  # not even called from there: a bug of ours
        raise error
    unknown = at_the_users_line(error) if isinstance(error, NameError | AttributeError) else None
    if unknown is not None:
        return replace(unknown.diagnostics[0], target=target)
    if isinstance(error, SystemExit):
        what, fix = f"{during} ends the program", 'under if __name__ == "__main__" it would not'
    else:
        what, fix = f"{during} raised {type(error).__name__}: {error}".rstrip(": "), ""
        if isinstance(error, ImportError) and (lacking := _missing(error)):
            fix = meant(lacking, names.__all__)
    return Diagnostic(code, what, Location(name, line), fix=fix, target=target)
