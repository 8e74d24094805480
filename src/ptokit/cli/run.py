"""`ptokit run FILE ARG...`: execute a program on arrays from .npy files, or a folder of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NoReturn

import numpy as np

from ptokit.base.diagnostics import Diagnostic, usage_error
from ptokit.base.files import Fill, make_folder, write, write_text
from ptokit.cli import Allow, Defines, OnTarget, Release, Strict, pass_or_refuse, profile
from ptokit.cli.answer import AsJson, Exit, answer
from ptokit.cli.cpp_file import CppCall
from ptokit.cli.declared import Argument, Option
from ptokit.cli.sources import (
    ARGUMENTS,
    built_program,
    built_programs,
    is_cpp,
    load_program,
    read_text,
    run_shell,
)
from ptokit.cli.spreading import Cluster, HowMany, Resume, TaskSeconds, executor
from ptokit.cli.steps import Asked, finishing
from ptokit.compat.device.options import ALLOW, SLACK
from ptokit.folders.arrays import array_for
from ptokit.folders.goldens import run_goldens
from ptokit.folders.runs import Outcomes, Status, run_folder
from ptokit.from_text import Program
from ptokit.ir.core import Value
from ptokit.ir.types import PtrType, ScalarType, ShapedType, ViewType
from ptokit.kernels import Kernel
from ptokit.native.keeper import TIME_LIMIT


@finishing
def command(
    file: Annotated[
        Path,
        Argument(help="A PTO text, a C++ file, or a folder of texts; - is standard input."),
    ],
    args: Annotated[list[str] | None, Argument(help=ARGUMENTS)] = None,
    entry: Annotated[str, Option("--entry", "--kernel", help="The function to launch.")] = "",
    grid: Annotated[int, Option("--grid", min=1, help="Number of blocks.")] = 1,
    target: OnTarget = None,
    schedule: Annotated[
        int | None,
        Option("--schedule", help="Seed of a random, repeatable order of cores and pipes."),
    ] = None,
    jobs: HowMany = "1",
    cluster: Cluster = "",
    task_seconds: TaskSeconds = None,
    resume: Resume = False,
    seed: Annotated[
        int | None,
        Option("--seed", min=0, help="Draw arguments that nobody gives. Default of a folder: 0."),
    ] = None,
    out: Annotated[
        Path | None, Option("--out", help="Folder for the arrays the kernel changed.")
    ] = None,
    in_place: Annotated[
        bool, Option("--in-place", help="Write changed arrays back to their files.")
    ] = False,
    max_steps: Annotated[
        int | None,
        Option("--max-steps", min=1, help="Stop after so many instructions and rounds."),
    ] = None,
    max_seconds: Annotated[
        float | None, Option("--max-seconds", min=0.001, help="Stop after so long.")
    ] = None,
    max_bytes: Annotated[
        int | None,
        Option("--max-bytes", min=1, help="Stop at so many bytes of simulated memory."),
    ] = None,
    time_limit: Annotated[
        float,
        Option("--time-limit", min=0.001, help="Of C++: seconds without an instruction."),
    ] = TIME_LIMIT,
    golden: Annotated[
        bool,
        Option(
            "--golden",
            help="Of a folder of published cases: compare with their goldens. Runs the golden.py "
            "and compare.py of each case, which is code of others.",
        ),
    ] = False,
    slack: Annotated[
        int,
        Option(
            "--slack",
            min=0,
            help="With --golden or --compat: bytes past each array, for kernels that leave it.",
        ),
    ] = 0,
    compat: Annotated[
        bool,
        Option(
            "--compat",
            help="FILE is a Python program for the bindings of MLIR, PTODSL or PyPTO, or a script "
            "of the shell: execute it, with ARG after --, and run what it builds.",
        ),
    ] = False,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    as_json: AsJson = False,
    *,
    asked: Asked,
) -> None:
    """Run a program; say which arrays it changed, and write them out on request.

    Of a folder run every program in it: as its runs.toml says, or on random arguments.
    """
    words, rules = args or [], profile(strict, release)
    spread: dict[str, Any] = {"jobs": executor(jobs, cluster, task_seconds), "resume": resume}
    if slack and not (golden or compat):
        what = "--slack is for published cases, and for programs with a device"
        raise usage_error("arguments", what, fix="add --golden or --compat")
    built: list[Program] = []
    if compat:
        read_text(file)  # what cannot be read is told as everywhere
        words, own = _apart(words)
        os.environ.update({SLACK: str(slack), ALLOW: ",".join(allow or ())})
        if file.suffix == ".sh":
            raise SystemExit(run_shell(file, own))
        built = built_programs(file, own)
        if not built:
            answer(f"{file.name} has run its functions itself")
    if golden:
        told = run_goldens(
            file, target=target, rules=rules, slack=slack, max_seconds=max_seconds, **spread
        )
        runs = [each.to_json() for each in told]
        answer(str(told), code=_code(told), runs=runs, counts=told.counts)
    if file.is_dir() or seed is not None:
        given = (words, entry, out, in_place, schedule, max_steps, max_bytes, define, allow)
        if any(given):
            raise usage_error(
                "arguments",
                "ARG, --entry, --out, --in-place, --schedule, --max-steps, --max-bytes, -D and "
                "--allow are for one program on arguments that are given",
                fix="say it in a runs.toml beside the programs, or run the programs one by one",
            )
        with _texts(file, built) if compat else nullcontext(file) as place:
            told = run_folder(
                place,
                seed=seed or 0,
                grid=grid,
                target=target,
                place_tiles=asked.steps.place,
                sync=asked.steps.sync,
                rules=rules,
                max_seconds=max_seconds,
                **spread,
            )
        runs = [each.to_json() for each in told]
        answer(str(told), code=_code(told), runs=runs, counts=told.counts)
    if is_cpp(file):
        call = CppCall(file, entry, words, define or (), time_limit=time_limit)
        kernel = call.kernel(target)
        values, names = call.values(kernel), call.names(kernel)
        chosen = kernel.source.target
    else:
        program = built_program(file, built, entry) if compat else load_program(file)
        kernel = program[entry] if entry else program.entry()
        values, names = arguments(kernel, words), [f"%{p.name}" for p in kernel.function.params]
        chosen = asked.on(program.target(target, define))
        if asked.level:
            found = program.check(chosen, asked.level, rules=rules, allow=allow or ())
            pass_or_refuse(found, strict)
    if out is not None:
        make_folder(out)
    before = [v.copy() if isinstance(v, np.ndarray) else None for v in values]
    found = kernel[grid](
        *values,
        target=chosen,
        seed=schedule,
        place=asked.steps.place,
        sync=asked.steps.sync,
        rules=rules,
        allow=allow or (),
        max_steps=max_steps,
        max_seconds=max_seconds,
        max_bytes=max_bytes,
    ).warnings
    pass_or_refuse(found, strict)
    _report(names, words, values, before, out, in_place, found)


def _apart(words: list[str]) -> tuple[list[str], list[str]]:
    """The arguments of a launch, and those behind `--`, which are the script's own."""
    given = len(sys.argv) - sys.argv.index("--") - 1 if "--" in sys.argv else 0
    return words[: len(words) - given], words[len(words) - given :]


