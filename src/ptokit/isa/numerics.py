"""Arithmetic that several instructions share, as expressions over single elements.

Quotients, remainders and powers have corners - zero divisors, quotients rounded on the way,
negative exponents - in which targets differ; the corners are here once, so that tile-tile and
tile-scalar instructions cannot disagree. Where the hardware leaves the accuracy open, the meaning
is the exact result rounded once.
"""

from __future__ import annotations

from math import inf, nan

from ptokit.base.dtypes import DType, f16, f32, i32
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.isa.expr import F64, Condition, Const, Expr, apply, given, on, select

_TRUNC, _SATURATED = RoundMode.CAST_TRUNC, SaturationMode.ON


def once(value: Expr, kind: DType) -> Expr:
    """A double, rounded once to the element type.

    Integers, which only the permissive profile lets through, are truncated as a C cast does.
    """
    return value.to(kind, _TRUNC if kind.is_integer else RoundMode.CAST_RINT)


def exact(function: str, value: Expr) -> Expr:
    """A function of an element, rounded once."""
    return once(apply(function, value.to(F64)), value.kind)


# ---- order and sign ----------------------------------------------------------------------------


def larger(a: Expr, b: Expr) -> Expr:
    """The maximum; a unless b is greater."""
    return select(a < b, b, a)


def smaller(a: Expr, b: Expr) -> Expr:
    """The minimum; a unless b is less."""
    return select(a > b, b, a)


def positive_part(value: Expr) -> Expr:
    """Replace everything that is not positive, NaN included, by zero."""
    return select(value > 0, value, 0)


def leaky(value: Expr, slope: Expr) -> Expr:
    """Multiply what is not positive, NaN included, by a slope."""
    return select(value > 0, value, value * slope)


def multiply_add(a: Expr, b: Expr, c: Expr) -> Expr:
    """a * b + c, the product not rounded; integers wrap."""
    if a.kind.is_integer:
        return a * b + c
    return once(a.to(F64) * b.to(F64) + c.to(F64), a.kind)


def exp_difference(a: Expr, b: Expr) -> Expr:
    """exp(a - b); the difference is rounded to the element type, but not for f32 on a5."""
    rounded = exact("exp", a - b)
    if a.kind is not f32:
        return rounded
    return given(on("a5"), once(apply("exp", a.to(F64) - b.to(F64)), f32), rounded)


# ---- division ----------------------------------------------------------------------------------


def quotient(a: Expr, b: Expr, high_precision: bool = False) -> Expr:
    """a / b: the nearest value for floats; truncated for integers, with x / 0 = 0."""
    if a.kind.is_integer:
        return a // b
    if high_precision and a.kind is f16:
        return given(on("a5"), _half_quotient(a, b), a / b)
    return a / b


def _half_quotient(a: Expr, b: Expr) -> Expr:
    """a / b as the high-precision sequence of A5 computes it in f16.

    Both significands are brought into [1, 2), divided, and the difference of the exponents applied
    to the rounded quotient. At the lower end of the subnormals this is not the nearest value: a
    quotient below the smallest one is 0, and from there up to twice that it is the smallest.
    """
    plain, dividend, divisor = a / b, abs(a).to(f32), abs(b).to(f32)
    ma, mb = apply("fraction", dividend), apply("fraction", divisor)
    exponent = apply("exponent", dividend) - apply("exponent", divisor)
    tiny = select(exponent.eq(-24) & (ma > mb), Const(f32, 2.0**-24), 0)
    size = select(exponent > -24, apply("scale", (ma / mb).to(f16).to(f32), exponent), tiny)
    regular = apply("isfinite", a) & apply("isfinite", b) & a.ne(0) & b.ne(0)
    signed = apply("copysign", size.to(f16), plain)
    return select(regular, signed, select(apply("isnan", plain), Const(f16, nan), plain))


# ---- remainders --------------------------------------------------------------------------------


def truncated_remainder(a: Expr, b: Expr, high_precision: bool = False) -> Expr:
    """a - trunc(a / b) * b: the sign is that of the dividend. Integers: x % 0 is 0."""
    if a.kind.is_integer:
        return apply("rem", a, b)
    a32, b32 = a.to(f32), b.to(f32)
    stepwise = _narrowed(a32 - apply("trunc", a32 / b32) * b32, a.kind)
    return given(_exact(a, high_precision), once(_rem(a, b), a.kind), stepwise)


