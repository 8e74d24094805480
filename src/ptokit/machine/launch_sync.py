"""Synchronisation in a launch: signals and waits become entries of the pipes' queues."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, where
from ptokit.isa import effects as fx
from ptokit.isa.effects import CoreFlag, Effect, Pipe, Reach
from ptokit.isa.spec import Insn
from ptokit.machine.aftermath import flag_clash, odd_ring
from ptokit.machine.cluster import SUBBLOCKS, cluster_of
from ptokit.machine.core import Core, Engine
from ptokit.machine.flags import ALWAYS, Clock, Latch, Semaphore, Token
from ptokit.machine.queues import Complete, Give, Learn, PipeQueue, Take, Why, Work
from ptokit.machine.sync import UNLIMITED, Given, Place, Row, Sync, double_set, overflow
from ptokit.machine.unit_flags import BELOW, HINT, UnitFlags

if TYPE_CHECKING:
    from ptokit.machine.scheduler import Scheduler


_SPIN = "whoever is to change the word must run and write it: blocks that come later, or a signal"


class Stream:
    """A core with its running program."""

    def __init__(self, core: Core, coroutine: Any) -> None:
        self.core = core
        self.coroutine = coroutine
        self.blocked: Take | None = None  # what the scalar unit waits for
        self.until: Callable[[], bool] | None = None
        self.polls = False  # it looks again and again for what has not come yet

    @property
    def done(self) -> bool:
        return self.coroutine.dead

    @property
    def ready(self) -> bool:
        return self.until is None or self.until()


@dataclass
class Meeting:
    """One round of a barrier between cores."""

    total: int
    what: str
    latch: Latch
    arrived: dict[int, Token] = field(default_factory=dict[int, Token])
    known: Token = field(default_factory=lambda: Token(where(None), ""))  # by all who came


class LaunchSync(Sync):
    """Flags, barriers and signals of many cores."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler.machine)
        self.scheduler = scheduler
        self.units = UnitFlags()
        # In auto mode the compiler puts the order between pipes after the wait.
        self.holds_pipes = scheduler.machine.mode == "manual" and scheduler.target.is_device
        self._is_random = scheduler.schedule.seed is not None
        # A pipe that has nothing to do gives and takes at once.
        self._is_prompt = self.holds_pipes and not scheduler.schedule.queued
        self.members: dict[str, int] = {}  # how many cores of each kind the launch has
        self.meetings: dict[Any, Meeting] = {}
        self._inside: dict[int, Meeting] = {}  # core: the meeting it has entered
        self.rounds: dict[Any, int] = {}  # (barrier, core): how often it was entered
        self.met: dict[int, Place] = {}  # core: where it entered a hard SYNCALL last
        self.used_flags: dict[int, Place] = {}  # cross-core flags of the program, and where
        target = scheduler.target
        scheduler.findings.used_core_flags = self.used_flags
        scheduler.findings.core_flags = [
            id for id in range(target.core_flags) if id not in target.reserved_flags
        ]

    # ---- the primitives -------------------------------------------------------------------------

    def signal(
        self, pipe: Pipe, semaphores: Sequence[Semaphore], site: Place, token: Any = None
    ) -> None:
        machine, queues = self.machine, self.scheduler.queues
        queue, event = queues.of(machine.core, pipe), machine.operation
        if event is not None and token is not None:
            event.signals.append(token)
        queues.enqueue(queue, Give(semaphores, site, event))
        if self._is_random:
            self.scheduler.yield_turn()

    def wait(
        self,
        pipe: Pipe,
        semaphores: Sequence[Semaphore],
        why: Callable[[], Why],
        site: Place,
        *,
        early: bool = False,
        token: Any = None,
    ) -> None:
        machine, queues = self.machine, self.scheduler.queues
        event = machine.operation
        if pipe is Pipe.S or not self.holds_pipes:
            self.block(Take(semaphores, why, site, early, token))
            for semaphore in semaphores:
                taken = semaphore.take()
                queues.learn_all(self.core, taken)
                if event is not None and token is not None:
                    event.waits.append((token, taken.event))
        else:
            take = Take(semaphores, why, site, early, token, event)
            queues.enqueue(queues.of(machine.core, pipe), take)
        if self._is_random:
            self.scheduler.yield_turn()

    # Flags are two thirds of a synchronised program: they know the queues of their pipes, and where
    # nothing is queued they are given and taken without going through one.

    def _new_flag(self, token: fx.Flag, title: str) -> Flag:
        queues, core = self.scheduler.queues, self.core
        self.scheduler.findings.flags.add(token)
        return Flag(title, queues.of(core, token.src), queues.of(core, token.dst))

    def _raise_flag(self, pipe: Pipe, token: fx.Flag, site: Place, given: Given) -> None:
        machine = self.machine
        flag: Any = machine.core.flags.get(token) if self._is_prompt else None
        if flag is None or flag.balance > 0 or flag.source.entries or machine.follows:
            super()._raise_flag(pipe, token, site, given)
            return
        flag.balance += 1
        flag.last_set = site
        source = flag.source
        signal = Token(site, source.title)
        if self.journal is not None:
            self.journal.give(source.agent, signal)
        flag.put(signal)
        if flag.waiters:
            self.scheduler.queues.wake(flag)

    def _take_flag(self, pipe: Pipe, token: fx.Flag, site: Place, given: Given) -> None:
        machine = self.machine
        # All later work of the core knows what its scalar unit has seen: that is no short way.
        is_short = self._is_prompt and pipe is not Pipe.S
        flag: Any = machine.core.flags.get(token) if is_short else None
        if flag is None or not flag.tokens or flag.target.entries or machine.follows:
            super()._take_flag(pipe, token, site, given)
        else:
            flag.balance -= 1
            taken = flag.take()
            if self.journal is not None:
                self.journal.take(flag.target.agent, taken)

    def handlers(self, operations: Iterable[tuple[Insn, Sequence[Effect], Place]]) -> Row:
        """A flag that is raised and taken at once, as most are, is one step."""
        found: Row = []
        for step in super().handlers(operations):
            handle, pipe, token, _ = step
            before = found[-1] if found else None
            if (
                before is not None
                and (before[0], handle) == (self._raise_flag, self._take_flag)
                and before[2] == token
                and pipe is not Pipe.S
            ):
                found[-1] = (self._pass_flag, pipe, [before, step], before[3])
            else:
                found.append(step)
        return found

    def _pass_flag(self, pipe: Pipe, steps: Row, site: Place, given: Given) -> None:
        """Raise a flag and take it: where neither pipe has to wait, nobody else sees it up."""
        machine = self.machine
        flag: Any = machine.core.flags.get(steps[0][2]) if self._is_prompt else None
        if (
            flag is None
            or flag.balance
            or flag.tokens
            or flag.source.entries
            or flag.target.entries
            or machine.follows
        ):
            self._in_turn(steps, given)
            return
        flag.given += 1
        flag.taken += 1
        flag.last_set = site
        flag.last_taken = Token(site, flag.source.title)
        if self.journal is not None:
            self.journal.hand(flag.source.agent, flag.target.agent)

    def _in_turn(self, steps: Row, given: Given) -> None:
        for handle, pipe, token, site in steps:
            handle(pipe, token, site, given)

    def block(self, wait: Take, until: Callable[[], bool] | None = None) -> None:
        """Stop the scalar unit of the running core until the wait can pass."""
        ready = until or (lambda: not wait.missing)
        if ready():
            return
        stream = self.scheduler.stream_of(self.core)
        stream.blocked, stream.until = wait, ready
        while not ready():
            if until is None and len(wait.semaphores) == 1:
                self.scheduler.park(stream, wait.semaphores[0])
            self.scheduler.wait_turn()
        stream.blocked = stream.until = None

    def perform(self, pipe: Pipe, call: Any, operands: Sequence[Any], site: Place) -> None:
        queues = self.scheduler.queues
        registers = dict(self.core.registers)
        entry = Work(call, operands, site, registers, self.machine.operation)
        with self.handed_over(call, pipe, site, operands):
            queues.enqueue(queues.of(self.core, pipe), entry)
        self.scheduler.yield_turn()

    def engine(self, key: Any, title: str, *, is_silent: bool = False) -> Engine:
        self.scheduler.watch_engines()
        return super().engine(key, title, is_silent=is_silent)

    def post(
        self,
        engine: Engine,
        call: Any,
        operands: Sequence[Any],
        site: Place,
        behind: Sequence[Clock] = (),
    ) -> Latch:
        queues, event, begun = (
            self.scheduler.queues,
            self.machine.operation,
            self.release(site, behind),
        )
        queue, over = queues.of(engine, Pipe.ALL), Latch(f"a transfer of the {engine.name}", 1)
        queues.enqueue(queue, Learn(begun))
        queues.enqueue(queue, Work(call, operands, site, {}, event))
        queues.enqueue(queue, Give((over,), site, event))
        self.scheduler.yield_turn()
        return over

    @contextmanager
    def handed_over(
        self, call: Any, pipe: Pipe, site: Place, operands: Sequence[Any]
    ) -> Generator[None, None, None]:
        """Put the unit flags of a call around it; in auto mode the compiler keeps the order."""
        if not (call.phase and self.holds_pipes):
            yield
            return
        waits, signals = self.units.around(call, site, operands)
        hint = HINT if call.accesses else BELOW
        why = Why(f"the unit flag of the accumulator of {call.insn.name}", hint)
        self.wait(pipe, waits, lambda: why, site)
        yield
        self.signal(pipe, signals, site)

    def look_again(self, what: str, site: Place) -> bool:
        """A core has looked in vain: let all others go on first, for as long as they can."""
        stream = self.scheduler.stream_of(self.core)
        stream.blocked, stream.polls = Take((), lambda: Why(what, _SPIN), site), True
        self.scheduler.wait_turn()
        stream.blocked, stream.polls = None, False
        return True

    def barrier(self, pipe: Pipe, site: Place) -> None:
        if pipe is Pipe.ALL:
            self.drain(self.core, site)
            if self.journal is not None:
                self.journal.barrier_all(self.core)
        else:
            queues = self.scheduler.queues
            queues.enqueue(queues.of(self.core, pipe), Complete(self.machine.operation))

    def stop_for(self, insn: Insn, pipes: frozenset[Pipe], site: Place) -> None:
        """Let the scalar unit wait, inside an instruction, until pipes have done their work."""
        queues, core = self.scheduler.queues, self.core
        waits = Take((), lambda: Why(f"{insn.name}, which waits for its pipe"), site)
        self.block(waits, lambda: not any(queues.of(core, p).entries for p in pipes))

    def drain(self, core: Core, site: Place | None = None) -> None:
        """Wait until all pipes of a core have done what they were given."""
        queues = self.scheduler.queues
        if queues.idle(core):
            return
        what = "pipe_barrier(PIPE_ALL)" if site is not None else "the end of the kernel"
        self.block(Take((), lambda: Why(what), site or where(None)), lambda: queues.idle(core))

    def put(self, semaphore: Semaphore, token: Token) -> None:
        self.scheduler.queues.put(semaphore, token)

    def refuse(self, semaphore: Semaphore, token: Token) -> None:
        """A signal too many; the run goes on with it."""
        self._report(overflow(semaphore, token), token.site)

    def set_twice(self, flag: Semaphore, site: Place) -> None:
        self._report(double_set(flag, site), site)  # a raised flag stays raised; the run goes on

    def _report(self, error: PtoError, site: Place) -> None:
        (problem,) = error.diagnostics
        self.scheduler.findings.add(
            problem.code, problem.message, site, fix=problem.fix, notes=problem.notes
        )

    def complain(self, code: str, message: str, site: Place, **more: Any) -> None:
        self.scheduler.findings.add(code, message, site, **more)

    def opened(self, pipe: Any) -> None:
        for flag in range(pipe.spec.FlagID, pipe.spec.last_flag + 1):
            self.used_flags.setdefault(flag, pipe.site)
        if self.scheduler.careful:
            flag_clash(self.scheduler.findings, self.core, pipe)
            odd_ring(self.scheduler.findings, pipe)

    def _reach(self, pipe: Pipe, token: CoreFlag, site: Place, given: Given) -> None:
        self.used_flags.setdefault(token.id % self.machine.target.core_flags, site)
        super()._reach(pipe, token, site, given)

    # ---- cores that meet ------------------------------------------------------------------------

    def group(self, token: CoreFlag) -> Semaphore:
        core, cluster, mode = self.core, cluster_of(self.core), token.reach.value
        total = SUBBLOCKS if token.reach is Reach.PAIR else self.members.get(core.kind, 1)
        where_met = cluster.block if token.reach is Reach.PAIR else core.kind
        what = f"ffts_cross_core_sync mode {mode}, flag {token.id}"
        meeting = self._round(("group", mode, where_met, token.id), total, what)
        # Each core's own semaphore rises when the last of the group has signalled.
        return Door(self, meeting, core, super().group(token))

    def _round(self, place: Any, total: int, what: str) -> Meeting:
        """The meeting the running core enters next at this place."""
        number = self.core.number
        turn = self.rounds.get((place, number), 0)
        self.rounds[place, number] = turn + 1
        found = self.meetings.get((place, turn))
        if found is None:
            found = self.meetings[place, turn] = Meeting(total, what, Latch(what, 1))
        return found

    def arrive(self, meeting: Meeting, core: Core, token: Token) -> bool:
        """Note an arrival; return whether it was the last."""
        meeting.arrived[core.number] = token
        if self.journal is not None:
            self.journal.gather(meeting.known, token)
        return len(meeting.arrived) >= meeting.total

    def shared(self, meeting: Meeting, site: Place, giver: str, event: Any) -> Token:
        """What everybody takes away who met."""
        token = Token(site, giver, event)
        if self.journal is not None:
            self.journal.share(meeting.known, token)
        return token

    def _arrive(self, pipe: Pipe, token: fx.Meeting, site: Place, given: Given) -> None:
        core, event = self.core, self.machine.operation
        kinds = token.kinds
        if token.counter:
            super()._arrive(pipe, token, site, given)
            at = given[token.counter].data()
            place: Any = ("SYNCALL soft", at.buffer.base + at.offset)
            kinds = (*kinds, "mix")
        elif core.kind not in kinds and core.kind != "mix":
            return
        else:
            kinds = (core.kind,) if core.kind == "mix" else kinds
            self.met[core.number] = site
            place = ("SYNCALL", kinds)
        total = token.used or sum(self.members.get(kind, 0) for kind in kinds)
        meeting = self._inside[core.number] = self._round(place, total, "SYNCALL")
        if event is not None:
            event.signals.append(token)
        if self.arrive(meeting, core, self.release(site)):
            meeting.latch.put(self.shared(meeting, site, core.name, event))

    def _leave(self, pipe: Pipe, token: fx.Meeting, site: Place, given: Given) -> None:
        meeting = self._inside.pop(self.core.number, None)
        if meeting is not None:
            self.wait(Pipe.S, (meeting.latch,), lambda: Why("SYNCALL"), site, token=token)

    # ---- signals in global memory ---------------------------------------------------------------

    def until(
        self,
        ready: Callable[[], bool],
        what: str,
        site: Place,
        seen: Callable[[], list[tuple[str, object]]],
    ) -> None:
        self.block(Take((), lambda: Why(what, "notify it first"), site), ready)

    def learn(self, token: Token) -> None:
        self.scheduler.queues.learn_all(self.core, token)


class Flag(Semaphore):
    """A flag inside a core, with the queues of the pipe that raises it and of the one it holds."""

    __slots__ = ("source", "target")

    def __init__(self, title: str, source: PipeQueue, target: PipeQueue) -> None:
        super().__init__(title, UNLIMITED)
        self.source = source
        self.target = target


class Door(Semaphore):
    """Where a core signals a group: everybody's semaphore rises when all have come."""

    __slots__ = ("_core", "_sync", "meeting", "mine")

    times = ALWAYS

    def __init__(self, sync: LaunchSync, meeting: Meeting, core: Core, mine: Semaphore) -> None:
        super().__init__(meeting.what)
        self._sync = sync
        self.meeting = meeting
        self._core = core
        self.mine = mine
        meeting.latch.waiters.append(mine)

    def put(self, token: Token) -> None:
        if self._sync.arrive(self.meeting, self._core, token):
            shared = self._sync.shared(self.meeting, token.site, token.giver, token.event)
            for semaphore in self.meeting.latch.waiters:
                self._sync.put(semaphore, shared)
