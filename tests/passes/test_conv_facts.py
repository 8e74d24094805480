"""What is known of convolution tiles: a loop makes doubtful what it changes, and nothing else."""

from __future__ import annotations

import pytest

from ptokit.base.dtypes import f16
from ptokit.base.enums import Layout, TileType
from ptokit.base.tensors import ConvSpec
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.arith import CONSTANT
from ptokit.ir.dialects.conv import SET_PARAM
from ptokit.ir.parser import parse
from ptokit.ir.types import ConvTileType
from ptokit.passes.conv_facts import KnownConvs

TYPE = str(ConvTileType(ConvSpec.of(TileType.Mat, f16, 4096, Layout.NC1HWC0, (1, 1, 4, 8, 16))))
KIND = "i16"


def program(before: str, inside: str) -> str:
    return f"""
func.func @f(%n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = arith.constant 3 : {KIND}
  %a = pto.alloc_tile : {TYPE}
  %b = pto.alloc_tile : {TYPE}
  pto.set_conv_param %a["channel_size"], %first : {TYPE}, {KIND}
  pto.set_conv_param %b["channel_size"], %first : {TYPE}, {KIND}
  {before}
  scf.for %i = %c0 to %n step %c1 {{
    {inside}
    pto.set_conv_param %a["channel_size"], %second : {TYPE}, {KIND}
  }}
  return
}}
"""


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_loop_that_changes_a_tile_leaves_the_others_known(is_inside: bool) -> None:
    """Wherever the number is made that it sets."""
    made = f"%second = arith.constant 5 : {KIND}"
    before, inside = ("", made) if is_inside else (made, "")
    module = parse(program(before, inside))
    known, numbers = KnownConvs(), dict[Value, object]()
    (function,) = module.functions
    assert function.body is not None
    tiles: list[Value] = []
    for op in function.body.ops:
        if CONSTANT.matches(op) and isinstance(value := op.attrs["value"], IntAttr):
            numbers[op.result] = value.value
        tiles += [r for r in op.results if isinstance(r.type, ConvTileType)]
        known.see(op, numbers)
        if not op.regions and SET_PARAM.matches(op):
            assert _size(known, op) == 3
    a, b = (known.tiles[tile] for tile in tiles)
    assert not a.parameters
    assert b.parameters
    assert b.parameters["channelSize"] == 3


def _size(known: KnownConvs, op: Op) -> object:
    return (known.tiles[op.operands[0]].parameters or {}).get("channelSize")
