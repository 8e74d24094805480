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


Wide = Tile[TileType.Vec, float32, 8, 512]
Column = Tile[TileType.Vec, float32, 8, 1, BLayout.ColMajor]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_result_over_what_was_read_before(target: str) -> None:
    """The last columns of wide rows move to the front: row 7 of the result is row 0 of the source,
    which was read first. Model kernels do that."""
    values = np.random.default_rng(0).standard_normal((8, 512)).astype("f4")
    factors = np.arange(1, 9, dtype="f4").reshape(8, 1)
    with device(target):
        all_of_it, factor, dst = Wide(), Column(), Whole()
        part = Tile[TileType.Vec, float32, 8, 512, BLayout.RowMajor, 8, 64]()
        for tile, at in (all_of_it, 2048), (part, 2048 + 448 * 4), (dst, 2048), (factor, 32768):
            TASSIGN(tile, at)
        all_of_it.fill(values)
        factor.fill(factors)
        TROWEXPANDMUL(dst, part, factor)
        assert np.array_equal(dst.numpy(), values[:, 448:] * factors)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_result_in_front_of_its_source_is_fine_and_one_behind_it_is_not(
    rows: int, target: str
) -> None:
    values = np.arange(512, dtype="f4").reshape(8, 64)
    for at in 4096 - rows * 256, 4096 + rows * 256:
        with device(target):
            src, dst = Whole(), Whole()
            TASSIGN(src, 4096)
            TASSIGN(dst, at)
            src.fill(values)
            if at < 4096:
                TADDS(dst, src, 1.0)
                assert np.array_equal(dst.numpy(), values + 1)
            else:
                with pytest.warns(PtoWarning, match="covers only what was read before"):
                    TADDS(dst, src, 1.0)
