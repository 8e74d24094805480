"""Global memory as cores share it: transfers under way at the same time divide what there is.

Each has a limit of its own - of its core and pipe, lower for bytes that are not in the L2 - and
all together have one: the L2 hands out so many bytes a cycle, and HBM fewer. Whoever needs less
than an equal share leaves the rest to the others.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from typing import Any

_PAGE = 4096


class Cache:
    """The L2: whole regions, replaced at random - a scan larger than a cache that forgets the
    oldest would never hit, which no measurement shows."""

    def __init__(self, capacity: float) -> None:
        self._capacity = capacity
        self._used = 0.0
        self._held: list[tuple[Hashable, float]] = []
        self._at: dict[Hashable, int] = {}
        self._random = random.Random(1)
        self._written: set[int] = set()  # pages that the launch itself has written: they stay

    def misses(self, regions: Sequence[Any], size: float, writes: bool) -> tuple[float, int]:
        """Touch regions: the share of them that was missing, and how many different ones."""
        if writes:
            for start, *_ in regions:
                self._written.update(range(start // _PAGE, int(start + size - 1) // _PAGE + 1))
            return 0.0, 0
        missing, different = 0, set[Hashable]()
        for region in regions:
            if region in different:
                missing += 1
            elif region not in self._at and region[0] // _PAGE not in self._written:
                missing += 1
                different.add(region)
        for region in different:
            self._keep(region, size)
        return missing / len(regions), len(different)

    def _keep(self, region: Hashable, size: float) -> None:
        while self._used + size > self._capacity and self._held:
            index = self._random.randrange(len(self._held))
            gone, bytes_ = self._held[index]
            last = self._held.pop()
            if index < len(self._held):
                self._held[index] = last
                self._at[last[0]] = index
            del self._at[gone]
            self._used -= bytes_
        self._at[region] = len(self._held)
        self._held.append((region, size))
        self._used += size


class Transfer:
    """Bytes on their way, for `weight` cores that do the same."""

    __slots__ = ("cap", "left", "owner", "rate", "unique", "weight", "writes")

    def __init__(
        self, owner: Any, size: float, cap: float, weight: int, unique: int, writes: bool
    ) -> None:
        self.owner = owner
        self.left = size
        self.cap = cap
        self.weight = weight
        self.unique = unique  # regions among them that come from HBM
        self.writes = writes
        self.rate = 0.0


class Bus:
    """The transfers under way."""

    def __init__(self, total: float, hbm: float) -> None:
        self._total = total
        self._hbm = hbm
        self._active: list[Transfer] = []
        self._now = 0.0

    def begin(self, now: float, transfer: Transfer) -> None:
        self._settle(now)
        self._active.append(transfer)
        self._divide()

    def next_end(self) -> float | None:
        """When the next transfer is complete, if none begins before."""
        if not self._active:
            return None
        return self._now + min(each.left / each.rate for each in self._active)

    def end(self, now: float) -> list[Transfer]:
        """Take away the transfers that are complete."""
        self._settle(now)
        done = [each for each in self._active if each.left <= 1e-6 * each.rate]
        if done:
            self._active = [each for each in self._active if each not in done]
            self._divide()
        return done

    def _settle(self, now: float) -> None:
        for each in self._active:
            each.left -= each.rate * (now - self._now)
        self._now = now

    def _divide(self) -> None:
        reads = [each for each in self._active if not each.writes]
        room, heads = self._total, sum(each.weight for each in reads)
        for each in self._active:
            each.rate = each.cap  # of stores: no published figure shows that they meet a limit
        for each in sorted(reads, key=lambda t: t.cap):
            each.rate = min(each.cap, room / heads)
            room -= each.rate * each.weight
            heads -= each.weight
        missing = [each for each in self._active if each.unique]
        wanted = sum(each.rate * each.unique for each in missing)
        if wanted > self._hbm:
            for each in missing:
                each.rate *= self._hbm / wanted
