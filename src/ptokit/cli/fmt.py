"""`ptokit fmt FILE...`: print programs in their canonical text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptokit.from_text import formatted


def command(
    files: Annotated[list[Path], typer.Argument(help="PTO text files.")],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if a file would change.")
    ] = False,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print instead of rewriting.")] = False,
) -> None:
    """Rewrite PTO text in canonical form; comments stay with their lines."""
    changed = 0
    for path in files:
        text = formatted(path)
        if stdout:
            typer.echo(text, nl=False)
        elif text != path.read_text("utf-8"):
            changed += 1
            typer.echo(f"{'would rewrite' if check else 'rewrote'} {path}")
            if not check:
                path.write_text(text, "utf-8")
    raise typer.Exit(1 if check and changed else 0)
