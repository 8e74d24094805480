"""assert_tile_equal: what agrees, and what is said of what does not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptokit import BLayout, Tile, TileType, device, dtype, float32
from ptokit.base.dtypes import ALL
from ptokit.testing import assert_tile_equal

FLOATS = [each for each in ALL if each.is_float and not each.stores_codes]


def message(*args: Any, **named: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_tile_equal(*args, **named)
    return str(caught.value)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_neighbours_are_one_apart(kind: Any) -> None:
    """All finite numbers of the narrow types; those around 0 of f32."""
    if kind.bits == 32:
        values = np.array([-1e-45, 0, 1e-45, 3e-45], np.float32)
    else:
        codes = np.arange(1 << kind.bits).astype(kind.uint).view(kind.np)
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values = np.unique(codes.astype(np.float64))
        values = values[np.isfinite(values)].astype(kind.np)
    below, above = values[:-1], values[1:]
    assert_tile_equal(below, above, ulp=1)
    assert_tile_equal(above, below, ulp=1)
    assert message(below, above).startswith(f"{below.size} of")
    further = values[2:]
    assert message(values[:-2], further, ulp=1).startswith(f"{further.size} of")
    assert_tile_equal(values[:-2], further, ulp=2)


def test_signs_of_zero_and_nan_agree() -> None:
    a = np.array([0.0, -0.0, np.nan, np.inf], np.float16)
    b = np.array([-0.0, 0.0, np.nan, np.inf], np.float16)
    assert_tile_equal(a, b)
    assert message(a, np.array([0, 0, 1, np.inf], np.float16)).startswith("1 of 4")
    assert message(a, np.array([0, 0, np.nan, -np.inf], np.float16), rtol=1).startswith("1 of 4")
    assert message(np.array([np.inf], "f4"), np.array([3.4e38], "f4"), atol=1e9)


def test_what_is_expected_is_rounded_to_the_type_of_the_result() -> None:
    exact = np.array([1 / 3, 2 / 3])
    assert_tile_equal(exact.astype(ml_dtypes.bfloat16), exact)
    assert message(exact.astype(np.float32) * np.float32(1.0001), exact).startswith("2 of 2")


def test_whole_numbers_are_never_rounded_or_wrapped() -> None:
    a = np.array([44, 3], np.int8)
    assert message(a, np.array([300, 3])).startswith("1 of 2")  # 300 wraps to 44
    assert message(a, np.array([44, 3.7])).startswith("1 of 2")
    assert message(np.array([2**63 - 1]), np.array([2**63 - 2])).startswith("1 of 1")
    assert_tile_equal(a, [44, 4], atol=1)


def test_one_number_stands_for_all_and_other_shapes_do_not() -> None:
    assert_tile_equal(np.full((4, 8), 3, np.float32), 3)
    assert "shapes differ: (4, 8), expected (8,)" in message(np.ones((4, 8), "f4"), np.ones(8))


def test_tiles_are_compared_by_their_valid_region() -> None:
    with device("a2a3", mode="auto"):
        tile = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 3, 5]()
        tile.fill(2)
        assert_tile_equal(tile, np.full((3, 5), 2.0))


def test_the_first_the_worst_and_where() -> None:
    a = np.zeros((32, 128), np.float32)
    b = a.copy()
    b[2, 64:] = 1e-3
    b[31, 127] = 1
    told = message(a, b).splitlines()
    assert told[0] == "65 of 4096 elements differ (f32, shape (32, 128))"
    assert told[1].startswith("  first at row 2, column 64: 0.0, expected 0.001 (")
    assert told[2].startswith("  worst at row 31, column 127: 0.0, expected 1.0 (1065353216 ulp)")
    assert "2x2 elements" in told[3]
    picture = [line.partition("|")[2] for line in told[4:]]
    assert len(picture) == 16
    assert picture[1] == " " * 32 + "+" * 32
    assert picture[15] == " " * 63 + "-"
    assert not any(picture[2:15])
    assert not picture[0]


def test_tolerances_are_named() -> None:
    told = message(np.float32([1]), np.float32([2]), ulp=3, rtol=0.1)
    assert "differ by more than ulp=3, rtol=0.1" in told


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_every_type_can_be_compared(kind: Any) -> None:
    one = np.ones((2, 4), kind.np)
    assert_tile_equal(one, one)
    other = one.copy()
    other[1, 3] = 0 if dtype(one.dtype) is not dtype("f8e8m0") else 2
    assert "first at row 1, column 3" in message(one, other)


@pytest.mark.parametrize("name", ["ulp", "rtol", "atol"])
def test_a_negative_tolerance_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=-1"):
        assert_tile_equal(np.zeros(4), np.zeros(4), **{name: -1})
