"""What is known of a program before it runs, and what no longer is."""

from __future__ import annotations

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.parser import parse
from ptokit.isa.targets import target
from ptokit.passes.verify import Verify

LOOSE = "!pto.tile_buf<loc=vec, dtype=f32, rows=8, cols=8, v_row=?, v_col=?, blayout=row_major, \
slayout=none_box, fractal=512, pad=0>"


def complaints(line: str) -> list[Diagnostic]:
    """Of two tiles of 8x8 and 4x8 valid elements that are added after a line."""
    text = f"""func.func @f(%n: index) {{
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %a = pto.alloc_tile valid_row = %c8 valid_col = %c8 : {LOOSE}
      %b = pto.alloc_tile valid_row = %c4 valid_col = %c8 : {LOOSE}
      {line}
      pto.tadd ins(%a, %b : {LOOSE}, {LOOSE}) outs(%a : {LOOSE})
      return
    }}"""
    return Verify().check(parse(text), target("a2a3"))


def test_valid_sizes_are_known_from_the_allocation() -> None:
    assert complaints("") != []


def test_valid_sizes_that_change_are_left_to_the_run() -> None:
    assert complaints(f"pto.set_validshape %b, %n, %n : {LOOSE}") == []
