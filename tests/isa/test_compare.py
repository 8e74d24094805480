"""TCMP and TSEL: the mask bit by bit."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptokit import device
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import dtype
from ptokit.base.enums import CmpMode, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa.arrays import pack_mask, unpack_mask
from tests.isa.tiles import blank, call, defined, tile, whole

ANSWER: dict[CmpMode, Any] = {
    CmpMode.EQ: operator.eq,
    CmpMode.NE: operator.ne,
    CmpMode.LT: operator.lt,
    CmpMode.LE: operator.le,
    CmpMode.GT: operator.gt,
    CmpMode.GE: operator.ge,
}


def mask_tile(kind: str = "u8", rows: int = 3, cols: int = 64) -> Tile:
    made = Tile.of(TileSpec.of(TileType.Vec, dtype(kind), rows, cols))
    current().place(made)
    return made


def mask_bytes(mask: Tile) -> Array:
    """The rows of a mask as the hardware sees them: bytes, wherever they are defined."""
    return whole(mask).read().view(np.uint8)


def ties(kind: str, shape: tuple[int, int], seed: int) -> Array:
    """Few different values, so that every comparison has both answers; NaN among floats."""
    values = [0, 1, 3, 100] if dtype(kind).is_integer else [0.0, -0.0, 1.5, np.nan]
    return np.random.default_rng(seed).choice(values, shape).astype(dtype(kind).np)


@pytest.mark.parametrize("mode", CmpMode)
@pytest.mark.parametrize(
    ("target", "kind", "mask"),
    [
        ("a2a3", "f32", "u8"),
        ("a2a3", "f16", "u8"),
        ("a5", "f32", "u32"),
        ("a5", "bf16", "u8"),
        ("a5", "i8", "u8"),
        ("a5", "u64", "u32"),
        ("kirin9030", "u16", "u32"),
        ("cpu", "i16", "u16"),
    ],
)
def test_a_bit_for_every_element(target: str, kind: str, mask: str, mode: CmpMode) -> None:
    a, b = ties(kind, (3, 45), 1), ties(kind, (3, 45), 2)
    with device(target, mode="auto"):
        dst = mask_tile(mask)
        call("TCMP", dst, tile(kind, a), tile(kind, b), mode)
        stored = mask_bytes(dst)
        for i in range(3):
            for j in range(45):
                bit = stored[i, j // 8] >> (j % 8) & 1
                assert bit == ANSWER[mode](a[i, j], b[i, j]), (i, j)


def written_columns(target: str, kind: str, cols: int, mode: CmpMode = CmpMode.EQ) -> Array:
    """Which bytes of the first mask row are defined after a comparison of that many columns."""
    with device(target, mode="auto"):
        dst, a = mask_tile(), tile(kind, ties(kind, (3, cols), 0))
        before = whole(dst)
        before.write(np.full(before.shape, 0xFF, np.uint8))
        call("TCMP", dst, a, tile(kind, ties(kind, (3, cols), 1)), mode)
        found = np.flatnonzero(defined(dst)[0])
        if target != "a2a3":
            tail = mask_bytes(dst)[0, -(-cols // 8) : len(found)]
            assert not tail.any(), "behind the last element the stored bits are 0"
        return found


@pytest.mark.parametrize(
    ("target", "kind", "cols", "stored"),
    [
        ("a5", "f32", 45, 16),
        ("a5", "f16", 129, 32),
        ("a5", "u8", 45, 32),
        ("a5", "i64", 45, 32),
        ("kirinx90", "i32", 45, 16),
        ("a2a3", "f32", 45, 6),  # 8 are stored, of which the last two hold garbage
        ("cpu", "f32", 45, 64),
    ],
)
def test_whole_registers_are_stored(target: str, kind: str, cols: int, stored: int) -> None:
    assert written_columns(target, kind, cols).tolist() == list(range(stored))


def test_not_equal_disturbs_the_rest_of_the_row_on_a2a3() -> None:
    with device("a2a3", mode="auto"):
        dst, a, b = mask_tile(), tile("f32", np.zeros((3, 45))), tile("f32", np.ones((3, 45)))
        dst.fill(7)
        call("TCMP", dst, a, b, CmpMode.EQ)
        assert np.flatnonzero(~defined(dst)[0]).tolist() == [6, 7]
        dst.fill(7)
        call("TCMP", dst, a, b, CmpMode.NE)
        assert np.flatnonzero(defined(dst)[0]).tolist() == list(range(6))


def test_a2a3_does_not_order_integers() -> None:
    def compare(target: str, mode: CmpMode, rules: str = "default") -> int:
        with device(target, mode="auto", rules=rules):
            mask, b = mask_tile(), tile("i32", [[0, 1, 2, 3] * 2] * 3)
            call("TCMP", mask, tile("i32", np.zeros((3, 8))), b, mode)
            return int(mask_bytes(mask)[0, 0])

    assert compare("a2a3", CmpMode.NE) == 0b1110_1110
    assert compare("a5", CmpMode.LT) == 0b1110_1110
    assert compare("a2a3", CmpMode.LT) == 0b0001_0001, "the answer is that of EQ"
    with pytest.raises(ProgramError, match=r"TCMP\.i32-order"):
        compare("a2a3", CmpMode.LT, "strict")


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90", "cpu"])
@pytest.mark.parametrize("kind", ["f32", "f16", "u16"])
def test_selection_reads_what_comparison_writes(target: str, kind: str) -> None:
    a, b = ties(kind, (3, 45), 3), ties(kind, (3, 45), 4)
    mode = CmpMode.GE
    with device(target, mode="auto"):
        mask, dst, scratch = mask_tile(), blank(kind, (3, 45)), blank("u8", (1, 31))
        same = tile(kind, a), tile(kind, b)
        if target == "a2a3" and kind == "u16":
            bits = a >= b  # A2/A3 compares no u16: write the mask by hand
            mask.fill(0)
            pack_mask(bits, whole(mask).read())
        else:
            call("TCMP", mask, *same, mode)
        call("TSEL", dst, mask, *same, scratch)
        with np.errstate(invalid="ignore"):
            want = np.where(a >= b, a, b)
        assert dst.numpy().tobytes() == want.tobytes()
        call("TSEL", same[0], mask, *same, scratch)
        assert same[0].numpy().tobytes() == want.tobytes(), "in place"


def test_selection_needs_a_mask_row_for_every_row() -> None:
    with device("a5", mode="auto", rules="strict"):
        data, scratch = tile("f32", np.zeros((3, 45))), blank("u8", (1, 31))
        narrow = mask_tile(rows=2)
        with pytest.raises(ProgramError, match=r"TSEL.mask-rows"):
            call("TSEL", blank("f32", (3, 45)), narrow, data, data, scratch)


@given(
    bits=st.integers(1, 5).flatmap(
        lambda rows: st.integers(1, 70).flatmap(
            lambda cols: st.binary(min_size=rows * cols, max_size=rows * cols).map(
                lambda raw: np.frombuffer(raw, np.uint8).reshape(rows, cols) > 127
            )
        )
    ),
)
def test_packing_and_unpacking_are_inverse(bits: Array) -> None:
    rows, cols = bits.shape
    mask = np.full((rows + 1, 32), 1, np.uint8)
    view = mask[:, :24]  # a part of a wider tile
    pack_mask(bits, view)
    assert (unpack_mask(view[:rows], cols) == bits).all()
    assert unpack_mask(view, 96).sum() == bits.sum(), "everything else is cleared"
    assert (mask[:, 24:] == 1).all(), "and nothing beyond it is touched"
