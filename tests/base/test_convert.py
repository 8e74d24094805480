"""Conversion between element types against a slow reference in exact rational arithmetic.

The reference works on one value at a time: it finds the two neighbours of the value on the grid of
the destination as fractions, lets the rounding mode choose, and applies the range. It shares no
code with the implementation.
"""

import math
import struct
from bisect import bisect_right
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit.base import dtypes as dt
from ptokit.base.convert import (
    convert,
    from_float,
    pack4,
    round_integral,
    to_float32,
    to_float64,
    unpack4,
)
from ptokit.base.dtypes import ALL, DType
from ptokit.base.enums import RoundMode, SaturationMode

MODES = [mode for mode in RoundMode if mode is not RoundMode.CAST_NONE]
RINT, ROUND, FLOOR, CEIL, TRUNC, ODD = MODES
ON, OFF = SaturationMode.ON, SaturationMode.OFF
INTS = [each for each in ALL if each.is_integer]
SMALL_FLOATS = [each for each in ALL if each.is_float and each.bits <= 8]

# ------------------------------------------------------------------------------------ the reference

Real = Fraction | str  # "inf" and "nan" beside the numbers; the sign travels separately

# precision, log2 of the smallest subnormal, NaN code
WIDE = {dt.f32: (24, -149, 0x7FC00000), dt.bf16: (8, -133, 0x7FC0), dt.f16: (11, -24, 0x7E00)}
# value after the largest, code of infinity, code of NaN
NARROW = {
    dt.f8e4m3: (480, None, 0x7F),
    dt.f8e5m2: (65536, 0x7C, 0x7E),
    dt.f8e8m0: (2**128, None, 0xFF),
    dt.hif8: (49152, 0x6F, 0x80),
    dt.f4e2m1x2: (8, None, None),
    dt.f4e1m2x2: (2, None, None),
    dt.hif4x2: (2, None, None),
}
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def hif8_magnitude(code: int) -> float:
    bits = f"{code:07b}"
    if code in (0, 0x6F):
        return 0.0 if code == 0 else math.inf
    if bits.startswith("0000"):
        return 2.0 ** (code - 23)
    for prefix, width in (("0001", 0), ("001", 1), ("01", 2), ("10", 3), ("11", 4)):
        if bits.startswith(prefix):
            rest = bits[len(prefix) :]
            exponent, mantissa = rest[:width], rest[width:]
            power = int("1" + exponent[1:], 2) if width else 0
            sign = -1 if exponent.startswith("1") else 1
            return (1 + int(mantissa, 2) / 2 ** len(mantissa)) * 2.0 ** (sign * power)
    raise AssertionError(bits)


def decode_float(code: int, src: DType) -> float:
    if src is dt.f32:
        return struct.unpack("<f", struct.pack("<I", code))[0]
    if src is dt.bf16:
        return decode_float(code << 16, dt.f32)
    if src is dt.f16:
        return struct.unpack("<e", struct.pack("<H", code))[0]
    if src is dt.hif8:
        magnitude = hif8_magnitude(code & 0x7F)
        return math.nan if code == 0x80 else -magnitude if code & 0x80 else magnitude
    if src.bits == 4:
        magnitude = E2M1[code & 7] if src is dt.f4e2m1x2 else (code & 7) / 4
        return math.copysign(magnitude, -1 if code & 8 else 1)
    return float(np.array([code], np.uint8).view(src.np)[0])


@cache
def decode(code: int, src: DType) -> tuple[Real, bool]:
    """The value of a code and whether its sign is minus."""
    if src.is_integer:
        value = code - (1 << src.bits) if src.kind == "int" and code >> src.bits - 1 else code
        return Fraction(value), value < 0
    number = decode_float(code, src)
    if math.isnan(number):
        # hif8 and e8m0 have one NaN, without a sign.
        return "nan", src not in (dt.hif8, dt.f8e8m0) and bool(code >> src.bits - 1)
    negative = math.copysign(1, number) < 0
    return ("inf" if math.isinf(number) else Fraction(number)), negative


