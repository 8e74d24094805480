"""`ptokit isa [NAME]`: the instruction table, in the terminal."""

from __future__ import annotations
import typer


def command(name: str = typer.Argument("")) -> None:
    """Show an instruction."""
