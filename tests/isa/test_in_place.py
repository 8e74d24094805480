"""Results that may lie where an operand does, because everything was read before it is written."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import PtoError

Whole = Tile[TileType.Vec, float32, 8, 64]
Row = Tile[TileType.Vec, float32, 1, 64]
Part = Tile[TileType.Vec, float32, 1, 32]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("reduce", "wanted"), [(TCOLSUM, np.sum), (TCOLMAX, np.max), (TCOLMIN, np.min)]
)
def test_a_column_reduction_into_its_first_row(reduce, wanted, target: str) -> None:
    values = np.random.default_rng(0).integers(-9, 9, (8, 64)).astype("f4")
    with device(target):
        src, dst = Whole(), Row()
        TASSIGN(src, 0x100)
        TASSIGN(dst, 0x100)
        src.fill(values)
        reduce(dst, src)
        assert np.array_equal(dst.numpy(), wanted(values, axis=0, keepdims=True))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_column_reduction_into_another_row_is_refused(target: str) -> None:
    with device(target):
        src, dst = Whole(), Row()
        TASSIGN(src, 0x100)
        TASSIGN(dst, 0x200)
        src.fill(0)
        with pytest.raises(PtoError, match=r"TCOLSUM\.disjoint"):
            TCOLSUM(dst, src)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(("at", "column"), [(0x100, 0), (0x180, 32)])
def test_taking_a_part_to_where_it_is(at: int, column: int, target: str) -> None:
    values = np.arange(64, dtype="f4").reshape(1, 64)
    with device(target):
        src, dst = Row(), Part()
        TASSIGN(src, 0x100)
        TASSIGN(dst, at)
        src.fill(values)
        TEXTRACT(dst, src, 0, column)
        assert np.array_equal(src.numpy(), values)
        with pytest.raises(PtoError, match=r"TEXTRACT\.separate"):
            TEXTRACT(dst, src, 0, 8)
