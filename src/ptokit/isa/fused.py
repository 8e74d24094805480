"""Fused sequences: several elementwise steps, and sometimes a conversion, in one instruction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptokit.base.dtypes import DType, f16, f32, i8, i16, i32
from ptokit.base.enums import SaturationMode
from ptokit.isa.effects import UNTIL_DONE
from ptokit.isa.expr import Expr, apply, given, on
from ptokit.isa.freedom import ulp, unspecified
from ptokit.isa.meaning import Each
from ptokit.isa.numerics import multiply_add, positive_part
from ptokit.isa.pointwise import (
    BINARY,
    GOVERNED,
    NUMBERS,
    ONLY_ADDRESS,
    not_empty,
    on_a2a3,
    plain,
    pointwise,
)
from ptokit.isa.rules import (
    located,
    must,
    or_else,
    same_dtype,
    same_valid,
    separate,
    static_valid_fits,
)
from ptokit.isa.scalars import FLOAT
from ptokit.isa.spec import Asm, Cpp, Pipe, Rule, family, inout, insn, out, scalar, src, tmp, types

_fused = partial(insn, means=Each())

# ---- sums of three -----------------------------------------------------------------------------

family(
    partial(
        _fused,
        out("dst"),
        src("src0"),
        src("src1"),
        src("src2"),
        types=types(**NUMBERS),
        rules=pointwise("dst", "src0", "src1", "src2"),
    ),
    """[Add three tiles, from left to right. There is no carry, whatever the name suggests|\
Subtract the second tile from the first and add the third. There is no borrow].

    No device has it as one instruction: it stands for [TADD|TSUB] followed by TADD, with a rounding
    after each.
    """,
    TADDC=lambda a, b, c: a + b + c,
    TSUBC=lambda a, b, c: a - b + c,
)


# ---- multiply and add --------------------------------------------------------------------------

_FLOATS = types(a2a3="f16 f32", a5="f16 f32")
_NAN_IS_ZERO = unspecified("NaN", "NaN becomes 0.")
_ONE_ROUNDING = ulp(1, "The product is not rounded before the addition.")
_multiply_add = partial(
    _fused,
    inout("dst"),
    *BINARY[1:],
    types=_FLOATS,
    rules=pointwise("dst", "src0", "src1"),
    asm=Asm(ins=("src0", "src1"), outs=("dst",)),  # dst is read, but written only once in text
)


@_multiply_add(freedom=_ONE_ROUNDING)
def TMULADDDST(dst: Expr, src0: Expr, src1: Expr) -> Expr:
    """Add a product to the destination: `dst = src0 * src1 + dst`."""
    return multiply_add(src0, src1, dst)


@_multiply_add(freedom=_ONE_ROUNDING)
def TFUSEDMULADD(dst: Expr, src0: Expr, src1: Expr) -> Expr:
    """Multiply the destination and add to it: `dst = src0 * dst + src1`."""
    return multiply_add(src0, dst, src1)


@_multiply_add(freedom=[_ONE_ROUNDING, _NAN_IS_ZERO])
def TFUSEDMULADDRELU(dst: Expr, src0: Expr, src1: Expr) -> Expr:
    """Multiply the destination, add to it and replace what is negative by zero.

    `dst = max(src0 * dst + src1, 0)`.
    """
    return positive_part(multiply_add(src0, dst, src1))


# ---- rectified sums and differences ------------------------------------------------------------


@_fused(
    *BINARY,
    types=_FLOATS,
    rules=pointwise("dst", "src0", "src1"),
    freedom=_NAN_IS_ZERO,
)
def TSUBRELU(src0: Expr, src1: Expr) -> Expr:
    """Subtract, and replace what is negative by zero: `dst = max(src0 - src1, 0)`."""
    return positive_part(src0 - src1)


@_fused(
    *BINARY,
    types=types(a2a3="i16 f16 f32"),
    rules=pointwise("dst", "src0", "src1", everywhere=True),
    freedom=_NAN_IS_ZERO,
    ops={"TADD": Pipe.V},
    # An operation of texts, for which the library has no function.
    cpp=Cpp(
        calls={
            "dst src0 src1": (
                "TADD({dst}, {src0}, {src1})",
                "pipe_barrier(PIPE_V)",
                "TMAXS({dst}, {dst}, 0)",
            )
        }
    ),
)
def TADDRELU(src0: Expr, src1: Expr) -> Expr:
    """Add, and replace what is negative by zero: `dst = max(src0 + src1, 0)`.

    Integers wrap around. Only A2/A3 has it, as one vector instruction that texts name `taddrelu`.
    """
    return positive_part(src0 + src1)


def _narrowing() -> list[Rule]:
    """The rules of an instruction whose destination has narrower elements than its sources."""
    names = ("dst", "src0", "src1")
    return [
        same_dtype("src0", "src1"),
        plain(*names),
        located("Vec", *names),
        *static_valid_fits(*names),
        *or_else(GOVERNED, same_valid(*names)),
        not_empty("dst"),
        separate(*names),
    ]


_PAIRS = "f16,f32,f32 i8,f16,f16 i8,i16,i16"
_NARROWER = {f32: f16, f16: i8, i16: i8, i32: i8}  # by the type in which the sum is formed
_rectified = partial(
    insn,
    *BINARY,
    means=Each(converts=True),
    types=types("dst src0 src1", a2a3=_PAIRS, a5=_PAIRS, cpu=_PAIRS),
    rules=_narrowing(),
    freedom=_NAN_IS_ZERO,
)


def _saturated(value: Expr, kind: DType) -> Expr:
    return positive_part(value).to(kind, saturation=SaturationMode.ON)


def _rectifying(name: str) -> Callable[[Expr, Expr], Expr]:
    """An operation, rectified and narrowed; only A5 does it in 16 bits."""

    def rectified(a: Expr, b: Expr) -> Expr:
        narrow = _NARROWER[a.kind]
        plain = _saturated(apply(name, a, b), narrow)
        if a.kind is not i16:
            return plain
        return given(on("a5"), plain, _saturated(apply(name, a.to(i32), b.to(i32)), narrow))

    return rectified


family(
    _rectified,
    """[Add|Subtract], replace what is negative by zero, and convert to the narrower type of \
