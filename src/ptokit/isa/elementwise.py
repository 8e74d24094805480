"""Elementwise arithmetic: one element of each source makes one element of the destination.

How to read a definition. The block above a function declares the operands, the element types each
target takes (with the id of the assertion that guards them) and the rules of legality; `freedom`
says what the hardware leaves open and the reference decides. The docstring is the documentation.
The function is the meaning: it is given one element of each source, as a symbol of its type, and
returns the expression of the element that is stored (`expr.py`).

Bitwise operations, transcendental functions and fused sequences live in files of their own.
"""

from __future__ import annotations

import operator
from functools import partial
from math import ceil
from typing import Any

from ptokit.base.dtypes import i32, u8
from ptokit.base.precision import DivAlgorithm, FmodAlgorithm, RemAlgorithm
from ptokit.isa.costs import DIVISION
from ptokit.isa.devices import A5_FAMILY
from ptokit.isa.effects import SCRATCH_IN_USE, UNTIL_DONE
from ptokit.isa.expr import ON_DEVICE, Expr, given, select
from ptokit.isa.freedom import ulp, unspecified
from ptokit.isa.language import covers, in_text, known, remainder_room
from ptokit.isa.meaning import Each
from ptokit.isa.numerics import (
    floored_remainder,
    larger,
    leaky,
    quotient,
    smaller,
    truncated_remainder,
)
from ptokit.isa.pointwise import (
    AS_DST,
    BINARY,
    NUMBERS,
    ONLY_ADDRESS,
    UNARY,
    WIDER_NUMBERS,
    not_empty,
    on_a2a3,
    one_vector,
    one_vector_of_i64,
    plain,
    pointwise,
    precision,
    scratch,
    scratch_held,
)
from ptokit.isa.rules import both, must, or_else, same_dtype, separate
from ptokit.isa.spec import family, insn, out, rule, src, types

elementwise = partial(insn, means=Each())
_binary = partial(elementwise, *BINARY)
_unary = partial(elementwise, *UNARY)
_rules = partial(pointwise, "dst", "src0", "src1")

# ---- the four operations -----------------------------------------------------------------------


def _checked(types_: dict[str, str], id: str, *, a2a3: str, a5: str) -> dict[str, Any]:
    """Element types and rules, with the assertions on types and on layouts."""
    return {"types": types(**types_, ids=id), "rules": _rules(a2a3=a2a3, a5=a5)}


(TADD, _) = family(
    _binary,
    """[Add two tiles|Subtract the second tile from the first].

    Integers wrap around. Floats are rounded once, to nearest even, in their own type.
    """,
    TADD=(operator.add, _checked(NUMBERS, "SA-0134", a2a3="SA-0136", a5="SA-0135")),
    TSUB=(operator.sub, _checked(NUMBERS, "SA-0339", a2a3="SA-0340", a5="SA-0341")),
)


@_binary(**_checked(WIDER_NUMBERS, "SA-0283", a2a3="SA-0285", a5="SA-0284"))
def TMUL(src0: Expr, src1: Expr) -> Expr:
    """Multiply two tiles.

    Integer products keep their low bits. Unlike TADD and TSUB, no target multiplies 8-bit elements.
    """
    return src0 * src1


@_binary(
    means=Each(over=one_vector),
    cost=DIVISION,
    attrs=precision(DivAlgorithm),
    types=types(
        a2a3="f16 f32",
        a5="i16 u16 i32 u32 i64 u64 f16 f32",
        kirin="i16 u16 i32 u32 f16 f32",
        ids="SA-0150",
    ),
    rules=[*_rules(a5="SA-0151"), one_vector_of_i64()],
    freedom=[
        ulp(1, "Floats: the nearest value, where hardware may be off by one in the last place."),
        unspecified(
            "x / 0 of 16- and 32-bit integers",
            "Integers of 16 and 32 bits: x / 0 is 0, as the sources say for 64 bits only.",
        ),
    ],
)
def TDIV(src0: Expr, src1: Expr, PrecisionType: DivAlgorithm) -> Expr:
    """Divide the first tile by the second.

    Integer quotients are truncated towards zero; the smallest integer divided by -1 wraps to itself
    and x / 0 is 0 for 64-bit elements (for narrower ones hardware decides). Floats follow IEEE 754:
    x / 0 is an infinity, 0 / 0 NaN. HIGH_PRECISION corrects the last place of f32 and f16 quotients
    on A5, and flushes f16 quotients below the smallest subnormal.
    """
    return quotient(src0, src1, PrecisionType == DivAlgorithm.HIGH_PRECISION)


# ---- remainders --------------------------------------------------------------------------------

