"""Fused sequences: several elementwise steps, and sometimes a conversion, in one instruction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.convert import convert
from ptokit.base.dtypes import dtype, f32, i32
from ptokit.base.layout import Array
from ptokit.isa.elementwise import NUMBERS
from ptokit.isa.numerics import multiply_add, positive_part
from ptokit.isa.pointwise import BINARY, not_empty, on_a2a3, plain, pointwise
from ptokit.isa.rules import located, same_dtype, same_valid, separate, static_valid_fits
from ptokit.isa.spec import Asm, Rule, inout, insn, out, rule, scalar, src, tmp, types

ONE_ROUNDING = "The product is not rounded before the addition."
IN_PLACE = Asm(ins=("src0", "src1"), outs=("dst",))  # dst is read, but written only once in text


# ---- sums of three -----------------------------------------------------------------------------

TERNARY = (out("dst"), src("src0"), src("src1"), src("src2"))


@insn(
    *TERNARY,
    types=types(**NUMBERS),
    rules=pointwise("dst", "src0", "src1", "src2"),
    streams=True,
)
def TADDC(dst: Array, src0: Array, src1: Array, src2: Array) -> None:
    """Add three tiles, from left to right. There is no carry, whatever the name suggests.

    No device has it as one instruction: it stands for TADD followed by TADD, with a rounding after
    each.
    """
    np.add(np.add(src0, src1), src2, out=dst)


@insn(
    *TERNARY,
    types=types(**NUMBERS),
    rules=pointwise("dst", "src0", "src1", "src2"),
    streams=True,
)
def TSUBC(dst: Array, src0: Array, src1: Array, src2: Array) -> None:
    """Subtract the second tile from the first and add the third. There is no borrow.

    No device has it as one instruction: it stands for TSUB followed by TADD, with a rounding after
    each.
    """
    np.add(np.subtract(src0, src1), src2, out=dst)


# ---- multiply and add --------------------------------------------------------------------------


@insn(
    inout("dst"),
    *BINARY[1:],
    types=types(a2a3="f16 f32", a5="f16 f32"),
    rules=pointwise("dst", "src0", "src1"),
    asm=IN_PLACE,
    freedom=ONE_ROUNDING,
    streams=True,
)
def TMULADDDST(dst: Array, src0: Array, src1: Array) -> None:
    """Add a product to the destination: `dst = src0 * src1 + dst`."""
    dst[...] = multiply_add(src0, src1, dst)


@insn(
    inout("dst"),
    *BINARY[1:],
    types=types(a2a3="f16 f32", a5="f16 f32"),
    rules=pointwise("dst", "src0", "src1"),
    asm=IN_PLACE,
    freedom=ONE_ROUNDING,
    streams=True,
)
def TFUSEDMULADD(dst: Array, src0: Array, src1: Array) -> None:
    """Multiply the destination and add to it: `dst = src0 * dst + src1`."""
    dst[...] = multiply_add(src0, dst, src1)


@insn(
    inout("dst"),
    *BINARY[1:],
    types=types(a2a3="f16 f32", a5="f16 f32"),
    rules=pointwise("dst", "src0", "src1"),
    asm=IN_PLACE,
    freedom=ONE_ROUNDING + " NaN becomes 0.",
    streams=True,
)
def TFUSEDMULADDRELU(dst: Array, src0: Array, src1: Array) -> None:
    """Multiply the destination, add to it and replace what is negative by zero.

    `dst = max(src0 * dst + src1, 0)`.
    """
    dst[...] = positive_part(multiply_add(src0, dst, src1))


# ---- rectified sums and differences ------------------------------------------------------------


@insn(
    *BINARY,
    types=types(a2a3="f16 f32", a5="f16 f32"),
    rules=pointwise("dst", "src0", "src1"),
    freedom="NaN becomes 0.",
    streams=True,
)
def TSUBRELU(dst: Array, src0: Array, src1: Array) -> None:
    """Subtract, and replace what is negative by zero: `dst = max(src0 - src1, 0)`."""
    dst[...] = positive_part(np.subtract(src0, src1))


PAIRS = "f16,f32,f32 i8,f16,f16 i8,i16,i16"
NARROWING = types("dst src0 src1", a2a3=PAIRS, a5=PAIRS, cpu=PAIRS)


def narrowing(*sources: str) -> list[Rule]:
    """The rules of an instruction whose destination has narrower elements than its sources."""
    names = ("dst", *sources)
    return [
        same_dtype(*sources),
        plain(*names),
        located("Vec", *names),
        *static_valid_fits(*names),
        same_valid(*names),
        not_empty("dst"),
        separate(*names),
    ]


@insn(
    *BINARY,
    types=NARROWING,
    rules=narrowing("src0", "src1"),
    freedom="NaN becomes 0.",
    streams=True,
)
def TADDRELUCONV(dst: Array, src0: Array, src1: Array, ctx: Any) -> None:
    """Add, replace what is negative by zero, and convert to the narrower type of the destination.

    f32 to f16 and f16 to i8 round to nearest even; whatever is too large becomes the largest value
    of the destination. i16 sums are formed in 32 bits on A2/A3 but wrap around on A5, which shows
    when they exceed 32767.
    """
    dst[...] = rectified(np.add, src0, src1, dst, ctx)


@insn(
    *BINARY,
    types=NARROWING,
    rules=narrowing("src0", "src1"),
    freedom="NaN becomes 0.",
    streams=True,
)
def TSUBRELUCONV(dst: Array, src0: Array, src1: Array, ctx: Any) -> None:
    """Subtract, replace what is negative by zero, and convert to the type of the destination.

    f32 to f16 and f16 to i8 round to nearest even; whatever is too large becomes the largest value
    of the destination. i16 differences are formed in 32 bits on A2/A3 but wrap around on A5, which
    shows when they leave the range of i16.
    """
    dst[...] = rectified(np.subtract, src0, src1, dst, ctx)


def rectified(operation: np.ufunc, a: Array, b: Array, dst: Array, ctx: Any) -> Array:
    """operation(a, b), cut off below zero, saturated to the element type of dst."""
    if a.dtype == np.int16 and ctx.target.name != "a5":
        a, b = a.astype(np.int32), b.astype(np.int32)
    return convert(positive_part(operation(a, b)), dtype(a.dtype), dtype(dst.dtype))


@insn(
    out("dst"),
    src("src0", lost=on_a2a3),
    src("src1", lost=on_a2a3),
    scalar("deqScale", note="float"),
    tmp(lost=on_a2a3, note="scratch on A2/A3, at least as large as dst"),
    types=[
        types("dst src0 src1", a2a3="f16,i32,i32", a5="f16,i32,i32", cpu="f16,i32,i32"),
        types("tmp", a2a3="i32", a5="i32"),
    ],
    rules=[
        *narrowing("src0", "src1"),
        plain("tmp", id="tmp-layout"),
        located("Vec", "tmp", id="tmp-location"),
        rule(
            "tmp-valid",
            "the valid region of tmp covers that of dst",
            lambda o: o.tmp.vr >= o.dst.vr and o.tmp.vc >= o.dst.vc,
            "a2a3",
            "declare tmp with the shape of dst",
        ),
        separate("tmp", "dst", "src0", "src1", id="tmp-separate", on="a2a3"),
    ],
    asm=Asm(tmp=frozenset({"sync", "l1", "l2"})),
    example={"deqScale": "0.5"},
    streams=True,
)
def TADDDEQRELU(dst: Array, src0: Array, src1: Array, deqScale: float, tmp: Array) -> None:
    """Add two i32 tiles, scale the sum, replace what is negative by zero, and round to f16.

    The sum wraps around. It is brought down by 2^17, multiplied by `deqScale` and brought up again,
    in f32; too large a result becomes 65504. A2/A3 needs `tmp` and destroys both sources.
    """
    total = convert(np.add(src0, src1), i32, f32)
    scaled = total * np.float32(2**-17) * np.float32(deqScale) * np.float32(2**17)
    dst[...] = convert(positive_part(scaled), f32, dtype(dst.dtype))
