"""The journal: a run notes what the checker will want to know, and the checker reads it later.

What orders work and what touches memory becomes an entry, a number or two; nothing is worked out
while the program runs. An entry says which operation it was in a way that does not change from one
trip of a loop to the next: an instruction at its line on its pipe, a token taken so many signals
after it was given. Where global memory was touched goes into a list of its own. So trips that do
the same leave the same numbers, and the checker need not read them all (machine/replay.py).

`settle` reads what was noted so far. It is called whenever somebody asks for findings, or adds one.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import where
from ptokit.base.layout import Array, raw_bytes
from ptokit.base.location import Location, Site
from ptokit.isa.effects import Barrier, Flag, Pipe
from ptokit.machine.call_facts import CallFacts, facts_of
from ptokit.machine.clocks import PIPES, Clocks
from ptokit.machine.core import Core
from ptokit.machine.flags import ALWAYS, SPENT, Clock, Token
from ptokit.machine.gm import GmBuffer
from ptokit.machine.hazards import HazardLog, Noted
from ptokit.machine.issued import Issued
from ptokit.machine.notes import (
    BARRIER,
    GIVE,
    HAND,
    LEARN,
    MEET,
    SHIFT,
    TAKE,
    TURN,
    Complete,
    Done,
    Gather,
    Notes,
    Prove,
    Recycle,
    Share,
    Start,
    Told,
)
from ptokit.machine.replay import Replay
from ptokit.machine.scalar_cache import ScalarCaches

if TYPE_CHECKING:
    from ptokit.machine.findings import Findings
    from ptokit.machine.history import History
    from ptokit.machine.machine import Machine

Place = Site | Location
_Address = int | tuple[int, int]  # of a memory, in it
_Compared = tuple[tuple[str, bool], ...]  # operands, and whether their bytes were there before
_NOT_COMPARED: Mapping[str, bool] = {}
_MOST_ENTRIES = 1 << 18  # read then, whether anybody asks or not


@contextmanager
def uncollected() -> Generator[None, None, None]:
    """What the log remembers stays: to look for garbage in it again and again is in vain."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Journal:
    """What happened in a run, in order."""

    def __init__(
        self,
        machine: Machine,
        clocks: Clocks,
        findings: Findings,
        history: History | None = None,
        *,
        skips: bool = True,
    ) -> None:
        self.machine = machine
        self.findings = findings
        self.log = HazardLog(machine.target, clocks, findings, history)
        self.scalar = ScalarCaches(findings)
        self._by_pipe = clocks.is_by_pipe
        self._notes = Notes()
        self._entries, self._addresses = self._notes.entries, self._notes.addresses
        self._codes: dict[Any, int] = {}  # of operations that are more than a signal or a wait
        self._met = -1, 0  # the last meeting of pipes, and how many entries there were behind it
        self._given = 0  # tokens so far
        self._fresh = -1  # how many entries there were behind the last token
        self._replay = Replay(self.log, skips=skips)
        self._is_reading = False
        self.reading: Token | None = None  # what holds once the number that was read last has come
        # Arrays by address, read and written: while they are kept, nothing else lies there.
        self._read_from: dict[int, Any] = {}
        self._written_to: dict[int, Any] = {}
        self._is_over = False
        self._core = -1  # who executed the last instruction
        self._turn = -1  # the same, where it executes what it issues; -1: what has waited
        self._noted = 0  # instructions so far
        self._queued = 0  # those that had to wait so far
        self._waiting = 0  # those that still do
        self.issued: Issued | None = None  # where what is executed now was issued, if it has waited
        self._registers: dict[tuple[int, str], Any] = {}  # of a core: what it holds
        # Who wrote last at an address, which bytes; what another core had written there.
        self._writers: dict[_Address, tuple[int, Any]] = {}
        self._before: dict[_Address, Array] = {}
        self._peeked: Sequence[Any] = ()  # of whose accesses the writers are known
        self._instructions: dict[Any, int] = {}  # codes, by all that is noted of them
        findings.settle = self.settle

    def settle(self) -> None:
        """Let the checker read what was noted."""
        if self._is_reading or not self._entries:
            return
        self._is_reading = True
        try:
            with uncollected():
                if self._is_over and self._replay.skips:
                    self.log.spare_all_but(self._written_to.values())
                self._replay.read(self._notes)
        finally:
            self._is_reading = False
        self._notes.clear()
        if not self._waiting:
            self.log.issued.clear()
        self._met, self._fresh = (-1, 0), -1
        self._codes.clear()
        self._instructions.clear()

    def end(self) -> None:
        """Nothing more will be noted."""
        self._is_over = True

    def close(self, keeps: bool) -> None:
        """The run is over, and all is told; whether its memories are kept for another one."""
        self.log.close(keeps)
        for each in (self._read_from, self._written_to, self._writers):
            each.clear()
        self._peeked = ()

    @property
    def has_compared(self) -> bool:
        """Whether the values that are written have had a say; only after all is settled."""
        return self.log.has_compared

    # ---- order ----------------------------------------------------------------------------------

    def give(self, agent: int, token: Token, times: int = 1) -> None:
        """A token that proves what an agent has done; it is taken so many times at most."""
        token.number = given = self._given
        self._given = given + 1
        entries = self._entries
        entries.append(agent << SHIFT | GIVE)
        if times > 1:
            self._notes.kept[given] = times
        else:
            self._fresh = len(entries)

    def take(self, agent: int, token: Token) -> None:
        """An agent goes on past what a token proves."""
        number, entries = token.number, self._entries
        if number >= 0:
            ago = self._given - number
            if ago == 1 and self._fresh == len(entries):
                # Nobody else will ask what it proves.
                entries[-1] += HAND - GIVE
                entries.append(agent)
                self._given, token.number = number, SPENT
            else:
                entries += (agent << SHIFT | TAKE, ago)
        else:
            assert number != SPENT, "a signal was taken twice"

    def hand(self, giver: int, taker: int) -> None:
        """An agent goes on past what another one has done: a token given, and taken at once."""
        self._entries += (giver << SHIFT | HAND, taker)

    def keep(self, token: Token) -> None:
        """A token is taken more often than it was thought to be."""
        self._notes.kept[token.number] = ALWAYS
        self._fresh = -1

    def learn(self, core: Core, token: Token) -> None:
        """All later work of a core comes behind what a token proves."""
        if token.number >= 0:
            self._entries += (core.number * PIPES << SHIFT | LEARN, self._given - token.number)

    def barrier(self, agent: int) -> None:
        """The earlier work of an agent is complete before its later work."""
        self._entries.append(agent << SHIFT | BARRIER)

    def barrier_all(self, core: Core) -> None:
        """All work of a core is complete before all its later work."""
        code, entries = core.number << SHIFT | MEET, self._entries
        if (code, len(entries)) != self._met:  # twice in a row is once
            entries.append(code)
            self._met = code, len(entries)

    def gather(self, into: Token, token: Token) -> None:
        """Let a token prove what another one does, too."""
        if token.number >= 0:
            if into.number < 0:
                self._count(into)
                self._note(Start())
            self._note(Gather())
            self._entries += (self._given - into.number, self._given - token.number)

    def share(self, gathered: Token, token: Token) -> None:
        """A token for everybody who met: it proves what was gathered."""
        if gathered.number >= 0:
            self._note(Share())
            self._entries.append(self._given - gathered.number)
            self._count(token)

    def tell(self, clock: Clock, giver: str) -> Token:
        """A token that proves what was found out by other means."""
        token = Token(where(None), giver)
        self._count(token)
        self._note(Told(clock))
        return token

    def recycle(self, core: Core) -> None:
        """The memories of a core are handed to another block."""
        memories = core.memories
        if not memories:
            return
        key = id(core), len(memories)  # it gets them as it needs them
        code = self._codes.get(key)
        if code is None:
            uids = tuple(memory.uid for memory in memories.values())
            code = self._codes[key] = self._notes.add(Recycle(uids))
        self._entries.append(code)

    def _count(self, token: Token, times: int = ALWAYS) -> None:
        token.number = self._given
        self._notes.kept[self._given] = times
        self._given += 1

    def _note(self, operation: Any) -> None:
        code = self._codes.get(operation)
        if code is None:
            code = self._codes[operation] = self._notes.add(operation)
        self._entries.append(code)

    # ---- instructions ---------------------------------------------------------------------------

    def see(self, call: Any, site: Place, bound: Sequence[Any]) -> None:
        """An instruction was executed by the core in force."""
        by_pipe = self._by_pipe
        if not bound and not by_pipe:
            return
        facts: CallFacts = call.facts or facts_of(call)
        is_plain = facts.is_plain or not by_pipe
        changed = () if is_plain else self._begin(call, facts, site)
        place: Any = id(site) if site.__class__ is Location else (id(site.code), site.lasti)  # type: ignore[union-attr]
        moves, compared, touched = False, (), ()
        if bound:
            if self.scalar.busy or facts.pipe is Pipe.S:
                self._through_cache(call, site, bound)
            moves = len(bound) == facts.reaches and bound[0].pattern is facts.pattern
            touched = self._reach(bound, moves)
        if (bound or facts.across) and facts.writes and self.machine.peek is not None:
            compared = self._compare(facts, bound)
        key: tuple[Any, ...] = call, place
        if changed or compared or touched:  # most are only what they are, where they stand
            key = call, place, changed, compared, touched
        code = self._instructions.get(key)
        if code is None:
            pipe = 0 if not by_pipe else Pipe.ALL if facts.gives_value else facts.pipe
            found = dict(compared) if compared else _NOT_COMPARED
            noted = Noted(call, site, pipe, tuple(bound), moves, found, changed, facts)
            code = self._notes.add(noted)
            self._instructions[key] = code
        entries, number = self._entries, self.machine.core.number
        self._noted += 1
        if number != self._turn:
            if number != self._core:
                self._core = number
                entries.append(number << SHIFT | TURN)
            if self.issued is None:
                self._turn = number
            else:
                self.log.issued.note(self._noted, self.issued)
        entries.append(code)
        if not is_plain:
            self._end(call, facts, site)
        if len(entries) > _MOST_ENTRIES:
            self.settle()

    def wait(self) -> Issued:
        """An instruction is issued, and has to wait; returns where that was."""
        self._waiting += 1
        self._queued += 1
        return self._noted, self._queued

    def begin_late(self, issued: Issued) -> Issued | None:
        """What has waited since it was issued there is executed; returns what `end_late` takes."""
        before, self.issued, self._turn = self.issued, issued, -1
        self._waiting -= 1
        return before

    def end_late(self, before: Issued | None) -> None:
        """It is done, and what it was executed in the midst of goes on."""
        self.issued, self._turn = before, -1

    def _reach(self, bound: Sequence[Any], moves: bool) -> tuple[Any, ...]:
        """Note the addresses of what is touched beside tiles; where not all are views of the call,
        the key of its operation has them."""
        if not moves:
            for access in bound:
                _hold(self._written_to if access.writes else self._read_from, access.memory)
            return tuple([(a.memory, a.operand, a.writes, a.signature) for a in bound])
        for access in bound:
            memory = access.memory
            held = self._written_to if access.pattern.writes else self._read_from
            if held.get(memory.base) is not memory:
                _hold(held, memory)
            self._addresses.append(memory.base + access.offset)
        return ()

    # The scalar unit reads a number from memory, and goes on. That is done by an agent of its own:
    # its stores are not over when it has a number.

    def _begin_to_read(self, first: int, site: Place) -> None:
        known = Token(site, "")
        self.give(first + Pipe.S, known)
        self.take(first + Pipe.ALL, known)

    def _read(self, first: int, site: Place) -> None:
        self.reading = come = Token(site, "")
        self._count(come)
        self._note(Done(first + Pipe.ALL))
        self.take(first + Pipe.S, come)

    def _through_cache(self, call: Any, site: Place, bound: Sequence[Any]) -> None:
        core, is_scalar = self.machine.core, call.pipe is Pipe.S
        for access in bound:
            if isinstance(access.memory, GmBuffer):
                self.scalar.access(core, is_scalar, access.ranges(), access.writes, site)

    def _changed(self, names: Iterable[str]) -> tuple[str, ...]:
        """The registers among these that hold another value than before."""
        core, found = self.machine.core, list[str]()
        for name in names:
            # A register that there are two of counts as one.
            value = [
                core.registers[each] for each in sorted(core.registers) if each.startswith(name)
            ]
            if value != self._registers.get((core.number, name)):
                self._registers[core.number, name] = value
                found.append(name)
        return tuple(found)

    # ---- values ---------------------------------------------------------------------------------

    def peek(self, call: Any, bound: Sequence[Any]) -> None:
        """An instruction is about to write where others may: keep what another core wrote there."""
        facts: CallFacts = call.facts or facts_of(call)
        if not facts.writes:
            return
        core, writers = self.machine.core.number, self._writers
        self._peeked = bound
        for address, access in _shared(facts, bound):
            last = writers.get(address)
            if last is not None and last[0] != core and last[1].signature == access.signature:
                self._before[address] = raw_bytes(np.array(access.read()))
            if not facts.atomic:
                writers[address] = core, access

    def _compare(self, facts: CallFacts, bound: Sequence[Any]) -> _Compared:
        """Whether what was written is what another core had written there, by operand."""
        found: _Compared = ()
        if bound and self._peeked is bound and not self._before:
            return found  # nobody else had written there, and who has now is known
        core, before = self.machine.core.number, self._before
        for address, access in _shared(facts, bound):
            if before and address in before:
                now = raw_bytes(np.array(access.read()))
                found += ((access.operand, np.array_equal(before.pop(address), now)),)
            if not facts.atomic:
                self._writers[address] = core, access
        return found

    # ---- steps of composite instructions --------------------------------------------------------

    def _begin(self, call: Any, facts: CallFacts, site: Place) -> tuple[str, ...]:
        """Before the first access of an instruction: the registers that it changes."""
        changed: tuple[str, ...] = ()
        if facts.is_composite:
            changed = self._changed(call.insn.sets)
            if call.steps is not None:
                self._begin_steps(call, site)
        if facts.gives_value:
            self._begin_to_read(self.machine.core.number * PIPES, site)
        return changed

    def _begin_steps(self, call: Any, site: Place) -> None:
        steps, flags = call.steps, self.machine.core.flags
        for order in (*steps.start, *steps.between, *steps.end):
            own = flags.get(order) if isinstance(order, Flag) else None
            if own is not None and own.tokens:
                self.findings.inner_flag(call.insn, site, order, own)
        self._complete(steps.start, call, site, 0)

    def _end(self, call: Any, facts: CallFacts, site: Place) -> None:
        """Behind the last access of an instruction."""
        if facts.gives_value:
            self._read(self.machine.core.number * PIPES, site)
        if call.steps is not None:
            self._complete(call.steps.between, call, site, 1)
            self._complete(call.steps.end, call, site, 0)

    def _complete(self, orders: Iterable[Barrier | Flag], call: Any, site: Place, but: int) -> None:
        """Barriers and flags inside an instruction; of its pipe they prove all `but` so much."""
        first = self.machine.core.number * PIPES
        for order in orders:
            pipe = order.src if isinstance(order, Flag) else order.pipe
            less = but if pipe is call.pipe else 0
            if not isinstance(order, Flag):
                self._note(Complete(first + pipe, less))
            else:
                token = Token(site, "")
                self._count(token, 1)
                self._note(Prove(first + pipe, less))
                if order.dst is Pipe.S:  # whatever is issued behind it comes behind it
                    self.machine.sync.learn(token)
                else:
                    self.take(first + order.dst, token)


