"""Synchronisation in a launch: signals and waits become entries of the pipes' queues."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import PtoError, where
from ptokit.isa.spec import Pipe
from ptokit.machine.aftermath import flag_clash, odd_ring
from ptokit.machine.clocks import agent_of, join
from ptokit.machine.cluster import SUBBLOCKS, cluster_of
from ptokit.machine.core import Core
from ptokit.machine.flags import Clock, Latch, Semaphore, Token
from ptokit.machine.objects import GlobalObject, Pointer
from ptokit.machine.queues import Barrier, PipeQueue, Signal, Wait, Work
from ptokit.machine.sync import UNLIMITED, FlagKey, Place, Sync, double_set, overflow
from ptokit.machine.unit_flags import UnitFlags

if TYPE_CHECKING:
    from ptokit.machine.scheduler import Launch


class Stream:
    """A core with its running program."""

    def __init__(self, core: Core, coroutine: Any) -> None:
        self.core = core
        self.coroutine = coroutine
        self.blocked: Wait | None = None  # what the scalar unit waits for
        self.until: Callable[[], bool] | None = None

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
    clock: Clock = field(default_factory=dict[int, int])


class LaunchSync(Sync):
    """Flags, barriers and signals of many cores."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch.machine)
        self.launch = launch
        self._units = UnitFlags()
        # Pipes work at once, no other core is let in between, and waits hold only their pipe.
        self._prompt = (
            not launch.schedule.queued
            and launch.machine.mode == "manual"
            and launch.target.is_device
        )
        self.members: dict[str, int] = {}  # how many cores of each kind the launch has
        self.meetings: dict[Any, Meeting] = {}
        self.rounds: dict[Any, int] = {}  # (barrier, core): how often it was entered
        self.met: dict[int, Place] = {}  # core: where it entered a hard SYNCALL last
        self.signals: dict[int, Clock] = {}  # of a word in global memory: what seeing it proves
        self.used_flags: dict[int, Place] = {}  # cross-core flags of the program, and where

    # ---- the primitives -------------------------------------------------------------------------

    def signal(self, pipe: Pipe, semaphores: Iterable[Semaphore], site: Place) -> None:
        queues = self.launch.queues
        queues.submit(queues.of(self.core, pipe), Signal(tuple(semaphores), site))
        self.launch.yield_turn()

    def wait(
        self,
        pipe: Pipe,
        semaphores: Sequence[Semaphore],
        what: str,
        site: Place,
        hint: str = "",
        early: bool = False,
    ) -> None:
        wait = Wait(semaphores, what, site, hint, early)
        # In auto mode the compiler puts the order between pipes behind the wait.
        if pipe is Pipe.S or self.machine.mode == "auto" or not self.machine.target.is_device:
            self.block(wait)
            for semaphore in semaphores:
                self.launch.queues.learn_all(self.core, semaphore.take().clock)
        else:
            queues = self.launch.queues
            queues.submit(queues.of(self.core, pipe), wait)
        self.launch.yield_turn()

    def flag(self, src: Pipe, dst: Pipe, id: int) -> Flag:
        core = self.machine.core
        found = core.flags.get((src, dst, id))
        if found is None:
            queues = self.launch.queues
            title = f"the flag {src.name} -> {dst.name} {id} of the {core.name}"
            found = Flag(title, queues.of(core, src), queues.of(core, dst))
            core.flags[src, dst, id] = found
        assert isinstance(found, Flag)
        return found

    def set_flag(self, src: Pipe, dst: Pipe, id: int, site: Place) -> None:
        self.flags([(True, (src, dst, id), site)])

    def wait_flag(self, src: Pipe, dst: Pipe, id: int, site: Place) -> None:
        self.flags([(False, (src, dst, id), site)])

    def flags(self, acts: Sequence[tuple[bool, FlagKey, Place]]) -> None:
        """Flags are two thirds of a synchronised program, and come in groups.

        Where every pipe works at once, what `signal` and `wait` would put into a queue and take out
        again is done right away.
        """
        known = self.machine.core.flags
        queues, clocks, prompt = self.launch.queues, self.launch.clocks, self._prompt
        for raises, key, site in acts:
            flag = known.get(key)
            if not prompt or not isinstance(flag, Flag):
                self._with_queues(raises, key, site)
            elif raises:
                queue = flag.source
                if flag.balance or queue.entries:
                    self._with_queues(raises, key, site)
                    continue
                flag.balance = 1
                flag.last_set = site
                clock = None
                if clocks is not None:
                    agent = queue.agent
                    clock = clocks.known[agent].copy()
                    clock[agent] = clocks.count[agent]
                flag.given += 1
                flag.tokens.append(Token(site, queue.title, clock))
                if flag.waiters:
                    queues.wake(flag)
            else:
                if not flag.tokens or flag.target.entries or key[1] is Pipe.S:
                    self._with_queues(raises, key, site)
                    continue
                flag.balance -= 1
                flag.taken += 1
                token = flag.last_taken = flag.tokens.popleft()
                if token.clock is not None and clocks is not None:
                    mine = clocks.known[flag.target.agent]
                    for agent, time in token.clock.items():
                        if time > mine.get(agent, 0):
                            mine[agent] = time

    def _with_queues(self, raises: bool, key: FlagKey, site: Place) -> None:
        if raises:
            super().set_flag(*key, site)
        else:
            super().wait_flag(*key, site)

    def block(self, wait: Wait, until: Callable[[], bool] | None = None) -> None:
        """Stop the scalar unit of the running core until the wait can pass."""
        ready = until or (lambda: not wait.missing)
        if ready():
            return
        stream = self.stream()
        stream.blocked, stream.until = wait, ready
        while not ready():
            self.launch.wait_turn()
        stream.blocked = stream.until = None

    def stream(self) -> Stream:
        """The running core's stream."""
        number = self.core.number
        return next(s for s in self.launch.streams if s.core.number == number)

    def perform(self, pipe: Pipe, call: Any, operands: Sequence[Any], site: Place) -> None:
        queues = self.launch.queues
        entry = Work(call, operands, site, dict(self.core.registers))
        with self.handed_over(call, pipe, site):
            queues.submit(queues.of(self.core, pipe), entry)
        self.launch.yield_turn()

    @contextmanager
    def handed_over(self, call: Any, pipe: Pipe, site: Place) -> Generator[None, None, None]:
        """Put the unit flags of a call around it, when pipes have queues of their own."""
        waits, signals = self._units.around(call, pipe) if self.launch.queued else ((), ())
        if waits:
            self.wait(pipe, waits, "the unit flag of an accumulator", site)
        yield
        if signals:
            self.signal(pipe, signals, site)

    def barrier(self, pipe: Pipe, site: Place) -> None:
        if pipe is Pipe.ALL:
            self.drain(self.core, site)
            if self.launch.clocks is not None:
                self.launch.clocks.barrier_all(self.core)
        else:
            queues = self.launch.queues
            queues.submit(queues.of(self.core, pipe), Barrier(site))

    def drain(self, core: Core, site: Place | None = None) -> None:
        """Wait until all pipes of a core have done what they were given."""
        queues = self.launch.queues
        if queues.idle(core):
            return
        what = "pipe_barrier(PIPE_ALL)" if site is not None else "the end of the kernel"
        self.block(Wait((), what, site or where(None)), lambda: queues.idle(core))

    def give(self, semaphore: Semaphore, token: Token) -> None:
        if semaphore.full:
            self._report(overflow(semaphore, token), token.site)
        semaphore.put(token)
        self.launch.queues.wake(semaphore)

    def set_twice(self, flag: Semaphore, site: Place) -> None:
        self._report(double_set(flag, site), site)  # a raised flag stays raised; the run goes on

    def _report(self, error: PtoError, site: Place) -> None:
        (problem,) = error.diagnostics
        self.launch.findings.add(
            problem.code, problem.message, site, fix=problem.fix, notes=problem.notes
        )

    def complain(self, code: str, message: str, site: Place, **more: Any) -> None:
        self.launch.findings.add(code, message, site, **more)

    def opened(self, pipe: Any) -> None:
        for flag in range(pipe.spec.FlagID, pipe.spec.last_flag + 1):
            self.used_flags.setdefault(flag, pipe.site)
        if self.launch.careful:
            flag_clash(self.launch.findings, self.core, pipe)
            odd_ring(self.launch.findings, pipe)

    def to_cluster(self, pipe: Pipe, flag: int, site: Place) -> None:
        self.used_flags.setdefault(flag, site)
        super().to_cluster(pipe, flag, site)

    def to_core(self, pipe: Pipe, flag: int, site: Place) -> None:
        self.used_flags.setdefault(flag % 16, site)
        super().to_core(pipe, flag, site)

    # ---- cores that meet ------------------------------------------------------------------------

    def to_group(self, pipe: Pipe, mode: int, flag: int, site: Place) -> None:
        core, cluster = self.core, cluster_of(self.core)
        total = SUBBLOCKS if mode == 1 else self.members.get(core.kind, 1)
        place = ("group", mode, core.kind if mode == 0 else cluster.block, flag)
        meeting = self._round(place, total, f"ffts_cross_core_sync mode {mode}, flag {flag}")
        role = self.role_here()
        mine = cluster.semaphore(role, flag)
        # Each core's own semaphore rises when the last of the group has signalled.
        door = _Door(self, meeting, core, mine)
        self.signal(pipe, (door,), site)

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
        if token.clock is not None:
            join(meeting.clock, token.clock)
        return len(meeting.arrived) >= meeting.total

    def meet(self, kinds: tuple[str, ...], site: Place) -> None:
        self.barrier(Pipe.ALL, site)
        core = self.core
        if core.kind not in kinds and core.kind != "mix":
            return
        kinds = (core.kind,) if core.kind == "mix" else kinds
        self.met[core.number] = site
        total = sum(self.members.get(kind, 0) for kind in kinds)
        self._meet(("SYNCALL", kinds), total, site)

    def meet_at_counter(
        self, workspace: GlobalObject, used: int, kinds: tuple[str, ...], site: Place
    ) -> None:
        self.barrier(Pipe.ALL, site)
        counter = workspace.numpy().reshape(-1)
        counter[0] += 1
        at = workspace.data()
        total = used or sum(self.members.get(kind, 0) for kind in (*kinds, "mix"))
        self._meet(("SYNCALL soft", at.buffer.base + at.offset), total, site)

    def _meet(self, place: Any, total: int, site: Place) -> None:
        core, clocks = self.core, self.launch.clocks
        meeting = self._round(place, total, "SYNCALL")
        clock = clocks.release(agent_of(core, Pipe.S)) if clocks is not None else None
        if self.arrive(meeting, core, Token(site, core.name, clock)):
            meeting.latch.put(Token(site, core.name, meeting.clock))
        self.block(Wait((meeting.latch,), "SYNCALL", site))
        self.launch.queues.learn_all(core, meeting.latch.take().clock)

    # ---- signals in global memory ---------------------------------------------------------------

    def until(
        self,
        ready: Callable[[], bool],
        what: str,
        site: Place,
        seen: Callable[[], list[tuple[str, object]]],
    ) -> None:
        self.block(Wait((), what, site, "notify it first"), ready)

    def announce(self, address: int, site: Place) -> None:
        if self.launch.clocks is not None:
            clock = self.launch.clocks.release(agent_of(self.core, Pipe.S))
            join(self.signals.setdefault(address, {}), clock)

    def heed(self, addresses: Iterable[int], site: Place) -> None:
        for address in addresses:
            self.launch.queues.learn_all(self.core, self.signals.get(address))

    # ---- scalar accesses to global memory -------------------------------------------------------

    def clean_cache(self, at: Pointer | None, site: Place) -> None:
        if self.launch.log is not None:
            address = None if at is None else at.buffer.base + at.offset
            self.launch.log.scalar.clean(self.core, address)

    def fence(self, site: Place) -> None:
        if self.launch.log is not None:
            self.launch.log.scalar.fence(self.core)


class Flag(Semaphore):
    """A flag inside a core, with the queues of the pipe that raises it and of the one it holds."""

    __slots__ = ("source", "target")

    def __init__(self, title: str, source: PipeQueue, target: PipeQueue) -> None:
        super().__init__(title, UNLIMITED)
        self.source = source
        self.target = target


class _Door(Semaphore):
    """Where a core signals a group: everybody's semaphore rises when all have come."""

    __slots__ = ("_core", "_meeting", "_mine", "_sync")

    def __init__(self, sync: LaunchSync, meeting: Meeting, core: Core, mine: Semaphore) -> None:
        super().__init__(meeting.what)
        self._sync = sync
        self._meeting = meeting
        self._core = core
        self._mine = mine
        meeting.latch.waiters.append(mine)

    def put(self, token: Token) -> None:
        if self._sync.arrive(self._meeting, self._core, token):
            shared = Token(token.site, token.giver, self._meeting.clock)
            for semaphore in self._meeting.latch.waiters:
                self._sync.give(semaphore, shared)
