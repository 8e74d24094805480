"""Comparison and selection: packed predicate masks."""

from __future__ import annotations

from ptokit.base.dtypes import i32
from ptokit.base.enums import CmpMode
from ptokit.isa.expr import Expr, select
from ptokit.isa.masks import (
    compared,
    compared_mask,
    is_mask,
    mask_extent,
    mask_fits,
    stored_mask_fits,
    undefined_tail,
)
from ptokit.isa.meaning import Each
from ptokit.isa.pointwise import A5_FAMILY, DEVICES, arithmetic, on_a2a3, one_vector_of_i64, plain
from ptokit.isa.rules import (
    located,
    same_dtype,
    same_valid,
    separate,
    static_valid_fits,
    whole_overlap,
)
from ptokit.isa.spec import Asm, Attr, insn, out, rule, src, tmp, types


def alike(names: str, count: int) -> str:
    """Combinations of `count` operands that have the same element type."""
    return " ".join(",".join([name] * count) for name in names.split())


@insn(
    out("dst", view=compared_mask, unspecified=undefined_tail, note="packed mask"),
    src("src0"),
    src("src1", view=lambda o: (o.src0.vr, o.src0.vc)),
    means=Each(packs=True, streams=False),
    attrs=[Attr("cmpMode", CmpMode, CmpMode.EQ, argument=True)],
    types=[
        types(
            "src0 src1",
            a2a3=alike("i32 f16 f32", 2),
            a5=alike("i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32", 2),
            kirin=alike("i8 u8 i16 u16 i32 u32 f16 f32", 2),
        ),
        types("dst", a2a3="u8", a5="u8 u32", kirin="u8 u32"),
    ],
    rules=[
        *is_mask("dst"),
        *mask_fits("dst", of="src0"),
        stored_mask_fits(),
        same_dtype("src0", "src1"),
        arithmetic("src0"),
        located("Vec", "dst", id="SA-0230", on=DEVICES),
        located("Vec", "src0", "src1", id="SA-0232", on=DEVICES),
        *static_valid_fits("dst", "src0", "src1"),
        plain("src0", "src1", on=DEVICES),
        separate("dst", "src0", "src1"),
        same_valid("src0", "src1", on="a2a3"),
        rule(
            "mask-valid-rows",
            "dst has as many valid rows as src0",
            lambda o: o.dst.vr == o.src0.vr,
            "a2a3",
        ),
        rule(
            "i32-order",
            "i32 is compared for EQ or NE: A2/A3 cannot order it and would answer EQ",
            lambda o: o.src0.dtype is not i32 or o.attrs["cmpMode"] in (CmpMode.EQ, CmpMode.NE),
            "a2a3",
            "convert to f32 with TCVT first, or compare the difference",
        ),
        rule(
            "src1-covers",
            "the valid region of src1 covers that of src0",
            lambda o: o.src1.vr >= o.src0.vr and o.src1.vc >= o.src0.vc,
        ),
        rule(
            "same-stride",
            "src0 and src1 have the same row stride when their elements have 32 bits",
            lambda o: o.src0.itemsize != 4 or o.src0.row_stride == o.src1.row_stride,
            A5_FAMILY,
            "declare both sources with the same number of columns",
        ),
        one_vector_of_i64("src0"),
    ],
    asm=Asm(attrs={"cmpMode": "cmpMode"}, place={"cmpMode": "ins"}),
    example={"dst": "Vec {T} 16x32", "dst@cpu": "Vec u8 16x32"},
)
def TCMP(src0: Expr, src1: Expr, cmpMode: CmpMode) -> Expr:
    """Compare two tiles and pack the answers, one bit per element, into a mask.

    Bit j % 8 of byte j // 8 in row i of the mask answers for element (i, j); rows of the mask start
    at rows of its tile, whatever its element type. NaN is unequal to everything, +0 equals -0.
    Whole registers of bits are stored: behind the last element of a row A5 and Kirin fill up with
    zeros, A2/A3 with garbage (with NE, to the end of the row). A2/A3 cannot order i32.
    """
    return compared(src0, src1, cmpMode)


@insn(
    out("dst"),
    src("selMask", view=lambda o: mask_extent(o.selMask, o.dst.vr, o.dst.vc), note="packed mask"),
    src("src0", note="taken where the bit is 1"),
    src("src1", note="taken where the bit is 0"),
    tmp(lost=on_a2a3, note="32 bytes on A2/A3"),
    means=Each(masks=("selMask",), streams=False),
    types=[
        types(
            "dst src0 src1",
            a2a3=alike("i16 u16 i32 u32 f16 bf16 f32", 3),
            a5=alike("i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32", 3),
            kirin=alike("i8 u8 i16 u16 i32 u32 f16 f32", 3),
            ids={"a2a3": "SA-0326"},
        ),
        types("selMask", a2a3="u8", a5="u8", kirin="u8"),
    ],
    rules=[
        *is_mask("selMask"),
        *mask_fits("selMask", of="dst"),
        same_dtype("dst", "src0", "src1"),
        same_valid("dst", "src0", "src1"),
        plain("dst", "src0", "src1"),
        located("Vec", "dst", "selMask", "src0", "src1", on=DEVICES),
        *static_valid_fits("dst", "selMask", "src0", "src1"),
        whole_overlap("dst", "src0", "src1"),
        separate("dst", "selMask", id="mask-separate"),
        rule(
            "tmp-size",
            "tmp holds 8 bytes for 4-byte elements, 16 for 2-byte ones",
            lambda o: o.tmp.nbytes >= 32 // o.dst.itemsize,
            "a2a3",
            "declare tmp with one row of 32 bytes",
        ),
        located("Vec", "tmp", id="tmp-location", on="a2a3"),
        separate("tmp", "dst", "selMask", "src0", "src1", id="tmp-separate", on="a2a3"),
        rule(
            "byte-columns",
            "8-bit tiles have at most 256 valid columns",
            lambda o: o.dst.itemsize > 1 or o.dst.vc <= 256,
            A5_FAMILY,
            "process the tile in pieces of 256 columns",
        ),
        one_vector_of_i64(),
    ],
    example={"selMask": "Vec u8 16x32", "tmp": "Vec u8 1x32"},
)
def TSEL(selMask: Expr, src0: Expr, src1: Expr) -> Expr:
    """Choose between two tiles, element by element, by the bits of a packed mask.

    Bits are laid out as TCMP leaves them; give the mask tile u8 elements. Nothing is converted, so
    NaNs keep their payload. The destination may be one of the sources. A2/A3 needs `tmp`; other
    targets do not touch it.
    """
    return select(selMask, src0, src1)
