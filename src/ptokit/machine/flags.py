"""Semaphores: the one thing under every flag, credit, buffer token and barrier round.

A signal leaves a token, a wait takes one. The token remembers who gave it and where in the program;
what that pipe had finished by then is known to whoever reads the journal of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from ptokit.base.location import Location, Site

ALWAYS = 1 << 62  # how often what stays may be taken
SPENT = -2  # the number of a token that was taken at once


class Epoch(dict[int, int]):
    """What everybody knows who took part in a meeting of cores: shared, and never changed."""

    __slots__ = ("before",)

    def __init__(self, known: Mapping[int, int] | None = None, before: Epoch | None = None) -> None:
        super().__init__(known or {})
        self.before = before  # an epoch that this one includes

    def includes(self, other: Epoch) -> bool:
        """Whether all that the other one knows is known to be known here."""
        found: Epoch | None = self
        while found is not None and found is not other:
            found = found.before
        return found is other or not other


NOTHING = Epoch()


class Clock(dict[int, int]):
    """How many instructions of each pipe are known to be complete.

    What was learnt at the last meeting of cores is the `base`, shared by all who were there. The
    clock of a pipe stands above that of its `core`, which all pipes of the core share: what the
    core learns later, they all know. The entries are what comes on top of both. A time counts
    where it is the greatest.
    """

    base: Epoch = NOTHING  # made as dicts are: no clock but those of meetings has another one
    core: Clock  # of whoever is no pipe, and of cores themselves: one that knows nothing

    @staticmethod
    def above(base: Epoch, known: Mapping[int, int]) -> Clock:
        """What a meeting has told, and more."""
        clock = Clock(known)
        if base is not NOTHING:
            clock.base = base
        return clock

    def copy(self) -> Clock:
        """The same knowledge, which stays as it is whatever the core learns."""
        core = self.core
        if core is NO_CORE:
            return Clock.above(self.base, self)
        clock = Clock.above(core.base, core)
        clock._add(self)
        return clock

    def knows(self, agent: int) -> int:
        """How many instructions of an agent are complete."""
        core = self.core
        return max(
            self.get(agent, 0), core.get(agent, 0), core.base.get(agent, 0), self.base.get(agent, 0)
        )

    def join(self, other: Clock) -> None:
        """Learn what another clock knows."""
        if other.core is not self.core:
            self._add(other.core)
        self._add(other)

    def _add(self, other: Clock) -> None:
        """Learn what another clock knows by itself."""
        if other.base is not self.base and other.base:
            self._adopt(other.base)
        get = self.get
        for agent, time in other.items():
            if time > get(agent, 0):
                self[agent] = time

    def _adopt(self, base: Epoch) -> None:
        if base.includes(self.base):
            self.base, get = base, base.get
            more = [(agent, time) for agent, time in self.items() if time > get(agent, 0)]
            self.clear()
            self.update(more)
        elif not self.base.includes(base):
            for agent, time in base.items():
                if time > self.get(agent, 0):
                    self[agent] = time

    def shared(self) -> Clock:
        """The same knowledge as an epoch, which any number of others can take over at once."""
        everything = self.flat()
        if self.base.before is not None:
            self.base.before = None  # of rounds long past nobody asks
        return Clock.above(Epoch(everything, self.base), {})

    def flat(self) -> dict[int, int]:
        """All of it, without a part that others share."""
        found: dict[int, int] = {}
        for part in (self, self.core, self.base, self.core.base):
            for agent, time in part.items():
                found[agent] = max(time, found.get(agent, 0))
        return found

    def hand_up(self) -> None:
        """Let the core know all that is on top of it."""
        self.core._add(self)
        self.clear()
        self.base = NOTHING


NO_CORE = Clock()
Clock.core = NO_CORE


class Token:
    """What a signal carries to the wait that takes it."""

    __slots__ = ("event", "giver", "number", "site")

    def __init__(self, site: Site | Location, giver: str, event: Any = None) -> None:
        self.site = site
        self.giver = giver
        self.event = event  # the operation that gave it, where events are followed
        self.number = -1  # in the journal, which knows what it proves; the others prove nothing


class Semaphore:
    """Counts signals that were given and not yet taken, oldest first."""

    __slots__ = (
        "balance", "given", "last_set", "last_taken", "limit", "taken", "title", "tokens", "waiters"
    )  # fmt: skip

    times = 1  # how often a token is taken

    def __init__(self, title: str, limit: int = 15) -> None:
        self.title = title  # what is being waited for, in words
        self.limit = limit  # how many signals may be pending
        self.tokens: deque[Token] = deque()
        self.given = 0
        self.taken = 0
        self.balance = 0  # sets minus waits so far, as the program is written
        self.last_set: Site | Location | None = None
        self.last_taken: Token | None = None
        self.waiters: list[Any] = []  # queues to look at again after a signal

    @property
    def ready(self) -> bool:
        return bool(self.tokens)

    @property
    def full(self) -> bool:
        return len(self.tokens) >= self.limit

    def put(self, token: Token) -> None:
        self.given += 1
        self.tokens.append(token)

    def take(self) -> Token:
        self.taken += 1
        self.last_taken = self.tokens.popleft()
        return self.last_taken

    def __repr__(self) -> str:
        return f"<{self.title}: {len(self.tokens)} pending, {self.given} given>"


class Latch(Semaphore):
    """A signal that stays: every wait after it passes (a buffer that was released)."""

    __slots__ = ()

    times = ALWAYS

    def take(self) -> Token:
        self.taken += 1
        self.last_taken = self.tokens[0]
        return self.last_taken
