"""A5 with the assembler's own library of tile operations: where it does other things than C++.

Everything here breaks a rule that no device enforces, or is left to the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.base.diagnostics import UsageError
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.facts import Ops
from ptokit.isa.samples import samples
from ptokit.isa.targets import TILE_LIBRARY, target

F32 = np.finfo(np.float32)
OWN = {TILE_LIBRARY: 1}


@kernel(mode="auto", target="a5", rules="release")
def expanded(x: Any, values: Any, y: Any) -> None:
    a, b = Tile[TileType.Vec, float32, 4, 16](), Tile[TileType.Vec, float32, 4, 8]()
    c = Tile[TileType.Vec, float32, 4, 16]()
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(values))
    TROWEXPANDADD(c, a, b)
    TSTORE(GlobalTensor(y), c)


@pytest.mark.parametrize("own", [False, True])
def test_a_row_major_source_of_row_values(own: bool) -> None:
    """C++ repeats the 32 bytes of each row, the assembler's library their first element."""
    x, values = np.zeros((4, 16), "f4"), np.arange(32, dtype="f4").reshape(4, 8)
    y = np.zeros((4, 16), "f4")
    expanded[1](x, values, y, defines=OWN if own else {})
    assert np.array_equal(y, np.repeat(values[:, :1], 16, 1) if own else np.tile(values, 2))


@kernel(mode="auto", target="a5", rules="release")
def padded(x: Any, y: Any) -> None:
    a = Tile[TileType.Vec, float32, 2, 16, BLayout.RowMajor, 2, 5]()
    b = Tile[
        TileType.Vec, float32, 2, 16, BLayout.RowMajor, 2, 16, SLayout.NoneBox, 512, PadValue.Max
    ]()
    TLOAD(a, GlobalTensor(x))
    TFILLPAD(b, a)
    TSTORE(GlobalTensor(y), b)


@pytest.mark.parametrize(("own", "filled"), [(False, np.inf), (True, F32.max)])
def test_padding_with_the_largest_number(own: bool, filled: float) -> None:
    y = np.zeros((2, 16), "f4")
    padded[1](np.ones((2, 5), "f4"), y, defines=OWN if own else {})
    assert (y[:, :5] == 1).all()
    assert (y[:, 5:] == np.float32(filled)).all()


@kernel(mode="auto", target="a5", rules="release")
def larger_of_parts(x: Any, z: Any, y: Any) -> None:
    a = Tile[TileType.Vec, float32, 4, 16, BLayout.RowMajor, 2, 16]()
    b = Tile[TileType.Vec, float32, 4, 16, BLayout.RowMajor, 4, 8]()
    c = Tile[TileType.Vec, float32, 4, 16]()
    TEXPANDS(a, 3.0)
    TEXPANDS(b, 4.0)
    TPARTMAX(c, a, b)
    TSTORE(GlobalTensor(y), c)


def test_parts_of_which_none_covers_the_result() -> None:
    """Where neither is valid nothing is larger; C++ copies the storage of one of them."""
    y = np.zeros((4, 16), "f4")
    larger_of_parts[1](y, y, y, defines=OWN)
    expected = np.full((4, 16), F32.min, "f4")
    expected[:2], expected[:, :8] = 3, 4
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("name", ["TPARTMAX", "TPARTMIN"])
def test_each_library_keeps_its_own_code(name: str) -> None:
    """Whichever of them an instruction ran on first."""
    insn = INSTRUCTIONS[name]
    cpp = next(samples(insn, target("a5"))).facts()
    own = Ops(dict(cpp), cpp.attrs, target("a5").override(OWN), cpp.mode)
    assert insn.body_for(cpp) is not insn.body_for(own)
    assert insn.body_for(cpp) is insn.body_for(cpp)


MASK = """
module attributes {{pto.target_arch = "a5"{more}}} {{
  func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<ui8>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %five = arith.constant 5.0 : f32
    %v = pto.make_tensor_view %x, shape = [%c4, %c16], strides = [%c16, %c1]
        : !pto.tensor_view<4x16xf32>
    %w = pto.make_tensor_view %y, shape = [%c4, %c32], strides = [%c32, %c1]
        : !pto.tensor_view<4x32xui8>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c4, %c16]
        : !pto.tensor_view<4x16xf32> -> !pto.partition_tensor_view<4x16xf32>
    %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c4, %c32]
        : !pto.tensor_view<4x32xui8> -> !pto.partition_tensor_view<4x32xui8>
    %a = pto.alloc_tile : !pto.tile_buf<vec, 4x16xf32>
    %m = pto.alloc_tile : !pto.tile_buf<vec, 4x32xui8>
    pto.tload ins(%p : !pto.partition_tensor_view<4x16xf32>) outs(%a : !pto.tile_buf<vec, 4x16xf32>)
    pto.tcmps ins(%a, %five {{cmpMode = #pto<cmp lt>}} : !pto.tile_buf<vec, 4x16xf32>, f32)
        outs(%m : !pto.tile_buf<vec, 4x32xui8>)
    pto.tstore ins(%m : !pto.tile_buf<vec, 4x32xui8>)
        outs(%q : !pto.partition_tensor_view<4x32xui8>)
    return
  }}
}}
"""


@pytest.mark.filterwarnings("ignore::ptokit.PtoWarning")
@pytest.mark.parametrize(("more", "pitch"), [("", 32), (', pto.backend = "vpto"', 2)])
def test_masks_of_a_scalar_and_the_back_end_of_a_module(more: str, pitch: int) -> None:
    """Rows of the mask follow each other without the columns of their tile between them."""
    x = np.random.default_rng(1).integers(0, 10, (4, 16)).astype("f4")
    y = np.zeros(128, np.uint8)
    ptokit.loads(MASK.format(more=more))["f"][1](x.reshape(-1), y, rules="release")
    bits = np.packbits(x < 5, axis=1, bitorder="little")
    for row in range(4):
        assert np.array_equal(y[row * pitch : row * pitch + 2], bits[row])


@pytest.mark.parametrize(("own", "codes"), [(False, ["SA-0006"]), (True, [])])
def test_a_tile_that_only_renames_another_has_rows_of_any_width(
    own: bool, codes: list[str]
) -> None:
    """Types of C++ ask for whole blocks; the assembler asks where storage is allocated."""
    flat, narrow = "!pto.tile_buf<vec, 1x32xui8>", "!pto.tile_buf<vec, 16x2xui8>"
    program = ptokit.loads(
        f"""func.func @f() {{
          %t = pto.alloc_tile : {flat}
          %n = pto.treshape %t : {flat} -> {narrow}
          return
        }}"""
    )
    assert [each.code for each in program.check("a5", defines=OWN if own else {})] == codes


def test_only_devices_with_such_a_library_take_the_macro() -> None:
    assert target("a5", OWN).tile_library
    assert target("a5").override(OWN) is target("a5").override(OWN)
    with pytest.raises(UsageError, match=TILE_LIBRARY):
        target("a2a3", OWN)
