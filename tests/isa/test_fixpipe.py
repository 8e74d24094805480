"""The conversion of accumulator values, against plain definitions, number by number."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptokit.base import dtypes as dt
from ptokit.base.convert import to_float64
from ptokit.base.layout import Array
from ptokit.isa.fixpipe import convert_out, store_conversions, tile_conversions
from ptokit.isa.samples import Sample, parse
from ptokit.isa.spec import INSTRUCTIONS, Rule
from ptokit.isa.targets import A5, CPU, KIRIN9030, KIRINX90, TARGETS

DEVICES = ("a2a3", "a5", "kirin9030", "kirinx90")
singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
scales = st.floats(2.0**-20, 2.0**20, width=32)
offsets = st.integers(-256, 255)


def word(scale: float, offset: int = 0, signed: bool = False, shift: int = 1) -> int:
    """A quantisation word with these fields."""
    bits = struct.unpack("<I", struct.pack("<f", scale))[0]
    return bits | (shift - 1) << 32 | (offset & 0x1FF) << 37 | signed << 46


def kept(scale: float) -> np.float32:
    """What the hardware keeps of a scale: 10 mantissa bits."""
    return np.uint32(word(scale) & 0xFFFF_E000).view(np.float32)


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def b8(x: float, scale: float, offset: int, signed: bool) -> int:
    """One 8-bit result, as the word's description says."""
    product = float(np.float32(x) * kept(scale))
    rounded = clamp(round(min(max(product, -1000.0), 1000.0)), -256, 255)
    low, high = (-128, 127) if signed else (0, 255)
    return clamp(rounded + offset, low, high)


@given(st.lists(singles, min_size=1, max_size=8), scales, offsets, st.booleans())
def test_float_to_b8(values: list[float], scale: float, offset: int, signed: bool) -> None:
    dst = dt.i8 if signed else dt.u8
    with np.errstate(over="ignore"):
        expected = [b8(x, scale, offset, signed) for x in values]
        got = convert_out(
            np.array(values, np.float32), dt.f32, dst, word=word(scale, offset, signed)
        )
    assert got.dtype == dst.np
    assert got.tolist() == expected


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=8), scales, offsets)
def test_int32_to_b8(values: list[int], scale: float, offset: int) -> None:
    got = convert_out(np.array(values, np.int32), dt.i32, dt.u8, word=word(scale, offset))
    assert got.tolist() == [b8(float(np.float32(x)), scale, offset, False) for x in values]


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=8), st.integers(1, 16))
def test_int32_to_int16_shifts_and_saturates(values: list[int], shift: int) -> None:
    for target in ("a2a3", "cpu"):
        got = convert_out(
            np.array(values, np.int32),
            dt.i32,
            dt.i16,
            word=word(1.0, shift=shift),
            target=TARGETS[target],
        )
        assert got.tolist() == [clamp(x >> shift, -(2**15), 2**15 - 1) for x in values]


def test_kirin_scales_to_int16() -> None:
    values = np.array([3, -5, 100_000, -100_000], np.int32)
    got = convert_out(values, dt.i32, dt.i16, word=word(0.5), target=KIRIN9030)
    assert got.tolist() == [2, -2, 32767, -32768]  # ties to even


def test_one_word_per_column() -> None:
    values = np.arange(12, dtype=np.int32).reshape(3, 4)
    words = np.array([word(2.0**k) for k in range(4)], np.uint64)
    got = convert_out(values, dt.i32, dt.f16, word=words)
    assert np.array_equal(got, values * [1, 2, 4, 8])


def test_devices_drop_the_low_bits_of_the_scale() -> None:
    precise = struct.unpack("<f", struct.pack("<I", 0x3F80_1FFF))[0]  # 1 + 0.00097...
    values = np.full(1, 2.0**20, np.float32)
    on_device = convert_out(values, dt.f32, dt.f32, word=word(precise), target=A5)
    assert on_device[0] == 2.0**20
    simulated = convert_out(values, dt.f32, dt.f32, word=word(precise), target=CPU)
    assert simulated[0] == np.float32(2.0**20) * np.float32(precise)
    per_column = np.array([word(precise)], np.uint64)
    assert convert_out(values, dt.f32, dt.f32, word=per_column, target=CPU)[0] == 2.0**20


def test_the_simulator_adds_the_offset_before_rounding() -> None:
    values = np.array([0.5, 1.5, 2.5], np.float32)
    assert convert_out(values, dt.f32, dt.u8, word=word(1.0, 1)).tolist() == [1, 3, 3]
    assert convert_out(values, dt.f32, dt.u8, word=word(1.0, 1), target=CPU).tolist() == [2, 2, 4]


@pytest.mark.parametrize("target", [*DEVICES, "cpu"])
def test_plain_identity_keeps_bits(target: str) -> None:
    values = np.array([0x7FC1_2345, 0x8000_0000, 0x7F80_0000], np.uint32).view(np.float32)
    got = convert_out(values, dt.f32, dt.f32, target=TARGETS[target])
    assert np.array_equal(got.view(np.uint32), values.view(np.uint32))


