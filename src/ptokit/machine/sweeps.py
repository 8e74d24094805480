"""Sweeps: accesses of a loop that go through global memory, trip by trip.

What a loop does to the same bytes in every trip is part of the state that must be steady. What lies
elsewhere each time is looked at as a whole, before the trips are passed over: a sweep that writes
must never come to the same byte twice, two sweeps of one loop must be apart - or at the same place
in each trip, one of them perhaps a trip later, where the trips that were read have shown their
order - and whatever was done to these bytes before must be complete for the agent of the sweep as
it begins, and so for all it does.
Otherwise all trips are read one by one.

Afterwards the sweep is one region of the log, the `hull` of all its places, touched when the last
one was. That may be too much and too late, never too little; when somebody later is in conflict
with it, the sweep is unfolded into what was really touched, and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import combinations
from operator import sub
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.machine.access import Access
from ptokit.machine.events import Event, Executed
from ptokit.machine.hazards import HazardLog, Noted
from ptokit.machine.notes import Notes
from ptokit.machine.regions import Region, Rows, Use
from ptokit.machine.steady import Window

_READ = 2  # trips that show the order of two sweeps, one of which is a trip behind


@dataclass
class Sweep:
    """One operand of an instruction, in all trips."""

    noted: Noted
    agent: int
    access: Access
    rows: Rows  # behind each address
    table: Sequence[int]  # of addresses, for all trips
    turn: int  # which instruction of its agent it is in a trip, and which of all, from 1 on
    place: int
    first: tuple[int, int] = (0, 0)  # the time and the moment before all trips
    step: tuple[int, int] = (0, 0)  # what a trip adds to them
    before: tuple[int, ...] = ()  # its last addresses in trips that were read
    is_alone: bool = False  # whether no other of its kind comes to its bytes, nor it twice
    near: list[Region] = field(default_factory=list[Region])  # what its hull meets
    addresses: Sequence[int] = ()  # in the others

    @property
    def atomic(self) -> str:
        return self.noted.facts.atomic if self.access.writes else ""

    def hull(self) -> Region | None:
        """A region that holds all its places; None where rows would go round the edge."""
        start, width, pitch, number = self.rows
        if number == 1:
            low, high = _ends(self.addresses)
            reach = high - low + width
            return Region("GM", Rows(low + start, reach, reach, 1))
        top, bottom, left, right = self._corners()
        wide, tall = right + width - left, bottom + number - top
        if left + wide > pitch:
            return None
        return Region("GM", Rows(self._origin + top * pitch + left, wide, pitch, tall))

    def last_read(self) -> Region:
        """Where it was in the last trip that was read."""
        return Region("GM", self.rows.behind(self.before[-1]))

    @property
    def kind(self) -> tuple[int, Rows]:
        """The same for those of one shape in one array."""
        return self._origin, self.rows

    @property
    def _origin(self) -> int:
        return self.access.memory.base

    def _corners(self) -> tuple[int, int, int, int]:
        """The least and greatest row, and column in bytes, at which its places begin."""
        places, first, pitch = self.addresses, self.rows.start - self._origin, self.rows.pitch
        if isinstance(places, range):
            low, high = _ends(places)
            (top, left), (bottom, right) = divmod(low + first, pitch), divmod(high + first, pitch)
            if top == bottom or places.step % pitch == 0:
                return top, bottom, left, right
        row, col = zip(*[divmod(place + first, pitch) for place in places], strict=True)
        return min(row), max(row), min(col), max(col)

    def is_apart(self) -> bool:
        """Whether it never comes to the same byte twice."""
        return _is_apart(self.addresses, self.rows, self._origin)

    def may_touch(self, regions: Sequence[Region]) -> bool:
        """Whether it comes to one of some regions, as far as that is seen at once."""
        places = np.array(self.addresses, np.int64) + self.rows.start if regions else ()
        return any(self._meets(region, places) for region in regions)

    def _meets(self, region: Region, places: Any) -> bool:
        other = region.rows
        if region.sweep is not None or other is None:
            return True
        _, width, pitch, number = self.rows
        if number > 1 and other.number > 1 and pitch != other.pitch:
            return True
        pitch = other.pitch if number == 1 else pitch
        far = other.start - places
        low = (far - width) // pitch + 1
        high = -(-(far + other.width) // pitch) - 1
        return bool((np.maximum(low, 1 - other.number) <= np.minimum(high, number - 1)).any())

    def goes_with(self, other: Sweep) -> bool:
        """Whether two are apart, or at the same place in each trip, or one of them a trip later.

        They must never be there again, and have been so in a trip that was read.
        """
        if self.rows != other.rows or not self.is_apart():
            return False
        mine, others = self.addresses, other.addresses
        if mine == others or _is_apart([*mine, *others], self.rows, self._origin):
            return True
        mine, others = ([*each.before, *each.addresses] for each in (self, other))
        is_behind = mine[:-1] == others[1:] or mine[1:] == others[:-1]
        return len(self.before) == _READ and is_behind

    def unfold(self, log: HazardLog, whole: Region) -> None:
        """Put what was really touched in the place of a hull."""
        whole.forget()
        memory, pattern = self.access.memory, self.access.pattern
        for trip, address in enumerate(self.addresses):
            access = Access(pattern, memory, address - memory.base)
            part = log.region(access)
            assert part is not None
            event = self.event(part, trip)
            event.bound = (access,)
            self.enter(part, event)

    def enter(self, region: Region, event: Event) -> None:
        """Put what was done among what has been done to the same bytes before and since."""
        last, moment, agent = region.write, event.moment, event.agent
        if last is not None and last.moment > moment:
            return
        if self.access.writes and not self.atomic:
            region.write = event
            region.additions = _since(moment, region.additions)
            region.reads = _since(moment, region.reads)
            return
        among: dict[Any, Any] = region.additions if self.atomic else region.reads
        key = (agent, self.atomic) if self.atomic else agent
        if key in among and among[key].moment >= moment:
            return
        if self.atomic:
            region.add(agent, self.atomic, event)
        else:
            region.reads[agent] = event

    def event(self, region: Region, trip: int) -> Event:
        """What was executed in a trip, as far as this operand is concerned."""
        noted = self.noted
        event = Executed(noted, self.agent)
        event.time, event.moment = (
            start + trip * step + nth
            for start, step, nth in zip(self.first, self.step, (self.turn, self.place), strict=True)
        )
        event.uses = (Use(self.access.operand, self.access.writes, region, None, self.atomic),)
        return event


class Sweeps:
    """All that a window does to global memory through views, over many windows."""

    def __init__(self, log: HazardLog, window: Window, notes: Notes, first: int, many: int) -> None:
        self._log = log
        self._moving: list[Sweep] = []
        self._steady: list[tuple[Region, bool]] = []  # the same each time; whether it is written
        self._is_regular = True
        width, column = window.addresses, 0
        listed = notes.addresses[first : first + many * width]
        turns: dict[int, int] = {}
        self._size = len(window.instructions)
        for place, (noted, agent) in enumerate(window.instructions, 1):
            turns[agent] = turns.get(agent, 0) + 1
            if not noted.moves:
                for access in noted.bound:
                    self._stays(access)
                    self._is_regular &= getattr(access, "whole", None) is None
                continue
            for access, view in zip(noted.bound, noted.views, strict=True):
                addresses = _even(listed[column::width])
                low, high = _ends(addresses)
                column += 1
                if view is None or log.is_spared(noted, view, low, high):
                    continue
                if low == high:
                    self._steady.append((log.region_at(low, view), access.writes))
                    continue
                rows = access.pattern.extents
                if isinstance(rows, Rows):
                    at = turns[agent], place
                    self._moving.append(Sweep(noted, agent, access, rows, addresses, *at))
                else:
                    self._is_regular &= not rows
        # All that stays lies between.
        self._start = min((region.start for region, _ in self._steady), default=0)
        self._stop = max((region.stop for region, _ in self._steady), default=0)

    def _stays(self, access: Any) -> None:
        region = self._log.region(access)
        if region is not None:
            self._steady.append((region, access.writes))

    @property
    def regions(self) -> list[Region]:
        """What is touched in every window, and all that shares bytes with it."""
        found = {peer: None for region, _ in self._steady for peer in region.peers}
        return list(found)

    def pass_over(self, read: int, steps: Mapping[int, int]) -> bool:
        """Take the windows behind some that were read as done, if nothing can be in conflict."""
        log, hulls = self._log, list[tuple[Sweep, Region]]()
        if not self._is_regular:
            return False
        alike: dict[Any, list[Sweep]] = {}  # those of one shape in one array: looked at together
        for sweep in self._moving:
            sweep.before = tuple(sweep.table[max(0, read - _READ) : read])
            sweep.addresses = sweep.table[read:]
            alike.setdefault(sweep.kind, []).append(sweep)
        for members in alike.values():
            is_written = any(each.access.writes for each in members)
            are_apart = is_written and _are_apart(members)
            for sweep in members:
                sweep.is_alone = are_apart
        for sweep in self._moving:
            hull, agent = sweep.hull(), sweep.agent
            overwrites = sweep.access.writes and not sweep.atomic
            if hull is None or (overwrites and not sweep.is_alone and not sweep.is_apart()):
                return False
            if not self._is_clear(sweep, hull):
                return False
            sweep.first = log.clocks.count[agent], log.moment
            sweep.step = steps[agent], self._size
            hulls.append((sweep, hull))
        if not self._are_apart(hulls):
            return False
        known: list[Region] = []
        for sweep, hull in hulls:
            near = sweep.near + [other for other in known if hull.overlaps(other)]
            log.global_index().connect(hull, near)
            known.append(hull)
            hull.sweep = sweep
            last = sweep.event(hull, len(sweep.addresses) - 1)
            sweep.enter(hull, last)
        return True

    def _are_apart(self, hulls: Sequence[tuple[Sweep, Region]]) -> bool:
        """Whether no two sweeps are in conflict, but for what one and the same trip does."""
        for (one, mine), (two, other) in combinations(hulls, 2):
            is_conflict = one.access.writes or two.access.writes
            commutes = one.atomic and one.atomic == two.atomic
            if not is_conflict or commutes or not mine.overlaps(other):
                continue
            if not (one.is_alone and one.kind == two.kind) and not one.goes_with(two):
                return False
        return True

    def _is_amid(self, region: Region) -> bool:
        """Whether a region does not lie before or behind all that stays."""
        return region.start < self._stop and self._start < region.stop

    def _is_clear(self, sweep: Sweep, hull: Region) -> bool:
        """Whether nothing that was touched before, or in every window, is in conflict."""
        log, writes = self._log, sweep.access.writes
        if self._is_amid(hull) and any(
            hull.overlaps(region) for region, written in self._steady if written or writes
        ):
            return False
        # What the trip that was read last left in a region that stays would seem to come each trip.
        there = sweep.last_read()
        if self._is_amid(there) and any(there.overlaps(region) for region, _ in self._steady):
            return False
        if log.global_index().is_costly(hull):
            return False
        sweep.near = near = log.global_index().near(hull)
        hull.peers = near
        use = Use("", writes, hull, None, sweep.atomic)
        found = log.in_the_way(use, sweep.noted, sweep.agent)
        hull.peers = [hull]
        return not sweep.may_touch(found)


def _even(addresses: list[int]) -> Sequence[int]:
    """The same addresses; as a range, where each is as far behind the one before."""
    first, second = addresses[:2]
    if first == second:
        return addresses
    evenly = range(first, first + (second - first) * len(addresses), second - first)
    return evenly if list(evenly) == addresses else addresses


def _ends(addresses: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest."""
    if isinstance(addresses, range):
        first, last = addresses[0], addresses[-1]
        return (first, last) if first < last else (last, first)
    return min(addresses), max(addresses)


