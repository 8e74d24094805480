"""Element types: spellings, sizes, pad patterns, and what every code of a small float means."""

import copy
import math
import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ptokit.base import dtypes as dt
from ptokit.base.dtypes import ALL, DType, dtype
from ptokit.base.enums import PadCustom, PadValue, PadValueCustom, PadValueCustom16
from ptokit.base.floatformat import float_format, holds_every_value_of

SPEC = Path(__file__).parents[3] / "shared" / "spec"
SMALL_FLOATS = [each for each in ALL if each.is_float and each.bits <= 8]


def load_spec(name: str):
    if not (SPEC / name).exists():
        pytest.skip("the specification does not lie beside the checkout")
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((SPEC / name).read_text())


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("f32", dt.f32),
        ("float", dt.f32),
        ("float32", dt.f32),
        ("half", dt.f16),
        ("float16", dt.f16),
        ("bfloat16_t", dt.bf16),
        ("int8_t", dt.i8),
        ("si32", dt.i32),
        ("ui32", dt.u32),
        ("uint64", dt.u64),
        ("int4b_t", dt.i4),
        ("f8E4M3", dt.f8e4m3),
        ("f8E4M3FN", dt.f8e4m3),
        ("float8_e5m2_t", dt.f8e5m2),
        ("f8E8M0FNU", dt.f8e8m0),
        ("hifloat8", dt.hif8),
        ("f4E2M1FN", dt.f4e2m1x2),
        ("float4_e1m2x2_t", dt.f4e1m2x2),
        ("hifloat4x2_t", dt.hif4x2),
        (float, dt.f32),
        (int, dt.i32),
        (np.float16, dt.f16),
        (np.dtype("uint16"), dt.u16),
        (np.uint8, dt.u8),
        (ml_dtypes.bfloat16, dt.bf16),
        (np.dtype(ml_dtypes.float8_e4m3fn), dt.f8e4m3),
        (ml_dtypes.int4, dt.i4),
        (dt.hif8, dt.hif8),
    ],
)
def test_every_spelling_names_the_one_object(spelling: object, expected: DType):
    assert dtype(spelling) is expected


def test_module_names_are_bound_to_the_objects_they_spell():
    for name, value in vars(dt).items():
        if isinstance(value, DType):
            assert dtype(name) is value, name
    assert dt.half is dt.float16 is dt.f16
    assert dt.int4b_t is dt.int4 is dt.i4


def test_no_spelling_is_claimed_twice():
    claimed = [name for each in ALL for name in {each.name, each.cpp, each.mlir, *each.aliases}]
    assert len(claimed) == len(set(claimed))


@pytest.mark.parametrize(
    ("spelling", "sentence"),
    [
        ("f8e4m4", "'f8e4m4' is not a PTO element type; did you mean 'f8e4m3'?"),
        ("F32", "'F32' is not a PTO element type; did you mean 'f32'?"),
        ("float64", "'float64' is not a PTO element type; PTO has no 64-bit float, use f32"),
        (np.float64, "NumPy's float64 is not a PTO element type; PTO has no 64-bit float, use f32"),
        (
            ml_dtypes.float8_e4m3,
            "NumPy's float8_e4m3 is not a PTO element type; it has infinities, PTO's e4m3 is "
            "ml_dtypes.float8_e4m3fn",
        ),
        (np.dtype(">f4"), "NumPy's >f4 is not a PTO element type"),
        (
            7,
            "7 does not name a PTO element type; try one of "
            + ", ".join(each.name for each in ALL),
        ),
    ],
)
def test_an_unknown_type_is_refused_with_advice(spelling: object, sentence: str):
    with pytest.raises(ValueError, match="element type") as caught:
        dtype(spelling)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("each", ALL, ids=repr)
def test_identity_survives_pickle_and_copy(each: DType):
    assert pickle.loads(pickle.dumps(each)) is each
    assert copy.copy(each) is each
    assert copy.deepcopy([each])[0] is each
    assert {each: 1}[each] == 1
    assert repr(each) == each.name


def test_sizes_and_kinds():
    assert {each.name: (each.bits, each.itemsize) for each in ALL if each.is_packed} == {
        "i4": (4, 1),
        "f4e2m1x2": (4, 1),
        "f4e1m2x2": (4, 1),
        "hif4x2": (4, 1),
    }
    assert {each.name for each in ALL if each.stores_codes} == {
        *("i4", "hif8", "f4e2m1x2", "f4e1m2x2", "hif4x2"),
    }
    assert {each.name for each in ALL if not each.is_signed} == {
        "u8",
        "u16",
        "u32",
        "u64",
        "f8e8m0",
    }
    assert (dt.f16.uint, dt.f32.uint, dt.hif8.uint) == (np.uint16, np.uint32, np.uint8)
    for each in ALL:
        assert each.np.itemsize == each.itemsize
        assert each.is_float is (each.kind == "float") is not each.is_integer


def test_ranges():
    assert (dt.i4.min_value, dt.i4.max_value) == (-8, 7)
    assert (dt.i64.min_value, dt.i64.max_value) == (-(2**63), 2**63 - 1)
    assert (dt.u32.min_value, dt.u32.max_value) == (0, 2**32 - 1)
    assert dt.bf16.max_value == float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    assert dt.f32.max_value == float(np.finfo(np.float32).max)
    for each in SMALL_FLOATS:
        values = float_format(each).values
        assert values is not None
        finite = values[np.isfinite(values)]
        assert (each.min_value, each.max_value) == (finite.min(), finite.max())


