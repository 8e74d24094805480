"""Instructions of several steps order some of them by themselves: no barrier is asked for there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ptokit import *
from tests.hazards.support import *

ROW = Tile[TileType.Vec, f32, 1, 16]
COLUMN = Tile[TileType.Vec, f32, 16, 8, BLayout.RowMajor, 16, 1]
I16 = Tile[TileType.Vec, i16, 16, 16]


def reduces_columns() -> Any:
    x, row = at(F32(), 0), at(ROW(), 0x2000)
    x.fill(1)
    TCOLMAX(row, x)
    return lambda: TADDS(at(ROW(), 0x3000), row, 1.0)


def reduces_rows() -> Any:
    x, column, tmp = at(F32(), 0), at(COLUMN(), 0x2000), at(F32(), 0x4000)
    x.fill(1)
    TROWSUM(column, x, tmp)
    return lambda: TADDS(at(COLUMN(), 0x3000), column, 1.0)


def reuses_scratch() -> Any:
    x, column, tmp = at(F32(), 0), at(COLUMN(), 0x2000), at(F32(), 0x4000)
    x.fill(1)
    TROWSUM(column, x, tmp)
    return lambda: TEXPANDS(tmp, 1.0)


def keeps_scratch() -> Any:
    a, b, c, tmp = (at(I16(), n * 0x400) for n in range(4))
    a.fill(1)
    b.fill(2)
    TXOR(c, a, b, tmp)
    return lambda: TCOLMAX(at(Tile[TileType.Vec, i16, 1, 16](), 0xC00), a)


def starts_by_scalar_unit() -> Any:
    """TSHL of a count per element: the scalar unit waits for the vector unit first."""
    a, b, c = (at(I16(), n * 0x400) for n in range(3))
    a.fill(1)
    TEXPANDS(b, 2)
    return lambda: TSHL(c, a, b)


@pytest.mark.parametrize(
    ("first", "races"),
    [
        (reduces_columns, False),
        (reduces_rows, False),
        (reuses_scratch, False),
        (keeps_scratch, True),
        (starts_by_scalar_unit, False),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_the_record_completes_needs_no_barrier(first: Callable[[], Any], races: bool) -> None:
    for with_barrier in (False, True):

        def program(with_barrier: bool = with_barrier) -> None:
            then = first()
            if with_barrier:
                pipe_barrier(PIPE_V)
            then()

        assert codes(program) == (["E8"] if races and not with_barrier else [])
