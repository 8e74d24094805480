"""Bytes that were defined and are no longer: every way there, seen by readers that trusted them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.enums import TileType
from ptokit.machine.faults import PoisonRead
from tests.operands import whole

V = TileType.Vec
Block = Tile[V, float32, 16, 16]
Wide = Tile[V, float32, 16, 128]
Column = Tile[V, float32, 16, 16, BLayout.RowMajor, 16, 1]


def placed(kind: Any, address: int, value: float | None = None) -> Any:
    tile = kind()
    TASSIGN(tile, address)
    if value is not None:
        tile.fill(value)
    return tile


def trusted(tile: Any, into: Any) -> None:
    """Read a tile often enough that the check of its bytes is skipped."""
    for _ in range(3):
        TADDS(into, tile, 1.0)


def test_scratch_loses_its_contents() -> None:
    with device("a2a3"):
        a, b, result = placed(Wide, 0, 1), placed(Wide, 0x2000, 2), placed(Column, 0x4000)
        into = placed(Wide, 0x5000)
        trusted(b, into)
        pipe_barrier(PIPE_V)
        TROWSUM(result, a, b)
        with pytest.raises(PoisonRead, match="reads src"):
            TADDS(into, b, 1.0)


def test_a_window_that_is_poisoned_is_no_longer_trusted() -> None:
    with device("a2a3"):
        a, into = placed(Block, 0, 1), placed(Block, 0x400)
        trusted(a, into)
        whole(a).poison()
        with pytest.raises(PoisonRead):
            TADDS(into, a, 1.0)


def test_a_single_element_is_enough() -> None:
    with device("a2a3"):
        a, into = placed(Block, 0, 1), placed(Block, 0x400)
        trusted(a, into)
        where = np.zeros((16, 16), bool)
        where[3, 5] = True
        whole(a).poison(where)
        with pytest.raises(PoisonRead, match=r"\[3, 5\]"):
            TADDS(into, a, 1.0)


def test_writing_again_defines_again() -> None:
    """A writer that marked its bytes before must mark them anew."""
    with device("a2a3"):
        a, into = placed(Block, 0, 1), placed(Block, 0x400)
        trusted(a, into)
        whole(into).poison()
        TADDS(into, a, 1.0)
        assert (into.numpy() == 2).all()


def test_storage_that_comes_back_is_no_longer_trusted() -> None:
    """A tile that is gone leaves its storage to the next one of its size, and not its contents."""
    with device("a2a3", mode="auto"):
        into = Block()

        def read(value: float | None) -> None:
            tile = Block()
            if value is not None:
                tile.fill(value)
            trusted(tile, into)

        for value in (1, 2):
            read(value)
        with pytest.raises(PoisonRead, match="reads src"):
            read(None)


def test_hidden_scratch_is_no_longer_trusted() -> None:
    """TROWEXPANDADD without tmp spreads a column over the end of the vector memory."""
    with device("a2a3", check=False):
        hidden = placed(Tile[V, float32, 8, 64], 188416, 1)
        into = placed(Tile[V, float32, 8, 64], 0)
        dst, full = placed(Block, 0x1000, 0), placed(Block, 0x1400, 1)
        column = placed(Tile[V, float32, 16, 1, BLayout.ColMajor], 0x1800, 1)
        trusted(hidden, into)
        TROWEXPANDADD(dst, full, column)
        with pytest.raises(PoisonRead, match="reads src"):
            TADDS(into, hidden, 1.0)
