"""Tile-scalar arithmetic: each element meets one number.

The number is converted to the element type first, as C++ converts an argument, and the operation is
that of the tile-tile instruction of the same name. Bitwise operations, comparison and selection
with a scalar are in `tile_scalar_bits.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ptokit.base.convert import convert, element
from ptokit.base.dtypes import dtype, i32
from ptokit.base.layout import Array
from ptokit.base.precision import DivAlgorithm, FmodSAlgorithm, PowAlgorithm, RemSAlgorithm
from ptokit.isa.numerics import (
    floored_remainder,
    is_integer,
    power,
    quotient,
    truncated_remainder,
)
from ptokit.isa.pointwise import (
    DEVICES,
    arithmetic,
    not_empty,
    on_a2a3,
    one_vector_of_i64,
    plain,
    pointwise,
    precision,
)
from ptokit.isa.rules import (
    disjoint,
    located,
    same_dtype,
    same_valid_shape,
    separate,
    static_valid_fits,
    whole_overlap,
)
from ptokit.isa.spec import Asm, Operand, Rule, inout, insn, out, rule, scalar, src, tmp, types
from ptokit.isa.transcendental import TPOW

TILE_AND_SCALAR = (out("dst"), src("src"), scalar(note="converted to the element type of src"))

_NUMBERS = {
    "a2a3": "i16 i32 f16 f32",
    "a5": "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
    "kirin": "i8 u8 i16 u16 i32 u32 f16 f32",
}


def with_scalar(source: str = "src", layout: str = "a2a3") -> list[Rule]:
    """What every tile-scalar instruction asks of its two tiles.

    A5 and Kirin check no layout here; `layout` names the targets that want row-major tiles.
    """
    return [
        same_dtype("dst", source),
        arithmetic(source),
        *same_valid_shape("dst", source, rows="PA-0020", cols="PA-0017"),
        not_empty("dst", on="a2a3"),
        *static_valid_fits("dst", source),
        plain("dst", source, on=layout),
        located("Vec", "dst", source, id="SA-0231", on=DEVICES),
        whole_overlap("dst", source),
    ]


def like(tile: Array, value: float) -> Array:
    """A scalar as an array of the type and shape of a tile."""
    return np.full(tile.shape, element(value, dtype(tile.dtype)), tile.dtype)


# ---- sum, difference, product ------------------------------------------------------------------


@insn(
    *TILE_AND_SCALAR,
    types=types(**_NUMBERS, ids={"a2a3": "SA-0137"}),
    rules=[*with_scalar(), one_vector_of_i64()],
    streams=True,
)
def TADDS(dst: Array, src: Array, scalar: float) -> None:
    """Add a scalar to every element.

    Integers wrap around. Floats are rounded once, to nearest even, in their own type.
    """
    np.add(src, element(scalar, dtype(src.dtype)), out=dst)


@insn(
    *TILE_AND_SCALAR,
    types=types(**_NUMBERS),
    rules=[
        *with_scalar(),
        one_vector_of_i64(),
        rule(
            "scalar-range",
            "an i32 scalar lies between -2^24 and 2^24: A2/A3 negates it in f32",
            lambda o: o.src.dtype is not i32 or abs(o.scalar.value) <= 1 << 24,
            "a2a3",
            "TADDS the negated scalar",
        ),
    ],
    streams=True,
)
def TSUBS(dst: Array, src: Array, scalar: float) -> None:
    """Subtract a scalar from every element.

    Integers wrap around. Floats are rounded once, to nearest even, in their own type. A2/A3 passes
    i32 scalars through f32, so they must not exceed 2^24 in magnitude.
    """
    np.subtract(src, element(scalar, dtype(src.dtype)), out=dst)


@insn(
    *TILE_AND_SCALAR,
    types=types(
        a2a3="i16 i32 f16 f32",
        a5="i16 u16 i32 u32 i64 u64 f16 bf16 f32",
        kirin="i16 u16 i32 u32 f16 f32",
        ids={"a2a3": "SA-0286"},
    ),
    rules=[*with_scalar(), one_vector_of_i64()],
    streams=True,
)
def TMULS(dst: Array, src: Array, scalar: float) -> None:
    """Multiply every element by a scalar.

    Integer products keep their low bits. No target multiplies 8-bit elements.
    """
    np.multiply(src, element(scalar, dtype(src.dtype)), out=dst)


# ---- order -------------------------------------------------------------------------------------


@insn(
    *TILE_AND_SCALAR,
    types=types(**_NUMBERS),
    rules=[*with_scalar(), one_vector_of_i64()],
    freedom="A NaN element is kept, a NaN scalar ignored; of two zeros the element is taken.",
    streams=True,
)
def TMAXS(dst: Array, src: Array, scalar: float) -> None:
    """Replace elements below a scalar by it.

    Keep NaN out of both operands: what becomes of it is up to the hardware, as is the sign of a
    zero taken from +0 and -0.
    """
    limit = element(scalar, dtype(src.dtype))
    dst[...] = np.where(src < limit, limit, src)


@insn(
    *TILE_AND_SCALAR,
    types=types(**_NUMBERS),
    rules=[*with_scalar(), one_vector_of_i64()],
    freedom="A NaN element is kept, a NaN scalar ignored; of two zeros the element is taken.",
    streams=True,
)
def TMINS(dst: Array, src: Array, scalar: float) -> None:
    """Replace elements above a scalar by it.

    Keep NaN out of both operands: what becomes of it is up to the hardware, as is the sign of a
    zero taken from +0 and -0.
    """
    limit = element(scalar, dtype(src.dtype))
    dst[...] = np.where(limit < src, limit, src)


# ---- division ----------------------------------------------------------------------------------


class _EitherOrder:
    """The operands of TDIVS with the tile, be it dividend or divisor, under the name `src`."""

    def __init__(self, o: Any) -> None:
        self._o = o

    def __getattr__(self, name: str) -> Any:
        if name == "src":
            return self._o.src0 if self._o.src0.kind == "tile" else self._o.scalar
        return getattr(self._o, name)

    __getitem__ = __getattr__


def _tile_and_scalar(o: Any) -> bool:
    return {o.src0.kind, o.scalar.kind} == {"tile", "scalar"}


def _in_either_order(rules: list[Rule]) -> list[Rule]:
    """The rules asked of whichever source is the tile; silent when there is no telling."""

    def adapted(one: Rule) -> Rule:
        holds = one.holds
        return replace(one, holds=lambda o: not _tile_and_scalar(o) or holds(_EitherOrder(o)))

    return [adapted(one) for one in rules]


def _divides_in_place(o: Any) -> bool:
    """Whether A2/A3 multiplies by the reciprocal: float tiles, divided by a scalar in place."""
    return on_a2a3(o) and o.mode == "manual" and o.dst.dtype.is_float and o.dst.addr == o.src0.addr


@insn(
    out("dst"),
    Operand("src0", "in", kinds=("tile", "scalar"), note="dividend"),
    Operand("scalar", "in", kinds=("scalar", "tile"), note="divisor; one of the two is a tile"),
    attrs=precision(DivAlgorithm),
    types=types(
        a2a3="i16 i32 f16 f32",
        a5="i16 u16 i32 u32 i64 u64 f16 f32",
        kirin="i16 u16 i32 u32 f16 f32",
        ids="SA-0152",
    ),
    rules=[
        rule(
            "sources",
            "one source is a tile with the element type of dst, the other a scalar",
            lambda o: _tile_and_scalar(o) and _EitherOrder(o).src.dtype is o.dst.dtype,
            fix="divide two tiles with TDIV",
        ),
        *_in_either_order(with_scalar()),
        one_vector_of_i64(),
        rule(
            "zero-divisor",
            "a scalar that divides integers of 16 or 32 bits is not zero",
            lambda o: (
                o.scalar.kind == "tile"
                or o.dst.dtype.is_float
                or o.dst.itemsize == 8
                or o.scalar.value != 0
            ),
            DEVICES,
        ),
        rule(
            "separate",
            "dst is not the divisor: A2/A3 fills it with the dividend first",
            lambda o: o.mode == "auto" or o.scalar.kind != "tile" or o.dst.addr != o.scalar.addr,
            "a2a3",
            "divide into another tile",
        ),
    ],
    more_examples=[{"src0": "7", "scalar": "Vec f32 16x64"}],
    freedom="Floats: the nearest value, where hardware may be off by one in the last place.",
    streams=True,
)
def TDIVS(dst: Array, src0: Any, scalar: Any, PrecisionType: DivAlgorithm, ctx: Any) -> None:
    """Divide a tile by a scalar, or a scalar by a tile: the order of the operands decides.

    `TDIVS(dst, src, scalar)` is src / scalar, `TDIVS(dst, scalar, src)` is scalar / src. Floats
    follow IEEE 754: x / 0 is an infinity, 0 / 0 NaN. Integer quotients are truncated towards zero,
    and the smallest integer divided by -1 wraps to itself. x / 0 is 0 for 64-bit integers; narrower
    ones are divided in the scalar unit, where it has no defined result. On A2/A3 a float tile that
    is divided in place is multiplied by the rounded reciprocal instead, and a tile cannot be both
    divisor and destination. HIGH_PRECISION corrects the last place on A5.
    """
    high = PrecisionType == DivAlgorithm.HIGH_PRECISION
    if isinstance(scalar, np.ndarray):
        by_zero = scalar == 0
        dst[...] = quotient(like(scalar, src0), scalar, ctx.target.name, high)
        if ctx.target.is_device and is_integer(scalar) and scalar.itemsize < 8:
            for row, col in np.argwhere(by_zero):
                ctx.poison("dst", slice(row, row + 1), slice(col, col + 1))
    elif _divides_in_place(ctx.ops):
        reciprocal = np.divide(src0.dtype.type(1), element(scalar, dtype(src0.dtype)))
        np.multiply(src0, reciprocal, out=dst)
    else:
        dst[...] = quotient(src0, like(src0, scalar), ctx.target.name, high)


# ---- remainders --------------------------------------------------------------------------------


@insn(
    out("dst"),
    src("src", lost=lambda o: on_a2a3(o) and o.src.dtype is i32),
    scalar(note="converted to the element type of src"),
    tmp(lost=on_a2a3, note="a row of scratch on A2/A3"),
    attrs=precision(RemSAlgorithm),
    types=types(
        a2a3="i32 f32",
        a5="i16 u16 i32 u32 i64 u64 f16 f32",
        kirin9030="i16 u16 i32 u32 f16 f32",
    ),
    rules=[
        *with_scalar(),
        one_vector_of_i64(),
        same_dtype("dst", "tmp", id="tmp-type", on="a2a3"),
        rule(
            "tmp-columns",
            "tmp has a valid row with the valid columns of dst",
            lambda o: o.tmp.vr >= 1 and o.tmp.vc >= o.dst.vc,
            "a2a3",
            "declare tmp with one row as wide as dst",
        ),
        disjoint("dst", "src", "tmp", on="a2a3"),
        rule(
            "in-place",
            "dst is not src when the elements are u64: A5 writes dst before it reads src again",
            lambda o: o.mode == "auto" or o.src.dtype.name != "u64" or o.dst.addr != o.src.addr,
            "a5",
        ),
    ],
    example={"tmp": "Vec {T} 1x64"},
    freedom="Integers of 16 and 32 bits: x mod 0 is 0 (-1 on Kirin), where hardware decides.",
    streams=True,
)
def TREMS(
    dst: Array, src: Array, scalar: float, tmp: Array, PrecisionType: RemSAlgorithm, ctx: Any
) -> None:
    """Take the remainder of a division by a scalar; its sign is that of the scalar.

    `dst = src - floor(src / scalar) * scalar`. Floats round the quotient on the way, so the result
    is good only while |src / scalar| < 2^24; A5 does not mend a result that this puts on the wrong
    side of zero, but HIGH_PRECISION makes f32 exact there. A zero scalar gives NaN. A5 gives the
    remainder of 64-bit integers the sign of the dividend, and x mod 0 is 0. A2/A3 computes i32 in
    f32, exactly up to 2^24, needs `tmp`, and destroys an i32 src; others do not touch `tmp`.
    """
    high = PrecisionType == RemSAlgorithm.HIGH_PRECISION
    target = ctx.target.name
    dst[...] = floored_remainder(src, like(src, scalar), target, high, corrected=target != "a5")


@insn(
    *TILE_AND_SCALAR,
    attrs=precision(FmodSAlgorithm),
    types=types(a2a3="f32", a5="i16 u16 i32 u32 f16 f32", kirin="i16 u16 i32 u32 f16 f32"),
    rules=[*with_scalar(), separate("dst", "src", on="a2a3")],
    freedom="Integers: x % 0 is 0, where hardware decides.",
    streams=True,
)
def TFMODS(dst: Array, src: Array, scalar: float, PrecisionType: FmodSAlgorithm, ctx: Any) -> None:
    """Take the remainder of a division by a scalar; its sign is that of the dividend.

    `dst = src - trunc(src / scalar) * scalar`. Floats round the quotient on the way, so the result
    is good only while |src / scalar| < 2^24; HIGH_PRECISION makes f32 exact on A5. A zero scalar
    gives NaN. On A2/A3 the destination serves as scratch and must not be the source.
    """
    high = PrecisionType == FmodSAlgorithm.HIGH_PRECISION
    dst[...] = truncated_remainder(src, like(src, scalar), ctx.target.name, high)


# ---- powers ------------------------------------------------------------------------------------


@insn(
    out("dst"),
    src("base"),
    scalar("exp", note="converted to the element type of dst"),
    tmp(lost=TPOW.operand("tmp").lost, note="scratch for f32 on A2/A3"),
    attrs=precision(PowAlgorithm),
    targets=DEVICES,
    types=TPOW.types,
    rules=[
        *pointwise("dst", "base", everywhere=True),
        # What TPOW asks of element types and scratch.
        *(r for r in TPOW.rules if r.id in ("dtype", "tmp-type", "tmp-valid", "tmp-layout")),
        rule(
            "disjoint",
            "no two of dst, base and tmp share storage (f32)",
            lambda o: o.dst.dtype.name != "f32" or disjoint("dst", "base", "tmp").holds(o),
            "a2a3",
            "bind the tiles to addresses that do not overlap",
        ),
    ],
    asm=Asm(tmp=frozenset({"sync", "l1", "l2"})),
    more_examples=[
        dict.fromkeys(("dst", "base", "tmp"), "Vec bf16 16x64")
        | {"PrecisionType": "HIGH_PRECISION", "on": "a5"}
    ],
    freedom=TPOW.freedom,
    streams=True,
)
def TPOWS(dst: Array, base: Array, exp: float, tmp: Array, ctx: Any) -> None:
    """Raise every element to the same power.

    x ** 0 is 1 for every x. Integers wrap around, and a negative exponent gives 0 except for a base
    of 1 or -1. Floats follow C's pow: a negative base needs a whole exponent, else the result is
    NaN. A2/A3 ignores the sign of a zero base and needs three separate tiles for f32; other targets
    do not touch `tmp`. HIGH_PRECISION is for the floats of A5; other targets ignore it.
    """
    dst[...] = power(base, like(base, exp), ctx.target.name)


# ---- combinations ------------------------------------------------------------------------------


@insn(
    *TILE_AND_SCALAR,
    types=types(a2a3="f16 f32", a5="f16 f32", kirin="f16 f32"),
    rules=with_scalar(),
    streams=True,
)
def TLRELU(dst: Array, src: Array, scalar: float) -> None:
    """Multiply the elements that are not positive by a slope, the scalar (leaky ReLU).

    `dst = src if src > 0 else src * scalar`; zero and NaN take the product.
    """
    dst[...] = np.where(src > 0, src, src * element(scalar, dtype(src.dtype)))


_AXPY = "f16,f16 f32,f32 f32,f16"


@insn(
    inout("dst"),
    src("src"),
    scalar(note="converted to the element type of src"),
    types=types("dst src", a2a3=_AXPY, a5=_AXPY, kirin=_AXPY),
    rules=[
        arithmetic("src"),
        arithmetic("dst"),
        *same_valid_shape("dst", "src", rows="PA-0020", cols="PA-0017"),
        not_empty("dst", on="a2a3"),
        *static_valid_fits("dst", "src"),
        located("Vec", "dst", "src", on=DEVICES),
        plain("dst", "src", on="a2a3"),
        whole_overlap("dst", "src"),
    ],
    asm=Asm(forms=frozenset({"l2"})),
    freedom="The product is rounded to the element type of dst before it is added.",
    streams=True,
)
def TAXPY(dst: Array, src: Array, scalar: float) -> None:
    """Add a multiple of a tile: dst = dst + scalar * src.

    The scalar takes the element type of src. An f32 destination accepts an f16 source, which is
    widened first. Whether the product is rounded before the sum is up to the hardware.
    """
    kind, into = dtype(src.dtype), dtype(dst.dtype)
    factor = convert(np.array(element(scalar, kind)), kind, into)
    dst[...] = dst + convert(src, kind, into) * factor


_THREE_TILES = rule(
    "same-type",
    "dst, src0 and src1 are tiles of one type",
    lambda o: o.dst.spec is o.src0.spec and o.dst.spec is o.src1.spec,
    fix="declare them with the same template arguments",
)
_WITH_TWO_TILES = (out("dst"), src("src0"), scalar(), src("src1"))
_COMMON_NUMBERS = types(a2a3="i16 i32 f16 f32", a5="i16 i32 f16 f32")


@insn(
    *_WITH_TWO_TILES,
    types=_COMMON_NUMBERS,
    rules=[_THREE_TILES, *pointwise("dst", "src0", "src1")],
    streams=True,
)
def TADDSC(dst: Array, src0: Array, scalar: float, src1: Array) -> None:
    """Add a scalar and a tile to a tile: (src0 + scalar) + src1, from left to right.

    No device has it as one instruction: it stands for TADDS followed by TADD, with a rounding after
    each. The three tiles have one type.
    """
    np.add(src0 + element(scalar, dtype(src0.dtype)), src1, out=dst)


@insn(
    *_WITH_TWO_TILES,
    types=_COMMON_NUMBERS,
    rules=[_THREE_TILES, *pointwise("dst", "src0", "src1")],
    streams=True,
)
def TSUBSC(dst: Array, src0: Array, scalar: float, src1: Array) -> None:
    """Subtract a scalar from a tile and add a tile: (src0 - scalar) + src1, from left to right.

    No device has it as one instruction: it stands for TSUBS followed by TADD, with a rounding after
    each. The three tiles have one type.
    """
    np.add(src0 - element(scalar, dtype(src0.dtype)), src1, out=dst)
