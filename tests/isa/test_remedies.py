"""The search for values that would mend a broken rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import loads
from ptokit.base.diagnostics import ProgramError
from ptokit.isa import remedies

TILE = "!pto.tile_buf<vec, 16x64xf32, valid=?x?>"
PROGRAM = f"""
func.func @k(%n: index) attributes {{pto.entry}} {{
  %s = arith.constant 2.0 : f32
  %zero = arith.constant 0 : index
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 4096 : i64
  %t0 = pto.alloc_tile addr = %a0 valid_row = %zero valid_col = %zero : {TILE}
  %t1 = pto.alloc_tile addr = %a1 valid_row = %zero valid_col = %zero : {TILE}
  pto.tmuls ins(%t0, %s : {TILE}, f32) outs(%t0 : {TILE})
  pto.tmuls ins(%t1, %s : {TILE}, f32) outs(%t1 : {TILE})
  return
}}
"""


def test_a_search_in_vain_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the tiles lie, and however often the program is verified."""
    searched: list[Any] = []
    turned = remedies._turned  # pyright: ignore[reportPrivateUsage]

    def counted(*given: Any) -> list[str]:
        searched.append(given)
        return turned(*given)

    monkeypatch.setattr(remedies, "_turned", counted)
    monkeypatch.setattr(remedies, "_hopeless", set[Any]())
    program = loads(PROGRAM)
    first = program.check("a2a3", 3, rules="release")
    tried = len(searched)
    assert [each.code for each in first] == ["TMULS.non-empty"] * 2
    assert tried > 0
    assert program.check("a2a3", 3, rules="release") == first
    assert len(searched) == tried


@kernel(mode="auto")
def roots(x, y, *, as_row):
    block, scratch = (Tile[TileType.Vec, float32, 16, 64]() for _ in range(2))
    column = Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor]()
    row = Tile[TileType.Vec, float32, 1, 16]()
    TLOAD(block, GlobalTensor(x))
    TROWMAX(column, block, scratch)
    if as_row:
        TRESHAPE(row, column)
        TSQRT(row, row)
    else:
        TSQRT(column, column)
    TROWEXPAND(block, column)
    TSTORE(GlobalTensor(y), block)


def test_a_column_where_rows_are_wanted_is_advised_to_be_seen_as_one() -> None:
    x = np.arange(1024, dtype=np.float32).reshape(16, 64)
    y = np.zeros_like(x)
    with pytest.raises(ProgramError) as error:
        roots[1](x, y, as_row=False)
    advice = error.value.diagnostics[0].fix
    assert "TRESHAPE(row, dst) first" in advice
    assert "row-major, 1 x 16" in advice
    roots[1](x, y, as_row=True)
    assert np.array_equal(y[:, 0], np.sqrt(x.max(axis=1)))


@pytest.mark.parametrize(
    ("now", "good", "nearest"),
    [
        (7, {8}, 8),
        (7, {9, 5}, 9),
        (7, {6}, 6),
        (7, {0}, None),
        (3, {n for n in range(5000) if n >= 777}, 777),
        (900, {n for n in range(900) if n < 333}, 332),
    ],
)
def test_a_number_that_would_do_is_the_nearest_one(
    now: int, good: set[int], nearest: int | None
) -> None:
    """A larger one first; far away it is found by halves."""
    assert remedies._nearest(now, good.__contains__) == nearest