@cache
def grid(dst: DType) -> tuple[list[Fraction], list[int], dict[Fraction, int]]:
    """All values of a small float type and their parities, one step beyond the range included."""
    finite = {code: decode(code, dst)[0] for code in range(1 << dst.bits)}
    code_of = {v: code for code, v in reversed(finite.items()) if isinstance(v, Fraction)}
    parity = {value: code & 1 for value, code in code_of.items()}
    beyond = Fraction(NARROW[dst][0])
    for end in (beyond, -beyond) if dst.is_signed else (beyond,):
        parity[end] = 1 - parity[max(code_of)]
    values = sorted(parity)
    return values, [parity[value] for value in values], code_of


@cache
def neighbours(value: Fraction, dst: DType) -> tuple[Fraction, Fraction, bool]:
    """The grid points at or below and above a value, and whether the lower one is odd."""
    if dst in NARROW:
        values, parities, _ = grid(dst)
        clipped = min(max(value, values[0]), values[-1])
        at = min(bisect_right(values, clipped), len(values) - 1) - 1
        if clipped == values[-1]:
            return values[-1], values[-1], False
        return values[at], values[at + 1], bool(parities[at])
    spacing = Fraction(1)
    if dst.is_float:
        precision, least, _ = WIDE[dst]
        size = abs(value)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        exponent -= size < Fraction(2) ** exponent
        spacing = Fraction(2) ** max(exponent - precision + 1, least)
    steps = math.floor(value / spacing)
    return steps * spacing, (steps + 1) * spacing, bool(steps % 2)


def rounded(value: Fraction, dst: DType, mode: RoundMode) -> Fraction:
    low, high, low_is_odd = neighbours(value, dst)
    clipped = min(max(value, low), high)
    if clipped in (low, high):
        return clipped
    middle = (low + high) / 2
    match mode:
        case RoundMode.CAST_FLOOR:
            return low
        case RoundMode.CAST_CEIL:
            return high
        case RoundMode.CAST_TRUNC:
            return low if value > 0 else high
        case RoundMode.CAST_ODD:
            return low if low_is_odd else high
        case RoundMode.CAST_ROUND if clipped == middle:
            return high if value > 0 else low
        case RoundMode.CAST_RINT if clipped == middle:
            return high if low_is_odd else low
        case _:
            return low if clipped < middle else high


@cache
def reference(value: Real, negative: bool, dst: DType, mode: RoundMode, sat: SaturationMode) -> int:
    """The code that a value becomes."""
    if dst.is_integer:
        mask = (1 << dst.bits) - 1
        if value == "nan":
            return 0
        if value == "inf":
            extreme = dst.min_value if negative else dst.max_value
            wrapped = 0 if negative else mask
            return int(extreme) & mask if sat == ON else wrapped
        result = int(rounded(value, dst, mode))
        if sat == ON:
            result = min(max(result, int(dst.min_value)), int(dst.max_value))
        return result & mask

    inf_code, nan_code = NARROW[dst][1:] if dst in NARROW else (None, WIDE[dst][2])
    sign = 1 << dst.bits - 1 if negative and dst.is_signed else 0
    if value == "nan":
        return 0 if nan_code is None else nan_code | sign
    if dst is dt.f8e8m0 and (value == "inf" or value < 0) and negative:
        return 0 if sat == ON else 0xFF
    result = value if value == "inf" else rounded(value, dst, mode)
    if dst is dt.f8e8m0 and result != "inf":
        result = max(result, Fraction(2) ** -127)
    largest = Fraction(dst.max_value)
    if result == "inf" or abs(result) > largest:
        if sat == ON or (inf_code is nan_code is None):
            result = -largest if negative else largest
        elif dst in NARROW:
            return (nan_code if inf_code is None else inf_code) | sign
        else:
            result = math.inf
    if dst in NARROW:
        code = grid(dst)[2][abs(result)]
        return code if dst is dt.hif8 and code == 0 else code | sign
    number = math.copysign(result, -1 if negative else 1)
    if dst is dt.f16:
        return struct.unpack("<H", struct.pack("<e", number))[0]
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    return bits >> 16 if dst is dt.bf16 else bits


