"""`ptokit emit FILE --cpp`: a program in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptokit.driver import load
from ptokit.emit.cpp import emit_cpp
from ptokit.passes.spell_out import spelled_out


def command(
    file: Annotated[Path, typer.Argument(help="A .pto file.")],
    cpp: Annotated[bool, typer.Option("--cpp", help="PTO C++ (the only output so far).")] = True,
    out: Annotated[Path | None, typer.Option("-o", help="Write here instead of printing.")] = None,
) -> None:
    """Write a program as PTO C++ for the real tool chain."""
    program = load(file)
    target = program.target()
    source = emit_cpp(spelled_out(program.module, target), target)
    if out is None:
        typer.echo(source)
    else:
        out.write_text(source, "utf-8")
        typer.echo(f"{out}: {len(source.splitlines())} lines")