def _hold(held: dict[int, Any], memory: Any) -> None:
    """Keep an array; of those that begin at one place the longest."""
    if isinstance(memory, GmBuffer):
        known = held.get(memory.base)
        if known is None or known.nbytes < memory.nbytes:
            held[memory.base] = memory


def _shared(facts: CallFacts, bound: Sequence[Any]) -> list[tuple[_Address, Any]]:
    """What is written where other cores may write as well, each with its address.

    Global memory has one space of addresses, every other memory its own.
    """
    found: list[tuple[_Address, Any]] = [
        (a.memory.base + a.offset, a) for a in bound if a.writes and isinstance(a.memory, GmBuffer)
    ]
    for a in facts.across:
        if a.writes:
            found.append(((a.memory.uid, a.memory.base + a.offset), a))
    return found


class PromptJournal(Journal):
    """A journal that is read as it is written.

    The ranks of a world take turns and share what they know: what one has done must be known to the
    log before another goes on.
    """

    def give(self, agent: int, token: Token, times: int = 1) -> None:
        super().give(agent, token, times)
        self.settle()

    def take(self, agent: int, token: Token) -> None:
        super().take(agent, token)
        self.settle()

    def hand(self, giver: int, taker: int) -> None:
        super().hand(giver, taker)
        self.settle()

    def learn(self, core: Core, token: Token) -> None:
        super().learn(core, token)
        self.settle()

    def barrier(self, agent: int) -> None:
        super().barrier(agent)
        self.settle()

    def barrier_all(self, core: Core) -> None:
        super().barrier_all(core)
        self.settle()

    def gather(self, into: Token, token: Token) -> None:
        super().gather(into, token)
        self.settle()

    def share(self, gathered: Token, token: Token) -> None:
        super().share(gathered, token)
        self.settle()

    def see(self, call: Any, site: Place, bound: Sequence[Any]) -> None:
        super().see(call, site, bound)
        self.settle()
