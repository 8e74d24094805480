"""Microscaling over tiles that are not declared as they should be: the storage is what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.layout import Array
from tests.isa.raw import Raw, tile, warned

FP8, FP4 = MxQuantAlg.OcpMxFp8E4M3, MxQuantAlg.OcpMxFp4E2M1


def numbers(kind: str, count: int) -> Array:
    return np.random.default_rng(3).integers(-40, 40, count).astype(kind)


def quantised(axis: int, alg: Any, tiles: list[str], values: Array) -> tuple[Array, set[str]]:
    """The memory after quantising with tiles of these types, 8 KB apart, and the warnings."""
    with device("a5") as machine:
        raw = Raw()
        raw.put(0x2000, values)
        TQUANT[axis, alg](*(tile(text, 0x2000 * index) for index, text in enumerate(tiles)))
        return raw.memory.data.copy(), warned(machine)


ROWS = ["Vec i8 64x64", "Vec f16 64x64 valid 64x40", "Vec u8 64x32", "Vec f16 1x256"]
ROWS += ROWS[-1:]


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("axis", [0, 1])
def test_storage_is_taken_for_rows(axis: int, index: int) -> None:
    """A column-major tile has the same bytes as a row-major one of its Cols."""
    tiles = list(ROWS) if axis else [*ROWS[:2], "Vec u8 2x64", "Vec f16 2x64", "Vec f16 2x64"]
    values = numbers("f2", 64 * 64)
    expected, quiet = quantised(axis, FP8, tiles, values)
    head, _, valid = tiles[index].partition(" valid ")
    tiles[index] = f"{head} DN" + (f" valid {valid}" if valid else "")
    held, told = quantised(axis, FP8, tiles, values)
    assert (held == expected).all()
    assert told - quiet == {f"TQUANT_{'MX' if axis else 'DN'}.row-major"}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("alg", [FP8, FP4])
def test_rows_of_codes_have_a_distance_of_their_own(axis: int, alg: Any) -> None:
    """It is that of src, except for 8-bit codes down a column: those lie dst.Cols apart."""
    code = "i8" if alg is FP8 else "f4e2m1x2"
    rest = ["Vec u8 64x32", "Vec f16 1x256"] if axis else ["Vec u8 2x64", "Vec f16 2x64"]
    tiles = [f"Vec {code} 64x64", "Vec f16 64x64", *rest, rest[-1]]
    values = numbers("f2", 64 * 64)
    expected, quiet = quantised(axis, alg, tiles, values)
    held, told = quantised(axis, alg, [f"Vec {code} 64x128", *tiles[1:]], values)
    size = 64 if alg is FP8 else 32
    codes = expected[: 64 * size].reshape(64, size)
    pitch = 128 if alg is FP8 and not axis else size
    found = np.lib.stride_tricks.as_strided(held, (64, size), (pitch, 1))
    assert (found == codes).all()
    assert told - quiet == {f"TQUANT_{'MX' if axis else 'DN'}.shape"}


@pytest.mark.parametrize("interleave", [False, True])
def test_whole_groups_of_rows_are_quantised(interleave: bool) -> None:
    """What lies in the rows past the valid ones takes part."""
    exp = "Vec u8 1x128" if interleave else "Vec u8 2x64"
    rest = [exp, "Vec f16 2x64", "Vec f16 2x64"]
    alg = (FP8, True) if interleave else (FP8,)
    values = numbers("f2", 64 * 64)
    held, codes = list[Array](), list[set[str]]()
    for valid in ("", " valid 40x64"):
        with device("a5") as machine:
            raw = Raw()
            raw.put(0x2000, values)
            tiles = ["Vec i8 64x64", f"Vec f16 64x64{valid}", *rest]
            TQUANT[0, *alg](*(tile(text, 0x2000 * index) for index, text in enumerate(tiles)))
            held.append(raw.memory.data.copy())
            codes.append(warned(machine))
    assert (held[0] == held[1]).all()
    own = {"TQUANT_DN.groups"} | ({"TQUANT_DN.interleaved-valid"} if interleave else set())
    assert codes == [set(), own]


# ---- products ----------------------------------------------------------------------------------


def product(scales: tuple[str, str]) -> tuple[Array, set[str]]:
    with device("a5") as machine:
        for loc in (TileType.Left, TileType.Right):
            Raw(loc).put(0, np.full(65536, 0x38, np.uint8))
        for loc in (TileType.ScaleLeft, TileType.ScaleRight, TileType.Vec, TileType.Mat):
            raw = Raw(loc)
            bytes_ = np.random.default_rng(int(loc)).integers(120, 134, raw.memory.nbytes)
            raw.put(0, bytes_.astype(np.uint8))
        a, b = tile("Left f8e4m3 32x128", 0), tile("Right f8e4m3 128x64", 0)
        c, (left, right) = tile("Acc f32 32x64", 0), (tile(text, 0) for text in scales)
        TMATMUL_MX(c, a, left, b, right)
        return c.numpy(), warned(machine)


@pytest.mark.parametrize(
    ("scales", "code"),
    [
        (("ScaleLeft f8e8m0 16x2", "ScaleRight f8e8m0 4x64"), "scale-shape"),
        (("ScaleLeft f8e8m0 32x4", "ScaleRight f8e8m0 2x16"), "scale-shape"),
        (("Mat f8e8m0 32x32", "ScaleRight f8e8m0 4x64"), "scale-location"),
        (("ScaleRight f8e8m0 32x4", "ScaleLeft f8e8m0 4x64"), "scale-location"),
    ],
)
def test_only_the_place_of_scales_counts(scales: tuple[str, str], code: str) -> None:
    expected, quiet = product(("ScaleLeft f8e8m0 32x4", "ScaleRight f8e8m0 4x64"))
    held, told = product(scales)
    assert (held == expected).all()
    assert len(np.unique(held)) > 100
    assert told - quiet == {f"TMATMUL_MX.{code}"}
