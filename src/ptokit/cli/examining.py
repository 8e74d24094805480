"""What becomes of a Python file, in the process that may be stopped.

Every kernel of the file is lowered, placed and ordered for each target, and runs with every checker
on.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit import names  # a file asks for these first of all
from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, InternalError, PtoError, fail
from ptokit.base.location import Location, is_ours, user_frame
from ptokit.base.patterns import regex
from ptokit.base.usercode import compiled
from ptokit.cli.python_file import Explored, Job, remember_lines
from ptokit.cli.verdicts import Checked, no_kernel
from ptokit.from_python import PythonSource
from ptokit.frontend.advice import at_the_users_line, meant
from ptokit.kernels import LISTENERS, Kernel, Launch

if TYPE_CHECKING:
    from ptokit.repair.search import Repair, Trial

_MAIN = regex(r"^if\b.*\b__name__\b.*\b__main__\b", re.MULTILINE)
_MOST_CALLS = 16  # of a file, that its kernels are checked with
_SEED = 7  # of the arrays that CASES draws


@dataclass(frozen=True)
class Case:
    """A kernel with arguments; new ones for every run, for a run may change them."""

    kernel: Kernel
    arguments: Callable[[], Sequence[Any]]
    consts: Mapping[str, Any]
    blocks: int = 1
    targets: tuple[str, ...] = ()
    path: str = "lowered"


def repair_file(job: Job) -> Iterator[Repair]:
    """Mend the file: every text that is tried is imported and checked like the first one."""
    from ptokit.repair.search import Trial, repair

    def check(text: str) -> Trial:
        changed = replace(job, text=text)
        remember_lines(changed)
        return Trial(job.name, tuple(d for d in examine(changed) if isinstance(d, Diagnostic)))

    yield repair(job.text, check, job.name)


def examine(job: Job) -> Iterator[str | Checked | Explored | Diagnostic]:
    """Import a file and check its kernels, or explore them; what is found, as it is found."""
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
    if job.is_script or not _MAIN.search(job.text):
        return found
    more = f'calls under if __name__ == "__main__" are taken with ptokit {job.work} --run'
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
    if found.location is None or found.location.file != user_frame().f_code.co_filename:
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
