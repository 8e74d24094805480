"""Conversion between element types: the one place of ptokit where values are rounded.

TCVT, the fix pipe, quantisation and every ``f32`` result stored as ``f16`` go through
:func:`convert`. NumPy and ml_dtypes casts are no substitute: they know one rounding mode, round
twice on some paths (float64 to fp8) and never saturate.

The rule is the same for all pairs. The exact source value is rounded once onto the grid of the
destination, continued beyond its range; then the range is applied:

=================  ===============================  ==========================================
case               saturation ON                    saturation OFF
=================  ===============================  ==========================================
too large, int     clamped to min or max            low bits of the two's complement integer
too large, float   largest finite value             infinity, else NaN, else largest finite
infinity to int    min or max                       +inf: all bits ones, -inf: 0
infinity to float  largest finite value, unless     as too large
                   the pair is exact (f16 to f32)
NaN                NaN of the destination, quiet    the same
                   and with the sign kept; 0 when
                   there is none (ints, fp4)
minus zero         kept where it exists (not in     the same
                   hif8)
=================  ===============================  ==========================================

e8m0 has neither zero nor sign: what rounds to zero becomes 2^-127, and a negative number is below
the range (2^-127 when saturating, else NaN).

All rounding modes live in :func:`round_integral`. A conversion to integers applies it to the value
itself, one to a wide float to the value divided by the local spacing, one to a float of at most
8 bits to the position of the value among those of the format.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.dtypes import DType
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.base.floatformat import float_format, holds_every_value_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


_F32_SIGN, _F32_NAN = 0x8000_0000, 0x7FC0_0000


def convert(
    values: Array,
    src: DType,
    dst: DType,
    round_mode: RoundMode = RoundMode.CAST_RINT,
    saturation: SaturationMode = SaturationMode.ON,
) -> Array:
    """Return ``values``, an array of ``src.np``, as a new array of ``dst.np``.

    CAST_NONE means CAST_RINT here: what it means for a given pair is the instruction's business.
    A conversion of a type to itself copies the bits.
    """
    if values.dtype != src.np:
        raise TypeError(f"expected an array of {src.np} for {src}, got {values.dtype}")
    if values.ndim == 0:
        return convert(values.reshape(1), src, dst, round_mode, saturation).reshape(())
    if src is dst:
        return values.copy()
    if dst is dt.f32 and src.is_float:
        return _decode_floats(values, src)
    with np.errstate(all="ignore"):
        if src.is_integer:
            integers = _decode_integers(values, src)
            if dst.is_integer:
                return _int_to_int(integers, src, dst, saturation)
            return _int_to_float(integers, src, dst, round_mode, saturation)
        floats = _decode_floats(values, src)
        if dst.is_integer:
            return _float_to_int(floats, dst, round_mode, saturation)
        if holds_every_value_of(dst, src):
            saturation = SaturationMode.OFF  # nothing can overflow, so infinities pass as well
        return _float_to_float(floats, dst, round_mode, saturation)


def from_float(
    values: Array,
    dst: DType,
    round_mode: RoundMode = RoundMode.CAST_RINT,
    saturation: SaturationMode = SaturationMode.ON,
) -> Array:
    """Return float32 or float64 numbers as a new array of ``dst.np``, rounded once."""
    if values.dtype == np.float32:
        return convert(values, dt.f32, dst, round_mode, saturation)
    if values.dtype != np.float64:
        raise TypeError(f"expected float32 or float64 values, got {values.dtype}")
    if values.ndim == 0:
        return from_float(values.reshape(1), dst, round_mode, saturation).reshape(())
    to_destination = _float_to_int if dst.is_integer else _float_to_float
    with np.errstate(all="ignore"):
        return to_destination(values, dst, round_mode, saturation)


def to_float32(values: Array, src: DType) -> NDArray[np.float32]:
    """Decode to float32, exactly; only for types all of whose values float32 can hold."""
    if src.is_integer and src.bits > 16:
        raise ValueError(f"float32 does not hold every {src}; use convert() and name a rounding")
    return convert(values, src, dt.f32)


def to_float64(values: Array, src: DType) -> NDArray[np.float64]:
    """Decode to float64, exactly; every type but the 64-bit integers fits."""
    if src.is_integer and src.bits == 64:
        raise ValueError(f"float64 does not hold every {src}")
    if src.is_integer:
        return _decode_integers(values, src).astype(np.float64)
    return to_float32(values, src).astype(np.float64)


def element(value: int | float, dst: DType) -> Any:
    """Return a Python number as one element, the way C++ converts an argument.

    Integers wrap, a float loses its fraction on the way to an integer; a float type takes the
    nearest value, ties to even, and beyond its range infinity.
    """
    return _element(value, math.copysign(1, value) if value == 0 else 0, dst)


@lru_cache(maxsize=4096, typed=True)
def _element(value: int | float, sign: float, dst: DType) -> Any:
    """`sign` tells the two zeros apart, which are equal."""
    if isinstance(value, int) and dst.is_integer:
        bits = value & ((1 << dst.bits) - 1)
        return np.array([bits], dst.uint).view(dst.np)[0]
    mode = RoundMode.CAST_TRUNC if dst.is_integer else RoundMode.CAST_RINT
    return from_float(np.array([value], np.float64), dst, mode, SaturationMode.OFF)[0]


def number(code: Any, src: DType) -> int | float:
    """Undo :func:`element`: the Python number an element of ``src.np`` stands for."""
    if src.is_integer:
        return int(_decode_integers(code, src))
    return float(_decode_floats(np.array([code], src.np), src)[0])


def round_integral(values: Array, round_mode: RoundMode) -> Array:
    """Round floats to integral floats of the same dtype. Keeps NaN, infinities and minus zero.

    This is the meaning of every rounding mode; CAST_NONE is CAST_RINT.
    """
    with np.errstate(all="ignore"):
        match round_mode:
            case RoundMode.CAST_FLOOR:
                return np.floor(values)
            case RoundMode.CAST_CEIL:
                return np.ceil(values)
            case RoundMode.CAST_TRUNC:
                return np.trunc(values)
            case RoundMode.CAST_ROUND:
                # Not floor(|x| + 0.5): the sum rounds, e.g. for the largest value below 0.5.
                truncated = np.trunc(values)
                away = (np.abs(values - truncated) >= 0.5).astype(values.dtype)
                return truncated + np.copysign(away, values)
            case RoundMode.CAST_ODD:
                below = np.floor(values)
                inexact_and_even = (below != values) & (np.remainder(below, 2) == 0)
                return np.where(inexact_and_even, below + 1, below)  # adding 0 would lose -0
            case _:
                return np.rint(values)


def keep_mantissa(
    values: NDArray[np.float32], bits: int, round_mode: RoundMode
) -> NDArray[np.float32]:
    """Round float32 numbers to `bits` mantissa bits; the exponent keeps its width."""
    with np.errstate(all="ignore"):
        doubles = values.astype(np.float64)
        _, exponent = np.frexp(doubles)
        spacing = np.maximum(exponent - 1, -126) - bits
        rounded = np.ldexp(round_integral(np.ldexp(doubles, -spacing), round_mode), spacing)
        return rounded.astype(np.float32)


def pack4(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pack 4-bit codes two per byte along the last axis, the even element in the low nibble."""
    if codes.shape[-1] % 2:
        raise ValueError(f"cannot pack an odd number of 4-bit elements: {codes.shape[-1]}")
    return codes[..., 0::2] & np.uint8(0xF) | codes[..., 1::2] << np.uint8(4)