@pytest.mark.parametrize(
    ("each", "minimum", "maximum"),
    [
        (dt.i8, 0x80, 0x7F),
        (dt.u8, 0x00, 0xFF),
        (dt.i16, 0x8000, 0x7FFF),
        (dt.u16, 0, 0xFFFF),
        (dt.i32, 0x8000_0000, 0x7FFF_FFFF),
        (dt.u32, 0, 0xFFFF_FFFF),
        (dt.f16, 0xFC00, 0x7C00),
        (dt.bf16, 0xFF80, 0x7F80),
        (dt.f32, 0xFF80_0000, 0x7F80_0000),
        (dt.i64, 0, 0),
        (dt.u64, 0, 0),
        (dt.f8e4m3, 0, 0),
        (dt.hif8, 0, 0),
        (dt.f4e2m1x2, 0, 0),
    ],
)
def test_pad_patterns(each: DType, minimum: int, maximum: int):
    assert each.pad_bits(PadValue.Min) == minimum
    assert each.pad_bits(PadValue.Max) == maximum
    assert each.pad_bits(PadValue.Null) == each.pad_bits(PadValue.Zero) == 0


def test_custom_pads_use_the_low_bits_the_type_stores():
    assert dt.f32.pad_bits(PadCustom(-1.0)) == 0xBF80_0000
    assert dt.f16.pad_bits(PadValueCustom16(0x3C00)) == 0x3C00
    assert dt.i8.pad_bits(PadValueCustom(0x1234_56A5)) == 0xA5
    assert dt.i64.pad_bits(PadValueCustom(7)) == 0
    assert dt.f8e5m2.pad_bits(PadValueCustom(7)) == 0


def test_a_pad_value_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"^0x9 is neither a PadValue nor a custom pad value$"):
        dt.f32.pad_bits(9)


# ------------------------------------------------------------------------------- number formats


@pytest.mark.parametrize(
    ("each", "facts"),
    [
        (dt.f8e4m3, {0x01: 2**-9, 0x08: 2**-6, 0x38: 1, 0x7E: 448, 0x7F: math.nan, 0xFF: math.nan}),
        (dt.f8e5m2, {0x01: 2**-16, 0x7B: 57344, 0x7C: math.inf, 0xFC: -math.inf, 0xFD: math.nan}),
        (dt.f8e8m0, {0x00: 2.0**-127, 0x7F: 1, 0xFE: 2.0**127, 0xFF: math.nan}),
        (dt.f4e2m1x2, dict(enumerate([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5])) | {15: -6}),
        (dt.f4e1m2x2, dict(enumerate([0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75])) | {15: -1.75}),
        (dt.hif8, {0x01: 2**-22, 0x07: 2**-16, 0x08: 1, 0x10: 2, 0x18: 0.5, 0x1F: 0.9375}),
        (dt.hif8, {0x20: 4, 0x2F: 15, 0x38: 0.125, 0x40: 16, 0x5F: 0.013671875, 0x60: 256}),
        (dt.hif8, {0x6E: 32768, 0x6F: math.inf, 0x7F: 4.57763671875e-05, 0x80: math.nan}),
        (dt.hif8, {0x88: -1, 0xEF: -math.inf, 0xEE: -32768}),
    ],
)
def test_decoded_values(each: DType, facts: dict[int, float]):
    values = float_format(each).values
    assert values is not None
    assert values.size == 1 << each.bits
    for code, fact in facts.items():
        np.testing.assert_equal(float(values[code]), fact, err_msg=f"code {code:#x}")
        if fact == 0:
            assert math.copysign(1, values[code]) == math.copysign(1, fact)


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "hif8"])
def test_decode_tables_of_the_specification(name: str):
    formats = {each["name"]: each for each in load_spec("formats.yaml")["number_formats"]}
    listed = [float(value) for value in formats[name]["decode_0x00_0x7F"]]
    values = float_format(dtype(name)).values
    assert values is not None
    np.testing.assert_array_equal(values[:0x80], listed)
    np.testing.assert_array_equal(values[0x81:], np.negative(listed[1:]))


def test_types_of_the_specification():
    for row in load_spec("types.yaml")["dtypes"]:
        if row["name"] == "tf32":  # a matmul mode, not a storage type
            continue
        each = dtype(row["cpp"])
        assert dtype(row["name"]) is each
        assert (each.bits, each.itemsize) == (row["bits"], row["storage_bytes"])
        for pad, bits in row.get("pad_bits", {}).items():
            assert each.pad_bits(PadValue[pad]) == int(bits, 16), (each, pad)


@pytest.mark.parametrize("each", SMALL_FLOATS, ids=repr)
def test_positions_and_codes_have_the_same_parity(each: DType):
    """Rounding decides "even" by position; it must mean an even last bit of the code."""
    codes = float_format(each).magnitude_codes
    assert list(codes & 1) == [position % 2 for position in range(codes.size)]
    ladder = float_format(each).ladder
    assert (np.diff(ladder) > 0).all()


def test_which_float_types_hold_each_other():
    assert holds_every_value_of(dt.f32, dt.bf16)
    assert holds_every_value_of(dt.f16, dt.hif8)
    assert holds_every_value_of(dt.hif8, dt.f4e2m1x2)
    assert not holds_every_value_of(dt.hif8, dt.f8e4m3)  # 240 needs three mantissa bits
    assert not holds_every_value_of(dt.bf16, dt.f16)
    assert not holds_every_value_of(dt.f16, dt.bf16)
    assert not holds_every_value_of(dt.f8e4m3, dt.f16)
