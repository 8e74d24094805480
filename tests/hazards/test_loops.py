"""Trips that are passed over would have had nothing new to say.

`python -m tests.hazards.loops` does the same for any number of programs.
"""

from __future__ import annotations

import gc
import sys
from itertools import islice
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.machine.hazards import HazardLog, Noted
from ptokit.machine.regions import Region, Rows
from ptokit.machine.replay import Replay
from tests.hazards.loops import ROOT, eagerly, mutant_outcomes, outcome, part
from tests.hazards.support import *

CHUNK = 25


@pytest.mark.parametrize("first", range(0, 150, CHUNK))
def test_random_programs(first: int) -> None:
    """The findings are those of the full log, and there are trips that were passed over."""
    passed = 0
    for seed in range(first, first + CHUNK):
        found = outcome(seed)
        assert found.short == found.full, f"seed {seed}"
        passed += found.passed
    assert passed


@pytest.mark.parametrize("seed", [1353, 5273])
def test_a_view_that_left_a_place_is_not_there_again(seed: int) -> None:
    """Early trips load what every trip stores, later ones what lies beside it."""
    found = outcome(seed)
    assert found.short == found.full


@pytest.mark.parametrize(("example", "many"), [("vector_add", 40), ("fifo", 12)])
def test_mutants_of_examples(example: str, many: int) -> None:
    outcomes = mutant_outcomes(ROOT / "examples" / f"{example}.py")
    found = dict(islice(outcomes, many))
    for name, each in found.items():
        assert each.short == each.full, name
    assert any(each.full for each in found.values())