def _are_apart(sweeps: Sequence[Sweep]) -> bool:
    """Whether sweeps of one shape in one array never come to the same byte twice."""
    if len(sweeps) == 1:
        return sweeps[0].is_apart()
    first, places = sweeps[0], [place for each in sweeps for place in each.addresses]
    return _is_apart(places, first.rows, first.kind[0])


def _is_apart(places: Sequence[int], rows: Rows, origin: int) -> bool:
    """Whether rows behind each of these addresses, in an array, have no byte in common."""
    start, width, pitch, number = rows
    if number == 1:
        return _keep_apart(places, width)
    first = start - origin
    if isinstance(places, range):
        low, high = _ends(places)
        if (low + first) // pitch == (high + first) // pitch:
            return _keep_apart(places, width)
        if places.step % pitch == 0:
            return _keep_apart(places, number * pitch)
    spots = [divmod(place + first, pitch) for place in places]
    row, col = zip(*spots, strict=True)
    top, left = min(row), min(col)
    if max(row) == top:
        return _keep_apart(col, width)
    if max(col) == left:
        return _keep_apart(row, number)
    if any((down - top) % number or (right - left) % width for down, right in spots):
        return False
    return len(set(spots)) == len(spots)


def _keep_apart(starts: Sequence[int], size: int) -> bool:
    """Whether stretches of one size have nothing in common."""
    if isinstance(starts, range):
        return abs(starts.step) >= size
    ordered = sorted(starts)
    return min(map(sub, ordered[1:], ordered), default=size) >= size


def _since(moment: int, events: dict[Any, Any]) -> dict[Any, Any]:
    return {agent: event for agent, event in events.items() if event.moment > moment}
