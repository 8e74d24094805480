"""A run-time choice among tiles: `tiles[i % 2]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.symbols import Number


def chosen_tile(emitter: Emitter, tiles: Sequence[Any], index: Number) -> Any:
    """The tile of a list or tuple at a run-time index."""
    return tiles[index]
