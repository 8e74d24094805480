"""What the verifier of texts refuses: one line for each condition, and its legal neighbour."""

from __future__ import annotations

import pytest

from ptokit.from_text import loads
from tests.text.lines import program

V, COLUMN, ROW = "{16x64xf32}", "{16x1xf32 col}", "{1x64xf32}"
INDEX, INDEX_ROW = "{16x1xui32 col}", "{1x64xui32}"
HALF = "{16x64xf32 valid=8x64}"
NARROW = "{16x64xf32 valid=16x32}"
EMPTY = "{16x64xf32 valid=0x64}"
NOTHING = "{16x64xf32 valid=0x0}"

E, Z = "{16x32xui8}", "{16x32xui8 zz fractal=32}"
AXIS0 = " {grpAxis = #pto<mx_group_axis axis0>}"


def mx(
    src: str = "16x32xf32",
    codes: str = "16x32xi8",
    exps: str = "1x32xui8 valid=1x16",
    scales: str = "1x64xf32 valid=1x16",
    more: str = "",
    kind: str = "MXFP8",
) -> str:
    """Quantise groups of 32; max has the type of scaling."""
    outs = ", ".join(f"{{{each}}}" for each in (codes, exps, scales, scales))
    return (
        f"pto.tquant.mx ins({{{src}}}) outs({outs}) {{quant_type = #pto<quant_type {kind}>{more}}}"
    )


def dn(
    src: str = "64x32xf32",
    codes: str = "64x32xi8",
    exps: str = "2x32xui8",
    scales: str = "2x32xf32",
    more: str = "",
    kind: str = "MXFP8",
) -> str:
    return mx(src, codes, exps, scales, f", grpAxis = #pto<mx_group_axis axis0>{more}", kind)


