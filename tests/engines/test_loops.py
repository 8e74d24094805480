"""A compiled loop may run over its own operands only where it reads nothing it has overwritten."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from ptokit import TASSIGN, BLayout, SLayout, Tile, TileType, device, float16, float32, int8
from ptokit.base.dtypes import DType
from ptokit.engines.compiled.loops import (
    Lines,
    Piece,
    Pointwise,
    lines_of,
    may_run,
    pieces,
    pointwise,
)
from ptokit.isa.expr import Arg
from ptokit.machine.access import Access
from ptokit.machine.calls import tile_access

LAYOUTS = {
    "ND": (BLayout.RowMajor, SLayout.NoneBox),
    "DN": (BLayout.ColMajor, SLayout.NoneBox),
    "NZ": (BLayout.ColMajor, SLayout.RowMajor),
    "ZN": (BLayout.RowMajor, SLayout.ColMajor),
}


def tile(kind: DType, layout: str, rows: int, cols: int, at: int) -> Access:
    """What an instruction would touch of a tile that lies there."""
    outer, inner = LAYOUTS[layout]
    made = Tile[TileType.Vec, kind, 32, 64, outer, -1, -1, inner](rows, cols)
    TASSIGN(made, at)
    return tile_access(made)


def disturbs_itself(accesses: list[Access], parts: list[Piece]) -> bool:
    """Walk the loops element by element: is a byte read after it was written?"""
    written: set[int] = set()
    starts = [access.offset for access in accesses]
    for part in parts:
        for place in product(*map(range, part.extents)):
            to, *sources = (
                range(at, at + access.dtype.itemsize)
                for access, start, begin, strides in zip(
                    accesses, starts, part.begins, part.strides, strict=True
                )
                for at in [start + begin + sum(i * s for i, s in zip(place, strides, strict=True))]
            )
            if not all(written.isdisjoint(source) for source in sources):
                return True
            written.update(to)
    return False


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [float32, float16, int8], ids=str)
def test_what_may_run_over_itself_reads_nothing_it_has_written(layout: str, kind: Any) -> None:
    """Whole and ragged tiles, of each layout onto each; several pieces come with ragged boxes."""
    counts: list[int] = []
    with device("a5"):
        for other, (rows, cols), at in product(LAYOUTS, [(32, 64), (20, 40), (1, 40)], [0, 64]):
            accesses = [tile(kind, layout, rows, cols, at), tile(float32, other, rows, cols, 0)]
            lines = [lines_of(access, (rows, cols)) for access in accesses]
            parts = pieces(lines)
            counts.append(len(parts))
            if may_run(accesses, lines, parts):
                assert not disturbs_itself(accesses, parts), (other, rows, cols, at)
    assert max(counts) > 1


def test_in_place_in_several_pieces() -> None:
    """Each piece goes upwards, but the second one begins to read where the first one wrote."""
    with device("a5"):
        accesses = [tile(kind, "ND", 5, 1, 0) for kind in (float16, float32)]
    rows = [100, 102, 0, 2, 4], [104, 108, 100, 112, 124]
    lines = [Lines(np.array(places), np.zeros(1, np.int64)) for places in rows]
    parts = pieces(lines)
    assert [part.extents for part in parts] == [(2,), (3,)]
    assert disturbs_itself(accesses, parts)
    assert not may_run(accesses, lines, parts)


@pytest.mark.parametrize("layout", ["ND", "DN"])
def test_narrower_elements_are_written_over_what_was_read(layout: str) -> None:
    with device("a5"):
        accesses = [tile(kind, layout, 20, 40, 0) for kind in (float16, float32)]
    lines = [lines_of(access, (20, 40)) for access in accesses]
    assert may_run(accesses, lines, pieces(lines))
    accesses.reverse()
    lines.reverse()
    assert not may_run(accesses, lines, pieces(lines))


def copied(kind: Any, layout: str, rows: int, cols: int) -> Pointwise:
    """What copies a plain tile into one of a layout, and knows its elements again."""
    accesses = [tile(kind, layout, rows, cols, 8192), tile(kind, "ND", rows, cols, 0)]
    (piece,) = pieces([lines_of(access, (rows, cols)) for access in accesses])
    kernel = pointwise(Arg(kind, "src"), ["dst", "src"], [kind, kind], piece, [])
    assert kernel.extents(kernel.laid(piece).extents) == piece.extents
    return kernel


def test_copies_of_all_types_are_one_function() -> None:
    with device("a5"):
        plain = [copied(kind, "ND", 32, 64) for kind in (float32, float16, int8)]
        cut = [copied(kind, "ND", 32, 32) for kind in (float32, float16)]
        boxed = [copied(kind, "NZ", 32, 64) for kind in (float16, int8)]
    for kernels in (plain, [*cut, copied_wide()], boxed):
        assert len({kernel.text("f") for kernel in kernels}) == 1


def copied_wide() -> Pointwise:
    """A copy with three axes, in vectors of 64 bytes."""
    extents, strides = (2, 3, 16), ((1024, 256, 4), (2048, 512, 4))
    piece = Piece(extents, strides, (0, 0))
    return pointwise(Arg(float32, "src"), ["dst", "src"], [float32, float32], piece, [])
