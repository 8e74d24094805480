"""The order of work as the machine keeps it: effects of operations become tokens of semaphores.

`execute` does what the effects of an operation say (isa/effects.py). Which semaphores stand behind
a token - a flag of this core, a counter of another one, a round of a meeting - is decided here;
`signal` and `wait` are the two primitives on them. This is the eager form, for one instruction
stream: work is complete when it is issued, so a wait either finds its signal or would never end,
and says so. `machine/launch_sync.py` puts the queues of pipes behind the same calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import Note, PtoError, fail, where
from ptokit.base.location import Location, Site
from ptokit.base.tensors import GlobalSpec
from ptokit.isa import effects as fx
from ptokit.isa.effects import Effect, Pipe, Reach, Signal, Wait
from ptokit.isa.spec import Insn, View
from ptokit.machine.calls import bind_global, global_pattern
from ptokit.machine.clocks import CORES, Clocks, agent_of
from ptokit.machine.cluster import SECOND, SUBBLOCKS, Role, cluster_of
from ptokit.machine.core import Core, Engine
from ptokit.machine.faults import WouldBlock, hopeless
from ptokit.machine.flags import ALWAYS, Clock, Latch, Semaphore, Token
from ptokit.machine.objects import GlobalObject, Pointer
from ptokit.machine.queues import Why
from ptokit.machine.ranks import others_run, poll, wait_for_others
from ptokit.machine.registers import LocalPointer
from ptokit.machine.words import Words

if TYPE_CHECKING:
    from ptokit.machine.journal import Journal
    from ptokit.machine.machine import Machine

UNLIMITED = 1 << 30
_PATIENCE = 8  # reads that bring nothing new before others may go on
_WRITE_FIRST = "write the word before the loop, or run whoever writes it in the same launch"
MOST_LOOKS = 20_000  # at memory while nothing else happens: a loop around them is hopeless
_NUMBERS = (int, float, np.generic)
Place = Site | Location


class Given(dict[str, Any]):
    """The operands of an operation by name, and the call that it is."""

    __slots__ = ("call",)
    call: Any


NO_OPERANDS = Given()

Handler = Callable[[Pipe, Any, Place, Given], None]  # gives or takes a token of one kind
Row = list[tuple[Handler, Pipe, Any, Place]]


class Sync:
    """Flags, barriers and cross-core signals of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.journal: Journal | None = None  # for whoever looks for accesses that nothing orders
        self.rows: dict[object, Row] = {}  # of operations that follow each other in a program
        self._signal_of: dict[type, Handler] = {
            fx.Flag: self._raise_flag,
            fx.Buffer: self._release,
            fx.CoreFlag: self._reach,
            fx.Meeting: self._arrive,
            fx.Word: self._notify,
        }
        self._wait_of: dict[type, Handler] = {
            fx.Flag: self._take_flag,
            fx.Buffer: self._acquire,
            fx.CoreFlag: self._heed_core,
            fx.Meeting: self._leave,
            fx.Word: self._look,
        }
        self.words = Words(self)
        self._engines = count(CORES // 2)
        self.in_vain = 0  # tests that failed, one after the other
        # Of a core that reads words and does nothing else: after how many operations it read last,
        # what it has seen where, and how often it saw the same.
        self._looks: dict[int, tuple[int, dict[int, Any], int]] = {}

    @property
    def core(self) -> Core:
        return self.machine.core

    def execute(
        self,
        insn: Insn,
        effects: Sequence[Effect],
        site: Place,
        given: Given = NO_OPERANDS,
    ) -> Any:
        """Do what an operation does to the order of work; `given` are its operands by name."""
        machine = self.machine
        if not machine.follows or not effects:
            return self.apply(effects, site, given)
        machine.begin(insn, fx.pipe_of(effects), site)
        value = self.apply(effects, site, given)
        machine.end()
        return value

    def apply(self, effects: Sequence[Effect], site: Place, given: Given) -> Any:
        """Do what effects say, as a part of the operation that is under way."""
        value = None
        for effect in effects:
            if type(effect) is Signal:
                pipe, token = effect
                self._signal_of[type(token)](pipe, token, site, given)
            elif type(effect) is Wait:
                pipe, token = effect
                self._wait_of[type(token)](pipe, token, site, given)
            else:
                value = self._do(effect, site, given)
        return value

    def handlers(self, operations: Iterable[tuple[Insn, Sequence[Effect], Place]]) -> Row:
        """What operations that only give and take tokens come to; empty where one does more."""
        found: Row = []
        for _, effects, site in operations:
            for effect in effects:
                if not isinstance(effect, Signal | Wait):
                    return []
                of = self._signal_of if isinstance(effect, Signal) else self._wait_of
                found.append((of[type(effect.token)], effect.pipe, effect.token, site))
        return found

    def _do(self, effect: Effect, site: Place, given: Given) -> Any:
        match effect:
            case fx.Barrier(pipe):
                self.barrier(pipe, site)
            case fx.Test(_, token):
                return self.words.test(token, site, given[token.operand], given.call)
            case fx.Clean(operand):
                at = given[operand] if operand else None
                if not isinstance(at, LocalPointer):  # on-chip memory has no line in the cache
                    self.clean_cache(at.data() if isinstance(at, GlobalObject) else at)
            case fx.Fence():
                self.fence()
            case fx.Load(register, ""):
                self.core.registers.setdefault(register, 0)
            case fx.Load(register, operand):
                self.core.registers[register] = given[operand]
            case fx.Cached(operand, writes):
                return self._scalar_access(operand, writes, site, given)
            case _:
                raise AssertionError(effect)
        return None

    # ---- the primitives -------------------------------------------------------------------------

    def signal(
        self, pipe: Pipe, semaphores: Sequence[Semaphore], site: Place, token: Any = None
    ) -> None:
        """Give a token to each semaphore when the earlier work of the pipe is complete."""
        event = self.machine.operation
        if event is not None and token is not None:
            event.signals.append(token)
        given = Token(site, f"{pipe.name} of the {self.core.name}", event)
        if self.journal is not None:
            times = sum(semaphore.times for semaphore in semaphores)
            self.journal.give(agent_of(self.core, pipe), given, times)
        for semaphore in semaphores:
            self.put(semaphore, given)

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
        """Hold later work of the pipe until every semaphore has a token; take them.

        `early`: as the program is written, nothing has given the token yet.
        """
        missing = [s for s in semaphores if not s.ready]
        if missing:
            raise blocked(why(), missing, site)
        event = self.machine.operation
        for semaphore in semaphores:
            taken = semaphore.take()
            if self.journal is not None and pipe is Pipe.S:
                self.journal.learn(self.core, taken)  # it holds for all later work
            elif self.journal is not None:
                self.journal.take(agent_of(self.core, pipe), taken)
            if event is not None and token is not None:
                event.waits.append((token, taken.event))

    def put(self, semaphore: Semaphore, token: Token) -> None:
        """Leave a token, unless the counter behind the semaphore would overflow."""
        if semaphore.full:
            raise overflow(semaphore, token)
        semaphore.put(token)

    def perform(self, pipe: Pipe, call: Any, operands: Sequence[Any], site: Place) -> None:
        """Execute a call on a pipe."""
        self.machine.executor.execute(call, operands, site)

    def engine(self, key: Any, title: str, *, is_silent: bool = False) -> Engine:
        """The engine that copies for the running core; each `key` has one of its own."""
        core = self.core
        found = core.engines.get(key)
        if found is None:
            number = core.number - core.number % CORES + next(self._engines)
            found = core.engines[key] = Engine(core, title, number, is_silent)
            if self.journal is not None:
                self.journal.findings.cores[number] = found
        return found

    def post(
        self,
        engine: Engine,
        call: Any,
        operands: Sequence[Any],
        site: Place,
        behind: Sequence[Clock] = (),
    ) -> Latch:
        """Hand a transfer to an engine; the latch is given when it is complete.

        It begins behind all that the scalar unit knows to be complete, or what others knew as they
        say, and nothing waits for it.
        """
        core, over = self.core, Latch(f"a transfer of the {engine.name}", 1)
        begun = self.release(site, behind)
        self.machine.core = engine
        try:
            self.learn(begun)
            self.perform(Pipe.ALL, call, operands, site)
            self.signal(Pipe.ALL, (over,), site)
        finally:
            self.machine.core = core
        return over

    def barrier(self, pipe: Pipe, site: Place) -> None:
        """Order all earlier work of a pipe (ALL: of the core) before all later work."""
        if self.journal is None:
            return
        if pipe is Pipe.ALL:
            self.journal.barrier_all(self.core)
        else:
            self.journal.barrier(agent_of(self.core, pipe))

    def hand_over(self, pipe: Pipe, site: Place) -> None:
        """An accumulator goes from the cube unit to the fix pipe or back, by its unit flag."""
        if self.journal is not None:
            given = Token(site, "")
            self.journal.give(agent_of(self.core, Pipe.FIX if pipe is Pipe.M else Pipe.M), given)
            self.journal.take(agent_of(self.core, pipe), given)

    def complain(self, code: str, message: str, site: Place, **more: Any) -> None:
        """Report what only a checked run reports; eager use lets it pass."""

    def opened(self, pipe: Any) -> None:
        """A FIFO was made; a checked run looks at it."""

    # ---- flags inside a core --------------------------------------------------------------------

    def _flag(self, token: fx.Flag, site: Place) -> Semaphore:
        """The semaphore of a flag, between two pipes that this core has."""
        found = self.core.flags.get(token)
        if found is None:
            self._legal(token.src, site)
            self._legal(token.dst, site)
            title = f"the flag {token.src.name} -> {token.dst.name} {token.id}"
            found = self._new_flag(token, f"{title} of the {self.core.name}")
            self.core.flags[token] = found
        return found

    def _new_flag(self, token: fx.Flag, title: str) -> Semaphore:
        return Semaphore(title, UNLIMITED)

    def _raise_flag(self, pipe: Pipe, token: fx.Flag, site: Place, given: Given) -> None:
        flag = self._flag(token, site)
        # Pairs are made as the program is written: the second pipe may lag behind in time.
        if flag.balance > 0:
            self.set_twice(flag, site)
        else:
            flag.balance += 1
            flag.last_set = site
            self.signal(pipe, (flag,), site, token)

    def set_twice(self, flag: Semaphore, site: Place) -> None:
        """A flag is raised again before anything waits for it."""
        raise double_set(flag, site)

    def _take_flag(self, pipe: Pipe, token: fx.Flag, site: Place, given: Given) -> None:
        flag = self._flag(token, site)
        early = flag.balance < 1
        self.wait(pipe, (flag,), lambda: flag_wait(token), site, early=early, token=token)
        flag.balance -= 1

    def _acquire(self, pipe: Pipe, token: fx.Buffer, site: Place, given: Given) -> None:
        """Acquire a buffer: wait for the pipes that acquired it earlier to release it."""
        held, id = self.core.buffers, token.id
        mine = held.get((id, pipe))
        # As the program is written: the pipe itself may lag behind.
        if mine is not None and not mine.balance:
            raise fail(
                "get-buf-twice",
                f"a pipe holds a buffer at most once: PIPE_{pipe.name} has buffer {id} already",
                fix="release it first: rls_buf(pipe, id)",
                site=site,
            )
        others = [s for (other, p), s in held.items() if other == id and p != pipe]
        if others:
            hint = f"rls_buf of buffer {id} must come first on the pipe that holds it"
            why = Why(f"get_buf(PIPE_{pipe.name}, {id})", hint)
            self.wait(pipe, others, lambda: why, site, token=token)
        title = f"the release of buffer {id} by {pipe.name} of the {self.core.name}"
        held[id, pipe] = Latch(title, 1)

    def _release(self, pipe: Pipe, token: fx.Buffer, site: Place, given: Given) -> None:
        """Release a buffer behind the earlier work of the pipe."""
        mine = self.core.buffers.get((token.id, pipe))
        if mine is None or mine.balance:
            raise fail(
                "rls-buf-unheld",
                f"PIPE_{pipe.name} releases buffer {token.id}, which it does not hold",
                fix="pair every rls_buf with one get_buf on the same pipe",
                site=site,
            )
        mine.balance += 1
        self.signal(pipe, (mine,), site, token)

    # ---- flags between the cores of a cluster ---------------------------------------------------

    def role_here(self) -> Role:
        """The part the current core plays: "cube", or the number of a vector core."""
        return "cube" if self.core.role == "cube" else self.core.subblock

    def _reach(self, pipe: Pipe, token: fx.CoreFlag, site: Place, given: Given) -> None:
        """Signal other cores."""
        self._legal(pipe, site)
        cluster, role, id = cluster_of(self.core), self.role_here(), token.id
        if token.reach is not Reach.CORE:
            self._based("ffts_cross_core_sync", site)
        if token.reach in (Reach.KIND, Reach.PAIR):
            self.signal(pipe, (self.group(token),), site, token)
            return
        if role != "cube":
            assert isinstance(role, int)
            reached = [cluster.semaphore("cube", id % SECOND + SECOND * role)]
        elif token.reach is Reach.CORE:
            reached = [cluster.semaphore(id // SECOND, id % SECOND)]
        else:
            reached = [cluster.semaphore(sub, id) for sub in range(SUBBLOCKS)]
        self.signal(pipe, reached, site, token)

    def group(self, token: fx.CoreFlag) -> Semaphore:
        """Where a core signals a group of cores that meet; alone, it is the whole group."""
        return cluster_of(self.core).semaphore(self.role_here(), token.id)

    def _heed_core(self, pipe: Pipe, token: fx.CoreFlag, site: Place, given: Given) -> None:
        """Wait for other cores; the flags of a cube core may need both vector cores."""
        cluster, role, id = cluster_of(self.core), self.role_here(), token.id
        # A vector core has as many flags as one call reaches: larger ids name the same ones.
        waited = [cluster.semaphore(role, id if role == "cube" else id % SECOND)]
        why = Why(f"wait_intra_block(PIPE_{pipe.name}, {id})")
        if token.reach is not Reach.CORE:
            self._based("wait_flag_dev", site)
            why = Why(f"wait_flag_dev({id})")
            target = self.machine.target
            # The first of the reserved flags is raised by other cube cores.
            is_cluster = target.core_signals is Reach.CLUSTER and id != target.reserved_flags[0]
            if role == "cube" and is_cluster:
                waited.append(cluster.semaphore(role, id + SECOND))
        self.wait(pipe, waited, lambda: why, site, token=token)

    def _based(self, name: str, site: Place) -> None:
        if self.machine.target.needs_signal_base and fx.SIGNAL_BASE not in self.core.registers:
            raise fail(
                "E12",
                f"{name} needs the base address of the cross-core signals",
                fix="call set_ffts_base_addr(addr) at the start of the kernel",
                site=site,
                target=self.machine.target.name,
            )

    def _legal(self, pipe: Pipe, site: Place) -> None:
        """A core signals and waits only on pipes it has."""
        pipes = self.machine.target.pipes[self.core.kind]
        if pipe not in pipes:
            raise fail(
                "E5",
                f"a {self.core.kind} core has no PIPE_{pipe.name}",
                got=[("core", self.core.name)],
                fix="its pipes are " + ", ".join(f"PIPE_{p.name}" for p in pipes),
                site=site,
                target=self.machine.target.name,
            )

    # ---- cores that meet ------------------------------------------------------------------------

    def _arrive(self, pipe: Pipe, token: fx.Meeting, site: Place, given: Given) -> None:
        """Enter a meeting; alone there is nobody to tell."""
        if token.counter:
            counter = given[token.counter].numpy().reshape(-1)
            counter[0] += 1
            if self.machine.untaped is not None:
                self.machine.untaped("cores that meet count in global memory")

    def _leave(self, pipe: Pipe, token: fx.Meeting, site: Place, given: Given) -> None:
        """Leave a meeting once all have come; alone there is nobody to wait for."""
        if token.used > 1 and given[token.counter].numpy().reshape(-1)[0] % token.used:
            what = f"SYNCALL (soft) waits for {token.used} cores and"
            raise blocked(Why(what, "the other cores must enter it as well"), [], site)

    # ---- signals in global memory ---------------------------------------------------------------

    def until(
        self,
        ready: Callable[[], bool],
        what: str,
        site: Place,
        seen: Callable[[], list[tuple[str, object]]],
    ) -> None:
        """Stop the scalar unit until a condition on memory holds, while other devices go on.

        `seen` tells what is there instead, should it never hold.
        """
        if not ready() and not wait_for_others(ready):
            raise fail(
                "would-block",
                f"{what} would wait forever: nothing else runs that could signal it",
                got=seen(),
                fix="notify it first, or run all ranks at once with World.run",
                site=site,
                kind=WouldBlock,
            )

    def look_again(self, what: str, site: Place) -> bool:
        """Somebody has looked in vain: let others go on; False when that is hopeless."""
        if others_run():
            return poll()
        self.in_vain += 1
        return self.in_vain < MOST_LOOKS

    @property
    def clocks(self) -> Clocks | None:
        """What is known to be complete by now, where somebody looks for races."""
        if self.journal is None:
            return None
        self.journal.settle()
        return self.journal.log.clocks

    def release(self, site: Place, behind: Sequence[Clock] = ()) -> Token:
        """What the scalar unit gives now proves what it knows, or what others knew."""
        if self.journal is not None and behind:
            known = Clock()
            for each in behind:
                known.join(each)
            return self.journal.tell(known, self.core.name)
        token = Token(site, self.core.name)
        if self.journal is not None:
            self.journal.give(agent_of(self.core, Pipe.S), token, ALWAYS)
        return token

    def learn(self, token: Token) -> None:
        """The scalar unit has seen such a signal, before all later work of the core."""
        if self.journal is not None:
            self.journal.learn(self.core, token)

    # ---- numbers read from memory ---------------------------------------------------------------

    def give_value(self, value: Any) -> None:
        """An operation returns a number: until it is used it may be on its way."""
        if self.journal is not None and self.journal.reading is not None:
            self.core.values.append(((type(value), value), self.journal.reading))
            self.journal.reading = None

    def take_values(self, operands: Sequence[Any]) -> None:
        """An instruction is issued. One that takes a number waits until it has been read.

        A number is known by its value: whether it came from there is not followed any further.
        """
        values = self.core.values
        taken = {(type(each), each) for each in operands if isinstance(each, _NUMBERS)}
        for index in range(len(values) - 1, -1, -1) if taken else ():
            value, come = values[index]
            if value in taken:
                self.learn(come)
                for _ in range(index + 1):  # what was read before has come as well
                    values.popleft()
                return

    def _notify(self, pipe: Pipe, token: fx.Word, site: Place, given: Given) -> None:
        self.words.write(token, site, given[token.operand], given.call)

    def _look(self, pipe: Pipe, token: fx.Word, site: Place, given: Given) -> None:
        self.words.wait(token, site, given[token.operand], given.call)

    # ---- scalar accesses to global memory -------------------------------------------------------

    def clean_cache(self, at: Pointer | None) -> None:
        """Write back and forget one line of the scalar data cache, or all of them."""
        self._still_looking()
        if self.journal is not None:
            self.journal.scalar.clean(self.core, None if at is None else at.buffer.base + at.offset)

    def fence(self) -> None:
        """Wait for earlier scalar stores and write-backs."""
        self._still_looking()
        if self.journal is not None:
            self.journal.scalar.fence(self.core)

    def _still_looking(self) -> None:
        """The cache is cleaned between two looks at a word: that is part of looking."""
        core = self.core
        found = self._looks.get(core.number)
        if found is not None and found[0] + 1 == core.calls:
            self._looks[core.number] = core.calls, *found[1:]

    def _scalar_access(self, operand: str, writes: bool, site: Place, given: Given) -> Any:
        """Read or write one element of global memory."""
        place, insn = given[operand], given.call.insn
        at = place.data() if isinstance(place, GlobalObject) else place
        spec = GlobalSpec.of(at.dtype, (1, 1, 1, 1, 1), (1, 1, 1, 1, 1))
        tensor = GlobalObject(spec, at + given["offset"], spec.shape, spec.stride)
        declared = replace(insn.operand(operand), role="out" if writes else "in")
        pattern = global_pattern(tensor, View.VALID, declared)
        access = bind_global(pattern, tensor, insn, site)
        value = None
        if writes:
            value = np.asarray(given["value"])
            if not at.dtype.is_integer and value.dtype.kind not in "iuf":
                raise fail(
                    f"{insn.name}.value",
                    f"{insn.name}: {insn.name} takes a number",
                    got=[("value", value)],
                    site=site,
                    target=self.machine.target.name,
                )
            access.array()[...] = value.astype(at.dtype.np)
        self.machine.publish(given.call, site, (access,))
        value = None if writes else access.array()[0, 0].item()
        place = access.memory.base + access.offset
        if self._sees_the_same(place, value):
            what = f"a loop around {insn.name}"
            if not self.look_again(what, site):
                raise hopeless(what, "write it", _WRITE_FIRST, site)
        return value

    def _sees_the_same(self, place: int, value: Any) -> bool:
        """Whether a core reads and reads, without anything else, and nothing changes."""
        core = self.core
        last, seen, again = self._looks.get(core.number, (0, {}, 0))
        if value is None or core.calls != last + 1:  # the program has done something else since
            seen, again = {}, 0
        again = again + 1 if seen.get(place) == value else 0
        if not again:
            self.in_vain = 0
        seen[place] = value
        self._looks[core.number] = core.calls, seen, again
        return again > _PATIENCE


def flag_wait(token: fx.Flag) -> Why:
    """What a wait for a flag is called, and what would end it."""
    names = f"(PIPE_{token.src.name}, PIPE_{token.dst.name}, EVENT_ID{token.id})"
    return Why(f"wait_flag{names}", f"set_flag{names} must come first")


def blocked(why: Why, missing: Sequence[Semaphore], site: Place) -> PtoError:
    """The error of a wait that nobody else can end."""
    return fail(
        "would-block",
        f"{why.what} would wait forever: nothing else runs that could signal it",
        got=[(s.title, f"{s.given} signalled, {s.taken} taken") for s in missing],
        fix=why.hint or "run the other side first: give the signal before waiting for it",
        site=site,
        kind=WouldBlock,
    )


def overflow(semaphore: Semaphore, token: Token) -> PtoError:
    """The error of a cross-core signal too many."""
    return fail(
        "E11",
        f"{semaphore.title} overflows: its counter has 4 bits, 15 signals are pending",
        fix="let the other core take the signals, or give fewer than 16 ahead of it",
        site=token.site,
        notes=[Note("the last signal that is still pending", where(semaphore.tokens[-1].site))],
    )


def double_set(flag: Semaphore, site: Place) -> PtoError:
    """The error of a flag that is set again before the wait."""
    return fail(
        "E2",
        f"{flag.title} is set twice without a wait in between",
        fix="wait for it before setting it again, or use another event id",
        site=site,
        notes=[Note("the set that is still pending", where(flag.last_set))],
    )
