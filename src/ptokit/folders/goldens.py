"""Running published cases: a kernel with the host code, the inputs and the comparison beside it.

A case is a folder with kernel.pto, main.cpp, launch.cpp, golden.py and compare.py. golden.py makes
the files of inputs and what is expected, the host code says which of them a launch is given
(host_code.py), and compare.py judges what it leaves. The two scripts are other people's code: they
run in processes of their own, in a folder that is thrown away.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError, PtoWarning, usage_error
from ptokit.base.entry import public
from ptokit.base.layout import Array
from ptokit.folders.host_code import HostCode, HostLaunch, read_host_code
from ptokit.folders.runs import Outcome, Outcomes, Status, failed, run_each
from ptokit.from_text import Program, load
from ptokit.ir.core import Value
from ptokit.ir.micro import micro_group
from ptokit.ir.micro_calls import element_of
from ptokit.ir.types import PtrType, ScalarType
from ptokit.isa.effects import Pipe
from ptokit.isa.micro import MICRO
from ptokit.kernels import Kernel
from ptokit.machine.faults import OutOfBounds
from ptokit.machine.scheduler import Schedule
from ptokit.tasks import Jobs

FILES = ("kernel.pto", "main.cpp", "launch.cpp", "golden.py", "compare.py")
# What is told beside the verdict of compare.py: it says whether the bytes in question matter.
_BESIDE = {
    "poison-read": "stores undefined bytes",
    "E17": "relies on an order that nothing gives",
    "hidden-register": "uses a register of the unit that nothing has set: 0",
    "E6": "touches bytes on two pipes or cores that nothing orders",
}
LEVELS = ("tiles", "vpto", "vmi", "simt")  # of the language, downwards
_SCRIPT_SECONDS = 300.0  # after which a script is stopped


@dataclass(frozen=True)
class Golden:
    """A published case, and how it is to be run."""

    folder: Path
    target: str | None = None
    rules: str | None = None
    slack: int = 0
    max_seconds: float | None = None

    def files(self) -> Iterator[Path]:
        """All that are beside its program: the scripts may read others."""
        yield from sorted(path for path in self.folder.iterdir() if path.is_file())

    def moved(self, place: Callable[[Path], Path]) -> Golden:
        return replace(self, folder=place(self.folder))


@dataclass(frozen=True)
class Goldens(Outcomes):
    """What became of every case of a folder."""

    levels: tuple[str, ...] = ()  # of the language, of each case

    @property
    def closing(self) -> str:
        agree = [each.status is Status.AGREES for each in self]
        told = [
            f"{level} {sum(good)} of {len(good)}"
            for level in LEVELS
            if (good := [a for a, own in zip(agree, self.levels, strict=True) if own == level])
        ]
        return f"goldens: {sum(agree)} of {len(self)} agree: {', '.join(told)}"


@public
def run_goldens(
    place: str | Path,
    *,
    target: str | None = None,
    rules: str | None = None,
    slack: int = 0,
    jobs: Jobs = 1,
    max_seconds: float | None = None,
    resume: bool | None = None,
) -> Goldens:
    """Run every published case in a folder, and hold the results against its golden.

    This executes the golden.py and compare.py of each case: run it on code that you trust. `slack`
    puts so many bytes past every array for a kernel that leaves its own; such a case is named
    with a warning. `jobs` and `resume` are those of `run_folder`.
    """
    root = Path(place)
    folders = sorted(path.parent for path in root.rglob(FILES[0]) if _is_case(path.parent))
    if not folders:
        raise usage_error(
            "file", f"{root} holds no case", fix=f"a case is a folder with {', '.join(FILES)}"
        )
    options: dict[str, Any] = {"target": target, "rules": rules, "slack": slack}
    cases = [Golden(folder, **options, max_seconds=max_seconds) for folder in folders]
    blank = [Outcome(str(c.folder.relative_to(root)), "", "", Status.LEFT_OUT) for c in cases]
    found = run_each(cases, blank, run_golden, jobs, "goldens", resume)
    outcomes = (
        replace(o, program=b.program) for b, os_ in zip(blank, found, strict=True) for o in os_
    )
    return Goldens(tuple(outcomes), tuple(_level(case.folder) for case in cases))


def _is_case(folder: Path) -> bool:
    return all((folder / name).is_file() for name in FILES)


def _level(folder: Path) -> str:
    """The level of the language that a case is about: the last of those that its kernel uses."""
    text = (folder / FILES[0]).read_text("utf-8", "replace")
    names = set(re.findall(r"^[^/\n]*?(?<![!#\w])pto\.([\w.]+)", text, re.M))
    groups = {micro_group(f"pto.{name}") for name in names}
    is_of = {
        "tiles": True,
        "vpto": "the vector unit" in groups or not names.isdisjoint(MICRO),
        "vmi": "the virtual vector instructions" in groups,
        "simt": "threads" in groups,
    }
    return [level for level in LEVELS if is_of[level]][-1]


def run_golden(case: Golden) -> list[Outcome]:
    """Run one case; raises nothing but Ctrl-C."""
    started = time.perf_counter()
    made = Outcome(str(case.folder), "", case.target or "", Status.RAN)
    status = Status.REFUSED
    try:
        program = load(case.folder / FILES[0])
        host = read_host_code(*[(case.folder / name).read_text("utf-8") for name in FILES[1:3]])
        launches = [(each, _kernel(program, each.kernel)) for each in host.launches]
        names = ", ".join(dict.fromkeys(kernel.name for _, kernel in launches))
        made = replace(made, kernel=names, target=program.target(case.target).name)
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            for _, kernel in launches:
                nothing = [None] * len(kernel.function.params)
                kernel.lower(*nothing, target=case.target, rules=case.rules)
        status = Status.STOPPED
        with tempfile.TemporaryDirectory(prefix="ptokit-golden-") as place:
            return [_launched(case, made, host, launches, Path(place))]
    except Exception as error:
        return [failed(made, error, status, started)]


def _kernel(program: Program, name: str) -> Kernel:
    """The kernel that a launch names; a program with one kernel may call it as it likes."""
    known = program.kernels or [program.entry().name]
    return program[name if name in known or len(known) > 1 else known[0]]


def _launched(
    case: Golden,
    made: Outcome,
    host: HostCode,
    launches: list[tuple[HostLaunch, Kernel]],
    place: Path,
) -> Outcome:
    reason = _script(case, FILES[3], place)
    if reason:
        return replace(made, status=Status.REFUSED, reason=reason)
    started = time.perf_counter()
    found, warned = list[Diagnostic](), list[Diagnostic]()
    slack, allow, notes = 0, list[str](), list[str]()
    while True:
        try:
            buffers = _run(case, host, launches, place, slack, tuple(allow), found)
            break
        except PtoError as error:
            first = next((d for d in error.diagnostics if d.severity == "error"), None)
            if isinstance(error, OutOfBounds) and case.slack and not slack:
                slack, why = case.slack, "leaves its arrays, which slack allows"
            elif first is not None and first.code in _BESIDE and first.code not in allow:
                allow.append(first.code)
                why = _BESIDE[first.code]
            else:
                raise
            assert first is not None
            at = f"{first.location.line}: " if first.location else ""
            notes.append(f"{at}{first.code}: {why}")
            warned.append(replace(first, severity="warning"))
            found.clear()
    found = [*warned, *found]
    made = replace(made, reason="; ".join(notes))
    made = replace(made, seconds=time.perf_counter() - started, diagnostics=tuple(found))
    differs = _compared(case, buffers, place)
    if not differs:
        return replace(made, status=Status.AGREES)
    # What nothing orders may have come in another order on the device: with one of the pipes late.
    for pipe in Pipe if "E6" in allow else ():
        late = Schedule(late=(pipe,))
        for name in buffers:
            (place / name).unlink()
        _script(case, FILES[3], place)
        with suppress(PtoError):
            buffers = _run(case, host, launches, place, slack, tuple(allow), [], late)
            if not _compared(case, buffers, place):
                notes.append(f"it agrees in another order of the pipes: {late}")
                return replace(made, status=Status.AGREES, reason="; ".join(notes))
    return replace(made, status=Status.DIFFERS, reason="; ".join([differs, *notes]))


def _compared(case: Golden, buffers: Mapping[str, tuple[Array, int]], place: Path) -> str:
    """What compare.py says against the bytes that a kernel has left; nothing: they are right."""
    for name, (array, nbytes) in buffers.items():
        array[:nbytes].tofile(place / name)
    return _script(case, FILES[4], place)


def _run(
    case: Golden,
    host: HostCode,
    launches: list[tuple[HostLaunch, Kernel]],
    place: Path,
    slack: int,
    allow: tuple[str, ...],
    found: list[Diagnostic],
    schedule: Schedule | None = None,
) -> Mapping[str, tuple[Array, int]]:
    """Launch what the host launches; the bytes of each file, and how many are its own."""
    buffers: dict[str, tuple[Array, int]] = {}
    for launch, kernel in launches:
        params = kernel.function.params
        if len(launch.arguments) != len(params):
            raise usage_error(
                "manifest",
                f"@{kernel.name} takes {len(params)} arguments, launch.cpp hands over "
                f"{len(launch.arguments)}",
            )
        fetch = partial(_argument, host, place, buffers, slack)
        values = [
            fetch(p, a, n) for n, (p, a) in enumerate(zip(params, launch.arguments, strict=True))
        ]
        known = {
            name: value
            for name, value in zip(launch.arguments, values, strict=True)
            if not isinstance(value, np.ndarray)
        }
        known |= {name: known[given] for name, given in launch.names.items() if given in known}
        grid = host.number(launch.grid, known)
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            run = kernel[grid](
                *values,
                target=case.target,
                rules=case.rules,
                allow=allow,
                max_seconds=case.max_seconds,
                schedule=schedule,
            )
        found += run.warnings
    return buffers


def _argument(
    host: HostCode,
    place: Path,
    buffers: dict[str, tuple[Array, int]],
    slack: int,
    param: Value,
    text: str,
    number: int,
) -> Any:
    """The value of an argument: a number, or an array over the bytes of a file."""
    kind = param.type
    if isinstance(kind, ScalarType):
        file = host.scalar_file(text)
        if file is not None:
            data = (place / file).read_bytes()
            if kind.is_float:
                return float(np.frombuffer(data, element_of(kind).np)[0])
            return int.from_bytes(data, "little", signed=True)
        found = host.number(text)
        return float(found) if kind.is_float else int(found)
    assert isinstance(kind, PtrType)
    name = host.file_of(text, number)
    if name not in buffers:
        data = _bytes(place, name)
        buffers[name] = np.concatenate([data, np.zeros(slack, np.uint8)]), data.size
    array, size = buffers[name][0], element_of(kind.element).itemsize
    return array[: array.size // size * size].view(element_of(kind.element).np)


def _bytes(place: Path, name: str) -> Array:
    """The bytes of an input, or as many zeros as are expected of an output."""
    if (place / name).exists():
        return np.fromfile(place / name, np.uint8)
    short = name.removeprefix("out_").removeprefix("output_")
    for expected in (f"golden_{name}", f"golden_{short}"):
        if (place / expected).exists():
            return np.zeros((place / expected).stat().st_size, np.uint8)
    sizes = [path.stat().st_size for path in place.glob("*golden*")]
    return np.zeros(max(sizes, default=4096), np.uint8)


def _script(case: Golden, name: str, place: Path) -> str:
    """Run a script of a case; why it is not content, or nothing."""
    command = [sys.executable, str((case.folder / name).resolve())]
    if name == FILES[3]:
        command += ["--output-dir", str(place)]
    done = _process(command, place)
    if done.returncode and name == FILES[3]:  # older ones write where they stand, without options
        done = _process(command[:2], place)
    told = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    last = next((line.strip() for line in reversed(told) if line.strip()), "")
    if done.returncode:
        return f"{name} ended with code {done.returncode}: {last}"
    return next((f"{name}: {line.strip()}" for line in told if "WARN" in line), "")


def _process(command: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=place,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_SCRIPT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"stopped after {_SCRIPT_SECONDS:.0f} s")
