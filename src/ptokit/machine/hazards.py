"""Hazards: two accesses to the same bytes, one of them a write, that nothing puts in order.

Every event passes through `HazardLog.see`. Which bytes it touches and how follows from the
operand roles of its instruction; whether an earlier access is complete follows from the clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptokit.base.enums import AtomicType
from ptokit.isa.effects import Flag
from ptokit.isa.spec import Pipe
from ptokit.isa.walks import keeps_pace, stays_behind, walk_of
from ptokit.machine.clocks import PIPES, Clocks
from ptokit.machine.events import Event
from ptokit.machine.flags import Clock
from ptokit.machine.memory import GmBuffer
from ptokit.machine.regions import Region, RegionIndex, Use
from ptokit.machine.scalar_cache import ScalarCaches

if TYPE_CHECKING:
    from ptokit.machine.findings import Findings
    from ptokit.machine.machine import Machine


class HazardLog:
    """Who touched which bytes last, and the conflicts found so far."""

    def __init__(self, machine: Machine, clocks: Clocks, findings: Findings) -> None:
        self.machine = machine
        self.clocks = clocks
        self.findings = findings
        self.scalar = ScalarCaches(findings)
        self._by_pipe = clocks.is_by_pipe
        self._barriers = machine.target.unordered if self._by_pipe else frozenset[Pipe]()
        # Of a call: what it does to its tiles, whether it adds atomically, and whether it completes
        # the earlier work of its pipe before it starts, and its own before it ends.
        self._uses: dict[Any, tuple[tuple[Use, ...], bool, bool, bool]] = {}
        self._known: dict[int, RegionIndex] = {}  # by memory; all of GM is one

    # ---- what an event touches ------------------------------------------------------------------

    def see(self, event: Event) -> None:
        """Check the accesses of an event against earlier ones, and remember them."""
        call = event.call
        known = self._uses.get(call)
        if known is None:
            uses = self._tile_uses(event) if self._by_pipe else ()
            known = self._uses[call] = uses, _is_atomic(event), *self._completes(event)
        uses, atomic, drains, completes = known
        if event.bound:
            uses += self._bound_uses(event, atomic)
        if not uses:
            return
        clocks = self.clocks
        event.uses = uses
        event.agent = agent = self.machine.core.number * PIPES
        if self._by_pipe:
            event.agent = agent = agent + call.pipe
        event.time = clocks.count[agent] = clocks.count[agent] + 1
        mine = clocks.known[agent]
        if drains:
            mine[agent] = event.time - 1
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
                    for other, earlier in peer.reads.items():
                        time = earlier.time
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
                region.reads[agent] = event
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
        if completes:
            mine[agent] = event.time

    def _completes(self, event: Event) -> tuple[bool, bool]:
        """What an instruction of several steps orders inside an unordered pipe by itself."""
        insn, call, pipe = event.insn, event.call, event.call.pipe
        case = insn.case(call.ops) if insn.steps and pipe in self._barriers else None
        if case is None:
            return False, False
        starts = any((e.src if isinstance(e, Flag) else e.pipe) == pipe for e in case.start)
        return starts, case.result_complete and case.scratch_complete

    def _tile_uses(self, event: Event) -> tuple[Use, ...]:
        accesses = event.call.accesses
        results = {a.shape for a in accesses if a.writes}
        found: list[Use] = []
        for access in accesses:
            region = self._region(access)
            if region is not None:
                where = region, access.offset
                walk = walk_of(event.insn, where, access.shape, access.dtype.itemsize, results)
                found.append(Use(access.operand, access.writes, region, walk, False))
        # What is written in the way it is read need not be looked at twice.
        written = {(u.region, u.walk) for u in found if u.writes}
        return tuple(u for u in found if u.writes or (u.region, u.walk) not in written)

    def _region(self, access: Any) -> Region | None:
        memory = access.memory
        index = self._known.get(memory.uid)
        if index is None:
            index = self._known[memory.uid] = RegionIndex(memory.name)
        key = access.signature
        return index.get(key) or index.add(key, access.place)

    def _bound_uses(self, event: Event, atomic: bool) -> tuple[Use, ...]:
        found: list[Use] = []
        for access in event.bound:
            region = self._region(access)
            if region is None:
                continue
            writes = access.writes
            image = access.read().tobytes() if writes and self._has_twin() else None
            found.append(Use(access.operand, writes, region, None, atomic and writes, image))
            in_cache = self.scalar.busy or event.call.pipe is Pipe.S
            if in_cache and isinstance(access.memory, GmBuffer):
                self._through_cache(event, access)
        return tuple(found)

    def _has_twin(self) -> bool:
        """Whether the core that runs is one of two vector cores: they often do the same."""
        return self.machine.subblocks > 1 and self.machine.core.kind == "vector"

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
                crossed |= self._conflict(use, peer, earlier, event, wrote)
        if crossed:
            return  # order inside the pipe would come back with the order that was missing
        for peer, earlier, wrote in suspects:
            if earlier.agent == agent and self._same_pipe(use, peer, earlier, event):
                self._conflict(use, peer, earlier, event, wrote)

    def _same_pipe(self, use: Use, peer: Region, earlier: Event, event: Event) -> bool:
        """Whether the order of one pipe does not protect this pair."""
        if earlier is event:
            return False
        in_step = any(stays_behind(use.walk, other.walk) for other in earlier.uses)
        return peer is not use.region or not in_step

    def _conflict(self, use: Use, peer: Region, earlier: Event, event: Event, wrote: bool) -> bool:
        """Report a pair, unless its order does not matter; from then on, take it as ordered."""
        if use.region is peer and wrote and use.writes and _twins(event, earlier):
            return False
        excuse = self._excuse(use, peer, earlier, event, wrote)
        self.findings.race(use, peer, earlier, event, wrote, excuse)
        if excuse:  # it stays without order: what follows may have none either
            return False
        self.clocks.acquire((event.agent,), Clock({earlier.agent: earlier.time}))
        return True

    def _excuse(self, use: Use, peer: Region, earlier: Event, event: Event, wrote: bool) -> str:
        """Why a pair without order does no harm on the devices we know of; empty: it may."""
        before = [each for each in earlier.uses if each.region is peer]
        both_write = wrote and use.writes
        if earlier.agent != event.agent:
            cores = self.findings.cores
            here, there = (cores[each.agent // PIPES].block for each in (event, earlier))
            is_same = use.image is not None and any(u.image == use.image for u in before)
            same = both_write and here == there and peer is use.region and is_same
            return "both vector cores write equal bytes" if same else ""
        if both_write and event.pipe in _TRANSFERS:
            return "transfers of one pipe write in order as a rule"
        if peer is use.region and any(keeps_pace(use.walk, other.walk) for other in before):
            return "both go through the same bytes in the same direction"
        return ""


_TRANSFERS = (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3)


def _is_atomic(event: Event) -> bool:
    return AtomicType.AtomicAdd in event.call.ops.attrs.values()


def _twins(event: Event, other: Event) -> bool:
    """Whether two vector cores push the same entry, unsplit: A2/A3 makes both go through it."""
    return event.insn.moves_entries and event.call.insn is other.call.insn