def unpack4(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Undo :func:`pack4`: one code per element along the last axis."""
    codes = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), np.uint8)
    codes[..., 0::2] = packed & 0xF
    codes[..., 1::2] = packed >> 4
    return codes


# --------------------------------------------------------------------------------------- decoding


def _decode_integers(values: Array, src: DType) -> Array:
    """The integers themselves; only i4 needs work."""
    return _i4_values()[values] if src is dt.i4 else values


@cache
def _i4_values() -> NDArray[np.int8]:
    return np.array([*range(8), *range(-8, 0)], np.int8)


def _decode_floats(values: Array, src: DType) -> NDArray[np.float32]:
    """The exact values as float32, which holds all of them. NaNs come out canonical."""
    if src is dt.f32:
        return values
    if src is dt.f16:
        return _half_values().take(values.view(np.uint16), mode="wrap")  # no index can be wrong
    table = float_format(src).values
    if table is not None:
        return table[values.view(np.uint8)]
    floats = np.left_shift(values.view(np.uint16), 16, dtype=np.uint32).view(np.float32)
    nans = np.isnan(floats)
    if nans.any():
        # What a cast leaves of a NaN's payload differs between processors.
        bits = floats.view(np.uint32)
        bits[nans] = bits[nans] & np.uint32(_F32_SIGN) | np.uint32(_F32_NAN)
    return floats


@cache
def _half_values() -> NDArray[np.float32]:
    """The value of every half: looking up takes half the time of a cast."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    nans = np.isnan(values)
    values[nans] = np.copysign(np.float32(np.nan), values[nans])
    return values


# --------------------------------------------------------------------------------------- integers


def _int_to_int(values: Array, src: DType, dst: DType, saturation: SaturationMode) -> Array:
    if saturation == SaturationMode.ON:
        low = int(max(src.min_value, dst.min_value))
        high = int(min(src.max_value, dst.max_value))
        if (low, high) != (src.min_value, src.max_value):
            values = np.clip(values, low, high)
    return _low_bits(values, dst)


def _low_bits(integers: Array, dst: DType) -> Array:
    return integers.astype(np.uint8) & 0xF if dst is dt.i4 else integers.astype(dst.np)


def _float_to_int(values: Array, dst: DType, mode: RoundMode, saturation: SaturationMode) -> Array:
    low, high = int(dst.min_value), int(dst.max_value)
    # high + 1 is a power of two, hence exact in every float type; high need not be.
    least, limit = float(low), float(high + 1)
    machine_integer = np.int8 if dst is dt.i4 else dst.np
    rounded = round_integral(values, mode)
    if rounded.size == 0 or (rounded.min() >= least and rounded.max() < limit):
        return _low_bits(rounded.astype(machine_integer), dst)
    if saturation == SaturationMode.ON:
        above, below = rounded >= limit, rounded < least
        inside = np.where(above | below | np.isnan(rounded), 0, rounded)
        integers = inside.astype(machine_integer)
        integers[above] = high
        integers[below] = low
    else:
        finite = np.where(np.isfinite(rounded), rounded, 0).astype(np.float64)
        # Two's complement by hand: casting a negative float to an unsigned type is undefined in C.
        magnitude = np.fmod(np.abs(finite), 2.0**64).astype(np.uint64)
        integers = np.where(finite < 0, ~magnitude + np.uint64(1), magnitude)
        integers[rounded == np.inf] = 0xFFFF_FFFF_FFFF_FFFF
    return _low_bits(integers, dst)


def _int_to_float(
    values: Array, src: DType, dst: DType, mode: RoundMode, saturation: SaturationMode
) -> Array:
    if src.bits <= 16 or (dst is dt.f32 and _is_nearest_even(mode)):
        floats = values.astype(np.float32)
    elif src.bits == 32:
        floats = values.astype(np.float64)
    else:
        floats = _jam_to_double(values)
    if dst is dt.f32 and floats.dtype == np.float32:
        return floats
    return _float_to_float(floats, dst, mode, saturation)


def _jam_to_double(values: Array) -> NDArray[np.float64]:
    """64-bit integers as doubles that round like the integers to any narrower format.

    Bits that do not fit are or-ed into the lowest one that stays ("round to odd"). A later rounding
    that drops at least two of the bits kept cannot tell the difference, whatever its mode.
    """
    negative = values < 0
    magnitude = np.where(negative, -values, values).astype(np.uint64)
    kept = magnitude & ~np.uint64(0x7FF)
    jammed = kept | (magnitude != kept).astype(np.uint64) << np.uint64(11)
    doubles = np.where(magnitude >= np.uint64(1 << 53), jammed, magnitude).astype(np.float64)
    return np.where(negative, -doubles, doubles)


# ----------------------------------------------------------------------------------------- floats


def _is_nearest_even(mode: RoundMode) -> bool:
    return mode in (RoundMode.CAST_RINT, RoundMode.CAST_NONE)


def _float_to_float(
    values: Array, dst: DType, mode: RoundMode, saturation: SaturationMode
) -> Array:
    """Round float32 or float64 numbers to another float type, the fastest way there is."""
    from_single = values.dtype == np.float32
    if from_single and float_format(dst).values is not None:
        bits = values.view(np.uint32)
        # The upper half with the lower one jammed into it (see _jam_to_double): 8 significant
        # bits, at least 4 more than any of these formats has, and few enough for a table.
        upper_half = bits >> 16 | (bits & 0xFFFF != 0)
        codes = _codes_of_upper_halves(dst, mode, saturation)[upper_half]
    elif from_single and dst is dt.bf16 and _is_nearest_even(mode):
        codes = _single_to_bf16_nearest(values, saturation)
    elif from_single and dst is dt.f16 and _is_nearest_even(mode):
        codes = _single_to_half_nearest(values, saturation)
    elif (dst is dt.f16 or dst is dt.f32) and _is_nearest_even(mode):
        codes = _cast_nearest(values, dst, saturation)
    else:
        codes = _encode(values.astype(np.float64), dst, mode, saturation)
    return codes.view(dst.np)


@cache
def _codes_of_upper_halves(dst: DType, mode: RoundMode, saturation: SaturationMode) -> Array:
    """The code of every float32 whose lower half is zero, indexed by its upper half."""
    singles = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    codes = _encode(singles.astype(np.float64), dst, mode, saturation)
    codes.flags.writeable = False
    return codes


def _single_to_bf16_nearest(values: Array, saturation: SaturationMode) -> Array:
    bits = values.view(np.uint32)
    rounded = bits >> 16
    rounded &= 1
    rounded += 0x7FFF  # with the parity just computed: carries above half, and at half if odd
    rounded += bits
    rounded >>= 16
    codes = rounded.astype(np.uint16)
    special = bits & 0x7FFF_FFFF >= 0x7F7F_8000  # rounds to infinity, or is not finite
    return _with_special_cases(codes, special, values, dt.bf16, saturation)


def _single_to_half_nearest(values: Array, saturation: SaturationMode) -> Array:
    """Round with integers, which takes a third of the time of a cast."""
    bits = values.view(np.uint32)
    is_signed = np.count_nonzero(np.signbit(values)) > 0
    magnitude = bits & 0x7FFF_FFFF if is_signed else bits
    rounded = magnitude >> 13
    rounded &= 1
    rounded += magnitude
    rounded += 0xC800_0FFF  # to the exponents of half, and half a unit less one; see above
    rounded >>= 13
    codes = rounded.astype(np.uint16)
    rounded -= 0x0400
    special = rounded >= 0x7800  # outside the normal range of half
    if np.count_nonzero(special):
        tiny = magnitude <= 0x3300_0000  # at most half of the smallest one
        np.putmask(codes, tiny, 0)
        special &= ~tiny
        codes[special] = _cast_nearest(abs(values[special]), dt.f16, saturation)
    if is_signed:
        sign = np.right_shift(bits, 16, out=magnitude)
        sign &= 0x8000
        np.bitwise_or(codes, sign, out=codes, casting="unsafe")
    return codes


def _cast_nearest(values: Array, dst: DType, saturation: SaturationMode) -> Array:
    """NumPy's own cast, which rounds correctly between float16, float32 and float64."""
    limits = float_format(dst)
    cast = values.astype(dst.np)
    codes = cast.view(dst.uint)
    if dst is dt.f32 and np.count_nonzero(np.isfinite(cast)) == cast.size:  # a quick look
        return codes
    special = codes & (limits.sign_bit - 1) > limits.max_code
    return _with_special_cases(codes, special, values, dst, saturation)


def _with_special_cases(
    codes: Array, special: Array, values: Array, dst: DType, saturation: SaturationMode
) -> Array:
    if special.any():
        doubles = values[special].astype(np.float64)
        codes[special] = _encode(doubles, dst, RoundMode.CAST_RINT, saturation)
    return codes


def _encode(
    values: NDArray[np.float64], dst: DType, mode: RoundMode, saturation: SaturationMode
) -> Array:
    """Round doubles to the codes of a float type: the general way, right for every case."""
    form = float_format(dst)
    finite = np.isfinite(values)
    round_magnitudes = _round_by_spacing if form.values is None else _round_by_position
    codes, overflow = round_magnitudes(np.where(finite, values, 0.0), dst, mode)
    beyond = form.max_code if saturation == SaturationMode.ON else form.overflow_code
    codes[overflow | ~finite] = beyond

    negative = np.signbit(values)
    if form.sign_bit:
        signed = negative if form.has_negative_zero else negative & (codes != 0)
        codes[signed] |= form.sign_bit
    else:
        codes[values < 0] = 0 if saturation == SaturationMode.ON else form.overflow_code

    nan = np.isnan(values)
    codes[nan] = form.nan_code or 0
    if form.nan_code is not None:
        codes[nan & negative] |= form.sign_bit
    return codes


def _round_by_spacing(
    values: NDArray[np.float64], dst: DType, mode: RoundMode
) -> tuple[Array, Array]:
    """Round by dividing by the local spacing; return codes of the magnitudes, and overflows."""
    form = float_format(dst)
    exponent = (values.view(np.int64) >> 52 & 0x7FF) - 1023
    spacing = np.maximum(exponent - (form.precision - 1), form.least_exponent)
    rounded = round_integral(values * _power_of_two(-spacing), mode) * _power_of_two(spacing)
    magnitude = np.abs(rounded)
    overflow = magnitude > form.max_finite
    magnitude[overflow] = 0
    if dst is dt.bf16:
        upper_half = magnitude.astype(np.float32).view(np.uint32) >> 16
        return upper_half.astype(np.uint16), overflow
    return magnitude.astype(dst.np).view(dst.uint), overflow


def _power_of_two(exponent: NDArray[np.int64]) -> NDArray[np.float64]:
    """2.0 ** exponent from its bits, for exponents of normal doubles."""
    return (exponent + 1023 << 52).view(np.float64)


def _round_by_position(
    values: NDArray[np.float64], dst: DType, mode: RoundMode
) -> tuple[Array, Array]:
    """Round by place on the format's ladder; return codes of the magnitudes, and overflows."""
    form = float_format(dst)
    magnitude = np.minimum(np.abs(values), form.beyond_max)
    # A quarter for below the midpoint, a half for on it, three quarters for above: all that any
    # rounding mode asks of the fraction.
    left = form.ladder.searchsorted(magnitude, "left")
    right = form.ladder.searchsorted(magnitude, "right")
    position = np.maximum(left + right - 1, 0) / 4
    index = np.abs(round_integral(np.copysign(position, values), mode)).astype(np.intp)
    overflow = index == form.magnitude_codes.size
    return form.magnitude_codes[np.where(overflow, 0, index)], overflow
