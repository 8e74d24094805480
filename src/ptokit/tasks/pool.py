"""Who gets which task, what is tried again, and what has taken too long: for any kind of worker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import Any, Protocol

from ptokit.base.dataclass import dataclass
from ptokit.tasks.work import Answer, Kind, Result, Task, Trouble

LEAD = 10_000  # results that may wait for an earlier one, where they are wanted in order
_QUEUED = 0.1  # seconds of work that a worker has before it, so that it need not wait for more
_DEEPEST = 64  # tasks that it has at most
_AT_ONCE = 1000  # results of a journal that are passed on together


class Worker(Protocol):
    """Does one task after the other, in the order in which they are given."""

    def give(self, data: Any) -> None:
        """Another task; what came of it is heard from the crew."""
        ...

    def end(self) -> None:
        """At once, whatever it does."""
        ...


@dataclass(frozen=True)
class Ready:
    """A worker has begun."""


@dataclass(frozen=True)
class Gone:
    """A worker is no more."""

    reason: str


Word = tuple[Worker, Answer | Ready | Gone]


class Crew(Protocol):
    """Starts workers, and hears what they say."""

    life: int  # tasks after which a worker is replaced by a new one

    @property
    def size(self) -> int:
        """How many workers there may be, now."""
        ...

    def hire(self) -> Worker:
        """Another one, which says `Ready` when it has begun."""
        ...

    def heard(self, seconds: float | None) -> Iterable[Word]:
        """What was said meanwhile; waits until there is something, or for so long."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...


@dataclass(eq=False)
class _Order:
    """A task on its way."""

    number: int
    task: Task
    tries: int = 0
    is_suspect: bool = False  # its worker died: it is done by itself, so that one knows who did it


@dataclass(eq=False)
class _Hand:
    """A worker with the tasks that it has."""

    worker: Worker
    is_ready: bool = False
    orders: deque[_Order] = field(default_factory=deque[_Order])
    since: float = 0.0  # when it began with the first of them
    depth: int = 1  # how many it may have
    given: int = 0  # in its life


