"""Operands behind a word of their own: `fp %scales : T` and `pre_quant %word : i64`."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.from_text import Program, loads

ACC = "!pto.tile_buf<acc, 32x32xi32, blayout=col_major, slayout=row_major, fractal=1024>"
FP = "!pto.tile_buf<scaling, 1x32xui64>"
MAT = "!pto.tile_buf<mat, 32x32xi8, blayout=col_major, slayout=row_major>"
LEFT = "!pto.tile_buf<left, 32x32xi8, blayout=row_major, slayout=row_major>"
RIGHT = "!pto.tile_buf<right, 32x32xi8, blayout=row_major, slayout=col_major>"
WORDS = "!pto.tile_buf<mat, 1x32xui64>"
OUT = "!pto.partition_tensor_view<32x32xi8>"
SIGNED = 1 << 46  # the result of a word is an int8

TEXT = f"""
func.func @k(%a : !pto.ptr<i8>, %b : !pto.ptr<i8>, %s : !pto.ptr<ui64>, %d : !pto.ptr<i8>)
    attributes {{pto.entry, pto.kernel_kind = #pto.kernel_kind<cube>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %word = arith.constant {SIGNED | 0x3F800000} : i64
  %va = pto.make_tensor_view %a, shape = [%c32, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<32x32xi8>
  %vb = pto.make_tensor_view %b, shape = [%c32, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<32x32xi8>
  %vs = pto.make_tensor_view %s, shape = [%c1, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<1x32xui64>
  %vd = pto.make_tensor_view %d, shape = [%c32, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<32x32xi8>
  %pa = pto.partition_view %va, offsets = [%c0, %c0], sizes = [%c32, %c32]
      : !pto.tensor_view<32x32xi8>
  %pb = pto.partition_view %vb, offsets = [%c0, %c0], sizes = [%c32, %c32]
      : !pto.tensor_view<32x32xi8>
  %ps = pto.partition_view %vs, offsets = [%c0, %c0], sizes = [%c1, %c32]
      : !pto.tensor_view<1x32xui64>
  %pd = pto.partition_view %vd, offsets = [%c0, %c0], sizes = [%c32, %c32]
      : !pto.tensor_view<32x32xi8>
  %vn = pto.make_tensor_view %d, shape = [%c1, %c1, %c2, %c16, %c32],
      strides = [%c1024, %c1024, %c512, %c32, %c1] {{layout = #pto.layout<nz>}}
      : !pto.tensor_view<1x1x2x16x32xi8>
  %pn = pto.partition_view %vn, offsets = [%c0, %c0, %c0, %c0, %c0],
      sizes = [%c1, %c1, %c2, %c16, %c32] : !pto.tensor_view<1x1x2x16x32xi8>
  %ma = pto.alloc_tile : {MAT}
  %mb = pto.alloc_tile : {MAT}
  %ms = pto.alloc_tile : {WORDS}
  %m = pto.alloc_tile : {MAT}
  %l = pto.alloc_tile : {LEFT}
  %r = pto.alloc_tile : {RIGHT}
  %f = pto.alloc_tile : {FP}
  %acc = pto.alloc_tile : {ACC}
  pto.tload ins(%pa : {OUT}) outs(%ma : {MAT})
  pto.tload ins(%pb : {OUT}) outs(%mb : {MAT})
  pto.tload ins(%ps : !pto.partition_tensor_view<1x32xui64>) outs(%ms : {WORDS})
  pto.tmov ins(%ma : {MAT}) outs(%l : {LEFT})
  pto.tmov ins(%mb : {MAT}) outs(%r : {RIGHT})
  pto.tmov ins(%ms : {WORDS}) outs(%f : {FP})
  pto.tmatmul ins(%l, %r : {LEFT}, {RIGHT}) outs(%acc : {ACC})
  <drain>
  return
}}
"""
STORE = f"pto.tstore ins(%m : {MAT}) outs(%pn : !pto.partition_tensor_view<1x1x2x16x32xi8>)"
RELU = "{reluPreMode = #pto<relu_pre_mode normal_relu>}"
# What drains the accumulator, and whether every column has a scale of its own.
DRAINS = {
    "tstore fp": (f"pto.tstore ins(%acc : {ACC} fp %f : {FP}) outs(%pd : {OUT})", True),
    "tstore": (f"pto.tstore ins(%acc : {ACC}, %word : i64) outs(%pd : {OUT})", False),
    "textract fp": (
        f"pto.textract ins(%acc, %c0, %c0 : {ACC}, index, index fp %f : {FP}) outs(%m : {MAT})",
        True,
    ),
    "textract": (
        f"pto.textract ins(%acc, %c0, %c0, %word : {ACC}, index, index, i64) outs(%m : {MAT})",
        False,
    ),
    "tinsert fp": (
        f"pto.tinsert ins(%acc, %c0, %c0 : {ACC}, index, index fp %f : {FP}) outs(%m : {MAT})",
        True,
    ),
    "tinsert pre_quant": (
        f"pto.tinsert ins(%acc, %c0, %c0 : {ACC}, index, index pre_quant %word : i64) "
        f"outs(%m : {MAT})",
        False,
    ),
    "tmov fp": (f"pto.tmov ins(%acc : {ACC}, %f : {FP}) outs(%m : {MAT})", True),
}
# How they were written before there were clauses.
BEFORE = {
    "tstore fp": f"pto.tstore_fp ins(%acc, %f : {ACC}, {FP}) outs(%pd : {OUT})",
    "textract fp": f"pto.textract_fp ins(%acc, %f, %c0, %c0 : {ACC}, {FP}, index, index) "
    f"outs(%m : {MAT})",
    "textract": f"pto.textract ins(%acc, %word, %c0, %c0 : {ACC}, i64, index, index) "
    f"outs(%m : {MAT})",
    "tinsert fp": f"pto.tinsert ins(%acc, %f, %c0, %c0 : {ACC}, {FP}, index, index) "
    f"outs(%m : {MAT})",
    "tmov fp": f"pto.tmov.fp ins(%acc, %f : {ACC}, {FP}) outs(%m : {MAT})",
}


def program(line: str) -> Program:
    """The program that drains its accumulator with a line."""
    drain = line if "tstore" in line else f"{line}\n  {STORE}"
    return loads(TEXT.replace("<drain>", drain), "k.pto")


def result(made: Program) -> np.ndarray:
    """What it computes."""
    a, b = (np.arange(1024).reshape(32, 32) * n % 5 - 2 for n in (3, 7))
    scales = (1 + np.arange(32) % 3).astype("f4").view("u4").astype("u8") | SIGNED
    out = np.zeros((32, 32), "i1")
    made["k"][1](a.astype("i1"), b.astype("i1"), scales.reshape(1, 32), out)
    return out


def expected(by_column: bool, relu: bool) -> np.ndarray:
    """The same with NumPy."""
    a, b = (np.arange(1024).reshape(32, 32) * n % 5 - 2 for n in (3, 7))
    values = a @ b * (1 + np.arange(32) % 3 if by_column else 1)
    return np.clip(values, 0 if relu else -128, 127).astype("i1")


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", DRAINS)
def test_a_clause_is_read_run_and_printed(name: str, relu: bool) -> None:
    line, by_column = DRAINS[name]
    made = program(f"{line} {RELU}" if relu else line)
    assert not [d for d in made.check() if d.severity == "error"]
    assert np.array_equal(result(made), expected(by_column, relu))
    assert str(loads(str(made))) == str(made)
    placed = made.convert("l3")
    assert np.array_equal(result(placed), expected(by_column, relu))
    if "tinsert" not in name:  # a tile of which a part changes is no value
        made = made.convert("l1")
        assert str(loads(str(made))) == str(made)
    again = made.convert("l2")
    assert np.array_equal(result(again), expected(by_column, relu))
    assert "_FP" in made.cpp() if by_column else "_FP" not in made.cpp()


@pytest.mark.parametrize("name", BEFORE)
def test_what_had_no_clause_means_the_same(name: str) -> None:
    assert np.array_equal(result(program(BEFORE[name])), expected(DRAINS[name][1], False))


def test_a_word_stands_before_the_operand_it_names() -> None:
    line, _ = DRAINS["tinsert pre_quant"]
    with pytest.raises(PtoError, match="no clause fp here"):
        program(line.replace("pre_quant", "fp"))
    with pytest.raises(PtoError, match="its clauses: fp"):
        program(DRAINS["textract fp"][0].replace(" fp %f", " scales %f"))


def test_a_scale_tile_lies_in_the_memory_of_scales() -> None:
    line = DRAINS["textract fp"][0].replace(f"fp %f : {FP}", f"fp %ms : {WORDS}")
    assert "SA-0052" in [d.code for d in program(line).check()]


@pytest.mark.parametrize("mode", ["split2", "split4"])
def test_bursts_of_an_insertion(mode: str) -> None:
    vec = MAT.replace("mat", "vec")
    text = f"""
    func.func @k() attributes {{pto.entry}} {{
      %c0 = arith.constant 0 : index
      %v = pto.alloc_tile : {vec}
      %m = pto.alloc_tile : {MAT}
      pto.tinsert ins(%v, %c0, %c0 : {vec}, index, index) outs(%m : {MAT})
          {{tinsertMode = #pto.tinsert_mode<{mode}>}}
      return
    }}"""
    made = loads(text)
    assert str(loads(str(made))) == str(made)
    assert f"#pto.tinsert_mode<{mode}>" in str(made)
    assert not [d for d in made.check("a5") if d.severity == "error"]
    assert f"TInsertMode::{mode.upper()}" in made.cpp("a5")
    assert [d.code for d in made.check("a2a3") if d.severity == "error"]