@contextmanager
def _texts(file: Path, built: Sequence[Program]) -> Generator[Path]:
    """A folder with the programs that a Python file builds, as texts."""
    with TemporaryDirectory() as folder:
        for number, program in enumerate(built):
            name = f"{file.stem}{f'-{number}' if number else ''}.pto"
            write_text(Path(folder) / name, program.text)
        yield Path(folder)


def _code(told: Outcomes) -> Exit:
    """The exit code of a folder: that of the worst of its runs."""
    found = {each.status for each in told}
    if Status.LEFT_OUT in found:
        return Exit.STOPPED
    return Exit.BUG if Status.BUG in found else Exit.OK if told.is_clean else Exit.FOUND


def arguments(kernel: Kernel, words: list[str], given_as: str = "") -> list[Any]:
    """The values of a kernel's parameters, from the words of the command line.

    `given_as` is the option in front of each, where there is one.
    """
    params = kernel.function.params
    if len(words) != len(params):
        raise usage_error(
            "arguments",
            f"@{kernel.name} takes {len(params)} arguments, {len(words)} given",
            fix="give a number, an .npy file or a shape, f32[16,64], for each: "
            + ", ".join(f"{given_as}%{p.name}: {p.type}" for p in params),
        )
    return [_argument(p, word) for p, word in zip(params, words, strict=True)]


def _argument(param: Value, word: str) -> Any:
    type_ = param.type
    if isinstance(type_, ScalarType):
        try:
            return float(word) if type_.is_float else int(word, 0)
        except ValueError:
            raise usage_error(
                "arguments", f"%{param.name} is a number of type {type_}, not {word!r}"
            ) from None
    if not isinstance(type_, PtrType | ViewType | ShapedType):
        what = f"%{param.name} is a {type_}, which no file holds"
        raise usage_error("arguments", what, fix="call it from a function that takes memory")
    return array_for(word, param.name, type_.element.dtype)


def _report(
    names: list[str],
    words: list[str],
    values: list[Any],
    before: list[Any],
    out: Path | None,
    in_place: bool,
    found: Sequence[Diagnostic],
) -> NoReturn:
    lines: list[str] = []
    files: dict[Path, Fill] = {}
    changed: list[dict[str, Any]] = []
    for name, word, value, old in zip(names, words, values, before, strict=True):
        if old is None or value.tobytes() == old.tobytes():
            continue
        places = [] if out is None else [str(out / f"{name.removeprefix('%')}.npy")]
        places += [word] if in_place else []
        files |= {Path(place): partial(np.save, arr=value) for place in places}
        where = f" -> {', '.join(places)}" if places else ""
        lines.append(f"{name}: {value.dtype} {'x'.join(map(str, value.shape))}{where}")
        shape = list(value.shape)
        changed.append({"name": name.removeprefix("%"), "dtype": str(value.dtype), "shape": shape,
                        "files": places})  # fmt: skip
    write(files)
    answer("\n".join(lines) or "no array changed", found=found, changed=changed)
