"""Queues: every pipe of a core works off what was given to it, in order, at its own pace.

Work whose pipe is free is executed when it is issued; after a wait that is not satisfied it queues
up. In late mode everything queues up, and the scheduler decides which pipe moves next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.location import Location, Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.effects import Pipe
from ptokit.isa.effects import Token as TokenKind
from ptokit.machine.clocks import PIPES, agent_of
from ptokit.machine.core import Core
from ptokit.machine.events import Event
from ptokit.machine.faults import PoisonRead
from ptokit.machine.flags import Semaphore, Token
from ptokit.machine.issued import Issued
from ptokit.machine.objects import GlobalObject

if TYPE_CHECKING:
    from ptokit.machine.journal import Journal
    from ptokit.machine.machine import Machine

Place = Site | Location


class Work(NamedTuple):
    """A call, with what it must not see change while it waits."""

    call: Any
    operands: Sequence[Any]
    site: Place
    registers: dict[str, Any]
    event: Event | None = None
    issued: Issued | None = None  # where, if it has to wait and somebody checks


class Give(NamedTuple):
    """Tokens to give when everything before is done."""

    semaphores: Sequence[Semaphore]
    site: Place
    event: Event | None = None


class Why(NamedTuple):
    """What a wait is for, and what would end it, in words."""

    what: str
    hint: str = ""
    point: str = ""  # the same for every time that a line waits; "": what it says is

    @property
    def label(self) -> str:
        return self.point or self.what


class Take(NamedTuple):
    """Tokens to take before anything behind may start."""

    semaphores: Sequence[Semaphore]
    why: Callable[[], Why]
    site: Place
    early: bool = False  # nothing written before it gives the token
    token: TokenKind | None = None
    event: Event | None = None

    @property
    def missing(self) -> list[Semaphore]:
        return [s for s in self.semaphores if not s.tokens]


class Learn(NamedTuple):
    """What the scalar unit found out before it issued the work behind."""

    seen: Token
    event: Event | None = None


class Complete(NamedTuple):
    """Everything before is complete before anything behind."""

    event: Event | None = None


Entry = Work | Give | Take | Learn | Complete


class PipeQueue:
    """What one pipe of one core still has to do."""

    __slots__ = ("agent", "core", "entries", "pipe", "title")

    def __init__(self, core: Core, pipe: Pipe) -> None:
        self.core = core
        self.pipe = pipe
        self.agent = agent_of(core, pipe)
        self.title = core.pipe_name(pipe)
        self.entries: deque[Entry] = deque()

    @property
    def movable(self) -> bool:
        """Whether the head could be executed now."""
        return bool(self.entries) and self.stalled is None

    def free_work(self, *, behind_signals: bool, lands_in_order: bool) -> list[int]:
        """Where transfers stand that may be done before those in front of them.

        No wait or barrier stands before them. A signal holds nobody up, but whoever keeps clocks
        counts on it that what it announces has been done before what stands behind it. Where
        writes land in order, none passes another to the same bytes.
        """
        found: list[int] = []
        passed: list[tuple[int, int, int]] = []  # memory and bytes that are written before
        for index, entry in enumerate(self.entries):
            if isinstance(entry, Work):
                written = list(_written(entry)) if lands_in_order else []
                if not any(_meet(one, other) for one in passed for other in written):
                    found.append(index)
                passed += written
            elif not (behind_signals and isinstance(entry, Give)):
                break
        return found

    @property
    def stalled(self) -> Take | None:
        """The wait that holds the pipe, if one does."""
        head = self.entries[0] if self.entries else None
        return head if isinstance(head, Take) and head.missing else None


def _written(work: Work) -> Iterator[tuple[int, int, int]]:
    """The on-chip memory that a call writes, and from where to where."""
    for access in work.call.accesses:
        ranges = access.ranges() if access.writes else ()
        if ranges:
            yield access.memory.uid, ranges[0][0], ranges[-1][1]


def _meet(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


class Queues:
    """The pipes of all cores of a launch."""

    def __init__(
        self,
        machine: Machine,
        refuse: Callable[[Semaphore, Token], None],
        late: bool,
    ) -> None:
        self.machine = machine
        self.journal: Journal | None = None
        self._refuse = refuse  # told of a token too many
        self.late = late
        self._queues: dict[int, PipeQueue] = {}  # by agent
        self.held: set[PipeQueue] = set()  # those with something left to do
        self._busy = False
        self._awake: deque[PipeQueue] = deque()

    def of(self, core: Core, pipe: Pipe) -> PipeQueue:
        agent = core.number * PIPES + pipe
        found = self._queues.get(agent)
        if found is None:
            found = self._queues[agent] = PipeQueue(core, pipe)
        return found

    def of_core(self, core: Core) -> list[PipeQueue]:
        """The queues of a core that were ever used."""
        agents = range(core.number * PIPES, (core.number + 1) * PIPES)
        return [self._queues[a] for a in agents if a in self._queues]

    def drop(self, core: Core) -> None:
        """Forget a core that has ended."""
        for queue in self.of_core(core):
            self.held.discard(queue)
            del self._queues[queue.agent]

    @property
    def pending(self) -> list[PipeQueue]:
        """The queues with something left to do."""
        return [q for q in self._queues.values() if q in self.held]

    def idle(self, core: Core) -> bool:
        """Whether every pipe of a core has done all it was given."""
        return not any(q.entries for q in self.of_core(core))

    # ---- what is given to a pipe ----------------------------------------------------------------

    def is_prompt(self, queue: PipeQueue) -> bool:
        """Whether a pipe executes at once what it is given."""
        return not queue.entries and (not self.late or queue.pipe is Pipe.S)

    def enqueue(self, queue: PipeQueue, entry: Entry) -> None:
        """Execute an entry, or queue it behind what the pipe still waits for."""
        if entry.event is not None:
            entry.event.left += 1
        is_prompt = self.is_prompt(queue)
        if is_prompt and not (isinstance(entry, Take) and entry.missing):
            self._execute(queue, entry)
            return
        if self.journal is not None and isinstance(entry, Work):
            entry = Work(*entry[:-1], self.journal.wait())
        queue.entries.append(entry)
        self.held.add(queue)
        if is_prompt and isinstance(entry, Take):
            self._listen(queue, entry)

    def _listen(self, queue: PipeQueue, take: Take) -> None:
        for semaphore in take.missing:
            if queue not in semaphore.waiters:  # it waits for several: each wakes it for all
                semaphore.waiters.append(queue)

    def wake(self, semaphore: Semaphore) -> None:
        """Move the pipes that waited for a signal."""
        if not self.late:
            self._awake.extend(semaphore.waiters)
        semaphore.waiters.clear()
        if self._busy:
            return
        self._busy = True
        try:
            while self._awake:
                self.advance(self._awake.popleft())
        finally:
            self._busy = False

    def advance(self, queue: PipeQueue, most: int = 1 << 30) -> None:
        """Execute entries from the head for as long as nothing holds the pipe."""
        while queue.entries and most > 0:
            head = queue.entries[0]
            if isinstance(head, Take) and head.missing:
                self._listen(queue, head)
                return
            self.overtake(queue, 0)
            most -= 1

    def overtake(self, queue: PipeQueue, index: int) -> None:
        """Execute an entry before those in front of it."""
        entry = queue.entries[index]
        del queue.entries[index]
        if not queue.entries:
            self.held.discard(queue)
        self._execute(queue, entry)

    def _execute(self, queue: PipeQueue, entry: Entry) -> None:
        if isinstance(entry, Work):
            self._work(queue.core, entry)
        elif isinstance(entry, Give):
            self.give(queue, entry.semaphores, entry.site, entry.event)
        elif isinstance(entry, Take):
            self.take(queue, entry.semaphores, entry.token, entry.event)
        elif isinstance(entry, Learn):
            if self.journal is not None:
                self.journal.take(queue.agent, entry.seen)
        elif self.journal is not None:
            self.journal.barrier(queue.agent)
        if entry.event is not None:
            self.machine.finish_part(entry.event)

    # ---- what pipes do --------------------------------------------------------------------------

    def give(
        self,
        queue: PipeQueue,
        semaphores: Sequence[Semaphore],
        site: Place,
        event: Event | None = None,
    ) -> None:
        """Leave a token with each semaphore, behind all that the pipe has done."""
        token = Token(site, queue.title, event)
        if self.journal is not None:
            is_one = len(semaphores) == 1
            times = semaphores[0].times if is_one else sum([s.times for s in semaphores])
            self.journal.give(queue.agent, token, times)
        for semaphore in semaphores:
            if semaphore.waiters or len(semaphore.tokens) >= semaphore.limit:
                self.put(semaphore, token)
            else:
                semaphore.put(token)

    def put(self, semaphore: Semaphore, token: Token) -> None:
        """Leave one token, and move whoever waited for it."""
        if len(semaphore.tokens) >= semaphore.limit:
            self._refuse(semaphore, token)
        semaphore.put(token)
        if semaphore.waiters:
            self.wake(semaphore)

    def take(
        self,
        queue: PipeQueue,
        semaphores: Iterable[Semaphore],
        token: TokenKind | None = None,
        event: Event | None = None,
    ) -> None:
        """Take the tokens; the pipe then knows what their givers had done."""
        journal = self.journal
        for semaphore in semaphores:
            taken = semaphore.take()
            if journal is not None:
                journal.take(queue.agent, taken)
            if event is not None and token is not None:
                event.waits.append((token, taken.event))

    def learn_all(self, core: Core, token: Token) -> None:
        """The scalar unit has seen a token: what it proves holds for all it issues from now on."""
        journal = self.journal
        if journal is None:
            return
        behind = {q.pipe: q for q in self.of_core(core) if q.entries} if self.held else None
        if not behind:
            journal.learn(core, token)
            return
        journal.keep(token)
        for queue in behind.values():
            queue.entries.append(Learn(token))
        for pipe in range(PIPES):
            if pipe not in behind:
                journal.take(core.number * PIPES + pipe, token)

    def _work(self, core: Core, work: Work) -> None:
        machine = self.machine
        before, registers, operation = machine.core, core.registers, machine.operation
        machine.core, core.registers, machine.operation = core, work.registers, work.event
        journal, issued = self.journal, work.issued
        outer = None if journal is None or issued is None else journal.begin_late(issued)
        try:
            machine.executor.execute(work.call, work.operands, work.site)
        except PoisonRead as error:
            error.late = core, issued
            raise
        finally:
            if journal is not None and issued is not None:
                journal.end_late(outer)
            machine.core, core.registers, machine.operation = before, registers, operation


def frozen(operands: Sequence[Any]) -> list[Any]:
    """Operands as they are now: a GlobalTensor may be pointed elsewhere before it is used."""
    return [
        GlobalObject(o.spec, o.pointer, o.shape, o.stride) if isinstance(o, GlobalObject) else o
        for o in operands
    ]
