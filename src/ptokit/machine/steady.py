"""Steady loops: trips that leave the checker in the state in which they found it.

A `Window` is a stretch of a journal that is followed by equal ones. Reading it changes what the
checker knows: how far each agent has come, what each knows to be complete, what the tokens prove
that are still to be taken, and who touched which bytes last. A `State` holds all of it that the
window can see. When it is the same before and behind a window, but for all times of an agent having
gone on by the number of its instructions, every further one has the same outcome:

* The checker adds to times, takes the greater of two times of one agent, and compares them; nothing
  else. A time that goes on with its agent and one that stands still never change their order, since
  all that stand still are earlier, and even before the window in front of it, where global memory
  may have been touched last (`Shift.agrees` asks for both). So each comparison comes out as
  before, and each time goes on, or stands still, once more; by induction, for all of them.
* What would be reported has been reported, since the lines are the same.
* Global memory may be somewhere else in every trip: that is what `machine/sweeps.py` looks at.

So the rest of the windows need not be read: `Shift.apply` puts the state where they would leave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ptokit.machine.clocks import PIPES, Clocks
from ptokit.machine.events import Executed
from ptokit.machine.flags import Clock
from ptokit.machine.hazards import HazardLog, Noted
from ptokit.machine.notes import (
    GIVE,
    HAND,
    KINDS,
    LEARN,
    MEET,
    SHIFT,
    TAKE,
    TURN,
    Complete,
    Notes,
    Prove,
)
from ptokit.machine.regions import Region

_FAR = 1 << 62
_Record = tuple[Region, str, Any, Any]  # who touched a region last: the place of it, and the event


class Window:
    """What a stretch of a journal does each time."""

    def __init__(self, notes: Notes, start: int, stop: int, core: int) -> None:
        self.instructions: list[tuple[Noted, int]] = []  # each with its agent
        self.taken: list[int] = []  # tokens, counted from the first that the window gives
        self.given = 0  # tokens
        self.is_plain = True  # nothing happens whose outcome is not looked at
        cores: set[int] = set()
        handed: set[tuple[int, int]] = set()  # from whom to whom: a few, again and again
        entries, at, turn = notes.entries, start, core
        while at < stop:
            code = entries[at]
            at += 1
            if code >= 0:
                kind = code & KINDS
                if kind == HAND:
                    handed.add((code >> SHIFT, entries[at]))
                    at += 1
                    continue
                if kind == TURN:
                    turn = code >> SHIFT
                    continue
                cores.add(code >> SHIFT if kind == MEET else (code >> SHIFT) // PIPES)
                self.given += kind == GIVE
                if kind in (TAKE, LEARN):
                    self.taken.append(self.given - entries[at])
                    at += 1
                continue
            operation = notes.operations[~code]
            if isinstance(operation, Noted):
                self.instructions.append((operation, turn * PIPES + operation.pipe))
                cores.add(turn)
            elif isinstance(operation, Prove | Complete):
                cores.add(operation.agent // PIPES)
                self.given += isinstance(operation, Prove)
            else:
                self.is_plain = False
                break
        cores.update(agent // PIPES for pair in handed for agent in pair)
        self.is_closed = turn == core  # the next one begins as this one does
        self.addresses = sum(len(each.bound) for each, _ in self.instructions if each.moves)
        self.cores = sorted(cores)
        self.agents = [core * PIPES + pipe for core in self.cores for pipe in range(PIPES)]
        # Every token is taken, at most that many windows behind the one that gives it.
        many = self.given
        self.depth = max((-(back // many) for back in self.taken if many), default=0)
        self.is_plain &= not many or len({back % many for back in self.taken}) == many

    def pending(self, first: int) -> list[int]:
        """Tokens given before a window, whose own begin with `first`, and taken in it or later."""
        return [
            first + later * self.given + back
            for later in range(max(self.depth, 1))
            for back in self.taken
            if back + later * self.given < 0
        ]


class State:
    """What the checker knows before a window, as far as the window can see it."""

    def __init__(
        self,
        clocks: Clocks,
        window: Window,
        told: Sequence[Clock | None],  # by tokens that are still to be taken
        regions: Iterable[Region],
    ) -> None:
        self.count = {agent: clocks.count.get(agent, 0) for agent in window.agents}
        self.is_known = None not in told
        known = _known(clocks, window)
        # Part by part: what a pipe knows goes on as what its core knows does.
        parts = (each for each in (*known, *told) if each is not None)
        self.clocks = [Clock.above(each.base, each) for each in parts]
        self.records: list[_Record] = []
        keep = self.records.append
        for region in regions:
            keep((region, "write", 0, region.write))
            for key, event in region.additions.items():
                keep((region, "additions", key, event))
            for key, event in region.reads.items():
                keep((region, "reads", key, event))


class Shift:
    """How one state differs from another: by so many instructions of each agent, or not so."""

    def __init__(self, before: State, after: State) -> None:
        self.by = {agent: after.count[agent] - time for agent, time in before.count.items()}
        # Of times that stand still: what a clock does not name is none yet, and stays so.
        self._latest = {agent: 0 if step else -1 for agent, step in self.by.items()}
        self._earliest = dict.fromkeys(self.by, _FAR)  # of those that go on
        self._moved: list[_Record] = []
        self.agrees = (
            before.is_known
            and after.is_known
            and len(before.clocks) == len(after.clocks)
            and all(map(self._clock, before.clocks, after.clocks))
            and len(before.records) == len(after.records)
            and all(map(self._record, before.records, after.records))
            and all(self._latest[agent] < self._earliest[agent] for agent in self.by)
            and all(
                self._latest[agent] <= before.count[agent] - step
                for agent, step in self.by.items()
                if step
            )
        )

    def _time(self, agent: int, before: int, after: int) -> bool:
        if after == before:
            if agent in self.by and before > self._latest[agent]:
                self._latest[agent] = before
            return True
        if after - before != self.by.get(agent):
            return False
        if before < self._earliest[agent]:
            self._earliest[agent] = before
        return True

    def _clock(self, before: Clock, after: Clock) -> bool:
        if before.base is not after.base or before.keys() != after.keys():
            return False
        by, latest, earliest = self.by, self._latest, self._earliest
        for agent, step in by.items() if before.base else ():
            if step and (met := before.base.get(agent, 0)) > latest[agent]:
                latest[agent] = met
        for agent, time in before.items():  # `_time` of each: there are many
            later = after[agent]
            if later == time:
                if time > latest.get(agent, _FAR):
                    latest[agent] = time
            elif later - time != by.get(agent):
                return False
            elif time < earliest[agent]:
                earliest[agent] = time
        return True

    def _record(self, before: _Record, after: _Record) -> bool:
        one, two = before[3], after[3]
        if before[:3] != after[:3]:
            return False
        if one is two:
            return one is None or self._time(one.agent, one.time, one.time)
        if one is None or two is None:
            return False
        if one.noted is not two.noted or one.agent != two.agent:
            return False
        self._moved.append(after)
        return two.time - one.time == self.by[two.agent] and self._time(
            two.agent, one.time, two.time
        )

    def of(self, clock: Clock, times: int) -> Clock:
        """What a token of the last window proves that many windows later.

        Its times come from the state before the window, or were begun in it: each stands still or
        goes on.
        """
        by, latest = self.by, self._latest
        known = {
            agent: time + times * by[agent] if agent in by and time > latest[agent] else time
            for agent, time in clock.items()
        }
        return Clock.above(clock.base, known)

    def apply(
        self, log: HazardLog, window: Window, states: tuple[State, State], times: int
    ) -> None:
        """Put the state that many windows further."""
        clocks, (before, after) = log.clocks, states
        events = times * len(window.instructions)
        log.moment += events
        for agent, step in self.by.items():
            if step:
                clocks.count[agent] += times * step
        ahead = _known(clocks, window)
        for known, one, two in zip(ahead, before.clocks, after.clocks, strict=False):
            for other, time in two.items():
                known[other] = time + times * (time - one[other])
        later: dict[int, Any] = {}
        for region, kind, key, event in self._moved:
            if id(event) not in later:
                # The event itself stays what it is to the global memory that it touched.
                twin = Executed(event.noted, event.agent, event.places)
                twin.bound, twin.uses = event.bound, event.uses
                twin.time = event.time + times * self.by[event.agent]
                twin.moment = event.moment + events
                later[id(event)] = twin
            _put(region, kind, key, later[id(event)])


def _known(clocks: Clocks, window: Window) -> list[Clock]:
    """What the agents of a window come after."""
    return [known for core in window.cores for known in clocks.of_core(core)]


def _put(region: Region, kind: str, key: Any, event: Any) -> None:
    if kind == "write":
        region.write = event
    else:
        getattr(region, kind)[key] = event


def regions_of(log: HazardLog, window: Window) -> list[Region]:
    """The bytes on chip, and the registers, that a window touches, and all that share some."""
    found: dict[Region, None] = {}
    for noted, core in {(noted, agent // PIPES): None for noted, agent in window.instructions}:
        for region in log.regions_of(noted, core):
            found.update(dict.fromkeys(region.peers))
    return list(found)
