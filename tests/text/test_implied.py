"""Temporaries that a line may leave out: who supplies them at which level, on which target."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.from_text import loads
from ptokit.isa.targets import target
from ptokit.passes.spell_out import spelled_out
from tests.text.lines import program
from tests.text.test_scratch import kernel

V, COLUMN, ROW = "{16x64xf32}", "{16x1xf32 col}", "{1x64xf32}"
I16, MASK = "{16x64xi16}", "{16x32xi8}"
SORTED = "pto.tsort32 ins({1x%dxf32}, {1x64xui32}) outs({1x128xf32})"

# Lines without their temporary; the targets that use one, and the others only ask for it.
ON_A2A3 = {
    **{
        n: f"pto.{n} ins({V}) outs({COLUMN})" for n in ("trowsum", "trowmax", "trowmin", "trowprod")
    },
    **{n: f"pto.{n} ins({V}) outs({{16x1xui32 col}})" for n in ("trowargmax", "trowargmin")},
    **{n: f"pto.{n} ins({V}) outs({{1x64xui32}})" for n in ("tcolargmax", "tcolargmin")},
    "txor": f"pto.txor ins({I16}, {I16}) outs({I16})",
    "txors": f"pto.txors ins({I16}, {{i16}}) outs({I16})",
    "tprelu": f"pto.tprelu ins({V}, {V}) outs({V})",
    "trem": f"pto.trem ins({V}, {V}) outs({V})",
    "trems": f"pto.trems ins({V}, {{f32}}) outs({V})",
    "tsel": f"pto.tsel ins({MASK}, {V}, {V}) outs({V})",
    "tsels": f"pto.tsels ins({MASK}, {V}, {{f32}}) outs({V})",
    "ttrans": f"pto.ttrans ins({V}) outs({{64x16xf32}})",
    "tpow": f"pto.tpow ins({V}, {V}) outs({V})",
    "tpows": f"pto.tpows ins({V}, {{f32}}) outs({V})",
    "tci": "pto.tci ins({i32}) outs({1x64xi32})",
    "tcvt": f"pto.tcvt ins({V}) outs({I16})",
    "tcvt-8": "pto.tcvt ins({16x64xf16}) outs({16x64xi8})",
    "tci-16": "pto.tci ins({i16}) outs({1x16xi16})",
    "tquant": f"pto.tquant ins({V}, {COLUMN}) outs({{16x64xi8}}) "
    "{quant_type = #pto<quant_type INT8_SYM>}",
}
EVERYWHERE = {
    "tcolsum": f"pto.tcolsum ins({V}) outs({ROW}) {{isBinary = true}}",
    "tsort32-tail": SORTED % 40,
    "tmrgsort": "pto.tmrgsort ins({1x128xf32}, {1x128xf32} no_tmp {exhausted = false}) "
    "outs({1x256xf32}, {vector<4xi16>})",
}
NOWHERE = {
    **{
        f"trowexpand{n}": f"pto.trowexpand{n} ins({V}, {COLUMN}) outs({V})"
        for n in ("add", "sub", "mul", "div", "max", "min", "expdif")
    },
    "tcolsum-plain": f"pto.tcolsum ins({V}) outs({ROW})",
    "tsort32": SORTED % 64,
    "tcvt-saturated": f"pto.tcvt ins({V} {{satmode = #pto<saturation_mode ON>}}) outs({I16})",
    "tcvt-wider": f"pto.tcvt ins({{16x64xf16}}) outs({V})",
    "tpow-integer": "pto.tpow ins({16x64xi32}, {16x64xi32}) outs({16x64xi32})",
}
LINES = ON_A2A3 | EVERYWHERE | NOWHERE


@pytest.mark.parametrize("on", ["a2a3", "a5"])
@pytest.mark.parametrize("name", LINES)
def test_levels_1_and_2_supply_them(name: str, on: str) -> None:
    for level in (1, 2):
        assert not loads(program(LINES[name])).check(on, level)


@pytest.mark.parametrize("on", ["a2a3", "a5"])
@pytest.mark.parametrize("name", LINES)
def test_level_3_supplies_none_that_is_used(name: str, on: str) -> None:
    found = loads(program(LINES[name], placed=True)).check(on, 3)
    used = name in EVERYWHERE or (name in ON_A2A3 and on == "a2a3")
    assert [d.code for d in found] == ["level3-tmp"] * used


@pytest.mark.parametrize("name", ["trowsum", "tsel", "tpow"])
def test_a_placeholder_is_one_block_anywhere(name: str) -> None:
    made = loads(program(ON_A2A3[name], placed=True)).module
    (tmp,) = (
        op
        for op in spelled_out(made, target("a5")).walk()
        if op.results and op.result.name.startswith("tmp")
    )
    assert tmp.result.type.spec.nbytes == 32
    assert tmp.operand("addr") is not None


@pytest.mark.parametrize("on", ["a2a3", "a5"])
def test_a_tree_of_sums_is_one_without_its_temporary(on: str) -> None:
    """The order of additions, and so the last bits, are those of the line with tmp."""
    tile, row = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x64xf32, valid=1x64>"
    results = []
    for line in (
        f"pto.tcolsum ins(%a : {tile}) outs(%sum : {row}) {{isBinary = true}}",
        f"pto.tcolsum ins(%a, %b {{isBinary = true}} : {tile}, {tile}) outs(%sum : {row})",
        f"pto.tcolsum ins(%a : {tile}) outs(%sum : {row})",
    ):
        text = kernel(
            f"pto.tabs ins(%a : {tile}) outs(%d : {tile})",
            f"%sum = pto.subview %d[%c0, %c0] sizes [16, 64] : {tile} -> {row}",
            line,
        )
        x = np.random.default_rng(0).uniform(0, 9, (16, 64)).astype("f4")
        z = np.zeros_like(x)
        loads(text)["k"][1](x, x.copy(), z, target=on)
        results.append(z[0].copy())
    assert np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])