def expected_codes(
    codes: list[int], src: DType, dst: DType, mode: RoundMode, sat: SaturationMode
) -> list[int]:
    if src is dst:
        return codes
    effective = OFF if (src, dst) in WIDENING else sat
    return [reference(*decode(code, src), dst, mode, effective) for code in codes]


# Pairs that keep every value, where an infinity therefore stays one even when saturating.
WIDENING = {
    *((src, dt.f32) for src in (dt.f16, dt.bf16, dt.f8e5m2, dt.hif8)),
    *((src, dst) for src in (dt.f8e5m2, dt.hif8) for dst in (dt.f16, dt.bf16)),
}


def array_of(codes: list[int], src: DType) -> np.ndarray:
    return np.array(codes, src.uint).view(src.np)


def codes_of(values: np.ndarray, dst: DType) -> list[int]:
    assert values.dtype == dst.np
    return values.view(dst.uint).tolist()


def check(codes: list[int], src: DType, dst: DType, mode: RoundMode, sat: SaturationMode) -> None:
    got = codes_of(convert(array_of(codes, src), src, dst, mode, sat), dst)
    want = expected_codes(codes, src, dst, mode, sat)
    for code, actual, expected in zip(codes, got, want, strict=True):
        if actual != expected:
            pytest.fail(
                f"{src} {code:#x} = {decode(code, src)} to {dst}, {mode.name}, {sat.name}: "
                f"got {actual:#x}, expected {expected:#x}"
            )


def check_all_ways(codes: list[int], src: DType) -> None:
    for dst in ALL:
        for mode in MODES:
            for sat in SaturationMode:
                check(codes, src, dst, mode, sat)


# ---------------------------------------------------------------------- against the reference


@pytest.mark.parametrize("src", [each for each in ALL if each.bits <= 8], ids=repr)
def test_every_value_of_small_types(src: DType):
    check_all_ways(list(range(1 << src.bits)), src)


@pytest.mark.parametrize("src", [each for each in ALL if each.bits == 16], ids=repr)
def test_sampled_values_of_16_bit_types(src: DType):
    edges = [0, 1, 0x7BFF, 0x7C00, 0x7C01, 0x7F7F, 0x7F80, 0x7FFF]
    check_all_ways([*edges, *(0x8000 | edge for edge in edges), *range(5, 1 << 16, 409)], src)


ways = st.tuples(st.sampled_from(ALL), st.sampled_from(MODES), st.sampled_from(SaturationMode))


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20), ways)
@settings(max_examples=300, deadline=None)
def test_f32(codes: list[int], way: tuple[DType, RoundMode, SaturationMode]):
    check(codes, dt.f32, *way)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20), ways)
@settings(max_examples=150, deadline=None)
def test_32_bit_integers(codes: list[int], way: tuple[DType, RoundMode, SaturationMode]):
    check(codes, dt.i32, *way)
    check(codes, dt.u32, *way)


# Few significant bits far apart: where a rounding in two steps goes wrong.
sparse = st.lists(st.integers(0, 63), max_size=4).map(lambda bits: sum({1 << b for b in bits}))


@given(st.lists(st.integers(0, 2**64 - 1) | sparse, max_size=20), ways)
@settings(max_examples=300, deadline=None)
def test_64_bit_integers(codes: list[int], way: tuple[DType, RoundMode, SaturationMode]):
    check(codes, dt.i64, *way)
    check(codes, dt.u64, *way)


@given(st.lists(st.floats(), max_size=20), ways)
@settings(max_examples=300, deadline=None)
def test_from_double(numbers: list[float], way: tuple[DType, RoundMode, SaturationMode]):
    dst = way[0]
    values = np.array(numbers, np.float64)
    got = codes_of(from_float(values, *way), dst)
    for number, actual in zip(numbers, got, strict=True):
        special = "nan" if math.isnan(number) else "inf" if math.isinf(number) else None
        value = special or Fraction(number)
        assert actual == reference(value, math.copysign(1, number) < 0, *way), number


# ------------------------------------------------------------------------- full 16-bit sweeps

ALL_16_BITS = np.arange(1 << 16, dtype=np.uint16)


