"""Comparison of a tile with one number, and selection between the two by a packed mask."""

from __future__ import annotations

from ptokit.base.dtypes import f16, i32
from ptokit.base.enums import CmpMode
from ptokit.isa.expr import Expr, given, on, select
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
from ptokit.isa.pointwise import (
    A5_FAMILY,
    DEVICES,
    arithmetic,
    on_a2a3,
    one_vector_of_i64,
    plain,
)
from ptokit.isa.rules import (
    located,
    same_dtype,
    same_valid_shape,
    separate,
    static_valid_fits,
    whole_overlap,
)
from ptokit.isa.spec import Asm, Attr, Operand, insn, out, rule, scalar, src, tmp, types

# ---- comparison and selection ------------------------------------------------------------------


@insn(
    out("dst", view=compared_mask, unspecified=undefined_tail, note="packed mask"),
    src("src0"),
    Operand(
        "scalar",
        "in",
        kinds=("scalar", "tile"),
        view=lambda _: slice(0, 1),
        note="a number, or a tile whose first element in memory is taken",
    ),
    means=Each(packs=True),
    attrs=[Attr("mode", CmpMode, CmpMode.EQ, argument=True)],
    types=[
        types(
            "src0",
            a2a3="i16 u16 i32 f16 f32",
            a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
            kirin="i8 u8 i16 u16 i32 u32 f16 f32",
        ),
        types("dst", a2a3="u8", a5="u8 u32", kirin="u8 u32"),
    ],
    rules=[
        *is_mask("dst"),
        *mask_fits("dst", of="src0"),
        stored_mask_fits(),
        arithmetic("src0"),
        rule(
            "scalar-type",
            "a tile that holds the scalar has the element type of src0",
            lambda o: o.scalar.kind != "tile" or o.scalar.dtype is o.src0.dtype,
        ),
        located("Vec", "dst", id="SA-0230", on=DEVICES),
        located("Vec", "src0", id="SA-0232", on=DEVICES),
        *static_valid_fits("dst", "src0"),
        plain("src0", on=DEVICES),
        separate("dst", "src0"),
        rule(
            "PA-0020",
            "dst has as many valid rows as src0",
            lambda o: o.dst.vr == o.src0.vr,
            "a2a3",
        ),
        rule(
            "i32-order",
            "i32 is compared for EQ or NE: A2/A3 cannot order it and would answer EQ",
            lambda o: o.src0.dtype is not i32 or o.attrs["mode"] in (CmpMode.EQ, CmpMode.NE),
            "a2a3",
            "convert to f32 with TCVT first",
        ),
        one_vector_of_i64("src0"),
    ],
    asm=Asm(attrs={"mode": "cmpMode"}, place={"mode": "ins"}),
    example={"dst": "Vec u8 16x32", "src0": "Vec {T} 16x64", "scalar": "1"},
    more_examples=[{"dst": "Vec u8 16x32", "src0": "Vec f32 16x64", "scalar": "Vec f32 1x64"}],
)
def TCMPS(src0: Expr, scalar: Expr, mode: CmpMode) -> Expr:
    """Compare every element with a scalar and pack the answers, one bit each, into a mask.

    The mask is laid out, and filled up behind the last element, as TCMP does it. The scalar may be
    given as a tile: its first element in memory counts. NaN is unequal to everything, +0 equals -0.
    A2/A3 cannot order i32, and compares i16 and u16 as if their bits were f16: equality is right
    except for 0 against 0x8000 and the patterns of NaN, order only among small positive numbers.
    """
    found = compared(src0, scalar, mode)
    if src0.kind.is_float or src0.kind.bits != 16:
        return found
    return given(on("a2a3"), compared(src0.bits(f16), scalar.bits(f16), mode), found)


@insn(
    out("dst"),
    src("mask", view=lambda o: mask_extent(o.mask, o.dst.vr, o.dst.vc), note="packed mask"),
    src("src", note="taken where the bit is 1"),
    tmp(lost=on_a2a3, note="32 bytes on A2/A3"),
    scalar(note="taken where the bit is 0; converted to the element type of src"),
    means=Each(masks=("mask",)),
    types=types(
        a2a3="i16 u16 i32 u32 f16 bf16 f32",
        a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 f32",
        kirin="i8 u8 i16 u16 i32 u32 f16 f32",
        ids={"a2a3": "SA-0327", **dict.fromkeys(A5_FAMILY.split(), "SA-0328")},
    ),
    rules=[
        *is_mask("mask"),
        *mask_fits("mask", of="dst"),
        same_dtype("dst", "src"),
        *same_valid_shape("dst", "src", rows="PA-0020", cols="PA-0017"),
        *static_valid_fits("dst", "mask", "src"),
        plain("dst", "src", on=DEVICES),
        located("Vec", "dst", "mask", "src", on=DEVICES),
        whole_overlap("dst", "src"),
        separate("dst", "mask", id="mask-separate"),
        located("Vec", "tmp", id="tmp-location", on="a2a3"),
        rule(
            "tmp-size",
            "tmp holds a block of 32 bytes",
            lambda o: o.tmp.nbytes >= 32,
            "a2a3",
            "declare tmp with one row of 32 bytes",
        ),
        separate("tmp", "dst", "mask", "src", id="tmp-separate", on="a2a3"),
        one_vector_of_i64(),
    ],
    example={"mask": "Vec u8 16x32", "tmp": "Vec u8 1x32"},
)
def TSELS(mask: Expr, src: Expr, scalar: Expr) -> Expr:
    """Take elements of a tile where a packed mask has ones, and a scalar where it has zeros.

    Bits are laid out as TCMP and TCMPS leave them. Nothing is computed, so NaNs of src keep their
    payload. The destination may be the source. A2/A3 needs `tmp`; other targets do not touch it.
    """
    return select(mask, src, scalar)