class Pool:
    """One run over tasks. Memory is bounded: tasks are taken from their iterator when wanted."""

    def __init__(
        self,
        crew: Crew,
        tasks: Iterable[Task],
        *,
        seconds: float | None,
        retries: int,
        ordered: bool,
        known: Callable[[Task], Any] | None = None,
    ) -> None:
        self._crew, self._known = crew, known
        self._seconds, self._retries = seconds, retries
        self._tasks = enumerate(tasks)
        self._is_exhausted = False
        self._waiting: deque[_Order] = deque()  # taken, and given to nobody
        self._hands: dict[Worker, _Hand] = {}
        self._open: dict[_Hand, None] = {}  # those that may be given more
        self._busy: dict[_Hand, None] = {}  # those with work, that of the oldest first
        self._starting = 0
        self._results: deque[Result] = deque()  # that can be passed on
        self._early: dict[int, Result] | None = {} if ordered else None
        self._next = 0  # the number of the result that is to be passed on next, in order

    def run(self) -> Iterator[Result]:
        """What came of every task: as it comes, or in order."""
        try:
            while True:
                self._staff()
                self._hand_out()
                while self._results:
                    yield self._results.popleft()
                if not self._busy and not self._waiting and self._is_exhausted:
                    return
                if not self._busy and not self._starting:  # all that was taken was known
                    continue
                for worker, word in self._crew.heard(self._patience()):
                    self._hear(worker, word)
                self._end_the_overdue()
        finally:
            self._crew.close()

    # ---- tasks -------------------------------------------------------------------------------

    def _has(self, count: int) -> bool:
        """Whether so many tasks wait; takes more of them where they do not."""
        while len(self._waiting) < count and not self._is_exhausted:
            if len(self._results) >= _AT_ONCE:
                break
            if self._early is not None and len(self._early) >= LEAD:
                break  # somebody has to finish the oldest first
            number, task = next(self._tasks, (0, None))
            if task is None:
                self._is_exhausted = True
            elif self._known is not None and (found := self._known(task)) is not None:
                self._pass_on(replace(found, number=number))
            else:
                self._waiting.append(_Order(number, task))
        return len(self._waiting) >= count

    def _pass_on(self, result: Result) -> None:
        if self._early is None:
            self._results.append(result)
            return
        self._early[result.number] = result
        while self._next in self._early:
            self._results.append(self._early.pop(self._next))
            self._next += 1

    # ---- workers -----------------------------------------------------------------------------

    def _staff(self) -> None:
        """As many workers as there are tasks for."""
        size = self._crew.size
        while len(self._hands) < size and self._has(len(self._open) + self._starting + 1):
            worker = self._crew.hire()
            self._hands[worker] = _Hand(worker)
            self._starting += 1

    def _hand_out(self) -> None:
        while self._open and self._has(1):
            order = self._waiting[0]
            fit = (each for each in self._open if not (order.is_suspect and each.orders))
            hand = next(fit, None)
            if hand is None:  # all are at work; one of them will be free
                return
            self._waiting.popleft()
            del self._open[hand]
            if not hand.orders:
                hand.since = time.monotonic()
                self._busy[hand] = None
            hand.orders.append(order)
            hand.given += 1
            hand.worker.give(order.task.data)
            self._offer(hand)

    def _offer(self, hand: _Hand) -> None:
        """Let a worker have more, where it may: those that have less come first."""
        is_apart = bool(hand.orders) and hand.orders[-1].is_suspect
        if len(hand.orders) < hand.depth and hand.given < self._crew.life and not is_apart:
            self._open[hand] = None

    def _hear(self, worker: Worker, word: Answer | Ready | Gone) -> None:
        hand = self._hands.get(worker)
        if hand is None:  # it was ended meanwhile
            return
        match word:
            case Ready():
                hand.is_ready = True
                self._starting -= 1
                self._offer(hand)
            case Gone():
                self._lose(hand, word.reason)
            case Answer():
                self._take(hand, word)

    def _take(self, hand: _Hand, answer: Answer) -> None:
        order, now = hand.orders.popleft(), time.monotonic()
        took = max(now - hand.since, 1e-6)
        hand.depth = 1 + min(_DEEPEST - 1, int(_QUEUED / took))
        hand.since = now
        del self._busy[hand]
        if hand.orders:
            self._busy[hand] = None
        if hand.given >= self._crew.life and not hand.orders:
            hand.worker.end()
            self._forget(hand)
        else:
            self._offer(hand)
        self._pass_on(Result(order.number, order.task, answer.value, answer.trouble))

    def _lose(self, hand: _Hand, reason: str) -> None:
        """A worker is no more: what it had goes to others, unless that has ended too many.

        Which of several tasks has ended it is not known: answers to the first of them may have been
        lost with it. So all of them are done one at a time, and counted then.
        """
        self._forget(hand)
        is_known = len(hand.orders) == 1
        for order in hand.orders:
            order.is_suspect = True
            order.tries += is_known
        if is_known and hand.orders[0].tries > self._retries:
            order = hand.orders.popleft()
            trouble = Trouble(Kind.DIED, reason)
            self._pass_on(Result(order.number, order.task, trouble=trouble))
        self._waiting.extendleft(reversed(hand.orders))

    def _forget(self, hand: _Hand) -> None:
        del self._hands[hand.worker]
        self._busy.pop(hand, None)
        self._open.pop(hand, None)
        self._starting -= not hand.is_ready

    # ---- time --------------------------------------------------------------------------------

    def _patience(self) -> float | None:
        """How long it can be waited for a word until a task has taken too long."""
        if self._seconds is None or not self._busy:
            return None
        first = next(iter(self._busy))
        return max(0.0, first.since + self._seconds - time.monotonic())

    def _end_the_overdue(self) -> None:
        if self._seconds is None:
            return
        latest = time.monotonic() - self._seconds
        while self._busy and (hand := next(iter(self._busy))).since <= latest:
            hand.worker.end()
            self._forget(hand)
            order = hand.orders.popleft()
            trouble = Trouble(Kind.TIME, f"it was ended after {self._seconds:g} s")
            self._pass_on(Result(order.number, order.task, trouble=trouble))
            self._waiting.extendleft(reversed(hand.orders))
