"""Pairs without order that shipped kernels get away with: warnings, and errors under strict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import G32, at, check

LONG = Tile[TileType.Vec, float32, 1, 960]  # 15 repeats of the vector unit
WIDE = Tile[TileType.Vec, float32, 15, 64]
TALL = Tile[TileType.Vec, float32, 16, 64]
NZ = (BLayout.ColMajor, 16, 16, SLayout.RowMajor)
x = np.ones((16, 16), np.float32)


def forgotten() -> None:
    """A signal that nobody waits for."""
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)


def stored_twice() -> None:
    """Two stores into the same bytes."""
    tile = at(Tile[TileType.Vec, float32, 16, 16](), 0)
    tile.fill(1)
    TSTORE(G32(x), tile)
    TSTORE(G32(x), tile)


def through_a_row() -> None:
    """The next instruction takes the tile for one long row."""
    wide, row = at(WIDE(), 0), at(LONG(), 0)
    TEXPANDS(wide, 1.0)
    pipe_barrier(PIPE_V)
    TEXP(wide, wide)
    TEXP(at(LONG(), 0x4000), row)


def out_of_step() -> None:
    """A column is made of what is still being written: no excuse."""
    tall, column = at(TALL(), 0), at(Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor](), 0x4000)
    TEXPANDS(tall, 1.0)
    TROWSUM(column, tall, at(TALL(), 0x8000))


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
    (stored_twice, "E8"),
    (through_a_row, "E8"),
]


@pytest.mark.parametrize(("program", "code"), DOUBTS)
def test_a_doubt_is_a_warning(program: Callable[[], Any], code: str) -> None:
    assert [(d.code, d.severity) for d in check(program)] == [(code, "warning")]
    assert [(d.code, d.severity) for d in check(program, rules="strict")] == [(code, "error")]
    assert not check(program, allow=[code])


def test_a_block_on_a_device_keeps_its_doubts_among_the_warnings() -> None:
    with device("a2a3") as machine:
        stored_twice()
    assert [(d.code, d.severity) for d in machine.warnings] == [("E8", "warning")]


def test_what_may_go_wrong_is_an_error() -> None:
    assert {(d.code, d.severity) for d in check(out_of_step)} == {("E8", "error")}


def test_equal_bytes_of_both_vector_cores_are_a_warning() -> None:
    same = check(stored_by_both(lambda: 1.0))
    assert [(d.code, d.severity) for d in same] == [("E7", "warning")]
    assert "equal bytes" in same[0].message
    other = check(stored_by_both(lambda: 1.0 + get_subblockid()))
    assert [(d.code, d.severity) for d in other] == [("E7", "error")]


@pytest.mark.parametrize(("differs", "severity"), [(0, "warning"), (1, "error")])
def test_equal_bytes_in_the_memory_of_the_cluster_are_a_warning(
    differs: int, severity: str
) -> None:
    def vector() -> None:
        tile = at(Tile[TileType.Vec, half, 16, 16, *NZ](), 0)
        TEXPANDS(at(Tile[TileType.Vec, half, 1, 256](), 0), 1.0 + differs * get_subblockid())
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TMOV(at(Tile[TileType.Mat, half, 16, 16, *NZ](), 0), tile)

    found = check({"cube": lambda: None, "vector": vector}, "a5")
    assert [(d.code, d.severity) for d in found] == [("E6", severity)]


def test_only_additions_are_excused_as_such() -> None:
    """Other template arguments that are the number 1 as well do not make a store one."""
    y = np.zeros((16, 16), np.float32)

    def cube() -> None:
        acc = at(TileAcc[float32, 16, 16](), 0)
        acc.fill(1.0 + get_block_idx())
        TSTORE[AtomicType.AtomicNone, ReluPreMode.NormalRelu](G32(y), acc)

    assert {(d.code, d.severity) for d in check({"cube": cube}, grid=2)} == {("E7", "error")}


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


# ---- one transfer pipe writes twice --------------------------------------------------------------

Mat = Tile[TileType.Mat, half, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]
Corner = Tile[
    TileType.Mat, half, 32, 32, BLayout.ColMajor, 16, 16, SLayout.RowMajor, 512, PadValue.Zero
]


def filled_then_loaded() -> None:
    tile = at(Mat(), 0)
    TEXPANDS(tile, 0.0)
    TLOAD(tile, GlobalTensor(np.ones((32, 32), np.float16)))


def loaded_then_padded() -> None:
    tile = at(Corner(), 0)
    TLOAD(tile, GlobalTensor(np.ones((16, 16), np.float16)))
    TFILLPAD(tile, tile)


def copied_then_inserted() -> None:
    """From the vector core's memory into L1, which A5 does on MTE3."""
    if get_subblockid():
        return
    boxed = BLayout.ColMajor, 32, 32, SLayout.RowMajor
    whole, tile = at(Tile[TileType.Vec, half, 32, 32, *boxed](), 0), at(Mat(), 0)
    whole.fill(1)
    TMOV(tile, whole)
    TINSERT(tile, whole, 0, 0)


@pytest.mark.parametrize(
    ("target", "core", "program"),
    [
        ("a2a3", "cube", filled_then_loaded),
        ("a5", "cube", filled_then_loaded),
        ("a2a3", "cube", loaded_then_padded),
        ("a5", "cube", loaded_then_padded),
        ("a5", "vector", copied_then_inserted),
    ],
)
def test_transfers_of_one_pipe_that_write_one_place(
    target: str, core: str, program: Callable[[], None]
) -> None:
    programs = {"cube": lambda: None, "vector": lambda: None, core: program}
    assert {(d.code, d.severity) for d in check(programs, target)} <= {("E8", "warning")}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_signal_to_another_core_that_nobody_waits_for(target: str) -> None:
    def cube() -> None:
        if target == "a2a3":
            set_ffts_base_addr(np.zeros(64, np.uint64))
            ffts_cross_core_sync(PIPE_FIX, 1 | 2 << 4 | 3 << 8)
        else:
            set_intra_block(PIPE_FIX, 3)

    found = check({"cube": cube, "vector": lambda: None}, target)
    assert {(d.code, d.severity) for d in found} == {("E3", "warning")}
