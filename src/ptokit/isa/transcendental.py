"""Roots, reciprocals, exponentials, logarithms and powers.

Hardware computes these to an accuracy of its own; the reference gives the exact result, rounded
once. `HIGH_PRECISION` asks A5 for a sequence that comes close to that, and changes nothing here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ptokit.base import dtypes as dt
from ptokit.base.precision import (
    DivAlgorithm,
    ExpAlgorithm,
    LogAlgorithm,
    PowAlgorithm,
    RecipAlgorithm,
    RsqrtAlgorithm,
    SqrtAlgorithm,
)
from ptokit.isa.costs import DIVISION, FUNCTION
from ptokit.isa.devices import DEVICES
from ptokit.isa.effects import ON_SCALAR_UNIT, steps
from ptokit.isa.expr import Condition, Const, Expr, given
from ptokit.isa.freedom import ulp
from ptokit.isa.language import agree, apart, in_text, of_elements, precise_with_tmp
from ptokit.isa.meaning import Each
from ptokit.isa.numerics import exact, power, quotient
from ptokit.isa.pointwise import (
    ONLY_ADDRESS,
    UNARY,
    on_a2a3,
    plain,
    pointwise,
    precision,
    scratch,
    scratch_held,
)
from ptokit.isa.rules import (
    both,
    disjoint,
    located,
    must,
    or_else,
    same_dtype,
    same_place,
    same_valid,
    separate,
)
from ptokit.isa.scalars import element_of
from ptokit.isa.spec import Asm, Operand, Rule, family, insn, out, scalar, src, tmp, types

ACCURACY = ulp(None, "The exact result, rounded once to the element type.")
_floats = partial(types, a2a3="f16 f32", a5="f16 f32", kirin="f16 f32")
_function = partial(insn, means=Each(), cost=FUNCTION)
_unary = partial(_function, *UNARY, freedom=ACCURACY)


@_unary(
    attrs=precision(ExpAlgorithm),
    types=_floats(ids="SA-0153"),
    rules=pointwise(
        "dst",
        "src",
        a2a3="SA-0154",
        a5="SA-0154",
        vec="SA-0157",
        static="SA-0156 SA-0155",
        valid="PA-0027 PA-0026",
    ),
)
def TEXP(src: Expr) -> Expr:
    """Raise e to the power of each element.

    Too large a result is +inf; exp(-inf) is 0. Hardware may flush results in the subnormal range
    to zero; HIGH_PRECISION keeps them on A5.
    """
    return exact("exp", src)


@_unary(
    attrs=precision(LogAlgorithm),
    types=_floats(ids="SA-0238"),
    rules=pointwise("dst", "src", vec="SA-0241", static="SA-0240 SA-0239", valid="PA-0050 PA-0049"),
)
def TLOG(src: Expr) -> Expr:
    """Take the natural logarithm.

    ln(0) is -inf and the logarithm of a negative number NaN. HIGH_PRECISION treats subnormal
    elements exactly on A5.
    """
    return exact("log", src)


@_unary(
    attrs=precision(SqrtAlgorithm),
    types=_floats(ids="SA-0332"),
    rules=pointwise(
        "dst",
        "src",
        a2a3="SA-0333",
        a5="SA-0333",
        vec="SA-0336",
        static="SA-0335 SA-0334",
        valid="PA-0063 PA-0062",
    ),
)
def TSQRT(src: Expr) -> Expr:
    """Take the square root. The root of a negative number is NaN, that of -0 is -0."""
    return exact("sqrt", src)


@_function(
    *UNARY,
    scratch(lambda _: 32, optional=True, note="32 bytes; A2/A3 then divides instead of estimating"),
    attrs=precision(RsqrtAlgorithm),
    types=_floats(ids="SA-0318"),
    rules=[
        *pointwise(
            "dst",
            "src",
            a5="SA-0319",
            vec="SA-0322",
            static="SA-0321 SA-0320",
            valid="PA-0061 PA-0060",
        ),
        *or_else(ONLY_ADDRESS, same_dtype("dst", "tmp", id="tmp-type", on="a2a3")),
        located("Vec", "tmp", id="tmp-location", on="a2a3"),
        scratch_held("tmp", lambda _: 32, "32"),
        separate("tmp", "dst", "src", id="tmp-separate", on="a2a3"),
        precise_with_tmp(),
    ],
    asm=Asm(order=("src", "dst", "tmp")),
    example={"tmp": "Vec {T} 1x64"},
    steps=[steps(when=lambda o: o.tmp is not None, between="V", keeps_scratch=True)],
    freedom=ulp(
        None,
        "The root and its reciprocal, each rounded to the element type, with and without tmp. "
        "Without tmp A2/A3 gives an estimate good to about three digits.",
    ),
)
def TRSQRT(src: Expr) -> Expr:
    """Take the reciprocal of the square root.

    rsqrt(0) is an infinity, rsqrt(+inf) 0, and negative elements give NaN; kernels should not rely
    on any of the three. Give A2/A3 a `tmp` when its hardware estimate is not good enough; other
    targets do not touch it. HIGH_PRECISION corrects the last place on A5.
    """
    return quotient(Const(src.kind, 1), exact("sqrt", src))


_IN_PLACE = Condition(
    "in place on a2a3",
    lambda o: on_a2a3(o) and same_place(o.dst, o.src),
)


@_unary(
    cost=DIVISION,
    attrs=precision(RecipAlgorithm, DivAlgorithm),
    types=_floats(ids="SA-0297"),
    rules=[
        *pointwise("dst", "src", vec="SA-0300", static="SA-0299 SA-0298", valid="PA-0056 PA-0055"),
        *or_else(
            lambda o: "every element becomes 1" if _IN_PLACE.holds(o) else "",
            separate("dst", "src", on="a2a3"),
        ),
        apart("dst", "src", on="a2a3"),
    ],
)
def TRECIP(src: Expr, PrecisionType: RecipAlgorithm) -> Expr:
    """Take the reciprocal; 1 / 0 is an infinity.

    The instruction is TDIVS with the scalar 1 as dividend, and HIGH_PRECISION means what it means
    there; it may be written as that of TDIVS. A2/A3 fills the destination with ones first, so there
    it must not be the source.
    """
    high, one = PrecisionType == RecipAlgorithm.HIGH_PRECISION, Const(src.kind, 1)
    return given(_IN_PLACE, one, quotient(one, src, high))


# ---- powers ------------------------------------------------------------------------------------

_DEFAULT_TYPES = frozenset({dt.i8, dt.u8, dt.i16, dt.u16, dt.i32, dt.u32, dt.f16, dt.f32})
_HIGH_TYPES = frozenset({dt.f16, dt.bf16, dt.f32})


def _for_f32(asked: Rule) -> Rule:
    """The rule, asked only of f32 tiles: A2/A3 computes integers without scratch."""
    return replace(
        asked,
        text=f"{asked.text} (f32)",
        holds=lambda o: o.dst.dtype is not dt.f32 or asked.holds(o),
    )


def _is_float(o: Any) -> bool:
    return o.dst.dtype.is_float


def _own(exponent: Operand, *tiles: str) -> dict[str, Any]:
    """The operands, rules and samples of a power, by the kind of its exponent."""
    lost = on_a2a3, lambda o: o.dst.dtype is dt.f32
    room = tmp(
        view=lambda o: (o.dst.vr, o.dst.vc), lost=both(*lost), note="scratch for f32 on A2/A3"
    )
    sample = dict.fromkeys((*tiles, "tmp"), "Vec bf16 16x64")
    return {
        "operands": (out("dst"), src("base"), exponent, room),
        "rules": [
            *pointwise(*tiles, everywhere=True),
            *([] if exponent.name in tiles else [of_elements(exponent.name, "base")]),
            must("dtype", "a5")(
                "elements are integers of 8, 16 or 32 bits, f16 or f32; "
                "with HIGH_PRECISION they are f16, bf16 or f32",
                lambda o: (
                    o.dst.dtype in _HIGH_TYPES
                    if o.attrs["PrecisionType"] == PowAlgorithm.HIGH_PRECISION
                    else o.dst.dtype in _DEFAULT_TYPES
                ),
            ),
            _for_f32(same_dtype("dst", "tmp", id="tmp-type", on="a2a3")),
            *or_else(ONLY_ADDRESS, _for_f32(same_valid("dst", "tmp", id="tmp-valid", on="a2a3"))),
            _for_f32(plain("tmp", id="tmp-layout", on="a2a3")),
            in_text(
                "precision",
                "HIGH_PRECISION does not exist for powers",
                lambda o: o.attrs["PrecisionType"] != PowAlgorithm.HIGH_PRECISION,
                "a2a3",
                "leave precisionType out",
            ),
            in_text(
                "tmp-integer",
                "integers are raised without tmp",
                lambda o: o.tmp is None or o.dst.dtype.is_float,
                fix="leave tmp out",
            ),
            in_text(
                "tmp-valid",
                "dst and tmp have the same valid rows and columns",
                agree("dst", "tmp"),
                "a2a3",
                "declare tmp with the type and shape of dst",
            ),
            _for_f32(disjoint(*tiles, "tmp", on="a2a3")),
        ],
        "more_examples": [sample | {"PrecisionType": "HIGH_PRECISION", "on": "a5"}],
    }


_NUMBER = scalar("exp", element_of("dst"))
family(
    partial(
        _function,
        attrs=precision(PowAlgorithm),
        targets=DEVICES,
        types=types(a2a3="i8 u8 i16 u16 i32 u32 f32", kirin="i8 u8 i16 u16 i32 u32 f16 f32"),
        asm=Asm(
            tmp=frozenset({"sync", "l1", "l2"}),
            order=("base", "exp", "dst", "tmp"),
            called={"src": "base", "scalar": "exp"},
        ),
        freedom=ACCURACY,
        steps=[
            steps(when=_is_float, between="V", end="V->S S->V", complete=True),
            ON_SCALAR_UNIT,
        ],
    ),
    """Raise [the first tile to the powers in the second|every element to the same power].

    x ** 0 is 1 for every x. Integers wrap around, and a negative exponent gives 0 except for a base
    of 1 or -1. Floats follow C's pow: a negative base needs a whole exponent, else the result is
    NaN. A2/A3 ignores the sign of a zero base and needs [four|three] separate tiles for f32; other
    targets do not touch `tmp`. HIGH_PRECISION is for the floats of A5; other targets ignore it.
    """,
    TPOW=(power, _own(src("exp"), "dst", "base", "exp")),
    TPOWS=(power, _own(_NUMBER, "dst", "base")),
)
