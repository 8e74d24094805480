"""Bits of a tile and one number: bitwise operations, shifts, comparison and selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dtypes import dtype, i32
from ptokit.base.enums import CmpMode
from ptokit.base.layout import Array
from ptokit.isa.bitwise import DST, INTEGERS, NARROW
from ptokit.isa.masks import (
    COMPARE,
    compared_mask,
    is_mask,
    mask_extent,
    mask_fits,
    pack_mask,
    stored_mask_fits,
    undefined_tail,
    unpack_mask,
)
from ptokit.isa.pointwise import (
    A5_FAMILY,
    DEVICES,
    arithmetic,
    on_a2a3,
    one_vector_of_i64,
    plain,
    pointwise,
)
from ptokit.isa.rules import (
    disjoint,
    located,
    same_dtype,
    same_valid,
    same_valid_shape,
    separate,
    static_valid_fits,
    whole_overlap,
)
from ptokit.isa.spec import Asm, Attr, Operand, Rule, insn, out, rule, scalar, src, tmp, types
from ptokit.isa.tile_scalar import TILE_AND_SCALAR, with_scalar

_BITS = types(a2a3=NARROW, a5=NARROW, kirin=NARROW, cpu=INTEGERS)
_SCALAR = scalar(note="converted to the element type of dst")

# ---- bitwise -----------------------------------------------------------------------------------


def _bitwise_rules() -> list[Rule]:
    return [*pointwise("dst", "src"), separate("dst", "src", on="a2a3")]


@insn(DST, src("src"), _SCALAR, types=_BITS, rules=_bitwise_rules(), streams=True)
def TANDS(dst: Array, src: Array, scalar: int) -> None:
    """Combine every element with a scalar by bitwise AND.

    A2/A3 puts the scalar into dst first, so dst must not be src there; with an odd number of valid
    columns it also overwrites the byte behind each row of an 8-bit tile.
    """
    np.bitwise_and(src, element(scalar, dtype(src.dtype)), out=dst)


@insn(DST, src("src"), _SCALAR, types=_BITS, rules=_bitwise_rules(), streams=True)
def TORS(dst: Array, src: Array, scalar: int) -> None:
    """Combine every element with a scalar by bitwise OR.

    A2/A3 puts the scalar into dst first, so dst must not be src there; with an odd number of valid
    columns it also overwrites the byte behind each row of an 8-bit tile.
    """
    np.bitwise_or(src, element(scalar, dtype(src.dtype)), out=dst)


@insn(
    DST,
    src("src0"),
    _SCALAR,
    tmp(lost=on_a2a3, note="scratch on A2/A3; others only ask for the operand"),
    types=_BITS,
    rules=[
        *pointwise("dst", "src0"),
        same_dtype("dst", "tmp", id="tmp-type", on="a2a3"),
        same_valid("dst", "tmp", id="tmp-valid", on="a2a3"),
        plain("tmp", id="tmp-layout", on="a2a3"),
        disjoint("dst", "src0", "tmp", on="a2a3"),
    ],
    streams=True,
)
def TXORS(dst: Array, src0: Array, scalar: int, tmp: Array) -> None:
    """Combine every element with a scalar by bitwise XOR.

    A2/A3 needs `tmp`, shaped like the destination, and all three tiles apart; with an odd number of
    valid columns it also overwrites the byte behind each row of an 8-bit tile. Other targets do not
    touch `tmp` and work in place.
    """
    np.bitwise_xor(src0, element(scalar, dtype(src0.dtype)), out=dst)


# ---- shifts ------------------------------------------------------------------------------------

_SHIFTED = types(a2a3="i16 u16 i32 u32", a5=INTEGERS, kirin=NARROW, cpu=INTEGERS)


def _shift_rules() -> list[Rule]:
    return [
        *with_scalar(),
        rule(
            "shift-count",
            "the count lies in 0 .. width - 1 (any count for 64-bit elements)",
            lambda o: o.dst.itemsize == 8 or 0 <= o.scalar.value < 8 * o.dst.itemsize,
            DEVICES,
        ),
        one_vector_of_i64(),
    ]


def _count(value: float, shifted: Array) -> Any:
    """A count in the element type; 64-bit elements take it modulo 64."""
    count = element(value, dtype(shifted.dtype))
    return count & shifted.dtype.type(63) if shifted.itemsize == 8 else count


@insn(
    *TILE_AND_SCALAR[:2],
    scalar(note="the count"),
    types=_SHIFTED,
    rules=_shift_rules(),
    freedom="The permissive profile shifts everything out when the count exceeds the width.",
    streams=True,
)
def TSHLS(dst: Array, src: Array, scalar: int) -> None:
    """Shift every element left by a scalar count; zeros come in from the right."""
    np.left_shift(src, _count(scalar, src), out=dst)


@insn(
    *TILE_AND_SCALAR[:2],
    scalar(note="the count"),
    types=_SHIFTED,
    rules=_shift_rules(),
    freedom="The permissive profile shifts everything out when the count exceeds the width.",
    streams=True,
)
def TSHRS(dst: Array, src: Array, scalar: int) -> None:
    """Shift every element right by a scalar count; signed elements keep their sign."""
    np.right_shift(src, _count(scalar, src), out=dst)


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
    streams=True,
)
def TCMPS(dst: Array, src0: Array, scalar: Any, mode: CmpMode, ctx: Any) -> None:
    """Compare every element with a scalar and pack the answers, one bit each, into a mask.

    The mask is laid out, and filled up behind the last element, as TCMP does it. The scalar may be
    given as a tile: its first element in memory counts. NaN is unequal to everything, +0 equals -0.
    A2/A3 cannot order i32, and compares i16 and u16 as if their bits were f16: equality is right
    except for 0 against 0x8000 and the patterns of NaN, order only among small positive numbers.
    """
    given = isinstance(scalar, np.ndarray)
    value = scalar[0] if given else element(scalar, dtype(src0.dtype))
    if ctx.target.name == "a2a3" and src0.dtype.kind in "iu" and src0.itemsize == 2:
        src0, value = src0.view(np.float16), value.view(np.float16)
    pack_mask(COMPARE[mode](src0, value), dst)


@insn(
    out("dst"),
    src("mask", view=lambda o: mask_extent(o.mask, o.dst.vr, o.dst.vc), note="packed mask"),
    src("src", note="taken where the bit is 1"),
    tmp(lost=on_a2a3, note="32 bytes on A2/A3"),
    scalar(note="taken where the bit is 0; converted to the element type of src"),
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
    streams=True,
)
def TSELS(dst: Array, mask: Array, src: Array, tmp: Array, scalar: float, ctx: Any) -> None:
    """Take elements of a tile where a packed mask has ones, and a scalar where it has zeros.

    Bits are laid out as TCMP and TCMPS leave them. Nothing is computed, so NaNs of src keep their
    payload. The destination may be the source. A2/A3 needs `tmp`; other targets do not touch it.
    """
    other = element(scalar, ctx.ops.src.dtype)
    dst[...] = np.where(unpack_mask(mask, dst.shape[1]), src, other)