def finite_16_bit(src: DType) -> tuple[np.ndarray, np.ndarray]:
    """All finite numbers of a 16-bit float type, and the same as doubles."""
    values = ALL_16_BITS.view(src.np)
    with np.errstate(invalid="ignore"):  # signalling NaNs, dropped below
        numbers = values.astype(np.float32).astype(np.float64)
    finite = np.isfinite(numbers)
    return values[finite], numbers[finite]


@pytest.mark.parametrize("dst", SMALL_FLOATS, ids=repr)
@pytest.mark.parametrize("src", [dt.f16, dt.bf16], ids=repr)
def test_16_bit_floats_to_small_floats(src: DType, dst: DType):
    values, numbers = finite_16_bit(src)
    points, parities, _ = grid(dst)
    points, parities = np.array(points, np.float64), np.array(parities)
    clipped = np.clip(numbers, points[0], points[-1])
    at = np.clip(np.searchsorted(points, clipped, "right") - 1, 0, len(points) - 2)
    low, high, low_is_odd = points[at], points[at + 1], parities[at] == 1
    to_low, to_high, positive = clipped - low, high - clipped, clipped > 0
    choose_high = {
        FLOOR: to_high == 0,
        CEIL: to_low != 0,
        TRUNC: np.where(positive, to_high == 0, to_low != 0),
        RINT: (to_low > to_high) | ((to_low == to_high) & low_is_odd),
        ROUND: (to_low > to_high) | ((to_low == to_high) & positive),
        ODD: np.where(low_is_odd, to_high == 0, to_low != 0),
    }
    for mode in MODES:
        want = np.clip(np.where(choose_high[mode], high, low), dst.min_value, dst.max_value)
        got = to_float64(convert(values, src, dst, mode), dst)
        np.testing.assert_array_equal(got, want, err_msg=mode.name)


EXACT_ROUNDING = {
    FLOOR: math.floor,
    CEIL: math.ceil,
    TRUNC: math.trunc,
    RINT: round,
    ROUND: lambda x: int(math.copysign(1, x)) * (math.floor(2 * abs(x)) + 1 >> 1),
    ODD: lambda x: math.floor(x) | (x != math.floor(x)),
}


@pytest.mark.parametrize("src", [dt.f16, dt.bf16], ids=repr)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_16_bit_floats_to_integers(src: DType, mode: RoundMode):
    values, numbers = finite_16_bit(src)
    exact = [EXACT_ROUNDING[mode](number) for number in numbers.tolist()]
    for dst in INTS:
        low, high, mask = int(dst.min_value), int(dst.max_value), (1 << dst.bits) - 1
        wrapped = [number & mask for number in exact]
        clamped = [(low if n < low else high if n > high else n) & mask for n in exact]
        assert codes_of(convert(values, src, dst, mode, OFF), dst) == wrapped
        assert codes_of(convert(values, src, dst, mode, ON), dst) == clamped


@pytest.mark.parametrize("dst", [dt.f16, dt.bf16], ids=repr)
def test_singles_around_every_midpoint(dst: DType):
    """Between all neighbours of a 16-bit type: the midpoint, one ulp less and one ulp more."""
    largest = {dt.f16: 0x7BFF, dt.bf16: 0x7F7F}[dst]
    code = np.arange(largest, dtype=np.uint16)
    middle = (to_float64(code.view(dst.np), dst) + to_float64((code + 1).view(dst.np), dst)) / 2
    middle = middle.astype(np.float32)
    # bf16 subnormals are 2^16 times coarser than f32's, so every midpoint is a float32.
    less, more = np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))
    up = np.uint16(1)
    for sign, bit in ((1, 0), (-1, 0x8000)):
        outward, inward = (CEIL, FLOOR) if sign > 0 else (FLOOR, CEIL)
        for mode, at_less, at_middle, at_more in (
            (RINT, code, code + (code & 1), code + up),
            (ROUND, code, code + up, code + up),
            (outward, code + up, code + up, code + up),
            (inward, code, code, code),
            (TRUNC, code, code, code),
            (ODD, code | up, code | up, code | up),
        ):
            for values, want in ((less, at_less), (middle, at_middle), (more, at_more)):
                got = convert(np.float32(sign) * values, dt.f32, dst, mode).view(np.uint16)
                np.testing.assert_array_equal(got, want | np.uint16(bit), err_msg=mode.name)


