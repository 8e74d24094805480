"""Tiles at the end of their memory: what is valid of them lies inside, to the byte."""

from __future__ import annotations

import pytest

from ptokit.base.dtypes import f32
from ptokit.base.enums import TileType
from ptokit.base.tiles import TileSpec
from ptokit.from_text import loads
from ptokit.ir.types import TileBufType
from ptokit.isa.samples import parse
from ptokit.isa.targets import target

A2A3 = target("a2a3")
# A tile, and the bytes from its start to the end of what is valid in it.
TILES = {
    "Vec i8 1x64": 64,
    "Vec i8 1x64 valid 1x33": 33,
    "Vec i8 4x64 valid 4x32": 3 * 64 + 32,
    "Vec f32 16x64 valid 3x5": (2 * 64 + 5) * 4,
    "Vec f32 64x1 DN valid 10x1": 40,
    "Mat f16 32x32 NZ valid 20x20": (32 * 16 + 20 * 16) * 2,  # columns of boxes, rows one by one
    "Mat f16 32x32 NZ valid 20x16": 20 * 16 * 2,
    "Mat f16 32x32 ZZ valid 20x16": (32 * 16 + 16 * 16) * 2,  # whole boxes
    "Mat f16 32x32 ZZ valid 16x32": 32 * 16 * 2,
}


def verdict(text: str, address: int) -> set[str]:
    """The codes for a tile at an address."""
    spec = parse(text, f32, A2A3)
    assert isinstance(spec, TileSpec)
    program = f"""func.func @f() {{
      %at = arith.constant {address} : i64
      %t = pto.alloc_tile addr = %at : {TileBufType(spec)}
      return
    }}"""
    return {d.code for d in loads(program).check("a2a3")}


@pytest.mark.parametrize("text", TILES)
def test_the_last_byte_that_is_valid_is_the_last_of_the_memory(text: str) -> None:
    space = A2A3.spaces[TileType[text.split()[0]]]
    step = space.alignment
    last = (space.capacity - TILES[text]) // step * step
    assert verdict(text, last) == set()
    assert verdict(text, last + step) == {"memory-bounds"}
    assert verdict(text, last - 1) == {"SA-0354"}
