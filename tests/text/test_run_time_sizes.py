"""Sizes in a text that only C++ would know statically: the assembler makes no such difference."""

from __future__ import annotations

import numpy as np
import pytest

import ptokit

LOAD = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c1 = arith.constant 1 : index
    %cols = arith.constant {cols} : index
    %rows = arith.constant {rows} : index
    %c8 = arith.constant 8 : index
    %v = pto.make_tensor_view %x, shape = [%rows, %cols], strides = [%cols, %c1]
        : !pto.tensor_view<{rows}x{cols}xf32>
    %w = pto.make_tensor_view %y, shape = [%rows, %c8], strides = [%c8, %c1]
        : !pto.tensor_view<{rows}x8xf32>
    %c0 = arith.constant 0 : index
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%rows, %cols]
        : !pto.tensor_view<{rows}x{cols}xf32> -> !pto.partition_tensor_view<{rows}x{cols}xf32>
    %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%rows, %c8]
        : !pto.tensor_view<{rows}x8xf32> -> !pto.partition_tensor_view<{rows}x8xf32>
    %a = pto.alloc_tile : !pto.tile_buf<vec, 16x16xf32, valid={valid}>
    %b = pto.alloc_tile : !pto.tile_buf<vec, {rows}x8xf32>
    pto.tload ins(%p : !pto.partition_tensor_view<{rows}x{cols}xf32>)
        outs(%a : !pto.tile_buf<vec, 16x16xf32, valid={valid}>)
    pto.trowexpand ins(%a : !pto.tile_buf<vec, 16x16xf32, valid={valid}>)
        outs(%b : !pto.tile_buf<vec, {rows}x8xf32>)
    pto.tstore ins(%b : !pto.tile_buf<vec, {rows}x8xf32>)
        outs(%q : !pto.partition_tensor_view<{rows}x8xf32>)
    return
  }}
}}
"""


def loading(valid: str, rows: int = 16, cols: int = 16) -> ptokit.Program:
    return ptokit.loads(LOAD.format(valid=valid, rows=rows, cols=cols))


def errors(program: ptokit.Program) -> set[str]:
    return {d.code for d in program.check() if d.severity == "error"}


@pytest.mark.parametrize("valid", ["16x16", "16x1", "16x5"])
def test_a_part_of_the_view_is_loaded(valid: str) -> None:
    """Bursts are as many as the view has, as long as the tile says; the expansion takes column 0,
    whatever the valid columns of its source."""
    program = loading(valid)
    assert not errors(program)
    x, y = np.arange(256, dtype=np.float32), np.zeros(128, np.float32)
    program["f"][1](x, y)
    assert np.array_equal(y.reshape(16, 8), np.repeat(x[::16], 8).reshape(16, 8))


@pytest.mark.parametrize(
    ("valid", "cols", "code"), [("16x9", 8, "SA-0108"), ("16x16", 24, "SA-0108")]
)
def test_more_than_the_view_and_views_larger_than_the_tile_stay_wrong(
    valid: str, cols: int, code: str
) -> None:
    assert code in errors(loading(valid, cols=cols))


def test_the_sizes_reach_cpp_as_those_of_a_run() -> None:
    """There the assertion about static sizes would stop the compiler."""
    with pytest.warns(ptokit.PtoWarning, match="view-size"):
        text = loading("16x5").cpp()
    assert "Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, DYNAMIC, DYNAMIC>" in text
    assert "Tile<TileType::Vec, float, 16, 8>" in text  # the other tile keeps what it has


def test_an_expansion_of_nothing_into_nothing_does_nothing() -> None:
    """As one of two vector cores does that has no rows: all its tiles are empty."""
    column = "!pto.tile_buf<vec, 16x1xf32, valid=0x0, blayout=col_major>"
    empty, full = (f"!pto.tile_buf<vec, 16x16xf32{more}>" for more in (", valid=0x0", ""))
    text = f"""func.func @f() attributes {{pto.entry}} {{
      %s = pto.alloc_tile : {column}
      %d = pto.alloc_tile : %s
      pto.trowexpand ins(%s : {column}) outs(%d : %s)
      return }}"""
    for kind, severities in ((empty, set[str]()), (full, {"error"})):
        found = ptokit.loads(text.replace(": %s", f": {kind}")).check("a5", rules="release")
        assert {each.severity for each in found} - {"warning"} == severities
