"""Arithmetic as the instructions define it, where NumPy alone does not.

Everything works on arrays of an element type and returns an array of the same one. Division,
remainder and power have corners (zero divisors, negative exponents, quotients rounded on the way)
in which targets differ; the corners are here once, so that tile-tile and tile-scalar instructions
cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptokit.base.convert import convert, from_float
from ptokit.base.dtypes import dtype, f16, f32, i32
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.base.layout import Array

_OFF = SaturationMode.OFF


def in_double(function: Callable[..., Array], *sources: Array) -> Array:
    """Evaluate in double precision and round once to the element type of the sources.

    This is the reference for every function whose accuracy the hardware leaves open. Integers, which
    only the permissive profile lets through, are truncated as a C cast does.
    """
    kind = dtype(sources[0].dtype)
    values = function(*(source.astype(np.float64) for source in sources))
    return from_float(
        values, kind, RoundMode.CAST_TRUNC if kind.is_integer else RoundMode.CAST_RINT, _OFF
    )


def is_integer(array: Array) -> bool:
    """Whether the elements are integers (ml_dtypes floats count as neither for NumPy)."""
    return array.dtype.kind in "iu"


def relu(values: Array) -> Array:
    """Replace negative elements by zero; NaN and minus zero stay as they are."""
    return np.where(values < 0, values.dtype.type(0), values)


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding; integers wrap."""
    return a * b + c if is_integer(a) else in_double(lambda a, b, c: a * b + c, a, b, c)


# ---- division ----------------------------------------------------------------------------------


def quotient(a: Array, b: Array) -> Array:
    """a / b: rounded to nearest for floats, truncated for integers, where x / 0 is 0."""
    if not is_integer(a):
        return np.divide(a, b)
    return np.floor_divide(a - np.fmod(a, b), b)


def scaled_half_quotient(a: Array, b: Array) -> Array:
    """a / b as the high-precision division of A5 computes it in f16.

    Both significands are brought into [1, 2), divided, and the difference of the exponents applied
    to the rounded quotient. At the lower end of the subnormals this is not the nearest value: a
    quotient below the smallest one is 0, and from there up to twice that it is the smallest.
    """
    plain = np.divide(a, b)
    (ma, ea), (mb, eb) = (np.frexp(np.abs(x).astype(np.float32)) for x in (a, b))
    exponent = ea - eb
    ratio = convert(ma / mb, f32, f16, saturation=_OFF).astype(np.float32)
    tiny = np.where((exponent == -24) & (ma > mb), 2.0**-24, 0.0)
    size = np.where(exponent > -24, np.ldexp(ratio, exponent), tiny).astype(np.float32)
    signed = np.copysign(convert(size, f32, f16, saturation=_OFF), plain)
    regular = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    return np.where(regular, signed, np.where(np.isnan(plain), np.float16(np.nan), plain))


# ---- remainders --------------------------------------------------------------------------------


def truncated_remainder(a: Array, b: Array) -> Array:
    """The exact remainder with the sign of the dividend: C's % and fmod. Integers: x % 0 is 0."""
    return np.fmod(a, b) if is_integer(a) else in_double(np.fmod, a, b)


def floored_remainder(a: Array, b: Array) -> Array:
    """The exact remainder with the sign of the divisor. Integers: x mod 0 is 0."""
    return np.remainder(a, b) if is_integer(a) else in_double(np.remainder, a, b)


def stepwise_truncated_remainder(a: Array, b: Array) -> Array:
    """a - trunc(a / b) * b, every step rounded to f32: exact while |a / b| < 2^24."""
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    return _narrowed(wide_a - np.trunc(wide_a / wide_b) * wide_b, a)


def stepwise_floored_remainder(a: Array, b: Array) -> Array:
    """a - floor(a / b) * b, every step rounded to f32, then moved to the side of the divisor."""
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    return towards_divisor(_narrowed(wide_a - np.floor(wide_a / wide_b) * wide_b, a), b)


def towards_divisor(remainder: Array, b: Array) -> Array:
    """Add the divisor where the remainder lies on the other side of zero."""
    return np.where(remainder * b < 0, remainder + b, remainder)


def floored_remainder_through_f32(a: Array, b: Array) -> Array:
    """The i32 remainder of A2/A3, which divides in f32: exact for operands up to 2^24."""
    wide_a, wide_b = convert(a, i32, f32), convert(b, i32, f32)
    floor = convert(np.floor(wide_a / wide_b), f32, i32)
    remainder = convert(wide_a, f32, i32) - floor * convert(wide_b, f32, i32)
    fixed = towards_divisor(convert(remainder, i32, f32), wide_b)
    return convert(fixed, f32, i32, RoundMode.CAST_TRUNC)


def _narrowed(values: Array, like: Array) -> Array:
    """f32 results as the element type of the operands: toward zero, saturating."""
    if like.dtype == np.float32:
        return values
    return convert(values, f32, dtype(like.dtype), RoundMode.CAST_TRUNC)


# ---- powers ------------------------------------------------------------------------------------


def power(base: Array, exponent: Array) -> Array:
    """base ** exponent. Floats follow C's pow; integers wrap, a negative exponent truncates."""
    return (
        _integer_power(base, exponent) if is_integer(base) else in_double(np.power, base, exponent)
    )


def _integer_power(base: Array, exponent: Array) -> Array:
    one = base.dtype.type(1)
    raised = np.power(base, np.maximum(exponent, 0))
    if base.dtype.kind == "u":
        return raised
    alternating = np.where(exponent & 1, base, one)  # for a base of 1 or -1
    unit = (base == 1) | (base == -1)
    return np.where(exponent >= 0, raised, np.where(unit, alternating, base.dtype.type(0)))


def power_through_logarithm(base: Array, exponent: Array) -> Array:
    """base ** exponent for f32 as A2/A3 puts it together from exp and ln.

    It differs from C's pow in the corners: the sign of a zero base is ignored, 1 ** NaN is NaN, and
    a negative infinity to a broken exponent is NaN.
    """
    result = power(base, exponent)
    broken = np.trunc(exponent) != exponent  # NaN included; infinities are whole and even
    result = np.where(broken & ((base < 0) | np.isnan(exponent)), np.float32(np.nan), result)
    at_zero = np.where(exponent > 0, np.float32(0), np.float32(np.inf))
    return np.where((base == 0) & (exponent != 0), at_zero, result)
