"""`ptokit time FILE`: how long the kernels of a file take on a device, and what holds them up."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ptokit.base.diagnostics import usage_error
from ptokit.cli import Allow, Defines, OnTarget
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.check import is_python
from ptokit.cli.cpp_file import ARGUMENTS, CppCall, is_cpp
from ptokit.cli.files import write_text
from ptokit.cli.run import arguments
from ptokit.cli.sources import read_text, shown_name
from ptokit.from_text import loads
from ptokit.kernels import LISTENERS, Launch
from ptokit.timing.report import Timing


def command(
    file: Annotated[Path, typer.Argument(help="Python, PTO text or C++; - is standard input.")],
    args: Annotated[list[str] | None, typer.Argument(help=ARGUMENTS)] = None,
    entry: Annotated[str, typer.Option("--entry", "--kernel", help="The function to time.")] = "",
    grid: Annotated[int, typer.Option("--grid", min=1, help="Number of blocks.")] = 1,
    target: OnTarget = None,
    data: Annotated[
        bool, typer.Option("--data", help="Compute: for programs that branch on their data.")
    ] = False,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: another value of a constant of the model."),
    ] = None,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="Cores of the device.")
    ] = None,
    clock: Annotated[
        float | None, typer.Option("--clock", min=0.01, help="Its clock, GHz.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="Write a trace for Perfetto.")
    ] = None,
    define: Defines = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Time the launches of a Python file, or a kernel of a text or of C++ on arguments."""
    name, text = shown_name(file), read_text(file)
    options: dict[str, Any] = {"data": data, "allow": tuple(allow or ())}
    if is_python(file, text):
        found = launches_of(file, entry, target, options)
    else:
        if is_cpp(file):
            call = CppCall(file, entry, args or (), define or ())
            kernel = call.kernel(target)
            values = call.values(kernel)
            target = target or kernel.source.target.name
            kernel = loads(kernel.text(*values, target=target), name).entry()
        else:
            program = loads(text, name)
            kernel = program[entry] if entry else program.entry()
            values = arguments(kernel, args or [])
            options["defines"] = define or ()
        found = [kernel.time(grid, values, target=target, **options)]
    constants = dict(_constant(word) for word in what_if or ())
    if constants or cores or clock:
        found = [each.what_if(constants, cores=cores, clock=clock) for each in found]
    if trace is not None:
        write_text(trace, found[0].chrome_text())
    answer("\n\n".join(map(str, found)), timings=[each.as_dict() for each in found])


def launches_of(
    file: Path, entry: str, target: str | None, options: Mapping[str, Any]
) -> list[Timing]:
    """Run a Python file, and time every launch that it makes, once for the same arguments."""
    found: list[Timing] = []
    seen: set[Any] = set()

    def listen(launch: Launch, args: tuple[Any, ...], consts: Mapping[str, Any]) -> None:
        kernel = launch.kernel
        sizes = tuple((getattr(a, "shape", a), str(getattr(a, "dtype", ""))) for a in args)
        key = (kernel.name, launch.blocks, repr(sizes), repr(sorted(consts.items(), key=str)))
        if key in seen or (entry and kernel.name != entry):
            return
        seen.add(key)  # before: timing is a launch, too
        given = [a.copy() if hasattr(a, "copy") else a for a in args]
        on = {} if target is None else {"target": target}
        found.append(kernel.time(launch.blocks, given, **on, **options, **consts))

    LISTENERS.append(listen)
    before = sys.argv, sys.path[:]
    sys.argv, sys.path[0:0] = [str(file)], [str(file.resolve().parent)]
    try:
        with redirect_stdout(sys.stderr), suppress(SystemExit):  # the answer is ours alone
            runpy.run_path(str(file), run_name="__main__")
    finally:
        LISTENERS.remove(listen)
        sys.argv, sys.path[:] = before
    if not found:
        raise usage_error(
            "launch",
            f"{file} launches no kernel" + (f" of the name {entry}" if entry else ""),
            fix="launch it on arrays of the size that is to be timed: k[24](x, y)",
        )
    return found


def _constant(word: str) -> tuple[str, float]:
    name, _, value = word.rpartition("=")
    try:
        return name, float(value)
    except ValueError:
        raise usage_error(
            "arguments", f"--set takes NAME=NUMBER, not {word!r}", fix="--set scalar.issue=10"
        ) from None
