"""Clocks that share what was learnt, by cores and at meetings, know what whole ones would."""

from __future__ import annotations

import random

import pytest

from ptokit import *
from ptokit.machine.clocks import PIPES, Clocks
from ptokit.machine.flags import Clock
from tests.hazards.support import *

PIPES_USED = (0, 2, 3, 5)
AGENTS = [core * PIPES + pipe for core in range(3) for pipe in PIPES_USED]
Told = dict[int, int]


class Naive:
    """A whole clock for every agent, and nothing shared between any two."""

    def __init__(self) -> None:
        self.count = dict.fromkeys(AGENTS, 0)
        self.known: dict[int, Told] = {agent: dict.fromkeys(AGENTS, 0) for agent in AGENTS}

    def released(self, giver: int) -> Told:
        return {**self.known[giver], giver: self.count[giver]}

    def tell(self, taker: int, told: Told) -> None:
        self.known[taker] = _joined(self.known[taker], told)


def _joined(one: Told, other: Told) -> Told:
    return {agent: max(time, other[agent]) for agent, time in one.items()}


def _of_core(agent: int) -> list[int]:
    return [each for each in AGENTS if each // PIPES == agent // PIPES]


class Pair:
    """Clocks and naive ones, to which the same is done."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.clocks, self.naive = Clocks(), Naive()
        self.tokens: list[tuple[Clock, Told]] = []  # given, and not taken yet

    def work(self, agent: int, _: int) -> None:
        self.clocks.count[agent] += 1
        self.naive.count[agent] += 1
        self.clocks.of(agent)

    def hand(self, giver: int, taker: int) -> None:
        told = self.naive.released(giver)
        self.clocks.hand(giver, taker)
        self.naive.tell(taker, told)

    def give(self, giver: int, _: int) -> None:
        """A token that is taken later, when its giver and the core of that know more."""
        self.tokens.append((self.clocks.release(giver), self.naive.released(giver)))

    def take(self, taker: int, _: int) -> None:
        for proven, told in self._some_tokens(1):
            self.clocks.take(taker, proven)
            self.naive.tell(taker, told)

    def learn(self, taker: int, _: int) -> None:
        for proven, told in self._some_tokens(1):
            self.clocks.learn(taker // PIPES, proven)
            for each in _of_core(taker):
                self.naive.tell(each, told)

    def barrier(self, agent: int, _: int) -> None:
        self.clocks.barrier(agent)
        self.naive.known[agent][agent] = self.naive.count[agent]

    def barrier_all(self, agent: int, _: int) -> None:
        self.clocks.barrier_all(agent // PIPES)
        mine = _of_core(agent)
        all_told = [self.naive.released(each) for each in mine]
        for each in mine:
            for told in all_told:
                self.naive.tell(each, told)

    def meet(self, agent: int, _: int) -> None:
        """What some tokens prove becomes one that all who meet take, pipes or whole cores."""
        gathered, expected = Clock(), dict.fromkeys(AGENTS, 0)
        for proven, told in self._some_tokens(3):
            gathered.join(proven)
            expected = _joined(expected, told)
        self.tokens += [(gathered.shared(), expected)] * 4

    def overtaken(self, agent: int, other: int) -> None:
        """What was reported counts as ordered."""
        time = self.choose.randint(0, self.naive.count[other])
        self.clocks.acquire((agent,), Clock({other: time}))
        self.naive.known[agent][other] = max(self.naive.known[agent][other], time)

    def _some_tokens(self, most: int) -> list[tuple[Clock, Told]]:
        self.choose.shuffle(self.tokens)
        found, self.tokens = self.tokens[:most], self.tokens[most:]
        return found

    def compare(self) -> None:
        """All agents; those that have done nothing yet do not begin by being asked."""
        known = self.clocks.known
        for agent in AGENTS:
            clock = known[agent] if agent in known else known.of_core(agent // PIPES)
            expected = self.naive.known[agent]
            assert {each: clock.knows(each) for each in AGENTS} == expected
            assert {**dict.fromkeys(AGENTS, 0), **clock.flat()} == expected
            assert {each: clock.copy().knows(each) for each in AGENTS} == expected
        for proven, told in self.tokens:
            assert {each: proven.knows(each) for each in AGENTS} == told


@pytest.mark.parametrize("seed", range(60))
def test_clocks_that_share_parts_know_what_whole_ones_know(seed: int) -> None:
    """Work, flags, tokens, waits of the scalar unit, barriers and meetings of three cores.

    All agents are compared behind each step, so that one that a step leaves out is seen even
    where it learns the same by another way later.
    """
    both = Pair(seed)
    steps = (
        both.work, both.hand, both.give, both.give, both.take, both.learn, both.barrier,
        both.barrier_all, both.meet, both.overtaken,
    )  # fmt: skip
    weights = (9, 6, 4, 4, 3, 3, 1, 1, 2, 1)
    for _ in range(150):
        step = both.choose.choices(steps, weights)[0]
        step(*both.choose.sample(AGENTS, 2))
        both.compare()


@pytest.mark.parametrize("pipe", PIPES_USED)
def test_all_pipes_of_a_core_learn(pipe: int) -> None:
    """Those that have worked, and those that begin later."""
    clocks, far = Clocks(), 5 * PIPES
    for begun in PIPES_USED[:2]:
        clocks.of(begun)
    clocks.count[far] = 7
    clocks.learn(0, clocks.release(far))
    assert clocks.of(pipe).knows(far) == 7
    assert clocks.of(PIPES + pipe).knows(far) == 0


def test_what_a_token_proves_does_not_grow_with_the_core() -> None:
    clocks, far = Clocks(), 5 * PIPES
    before, clocks.count[far] = clocks.release(0), 7
    clocks.learn(0, clocks.release(far))
    assert (before.knows(far), clocks.of(0).knows(far)) == (0, 7)


def test_whoever_begins_behind_it_all_knows_it_all() -> None:
    """Ranks that have ended: what begins then, on any core, comes behind them."""
    clocks = Clocks()
    clocks.count[3] = 4
    clocks.known.begin_again(clocks.release(3).shared())
    clocks.learn(1, Clock({20: 1}))
    assert [clocks.of(agent).knows(3) for agent in (0, PIPES, 9 * PIPES)] == [4] * 3


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
