"""`ptokit emit FILE --cpp`: a program in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptokit.cli import Allow, Defines, OnTarget, Release, Strict, pass_or_refuse, profile
from ptokit.from_text import load


def command(
    file: Annotated[Path, typer.Argument(help="A .pto file.")],
    cpp: Annotated[bool, typer.Option("--cpp", help="PTO C++ (the only output so far).")] = True,
    target: OnTarget = None,
    out: Annotated[Path | None, typer.Option("-o", help="Write here instead of printing.")] = None,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
) -> None:
    """Write a program as PTO C++ for the real tool chain."""
    program = load(file)
    chosen = program.target(target, define)
    pass_or_refuse(program.check(chosen, rules=profile(strict, release), allow=allow or ()))
    source = program.cpp(chosen)
    if out is None:
        typer.echo(source)
    else:
        out.write_text(source, "utf-8")
        typer.echo(f"{out}: {len(source.splitlines())} lines")