def test_half_saturates_and_bfloat16_overflows() -> None:
    large = np.array([70000.0, -np.inf, 3.4e38, np.nan], np.float32)
    half = convert_out(large, dt.f32, dt.f16)
    assert half[:3].tolist() == [65504, -65504, 65504]
    assert np.isnan(half[3])
    brain = convert_out(large, dt.f32, dt.bf16).astype(np.float32)
    assert brain[1:3].tolist() == [-np.inf, np.inf]
    assert convert_out(large, dt.f32, dt.f16, target=CPU)[0] == np.inf  # a C cast
    scaled = convert_out(large, dt.f32, dt.f16, word=word(1.0), target=CPU)
    assert scaled[:2].tolist() == [65504, -np.inf]


@pytest.mark.parametrize(
    ("dst", "value", "expected"),
    [
        (dt.f8e4m3, 1000.0, 448.0),
        (dt.f8e4m3, 1.0625, 1.0),  # a tie goes to even
        (dt.hif8, 1.0625, 1.125),  # a tie goes away from zero
        (dt.hif8, 1e9, 32768.0),
        (dt.bf16, 1.00390625, 1.0),
        (dt.f32, 0.1, np.float32(0.1)),
    ],
)
def test_quantised_floats_of_a5(dst: dt.DType, value: float, expected: float) -> None:
    got = convert_out(np.array([value], np.float32), dt.f32, dst, word=word(1.0), target=A5)
    assert to_float64(got, dst)[0] == expected


def test_nan_counts_as_zero_in_integers() -> None:
    values = np.array([np.nan, np.inf, -np.inf], np.float32)
    got = convert_out(values, dt.f32, dt.i8, word=word(1.0, 5, signed=True))
    assert got.tolist() == [5, 127, -128]


@pytest.mark.parametrize("dst", [dt.f16, dt.bf16, dt.f32, dt.i8, dt.hif8, dt.f8e4m3])
def test_relu(dst: dt.DType) -> None:
    values = np.array([-3.0, -0.0, 0.0, 2.0, np.nan], np.float32)
    quantise = None if dst in (dt.f16, dt.bf16, dt.f32) else word(1.0, signed=True)
    got = convert_out(values, dt.f32, dst, word=quantise, relu=True, target=A5)
    numbers = to_float64(got, dst)
    assert numbers[:4].tolist() == [0, 0, 0, 2]
    assert not np.signbit(numbers[:3]).any()
    assert np.isnan(numbers[4]) or dst.is_integer


def test_modes_without_a_meaning_copy() -> None:
    values = np.array([1.5], np.float16)
    assert convert_out(values, dt.f16, dt.f16, word=word(9.0), target=KIRINX90)[0] == 1.5


# ---- the legal pairs ---------------------------------------------------------------------------


def accepted(rules: list[Rule], target: str, quantised: bool) -> set[tuple[str, str]]:
    """The pairs no rule of the target objects to."""
    found: set[tuple[str, str]] = set()
    profile = TARGETS[target]
    for src in dt.ALL:
        for dst in dt.ALL:
            operands: dict[str, Any] = {
                "dst": parse("Mat {T} 32x32 NZ", dst, profile),
                "src": parse("Acc {T} 32x32", src, profile),
                "preQuantScalar": 1 if quantised else None,
                "fp": None,
            }
            ops = Sample(INSTRUCTIONS["TMOV"], profile, operands, {}).facts()
            if all(r.holds(ops) for r in rules if r.targets is None or target in r.targets):
                found.add((src.name, dst.name))
    return found


def pairs(text: str) -> set[tuple[str, str]]:
    return {tuple(p.split(",")) for p in text.split()}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("target", "plain", "quantised"),
    [
        ("a2a3", "f32,f16 f32,bf16", "f32,i8 i32,i8 i32,u8 i32,f16 i32,i16"),
        (
            "a5",
            "f32,f16 f32,bf16 f32,f32 i32,i32",
            "f32,i8 f32,u8 f32,hif8 f32,f16 f32,bf16 f32,f8e4m3 f32,f32 "
            "i32,i8 i32,u8 i32,f16 i32,bf16",
        ),
        (
            "kirin9030",
            "f16,f16 i32,i32",
            "f16,f16 f16,i8 f16,u8 f16,i16 i32,f16 i32,i8 i32,u8 i32,i16",
        ),
    ],
)
def test_pairs_of_the_moves(target: str, plain: str, quantised: str) -> None:
    assert accepted(tile_conversions(), target, quantised=False) == pairs(plain)
    assert accepted(tile_conversions(), target, quantised=True) == pairs(quantised)


def test_pairs_of_the_stores() -> None:
    plain = pairs("f32,f32 f32,f16 f32,bf16 i32,i32")
    assert accepted(store_conversions(), "a2a3", quantised=False) == plain
    quantised = pairs("f32,i8 f32,u8 i32,i8 i32,u8 i32,f16")
    assert accepted(store_conversions(), "a2a3", quantised=True) == quantised


def test_a_matrix_keeps_its_shape() -> None:
    values: Array = np.zeros((3, 5), np.float32)
    for dst, given_word in ((dt.i8, word(1.0)), (dt.f16, None), (dt.i16, word(1.0))):
        assert convert_out(values, dt.f32, dst, word=given_word).shape == (3, 5)