# ---------------------------------------------------------------------------------- facts by hand


def one(value: float, src: DType, dst: DType, mode: RoundMode = RINT, sat: SaturationMode = ON):
    """Convert one number and return the result as a number (a code for code types)."""
    return convert(np.array([value]).astype(src.np), src, dst, mode, sat)[0].item()


def test_rounding_modes_on_a_half():
    values = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.25], np.float32)
    table = {
        RINT: [-2, -2, 0, 0, 2, 2, 2],
        ROUND: [-3, -2, -1, 1, 2, 3, 2],
        FLOOR: [-3, -2, -1, 0, 1, 2, 2],
        CEIL: [-2, -1, 0, 1, 2, 3, 3],
        TRUNC: [-2, -1, 0, 0, 1, 2, 2],
        ODD: [-3, -1, -1, 1, 1, 3, 3],
    }
    for mode, want in table.items():
        assert convert(values, dt.f32, dt.i32, mode).tolist() == want, mode
        integral = round_integral(values, mode)
        assert integral.dtype == np.float32
        assert integral.tolist() == want, mode
    assert (round_integral(values, RoundMode.CAST_NONE) == round_integral(values, RINT)).all()


def test_round_integral_keeps_what_is_not_a_fraction():
    kept = np.array([-0.0, np.inf, -np.inf, np.nan, 2.0**60, -3.0])
    for mode in MODES:
        np.testing.assert_array_equal(round_integral(kept, mode), kept)
        assert np.signbit(round_integral(kept, mode)).tolist() == np.signbit(kept).tolist()
    # The classic trap of floor(x + 0.5), in both precisions.
    assert round_integral(np.array([np.nextafter(0.5, 0)]), ROUND)[0] == 0
    assert round_integral(np.array([np.nextafter(np.float32(0.5), 0)], np.float32), ROUND)[0] == 0


def test_device_facts_of_float_to_integer():
    assert one(math.nan, dt.f32, dt.i32) == one(math.nan, dt.f32, dt.i32, sat=OFF) == 0
    assert (one(math.inf, dt.f16, dt.i16), one(-math.inf, dt.f16, dt.i16)) == (32767, -32768)
    assert (one(math.inf, dt.f16, dt.i16, sat=OFF), one(-math.inf, dt.f16, dt.i16, sat=OFF)) == (
        -1,
        0,
    )
    assert one(math.inf, dt.f16, dt.u8, sat=OFF) == 255
    assert one(300.0, dt.f16, dt.u8, sat=OFF) == 44
    assert one(-1.0, dt.f16, dt.u8, sat=OFF) == 255
    assert one(3e9, dt.f32, dt.i32) == 2**31 - 1
    assert one(-9.0, dt.f16, dt.i4) == 0x8


def test_device_facts_of_float_destinations():
    assert one(1e6, dt.f32, dt.f8e4m3) == 448
    assert math.isnan(one(1e6, dt.f32, dt.f8e4m3, sat=OFF))
    assert (one(1e6, dt.f32, dt.f16), one(1e6, dt.f32, dt.f16, sat=OFF)) == (65504, math.inf)
    assert (one(70000, dt.i32, dt.f16), one(-70000, dt.i32, dt.f16)) == (65504, -65504)
    assert one(100.0, dt.bf16, dt.f4e2m1x2) == one(100.0, dt.bf16, dt.f4e2m1x2, sat=OFF) == 0x7
    assert one(2.5, dt.bf16, dt.f4e2m1x2) == 0x4  # a tie: 2 has the even code, 3 the odd one
    assert one(-100.0, dt.bf16, dt.f4e1m2x2) == 0xF
    assert one(40959.0, dt.f32, dt.hif8, ROUND, OFF) == 0x6E
    assert one(40960.0, dt.f32, dt.hif8, ROUND, OFF) == 0x6F
    assert one(-0.0, dt.f32, dt.hif8) == 0
    assert one(-0.0, dt.f32, dt.f4e2m1x2) == 0x8