MOD_BY_ZERO = unspecified(
    "x mod 0 of 16- and 32-bit integers",
    "Integers of 16 and 32 bits: x mod 0 is 0 (-1 on Kirin), where hardware decides.",
)
REM_BY_ZERO = unspecified("x % 0 of integers", "Integers: x % 0 is 0, where hardware decides.")


def _remainder_scratch(o: Any) -> int:
    """Bytes of a row, and of the mask behind it."""
    mask = o.dst.vc if o.dst.dtype is i32 else 64
    return (o.dst.row_stride + mask) * o.dst.itemsize


@elementwise(
    out("dst"),
    src("src0", lost=lambda o: on_a2a3(o) and o.dst.dtype is i32),
    src("src1", lost=lambda o: on_a2a3(o) and o.dst.dtype is i32),
    scratch(_remainder_scratch, note="a row of scratch on A2/A3"),
    means=Each(over=one_vector),
    cost=DIVISION,
    attrs=precision(RemAlgorithm),
    types=types(
        a2a3="i32 f32",
        a5="i16 u16 i32 u32 i64 u64 f16 f32",
        kirin9030="i16 u16 i32 u32 f16 f32",
    ),
    rules=[
        *(each for each in _rules() if each.id != "same-dtype"),
        same_dtype("dst", "src0", on="a2a3"),
        *or_else(AS_DST, same_dtype("dst", "src1", id="src1-type", on="a2a3")),
        same_dtype("dst", "src0", "src1", on=f"cpu {A5_FAMILY}"),
        one_vector_of_i64(),
        *or_else(ONLY_ADDRESS, same_dtype("dst", "tmp", id="tmp-type", on="a2a3")),
        plain("tmp", id="tmp-layout", on="a2a3"),
        must("tmp-columns", "a2a3")(
            "tmp has a valid row of RowStride + 2 * ceil(RowStride / 64) columns, "
            "RowStride being that of dst",
            lambda o: (
                o.tmp.vr >= 1 and o.tmp.vc >= o.dst.row_stride + 2 * ceil(o.dst.row_stride / 64)
            ),
            "declare tmp with one row twice as wide as dst",
            ONLY_ADDRESS,
        ),
        scratch_held("tmp", _remainder_scratch, "a row of dst, and 64 elements (i32: a row) more"),
        remainder_room(2),
        separate("dst", "src0", "src1", "tmp", on="a2a3"),
        separate("tmp", "src0", "src1", id="tmp-separate", on="a2a3"),
    ],
    example={"tmp": "Vec {T} 1x128"},
    freedom=MOD_BY_ZERO,
    steps=[UNTIL_DONE],
)
def TREM(src0: Expr, src1: Expr, PrecisionType: RemAlgorithm) -> Expr:
    """Take the remainder of a division; its sign is that of the divisor.

    `dst = src0 - floor(src0 / src1) * src1`. Floats round the quotient on the way, so the result is
    good only while |src0 / src1| < 2^24; HIGH_PRECISION makes f32 exact on A5. A zero divisor gives
    NaN. 64-bit integers are the exception to the rule: A5 gives their remainder the sign of the
    dividend, and x mod 0 is 0. A2/A3 computes i32 in f32, exactly up to 2^24, needs `tmp`, and
    destroys both sources of i32; other targets do not touch `tmp`.
    """
    return floored_remainder(src0, src1, PrecisionType == RemAlgorithm.HIGH_PRECISION)


@_binary(
    cost=DIVISION,
    attrs=precision(FmodAlgorithm),
    types=types(a2a3="f32", a5="i16 u16 i32 u32 f16 f32", kirin="i16 u16 i32 u32 f16 f32"),
    rules=[*_rules(), separate("dst", "src0", "src1", on="a2a3")],
    freedom=REM_BY_ZERO,
    steps=[UNTIL_DONE],
)
def TFMOD(src0: Expr, src1: Expr, PrecisionType: FmodAlgorithm) -> Expr:
    """Take the remainder of a division; its sign is that of the dividend, as with C's fmod.

    `dst = src0 - trunc(src0 / src1) * src1`. Floats round the quotient on the way, so the result is
    good only while |src0 / src1| < 2^24; HIGH_PRECISION makes f32 exact on A5. A zero divisor gives
    NaN. On A2/A3 the destination serves as scratch and must not be a source.
    """
    return truncated_remainder(src0, src1, PrecisionType == FmodAlgorithm.HIGH_PRECISION)


# ---- order and sign ----------------------------------------------------------------------------