# Targets, code, a line that is refused, a line that is not.
CASES = [
    ("a2a3 a5", "PA-0020", f"pto.tadds ins({HALF}, {{f32}}) outs({V})",
     f"pto.tadds ins({HALF}, {{f32}}) outs({HALF})"),
    ("a2a3 a5", "PA-0017", f"pto.tadd ins({V}, {V}) outs({NARROW})",
     f"pto.tadd ins({V}, {V}) outs({V})"),
    ("a2a3 a5", "PA-0027", f"pto.texp ins({V}) outs({HALF})",
     f"pto.texp ins({NOTHING}) outs({NOTHING})"),
    ("a2a3 a5", "PA-0020", f"pto.tdivs ins({{f32}}, {V}) outs({HALF})",
     f"pto.tdivs ins({{f32}}, {V}) outs({V})"),
    ("a2a3 a5", "TROWMAX.one-column",
     f"pto.trowmax ins({V}, {V}) outs({{16x1xf32 col valid=16x0}})",
     f"pto.trowmax ins({V}, {V}) outs({COLUMN})"),
    ("a5", "TROWMAX.not-empty", f"pto.trowmax ins({EMPTY}, {V}) outs({COLUMN})",
     f"pto.trowmax ins({EMPTY}, {V}) outs({{16x1xf32 col valid=0x0}})"),
    ("a2a3 a5", "PA-0032", f"pto.trowsum ins({HALF}, {V}) outs({COLUMN})",
     f"pto.trowsum ins({HALF}, {V}) outs({{16x1xf32 col valid=8x1}})"),
    ("a5", "TROWARGMAX.not-empty", f"pto.trowargmax ins({EMPTY}, {V}) outs({INDEX})",
     f"pto.trowargmax ins({V}, {V}) outs({INDEX})"),
    ("a2a3 a5", "TCOLARGMAX.one-row",
     f"pto.tcolargmax ins({V}, {V}) outs({{1x64xui32 valid=0x64}})",
     f"pto.tcolargmax ins({V}, {V}) outs({INDEX_ROW})"),
    ("a5", "TROWEXPAND.not-empty",
     f"pto.trowexpand ins({COLUMN}) outs({{16x64xf32 valid=16x0}})",
     f"pto.trowexpand ins({{16x1xf32 col valid=0x1}}) outs({NOTHING})"),
    ("a2a3", "TROWARGMAX.tmp-valid",
     f"pto.trowargmax ins({{16x128xf32}}, {{16x8xf32}}) outs({INDEX})",
     f"pto.trowargmax ins({{16x128xf32}}, {{16x16xf32}}) outs({INDEX})"),
    ("a2a3", "TCOLARGMIN.tmp-valid",
     f"pto.tcolargmin ins({V}, {{16x64xf32 valid=16x8}}) outs({INDEX_ROW})",
     f"pto.tcolargmin ins({V}, {{16x64xf32 valid=8x16}}) outs({INDEX_ROW})"),
    ("a2a3", "TREM.tmp-columns", f"pto.trem ins({V}, {V}, {{1x256xf32}}) outs({V})",
     f"pto.trem ins({V}, {V}, {{2x128xf32}}) outs({V})"),
    ("a2a3", "TREMS.tmp-columns",
     f"pto.trems ins({V}, {{f32}}, {{1x64xf32 valid=0x64}}) outs({V})",
     f"pto.trems ins({V}, {{f32}}, {{1x64xf32}}) outs({V})"),
    ("a2a3", "TPRELU.tmp-rows", f"pto.tprelu ins({V}, {V}, {{16x32xui8}}) outs({V})",
     f"pto.tprelu ins({V}, {V}, {{17x32xui8}}) outs({V})"),
    ("a2a3", "TPRELU.tmp-rows", f"pto.tprelu ins({V}, {V}, {{17x32xui8 valid=17x7}}) outs({V})",
     f"pto.tprelu ins({V}, {V}, {{17x32xui8 valid=17x8}}) outs({V})"),
    ("a2a3", "TROWEXPANDADD.per-row-source",
     f"pto.trowexpandadd ins({V}, {{16x8xf32}}, {{1x2048xf32}}) outs({V})",
     f"pto.trowexpandadd ins({V}, {COLUMN}, {{1x2048xf32}}) outs({V})"),
    ("a2a3 a5", "TPOW.tmp-integer",
     "pto.tpow ins({16x64xi32}, {16x64xi32}, {16x64xi32}) outs({16x64xi32})",
     "pto.tpow ins({16x64xi32}, {16x64xi32}) outs({16x64xi32})"),
    ("a2a3 a5", "TPOWS.tmp-integer",
     "pto.tpows ins({16x64xi32}, {i32}, {16x64xi32}) outs({16x64xi32})",
     "pto.tpows ins({16x64xi32}, {i32}) outs({16x64xi32})"),
    ("a2a3 a5", "TPOWS.scalar-type", f"pto.tpows ins({V}, {{i32}}) outs({V})",
     f"pto.tpows ins({V}, {{f32}}) outs({V})"),
    ("a2a3 a5", "TFMODS.scalar-type", f"pto.tfmods ins({V}, {{i32}}) outs({V})",
     f"pto.tfmods ins({V}, {{f32}}) outs({V})"),
    ("a5", "TREMS.scalar-type", "pto.trems ins({16x64xui16}, {i32}) outs({16x64xui16})",
     "pto.trems ins({16x64xui16}, {i16}) outs({16x64xui16})"),
    ("a2a3", "TPOW.tmp-valid", f"pto.tpow ins({V}, {V}, {HALF}) outs({V})",
     f"pto.tpow ins({V}, {V}, {V}) outs({V})"),
    ("a2a3", "TGATHER.index-tmp", f"pto.tgather ins({V}, {{16x64xi32}}) outs({V})",
     f"pto.tgather ins({V}, {{16x64xi32}}, {{16x64xi32}}) outs({V})"),
    ("a2a3 a5", "TCVT.same-shape", f"pto.tcvt ins({V}) outs({{16x128xf16 valid=16x64}})",
     f"pto.tcvt ins({V}) outs({{16x64xf16}})"),
    ("a2a3 a5", "TCVT.same-valid", f"pto.tcvt ins({V}) outs({{16x64xf16 valid=8x64}})",
     f"pto.tcvt ins({HALF}) outs({{16x64xf16 valid=8x64}})"),
    ("a2a3", "TCVT.dtype", f"pto.tcvt ins({V}) outs({{16x64xf8E4M3FN}})",
     f"pto.tcvt ins({V}) outs({{16x64xbf16}})"),
    ("a5", "TCVT.dtype", "pto.tcvt ins({16x64xf16}) outs({16x64xf8E4M3FN})",
     f"pto.tcvt ins({V}) outs({{16x64xf8E4M3FN}})"),
    ("a2a3 a5", "TSTORE.static-count", f"pto.tstore ins({V}) outs({{gm 8x64xf32}})",
     f"pto.tstore ins({HALF}) outs({{gm 8x64xf32}})"),
    ("a2a3", "TFILLPAD.mat-type",
     "pto.tfillpad ins({32x64xf16 mat nz valid=20x50}) outs({32x64xf16 mat nz})",
     "pto.tfillpad ins({32x64xf16 mat nz valid=20x50 =a}) "
     "outs({32x64xf16 mat nz valid=20x50 =a})"),
    ("a2a3 a5", "TQUANT.same-valid",
     f"pto.tquant ins({V}, {COLUMN}) outs({{16x64xi8 valid=8x64}}) SYM",
     f"pto.tquant ins({V}, {COLUMN}) outs({{16x64xi8}}) SYM"),
    ("a2a3", "TQUANT.parameter-shape", f"pto.tquant ins({V}, {{16x8xf32}}) outs({{16x64xi8}}) SYM",
     f"pto.tquant ins({V}, {COLUMN}) outs({{16x64xi8}}) SYM"),
    ("a2a3", "TQUANT.tmp",
     f"pto.tquant ins({{16x64xf32 valid=?x?}}, {COLUMN}) outs({{16x64xi8 valid=?x?}}) SYM",
     f"pto.tquant ins({V}, {COLUMN}) outs({{16x64xi8}}) SYM"),
    ("a2a3 a5", "mandatory-attribute",
     f"pto.mgather ins({{gm 16x64xf32}}, {{1x16xi32}}) outs({V})",
     f"pto.mgather ins({{gm 16x64xf32}}, {{1x16xi32}}) outs({V}) "
     "{coalesce = #pto<coalesce row>}"),
    ("a5", "mandatory-attribute",
     f"pto.mscatter ins({V}, {{1x16xi32}}) outs({{gm 16x64xf32}}) "
     "{scatterAtomicOp = #pto<scatter_atomic_op add>}",
     f"pto.mscatter ins({V}, {{1x16xi32}}) outs({{gm 16x64xf32}})"),
    ("a2a3", "TPOW.precision",
     f"pto.tpow ins({V}, {V}) outs({V}) {{precisionType = #pto<pow_precision high_precision>}}",
     f"pto.tpow ins({V}, {V}) outs({V}) {{precisionType = #pto<pow_precision default>}}"),
    ("a5", "TRSQRT.precision-tmp",
     f"pto.trsqrt ins({V}) outs({V}) {{precisionType = #pto<rsqrt_precision high_precision>}}",
     f"pto.trsqrt ins({V}, {ROW}) outs({V}) "
     "{precisionType = #pto<rsqrt_precision high_precision>}"),
    ("a5", "TROWEXPANDDIV.precision-tmp",
     f"pto.trowexpanddiv ins({V}, {COLUMN}) outs({V}) "
     "{precisionType = #pto<div_precision high_precision>}",
     f"pto.trowexpanddiv ins({V}, {COLUMN}) outs({V})"),
    ("a2a3", "TPREFETCH.dtype",
     "pto.tprefetch ins({gm 16x32x!pto.hif8}) outs({16x32xi8})",
     "pto.tprefetch ins({gm 16x32xi8}) outs({16x32xi8})"),
    ("a2a3 a5", "mandatory-attribute", f"pto.tscatter ins({V}) outs({V})",
     f"pto.tscatter ins({V}, {{16x64xi32}}) outs({V})"),
    ("a2a3", "mandatory-attribute",
     "pto.tfillpad ins({16x64xf32}) outs({16x64xf32 pad=1}) {mode = \"expand\"}",
     "pto.tfillpad ins({16x64xf32}) outs({16x64xf32 pad=1})"),
    ("a2a3 a5", "TROWEXPANDMAX.tmp-type",
     f"pto.trowexpandmax ins({V}, {COLUMN}, {{8x64xi32}}) outs({V})",
     f"pto.trowexpandmax ins({V}, {COLUMN}, {{8x64xf32}}) outs({V})"),
    ("a2a3", "TROWEXPANDMAX.tmp-size",
     f"pto.trowexpandmax ins({V}, {COLUMN}, {ROW}) outs({V})",
     f"pto.trowexpandmax ins({V}, {COLUMN}, {{1x128xf32}}) outs({V})"),
    ("a2a3", "TCI.tmp-size", "pto.tci ins({i32}, {1x128xf32}) outs({1x64xi32})",
     "pto.tci ins({i32}, {1x192xf32}) outs({1x64xi32})"),
    ("a5", "TGEMV.one-row",
     "pto.tgemv ins({1x512xf16 left nz valid=1x64}, {64x64xf16 right zn}) "
     "outs({16x64xf32 acc valid=0x64})",
     "pto.tgemv ins({1x512xf16 left nz valid=1x64}, {64x64xf16 right zn}) "
     "outs({16x64xf32 acc valid=1x64})"),
    ("a5", "TEXTRACT.vector-layouts",
     "pto.textract ins({32x32xf16 nz}, {index}, {index}) outs({16x32xf16 nz})",
     "pto.textract ins({32x32xf16}, {index}, {index}) outs({16x32xf16})"),
    # Exponents in boxes.
    ("a2a3", "TMOV.zz-target", f"pto.tmov ins({E}, {E}) outs({Z})", f"pto.tmov ins({E}) outs({E})"),
    ("a5", "TMOV.zz-vec", f"pto.tmov ins({E}, {{16x32xui8 mat}}) outs({Z})",
     f"pto.tmov ins({E}, {E}) outs({Z})"),
    ("a5", "TMOV.zz-static",
     f"pto.tmov ins({{16x32xui8 valid=?x?}}, {E}) outs({{16x32xui8 zz fractal=32 valid=?x?}})",
     f"pto.tmov ins({E}, {E}) outs({Z})"),
    ("a5", "TMOV.zz-groups", f"pto.tmov ins({{3x32xui8}}, {E}) outs({Z}) AXIS0",
     f"pto.tmov ins({{4x32xui8}}, {E}) outs({Z}) AXIS0"),
    ("a5", "TMOV.zz-source",
     f"pto.tmov ins({{4x32xui8}}, {E}) outs({{16x32xui8 zz fractal=32 valid=4x32}})",
     f"pto.tmov ins({E}, {E}) outs({Z})"),
    # MX quantisation along a row, M by N elements.
    ("a5", "TQUANT_MX.static", mx("16x32xf32 valid=?x?", "16x32xi8 valid=?x?"), mx()),
    ("a5", "TQUANT_MX.groups", mx("16x64xf32 valid=16x48", "16x64xi8 valid=16x48"), mx()),
    ("a5", "TQUANT_MX.code-region", mx(codes="16x32xi8 valid=8x32"), mx()),
    ("a5", "TQUANT_MX.group-region", mx(exps="2x32xui8 valid=2x8"), mx()),
    ("a5", "TQUANT_MX.code-columns", mx(codes="16x64xi8 valid=16x32"), mx()),
    ("a5", "TQUANT_MX.compact", mx(scales="16x8xf32 valid=16x1"), mx()),
    ("a5", "TQUANT_MX.flat-source", mx(exps="2x32xui8 valid=1x16"), mx()),
    ("a5", "TQUANT_MX.flat-scaling", mx(scales="1x16xf32"), mx()),
    ("a5", "TQUANT_MX.flat-algorithm",
     mx("16x32xbf16", scales="1x128xbf16 valid=1x16",
        more=", quantScaleAlg = #pto<quant_scale_alg nv>"),
     mx("16x32xbf16", scales="1x128xbf16 valid=1x16")),
    ("a5", "TQUANT_MX.two-dimensional",
     mx("16x32xbf16", exps="16x32xui8 valid=16x1", scales="1x128xbf16 valid=1x16"),
     mx("16x32xbf16", scales="1x128xbf16 valid=1x16")),
    # And down a column.
    ("a5", "TQUANT_DN.groups", dn("64x32xf32 valid=16x32", "64x32xi8 valid=16x32"), dn()),
    ("a5", "TQUANT_DN.group-region", dn(exps="2x32xui8 valid=1x32"), dn()),
    ("a5", "TQUANT_DN.pitch", dn(scales="2x64xf32 valid=2x32"), dn()),
    ("a5", "TQUANT_DN.interleaved-type",
     dn(exps="1x64xui8", more=", interleave = true"),
     dn("64x32xbf16", scales="2x32xbf16", exps="1x64xui8", more=", interleave = true")),
    ("a5", "TQUANT_DN.packed-pitch",
     dn("32x32xf16", "32x16x!pto.f4E2M1x2", "1x32xui8", "1x32xf16", kind="MXFP4_E2M1"),
     dn("32x64xf16", "32x32x!pto.f4E2M1x2", "1x64xui8", "1x64xf16", kind="MXFP4_E2M1")),
]  # fmt: skip
PARAMS = [
    pytest.param(target, code, wrong, right, id=f"{code}-{target}-{n}")
    for n, (targets, code, wrong, right) in enumerate(CASES)
    for target in targets.split()
]


def complaints(line: str, target: str, *, placed: bool = False) -> list[tuple[str, int, str]]:
    line = line.replace(" SYM", " {quant_type = #pto<quant_type INT8_SYM>}")
    text = program(line.replace(" AXIS0", AXIS0), placed=placed)
    at = text.splitlines().index(f"  {text.splitlines()[-3].strip()}") + 1
    found = loads(text, "k.pto").check(target)
    return [(d.code, d.location.line - at if d.location else -1, d.severity) for d in found]


@pytest.mark.parametrize(("target", "code", "wrong", "right"), PARAMS)
def test_a_condition_is_refused_at_its_line(target: str, code: str, wrong: str, right: str) -> None:
    assert (code, 0, "error") in complaints(wrong, target)
    left = [each for each in complaints(right, target) if each[2] == "error"]
    assert not left


@pytest.mark.parametrize(("target", "code", "wrong", "right"), PARAMS)
def test_whoever_places_the_tiles(target: str, code: str, wrong: str, right: str) -> None:
    """Addresses make no difference to the verifier of texts."""
    if "left" not in wrong:  # which are larger than the distance of the addresses
        assert (code, 0, "error") in complaints(wrong, target, placed=True)
