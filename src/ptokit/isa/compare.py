"""Comparison and selection: packed predicate masks, with a tile and with one number.

A mask holds one bit per element, 1 for true. Row i of the mask starts at row i of the mask tile,
and element j of that row is bit j % 8, counted from the lowest, of byte j // 8. The element type of
the mask tile decides how wide its rows are, never the order of the bits.

A comparison stores whole vector registers, so it writes more of a mask row than its elements ask
for: `_stored_bytes` tells how much, `_compared_mask` and `_undefined_tail` say it in the terms of
an operand declaration.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.dtypes import f16, i32
from ptokit.base.enums import CmpMode
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.effects import SCRATCH_IN_USE, steps
from ptokit.isa.expr import Expr, apply, given, on, select
from ptokit.isa.meaning import Each
from ptokit.isa.pointwise import NUMBERS, arithmetic, on_a2a3, one_vector_of_i64, plain
from ptokit.isa.rules import (
    located,
    must,
    same_dtype,
    same_valid,
    same_valid_shape,
    separate,
    static_valid_fits,
    whole_overlap,
)
from ptokit.isa.spec import (
    Asm,
    Attr,
    Extent,
    Operand,
    Rule,
    View,
    insn,
    out,
    rule,
    scalar,
    src,
    tmp,
    types,
)

# ---- masks -------------------------------------------------------------------------------------


def _compared(a: Expr, b: Expr, mode: CmpMode) -> Expr:
    """The answer to a comparison."""
    return apply(mode.name.lower(), a, b)


def _mask_extent(mask: Any, rows: int, cols: int) -> Extent:
    """The part of a mask tile, given by its facts, that holds rows x cols bits."""
    return rows, -(-cols // (8 * mask.itemsize))


# ---- what a comparison stores ------------------------------------------------------------------


def _stored_bytes(o: Any) -> int:
    """Bytes of a mask row that a comparison of src0 writes on a device: whole registers."""
    size, cols = o.src0.itemsize, o.src0.vc
    if size == 8:
        return 32
    lanes = 256 // size if on_a2a3(o) else 128 if size > 1 else 256
    return -(-cols // lanes) * lanes // 8


def _compared_mask(o: Any) -> View | Extent:
    """The region of `dst` that a comparison of src0 writes; the permissive profile clears all."""
    if not o.target.is_device:
        return View.WHOLE
    return o.src0.vr, _stored_bytes(o) // o.dst.itemsize


def _undefined_tail(o: Any) -> tuple[slice, slice] | None:
    """The bytes behind the last element that A2/A3 fills with comparisons of whatever follows.

    NE is EQ with all columns of the mask tile inverted, hence reaches to the end of the row.
    """
    if not on_a2a3(o):
        return None
    mode = next(value for value in o.attrs.values() if isinstance(value, CmpMode))
    stop = o.dst.cols if mode == CmpMode.NE else _stored_bytes(o)
    start = -(-o.src0.vc // 8)
    return (slice(0, o.src0.vr), slice(start, stop)) if start < stop else None


def _mask_rules(name: str, of: str) -> list[Rule]:
    """A packed mask is a plain tile of integers with a bit for every valid element of `of`."""
    return [
        must("mask-layout")(
            f"{name} is a packed mask: row-major, without an inner box",
            lambda o: o[name].layout == "ND",
            "declare the mask tile with BLayout.RowMajor and SLayout.NoneBox",
        ),
        must("mask-type")(
            f"{name} is a packed mask: its elements are integers of whole bytes",
            lambda o: o[name].dtype.is_integer and not o[name].dtype.is_packed,
            "declare the mask tile with uint8_t elements",
        ),
        must("mask-rows")(
            f"{name} has a row for every valid row of {of}",
            lambda o: o[name].rows >= o[of].vr,
            "give the mask tile as many rows as the data tile",
        ),
        must("mask-width")(
            f"a row of {name} holds one bit per valid column of {of}",
            lambda o: 8 * o[name].cols * o[name].itemsize >= o[of].vc,
            "give the mask tile more columns",
        ),
    ]


_ALL, _KIRIN = NUMBERS["a5"], NUMBERS["kirin"]
_DST = out("dst", view=_compared_mask, unspecified=_undefined_tail, note="packed mask")
_MASK_TYPES = types("dst", a2a3="u8", a5="u8 u32", kirin="u8 u32")


def alike(names: str, count: int) -> str:
    """Combinations of `count` operands that have the same element type."""
    return " ".join(",".join([name] * count) for name in names.split())


# ---- comparison --------------------------------------------------------------------------------


def _comparison(mode: str, *sources: str, rows: str, fix: str) -> list[Rule]:
    """What a comparison asks of its mask and its tiles; `mode` is the template argument."""
    return [
        *_mask_rules("dst", of="src0"),
        must("mask-store", DEVICES)(
            "a row of dst holds the whole vector registers of bits that are stored for src0",
            lambda o: o.dst.cols * o.dst.itemsize >= _stored_bytes(o),
            "give the mask tile more columns: 16 bytes for every 128 columns of src0, "
            "32 for every 256 when its elements are bytes",
        ),
        arithmetic("src0"),
        located("Vec", "dst", id="SA-0230", on=DEVICES),
        located("Vec", *sources, id="SA-0232", on=DEVICES),
        *static_valid_fits("dst", *sources),
        plain(*sources, on=DEVICES),
        separate("dst", *sources),
        rule(rows, "dst has as many valid rows as src0", lambda o: o.dst.vr == o.src0.vr, "a2a3"),
        must("i32-order", "a2a3")(
            "i32 is compared for EQ or NE: A2/A3 cannot order it and would answer EQ",
            lambda o: o.src0.dtype is not i32 or o.attrs[mode] in (CmpMode.EQ, CmpMode.NE),
            fix,
        ),
        one_vector_of_i64("src0"),
    ]


@insn(
    _DST,
    src("src0"),
    src("src1", view=lambda o: (o.src0.vr, o.src0.vc)),
    means=Each(packs=True, streams=False),
    attrs=[Attr("cmpMode", CmpMode, CmpMode.EQ, argument=True)],
    types=[
        types(
            "src0 src1",
            a2a3=alike("i32 f16 f32", 2),
            a5=alike(_ALL, 2),
            kirin=alike(_KIRIN, 2),
        ),
        _MASK_TYPES,
    ],
    rules=[
        _comparison(
            "cmpMode",
            "src0",
            "src1",
            rows="mask-valid-rows",
            fix="convert to f32 with TCVT first, or compare the difference",
        ),
        same_dtype("src0", "src1"),
        same_valid("src0", "src1", on="a2a3"),
        must("src1-covers")(
            "the valid region of src1 covers that of src0",
            lambda o: o.src1.vr >= o.src0.vr and o.src1.vc >= o.src0.vc,
        ),
        must("same-stride", A5_FAMILY)(
            "src0 and src1 have the same row stride when their elements have 32 bits",
            lambda o: o.src0.itemsize != 4 or o.src0.row_stride == o.src1.row_stride,
            "declare both sources with the same number of columns",
        ),
    ],
    asm=Asm(attrs={"cmpMode": "cmpMode"}, place={"cmpMode": "ins"}),
    steps=[steps(when=lambda o: o.attrs["cmpMode"] == CmpMode.NE, between="V")],
    example={"dst": "Vec {T} 16x32", "dst@cpu": "Vec u8 16x32"},
)
def TCMP(src0: Expr, src1: Expr, cmpMode: CmpMode) -> Expr:
    """Compare two tiles and pack the answers, one bit per element, into a mask.

    Bit j % 8 of byte j // 8 in row i of the mask answers for element (i, j); rows of the mask start
    at rows of its tile, whatever its element type. NaN is unequal to everything, +0 equals -0.
    Whole registers of bits are stored: behind the last element of a row A5 and Kirin fill up with
    zeros, A2/A3 with garbage (with NE, to the end of the row). A2/A3 cannot order i32.
    """
    return _compared(src0, src1, cmpMode)


@insn(
    _DST,
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
    types=[types("src0", a2a3="i16 u16 i32 f16 f32", a5=_ALL, kirin=_KIRIN), _MASK_TYPES],
    rules=[
        _comparison("mode", "src0", rows="PA-0020", fix="convert to f32 with TCVT first"),
        must("scalar-type")(
            "a tile that holds the scalar has the element type of src0",
            lambda o: o.scalar.kind != "tile" or o.scalar.dtype is o.src0.dtype,
        ),
    ],
    asm=Asm(attrs={"mode": "cmpMode"}, place={"mode": "ins"}),
    steps=[
        steps(when=lambda o: o.scalar.kind == "tile", start="V->S MTE1->S MTE2->S", between="V"),
        steps(when=lambda o: o.attrs["mode"] == CmpMode.NE, between="V"),
    ],
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
    found = _compared(src0, scalar, mode)
    if src0.kind.is_float or src0.kind.bits != 16:
        return found
    return given(on("a2a3"), _compared(src0.bits(f16), scalar.bits(f16), mode), found)


# ---- selection ---------------------------------------------------------------------------------


def _selection(mask: str, *sources: str, tmp_text: str, tmp_bytes: Any) -> list[Rule]:
    """What a selection asks of its mask, its tiles and its scratch."""
    return [
        *_mask_rules(mask, of="dst"),
        same_dtype("dst", *sources),
        located("Vec", "dst", mask, *sources, on=DEVICES),
        *static_valid_fits("dst", mask, *sources),
        whole_overlap("dst", *sources),
        separate("dst", mask, id="mask-separate"),
        located("Vec", "tmp", id="tmp-location", on="a2a3"),
        must("tmp-size", "a2a3")(
            f"tmp holds {tmp_text}",
            lambda o: o.tmp.nbytes >= tmp_bytes(o),
            "declare tmp with one row of 32 bytes",
        ),
        separate("tmp", "dst", mask, *sources, id="tmp-separate", on="a2a3"),
        one_vector_of_i64(),
    ]


@insn(
    out("dst"),
    src("selMask", view=lambda o: _mask_extent(o.selMask, o.dst.vr, o.dst.vc), note="packed mask"),
    src("src0", note="taken where the bit is 1"),
    src("src1", note="taken where the bit is 0"),
    tmp(lost=on_a2a3, note="32 bytes on A2/A3"),
    means=Each(masks=("selMask",), streams=False),
    types=[
        types(
            "dst src0 src1",
            a2a3=alike("i16 u16 i32 u32 f16 bf16 f32", 3),
            a5=alike(_ALL, 3),
            kirin=alike(_KIRIN, 3),
            ids={"a2a3": "SA-0326"},
        ),
        types("selMask", a2a3="u8", a5="u8", kirin="u8"),
    ],
    rules=[
        _selection(
            "selMask",
            "src0",
            "src1",
            tmp_text="8 bytes for 4-byte elements, 16 for 2-byte ones",
            tmp_bytes=lambda o: 32 // o.dst.itemsize,
        ),
        same_valid("dst", "src0", "src1"),
        plain("dst", "src0", "src1"),
        must("byte-columns", A5_FAMILY)(
            "8-bit tiles have at most 256 valid columns",
            lambda o: o.dst.itemsize > 1 or o.dst.vc <= 256,
            "process the tile in pieces of 256 columns",
        ),
    ],
    example={"selMask": "Vec u8 16x32", "tmp": "Vec u8 1x32"},
    steps=[SCRATCH_IN_USE],
)
def TSEL(selMask: Expr, src0: Expr, src1: Expr) -> Expr:
    """Choose between two tiles, element by element, by the bits of a packed mask.

    Bits are laid out as TCMP leaves them; give the mask tile u8 elements. Nothing is converted, so
    NaNs keep their payload. The destination may be one of the sources. A2/A3 needs `tmp`; other
    targets do not touch it.
    """
    return select(selMask, src0, src1)


@insn(
    out("dst"),
    src("mask", view=lambda o: _mask_extent(o.mask, o.dst.vr, o.dst.vc), note="packed mask"),
    src("src", note="taken where the bit is 1"),
    tmp(lost=on_a2a3, note="32 bytes on A2/A3"),
    scalar(note="taken where the bit is 0; converted to the element type of src"),
    means=Each(masks=("mask",)),
    types=types(
        a2a3="i16 u16 i32 u32 f16 bf16 f32",
        a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 f32",
        kirin=_KIRIN,
        ids={"a2a3": "SA-0327", **dict.fromkeys(A5_FAMILY.split(), "SA-0328")},
    ),
    rules=[
        _selection("mask", "src", tmp_text="a block of 32 bytes", tmp_bytes=lambda _: 32),
        *same_valid_shape("dst", "src", rows="PA-0020", cols="PA-0017"),
        plain("dst", "src", on=DEVICES),
    ],
    example={"mask": "Vec u8 16x32", "tmp": "Vec u8 1x32"},
    steps=[steps(start="S->V", between="V", keeps_scratch=True)],
)
def TSELS(mask: Expr, src: Expr, scalar: Expr) -> Expr:
    """Take elements of a tile where a packed mask has ones, and a scalar where it has zeros.

    Bits are laid out as TCMP and TCMPS leave them. Nothing is computed, so NaNs of src keep their
    payload. The destination may be the source. A2/A3 needs `tmp`; other targets do not touch it.
    """
    return select(mask, src, scalar)
