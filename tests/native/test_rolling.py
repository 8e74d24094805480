"""Loops found again in lists of calls: whatever is found, it stands for the same calls."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ptokit.native.rolling import Item, Loop, rolled


def unrolled(items: Sequence[Item]) -> Iterator[Item]:
    for shape, numbers in items:
        if not isinstance(shape, Loop):
            yield Item(shape, numbers)
            continue
        for number in range(shape.rounds):
            given = [
                first + way.step * (number % way.turns if way.turns else number)
                for first, way in zip(numbers, shape.ways, strict=True)
            ]
            body: list[Item] = []
            for each, count in zip(shape.body, shape.counts, strict=True):
                body.append(Item(each, tuple(given[:count])))
                del given[:count]
            yield from unrolled(body)


def nest(rng: random.Random, depth: int) -> list[Item]:
    """Calls as a program with loops makes them: nested, with turns, tails and odd rounds."""
    found: list[Item] = []
    for _ in range(rng.randint(1, 3)):
        if not depth or rng.random() < 0.4:
            numbers = tuple(rng.randint(0, 99) for _ in range(rng.randint(0, 2)))
            found.append(Item(f"{rng.choice('abcdef')}{len(numbers)}", numbers))
            continue
        body, step, turns = nest(rng, depth - 1), rng.randint(0, 64), rng.choice([0, 0, 2, 3])
        for number in range(rng.randint(1, 7)):
            if rng.random() < 0.05:
                continue
            by = step * (number % turns if turns else number)
            found += [Item(shape, tuple(n + by for n in numbers)) for shape, numbers in body]
    return found


@pytest.mark.parametrize("seed", range(200))
def test_a_loop_stands_for_its_calls(seed: int) -> None:
    calls = nest(random.Random(seed), 3)
    made = rolled(calls)
    assert list(unrolled(made)) == calls
    assert len(made) <= len(calls)


def _calls(rounds: int, *calls: Any) -> list[Item]:
    return [Item(name, (number(i),)) for i in range(rounds) for name, number in calls]


@pytest.mark.parametrize("rounds", [3, 4, 9, 64])
def test_numbers_that_go_up_or_turn_around_are_one_loop(rounds: int) -> None:
    calls = _calls(rounds, ("wait", lambda i: i % 2), ("load", lambda i: 512 * i))
    (loop,) = rolled(calls)
    assert isinstance(loop.shape, Loop)
    assert (loop.shape.rounds, [way.turns for way in loop.shape.ways]) == (rounds, [2, 0])


def test_numbers_without_a_pattern_are_no_loop() -> None:
    calls = _calls(9, ("load", lambda i: i * i * i % 31), ("store", lambda i: i))
    assert rolled(calls) == calls


def test_long_lists_are_rolled_quickly() -> None:
    inner = _calls(16, ("load", lambda i: i), ("matmul", lambda i: i % 2), ("store", lambda i: i))
    calls = [Item(name, (n + 100 * j,)) for j in range(400) for name, (n,) in inner]
    (loop,) = rolled(calls)
    assert list(unrolled([loop])) == calls