def test_infinities_stay_when_the_pair_is_exact():
    assert one(math.inf, dt.f16, dt.f32) == math.inf
    assert one(-math.inf, dt.bf16, dt.f32) == -math.inf
    assert one(math.inf, dt.f32, dt.bf16) == dt.bf16.max_value


@pytest.mark.parametrize(
    ("dst", "largest", "beyond", "tie_stays"),
    [
        (dt.f32, dt.f32.max_value, 2.0**128, False),
        (dt.bf16, dt.bf16.max_value, 2.0**128, False),
        (dt.f16, 65504, 65536, False),
        (dt.f8e5m2, 57344, 65536, False),
        (dt.f8e4m3, 448, 480, True),
        (dt.f8e8m0, 2.0**127, 2.0**128, True),
        (dt.hif8, 32768, 49152, True),
    ],
    ids=repr,
)
def test_overflow_begins_where_rounding_leaves_the_range(
    dst: DType, largest: float, beyond: float, tie_stays: bool
):
    middle = (largest + beyond) / 2
    below, above, last = np.nextafter([middle, middle, beyond], [0, np.inf, 0]).tolist()
    for mode, number, stays in (
        (RINT, below, True),
        (RINT, middle, tie_stays),
        (RINT, above, False),
        (ROUND, middle, False),
        (TRUNC, last, True),
        (TRUNC, beyond, False),
        (CEIL, below, False),
    ):
        value = np.array([number], np.float64)
        assert to_float64(from_float(value, dst, mode, ON), dst).tolist() == [largest]
        unclamped = to_float64(from_float(value, dst, mode, OFF), dst)
        assert (unclamped.tolist() == [largest]) is stays, (mode, number)


def test_singles_overflow_bf16_by_rounding():
    edge = np.array([0x7F7F_7FFF, 0x7F7F_8000, 0xFF7F_FFFF], np.uint32)
    for sat, want in ((ON, [0x7F7F, 0x7F7F, 0xFF7F]), (OFF, [0x7F7F, 0x7F80, 0xFF80])):
        for alone in range(3):  # alone, so that no other value makes it a special case
            single = edge[alone : alone + 1].view(np.float32)
            got = convert(single, dt.f32, dt.bf16, RINT, sat)
            assert codes_of(got, dt.bf16) == [want[alone]]


@pytest.mark.parametrize("src", [dt.f32, dt.f16], ids=repr)
def test_the_first_integer_out_of_range_is_clamped(src: DType):
    """Alone in its array, so that nothing else sends the array along the careful path."""
    for dst in INTS:
        low, high, mask = int(dst.min_value), int(dst.max_value), (1 << dst.bits) - 1
        # The next float below a large negative power of two is not that power minus one.
        for beyond, clamped in ((high + 1, high), (low * 2 - 1, low)):
            if abs(beyond) <= src.max_value:
                value = np.array([float(beyond)]).astype(src.np)
                assert codes_of(convert(value, src, dst), dst) == [clamped & mask], (dst, beyond)


