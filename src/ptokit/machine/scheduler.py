"""Launches: a grid of clusters whose cores run as coroutines, one step at a time, in a known order.

Each core runs its program until it must wait for another; then the scheduler picks the next one.
Without a seed it takes the first core that can go on, and pipes work at once. With a seed, and in
the late schedules, pipes work when the scheduler says so, which is how exploration finds programs
whose result depends on it. The same seed always gives the same run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import islice
from math import inf
from operator import index
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, ProgramError, PtoError
from ptokit.base.location import Location, Site
from ptokit.base.policy import DEFAULT, Policy
from ptokit.isa.effects import InAuto, Pipe
from ptokit.isa.targets import Target
from ptokit.machine.aftermath import at_block_end, at_end, at_pipe
from ptokit.machine.arena import Arena
from ptokit.machine.budget import Budget
from ptokit.machine.clocks import Clocks, CoreClocks
from ptokit.machine.cluster import SUBBLOCKS, Cluster
from ptokit.machine.core import Core
from ptokit.machine.executor import Executor
from ptokit.machine.faults import unwanted
from ptokit.machine.findings import Findings
from ptokit.machine.flags import Clock, Semaphore
from ptokit.machine.issue import IssueSync, Listener
from ptokit.machine.journal import Journal, PromptJournal, uncollected
from ptokit.machine.launch_sync import LaunchSync, Stream
from ptokit.machine.machine import Machine, Subscriber
from ptokit.machine.queues import PipeQueue, Queues, Work, frozen
from ptokit.machine.ranks import coroutine, here, others_run, poll, wait_for_others
from ptokit.machine.sync import MOST_LOOKS

if TYPE_CHECKING:
    from ptokit.machine.recording import Recording
    from ptokit.machine.resident import Again, Resident

Program = Callable[[], Any]
MOST_BLOCKS = (1 << 32) - 1  # a launch says their number in 32 bits


@dataclass(frozen=True, eq=False)
class Pace:
    """When every piece of work is done, as somebody has predicted."""

    what: str  # these moments are: "begins", "ends"
    moments: Mapping[tuple[int, str, int], Sequence[float]]  # by block, core and pipe, in order


@dataclass(frozen=True)
class Schedule:
    """How the scheduler chooses. `seed` None: first come, first served; pipes work at once.

    `late` names pipes that move only when nothing else can: the worst case for whoever forgot to
    wait for them. `choices` says which piece of work comes next wherever there are several, by
    number; behind the last of them it is the first each time. With a `pace` it is the one that is
    predicted to be the next.
    """

    seed: int | None = None
    late: tuple[Pipe, ...] = ()
    choices: tuple[int, ...] | None = None
    pace: Pace | None = field(default=None, repr=False)

    @property
    def queued(self) -> bool:
        chooses = self.choices is not None or self.pace is not None
        return self.seed is not None or bool(self.late) or chooses

    def __str__(self) -> str:
        parts = [] if self.seed is None else [f"seed {self.seed}"]
        parts += [f"PIPE_{p.name} late" for p in self.late]
        if self.choices is not None:
            parts.append(f"choices {self.choices}")
        if self.pace is not None:
            parts.append(f"each piece of work when it {self.pace.what}, as timed")
        return ", ".join(parts) or "in order"


@dataclass(frozen=True)
class Options:
    """How programs run on a grid."""

    grid: int = 1  # blocks
    schedule: Schedule = Schedule()
    # Whether races, hangs and leftovers are looked for. "full": without any short cut. "explore":
    # it also runs under many schedules, and must leave the same bytes in `arrays` each time.
    hazards: bool | str = True
    arrays: Sequence[Any] = ()  # global memory of the programs
    # What an earlier launch of the same programs left; it serves a single plain run.
    arena: Arena | None = None
    executor: Callable[[Any], Executor] | None = None  # an engine's, or else the fast one
    events: bool = False  # record every executed operation as plain data, however many there are
    subscribers: Sequence[Subscriber] = ()  # told of each event as it happens, in this process
    blocks: range | None = None  # those of the grid that run here; None: all
    done: Callable[[int], None] | None = None  # told of every block that has ended
    policy: Policy = DEFAULT  # what is an error, what a warning, and what is silent
    budget: Budget | None = None  # what the run may take before it is stopped
    listener: Listener | None = None  # told of what the cores issue
    follow: Callable[[Machine], None] | None = None  # given the machine before it runs
    # Of a run in a process of its own: what does it again there, once it has gone well.
    again: Callable[[Outcome], Again | None] | None = None


@dataclass
class Outcome:
    """What a launch leaves behind."""

    machine: Machine
    diagnostics: tuple[Diagnostic, ...]
    events: Recording | None = None  # of all operations, when they were asked for
    # What the order of work was found to lack; None: nobody asked, or data had a say in it.
    verdict: tuple[Diagnostic, ...] | None = None
    # What was chosen where there was a choice, and of how many, when the schedule names choices.
    chosen: Sequence[tuple[int, int]] = ()
    resident: Resident | None = None  # the process that can do the same again
    # Whether there would be a verdict, that nothing is lacking, for these values alone.
    has_compared: bool = False

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "warning")


class LaunchMachine(Machine):
    """A machine with many cores: instructions go to the queue of their pipe."""

    def __init__(self, scheduler: Scheduler, target: Target, mode: str, **more: Any) -> None:
        super().__init__(target, mode, **more)
        self.scheduler = scheduler

    @property
    def defers(self) -> bool:
        return self.scheduler.queued

    def carries_poison(self, call: Any, access: Any, site: Site | Location) -> bool:
        """What is about to be written is no poison: reading it now is a race."""
        from ptokit.machine.early_reads import is_on_its_way  # for undefined bytes

        if self.scheduler.careful and is_on_its_way(self.scheduler, access):
            return False
        return super().carries_poison(call, access, site)

    def enqueue(self, call: Any, operands: Sequence[Any], site: Site | Location) -> Any:
        """Give a call of the core that is running to its pipe."""
        scheduler, core, insn, pipe = self.scheduler, self.core, call.insn, call.pipe
        if scheduler.careful:
            if core.pipes:
                entries = core.clear.get(call)
                is_clear = entries is not None and (
                    not entries or all(operands[nth].in_ring for nth in entries)
                )
            else:
                is_clear = pipe in self.target.pipes[core.kind]
            if not is_clear:
                at_pipe(scheduler.findings, core, call, operands, site)
        elif insn.in_auto is InAuto.UNWANTED and self.mode == "auto":
            found = unwanted(insn, site)
            scheduler.findings.add(
                found.code, found.message, site, fix=found.fix, severity=found.severity
            )
        if core.values:
            self.sync.take_values(operands)
        queues = scheduler.queues
        is_free = not scheduler.queued and not (queues.held and queues.of(core, pipe).entries)
        if (is_free and not call.phase) or insn.pipe is None or pipe is Pipe.S:
            if self.follows:
                return super().enqueue(call, operands, site)
            core.calls += 1
            value = self.executor.execute(call, operands, site)  # what it comes to, in a hurry
            if value is not None:
                self.sync.give_value(value)
            return value
        core.calls += 1
        if self.follows:
            self.begin(insn, pipe, site)
        work = Work(call, frozen(operands), site, dict(core.registers), self.operation)
        with scheduler.sync.handed_over(call, pipe, site, operands):
            queues.enqueue(queues.of(core, pipe), work)
        if self.operation is not None:
            self.end()
        steps = call.steps
        if steps is not None and steps.drains and self.mode == "manual":
            scheduler.sync.stop_for(insn, steps.drains, site)
        scheduler.yield_turn()
        return None


class MeteredMachine(LaunchMachine):
    """A machine that counts what it is given to do."""

    def enqueue(self, call: Any, operands: Sequence[Any], site: Site | Location) -> Any:
        assert self.budget is not None
        self.budget.step(self.core, site)
        return super().enqueue(call, operands, site)


class IssueMachine(LaunchMachine):
    """A machine that tells what its cores issue."""

    def enqueue(self, call: Any, operands: Sequence[Any], site: Site | Location) -> Any:
        insn, sync = call.insn, self.scheduler.sync
        assert isinstance(sync, IssueSync)
        if insn.orders or insn.moves_entries:
            return super().enqueue(call, operands, site)
        if not call.phase:
            sync.listener.work(self.core, call, operands, site)
        value = super().enqueue(call, operands, site)
        if call.steps is not None and call.steps.drains:
            sync.listener.drain(self.core, call.steps.drains, site)
        return value


class Scheduler:
    """One run of a program on a grid of clusters."""

    def __init__(self, target: Target, mode: str, options: Options) -> None:
        self.target = target
        self.grid = options.grid
        self.blocks = options.blocks if options.blocks is not None else range(self.grid)
        self.done = options.done
        self.schedule = options.schedule
        self._leaves_all = options.arena is not None  # clusters are wanted when the run is over
        arena = options.arena or Arena(target, mode)
        self._spare = arena.clusters
        policy, executor = options.policy, options.executor
        self.listener = options.listener
        kind = LaunchMachine if options.budget is None else MeteredMachine
        if self.listener is not None:
            kind = IssueMachine
        self.machine = kind(self, target, mode, arena=arena, executor=executor, policy=policy)
        self.machine.blocks = self.grid
        if options.follow is not None:
            options.follow(self.machine)
        self.machine.budget = options.budget
        if options.budget is not None:
            self.machine.pool.account = options.budget.take
        self.findings = Findings(target.name, policy, target.event_ids)
        self.findings.schedule = str(self.schedule)
        # The compiler orders auto mode, and the permissive profile has no order to break.
        self.careful = bool(options.hazards) and mode == "manual" and target.is_device
        self._is_asked = bool(options.hazards)
        self._looks = self._is_asked and target.is_device
        rank = here()
        self._history = None if rank is None else rank.ranks.history
        self._rank = 0 if rank is None else rank.number
        self._before: Clock | None = None  # what comes before all that runs here
        if self._history is not None:
            self.findings.cores = self._history.cores
            self._before = self._history.done_by(self._rank)
        shared = None if self._history is None else self._history.clocks
        self.sync = LaunchSync(self)
        if self.listener is not None:
            self.sync = IssueSync(self, self.listener)
        self.machine.sync = self.sync
        self.queued = self.schedule.queued and mode == "manual"
        self.queues = Queues(self.machine, self.sync.refuse, self.queued)
        self._skips = options.hazards != "full"
        self.journal: Journal | None = None
        if self.careful:
            self._watch(Clocks(shared))
        self.recording: Recording | None = None
        if options.events:
            from ptokit.machine.recording import Recording  # for whoever asks for events

            self.recording = Recording(options.arrays)
        for told in options.subscribers:
            self.machine.subscribe(told)
        if self.recording is not None:
            self.machine.subscribe(self.recording.see)
        self._of_block: dict[int, list[Stream]] = {}  # what runs, or waits, of each block
        self._running: list[Stream] = []  # in order of their start; those that are not parked
        self._parked: dict[Semaphore, list[Stream]] = {}
        seed = self.schedule.seed
        self._random = random.Random(seed if seed is None else index(seed))
        self._chosen: list[tuple[int, int]] = []
        self._worked: dict[PipeQueue, int] = {}  # pieces of work so far, where a pace is kept
        self._numbers = 0 if self._history is None else self._history.first_core(self._rank) + 1
        self._in_vain = 0  # how often cores looked for something while nobody did anything else
        self._is_hopeless = False  # to look again
        self._started = self.blocks.start
        self._hub: Any = None
        self._failure: BaseException | None = None

    # ---- running --------------------------------------------------------------------------------

    def run(self, programs: Mapping[str, Program]) -> Outcome:
        """Run a program per kind of core ("cube", "vector", or "mix" for one stream) to its end.

        Raises what the programs raise. Hazards, hangs and leftovers are collected as diagnostics.
        """
        self._programs = dict(programs)
        self.sync.members = {
            kind: self.grid * (SUBBLOCKS if kind == "vector" and self._paired else 1)
            for kind in programs
        }
        self.machine.subblocks = SUBBLOCKS if self._paired else 1
        several = self.grid > 1 or len(programs) > 1
        if self._looks and not self.careful and (several or self._history is not None):
            self._watch(CoreClocks(None if self._history is None else self._history.clocks))
        if self.journal is not None and several:
            self.machine.peek = self.journal.peek
        import greenlet  # only launches need it

        self._hub = greenlet.getcurrent()
        outer = self.machine.core
        try:
            self._loop()
        except PtoError as error:
            raise self._together(error) from error.__cause__
        finally:
            self.machine.core = outer
            for stream in self.streams:
                if not stream.coroutine.dead:
                    stream.coroutine.throw()
            if self._history is not None:
                self._history.launch_ended(self._rank)
        events = None if self.recording is None else self.recording.finish()
        with uncollected():
            if self.journal is not None:
                self.journal.end()
            found = (*self.machine.warnings, *self.findings.diagnostics)
            compared = self.journal is not None and self.journal.has_compared
            # Where nobody looked for races although that was asked for, there are none to be found.
            is_certain = not self.machine.has_looked and (
                self._is_asked or self.journal is not None
            )
            verdict = self.findings.diagnostics if is_certain and not compared else None
            has_compared = is_certain and compared and not self.findings.diagnostics
            if self.journal is not None and self._history is None:
                self.journal.close(self._leaves_all)
        return Outcome(
            self.machine, found, events, verdict, self._chosen, has_compared=has_compared
        )

    def _watch(self, clocks: Clocks) -> None:
        """Look for accesses that nothing orders."""
        kind = Journal if self._history is None else PromptJournal
        journal = kind(self.machine, clocks, self.findings, self._history, skips=self._skips)
        self.journal = self.sync.journal = self.queues.journal = self.machine.journal = journal

    def watch_engines(self) -> None:
        """An engine beside the cores is given work: that nobody orders, in auto mode neither."""
        if self.journal is None and self._looks:
            self._watch(CoreClocks())

    @property
    def _paired(self) -> bool:
        """Whether the launch has whole clusters; vector cores alone are blocks of their own."""
        return "cube" in self._programs

    def _together(self, error: PtoError) -> PtoError:
        """The error of a program, with the hazards found before it, which may explain it."""
        from ptokit.machine.early_reads import note_early_read  # for undefined bytes

        if note_early_read(self, error):
            return ProgramError(self.findings.errors)
        if not self.findings.errors:
            return error
        return type(error)((*self.findings.errors, *error.diagnostics))

    @property
    def streams(self) -> list[Stream]:
        """The cores of all blocks that have begun and not ended."""
        return [stream for streams in self._of_block.values() for stream in streams]

    def stream_of(self, core: Core) -> Stream:
        """The stream of a core that runs or waits."""
        return next(s for s in self._of_block[core.block] if s.core.number == core.number)

    def park(self, stream: Stream, semaphore: Semaphore) -> None:
        """A core waits for one signal: until it is given, nobody asks whether it can go on."""
        self._running.remove(stream)
        self._parked.setdefault(semaphore, []).append(stream)

    def _unpark(self) -> None:
        given = [semaphore for semaphore in self._parked if semaphore.tokens]
        if given:
            for semaphore in given:
                self._running += self._parked.pop(semaphore)
            self._running.sort(key=lambda stream: stream.core.number)

    def _loop(self) -> None:
        width = 1 if self.schedule.seed is None else 4
        if self.schedule.choices is not None or self.schedule.pace is not None:
            width = self.grid
        while True:
            if self._parked:
                self._unpark()
            if not self._of_block and self._started == self.blocks.stop:
                break
            if len(self._of_block) < width and self._started < self.blocks.stop:
                self._start_block()
                continue
            if not self._step():
                if self._started < self.blocks.stop:
                    self._start_block()  # somebody waits for blocks that have not begun
                    continue
                if not self._is_hopeless and wait_for_others(
                    lambda: any(s.ready for s in self.streams)
                ):
                    continue
                from ptokit.machine.deadlock import explain  # when nothing can go on

                explain(self)
                return
        at_end(self)

    def _step(self) -> bool:
        """Let one core or one pipe go on; return whether there was one."""
        able = (s for s in self._running if s.ready and not s.polls)
        ready = list(able if self.queued else islice(able, 1))  # in order only the first counts
        can_move = self.queued and any(q.movable for q in self.queues.pending)
        if not ready and not can_move and any(s.polls for s in self._running):
            return self._look_again()
        self._in_vain = 0
        if not self.queued:
            if not ready:
                return False
            self._resume(ready[0])
            return True
        if self.schedule.choices is not None or self.schedule.pace is not None:
            return self._choose(ready)
        moving = [q for q in self.queues.pending if q.movable]
        prompt = [q for q in moving if q.pipe not in self.schedule.late]
        if self.schedule.seed is None:  # the late pipes move when nothing else can
            if prompt:
                self.queues.advance(prompt[0], 1)
            elif ready:
                self._resume(ready[0])
            elif moving:
                self.queues.advance(moving[0], 1)
            return bool(prompt or ready or moving)
        if prompt or moving:
            moving = prompt or (moving if not ready else [])
        choices: list[Stream | PipeQueue] = [*ready, *moving]
        if not choices:
            return False
        chosen = self._random.choice(choices)
        if isinstance(chosen, Stream):
            self._resume(chosen)
        elif chosen.pipe in self.target.overtaken:
            self.queues.overtake(chosen, self._random.choice([0, *self._free_work(chosen)]))
        else:
            self.queues.advance(chosen, 1)
        return True

    def _free_work(self, queue: PipeQueue) -> list[int]:
        return queue.free_work(
            behind_signals=self.journal is None,
            lands_in_order=queue.pipe in self.target.lands_in_order,
        )

    def _choose(self, ready: list[Stream]) -> bool:
        """Let the work go on that the schedule names.

        Programs, signals and waits go on as soon as they can: what they do to the order of work is
        the same whenever they do it. So each list of choices is another order of the work itself.
        """
        if ready:
            self._resume(ready[0])
            return True
        moving = [q for q in self.queues.pending if q.movable]
        quiet = [q for q in moving if not isinstance(q.entries[0], Work)]
        if quiet or not moving:
            for queue in quiet[:1]:
                self.queues.advance(queue, 1)
            return bool(quiet)
        if self.schedule.pace is not None:
            queue = min(moving, key=partial(self._predicted, self.schedule.pace))
            self._worked[queue] = self._worked.get(queue, 0) + 1
            self.queues.overtake(queue, 0)
            return True
        overtaken, choices = self.target.overtaken, self.schedule.choices or ()
        work = [
            (queue, index)
            for queue in moving
            for index in (self._free_work(queue) if queue.pipe in overtaken else (0,))
        ]
        number = 0
        if len(work) > 1:
            at = len(self._chosen)
            number = choices[at] if at < len(choices) else 0
            self._chosen.append((number, len(work)))
        self.queues.overtake(*work[number])
        return True

    def _predicted(self, pace: Pace, queue: PipeQueue) -> float:
        """When the next piece of work of a pipe is predicted; what nobody predicts comes last."""
        moments = pace.moments.get((queue.core.block, queue.core.place, int(queue.pipe)), ())
        done = self._worked.get(queue, 0)
        return moments[done] if done < len(moments) else inf

    def _look_again(self) -> bool:
        """Nobody can go on but those who look for something: let each of them look, in turn."""
        if self._started < self.blocks.stop:
            return False
        looking = [s for s in self._running if s.polls]
        turn, self._in_vain = self._in_vain, self._in_vain + 1
        if not others_run():
            self._is_hopeless = turn >= MOST_LOOKS
        elif turn % len(looking) == 0:  # what they look for comes from another rank, if at all
            self._is_hopeless = not poll()
        if not self._is_hopeless:
            self._resume(looking[turn % len(looking)])
        return not self._is_hopeless

    def _resume(self, stream: Stream) -> None:
        self.machine.core = stream.core
        stream.coroutine.switch()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if stream.done:
            self._running.remove(stream)
            block = stream.core.block
            if all(s.done for s in self._of_block[block]):
                self._end_block(block)

    def yield_turn(self) -> None:
        """In a random schedule, let others go on between two instructions of a core."""
        if self.schedule.seed is not None and self._random.random() < 0.25:
            self.wait_turn()

    # ---- blocks ---------------------------------------------------------------------------------

    def _start_block(self) -> None:
        block = self._started
        self._started += 1
        cluster = self._spare.pop() if self._spare else self._make_cluster()
        cluster.block = block
        for role, core in cluster.cores.items():
            program = self._programs.get(core.kind)
            if program is None or (core.kind == "mix" and role != "cube"):
                continue
            if self.machine.budget is not None:
                self.machine.budget.step(core)
            for face in {id(c): c for c in cluster.cores.values()}.values():
                if face is core or core.kind == "mix":
                    face.block, face.number = block, self._numbers
                    face.rank = None if self._history is None else self._rank
            self._numbers += 1
            if self.journal is not None and self._before is not None:
                self.journal.log.clocks.learn(core.number, self._before)
            self.findings.cores[core.number] = core.twin()
            running = coroutine(partial(self._run_core, core, program), self._fail)
            stream = Stream(core, running)
            self._of_block.setdefault(block, []).append(stream)
            self._running.append(stream)

    def _make_cluster(self) -> Cluster:
        cluster = self._new_cluster()
        if self.machine.budget is not None:
            for core in cluster.cores.values():
                core.account = self.machine.budget.take
        return cluster

    def _new_cluster(self) -> Cluster:
        if "mix" in self._programs:
            return Cluster.of_one(Core(self.target, "mix"))
        return Cluster.of_all(self.target, self.machine.subblocks)

    def _run_core(self, core: Core, program: Program) -> None:
        program()
        for pipe in core.pipes:
            pipe.close(core)
        for each in (core, *core.engines.values()):
            self.sync.drain(each)

    def _fail(self, error: BaseException) -> None:
        self._failure = error

    def _end_block(self, block: int) -> None:
        ended = self._of_block.pop(block)
        cluster = ended[0].core.cluster
        assert cluster is not None
        at_block_end(self, cluster, [s.core for s in ended])
        if self.recording is not None:
            self.recording.end_block(block)
        if self.listener is not None:
            self.listener.end_block(block)
        for stream in ended:  # a core without a program has no number, and no queues
            for core in (stream.core, *stream.core.engines.values()):
                self.queues.drop(core)
        if self._started < self.blocks.stop or self._leaves_all:
            self._clean_up(cluster)
        if self.done is not None:
            self.done(block)

    def _clean_up(self, cluster: Cluster) -> None:
        """Make a cluster ready for the next block."""
        for core in {id(c): c for c in cluster.cores.values()}.values():
            memories = core.memories.values()
            for memory in memories:
                memory.poison()
            if self.journal is not None and self._started < self.blocks.stop:
                self.journal.recycle(core)
            core.begin_again()
        cluster.begin_again()
        self._spare.append(cluster)

    def wait_turn(self) -> None:
        """Called by a core that cannot go on: let the others run until it can."""
        operation, self.machine.operation = self.machine.operation, None
        self._hub.switch()
        self.machine.operation = operation
