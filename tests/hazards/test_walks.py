"""Inside a pipe: who may follow without a barrier, and who may not."""

from __future__ import annotations

from typing import Any

import pytest

from ptokit import *
from tests.hazards.support import *

Column = Tile[TileType.Vec, float32, 16, 8]  # a value per row, as often as fits into 32 bytes
Sums = Tile[TileType.Vec, float32, 16, 8, BLayout.RowMajor, 16, 1]


def in_step(a: Any, b: Any, column: Any) -> None:
    TADDS(b, a, 1.0)
    TADD(a, b, b)


def spread(a: Any, b: Any, column: Any) -> None:
    """Each element of the column is needed for a whole row."""
    TADDS(column, column, 1.0)
    TROWEXPANDADD(b, a, column)


def summed(a: Any, b: Any, column: Any) -> None:
    TADDS(b, a, 1.0)
    TROWSUM(at(Sums(), 0xC00), b, a)


@pytest.mark.parametrize(("work", "on_a2a3"), [(in_step, []), (spread, ["E8"]), (summed, ["E8"])])
def test_only_walks_in_step_need_no_barrier(work: Any, on_a2a3: list[str]) -> None:
    def program() -> None:
        a, b, column = at(F32(), 0), at(F32(), 0x400), at(Column(), 0x800)
        TEXPANDS(a, 1.0)
        TEXPANDS(column, 2.0)
        pipe_barrier(PIPE_ALL)
        work(a, b, column)

    assert sorted(set(codes(program, "a2a3"))) == on_a2a3
    assert codes(program, "a5") == []  # its vector pipe keeps its order
