"""Regions: sets of bytes that instructions touch, each of which knows the ones it overlaps.

A kernel touches few different regions, over and over. So overlap is worked out once, when a region
is first seen, and a later access looks only at its peers; nothing is kept per byte, and yet two
regions are peers exactly when they share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

Ranges = tuple[tuple[int, int], ...]
_BUCKET = 16  # an index entry covers 64 KiB of addresses


class Touch(NamedTuple):
    """The last access of an agent to a region."""

    time: int
    record: Any
    operand: str
    agent: int
    clock: Any = None  # what was complete before it, where a handshake will need it


class Region:
    """Bytes of one memory, and who touched them last."""

    __slots__ = ("memory", "peers", "pitch", "ranges", "reads", "start", "stop", "width", "writes")

    def __init__(self, memory: str, ranges: Ranges) -> None:
        self.memory = memory
        self.ranges = ranges
        self.start, self.stop = ranges[0][0], ranges[-1][1]
        self.width = ranges[0][1] - ranges[0][0]
        # Rows of equal length at equal distance, the usual case; 0: not of that shape.
        self.pitch = _pitch(ranges, self.width)
        self.peers: list[Region] = [self]
        self.writes: dict[int, Touch] = {}
        self.reads: dict[int, Touch] = {}

    def overlaps(self, other: Region) -> bool:
        """Whether the two have a byte in common."""
        if self.stop <= other.start or other.stop <= self.start:
            return False
        one, two = len(self.ranges) == 1, len(other.ranges) == 1
        if one and two:
            return True
        pitch = other.pitch if one else self.pitch
        if pitch and (two or pitch == other.pitch):
            return self._rows_meet(other, pitch)
        return _ranges_meet(self.ranges, other.ranges)

    def _rows_meet(self, other: Region, pitch: int) -> bool:
        """Rows of one pitch: some distance of whole rows brings two of them together."""
        distance = other.start - self.start
        low = (distance - self.width) // pitch + 1
        high = -(-(distance + other.width) // pitch) - 1
        return max(low, 1 - len(other.ranges)) <= min(high, len(self.ranges) - 1)

    def common(self, other: Region) -> tuple[int, int]:
        """The first stretch of bytes the two share."""
        for a, b in self.ranges:
            for c, d in other.ranges:
                if a < d and c < b:
                    return max(a, c), min(b, d)
        return self.start, self.start

    def forget(self) -> None:
        """Start over: the memory is given to somebody else."""
        self.writes.clear()
        self.reads.clear()


class RegionIndex:
    """All regions of one address space."""

    def __init__(self, memory: str) -> None:
        self.memory = memory
        self._known: dict[Any, Region] = {}
        self._buckets: dict[int, list[Region]] = {}

    def get(self, key: Any) -> Region | None:
        return self._known.get(key)

    def add(self, key: Any, ranges: Iterable[tuple[int, int]]) -> Region | None:
        """The region under this key, made and connected when it is new; None when empty."""
        found = tuple(ranges)
        if not found:
            return None
        region = Region(self.memory, found)
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


def _pitch(ranges: Ranges, width: int) -> int:
    if len(ranges) == 1:
        return 0
    pitch = ranges[1][0] - ranges[0][0]
    start = ranges[0][0]
    even = all(a == start + i * pitch and b - a == width for i, (a, b) in enumerate(ranges))
    return pitch if even else 0


def _ranges_meet(first: Ranges, second: Ranges) -> bool:
    one, two = np.asarray(first), np.asarray(second)
    index = np.searchsorted(two[:, 1], one[:, 0], side="right")
    inside = index < len(two)
    return bool((two[index[inside], 0] < one[inside, 1]).any())
