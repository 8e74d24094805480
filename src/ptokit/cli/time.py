"""`ptokit time FILE`: how long the kernels of a file take on a device, and what holds them up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ptokit.base.diagnostics import usage_error
from ptokit.base.files import write_text
from ptokit.cli import Allow, Defines, OnTarget
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.declared import Argument, Option
from ptokit.cli.launches import Asked
from ptokit.cli.sources import ARGUMENTS


def command(
    file: Annotated[Path, Argument(help="Python, PTO text or C++; - is standard input.")],
    args: Annotated[list[str] | None, Argument(help=ARGUMENTS)] = None,
    entry: Annotated[str, Option("--entry", "--kernel", help="The function to time.")] = "",
    grid: Annotated[int, Option("--grid", min=1, help="Number of blocks.")] = 1,
    target: OnTarget = None,
    data: Annotated[
        bool, Option("--data", help="Compute: for programs that branch on their data.")
    ] = False,
    what_if: Annotated[
        list[str] | None,
        Option("--set", help="NAME=VALUE: another value of a constant of the model."),
    ] = None,
    cores: Annotated[int | None, Option("--cores", min=1, help="Cores of the device.")] = None,
    clock: Annotated[float | None, Option("--clock", min=0.01, help="Its clock, GHz.")] = None,
    trace: Annotated[Path | None, Option("--trace", help="Write a trace for Perfetto.")] = None,
    define: Defines = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Time the launches of a Python file, or a kernel of a text or of C++ on arguments."""
    options: dict[str, Any] = {"data": data, "allow": tuple(allow or ())}
    found = [
        call.kernel.time(call.blocks, call.args, **options, **call.options)
        for call in Asked(file, args or (), entry, grid, target, define or ()).calls()
    ]
    constants = dict(_constant(word) for word in what_if or ())
    if constants or cores or clock:
        found = [each.what_if(constants, cores=cores, clock=clock) for each in found]
    if trace is not None:
        write_text(trace, found[0].chrome_text())
    answer("\n\n".join(map(str, found)), timings=[each.as_dict() for each in found])


def _constant(word: str) -> tuple[str, float]:
    name, _, value = word.rpartition("=")
    try:
        return name, float(value)
    except ValueError:
        raise usage_error(
            "arguments", f"--set takes NAME=NUMBER, not {word!r}", fix="--set scalar.issue=10"
        ) from None
