"""`ptokit emit FILE --cpp`: a program in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptokit.cli import Defines, OnTarget
from ptokit.from_text import load


def command(
    file: Annotated[Path, typer.Argument(help="A .pto file.")],
    cpp: Annotated[bool, typer.Option("--cpp", help="PTO C++ (the only output so far).")] = True,
    target: OnTarget = None,
    out: Annotated[Path | None, typer.Option("-o", help="Write here instead of printing.")] = None,
    define: Defines = None,
) -> None:
    """Write a program as PTO C++ for the real tool chain."""
    source = load(file).cpp(target, defines=define)
    if out is None:
        typer.echo(source)
    else:
        out.write_text(source, "utf-8")
        typer.echo(f"{out}: {len(source.splitlines())} lines")
