"""`ptokit targets`: the devices with their memories."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ptokit.base.enums import TileType
from ptokit.cli import parse_defines
from ptokit.isa.targets import TARGETS


def command(
    define: Annotated[
        list[str] | None,
        typer.Option("-D", help="Override a size or alignment: -D PTO_UBUF_SIZE_BYTES=262144."),
    ] = None,
) -> None:
    """Show every target's memory spaces: capacity, alignment and the macro that overrides it."""
    overrides = parse_defines(define or [])
    targets = [t.override(overrides) for t in TARGETS.values()]
    table = Table(title="Memory capacity per target", title_justify="left")
    table.add_column("tile type")
    table.add_column("memory")
    for target in targets:
        table.add_column(target.name, justify="right")
    table.add_column("align", justify="right")
    table.add_column("override with")
    for tile_type in TileType:
        if tile_type not in targets[0].spaces:
            continue
        space = targets[0].spaces[tile_type]
        sizes = [_size(t.spaces[tile_type].capacity) for t in targets]
        table.add_row(
            tile_type.name, space.memory, *sizes, f"{space.alignment} B", f"-D {space.size_macro}"
        )
    console = Console()
    console.print(table)
    for target in targets:
        console.print(f"[bold]{target.name}[/]: {target.title}, TileLeft is {target.left_layout}")


def _size(capacity: int) -> str:
    if not capacity:
        return "-"
    return f"{capacity // 1024} KB" if capacity % 1024 == 0 else f"{capacity} B"
