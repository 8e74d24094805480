"""Tiles from arrays, for tests that state the meaning of an instruction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import LAYOUT_NAMES, TileSpec
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.machine.access import Access
from ptokit.machine.calls import tile_access

_LAYOUTS = {name: pair for pair, name in LAYOUT_NAMES.items()}


def blank(kind: DType | str, valid: tuple[int, int], layout: str = "ND") -> Tile:
    """An unwritten tile with this valid region and some room around it."""
    kind = dtype(kind)
    rows, cols = (-(-(n + 1) // 32) * 32 for n in valid)
    blayout, slayout = _LAYOUTS[layout]
    tile = Tile.of(TileSpec.of(TileType.Vec, kind, rows, cols, blayout, *valid, slayout))
    current().place(tile)
    return tile


def tile(kind: DType | str, values: Any, layout: str = "ND") -> Tile:
    """A tile whose valid region holds these values."""
    matrix = np.atleast_2d(np.asarray(values))
    made = blank(kind, (matrix.shape[0], matrix.shape[1]), layout)
    made.fill(matrix.astype(dtype(kind).np))
    return made


def whole(tile: Tile) -> Access:
    """The whole capacity of a tile."""
    return tile_access(tile, whole=True)


def defined(tile: Tile) -> Array:
    """Which elements of the whole capacity hold a defined value."""
    return whole(tile).defined()


def call(name: str, *operands: Any, template: tuple[Any, ...] = ()) -> None:
    """Run an instruction by its name."""
    instruction = Instruction(INSTRUCTIONS[name])
    (instruction[template] if template else instruction)(*operands)


def same_bits(got: Array, expected: Array) -> bool:
    """Equality of bit patterns, except that one NaN is as good as another."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    equal = got.view(f"u{got.itemsize}") == expected.view(f"u{got.itemsize}")
    return bool((equal | ((got != got) & (expected != expected))).all())
