"""The order in which ranks in processes of their own hear of each other.

The hub knows nothing of memory. It keeps one list of all that ranks have written for others, in the
order in which it came, and tells each rank what it has not heard yet: at once when it looks, later
when it waits for something new. It alone sees that nobody can go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from ptokit.base.namedtuple import NamedTuple

POLLS = 2_000  # fruitless tests of every rank that can run at all, which count as a hang


class Ask(StrEnum):
    """What a rank wants."""

    LOOK = "look"  # what is new
    WAIT = "wait"  # the same, when there is something
    POLL = "poll"  # the same, after a test that failed
    LOCK = "lock"  # the same, and that nobody else adds to memory until it unlocks
    UNLOCK = "unlock"
    END = "end"  # nothing more: its program is over


class News(NamedTuple):
    """What a rank is told."""

    entries: Sequence[Any]  # that it has not heard of
    is_hopeless: bool = False  # to go on waiting


Tell = Callable[[News], None]


class Hub:
    """One list for all ranks, and who waits for it to grow."""

    def __init__(self, size: int) -> None:
        self.entries: list[Any] = []
        self._live = set(range(size))
        self._heard = [0] * size  # entries that a rank has been told of
        self._waiting: dict[int, Tell] = {}
        self._polls = [0] * size
        self._locked: int | None = None
        self._next: deque[tuple[int, Tell]] = deque()  # who wants the lock

    def ask(self, rank: int, what: Ask, entries: Sequence[Any], tell: Tell) -> None:
        """A rank says what it has written, and wants to hear something."""
        if entries:
            self.entries += entries
            self._polls = [0] * len(self._polls)
            self._tell_those_waiting()
        match what:
            case Ask.WAIT if self._heard[rank] == len(self.entries):
                self._waiting[rank] = tell
            case Ask.LOCK if self._locked is not None:
                self._next.append((rank, tell))
            case Ask.LOCK:
                self._locked = rank
                self._answer(rank, tell)
            case Ask.POLL:
                self._poll(rank, tell)
            case _:
                if what is Ask.UNLOCK:
                    self._unlock()
                if what is Ask.END:
                    self._live.discard(rank)
                self._answer(rank, tell)
        if self._waiting and self._live <= {*self._waiting, *self._hopeless()}:
            self._tell_those_waiting(is_hopeless=True)

    def _answer(self, rank: int, tell: Tell, *, is_hopeless: bool = False) -> None:
        known, self._heard[rank] = self._heard[rank], len(self.entries)
        tell(News(self.entries[known:], is_hopeless))

    def _tell_those_waiting(self, *, is_hopeless: bool = False) -> None:
        waiting, self._waiting = self._waiting, {}
        for rank, tell in sorted(waiting.items()):
            self._answer(rank, tell, is_hopeless=is_hopeless)

    def _hopeless(self) -> set[int]:
        """Ranks that test again and again, and nothing changes."""
        return {rank for rank in self._live if self._polls[rank] > POLLS}

    def _poll(self, rank: int, tell: Tell) -> None:
        self._polls[rank] += self._heard[rank] == len(self.entries)
        can_run = self._live - self._waiting.keys()
        self._answer(rank, tell, is_hopeless=can_run <= self._hopeless())

    def _unlock(self) -> None:
        self._locked = None
        if self._next:
            rank, tell = self._next.popleft()
            self._locked = rank
            self._answer(rank, tell)
