"""Blocks that jump to each other, where a pass needs loops and branches that it can see."""

from __future__ import annotations

from collections.abc import Container

from ptokit.base.diagnostics import NotSupported, fail
from ptokit.ir.core import Function, Module
from ptokit.ir.dialects.cf import BLOCKS
from ptokit.ir.types import BufferType, MultiTileType

_TILES = (BufferType, MultiTileType)


def refuse_jumps(module: Module, what: str, names: Container[str] | None = None) -> None:
    """Refuse what cannot be done to functions with tiles that jump; `names`: only these."""
    for function in module.functions:
        if names is not None and function.name not in names:
            continue
        op = next((op for op in function.walk() if BLOCKS.matches(op)), None)
        if op is not None and _has_tiles(function):
            raise fail(
                "cf-blocks",
                f"{what} does not support cf: @{function.name} jumps between blocks",
                fix="write its loops and branches with scf",
                site=op.location,
                kind=NotSupported,
            )


def _has_tiles(function: Function) -> bool:
    return any(isinstance(v.type, _TILES) for op in function.walk() for v in op.results)