def floored_remainder(
    a: Expr,
    b: Expr,
    high_precision: bool = False,
    mended_on_a5: bool = True,
    decided_by: Expr | None = None,
) -> Expr:
    """a - floor(a / b) * b: the sign is that of the divisor. Integers: x mod 0 is 0.

    64-bit integers have the sign of the dividend on a5; Kirin gives -1 for x mod 0. Where the
    quotient was rounded a float remainder may fall on the wrong side of zero, and is mended;
    `decided_by` is another element whose remainder tells whether.
    """
    if a.kind.is_integer:
        plain = apply("mod", a, b)
        plain = given(on("kirin9030 kirinx90"), select(b.eq(0), -1, plain), plain)
        if a.kind.bits == 64:
            plain = given(on("a5"), apply("rem", a, b), plain)
        if a.kind is not i32:
            return plain
        return given(on("a2a3"), _remainder_through_f32(a, b, decided_by), plain)
    stepwise = _stepwise_remainder(a, b)
    other = stepwise if decided_by is None else _stepwise_remainder(decided_by, b)
    mended = _towards_divisor(stepwise, b, other)
    if not mended_on_a5:
        mended = given(on("a5"), stepwise, mended)
    true = once(_towards_divisor(_rem(a, b), b.to(F64)), a.kind)
    return given(_exact(a, high_precision), true, mended)


def _rem(a: Expr, b: Expr) -> Expr:
    return apply("rem", a.to(F64), b.to(F64))


def _exact(a: Expr, high_precision: bool) -> Condition:
    """Where a float remainder is the true one; elsewhere each step is rounded to f32."""
    return on("cpu a5" if high_precision and a.kind is f32 else "cpu")


def _narrowed(value: Expr, kind: DType) -> Expr:
    """An f32 result in the element type of the operands: toward zero, saturating."""
    return value.to(kind, _TRUNC, _SATURATED)


def _stepwise_remainder(a: Expr, b: Expr) -> Expr:
    """The floored remainder of floats, each step rounded to f32."""
    a32, b32 = a.to(f32), b.to(f32)
    return _narrowed(a32 - apply("floor", a32 / b32) * b32, a.kind)


def _towards_divisor(remainder: Expr, b: Expr, decides: Expr | None = None) -> Expr:
    """Add the divisor where the remainder, or one that decides, lies across zero."""
    return select((decides or remainder) * b < 0, remainder + b, remainder)


def _remainder_through_f32(a: Expr, b: Expr, decided_by: Expr | None) -> Expr:
    """The i32 remainder of A2/A3, which divides in f32: exact for operands up to 2^24."""
    b32 = b.to(f32)

    def whole(value: Expr) -> Expr:
        return value.to(i32, saturation=_SATURATED)

    def remainder(value: Expr) -> Expr:
        quotient = whole(apply("floor", value.to(f32) / b32))
        return (whole(value.to(f32)) - quotient * whole(b32)).to(f32)

    other = None if decided_by is None else remainder(decided_by)
    return _towards_divisor(remainder(a), b32, other).to(i32, _TRUNC, _SATURATED)


# ---- powers ------------------------------------------------------------------------------------


def power(base: Expr, exponent: Expr) -> Expr:
    """base ** exponent. Floats follow C's pow; integers wrap, a negative exponent truncates."""
    if base.kind.is_integer:
        return _integer_power(base, exponent)
    result = once(base.to(F64) ** exponent.to(F64), f32)
    if base.kind is not f32:
        return result.to(base.kind)  # computed in f32: it is rounded twice
    # A2/A3 puts it together from exp and ln: the sign of a zero base is lost, 1 ** NaN is NaN, and
    # so is a negative infinity to a broken exponent.
    broken = apply("trunc", exponent).ne(exponent)  # NaN included; infinities are whole and even
    no_result = broken & ((base < 0) | apply("isnan", exponent))
    composed = select(no_result, Const(f32, nan), result)
    at_zero = select(exponent > 0, Const(f32, 0), Const(f32, inf))
    return given(on("a2a3"), select(base.eq(0) & exponent.ne(0), at_zero, composed), result)


def _integer_power(base: Expr, exponent: Expr) -> Expr:
    if not base.kind.is_signed:
        return base**exponent
    raised = base ** select(exponent > 0, exponent, 0)
    unit = select((exponent & 1).ne(0), base, 1)  # for a base of 1 or -1
    inverse = select(base.eq(1) | base.eq(-1), unit, 0)
    return select(exponent < 0, inverse, raised)
