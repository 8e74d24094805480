"""Queues: every pipe of a core works off what was issued to it, in order, at its own pace.

Work whose pipe is free runs when it is issued; behind a wait that is not satisfied it queues up.
In late mode everything queues up, and the scheduler decides which pipe moves next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptokit.base.location import Location, Site
from ptokit.isa.spec import Pipe
from ptokit.machine.clocks import PIPES, Clocks, agent_of
from ptokit.machine.core import Core
from ptokit.machine.flags import Clock, Semaphore, Token
from ptokit.machine.objects import GlobalObject

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine

Place = Site | Location


class Work(NamedTuple):
    """A call, with what it must not see change while it waits."""

    call: Any
    operands: Sequence[Any]
    site: Place
    registers: dict[str, Any]


class Signal(NamedTuple):
    """Tokens to give when everything before is done."""

    semaphores: tuple[Semaphore, ...]
    site: Place


class Wait(NamedTuple):
    """Tokens to take before anything behind may start."""

    semaphores: Sequence[Semaphore]
    what: str
    site: Place
    hint: str = ""
    early: bool = False  # nothing written before it gives the token

    @property
    def missing(self) -> list[Semaphore]:
        return [s for s in self.semaphores if not s.ready]


class Learn(NamedTuple):
    """What the scalar unit found out before it issued the work behind."""

    clock: Clock


class Barrier(NamedTuple):
    """Everything before is complete before anything behind."""

    site: Place


Entry = Work | Signal | Wait | Learn | Barrier


class PipeQueue:
    """What one pipe of one core still has to do."""

    __slots__ = ("agent", "core", "entries", "pipe", "title")

    def __init__(self, core: Core, pipe: Pipe) -> None:
        self.core = core
        self.pipe = pipe
        self.agent = agent_of(core, pipe)
        self.title = f"PIPE_{pipe.name} of the {core.name}"
        self.entries: deque[Entry] = deque()

    @property
    def movable(self) -> bool:
        """Whether the head could be carried out now."""
        if not self.entries:
            return False
        head = self.entries[0]
        return not isinstance(head, Wait) or not head.missing

    @property
    def leading_work(self) -> int:
        """How many transfers stand at the head without a signal, wait or barrier among them."""
        count = 0
        for entry in self.entries:
            if not isinstance(entry, Work):
                break
            count += 1
        return count

    @property
    def stalled(self) -> Wait | None:
        """The wait that holds the pipe, if one does."""
        head = self.entries[0] if self.entries else None
        return head if isinstance(head, Wait) and head.missing else None


class Queues:
    """The pipes of all cores of a launch."""

    def __init__(
        self,
        machine: Machine,
        clocks: Clocks | None,
        give: Callable[[Semaphore, Token], None],
        late: bool,
    ) -> None:
        self.machine = machine
        self.clocks = clocks
        self.give = give
        self.late = late
        self._queues: dict[tuple[int, Pipe], PipeQueue] = {}
        self.held: set[PipeQueue] = set()  # those with something left to do
        self._busy = False
        self._awake: deque[PipeQueue] = deque()

    def of(self, core: Core, pipe: Pipe) -> PipeQueue:
        key = (core.number, pipe)
        found = self._queues.get(key)
        if found is None:
            found = self._queues[key] = PipeQueue(core, pipe)
        return found

    def of_core(self, core: Core) -> list[PipeQueue]:
        """The queues of a core that were ever used."""
        keys = ((core.number, pipe) for pipe in Pipe)
        return [self._queues[k] for k in keys if k in self._queues]

    def drop(self, core: Core) -> None:
        """Forget a core that has ended."""
        for queue in self.of_core(core):
            self.held.discard(queue)
            del self._queues[core.number, queue.pipe]

    @property
    def pending(self) -> list[PipeQueue]:
        """The queues with something left to do."""
        return [q for q in self._queues.values() if q in self.held]

    def idle(self, core: Core) -> bool:
        """Whether every pipe of a core has done all it was given."""
        return not any(q.entries for q in self.of_core(core))

    def submit(self, queue: PipeQueue, entry: Entry) -> None:
        """Carry an entry out, or queue it behind what the pipe still waits for."""
        if (self.late and queue.pipe is not Pipe.S) or queue.entries:
            queue.entries.append(entry)
            self.held.add(queue)
            return
        if isinstance(entry, Wait) and entry.missing:
            queue.entries.append(entry)
            self.held.add(queue)
            self._listen(queue, entry)
            return
        self.proceed(queue, entry)

    def _listen(self, queue: PipeQueue, wait: Wait) -> None:
        for semaphore in wait.missing:
            semaphore.waiters.append(queue)

    def wake(self, semaphore: Semaphore) -> None:
        """Move the pipes that waited for a signal."""
        if not semaphore.waiters:
            return
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
        """Carry out entries from the head for as long as nothing holds the pipe."""
        while queue.entries and most > 0:
            head = queue.entries[0]
            if isinstance(head, Wait) and head.missing:
                self._listen(queue, head)
                return
            self._drop(queue, 0)
            self.proceed(queue, head)
            most -= 1

    def overtake(self, queue: PipeQueue, index: int) -> None:
        """Let a transfer complete before those in front of it."""
        entry = queue.entries[index]
        self._drop(queue, index)
        self.proceed(queue, entry)

    def _drop(self, queue: PipeQueue, index: int) -> None:
        del queue.entries[index]
        if not queue.entries:
            self.held.discard(queue)

    def proceed(self, queue: PipeQueue, entry: Entry) -> None:
        """Do what an entry says."""
        clocks = self.clocks
        if isinstance(entry, Work):
            self._run(queue.core, entry)
        elif isinstance(entry, Signal):
            clock = clocks.release(queue.agent) if clocks is not None else None
            token = Token(entry.site, queue.title, clock)
            for semaphore in entry.semaphores:
                self.give(semaphore, token)
        elif isinstance(entry, Wait):
            for semaphore in entry.semaphores:
                self.learn((queue.agent,), semaphore.take().clock)
        elif isinstance(entry, Learn):
            self.learn((queue.agent,), entry.clock)
        elif clocks is not None:
            clocks.barrier(queue.agent)

    def learn(self, agents: Iterable[int], clock: Clock | None) -> None:
        if self.clocks is not None:
            self.clocks.acquire(agents, clock)

    def learn_all(self, core: Core, clock: Clock | None) -> None:
        """The scalar unit has learnt something: it holds for all work issued from now on."""
        if self.clocks is None or clock is None:
            return
        behind = {q.pipe: q for q in self.of_core(core) if q.entries}
        for queue in behind.values():
            queue.entries.append(Learn(clock))
        first = core.number * PIPES
        self.clocks.acquire((first + p for p in range(PIPES) if p not in behind), clock)

    def _run(self, core: Core, work: Work) -> None:
        machine = self.machine
        before, registers = machine.core, core.registers
        machine.core, core.registers = core, work.registers
        try:
            machine.executor.execute(work.call, work.operands, work.site)
        finally:
            machine.core, core.registers = before, registers


def frozen(operands: Sequence[Any]) -> list[Any]:
    """Operands as they are now: a GlobalTensor may be pointed elsewhere before it is used."""
    return [
        GlobalObject(o.spec, o.pointer, o.shape, o.stride) if isinstance(o, GlobalObject) else o
        for o in operands
    ]
