"""Parts of views: the last one that lies inside, and the first one that does not."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError
from ptokit.from_text import loads

ROWS, COLS = 32, 128
TILE, VIEW = "!pto.tile_buf<vec, 16x64xf32>", "!pto.partition_tensor_view<16x64xf32>"
TEXT = f"""func.func @f(%x: !pto.ptr<f32>, %z: !pto.ptr<f32>, %i: index, %j: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = arith.constant 16 : index
  %w = arith.constant 64 : index
  %rows = arith.constant {ROWS} : index
  %cols = arith.constant {COLS} : index
  %vx = pto.make_tensor_view %x, shape = [%rows, %cols], strides = [%cols, %c1]
    : !pto.tensor_view<?x?xf32>
  %vz = pto.make_tensor_view %z, shape = [%r, %w], strides = [%w, %c1] : !pto.tensor_view<?x?xf32>
  %px = pto.partition_view %vx, offsets = [%i, %j], sizes = [%r, %w]
    : !pto.tensor_view<?x?xf32> -> {VIEW}
  %pz = pto.partition_view %vz, offsets = [%c0, %c0], sizes = [%r, %w]
    : !pto.tensor_view<?x?xf32> -> {VIEW}
  %t = pto.alloc_tile : {TILE}
  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})
  return
}}
"""
FIRST, LAST = (0, 0), (ROWS - 16, COLS - 64)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("edge", "step"), [(FIRST, -1), (LAST, 1)])
def test_a_part_lies_inside_its_view(
    engine: str, axis: int, edge: tuple[int, int], step: int
) -> None:
    x = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS)
    z = np.zeros((16, 64), np.float32)
    kernel = loads(TEXT, "part.pto")["f"][1]
    kernel(x, z, *edge, engine=engine)
    assert np.array_equal(z, x[edge[0] : edge[0] + 16, edge[1] : edge[1] + 64])
    outside = [at + step * (n == axis) for n, at in enumerate(edge)]
    with pytest.raises(ProgramError) as caught:
        kernel(x, z, *outside, engine=engine)
    assert caught.value.codes == ("slice-range",)
    assert caught.value.diagnostics[0].location.line == 11
