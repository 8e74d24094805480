"""Reading a journal: what was noted in a run, told to the clocks and the log in order.

Where equal stretches follow each other, as the trips of a loop do, they are read until the checker
is in a steady state (machine/steady.py) and then passed over.
"""

from __future__ import annotations

from typing import Any

from ptokit.machine.clocks import PIPES
from ptokit.machine.events import Executed
from ptokit.machine.flags import Clock
from ptokit.machine.hazards import HazardLog, Noted
from ptokit.machine.notes import (
    BARRIER,
    GIVE,
    HAND,
    KINDS,
    MEET,
    SHIFT,
    TAKE,
    TURN,
    Complete,
    Done,
    Gather,
    Notes,
    Prove,
    Recycle,
    Share,
    Start,
    Told,
)
from ptokit.machine.steady import Shift, State, Window, regions_of
from ptokit.machine.sweeps import Sweeps

_LEAST_SAVED = 300  # entries: to find out that a loop is steady costs as much as reading so many
# Two operations are looked up by one number. Where a journal has more of them, some pairs are taken
# for each other, and what stands between them is compared in vain.
_MANY = 1 << 14
_MOST_TRIES = 4  # windows after which a loop that is not steady never will be


class Replay:
    """Goes through journals."""

    def __init__(self, log: HazardLog, *, skips: bool) -> None:
        self.log = log
        self.clocks = log.clocks
        self.skips = skips
        self.notes = Notes()
        self._address = 0  # how many were read
        self._first = 0  # agent of the core whose turn it is
        self._given = 0  # tokens so far
        self._proven: dict[int, Clock] = {}  # by tokens
        self._taken: list[int] = []  # tokens
        # Where two instructions followed each other last. A single one may stand in a loop inside
        # the one that repeats, or in several places of it.
        self._last: dict[int, int] = {}
        self._quiet = 0  # up to here nothing is passed over

    def read(self, notes: Notes) -> None:
        """Tell all of it to the log."""
        self.notes = notes
        self._address = self._quiet = 0
        self._last.clear()
        self._step(0, len(notes.entries))
        kept = notes.kept
        for token in self._taken:
            left = kept.get(token, 1) - 1
            if left:
                kept[token] = left
            else:
                kept.pop(token, None)
                self._proven.pop(token, None)
        self._taken.clear()

    def _step(self, start: int, stop: int) -> None:
        """Read some entries."""
        clocks, see, last = self.clocks, self.log.see, self._last
        hand = clocks.hand
        entries, operations = self.notes.entries, self.notes.operations
        proven, taken = self._proven, self._taken
        addresses = self.notes.addresses
        at, previous = start, 0
        enough = stop - _LEAST_SAVED if self.skips else 0  # behind it nothing is worth passing over
        while at < stop:
            code = entries[at]
            at += 1
            if code < 0:
                operation = operations[~code]
                if operation.__class__ is Noted:
                    if at < enough:
                        here, pair = at - 1, code * _MANY + previous
                        before, last[pair], previous = last.get(pair, here), here, code
                        behind = here + here - before
                        if (
                            before < here >= self._quiet
                            and behind + behind - here <= enough
                            and (
                                entries[behind] == code
                                and entries[before:here] == entries[here:behind]
                                and (passed := self._pass(here, here - before, stop)) > here
                            )
                        ):
                            at = passed
                            continue
                    places = ()
                    if operation.moves:
                        first = self._address
                        self._address = first + len(operation.bound)
                        places = tuple(addresses[first : self._address])
                    see(Executed(operation, self._first + operation.pipe, places))
                elif operation.__class__ is Recycle:
                    self.log.recycle(operation.memories)
                else:
                    at = self._apply(operation, at)
                continue
            kind = code & KINDS
            if kind == HAND:
                hand(code >> SHIFT, entries[at])
                at += 1
                continue
            if kind == GIVE:
                proven[self._given] = clocks.release(code >> SHIFT)
                self._given += 1
                continue
            if kind == BARRIER:
                clocks.barrier(code >> SHIFT)
                continue
            if kind == MEET:
                clocks.barrier_all(code >> SHIFT)
                continue
            if kind == TURN:
                self._first = (code >> SHIFT) * PIPES
                continue
            token = self._given - entries[at]
            taken.append(token)
            at += 1
            if kind == TAKE:
                clocks.take(code >> SHIFT, proven[token])
            else:
                clocks.learn((code >> SHIFT) // PIPES, proven[token])

    # ---- what repeats ---------------------------------------------------------------------------

    def _pass(self, start: int, length: int, stop: int) -> int:
        """Read equal windows until the state is steady, and pass over the rest of them.

        Returns how far that went; what is left is to be read as usual.
        """
        entries, log, clocks = self.notes.entries, self.log, self.clocks
        body, end = entries[start : start + length], start + length
        while end + length <= stop and entries[end : end + length] == body:
            end += length
        if end - start - 2 * length < _LEAST_SAVED:
            return start
        window = Window(self.notes, start, start + length, self._first // PIPES)
        if not window.is_closed:
            return start
        self._quiet, many = end, (end - start) // length  # unless it is found to be steady
        if not window.is_plain or many < window.depth + _MOST_TRIES:
            return start
        sweeps = Sweeps(log, window, self.notes, self._address, many)
        regions = [*regions_of(log, window), *sweeps.regions]
        at = start

        def state() -> State:
            told = list(map(self._proven.get, window.pending(self._given)))
            return State(clocks, window, told, regions)

        # The first window is only read: with it most loops come to know of their earlier trips.
        self._step(at, at + length)
        at += length
        before = state()
        for trip in range(2, _MOST_TRIES):
            self._step(at, at + length)
            at += length
            after, left = state(), many - trip
            shift = Shift(before, after)
            if shift.agrees:
                proven = self._proven_behind(window, shift, left)
                if proven is not None and sweeps.pass_over(trip, shift.by):
                    self._proven.update(proven)
                    shift.apply(log, window, (before, after), left)
                    self._given += left * window.given
                    self._address += left * window.addresses
                    return end
            before = after
        return at

    def _proven_behind(self, window: Window, shift: Shift, left: int) -> dict[int, Clock] | None:
        """What the tokens of the last windows prove, which may be taken behind them.

        None where the window that was read last does not tell it.
        """
        many, kept, found = window.given, self.notes.kept, dict[int, Clock]()
        end = self._given + left * many
        several = range(end - window.depth * many, end) if kept else ()
        for number in {*window.pending(end), *(n for n in several if n in kept)}:
            # The token of the last window that was read, and how many windows behind it that is.
            later, place = divmod(number - self._given, many)
            clock = self._proven.get(self._given + place - many)
            if later < 0:
                continue
            if clock is None:
                return None
            found[number] = shift.of(clock, later + 1)
        return found

    def _apply(self, operation: Any, at: int) -> int:
        """An operation that orders; returns where the next entry stands."""
        clocks, proven, entries = self.clocks, self._proven, self.notes.entries
        match operation:
            case Complete(agent, less):
                clocks.acquire((agent,), Clock({agent: clocks.count[agent] - less}))
            case Prove(agent, less):
                clock = clocks.release(agent)
                clock[agent] = clocks.count[agent] - less
                self._prove(clock)
            case Start():
                self._prove(Clock())
            case Done(agent):
                self._prove(Clock({agent: clocks.count[agent]}))
            case Told(clock):
                self._prove(clock)
            case Gather():
                into, other = (proven[self._given - entries[at + n]] for n in range(2))
                into.join(other)
                return at + 2
            case Share():
                gathered = proven[self._given - entries[at]]
                self._prove(gathered.shared())
                return at + 1
            case _:
                raise AssertionError(operation)
        return at

    def _prove(self, clock: Clock) -> None:
        self._proven[self._given] = clock
        self._given += 1
