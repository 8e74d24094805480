"""Clocks that share what was learnt at meetings know exactly what plain ones would."""

from __future__ import annotations

import random

import pytest

from ptokit import *
from ptokit.machine.clocks import PIPES, Clocks
from ptokit.machine.flags import Clock
from tests.hazards.support import *

AGENTS = 6


@pytest.mark.parametrize("seed", range(30))
def test_shared_epochs_change_nothing(seed: int) -> None:
    """Random work, signals and meetings of some or all, against clocks without epochs."""
    choose = random.Random(seed)
    clocks, plain = Clocks(), [dict.fromkeys(range(AGENTS), 0) for _ in range(AGENTS)]
    for _ in range(120):
        agent, other = choose.sample(range(AGENTS), 2)
        match choose.randrange(4):
            case 0:
                clocks.count[agent] += 1
            case 1:
                clocks.acquire((agent,), clocks.release(other))
                told = {**plain[other], other: clocks.count[other]}
                plain[agent] = {a: max(t, told[a]) for a, t in plain[agent].items()}
            case 2:
                clocks.barrier(agent)
                plain[agent][agent] = clocks.count[agent]
            case _:
                met = range(AGENTS) if choose.random() < 0.5 else (agent, other)
                all_know, expected = Clock(), dict.fromkeys(range(AGENTS), 0)
                for each in met:
                    all_know.join(clocks.release(each))
                    told = {**plain[each], each: clocks.count[each]}
                    expected = {a: max(t, told[a]) for a, t in expected.items()}
                shared = all_know.shared()
                for each in met:
                    clocks.acquire((each,), shared)
                    plain[each] = {a: max(t, expected[a]) for a, t in plain[each].items()}
        for each in range(AGENTS):
            known = clocks.of(each)
            assert {a: known.knows(a) for a in range(AGENTS)} == plain[each]


Told = dict[int, int]


@pytest.mark.parametrize("seed", range(40))
def test_what_all_pipes_of_a_core_learn(seed: int) -> None:
    """Flags, waits of the scalar unit and barriers of two cores, against clocks of all agents.

    Agents are asked only when they work, signal or wait: those that begin late know what their core
    has learnt by then. Some of what is learnt was learnt at a meeting.
    """
    choose = random.Random(seed)
    agents = [core * PIPES + pipe for core in range(2) for pipe in range(PIPES)]
    clocks, plain = Clocks(), {agent: dict.fromkeys(agents, 0) for agent in agents}

    def tell(taker: int, told: Told) -> None:
        plain[taker] = {a: max(t, told[a]) for a, t in plain[taker].items()}

    def released(giver: int) -> Told:
        return {**plain[giver], giver: clocks.count[giver]}

    for _ in range(80):
        giver, taker = choose.sample(agents, 2)
        core = taker // PIPES
        mine = agents[core * PIPES : (core + 1) * PIPES]
        match choose.randrange(5):
            case 0:
                clocks.count[giver] += 1
                clocks.of(giver)
            case 1:
                told = released(giver)
                clocks.hand(giver, taker)
                tell(taker, told)
            case 2:
                told, proven = released(giver), clocks.release(giver)
                clocks.learn(core, proven.shared() if choose.random() < 0.3 else proven)
                for each in mine:
                    tell(each, told)
            case 3:
                all_told = [released(each) for each in mine]
                clocks.barrier_all(core)
                for each in mine:
                    for told in all_told:
                        tell(each, told)
            case _:
                known = clocks.of(taker)
                assert {a: known.knows(a) for a in agents} == plain[taker]
    for agent in agents:
        assert {a: clocks.of(agent).knows(a) for a in agents} == plain[agent]


@pytest.mark.parametrize("meets", [True, False])
def test_additions_are_complete_behind_a_meeting(meets: bool) -> None:
    """Every block adds to one place; behind a meeting all may read it."""
    total, out = array(0), [array(0) for _ in range(5)]

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE[AtomicType.AtomicAdd](G32(total), a)
        pipe_barrier(PIPE_ALL)
        if meets:
            SYNCALL()
        TLOAD(b, G32(total))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TSTORE(G32(out[get_block_idx()]), b)

    assert ("E7" in codes(program, grid=5)) is not meets
    if meets:
        assert all((each == 5).all() for each in out)


def test_a_meeting_says_nothing_of_who_was_not_there() -> None:
    """Cube cores meet while a vector core adds: each of them that reads then is a race of its own,
    whatever was found for another one."""
    total = array(0)
    Boxed = Tile[TileType.Mat, float32, 16, 16, BLayout.ColMajor, 16, 16, SLayout.RowMajor, 512]

    def adds() -> None:
        a = at(F32(), 0)
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        if get_block_idx() == 0 and get_subblockid() == 0:
            TSTORE[AtomicType.AtomicAdd](G32(total), a)

    def reads() -> None:
        b = at(Boxed(), 0)
        SYNCALL[SyncCoreType.AICOnly]()
        if get_block_idx() == 0:
            TLOAD(b, G32(total))  # first
        else:
            TLOAD(b, G32(total))  # second

    found = check({"vector": adds, "cube": reads}, grid=2)
    lines = {line for each in found for line in lines_of(each)}
    assert lines >= {marked(reads, "first"), marked(reads, "second")}
