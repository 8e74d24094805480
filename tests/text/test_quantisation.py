"""Quantisation in text: scratch among the results, groups of both axes, exponents in boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tests.text.kernels as texts
from ptokit import *
from ptokit.base.diagnostics import PtoError
from ptokit.from_text import Program, loads
from tests.text.kernels import assert_fixpoint, ran, tile

F32, I8, U8 = tile("16x64xf32"), tile("16x64xi8"), tile("16x64xui8")
COLUMN = tile("16x1xf32", "blayout=col_major")
BOX = "slayout=row_major, fractal=32"


@pytest.mark.parametrize("target", ["a3", "a5"])
@pytest.mark.parametrize("where", ["outs(%d, %t : {d}, {t})", "outs(%d : {d})"])
def test_scratch_stands_among_the_results(target: str, where: str, engine: str) -> None:
    kind = "{quant_type = #pto<quant_type INT8_SYM>}"
    outs = where.format(d=I8, t=F32)
    made = texts.kernel(
        f"%t = pto.alloc_tile : {F32}\n    pto.tquant ins(%s, %f : {F32}, {COLUMN}) {outs} {kind}",
        {"s": F32, "f": COLUMN},
        {"d": I8},
        target,
    )
    source = np.linspace(-100, 100, 16 * 64, dtype="f4").reshape(16, 64)
    scale, result = np.full((16, 1), 1.25, "f4"), np.zeros((16, 64), "i1")
    ran(made, [source, scale, result], engine)
    assert (result == np.clip(np.rint(source * np.float32(1.25)), -128, 127)).all()


def test_scratch_among_the_sources_is_still_read() -> None:
    """Behind an offset: without one, a third source is an offset, which INT8_SYM does not take."""
    kind = "{quant_type = #pto<quant_type INT8_ASYM>}"
    types = f"%s: {F32}, %f: {COLUMN}, %t: {F32}, %d: {U8}"
    lines = (
        f"ins(%s, %f, %f, %t : {F32}, {COLUMN}, {COLUMN}, {F32}) outs(%d : {U8})",
        f"ins(%s, %f, %f : {F32}, {COLUMN}, {COLUMN}) outs(%d, %t : {U8}, {F32})",
    )
    before, now = (
        loads(f"func.func @f({types}) {{\n pto.tquant {line} {kind}\n return\n}}") for line in lines
    )
    assert str(before) == str(now)
    assert_fixpoint(now)


def quantised(
    form: str, source: np.ndarray, target: str = "a5"
) -> tuple[Program, list[np.ndarray]]:
    """MXFP8 of a source of 64 x 64 floats, with groups along an axis; f32 is not interleaved."""
    kind = "bf16" if form == "interleaved" else "f32"
    axis, interleave = ("axis1", False) if form == "rows" else ("axis0", form == "interleaved")
    e = {"rows": tile("64x32xui8", "valid=64x2"), "columns": tile("2x64xui8")}.get(
        form, tile("1x128xui8")
    )
    few = tile("1x256xf32", "valid=1x128") if form == "rows" else tile(f"2x64x{kind}")
    s, d = tile(f"64x64x{kind}"), tile("64x64xi8")
    more = f", interleave = {str(interleave).lower()}"
    made = texts.kernel(
        f"%m = pto.alloc_tile : {few}\n    %k = pto.alloc_tile : {few}\n"
        f"    pto.tquant.mx ins(%s : {s}) outs(%d, %e, %m, %k : {d}, {e}, {few}, {few})"
        f" {{grpAxis = #pto<mx_group_axis {axis}>{more},"
        " quantScaleAlg = #pto<quant_scale_alg nv>, quant_type = #pto<quant_type MXFP8>}",
        {"s": s},
        {"d": d, "e": e},
    )
    shapes = {"rows": (64, 2), "columns": (2, 64), "interleaved": (1, 128)}
    return made, [source, np.zeros((64, 64), "i1"), np.zeros(shapes[form], "u1")]


@pytest.mark.parametrize("form", ["rows", "columns", "interleaved"])
def test_groups_share_an_exponent(form: str, engine: str) -> None:
    rng = np.random.default_rng(3)
    source = (rng.standard_normal((64, 64)) * 2.0 ** rng.integers(-9, 9, (64, 64))).astype("f4")
    given = source.astype(dtype("bf16").np) if form == "interleaved" else source
    made, arrays = quantised(form, given)
    ran(made, arrays, engine)
    _, codes, exponents = arrays
    source = given.astype("f8")
    if form == "interleaved":
        exponents = exponents.reshape(64, 2).T
    spread = np.repeat(exponents, 32, axis=1 if form == "rows" else 0).astype("f8")
    back = codes.view(dtype("f8e4m3").np).astype("f8") * 2.0 ** (spread - 127)
    largest = (
        np.abs(source).reshape(64, 2, 32).max(2)
        if form == "rows"
        else (np.abs(source).reshape(2, 32, 64).max(1))
    )
    # The scale is the smallest power of two with which no element exceeds 448.
    assert (exponents == np.ceil(np.log2(largest / 448)) + 127).all()
    assert (
        np.abs(back - source) <= np.maximum(np.abs(source) / 16, 2.0 ** (spread - 127 - 10))
    ).all()
    assert "MxQuantAlg::NvMxFp8E4M3" in made.cpp() or "QuantScaleAlg::NV" in made.cpp()


def test_the_older_name_of_groups_down_a_column() -> None:
    made, _ = quantised("columns", np.zeros((64, 64), "f4"))
    before = (
        str(made)
        .replace("tquant.mx", "tquant.dn")
        .replace("grpAxis = #pto<mx_group_axis axis0>, ", "")
    )
    assert "tquant.dn" in before
    assert str(loads(before)) == str(made)


def test_only_groups_down_a_column_are_interleaved() -> None:
    made, _ = quantised("rows", np.zeros((64, 64), "f4"))
    with pytest.raises(PtoError, match="only with grpAxis = axis0 are exponents interleaved"):
        loads(str(made).replace("interleave = false", "interleave = true"))


@kernel(target="a5", mode="auto")
def columns(x: Any, y: Any) -> None:
    s, d, e = (
        Tile[TileType.Vec, f32, 64, 32](),
        Tile[TileType.Vec, i8, 64, 32](),
        Tile[TileType.Vec, u8, 2, 32](),
    )
    m, k = Tile[TileType.Vec, f32, 2, 32](), Tile[TileType.Vec, f32, 2, 32]()
    TLOAD(s, GlobalTensor(x))
    TQUANT[0, MxQuantAlg.NvMxFp8E4M3](d, s, e, m, k)
    TSTORE(GlobalTensor(y), d)


def test_what_a_call_says_in_one_word_has_two_keys_in_text() -> None:
    arrays = np.zeros((64, 32), "f4"), np.zeros((64, 32), "i1")
    text = columns.text(*arrays)
    assert "tquant.mx" in text
    for key in ("axis0>", "quant_type = #pto<quant_type MXFP8>", "#pto<quant_scale_alg nv>"):
        assert key in text
    assert "TQUANT<0, MxQuantAlg::NvMxFp8E4M3>" in columns.cpp(*arrays)
    assert_fixpoint(loads(text))


# ---- exponents in boxes --------------------------------------------------------------------------


BOXES = {  # axis: valid size of the exponents, their tile, the tile of the boxes, one row of it
    0: ((6, 32), tile("6x32xui8"), tile("1x192xui8", "slayout=row_major"), (1, 192)),
    1: ((1, 80), tile("1x128xui8", "valid=1x80"), tile("32x4xui8", "valid=20x4, " + BOX), (32, 4)),
}


@pytest.mark.parametrize("axis", BOXES)
def test_exponents_become_boxes(axis: int, engine: str) -> None:
    size, s, z, shape = BOXES[axis]
    exponents = np.arange(1, size[0] * size[1] + 1, dtype="u1").reshape(size)
    w, flat = tile("1x128xui8"), tile(f"1x{shape[0] * shape[1]}xui8")
    made = texts.kernel(
        f"%w = pto.alloc_tile : {w}\n    %z = pto.alloc_tile : {z}\n"
        f"    pto.tmov ins(%s, %w : {s}, {w}) outs(%z : {z})"
        f" {{grpAxis = #pto<mx_group_axis axis{axis}>}}\n"
        f"    %b = pto.bitcast %z : {z} -> {flat}\n"
        f"    pto.tmov ins(%b : {flat}) outs(%d : {flat})",
        {"s": s},
        {"d": flat},
    )
    result = np.zeros((1, shape[0] * shape[1]), "u1")
    ran(made, [exponents, result], engine)
    if axis == 0:
        boxes = exponents.reshape(3, 2, 2, 16).transpose(2, 0, 3, 1)
    else:
        filled = np.zeros((32, 4), "u1")
        filled[:20] = exponents.reshape(20, 4)
        boxes = filled.reshape(2, 16, 2, 2).transpose(0, 2, 1, 3)
    assert (result[0] == boxes.reshape(-1)).all()
