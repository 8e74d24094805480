"""What a program changes where nobody would see it, and which line that is."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.location import Location
from ptokit.comm import *
from ptokit.frontend.captured import Captured, Change, lost
from tests.hazards.support import marked

TABLE: dict[str, int] = {}
count = 0


class Kept:
    """An object of a user's."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def method(self, rank: int) -> None:
        assert rank >= 0
        self.found.append(rank)  # changed

    def __call__(self, rank: int) -> None:
        self.found = [rank]  # changed


def told(program: Callable[..., Any], *args: Any) -> list[tuple[str, int]]:
    """Which names a program has changed, and where."""
    captured = Captured(program, args)
    program(0, *args)
    found = captured.changed()
    assert all(each.at.file == __file__ for each in found)
    return [(each.name, each.at.line) for each in found]


def in_a_list() -> Any:
    found: list[int] = []

    def program(rank: int) -> None:
        if len(found) < 10:
            found.append(rank)  # changed

    return program, "found"


def in_a_variable() -> Any:
    total = 0

    def program(rank: int) -> None:
        nonlocal total
        total += rank + 1  # changed

    return program, "total"


def in_a_global() -> Any:
    def program(rank: int) -> None:
        global count
        count += 1  # changed

    return program, "count"


def in_a_table() -> Any:
    def program(rank: int) -> None:
        TABLE[f"rank {rank}"] = len(TABLE)  # changed

    return program, "TABLE"


def deep_inside() -> Any:
    kept = {"all": [(1, deque([Kept()]))]}

    def program(rank: int) -> None:
        kept["all"][0][1][0].found.append(rank)  # changed

    return program, "kept"


def in_a_helper() -> Any:
    seen: set[int] = set()

    def helper(rank: int) -> None:
        seen.add(rank)  # changed

    return partial(lambda more, rank: helper(rank + more), 1), "seen"


def in_a_lambda() -> Any:
    counts: Counter[int] = Counter()
    return lambda rank: counts.update([rank]), "counts"  # changed


def of_chance() -> Any:
    chance, more = np.random.default_rng(1), random.Random(1)

    def program(rank: int) -> float:
        return chance.random() + (more.random() if rank else 0)  # changed

    return program, "chance"


CHANGES = [in_a_list, in_a_variable, in_a_global, in_a_table, deep_inside, in_a_helper,
           in_a_lambda, of_chance]  # fmt: skip


@pytest.mark.parametrize("make", CHANGES)
def test_what_is_changed_is_told_with_its_line(make: Callable[[], Any]) -> None:
    program, name = make()
    assert told(program) == [(name, marked(make, "changed"))]


def test_a_method_changes_its_object() -> None:
    assert told(Kept().method) == [("self", marked(Kept.method, "changed"))]
    assert told(Kept()) == [("self", marked(Kept.__call__, "changed"))]


def test_arguments_are_copies_as_well() -> None:
    def program(rank: int, first: list[int], other: list[int]) -> None:
        other += [*first, rank]  # changed

    assert told(program, [1], []) == [("other", marked(program, "changed"))]


def test_what_stays_as_it_was_is_not_told() -> None:
    """Arrays are windows, or cannot be written; kernels are ours, and paths remember things."""
    world, kept, path = World(1), Kept(), Path("a") / "b"
    window, parts = world.window((16, 16)), [np.zeros(4)]

    @kernel(mode="auto")
    def double(x: Any, y: Any) -> None:
        t = Tile[TileType.Vec, float32, 16, 16]()
        TLOAD(t, GlobalTensor(x))
        TADD(t, t, t)
        TSTORE(GlobalTensor(y), t)

    def program(rank: int, more: list[int]) -> int:
        mine = [len(kept.found), *more]
        mine.append(rank + len(str(path)) + hash(path) * 0)
        parts[0][...] = 1
        window[0][...] = TABLE.get("nobody", 0)
        double[1](window[0], window[0])
        TABLE["taken back"] = 1
        del TABLE["taken back"]
        return sum(mine)

    assert told(program, [1, 2]) == []


def test_programs_that_python_has_not_compiled_are_taken_as_they_are() -> None:
    assert told(max, 1) == []


def test_a_change_of_several_ranks_is_told_once() -> None:
    one, other = (Change(name, "list", Location("k.py", 3)) for name in ("one", "other"))
    found = [each.message.split(":")[0] for each in lost([[one], [], [one, other]])]
    assert found == ["one is changed on ranks 0, 2", "other is changed on rank 2"]