the destination.

    f32 to f16 and f16 to i8 round to nearest even; whatever is too large becomes the largest value
    of the destination. i16 [sums|differences] are formed in 32 bits on A2/A3 but wrap around on A5,
    which shows when they [exceed 32767|leave the range of i16].
    """,
    TADDRELUCONV=_rectifying("add"),
    TSUBRELUCONV=(_rectifying("sub"), {"asm": Asm(is_stable=False)}),
)


@insn(
    out("dst"),
    src("src0", lost=on_a2a3),
    src("src1", lost=on_a2a3),
    scalar("deqScale", FLOAT),
    tmp(
        view=lambda o: (o.dst.vr, o.dst.vc),
        lost=on_a2a3,
        note="scratch on A2/A3, at least as large as dst",
    ),
    means=Each(converts=True, numbers={"deqScale": f32}),
    types=[
        types("dst src0 src1", a2a3="f16,i32,i32", a5="f16,i32,i32", cpu="f16,i32,i32"),
        types("tmp", a2a3="i32", a5="i32"),
    ],
    rules=[
        *_narrowing(),
        plain("tmp", id="tmp-layout"),
        located("Vec", "tmp", id="tmp-location"),
        must("tmp-valid", "a2a3")(
            "the valid region of tmp covers that of dst",
            lambda o: o.tmp.vr >= o.dst.vr and o.tmp.vc >= o.dst.vc,
            "declare tmp with the shape of dst",
            ONLY_ADDRESS,
        ),
        separate("tmp", "dst", "src0", "src1", id="tmp-separate", on="a2a3"),
    ],
    asm=Asm(tmp=frozenset({"sync", "l1", "l2"})),
    example={"deqScale": "0.5"},
    steps=[UNTIL_DONE],
)
def TADDDEQRELU(src0: Expr, src1: Expr, deqScale: Expr) -> Expr:
    """Add two i32 tiles, scale the sum, replace what is negative by zero, and round to f16.

    The sum wraps around. It is brought down by 2^17, multiplied by `deqScale` and brought up again,
    in f32; too large a result becomes 65504. A2/A3 needs `tmp` and destroys both sources.
    """
    scaled = (src0 + src1).to(f32) * 2.0**-17 * deqScale * 2.0**17
    return _saturated(scaled, f16)
