"""Ranks of a world race for its windows; signals are what orders them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import Diagnostic
from ptokit.comm import *
from tests.hazards.support import at, codes, launch, lines_of, marked
from tests.tasks.rank_programs import (
    Block,
    Handing,
    behind_stores,
    hearing_of_two_blocks,
    launched,
    sums,
)

SEEDS = [None, 0, 1, 2, 3]


def complaints(handing: Handing, seed: int | None = None) -> list[Diagnostic]:
    return told(handing.world, handing.program, seed)


def told(world: World, program: Callable[[int], Any], seed: int | None = None) -> list[Diagnostic]:
    """What a run of all ranks complains about."""
    try:
        world.run(program, seed=seed)
    except PtoError as error:
        return list(error.diagnostics)
    return []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_block_that_is_handed_over(rounds: int, seed: int | None) -> None:
    handing = Handing(rounds=rounds)
    found = handing.world.run(handing.program, seed=seed)
    assert found == [[], [turn + 1 for turn in range(rounds)]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("without", "kinds"), [("stores", {"RAW"}), ("wait ready", {"RAW", "WAR"})]
)
def test_a_put_that_lands_while_the_peer_reads(
    without: str, kinds: set[str], seed: int | None
) -> None:
    (found,) = complaints(Handing(without), seed)
    assert (found.code, found.severity) == ("E7", "error")
    assert any(f"({kind})" in found.message for kind in kinds)
    assert lines_of(found) == {marked(Handing.program, "put"), marked(Handing.program, "load")}
    assert found.evidence is not None
    assert found.evidence.edge == "between ranks"
    ranks = {
        each.core.rpartition(" on ")[2] for each in (found.evidence.earlier, found.evidence.later)
    }
    assert ranks == {"rank 0", "rank 1"}
    assert "TNOTIFY" in found.fix
    assert "TWAIT" in found.fix


@pytest.mark.parametrize("seed", SEEDS)
def test_a_put_that_comes_too_soon(seed: int | None) -> None:
    """The block before it may not have been read yet."""
    (found,) = complaints(Handing("wait free", rounds=2), seed)
    assert found.code == "E7"
    assert "(WAR)" in found.message or "(RAW)" in found.message


def test_a_race_is_told_once() -> None:
    """The next run on the same ranks has findings of its own."""
    handing = Handing("wait ready")
    assert [d.code for d in complaints(handing)] == ["E7"]
    assert told(handing.world, lambda rank: None) == []
    assert [d.code for d in complaints(handing)] == ["E7"]


def test_a_missing_signal_is_a_hang() -> None:
    assert [d.code for d in complaints(Handing("ready"))] == ["would-block"]


@pytest.mark.parametrize("kind", ["manual", "auto"])
@pytest.mark.parametrize("waits", [True, False])
def test_launches_of_several_ranks(kind: str, waits: bool) -> None:
    world, program, _ = launched(waits, World, kind)
    assert [d.code for d in told(world, program)] == ([] if waits else ["E7"])


def test_launches_of_one_rank_follow_each_other() -> None:
    world = World(2)
    data = world.window((16, 16))

    def fills() -> None:
        tile = at(Block(), 0)
        TEXPANDS(tile, 3.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(data.tensor(), tile)

    def program(rank: int) -> None:
        for _ in range(3):
            launch({"vector": fills})
        fills()

    assert told(world, program) == []


def test_ranks_that_are_driven_one_after_another_are_in_order() -> None:
    handing = Handing("wait ready")
    for rank in (0, 1, 0, 1):
        with handing.world.rank(rank):
            handing.program(rank)


def test_runs_follow_each_other_and_signals_may_be_set_back() -> None:
    handing = Handing()
    for _ in range(3):
        assert complaints(handing) == []
        for word in (*handing.ready, *handing.free):
            word[...] = 0


@pytest.mark.parametrize("count", [1, 2])
def test_a_wait_proves_no_more_than_it_waits_for(count: int) -> None:
    world, program, _ = hearing_of_two_blocks(count, World)
    for seed in SEEDS:
        assert {d.code for d in told(world, program, seed)} == ({"E7"} if count == 1 else set())
        world.windows[1][2][...] = 0


def test_a_sender_that_runs_ahead_proves_no_more_either() -> None:
    """One sender, two blocks, and a wait for the first of them."""
    world = World(2)
    data, ready = world.window((2, 16, 16)), world.signals()
    mine = np.ones((16, 16), np.float32)

    def program(rank: int) -> None:
        tile = at(Block(), 0)
        for turn in range(2):
            if rank == 0:
                TPUT(GlobalTensor(data[1][turn]), GlobalTensor(mine), tile)
                behind_stores()
                TNOTIFY(ready.signal(1), 1, NotifyOp.AtomicAdd)
        if rank == 1:
            while not TTEST(ready.signal(), 1, WaitCmp.GE):
                pass
            TLOAD(tile, GlobalTensor(data.local[0]))
            pipe_barrier(PIPE_MTE2)
            TLOAD(tile, GlobalTensor(data.local[1]))  # too soon

    (found,) = told(world, program)
    assert found.code == "E7"
    assert marked(program, "too soon") in lines_of(found)


def test_additions_of_several_ranks_do_not_race() -> None:
    world, program, _ = sums(World)
    assert world.run(program) == [4 * (1.5 + 2.5), 0, 0]
    assert (world.windows[0][0] == 16).all()


def test_memory_of_one_rank_is_its_own_affair() -> None:
    """Arrays outside windows come and go: the same address later is another array."""
    world = World(2)

    def program(rank: int) -> None:
        tile = at(Block(), 0)
        TEXPANDS(tile, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(GlobalTensor(np.zeros((16, 16), np.float32)), tile)

    assert told(world, program) == []
    assert codes(lambda: None) == []


# ---- the collective unit -------------------------------------------------------------------------


def gathering(
    *, waits: bool = True, touches: str = "", source: Any = CcuInputSource.HostManaged
) -> list[Diagnostic]:
    """Every rank stores its part and rings; rank 0 has the parts stacked, and may touch them."""
    world = World(2, "a5")
    parts, whole = world.window((16, 16)), world.window((32, 16))

    def program(rank: int) -> None:
        tile, more = at(Block(), 0), at(Block(), 0x400)
        TEXPANDS(tile, float(rank + 1))
        if source is CcuInputSource.HostManaged:
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TSTORE(parts.tensor(), tile)  # stored
            if waits:
                behind_stores()
        group = ParallelGroup([parts.tensor(0), parts.tensor(1)], 0)
        TGATHER[CollEngine.CCU](group, whole.tensor(0), tile, CcuTriggerContext(0, 1, rank, source))
        if touches == "result" and rank == 1:
            TLOAD(more, GlobalTensor(whole[0][:16]))  # early
        if touches == "part" and rank == 1:
            TSTORE(parts.tensor(), tile)  # again

    found = told(world, program)
    if not found:
        assert whole[0][:, 0].tolist() == [1.0] * 16 + [2.0] * 16
    return found


@pytest.mark.parametrize("source", list(CcuInputSource))
def test_the_collective_unit_comes_behind_what_its_members_have_stored(source: Any) -> None:
    assert gathering(source=source) == []


def test_a_member_rings_before_its_store_is_complete() -> None:
    found = gathering(waits=False)
    assert {d.code for d in found} == {"E7"}
    assert lines_of(found[0]) >= {marked(gathering, "stored")}
    assert ("missing", "MTE3->S") in found[0].got
    assert "set_flag(PIPE_MTE3, PIPE_S" in found[0].fix


@pytest.mark.parametrize(
    ("touches", "mark", "kind"), [("result", "early", "RAW"), ("part", "again", "WAR")]
)
def test_nobody_knows_when_the_collective_unit_is_done(touches: str, mark: str, kind: str) -> None:
    found = gathering(touches=touches)
    assert {d.code for d in found} == {"E7"}
    assert f"({kind})" in found[0].message
    assert marked(gathering, mark) in lines_of(found[0])
    assert ("missing", "the end of the launch") in found[0].got
    assert "in a later launch" in found[0].fix
