"""Ranks that have copies of all windows and only a hub between them: here they are threads.

What they do must be what ranks of one process do, to the byte and to the word of every finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np
import pytest

from ptokit.base.layout import raw_bytes
from ptokit.comm import World
from ptokit.frontend.comm_types import replica
from ptokit.frontend.rank_actors import Kind
from ptokit.isa.targets import target
from ptokit.machine.apart import Changed, Copies, RanksApart, Spot, write_all
from ptokit.machine.hub import POLLS, Ask, Hub, News
from ptokit.machine.judge import Judge, Told
from tests.tasks.rank_programs import CLEAN, PROGRAMS, outcome, result


class Waiting:
    """The way of a thread to a hub that all of them share."""

    def __init__(self, hub: Hub, lock: Any, rank: int) -> None:
        self._hub, self._lock, self._rank = hub, lock, rank

    def ask(self, what: Ask, entries: Sequence[Any]) -> News:
        answer: SimpleQueue[News] = SimpleQueue()
        with self._lock:
            self._hub.ask(self._rank, what, entries, answer.put)
        return answer.get(timeout=60)

    def bytes_of(self, entries: Sequence[Changed]) -> Sequence[Any]:
        return [each.data for each in entries]

    def contents(self, window: Any) -> Any:
        return window


def apart(name: str, seed: int | None) -> tuple[Any, list[Any]]:
    """What becomes of a program whose ranks share nothing."""
    first = World(2)
    size = len(PROGRAMS[name](cache(World))[0])
    policy = first._devices[0].machine.policy  # pyright: ignore[reportPrivateUsage]
    kind = Kind(size, target("a2a3"), "manual", policy, replica)
    hub, lock = Hub(size), Lock()
    told: list[Any] = [None] * size

    def run(rank: int) -> None:
        ranks = RanksApart(size, rank)
        world: Any = replica(kind, ranks)
        _, program, args = PROGRAMS[name](lambda _: world)
        contents = [[array.copy() for array in each] for each in world.windows]
        for array in (array for each in world.windows for array in each):
            raw_bytes(array)[...] = 0xAB  # nobody reads what was not filled before
        value, error = None, None
        with ranks.on(Waiting(hub, lock, rank), contents):
            try:
                value = world._on(rank, program, args)
            except Exception as raised:
                error = raised
        told[rank] = Told(ranks.items, value, error, ranks.was_hopeless)

    plain = World(size)
    PROGRAMS[name](lambda _: plain)
    judge = Judge(target("a2a3"), [each.arrays for each in plain.windows])
    threads = [Thread(target=run, args=(rank,)) for rank in range(size)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(timeout=120)
    write_all(hub.entries, [each.arrays for each in plain.windows])
    left = [array.tolist() for each in plain.windows for array in each]
    return result(lambda: judge.run(told, seed)), left


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_apart_do_what_those_of_one_process_do(name: str) -> None:
    here, afar = outcome(PROGRAMS[name], cache(World)), apart(name, None)
    assert isinstance(here[0], list) == (name in CLEAN), here[0]
    assert afar[0] == here[0]
    if name in CLEAN:  # what a program that races leaves depends on who was faster
        assert afar[1] == here[1]


@pytest.mark.parametrize("name", ["put while it is read", "no more than it waits for"])
def test_seeds_choose_the_order_in_which_they_are_judged(name: str) -> None:
    found = [
        (outcome(PROGRAMS[name], cache(World), seed)[0], apart(name, seed)[0]) for seed in range(4)
    ]
    assert all(here == afar for here, afar in found)


# ---- copies --------------------------------------------------------------------------------------


def test_only_what_was_written_is_sent() -> None:
    copies = Copies()
    arrays = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    copies.add(arrays)
    for rank, each in enumerate(arrays):
        copies.fill((0, rank), each)
    assert list(copies.changes()) == []
    arrays[1][10:20] = 1
    arrays[1][500] = 2
    found = [(at, len(data)) for at, data in copies.changes()]
    assert [at for at, _ in found] == [Spot(0, 1, 42), Spot(0, 1, 2003)]  # 1.0 ends in 80 3f
    assert sum(size for _, size in found) < 50
    assert list(copies.changes()) == []
    copies.put(Spot(0, 0, 8), np.full(4, 7, np.uint8))
    assert arrays[0].view(np.uint8)[8:12].tolist() == [7] * 4
    assert list(copies.changes()) == [], "what came from elsewhere is not sent back"


class Counting(Waiting):
    """A line that knows what was fetched through it."""

    def __init__(self, hub: Hub, rank: int) -> None:
        super().__init__(hub, Lock(), rank)
        self.fetched: list[int] = []

    def bytes_of(self, entries: Sequence[Changed]) -> Sequence[Any]:
        self.fetched += [each.at.rank for each in entries]
        return super().bytes_of(entries)

    def contents(self, window: Any) -> Any:
        self.fetched.append(int(window[0]))
        return window


def test_a_rank_has_the_windows_that_it_reaches_and_no_others() -> None:
    """What others write elsewhere is fetched when somebody asks for it, in its order."""
    size, hub = 4, Hub(4)
    ranks = [RanksApart(size, number) for number in range(size)]
    lines = [Counting(hub, number) for number in range(size)]
    windows = [each.add_window(tuple(np.full(8, -9.0) for _ in range(size))) for each in ranks]
    before = [[np.arange(8) + 100.0 * n for n in range(size)]]
    for array in before[0]:
        array[0] //= 100
    with ExitStack() as running:
        for each, line in zip(ranks, lines, strict=True):
            running.enter_context(each.on(line, before))
        for turn in range(2):
            windows[0][1][2 + turn] = windows[0][2][3] = 5.0 + turn
            ranks[0].refresh()
        for each in ranks:
            each.refresh()
        assert [line.fetched for line in lines] == [[1, 2], [], [], []]
        assert windows[3][1].tolist() == [1, 101, 5, 6, 104, 105, 106, 107]
        assert windows[3][2].tolist() == [2, 201, 202, 6, 204, 205, 206, 207]
        assert lines[3].fetched == [1, 1, 1, 2, 2, 2]
        windows[0][1][7] = 4
        ranks[0].refresh()
        ranks[3].refresh()
        assert windows[3][1][7] == 4
        assert len([*windows[2]]) == size
        assert sorted(set(lines[2].fetched)) == [0, 1, 2, 3]


# ---- the hub -------------------------------------------------------------------------------------


class Heard(list[Any]):
    """What the ranks of a hub were told."""

    def __init__(self, size: int) -> None:
        self.hub = Hub(size)

    def ask(self, rank: int, what: Ask, *entries: Any) -> None:
        self.hub.ask(rank, what, entries, lambda news: self.append((rank, *news)))

    def take(self) -> list[Any]:
        found = list(self)
        self.clear()
        return found


def test_a_rank_that_waits_hears_of_what_comes() -> None:
    heard = Heard(2)
    heard.ask(0, Ask.WAIT)
    assert heard.take() == []
    heard.ask(1, Ask.LOOK, "one")
    assert heard.take() == [(0, ["one"], False), (1, ["one"], False)]
    heard.ask(0, Ask.LOOK)
    assert heard.take() == [(0, [], False)]


def test_nobody_waits_for_those_who_wait_or_have_ended() -> None:
    heard = Heard(3)
    heard.ask(2, Ask.END)
    heard.ask(0, Ask.WAIT)
    assert heard.take() == [(2, [], False)]
    heard.ask(1, Ask.WAIT)
    assert heard.take() == [(0, [], True), (1, [], True)]


def test_a_rank_that_tests_in_vain_is_told_once_nobody_else_can_run() -> None:
    heard = Heard(2)
    for _ in range(POLLS + 5):
        heard.ask(0, Ask.POLL)
    assert not any(is_hopeless for *_, is_hopeless in heard.take())  # the other may do something
    heard.ask(1, Ask.WAIT)
    assert heard.take() == [(1, [], True)]
    heard.ask(1, Ask.END)
    heard.take()
    heard.ask(0, Ask.POLL)
    assert heard.take() == [(0, [], True)]


def test_memory_is_changed_in_place_by_one_rank_at_a_time() -> None:
    heard = Heard(2)
    heard.ask(0, Ask.LOCK)
    heard.ask(1, Ask.LOCK)
    assert heard.take() == [(0, [], False)]
    heard.ask(0, Ask.UNLOCK, "sum")
    assert heard.take() == [(1, ["sum"], False), (0, ["sum"], False)]
