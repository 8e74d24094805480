"""`ptokit tune FILE`: try the constants that kernels declare, and rank them by predicted time."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ptokit.base.diagnostics import usage_error
from ptokit.base.files import write_text
from ptokit.cli import Allow, OnTarget
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.check import is_python
from ptokit.cli.launches import Asked
from ptokit.cli.sources import read_text
from ptokit.timing.tuning import Tuned


def command(
    file: Annotated[Path, typer.Argument(help="A Python file that launches its kernels.")],
    entry: Annotated[str, typer.Option("--entry", "--kernel", help="The kernel.")] = "",
    choices: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE,VALUE: values of a constant; else as declared."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where the result is kept.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes.")] = 1,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Run each setting, and discard races.")
    ] = True,
    target: OnTarget = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Try the constants of the kernels of a Python file; what is kept is not tried again."""
    if not is_python(file, read_text(file)):
        raise usage_error("tune", "tune takes Python files: a text has no constants to choose")
    over = dict(_choice(word) for word in choices or ())
    place = output or file.with_suffix(".tune.json")
    found: list[Tuned] = []
    seen: set[Any] = set()
    for call in Asked(file, entry=entry, target=target, past_errors=True).calls():
        swept = {**call.kernel.choices, **over}
        key = call.kernel.name, call.blocks, tuple(str(getattr(a, "shape", a)) for a in call.args)
        if key in seen or (not entry and not call.kernel.choices and not over):
            continue
        seen.add(key)
        fixed = {name: value for name, value in call.options.items() if name not in swept}
        known = Tuned.read(place) if place.exists() and not found else None
        how: dict[str, Any] = {"over": over, "jobs": jobs, "check": check, "known": known}
        allowed = tuple(allow or ())
        found.append(call.kernel.tune(call.blocks, call.args, **how, allow=allowed, **fixed))
    if not found:
        raise usage_error(
            "tune",
            f"{file} launches no kernel with constants to choose",
            fix="declare values behind *: def k(x, *, tile: Literal[64, 128] = 64), or give some: "
            "--set tile=64,128",
        )
    paths = [place, *(place.with_name(f"{each.kernel}.{place.name}") for each in found[1:])]
    for path, each in zip(paths, found, strict=True):
        write_text(path, each.text)
    lines = [str(each) for each in found]
    kept = f"kept in {', '.join(map(str, paths))}"
    answer("\n\n".join([*lines, kept]), tuned=[each.as_dict() for each in found])


def _choice(word: str) -> tuple[str, Sequence[Any]]:
    name, is_given, values = word.partition("=")
    if not is_given or not name.isidentifier() or not values:
        raise usage_error(
            "arguments", f"--set takes NAME=VALUE,VALUE, not {word!r}", fix="--set tile=64,128"
        )
    return name, [_value(each) for each in values.split(",")]


def _value(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word
