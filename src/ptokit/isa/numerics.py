"""Arithmetic as the instructions define it, where NumPy alone does not.

Everything works on arrays of an element type and returns an array of the same one. Quotients,
remainders and powers have corners - zero divisors, quotients rounded on the way, negative
exponents - in which targets differ; the corners are here once, so that tile-tile and tile-scalar
instructions cannot disagree. Where the hardware leaves the accuracy open, the reference is the
exact result rounded once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptokit.base.convert import convert, from_float
from ptokit.base.dtypes import dtype, f16, f32, i32
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.base.layout import Array

_OFF = SaturationMode.OFF


def in_double(function: Callable[..., Array], *sources: Array, out: Array | None = None) -> Array:
    """Evaluate in double precision and round once to the element type of the sources.

    Integers, which only the permissive profile lets through, are truncated as a C cast does.
    """
    kind = dtype(sources[0].dtype)
    values = function(*[source.astype(np.float64) for source in sources])
    result = np.empty(values.shape, kind.np) if out is None else out
    if kind is f32:  # a cast rounds right; only its infinities and NaNs need a second look
        np.copyto(result, values, casting="same_kind")
        if np.count_nonzero(np.isfinite(result)) == result.size:
            return result
    rounding = RoundMode.CAST_TRUNC if kind.is_integer else RoundMode.CAST_RINT
    result[...] = from_float(values, kind, rounding, _OFF)
    return result


def is_integer(array: Array) -> bool:
    """Whether the elements are integers."""
    return array.dtype.kind in "iu"


def relu(values: Array) -> Array:
    """Replace negative elements by zero; NaN and minus zero stay as they are."""
    return np.where(values < 0, values.dtype.type(0), values)


def positive_part(values: Array) -> Array:
    """Replace everything that is not positive, NaN included, by zero."""
    return np.where(values > 0, values, values.dtype.type(0))


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once; integers wrap."""
    return a * b + c if is_integer(a) else in_double(lambda a, b, c: a * b + c, a, b, c)


# ---- division ----------------------------------------------------------------------------------


def quotient(a: Array, b: Array, target: str = "cpu", high_precision: bool = False) -> Array:
    """a / b: the nearest value for floats; truncated for integers, with x / 0 = 0."""
    if is_integer(a):
        return np.floor_divide(a - np.fmod(a, b), b)
    if high_precision and target == "a5" and a.dtype == np.float16:
        return _half_quotient(a, b)
    return np.divide(a, b)


def _half_quotient(a: Array, b: Array) -> Array:
    """a / b as the high-precision sequence of A5 computes it in f16.

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


def truncated_remainder(
    a: Array, b: Array, target: str = "cpu", high_precision: bool = False
) -> Array:
    """a - trunc(a / b) * b: the sign is that of the dividend. Integers: x % 0 is 0."""
    if is_integer(a):
        return np.fmod(a, b)
    if _is_exact(a, target, high_precision):
        return in_double(np.fmod, a, b)
    a32, b32 = a.astype(np.float32), b.astype(np.float32)
    return _narrowed(a32 - np.trunc(a32 / b32) * b32, a)


def floored_remainder(
    a: Array,
    b: Array,
    target: str = "cpu",
    high_precision: bool = False,
    *,
    corrected: bool = True,
) -> Array:
    """a - floor(a / b) * b: the sign is that of the divisor. Integers: x mod 0 is 0.

    64-bit integers have the sign of the dividend on a device; Kirin gives -1 for x mod 0. Where the
    quotient was rounded a float remainder may fall on the wrong side of zero, unless `corrected`.
    """
    if is_integer(a):
        if target == "a2a3":
            return _remainder_through_f32(a, b)
        if target == "a5" and a.itemsize == 8:
            return np.fmod(a, b)
        by_zero = ~a.dtype.type(0) if target.startswith("kirin") else a.dtype.type(0)
        return np.where(b == 0, by_zero, np.remainder(a, b))
    if _is_exact(a, target, high_precision):
        return in_double(lambda a, b: _towards_divisor(np.fmod(a, b), b), a, b)
    a32, b32 = a.astype(np.float32), b.astype(np.float32)
    remainder = _narrowed(a32 - np.floor(a32 / b32) * b32, a)
    return _towards_divisor(remainder, b) if corrected else remainder


def _is_exact(a: Array, target: str, high_precision: bool) -> bool:
    """Whether a float remainder is the true one; otherwise each step is rounded to f32."""
    return target == "cpu" or (target == "a5" and high_precision and a.dtype == np.float32)


def _narrowed(values: Array, like: Array) -> Array:
    """f32 results in the element type of the operands: toward zero, saturating."""
    if like.dtype == np.float32:
        return values
    return convert(values, f32, dtype(like.dtype), RoundMode.CAST_TRUNC)


def _towards_divisor(remainder: Array, b: Array) -> Array:
    """Add the divisor where the remainder lies on the other side of zero."""
    return np.where(remainder * b < 0, remainder + b, remainder)


def _remainder_through_f32(a: Array, b: Array) -> Array:
    """The i32 remainder of A2/A3, which divides in f32: exact for operands up to 2^24."""
    a32, b32 = convert(a, i32, f32), convert(b, i32, f32)
    floor = convert(np.floor(a32 / b32), f32, i32)
    remainder = convert(a32, f32, i32) - floor * convert(b32, f32, i32)
    fixed = _towards_divisor(convert(remainder, i32, f32), b32)
    return convert(fixed, f32, i32, RoundMode.CAST_TRUNC)


# ---- powers ------------------------------------------------------------------------------------


def power(base: Array, exponent: Array, target: str = "cpu") -> Array:
    """base ** exponent. Floats follow C's pow; integers wrap, a negative exponent truncates."""
    if is_integer(base):
        return _integer_power(base, exponent)
    result = in_double(np.power, base, exponent)
    if target != "a2a3":
        return result
    # A2/A3 puts it together from exp and ln: the sign of a zero base is lost, 1 ** NaN is NaN, and
    # so is a negative infinity to a broken exponent.
    broken = np.trunc(exponent) != exponent  # NaN included; infinities are whole and even
    result = np.where(broken & ((base < 0) | np.isnan(exponent)), np.float32(np.nan), result)
    at_zero = np.where(exponent > 0, np.float32(0), np.float32(np.inf))
    return np.where((base == 0) & (exponent != 0), at_zero, result)


def _integer_power(base: Array, exponent: Array) -> Array:
    raised = np.power(base, np.maximum(exponent, 0))
    if base.dtype.kind == "u":
        return raised
    one, zero = base.dtype.type(1), base.dtype.type(0)
    unit = np.where(exponent & 1, base, one)  # for a base of 1 or -1
    inverse = np.where((base == 1) | (base == -1), unit, zero)
    return np.where(exponent < 0, inverse, raised)