@pytest.mark.parametrize("exponent", range(30, 63))
def test_64_bit_integers_round_once(exponent: int):
    """One above a tie: a double drops the one and leaves the tie."""
    for src in (dt.i64, dt.u64):
        for dst, precision in ((dt.f32, 24), (dt.bf16, 8)):
            spacing = 1 << exponent - precision + 1
            value = np.array([(1 << exponent) + spacing // 2 + 1], src.np)
            for mode in (RINT, ODD, CEIL):
                got = float(convert(value, src, dst, mode)[0])
                assert got == (1 << exponent) + spacing, (src, dst, mode)
            assert float(convert(value, src, dst, FLOOR)[0]) == 1 << exponent


def test_nans_become_the_quiet_nan_of_the_destination_with_its_sign():
    nans = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    for dst, want in (
        (dt.f16, [0x7E00, 0xFE00]),
        (dt.bf16, [0x7FC0, 0xFFC0]),
        (dt.f8e4m3, [0x7F, 0xFF]),
    ):
        assert codes_of(convert(nans, dt.f32, dst), dst) == want
    half_nans = np.array([0x7C01, 0xFFFF], np.uint16)
    assert codes_of(convert(half_nans.view(np.float16), dt.f16, dt.f32), dt.f32) == [
        0x7FC00000,
        0xFFC00000,
    ]
    bf16_nans = np.array([0x7F81, 0xFF81], np.uint16).view(ml_dtypes.bfloat16)
    assert codes_of(convert(bf16_nans, dt.bf16, dt.f16), dt.f16) == [0x7E00, 0xFE00]


def test_cast_none_is_nearest_even():
    values = np.linspace(-3, 3, 97, dtype=np.float32)
    for dst in ALL:
        none = convert(values, dt.f32, dst, RoundMode.CAST_NONE)
        assert codes_of(none, dst) == codes_of(convert(values, dt.f32, dst, RINT), dst)


# ------------------------------------------------------------------------------ arrays and decoding


@pytest.mark.parametrize("dst", ALL, ids=repr)
def test_shapes_strides_and_freshness(dst: DType):
    values = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
    values[0, 0] = np.inf  # takes the path of special cases as well
    whole = convert(values, dt.f32, dst)
    assert whole.shape == (3, 4)
    assert codes_of(convert(values[:, ::2], dt.f32, dst), dst) == codes_of(
        whole[:, ::2].copy(), dst
    )
    assert codes_of(convert(values.T, dt.f32, dst), dst) == codes_of(whole.T.copy(), dst)
    assert convert(values[:0], dt.f32, dst).shape == (0, 4)
    scalar = convert(values[0, 0].reshape(()), dt.f32, dst)
    assert scalar.shape == ()
    assert codes_of(scalar, dst) == codes_of(whole, dst)[0][0]
    assert not np.shares_memory(whole, values)
    whole.view(dst.uint)[...] = 0  # writable


def test_the_array_must_have_the_storage_type():
    with pytest.raises(TypeError, match=r"^expected an array of float16 for f16, got float32$"):
        convert(np.zeros(1, np.float32), dt.f16, dt.f32)
    with pytest.raises(TypeError, match=r"^expected float32 or float64 values, got float16$"):
        from_float(np.zeros(1, np.float16), dt.f32)


def test_a_4_bit_code_above_15_is_an_error():
    for src in (dt.i4, dt.f4e2m1x2):
        with pytest.raises(IndexError):
            convert(np.array([16], np.uint8), src, dt.f32)


@pytest.mark.parametrize("src", [each for each in ALL if each.bits <= 8], ids=repr)
def test_decoding(src: DType):
    codes = list(range(1 << src.bits))
    values = array_of(codes, src)
    for decoded, dtype in (
        (to_float32(values, src), np.float32),
        (to_float64(values, src), np.float64),
    ):
        assert decoded.dtype == dtype
        for code, number in zip(codes, decoded.tolist(), strict=True):
            value, negative = decode(code, src)
            assert math.isnan(number) if value == "nan" else abs(number) == abs(float(value))
            assert value == "nan" or (math.copysign(1, number) < 0) == negative


def test_decoding_refuses_to_round():
    with pytest.raises(ValueError, match=r"^float32 does not hold every i32; use convert\(\)"):
        to_float32(np.zeros(1, np.int32), dt.i32)
    with pytest.raises(ValueError, match=r"^float64 does not hold every u64$"):
        to_float64(np.zeros(1, np.uint64), dt.u64)
    assert to_float64(np.array([2**31 - 1], np.int32), dt.i32)[0] == 2**31 - 1


def test_packing_puts_the_even_element_in_the_low_nibble():
    codes = np.array([[1, 2, 3, 4], [15, 0, 8, 7]], np.uint8)
    packed = pack4(codes)
    assert packed.tolist() == [[0x21, 0x43], [0x0F, 0x78]]
    assert unpack4(packed).tolist() == codes.tolist()
    with pytest.raises(ValueError, match=r"^cannot pack an odd number of 4-bit elements: 3$"):
        pack4(codes[:, :3])
