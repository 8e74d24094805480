"""The options of `run`, `asm` and `emit` that say how far a program is finished."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ptokit.base.diagnostics import usage_error
from ptokit.passes.finish import INSERT, KEEP, Steps


class Order(StrEnum):
    """Who orders the pipes."""

    insert = INSERT
    keep = KEEP


class Level(StrEnum):
    """The levels of the public assembler."""

    level1 = "level1"
    level2 = "level2"
    level3 = "level3"


Place = Annotated[
    bool | None,
    typer.Option(
        "--place/--no-place", help="Give tiles their addresses. Default: those that have none."
    ),
]
Sync = Annotated[
    Order | None,
    typer.Option("--sync", help="Order the pipes, or not. Default: where the program does not."),
]
EnableInsertSync = Annotated[
    bool, typer.Option("--enable-insert-sync", help="The same as --sync=insert.")
]
PtoLevel = Annotated[
    Level | None,
    typer.Option("--pto-level", help="level3 is --no-place, level1 and level2 are --place."),
]


def steps(place: bool | None, sync: Order | None, insert: bool, level: Level | None) -> Steps:
    """What the command line asks for, in whichever words."""
    by_level = None if level is None else level is not Level.level3
    if place is not None and by_level not in (None, place):
        word = "--place" if place else "--no-place"
        raise usage_error("steps", f"--pto-level={level} and {word} contradict each other")
    if insert and sync is Order.keep:
        raise usage_error("steps", "--enable-insert-sync and --sync=keep contradict each other")
    order = Order.insert if insert else sync
    return Steps(by_level if place is None else place, None if order is None else order.value)
