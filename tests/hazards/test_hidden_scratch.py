"""Bytes that the hardware uses beside the operands: poisoned, raced for, shown, left free."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.comm import *
from ptokit.isa.samples import samples
from ptokit.isa.targets import TARGETS as PROFILES
from ptokit.machine.events import Touch
from tests.hazards.support import *

WINDOW = 188416
COLUMN = Tile[TileType.Vec, f32, 16, 1, BLayout.ColMajor]
GC = GlobalTensor[f32, Shape[1, 1, 1, 16, 1], Stride[16, 16, 16, 1, 1], Layout.DN]


def spreads(x: Any, c: Any, *, ordered: bool, where: int = WINDOW, check: bool = True) -> Any:
    """A column is spread out in the window while something is loaded there."""

    def program() -> None:
        a, b, column, other = at(F32(), 0), at(F32(), 0x400), at(COLUMN(), 0x800), at(F32(), where)
        TLOAD(a, G32(x))
        TLOAD(column, GC(c))
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        TROWEXPANDADD(b, a, column)  # spread
        if ordered:
            set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
            wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        TLOAD(other, G32(x))  # load

    return program


@pytest.mark.parametrize(("where", "races"), [(WINDOW, True), (WINDOW + 512, False)])
def test_a_load_into_the_window_races_with_the_column(where: int, races: bool) -> None:
    x, c = array(), np.ones(16, np.float32)
    found = check(spreads(x, c, ordered=False, where=where))
    assert [d.code for d in found] == ["E6"] * races
    if races:
        assert lines_of(found[0]) == {marked(spreads, "spread"), marked(spreads, "load")}
    assert not check(spreads(x, c, ordered=True, where=where))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_what_lies_in_the_window_is_lost(target: str) -> None:
    """16 rows take 512 bytes, on A2/A3 alone."""
    with device(target):
        a, b, column = at(F32(), 0), at(F32(), 0x400), at(COLUMN(), 0x800)
        other = at(Tile[TileType.Vec, f32, 1, 256](), WINDOW)
        for tile in (a, column, other):
            tile.fill(1)
        TROWEXPANDADD(b, a, column)
        shadow = other.storage.shadow[WINDOW : WINDOW + 1024]
        assert shadow.sum() == (512 if target == "a2a3" else 1024)
        assert shadow[-512:].all()


def crowded(rows: int) -> Any:
    """Eleven tiles of 16 KiB, one of so many rows, and a column that is spread out."""

    def body(x, c, y):
        tiles = [Tile[TileType.Vec, f32, 64, 64]() for _ in range(11)]
        last = Tile[TileType.Vec, f32, rows, 64]()
        column = Tile[TileType.Vec, f32, 64, 1, BLayout.ColMajor]()
        for tile in tiles:
            TLOAD(tile, GlobalTensor(x))
        TLOAD(last, GlobalTensor(x)[0:rows, :])
        GC = GlobalTensor[f32, Shape[1, 1, 1, 64, 1], Stride[64, 64, 64, 1, 1], Layout.DN]
        TLOAD(column, GC(c))
        TROWEXPANDADD(tiles[0], tiles[1], column)
        for tile in tiles[1:]:
            TADD(tiles[0], tiles[0], tile)
        TSTORE(GlobalTensor(y), tiles[0])
        TSTORE(GlobalTensor(y)[0:rows, :], last)

    return kernel(mode="auto")(body)


def test_placement_leaves_the_window_free() -> None:
    x, y, c = np.ones((64, 64), "f4"), np.zeros((64, 64), "f4"), np.arange(64, dtype="f4")
    crowded(24)[1](x, c, y, path="lowered", target="a2a3")
    assert (y[:24] == 1).all()
    assert (y[24:] == 11 + c[24:, None]).all()
    with pytest.raises(PtoError) as error:  # it would end 2304 bytes past the start of the window
        crowded(40)[1](x, c, y, path="lowered", target="a2a3")
    assert error.value.codes == ("place.overflow",)
    assert ("taken by others", "0x2e000..0x30000") in error.value.diagnostics[0].got


@kernel
def puts(dst, src, ws):
    scratch, session = Tile[TileType.Vec, u8, 1, 256](), AsyncSession()
    TASSIGN[1024](scratch)
    BuildAsyncSession(scratch, ws, session)
    row = GlobalTensor[f32, Shape[1, 1, 1, 1, 64], Stride[64, 64, 64, 64, 1]]
    TPUT_ASYNC(row(dst), row(src), session).Wait(session)
    TPREFETCH_ASYNC(row(src), PrefetchAsyncContext(ws))


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("by", ["fast", "reference"])
def test_sessions_bring_their_scratch_along(path: str, by: str) -> None:
    dst, src, ws = np.zeros(64, "f4"), np.ones(64, "f4"), np.zeros(40960, np.uint8)
    run = puts[1](dst, src, ws, target="a2a3", path=path, engine=by, events=True)
    assert dst.all()
    put, copy, prefetch = (e for e in run.events if e.operation.endswith("_ASYNC"))
    assert Touch("UB", ((1024, 1280),), True, "session") in put.accesses
    assert {(t.memory, t.operand) for t in copy.accesses} == {
        ("GM0", "dstGlobalData"),
        ("GM1", "srcGlobalData"),
    }
    assert Touch("UB", ((0, 256),), True, "scratch") in prefetch.accesses


def test_every_hidden_scratch_has_its_bytes_for_every_legal_call() -> None:
    from ptokit.isa import INSTRUCTIONS

    seen = 0
    for insn in INSTRUCTIONS.values():
        for case in (c for c in insn.steps if c.scratch is not None):
            assert case.scratch is not None
            for target in case.on & insn.targets:
                for sample in samples(insn, PROFILES[target]):
                    facts = sample.facts("manual")
                    if sample.operands.get("context") is None and insn.case(facts) is case:
                        seen += 1
                        assert 0 < case.scratch.nbytes(facts) <= case.scratch.most
    assert seen
