"""Hazards: two accesses to the same bytes, one of them a write, that nothing puts in order.

Every event passes through `HazardLog.see`. Which bytes it touches and how follows from the
operand roles of its instruction; whether an earlier access is complete follows from the clocks.
Configuration registers are bytes as well, which only the scalar unit writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptokit.base.enums import AtomicType
from ptokit.base.layout import Array, raw_bytes
from ptokit.isa.effects import Barrier, Flag, Steps
from ptokit.isa.spec import Pipe
from ptokit.isa.walks import is_positionwise, walk_of
from ptokit.machine.clocks import PIPES, Clocks
from ptokit.machine.events import Event
from ptokit.machine.flags import Clock
from ptokit.machine.gm import GmBuffer
from ptokit.machine.regions import Region, RegionIndex, Rows, Use
from ptokit.machine.scalar_cache import ScalarCaches

if TYPE_CHECKING:
    from ptokit.machine.findings import Findings
    from ptokit.machine.history import History
    from ptokit.machine.machine import Machine


class Plan(NamedTuple):
    """What a call does each time it is executed, global memory apart."""

    uses: tuple[Use, ...]
    is_atomic: bool  # adds to global memory
    handles: frozenset[str]  # operands whose bytes do not matter
    steps: Steps | None  # how it orders its own steps
    registers: frozenset[str]  # on which its meaning depends
    is_special: bool  # there is more than accesses to look at: steps or registers
    gives_value: bool = False  # the scalar unit reads a number from memory, and goes on


class HazardLog:
    """Who touched which bytes last, and the conflicts found so far."""

    def __init__(
        self,
        machine: Machine,
        clocks: Clocks,
        findings: Findings,
        history: History | None = None,
    ) -> None:
        self.machine = machine
        self.clocks = clocks
        self.findings = findings
        self.scalar = ScalarCaches(findings)
        self._by_pipe = clocks.is_by_pipe
        unordered = machine.target.unordered if self._by_pipe else frozenset[Pipe]()
        self._barriers = unordered | {Pipe.ALL}  # engines promise no order between two transfers
        self._plans: dict[Any, Plan] = {}  # by call
        self._known: dict[int, RegionIndex] = {}  # by memory; all of GM is one
        self._history = history  # of windows, which other ranks reach as well
        self._registers: dict[tuple[int, str], tuple[Region, Any]] = {}  # of a core: its value
        self._overwritten: dict[Region, Array] = {}  # what other cores had written there
        self.reading: Clock | None = None  # what holds once the number that was read last has come
        self.has_compared = False  # whether the values that are written have had a say

    # ---- what an event touches ------------------------------------------------------------------

    def see(self, event: Event) -> None:
        """Check the accesses of an event against earlier ones, and remember them."""
        call = event.call
        plan = self._plans.get(call) or self._plan(event)
        uses = plan.uses
        if event.bound:
            uses += self._bound_uses(event, plan)
        if not uses and not plan.is_special:
            return
        clocks = self.clocks
        event.uses = uses
        event.agent = agent = self.machine.core.number * PIPES
        if plan.gives_value:  # an agent of its own: its stores are not over when it has a number
            clocks.acquire((agent + Pipe.ALL,), clocks.release(agent + Pipe.S))
            event.agent = agent = agent + Pipe.ALL
        elif self._by_pipe:
            event.agent = agent = agent + call.pipe
        event.time = clocks.count[agent] = clocks.count[agent] + 1
        if plan.is_special:
            self._begin(event, plan)
        mine = clocks.known[agent]
        complete, at_least = mine.get, mine.base.get  # what it learnt itself, and at meetings
        ordered = -1 if call.pipe in self._barriers else agent  # most pipes keep their own order
        for use in uses:
            region, writes = use.region, use.writes
            # Nearly every access finds all earlier ones complete: this must be quick to see.
            is_clear = False
            for peer in region.peers:
                last = peer.write
                if last is not None:
                    other = last.agent
                    if other != ordered and complete(other, 0) < last.time > at_least(other, 0):
                        break
                # Additions may happen at the same time as each other.
                if peer.additions and not use.atomic and peer.settled is not mine.base:
                    break
                if writes and peer.reads:
                    for earlier in peer.reads.values():
                        other, time = earlier.agent, earlier.time
                        if other != ordered and complete(other, 0) < time > at_least(other, 0):
                            break
                    else:
                        continue
                    break
            else:
                is_clear = True
            if not is_clear:
                self._judge(use, event, mine, ordered)
            if not writes:
                # In an unordered pipe a walk in step does not stand for another kind of read.
                region.reads[agent if use.walk is None else ~agent] = event
            elif use.atomic:
                region.additions[agent] = event
                region.settled = None
            else:
                # Whatever came before is ordered before this write, or was reported.
                region.write = event
                if region.additions:
                    region.additions = {}
                if region.reads:
                    region.reads = {}

        if plan.gives_value:
            self.reading = Clock({agent: event.time})
            clocks.acquire((agent - Pipe.ALL + Pipe.S,), self.reading)
        if plan.steps is not None:
            self._end(event, plan.steps)
        if self._overwritten:
            self._overwritten.clear()

    def _plan(self, event: Event) -> Plan:
        call, insn = event.call, event.call.insn
        handles = frozenset(o.name for o in insn.operands if o.is_handle)
        is_atomic = AtomicType.AtomicAdd in call.ops.attrs.values()
        if self._by_pipe:
            steps, registers = call.steps, insn.registers(call.ops)
            is_special = steps is not None or bool(insn.sets or registers)
            gives = bool(insn.returns) and call.pipe is Pipe.S and steps is None
            uses = self._tile_uses(event, steps)
            plan = Plan(uses, is_atomic, handles, steps, registers, is_special, gives)
        else:
            plan = Plan((), is_atomic, handles, None, frozenset(), False)
        self._plans[call] = plan
        return plan

    def _tile_uses(self, event: Event, steps: Steps | None) -> tuple[Use, ...]:
        accesses = event.call.accesses
        results = {a.shape for a in accesses if a.writes}
        roles = {operand.name: operand.role for operand in event.insn.operands}
        found: list[Use] = []
        for access in accesses:
            region = self._region(access)
            if region is not None:
                where = region, access.offset
                walk = walk_of(event.insn, where, access.shape, access.dtype.itemsize, results)
                over = steps is not None and steps.scratch_complete
                over = over and roles.get(access.operand) == "tmp"
                found.append(Use(access.operand, access.writes, region, walk, False, over))
        # What is written in the way it is read need not be looked at twice.
        written = {(u.region, u.walk) for u in found if u.writes}
        return tuple(u for u in found if u.writes or (u.region, u.walk) not in written)

    def _region(self, access: Any) -> Region | None:
        memory = access.memory
        index = self._known.get(memory.uid)
        if index is None:
            index = self._known[memory.uid] = RegionIndex(memory.name)
        history = self._history
        if history is not None and isinstance(memory, GmBuffer) and history.holds(access):
            index = history.windows
        key = access.signature
        return index.get(key) or index.add(key, access.place)

    def _bound_uses(self, event: Event, plan: Plan) -> tuple[Use, ...]:
        """Global memory, and scratch beside the operands."""
        found: list[Use] = []
        for access in event.bound:
            region = self._region(access)
            if region is None or access.operand in plan.handles:
                continue
            writes, is_global = access.writes, isinstance(access.memory, GmBuffer)
            is_over = plan.steps is not None and plan.steps.scratch_complete and not is_global
            atomic = plan.is_atomic and writes
            found.append(Use(access.operand, writes, region, None, atomic, is_over))
            if is_global and (self.scalar.busy or event.call.pipe is Pipe.S):
                self._through_cache(event, access)
        return tuple(found)

    def _through_cache(self, event: Event, access: Any) -> None:
        core = self.machine.core
        scalar = event.pipe is Pipe.S
        self.scalar.access(core, scalar, access.ranges(), access.writes, event.site)

    def recycle(self, storages: Any) -> None:
        """Forget the history of memories that are handed to another block."""
        for storage in storages:
            index = self._known.get(storage.uid)
            if index is not None:
                index.forget()

    # ---- conflicts ------------------------------------------------------------------------------

    def _suspects(self, use: Use, known: Clock, ordered: int) -> list[tuple[Region, Event, bool]]:
        """Accesses to the same bytes that may not be complete; `ordered` keeps its own order."""
        found: list[tuple[Region, Event, bool]] = []
        for peer in use.region.peers:
            for wrote, earlier in (
                *((True, r) for r in (peer.last_write if use.atomic else peer.writes)),
                *((False, r) for r in (peer.reads.values() if use.writes else ())),
            ):
                if known.knows(earlier.agent) < earlier.time and earlier.agent != ordered:
                    found.append((peer, earlier, wrote))
        return found

    def _judge(self, use: Use, event: Event, known: Clock, ordered: int) -> None:
        """Report what conflicts among the accesses that may not be complete."""
        suspects = self._suspects(use, known, ordered)
        for peer in use.region.peers:
            if all(known.base.get(a.agent, 0) >= a.time for a in peer.additions.values()):
                peer.settled = known.base
        crossed, agent = False, event.agent
        for peer, earlier, wrote in suspects:
            # What was reported counts as ordered from then on.
            if earlier.agent != agent and known.knows(earlier.agent) < earlier.time:
                crossed |= self._across(use, peer, earlier, event, wrote)
        if crossed:
            return  # order inside the pipe would come back with the order that was missing
        for peer, earlier, wrote in suspects:
            if earlier.agent == agent and earlier is not event:
                self._inside(use, peer, earlier, event, wrote)

    def _across(self, use: Use, peer: Region, earlier: Event, event: Event, wrote: bool) -> bool:
        """Two pipes: report the pair, and from then on take it as ordered."""
        excuse = ""
        if wrote and use.writes and use.region is peer:
            before = self._overwritten.get(use.region)
            is_same = before is not None and np.array_equal(before, _bytes_of(event, use))
            if _are_twins(event, earlier):
                if before is not None and not is_same:
                    self.findings.unlike_twins(event, earlier)
                return False
            here, there = (self.findings.cores[e.agent // PIPES] for e in (event, earlier))
            together = (here.rank, here.block) == (there.rank, there.block)
            excuse = "both vector cores write equal bytes" if is_same and together else ""
        self.findings.race(use, peer, earlier, event, wrote, excuse)
        if excuse:  # it stays without order: what follows may have none either
            return False
        self.clocks.acquire((event.agent,), Clock({earlier.agent: earlier.time}))
        return True

    def _inside(self, use: Use, peer: Region, earlier: Event, event: Event, wrote: bool) -> None:
        """One pipe that does not keep its order: report the pair, as a doubt where it may do."""
        through = [u for u in earlier.uses if u.region is peer and u.writes == wrote]
        if through and all(u.is_over for u in through):
            return
        excuse = ""
        if wrote and use.writes and event.pipe in _TRANSFERS:
            excuse = "transfers of one pipe write in order as a rule"
        elif any(is_positionwise(use.walk, other.walk) for other in through):
            excuse = "both go through the same bytes position by position"
        self.findings.race(use, peer, earlier, event, wrote, excuse)
        if not excuse:
            self.clocks.acquire((event.agent,), Clock({earlier.agent: earlier.time}))

    # ---- steps of composite instructions, and registers -----------------------------------------

    def _begin(self, event: Event, plan: Plan) -> None:
        """Before the first access of an instruction."""
        steps = plan.steps
        if steps is not None:
            self._complete(steps.start, event, event.time - 1)
            for order in (*steps.start, *steps.between, *steps.end):
                if isinstance(order, Flag):
                    own = self.machine.core.flags.get(order)
                    if own is not None and own.tokens:
                        self.findings.inner_flag(event, order, own)
        insn, number, known = event.insn, self.machine.core.number, self._registers
        for name in plan.registers:
            region, _ = known.setdefault((number, name), (_register(name), None))
            region.reads[event.agent] = event
        for name in insn.sets:
            region, before = known.setdefault((number, name), (_register(name), None))
            # A register that there are two of counts as one.
            registers = self.machine.core.registers
            value = [registers[each] for each in sorted(registers) if each.startswith(name)]
            if value != before:
                event.uses += (Use(name, True, region, None, False),)
                for earlier in region.reads.values():
                    if self.clocks.of(event.agent).knows(earlier.agent) < earlier.time:
                        earlier.uses += (Use(name, False, region, None, False),)
                        self.findings.race(event.uses[-1], region, earlier, event, False)
            known[number, name] = region, value
            region.reads = {}

    def _end(self, event: Event, steps: Steps) -> None:
        """Behind the last access of an instruction."""
        self._complete(steps.between, event, event.time - 1)
        self._complete(steps.end, event, event.time)

    def _complete(self, orders: Iterable[Barrier | Flag], event: Event, time: int) -> None:
        """Barriers and flags inside an instruction; `time` of its own pipe is complete by them."""
        clocks, first = self.clocks, event.agent - event.pipe
        for order in orders:
            pipe = order.src if isinstance(order, Flag) else order.pipe
            if pipe is Pipe.ALL:
                clocks.barrier_all(self.machine.core)
                continue
            agent = first + pipe
            upto = time if pipe is event.pipe else clocks.count[agent]
            if isinstance(order, Flag):
                proven = clocks.release(agent)
                proven[agent] = upto
                if order.dst is Pipe.S:  # whatever is issued behind it comes behind it
                    self.machine.sync.learn(proven)
                else:
                    clocks.acquire((first + order.dst,), proven)
            else:
                clocks.acquire((agent,), Clock({agent: upto}))

    def peek(self, call: Any, bound: Sequence[Any]) -> None:
        """Before an instruction writes to global memory: keep what other cores wrote there."""
        core = self.machine.core.number
        for access in bound:
            if access.writes and isinstance(access.memory, GmBuffer):
                region = self._region(access)
                last = None if region is None else region.write
                if last is not None and last.agent // PIPES != core:
                    agent = core * PIPES + (call.pipe if self._by_pipe else 0)
                    if self.clocks.of(agent).knows(last.agent) < last.time:
                        assert region is not None
                        self.has_compared = True
                        self._overwritten[region] = raw_bytes(np.array(access.read()))


_TRANSFERS = (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3)


def _bytes_of(event: Event, use: Use) -> Array:
    """What an instruction wrote to global memory."""
    access = next(a for a in event.bound if a.writes and a.operand == use.operand)
    return raw_bytes(np.array(access.read()))


def _register(name: str) -> Region:
    return Region(name, Rows(0, 8, 8, 1))


def _are_twins(event: Event, other: Event) -> bool:
    """Whether two vector cores push the same entry, unsplit: A2/A3 makes both go through it."""
    return event.insn.moves_entries and event.call.insn is other.call.insn
