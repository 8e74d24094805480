"""Element types of few bits: their spellings, and what of them is counted."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptokit.base.convert import convert
from ptokit.base.diagnostics import PtoError
from ptokit.base.dtypes import bf16, dtype
from ptokit.base.enums import RoundMode
from ptokit.from_text import loads
from ptokit.ir.typetext import parse_type
from tests.text.kernels import kernel, ran, tile

PAIRS = ["f4E2M1x2", "f4E1M2x2"]


@pytest.mark.parametrize(
    ("spelling", "printed"),
    [
        ("!pto.hif8", "!pto.hif8"),
        ("hif8", "!pto.hif8"),
        ("!pto.f8E8M0", "!pto.f8E8M0"),
        ("f8E8M0FNU", "!pto.f8E8M0"),
        ("f8E4M3FN", "f8E4M3FN"),
        ("f8E4M3FNUZ", "f8E4M3FN"),
        ("f8E5M2FNUZ", "f8E5M2"),
        ("si8", "si8"),
        ("ui16", "ui16"),
    ],
)
def test_elements_of_tiles_and_views(spelling: str, printed: str) -> None:
    for given in (f"vec, 16x32x{spelling}", f"loc=vec, dtype={spelling}, rows=16, cols=32"):
        assert f"dtype={printed}, rows=16, cols=32" in str(parse_type(f"!pto.tile_buf<{given}>"))
    for kind in ("partition_tensor_view<16x32x%s>", "ptr<%s>", "tensor_view<?x32x%s>"):
        found = parse_type(f"!pto.{kind % spelling}")
        assert parse_type(str(found)) == found


@pytest.mark.parametrize("pair", PAIRS)
def test_sizes_count_pairs_where_elements_lie_side_by_side(pair: str) -> None:
    single = str(parse_type(f"!pto.tile_buf<vec, 16x32x!pto.{pair}>"))
    assert f"dtype={pair[:-2]}FN, rows=16, cols=64, v_row=16, v_col=64" in single
    column = str(parse_type(f"!pto.tile_buf<vec, 32x4x!pto.{pair}, blayout=col_major>"))
    assert "rows=64, cols=4, v_row=64" in column
    boxed = f"!pto.tile_buf<left, 16x64x!pto.{pair}, blayout=col_major, slayout=row_major>"
    assert "rows=16, cols=64" in str(parse_type(boxed))


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_valid_of_a_tile_of_pairs_is_counted_in_pairs(pair: str, engine: str) -> None:
    """By values of the program, of windows and slots; and so many are what it is told."""
    wide = "!pto.tile_buf<vec, 16x64xbf16, valid=16x?>"
    whole, part = (f"!pto.tile_buf<vec, 16x{n}x!pto.{pair}, valid=16x?>" for n in (32, 16))
    slots = f"!pto.multi_tile_buf<vec, 16x32x!pto.{pair}, valid=16x?, count=2>"
    view = f"!pto.partition_tensor_view<16x?x!pto.{pair}>"
    text = f"""
func.func @f(%x: !pto.ptr<bf16>, %y: !pto.ptr<!pto.{pair}>, %n: index, %seen: !pto.ptr<i32>)
    attributes {{pto.entry}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %m = arith.muli %n, %c2 : index
  %v = pto.make_tensor_view %x, shape = [%c16, %m], strides = [%c64, %c1]
      : !pto.tensor_view<16x?xbf16>
  %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %m]
      : !pto.tensor_view<16x?xbf16> -> !pto.partition_tensor_view<16x?xbf16>
  %w = pto.make_tensor_view %y, shape = [%c16, %n], strides = [%c32, %c1]
      : !pto.tensor_view<16x?x!pto.{pair}>
  %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c16, %n]
      : !pto.tensor_view<16x?x!pto.{pair}> -> {view}
  %a = pto.alloc_tile valid_col = %m : {wide}
  pto.tload ins(%p : !pto.partition_tensor_view<16x?xbf16>) outs(%a : {wide})
  %b = pto.alloc_tile valid_col = %n : {whole}
  pto.tcvt ins(%a {{rmode = #pto<round_mode RINT>}} : {wide}) outs(%b : {whole})
  pto.tstore ins(%b : {whole}) outs(%q : {view})
  %several = pto.alloc_multi_tile valid_col = %n : {slots}
  %one = pto.multi_tile_get %several[%c1] : {slots} -> {whole}
  %window = pto.subview %one[%c0, %c16] sizes [16, 16] valid [%c16, %n] : {whole} -> {part}
  %cols = pto.tile_valid_cols %window : {part} -> index
  %k = arith.index_cast %cols : index to i32
  pto.store_scalar %k, %seen[%c0] : !pto.ptr<i32>, i32
  return
}}"""
    made = loads(text)
    assert str(loads(str(made))) == str(made)
    assert "sizes [16, 32]" in str(made)
    values = np.linspace(-8, 8, 16 * 64).reshape(16, 64).astype(ml_dtypes.bfloat16)
    result, seen = np.zeros((16, 32), "u1"), np.zeros(1, "i4")
    made["f"][1](values, result, 12, seen, target="a5", engine=engine)
    codes = convert(values, bf16, dtype(f"{pair[:-2]}FN"), RoundMode.CAST_RINT)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    assert (result[:, :12] == packed[:, :12]).all()
    assert not result[:, 12:].any()
    assert seen[0] == 12


@pytest.mark.parametrize("pair", ["hif8x2", "bf16x2"])
def test_pairs_in_registers_are_no_elements_of_tiles(pair: str) -> None:
    made = loads(f"func.func @f(%x: !pto.{pair}) {{\n return }}")
    assert f"%x: !pto.{pair}" in str(made)
    with pytest.raises(PtoError, match="micro-instructions"):
        loads(f"func.func @f(%t: !pto.tile_buf<vec, 16x32x!pto.{pair}>) {{\n return }}")


@pytest.mark.parametrize("name", ["!pto.hif8", "!pto.f8E8M0", "f8E4M3FN", "ui8"])
def test_data_is_moved_unchanged(name: str, engine: str) -> None:
    t = tile(f"16x32x{name}")
    made = kernel(f"pto.tmov ins(%a : {t}) outs(%b : {t})", {"a": t}, {"b": t})
    kind = dtype(name)
    data = np.random.default_rng(2).integers(0, 256, (16, 32), dtype="u1").view(kind.np)
    result = np.zeros_like(data)
    ran(made, [data, result], engine)
    assert (result.view("u1") == data.view("u1")).all()


@pytest.mark.parametrize("pair", PAIRS)
def test_numbers_become_pairs(pair: str, engine: str) -> None:
    wide, narrow = tile("16x64xbf16"), tile(f"16x32x!pto.{pair}")
    made = kernel(
        f"pto.tcvt ins(%a {{rmode = #pto<round_mode RINT>}} : {wide}) outs(%b : {narrow})",
        {"a": wide},
        {"b": narrow},
    )
    values = np.linspace(-8, 8, 16 * 64).reshape(16, 64).astype(ml_dtypes.bfloat16)
    result = np.zeros((16, 32), "u1")
    ran(made, [values, result], engine)
    codes = convert(values, bf16, dtype(f"{pair[:-2]}FN"), RoundMode.CAST_RINT)
    assert (result == (codes[:, ::2] | codes[:, 1::2] << 4)).all()
    assert "float4_e" in made.cpp()
    assert "16, 64" in made.cpp()
