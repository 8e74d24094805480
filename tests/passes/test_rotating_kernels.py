"""Kernels that rotate many tiles, in auto mode with all checks on; and whose fault a race is."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import InternalError
from ptokit.passes.insert_sync import InsertSync

X = np.arange(12 * 16, dtype=np.float32).reshape(12, 16)
Row = Tile[TileType.Vec, float32, 1, 16]


@kernel(mode="auto")
def rotate(x, y, n, *, count):
    """Every round changes the first tile, stores it, and moves it to the end of the list."""
    tiles = [Row() for _ in range(count)]
    for k in static_range(count):
        TLOAD(tiles[k], GlobalTensor(x)[k : k + 1, :])
    for i in range(n):
        TADDS(tiles[0], tiles[0], 1.0)
        TSTORE(GlobalTensor(y)[i % 12 : i % 12 + 1, :], tiles[0])
        first = tiles[0]
        for k in static_range(count - 1):
            tiles[k] = tiles[k + 1]
        tiles[count - 1] = first
    for k in static_range(count):
        TSTORE(GlobalTensor(y)[k : k + 1, :], tiles[k])


def rotated(n: int, count: int) -> np.ndarray:
    y, rows = np.zeros_like(X), [X[k] for k in range(count)]
    for i in range(n):
        rows[0] = rows[0] + 1
        y[i % 12] = rows[0]
        rows = [*rows[1:], rows[0]]
    y[:count] = rows
    return y


@pytest.mark.parametrize("count", range(2, 13))
@pytest.mark.parametrize("n", [0, 1, 7, 25])
def test_rotating_tiles_give_the_right_bytes(count: int, n: int) -> None:
    for path in ("eager", "lowered"):
        y = np.zeros_like(X)
        rotate[1](X, y, n, count=count, path=path)
        assert np.array_equal(y, rotated(n, count)), path


def test_a_race_in_auto_mode_is_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The author of a kernel in auto mode is not told to write flags."""
    monkeypatch.setattr(InsertSync, "run", lambda self, module, target: module)
    fresh = kernel(mode="auto")(rotate.function)
    with pytest.raises(InternalError) as caught:
        fresh[1](X, np.zeros_like(X), 2, count=2, path="lowered")
    found = caught.value.diagnostics[0]
    assert found.code in ("E6", "E8")
    assert "a bug of ptokit" in found.message
    assert "set_flag" not in found.fix
