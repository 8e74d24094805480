"""`ptokit emit FILE --cpp`: a program in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptokit.cli import Defines
from ptokit.driver import load
from ptokit.emit.cpp import emit_cpp
from ptokit.passes.spell_out import spelled_out


def command(
    file: Annotated[Path, typer.Argument(help="A .pto file.")],
    cpp: Annotated[bool, typer.Option("--cpp", help="PTO C++ (the only output so far).")] = True,
    target: Annotated[
        str | None, typer.Option("--target", help="Default: what the module asks for, or a2a3.")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", help="Write here instead of printing.")] = None,
    define: Defines = None,
) -> None:
    """Write a program as PTO C++ for the real tool chain."""
    program = load(file)
    chosen = program.target(target, define)
    source = emit_cpp(spelled_out(program.module, chosen), chosen)
    if out is None:
        typer.echo(source)
    else:
        out.write_text(source, "utf-8")
        typer.echo(f"{out}: {len(source.splitlines())} lines")
