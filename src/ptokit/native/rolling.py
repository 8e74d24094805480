"""Loops found again in a list of calls.

Calls are items: a shape, and numbers. A stretch of shapes that repeats becomes one item, a `Loop`,
where the numbers of its rounds go up evenly, or turn around evenly as those of double buffers do.
Inner loops are found first, and are then items of the outer ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ptokit.base.namedtuple import NamedTuple

_MOST_TURNS = 8  # values that a number may turn around through: events, buffers
_WORTH = 2  # items that a loop must save
_LONGEST = 4096  # items of a round
_TRIED = 2 * _MOST_TURNS + 1  # rounds that are looked at first


class Item(NamedTuple):
    """A call, or a loop of items."""

    shape: Hashable
    numbers: tuple[int, ...]


class Way(NamedTuple):
    """How a number goes through the rounds: first + step * (round % turns), or * round."""

    step: int
    turns: int = 0


class Loop(NamedTuple):
    """The shape of a loop; the numbers of the item are those of the first round."""

    rounds: int
    body: tuple[Hashable, ...]
    counts: tuple[int, ...]  # how many numbers each item of the body has
    ways: tuple[Way, ...]


def rolled(items: Sequence[Item]) -> list[Item]:
    """The same calls, with loops."""
    found = list(items)
    numbers: dict[Hashable, int] = {}
    period = 1
    while period <= min(len(found) // 2, _LONGEST):
        ids = np.array([numbers.setdefault(each.shape, len(numbers)) for each in found])
        again = _fold(found, ids, period)
        if again is None:
            period += 1
        else:
            found, period = again, 1
    return found


def _fold(items: list[Item], ids: np.ndarray[Any, Any], period: int) -> list[Item] | None:
    """All loops whose rounds have so many items; None where there is none."""
    same = ids[:-period] == ids[period:]
    if np.count_nonzero(same) < period:
        return None
    # How many positions from each on repeat what lies a period before.
    breaks = np.flatnonzero(~same)
    ends = np.append(breaks, len(same))[np.searchsorted(breaks, np.arange(len(same)))]
    lengths = ends - np.arange(len(same))
    starts = np.flatnonzero(lengths >= period)
    made: list[Item] = []
    at, is_folded = 0, False
    for start in starts.tolist():
        if start < at:
            continue
        rounds = int(lengths[start]) // period + 1
        # Any numbers of two rounds are even. They are none of a longer stretch that is no loop.
        is_rest = start > at and same[start - 1]
        if rounds == 2 and (is_rest or _repeats(ids[start : start + 2 * period], period)):
            continue
        loop, taken = _loop(items, start, period, rounds)
        if loop is not None:
            made += items[at:start]
            made.append(loop)
            at, is_folded = start + taken * period, True
    return made + items[at:] if is_folded else None


def _repeats(ids: np.ndarray[Any, Any], period: int) -> bool:
    """Whether shapes repeat in shorter rounds as well."""
    shorter = (n for n in range(1, period // 2 + 1) if period % n == 0)
    return any(np.array_equal(ids[n:], ids[:-n]) for n in shorter)


def _loop(items: list[Item], start: int, period: int, rounds: int) -> tuple[Item | None, int]:
    """The loop that begins here, and how many of these rounds are in it."""
    tried = min(rounds, _TRIED)  # most stretches that are no loops show it soon
    while True:
        rows = _rows(items, start, period, tried)
        ways = [_ways(column) for column in rows.T]
        kept = min([tried, *(max(length for _, length in each) for each in ways)])
        if kept < tried or tried == rounds:
            break
        tried = min(rounds, tried * 8)
    if (kept == 2 and rounds > 2) or (kept - 1) * period < _WORTH:
        return None, 0
    first = items[start : start + period]
    shape = Loop(
        kept,
        tuple(each.shape for each in first),
        tuple(len(each.numbers) for each in first),
        tuple(next(way for way, length in each if length >= kept) for each in ways),
    )
    return Item(shape, tuple(rows[0].tolist())), kept


def _rows(items: list[Item], start: int, period: int, rounds: int) -> np.ndarray[Any, Any]:
    """The numbers of some rounds, one below the other."""
    stop = start + rounds * period
    found = [
        [n for each in items[at : at + period] for n in each.numbers]
        for at in range(start, stop, period)
    ]
    return np.array(found, dtype=np.int64).reshape(rounds, -1)


def _ways(column: np.ndarray[Any, Any]) -> list[tuple[Way, int]]:
    """How a number may go through the rounds, and for how many of them."""
    first, step = int(column[0]), int(column[1] - column[0])
    rounds = np.arange(len(column))
    found = [(Way(step), _agreed(column, first + step * rounds))]
    if step and found[0][1] < len(column):
        turns = found[0][1]  # the first round that breaks the pattern begins a new turn
        if 2 <= turns <= _MOST_TURNS:
            found.append((Way(step, turns), _agreed(column, first + step * (rounds % turns))))
    return found


def _agreed(column: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> int:
    """How many rounds are as expected."""
    other = np.flatnonzero(column != expected)
    return int(other[0]) if len(other) else len(column)
