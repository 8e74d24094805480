"""`ptokit targets`: the devices with their memories."""

from __future__ import annotations

import typer

from ptokit.cli import Defines
from ptokit.isa.targets import TARGETS


def command(
    define: Defines = None,
) -> None:
    """Show every target's memory spaces: capacity, alignment and the macro that overrides it."""
    targets = [t.override(define) for t in TARGETS.values()]
    for target in targets:
        typer.echo(f"{target.name:<10} {target.title}; TileLeft is {target.left_layout}")
    typer.echo("\nMemory in KB (- does not exist), alignment in bytes, macro for -D:\n")
    heads = "".join(f"{t.name:>10}" for t in targets)
    typer.echo(f"{'':<11}{heads}  align")
    for tile_type, space in targets[0].spaces.items():
        sizes = "".join(f"{_size(t.spaces[tile_type].capacity):>10}" for t in targets)
        typer.echo(f"{tile_type.name:<11}{sizes}  {space.alignment:>5}")
    typer.echo("")
    for tile_type, space in targets[0].spaces.items():
        macros = f"{space.size_macro}, {space.align_macro}"
        typer.echo(f"{tile_type.name:<11}{space.memory:<11}{macros}")


def _size(capacity: int) -> str:
    if not capacity:
        return "-"
    return str(capacity // 1024) if capacity % 1024 == 0 else f"{capacity / 1024:.2f}"