(TMAX, TMIN) = family(
    partial(
        _binary,
        freedom=unspecified(
            "NaN; zeros of both signs",
            "A NaN in src1 is ignored, one in src0 kept; of two zeros src0's is taken.",
        ),
    ),
    """Take the [larger|smaller] of two elements.

    Keep NaN out of the sources: what becomes of it is up to the hardware, as is the sign of a zero
    taken from +0 and -0.
    """,
    TMAX=(larger, _checked(NUMBERS, "SA-0248", a2a3="SA-0250", a5="SA-0249")),
    TMIN=(smaller, _checked(NUMBERS, "SA-0251", a2a3="SA-0253", a5="SA-0252")),
)


@_unary(
    types=types(a2a3="f16 f32", a5="i8 i16 i32 f16 f32", kirin="i8 i16 i32 f16 f32", ids="SA-0130"),
    rules=pointwise("dst", "src", vec="SA-0133", static="SA-0132 SA-0131", valid="PA-0025 PA-0024"),
    freedom=unspecified(
        "the smallest integer",
        "The smallest integer stays as it is: its absolute value does not fit.",
    ),
)
def TABS(src: Expr) -> Expr:
    """Take the absolute value.

    Floats lose their sign bit, also those of NaN and -0 (the permissive profile keeps -0).
    """
    return given(ON_DEVICE, abs(src), select(src < 0, -src, src))


@_unary(
    means=Each(over=one_vector),
    types=types(**WIDER_NUMBERS, ids={"a2a3": "SA-0286"}),
    rules=[
        *pointwise("dst", "src", vec="SA-0231"),
        not_empty("dst", on="a2a3"),
        one_vector_of_i64(),
    ],
    freedom=unspecified("NaN", "The sign of a NaN is flipped."),
)
def TNEG(src: Expr) -> Expr:
    """Negate. The instruction is TMULS with the scalar -1; integers, signed or not, wrap around."""
    return -src


# ---- rectifiers --------------------------------------------------------------------------------


@_unary(
    types=types(a2a3="i32 f16 f32", a5="i32 f16 f32", kirin="i32 f16 f32"),
    rules=pointwise("dst", "src"),
    freedom=unspecified("NaN; -0", "NaN and -0 stay as they are."),
)
def TRELU(src: Expr) -> Expr:
    """Replace negative elements by zero. What becomes of NaN and -0 is up to the hardware."""
    return select(src < 0, 0, src)


@elementwise(
    out("dst"),
    src("src0", note="values"),
    src("src1", note="slopes"),
    scratch(
        lambda o: o.dst.vr * o.tmp.cols + 32,
        note="on A2/A3 room for a mask and one row more, as u8",
    ),
    types=types(a2a3="f16 f32", a5="f16 f32", kirin="f16 f32"),
    rules=[
        *_rules(),
        rule("tmp-type", "tmp has u8 elements", lambda o: o.tmp.dtype is u8, "a2a3"),
        plain("tmp", id="tmp-layout", on="a2a3"),
        must("tmp-rows", "a2a3")(
            "tmp has more valid rows than dst",
            lambda o: o.tmp.vr > o.dst.vr,
            "declare tmp with one row more than dst",
            "the valid sizes of tmp are not looked at: rows of the mask lie Cols bytes apart",
        ),
        must("tmp-width", "a2a3")(
            "a row of tmp holds the packed mask of a row of dst, in whole repeats of 256 bytes",
            lambda o: o.tmp.cols >= 32 // o.dst.itemsize * ceil(o.dst.vc * o.dst.itemsize / 256),
            "declare tmp with a byte for every eight columns of dst, rounded up to 32",
            "rows of the mask overwrite one another: the result is undefined",
            voids=True,
        ),
        separate("dst", "src0", on="a2a3"),
        separate("tmp", "dst", "src0", "src1", id="tmp-separate", on="a2a3"),
        in_text(
            "tmp-rows",
            "tmp has a row more than dst has valid ones, and a valid column for every eight",
            both(
                covers("tmp", "rows", lambda o: known(o.dst.valid_row, plus=1)),
                covers("tmp", "valid_col", lambda o: known(o.dst.valid_col, per=8)),
            ),
            "a2a3",
            "declare tmp with one row more than dst",
        ),
    ],
    example={"tmp": "Vec u8 17x32"},
    steps=[SCRATCH_IN_USE],
)
def TPRELU(src0: Expr, src1: Expr) -> Expr:
    """Multiply the elements that are not positive by a slope of their own.

    `dst = src0 if src0 > 0 else src0 * src1`; zero and NaN take the product. A2/A3 needs `tmp` and
    a destination apart from src0; other targets do not touch `tmp`.
    """
    return leaky(src0, src1)