def sweep(trips: int, back: int) -> Any:
    """Every trip loads what lies `back` tiles behind the one that it stores."""
    x = np.zeros((16, 16 * 64), np.float32)

    def program() -> None:
        a = at(F32(), 0)
        for i in range(back, trips):
            TLOAD(a, part(x, 0, 16 * (i - back)))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(part(x, 0, 16 * i), a)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()

    return program


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many instructions were looked at one by one."""
    count = [0]
    see = HazardLog.see

    def counted(self: Any, event: Any) -> Any:
        count[0] += 1
        return see(self, event)

    monkeypatch.setattr(HazardLog, "see", counted)
    return count


def test_a_steady_loop_is_read_in_part(read: list[int]) -> None:
    with eagerly():
        assert codes(sweep(60, 0)) == []
    assert read[0] < 16
    read[0] = 0
    assert codes(sweep(60, 0), hazards="full") == []
    assert read[0] == 121, "the binding of the tile, and two in each trip"


def test_what_an_earlier_trip_wrote_is_looked_at(read: list[int]) -> None:
    """Sweeps that meet several trips apart are not passed over."""
    with eagerly():
        assert codes(sweep(60, 4)) == []
    assert read[0] == 113


def conflict(trip: int, complete: bool) -> Any:
    """A loop fills an array, and one tile of it is read after the loop."""
    x, y = np.zeros((16, 16 * 64), np.float32), np.zeros((16, 16), np.float32)

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        for i in range(60):
            TSTORE(part(x, 0, 16 * i), a)  # stored
        if complete:
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
        TLOAD(b, part(x, 0, 16 * trip))  # loaded
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TSTORE(part(y, 0, 0), b)

    return program


@pytest.mark.parametrize("trip", [0, 30, 59])
def test_what_a_sweep_touched_is_not_forgotten(trip: int) -> None:
    with eagerly() as passed:
        assert codes(conflict(trip, complete=True)) == []
        (found,) = check(conflict(trip, complete=False))
        (same,) = check(conflict(trip, complete=False), hazards="full")
    assert any(passed)
    assert found.code == "E7"
    assert (found.location, found.notes) == (same.location, same.notes)
    assert found.evidence is not None
    assert found.evidence.earlier.part == same.evidence.earlier.part  # type: ignore[union-attr]


def test_a_place_beside_a_sweep_is_free() -> None:
    """The hull of a sweep holds bytes that it leaves out."""
    x, y = np.zeros((16, 16 * 64), np.float32), np.zeros((16, 16), np.float32)

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        for i in range(30):
            TSTORE(part(x, 0, 32 * i), a)
        TLOAD(b, part(x, 0, 16))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TSTORE(part(y, 0, 0), b)

    with eagerly() as passed:
        assert codes(program) == []
    assert any(passed)


def test_an_alternating_branch_has_twice_the_period(read: list[int]) -> None:
    x = np.zeros((16, 16 * 64), np.float32)

    def program() -> None:
        tiles = at(F32(), 0), at(F32(), 0x400)
        for i in range(60):
            if i > 1:
                wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0 if i % 2 else EVENT_ID1)
            TLOAD(tiles[i % 2], part(x, 0, 16 * i))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(part(x, 0, 16 * i), tiles[i % 2])
            set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0 if i % 2 else EVENT_ID1)
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1)

    with eagerly():
        assert codes(program) == []
    assert read[0] < 30


def test_a_race_that_comes_late_is_found() -> None:
    """The loop is steady until its last trip, which leaves a wait out."""

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(a, 1.0)
        pipe_barrier(PIPE_V)
        for i in range(60):
            TADDS(b, a, 1.0)
            if i < 59:
                pipe_barrier(PIPE_V)
            TMULS(a, b, 1.0)
            pipe_barrier(PIPE_V)

    with eagerly() as passed:
        found = codes(program)
        assert found == codes(program, hazards="full")
    assert any(passed)
    assert found


def late(kind: str) -> Any:
    """A loop that is steady on chip, and comes to bytes in a late trip that it must not touch."""
    x = np.zeros((96, 16 * 64), np.float32)

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(a, 1.0)
        pipe_barrier(PIPE_ALL)
        if kind == "before":
            TSTORE(part(x, 0, 16 * 40), a)
        for i in range(110 if kind == "again" else 50):
            if kind == "again":
                j = i if i < 90 else i - 30
                TSTORE(part(x, 16 * (j // 16), 16 * (j % 16)), a)
                continue
            TLOAD(b, part(x, 0, 16 * i))
            pipe_barrier(PIPE_MTE2)
            if kind == "backwards":
                TSTORE(part(x, 0, 16 * (59 - i)), a)
                pipe_barrier(PIPE_MTE3)

    return program


@pytest.mark.parametrize("kind", ["before", "backwards", "again"])
def test_bytes_that_a_late_trip_must_not_touch(kind: str) -> None:
    with eagerly():
        found = codes(late(kind))
        assert found == codes(late(kind), hazards="full")
    assert set(found) == {"E8" if kind == "again" else "E7"}


# ---- what a launch keeps -------------------------------------------------------------------------


def in_blocks() -> None:
    a = at(F32(), 0)
    TEXPANDS(a, 1.0)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(part(np.zeros((16, 16), np.float32), 0, 0), a)


def test_an_instruction_is_listed_once_for_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[int] = []
    read = Replay.read

    def counted(self: Any, notes: Any) -> None:
        listed.append(sum(isinstance(each, Noted) for each in notes.operations))
        read(self, notes)

    monkeypatch.setattr(Replay, "read", counted)
    for grid in (2, 20):
        with eagerly():
            assert codes(in_blocks, grid=grid) == []
    assert listed == [3, 3], "the binding of the tile, and two that work"


@kernel(mode="manual")
def stored(y: Any, way: int) -> None:
    """Its tile lies elsewhere in each way, and overlaps that of the other."""
    tile = at(F32(), way * 0x200)
    TEXPANDS(tile, 1.0)
    if way < 2:
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y), tile)


def test_regions_stay_with_memories_that_are_kept() -> None:
    """What another launch did to them is forgotten, and so is the array that it was given."""
    y = np.zeros((16, 16), np.float32)

    def findings(way: int) -> list[str]:
        stored.programs.memory.forget_verdicts()
        try:
            stored[1](y, way, target="a2a3", engine="stepwise")
        except ProgramError as error:
            return [each.code for each in error.diagnostics]
        return []

    assert findings(0) == []
    kept = {id(each) for each in regions()}
    holders = sys.getrefcount(y)
    assert findings(0) == []
    assert {id(each) for each in regions()} == kept, "none is made again"
    assert sys.getrefcount(y) == holders
    assert findings(1) == [], "who touched the first tile has nothing to do with it"
    assert findings(2) == ["E6"]
    assert findings(0) == []


def regions() -> list[Region]:
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, Region)]


def test_a_launch_leaves_no_regions_to_collect() -> None:
    """They are their own peers, and only a collection would free them."""
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(each, Region) for each in gc.get_objects())
        assert codes(in_blocks, grid=20) == []
        assert sum(isinstance(each, Region) for each in gc.get_objects()) == before
    finally:
        gc.enable()
    assert gc.isenabled()


def test_rows_without_a_gap_are_one_stretch() -> None:
    whole = Region("GM", Rows(64, 32, 32, 4))
    assert whole.ranges == ((64, 192),)
    assert [whole.overlaps(Region("GM", Rows(n, 8, 100, 2))) for n in (0, 64, 192)] == [
        True, True, False,
    ]  # fmt: skip
