"""Semaphores: the one thing under every flag, credit, buffer token and barrier round.

A signal leaves a token, a wait takes one. The token remembers who gave it, where in the program,
and - when happens-before is tracked - what that pipe had finished by then.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ptokit.base.location import Location, Site

Clock = dict[int, int]  # how many instructions of each pipe are known to be complete


class Token:
    """What a signal carries to the wait that takes it."""

    __slots__ = ("clock", "event", "giver", "site")

    def __init__(
        self, site: Site | Location, giver: str, clock: Clock | None = None, event: Any = None
    ) -> None:
        self.site = site
        self.giver = giver
        self.clock = clock
        self.event = event  # the operation that gave it, where events are followed


class Semaphore:
    """Counts signals that were given and not yet taken, oldest first."""

    __slots__ = (
        "balance", "given", "last_set", "last_taken", "limit", "taken", "title", "tokens", "waiters"
    )  # fmt: skip

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

    def take(self) -> Token:
        self.taken += 1
        self.last_taken = self.tokens[0]
        return self.last_taken
