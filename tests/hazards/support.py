"""Running small programs on a launch and looking at what it says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ptokit import *
from ptokit.base.diagnostics import Diagnostic
from ptokit.frontend.launch import Schedule, launch

NO, UP, LEFT, UP_ODD, LEFT_ODD = TileSplitAxis
F32 = Tile[TileType.Vec, float32, 16, 16]
G32 = GlobalTensor[float32, Shape[1, 1, 1, 16, 16], Stride[1, 1, 1, 16, 1]]

Programs = Callable[[], Any] | Mapping[str, Callable[[], Any]]


def check(programs: Programs, target: str = "a2a3", **more: Any) -> tuple[Diagnostic, ...]:
    """Run and return every complaint; a function alone is a program of a vector core."""
    cores = programs if isinstance(programs, Mapping) else {"vector": programs}
    try:
        outcome = launch(cores, target, **more)
    except PtoError as error:
        return error.diagnostics
    return outcome.diagnostics


def codes(programs: Programs, target: str = "a2a3", **more: Any) -> list[str]:
    return [d.code for d in check(programs, target, **more)]


def marked(function: Callable[..., Any], mark: str) -> int:
    """The line of a function that carries a comment `# mark`."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, text in enumerate(lines) if text.rstrip().endswith(f"# {mark}"))


def lines_of(found: Diagnostic) -> set[int]:
    """The lines a complaint points at."""
    places = [found.location, *(n.location for n in found.notes)]
    return {p.line for p in places if p is not None}


def at(tile: Any, address: int) -> Any:
    """A tile bound to an address."""
    TASSIGN(tile, address)
    return tile


def array(value: float = 1.0) -> Any:
    return np.full((16, 16), value, np.float32)


__all__ = [
    "F32", "G32", "LEFT", "LEFT_ODD", "NO", "Schedule", "UP", "UP_ODD",
    "array", "at", "check", "codes", "launch", "lines_of", "marked",
]  # fmt: skip
