"""Regions: sets of bytes that instructions touch, each of which knows the ones it overlaps.

A kernel touches few different regions, over and over. So overlap is worked out once, when a region
is first seen, and a later access looks only at its peers; nothing is kept per byte, and yet two
regions are peers exactly when they share one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ptokit.isa.walks import Walk

Ranges = tuple[tuple[int, int], ...]
_BUCKET = 16  # an index entry covers 64 KiB of addresses


class Rows(NamedTuple):
    """Stretches of `width` bytes, `number` of them, each `pitch` behind the one before."""

    start: int
    width: int
    pitch: int
    number: int

    @property
    def ranges(self) -> Ranges:
        starts = range(self.start, self.start + self.pitch * self.number, self.pitch)
        return tuple((start, start + self.width) for start in starts)

    def behind(self, base: int) -> Rows:
        """The same stretches behind another address."""
        return Rows(base + self.start, self.width, self.pitch, self.number)


def evenly(ranges: Ranges) -> Rows | None:
    """Ascending ranges as stretches of one length at one distance; None where they are not."""
    (start, stop), count = ranges[0], len(ranges)
    pitch = ranges[1][0] - start if count > 1 else stop - start
    rows = Rows(start, stop - start, pitch, count)
    return rows if rows.ranges == ranges else None


@dataclass(slots=True)
class Use:
    """One operand of an instruction as the hazard log sees it."""

    operand: str
    writes: bool
    region: Region
    walk: Walk | None
    atomic: bool


class Region:
    """Bytes of one memory, and who touched them last."""

    __slots__ = (
        "_ranges", "additions", "memory", "peers", "reads", "rows", "start", "stop", "write"
    )  # fmt: skip

    def __init__(self, memory: str, place: Rows | Ranges) -> None:
        self.memory = memory
        self.rows = place if isinstance(place, Rows) else evenly(place)
        self._ranges = None if isinstance(place, Rows) else place
        if self.rows is not None:
            self.start = self.rows.start
            self.stop = self.start + self.rows.pitch * (self.rows.number - 1) + self.rows.width
        else:
            assert self._ranges is not None
            self.start, self.stop = self._ranges[0][0], self._ranges[-1][1]
        self.peers: list[Region] = [self]
        # Records: the last write, atomic additions since then by agent, and reads by agent.
        self.write: Any = None
        self.additions: dict[int, Any] = {}
        self.reads: dict[int, Any] = {}

    @property
    def writes(self) -> list[Any]:
        """The last write and the atomic additions since then."""
        return [*(() if self.write is None else (self.write,)), *self.additions.values()]

    @property
    def ranges(self) -> Ranges:
        """The bytes, as ascending ranges [start, stop)."""
        if self._ranges is None:
            assert self.rows is not None
            self._ranges = self.rows.ranges
        return self._ranges

    def overlaps(self, other: Region) -> bool:
        """Whether the two have a byte in common."""
        if self.stop <= other.start or other.stop <= self.start:
            return False
        mine, others = self.rows, other.rows
        if mine is not None and others is not None:
            if mine.number == 1 == others.number:
                return True
            if mine.number == 1 or others.number == 1 or mine.pitch == others.pitch:
                return _rows_meet(mine, others)
        return _ranges_meet(self.ranges, other.ranges)

    def common(self, other: Region) -> tuple[int, int]:
        """The first stretch of bytes the two share."""
        for a, b in self.ranges:
            for c, d in other.ranges:
                if a < d and c < b:
                    return max(a, c), min(b, d)
        return self.start, self.start

    def forget(self) -> None:
        """Start over: the memory is given to somebody else."""
        self.write = None
        self.additions.clear()
        self.reads.clear()


class RegionIndex:
    """All regions of one address space."""

    def __init__(self, memory: str) -> None:
        self.memory = memory
        self._known: dict[Any, Region] = {}
        self._buckets: dict[int, list[Region]] = {}

    def get(self, key: Any) -> Region | None:
        return self._known.get(key)

    def add(self, key: Any, place: Rows | Ranges) -> Region | None:
        """Make the region of this key and connect it; None when it is empty."""
        if not place:
            return None
        region = Region(self.memory, place)
        seen: set[int] = set()
        for bucket in range(region.start >> _BUCKET, (region.stop - 1 >> _BUCKET) + 1):
            listed = self._buckets.setdefault(bucket, [])
            for other in listed:
                if id(other) not in seen:
                    seen.add(id(other))
                    if region.overlaps(other):
                        region.peers.append(other)
                        other.peers.append(region)
            listed.append(region)
        self._known[key] = region
        return region

    def forget(self) -> None:
        """Forget who touched what; the regions stay known."""
        for region in self._known.values():
            region.forget()


def _rows_meet(mine: Rows, others: Rows) -> bool:
    """Rows of one pitch: some distance of whole rows brings two of them together."""
    pitch = others.pitch if mine.number == 1 else mine.pitch
    distance = others.start - mine.start
    low = (distance - mine.width) // pitch + 1
    high = -(-(distance + others.width) // pitch) - 1
    return max(low, 1 - others.number) <= min(high, mine.number - 1)


def _ranges_meet(first: Ranges, second: Ranges) -> bool:
    one, two = np.asarray(first), np.asarray(second)
    index = np.searchsorted(two[:, 1], one[:, 0], side="right")
    inside = index < len(two)
    return bool((two[index[inside], 0] < one[inside, 1]).any())
