"""Pairs without order that shipped kernels get away with: warnings, and errors under strict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import G32, at, check

LONG = Tile[TileType.Vec, float32, 1, 1024]
WIDE = Tile[TileType.Vec, float32, 16, 64]
x = np.ones((16, 16), np.float32)


def forgotten() -> None:
    """A signal that nobody waits for."""
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)


def loaded_twice() -> None:
    """Two loads into the same bytes."""
    tile = at(Tile[TileType.Vec, float32, 16, 16](), 0)
    TLOAD(tile, G32(x))
    TLOAD(tile, G32(x))


def through_a_row() -> None:
    """The next instruction takes the tile for one long row."""
    wide, row = at(WIDE(), 0), at(LONG(), 0)
    TEXPANDS(wide, 1.0)
    pipe_barrier(PIPE_V)
    TEXP(wide, wide)
    TEXP(at(LONG(), 0x4000), row)


def out_of_step() -> None:
    """A column is made of what is still being written: no excuse."""
    wide, column = at(WIDE(), 0), at(Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor](), 0x4000)
    TEXPANDS(wide, 1.0)
    TROWSUM(column, wide, at(WIDE(), 0x8000))


def stored_by_both(value: Callable[[], float]) -> dict[str, Callable[[], None]]:
    """Both vector cores of a cluster store to one place."""
    y = np.zeros((16, 16), np.float32)

    def vector() -> None:
        tile = at(Tile[TileType.Vec, float32, 16, 16](), 0)
        TEXPANDS(tile, value())
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(y), tile)

    return {"cube": lambda: None, "vector": vector}


DOUBTS: list[tuple[Callable[[], Any], str]] = [
    (forgotten, "E3"),
    (loaded_twice, "E8"),
    (through_a_row, "E8"),
]


@pytest.mark.parametrize(("program", "code"), DOUBTS)
def test_a_doubt_is_a_warning(program: Callable[[], Any], code: str) -> None:
    assert [(d.code, d.severity) for d in check(program)] == [(code, "warning")]
    assert [(d.code, d.severity) for d in check(program, rules="strict")] == [(code, "error")]
    assert not check(program, allow=[code])


def test_a_block_on_a_device_keeps_its_doubts_among_the_warnings() -> None:
    with device("a2a3") as machine:
        loaded_twice()
    assert [(d.code, d.severity) for d in machine.warnings] == [("E8", "warning")]


def test_what_may_go_wrong_is_an_error() -> None:
    assert {(d.code, d.severity) for d in check(out_of_step)} == {("E8", "error")}


def test_equal_bytes_of_both_vector_cores_are_a_warning() -> None:
    same = check(stored_by_both(lambda: 1.0))
    assert [(d.code, d.severity) for d in same] == [("E7", "warning")]
    assert "equal bytes" in same[0].message
    other = check(stored_by_both(lambda: 1.0 + get_subblockid()))
    assert [(d.code, d.severity) for d in other] == [("E7", "error")]


def test_an_excuse_orders_nothing() -> None:
    """Behind a pair that is let through, the next one is judged like any other."""
    y = np.zeros((16, 16), np.float32)
    z = np.zeros((16, 16), np.float32)

    def vector() -> None:
        tile, me = at(Tile[TileType.Vec, float32, 16, 16](), 0), get_subblockid()
        for array in (y, z) if me else (z, y):  # equal bytes to y, different ones to z
            TEXPANDS(tile, 1.0 + (me if array is z else 0))
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TSTORE(G32(array), tile)
            pipe_barrier(PIPE_ALL)

    found = check({"cube": lambda: None, "vector": vector})
    assert {(d.code, d.severity) for d in found} == {("E7", "error")}  # warnings stay behind
