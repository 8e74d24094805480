"""Hazards: two accesses to the same bytes, one of them a write, that nothing puts in order.

Every record passes through `HazardLog.see`. Which bytes it touches and how follows from the
operand roles of its instruction; whether an earlier access is complete follows from the clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptokit.base.enums import AccPhase, AtomicType, STPhase
from ptokit.isa.spec import Pipe
from ptokit.machine.clocks import PIPES, Clocks, join
from ptokit.machine.flags import Clock
from ptokit.machine.gm import GmWindow
from ptokit.machine.moves import Move
from ptokit.machine.records import Record
from ptokit.machine.regions import Region, RegionIndex, Use
from ptokit.machine.scalar_cache import ScalarCaches
from ptokit.machine.window import Window

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
        self._barriers = machine.target.unordered
        # Of a plan: what it does to its tiles, its unit-flag phase, whether it adds atomically.
        self._uses: dict[Any, tuple[tuple[Use, ...], int, bool]] = {}
        self._local: dict[int, RegionIndex] = {}
        self._gm = RegionIndex("GM")
        self._units: dict[int, _Unit] = {}

    # ---- what a record touches ------------------------------------------------------------------

    def see(self, record: Record) -> None:
        """Check the accesses of a record against earlier ones, and remember them."""
        plan = record.plan
        known = self._uses.get(plan)
        if known is None:
            known = self._tile_uses(record), phase_of(plan), _is_atomic(record)
            self._uses[plan] = known
        uses, phase, atomic = known
        if record.gm:
            uses += self._gm_uses(record, atomic)
        if not uses:
            return
        clocks = self.clocks
        record.uses = uses
        record.agent = agent = self.machine.core.number * PIPES + plan.pipe
        record.time = clocks.count[agent] = clocks.count[agent] + 1
        if phase:
            self._handshake(record, phase)
        mine = clocks.known[agent]
        complete = mine.get
        ordered = -1 if plan.pipe in self._barriers else agent  # most pipes keep their own order
        for use in uses:
            region, writes = use.region, use.writes
            # Nearly every access finds all earlier ones complete: this must be quick to see.
            is_clear = False
            for peer in region.peers:
                last = peer.write
                if last is not None:
                    other = last.agent
                    if other != ordered and complete(other, 0) < last.time:
                        break
                if peer.additions:
                    break
                if writes and peer.reads:
                    for other, earlier in peer.reads.items():
                        if other != ordered and complete(other, 0) < earlier.time:
                            break
                    else:
                        continue
                    break
            else:
                is_clear = True
            if not is_clear:
                self._judge(use, record, mine, ordered)
            if not writes:
                region.reads[agent] = record
            elif use.atomic:
                region.additions[agent] = record  # others may add at the same time
            else:
                # Whatever came before is ordered before this write, or was reported.
                region.write = record
                if region.additions:
                    region.additions = {}
                if region.reads:
                    region.reads = {}
        record.clock = clocks.release(agent) if phase else None

    def _tile_uses(self, record: Record) -> tuple[Use, ...]:
        windows = record.plan.windows
        walks = {w.shape for _, writes, w in windows if writes}
        streaming = record.insn.streams
        found: list[Use] = []
        for operand, writes, window in windows:
            region = self._region(window)
            if region is not None:
                walk = None
                if streaming and window.shape in walks:
                    walk = (window.shape, window.dtype.itemsize, window.offset)
                found.append(Use(operand, writes, region, walk, False))
        # What is written in the way it is read need not be looked at twice.
        written = {(id(u.region), u.streams) for u in found if u.writes}
        return tuple(u for u in found if u.writes or (id(u.region), u.streams) not in written)

    def _region(self, window: Window) -> Region | None:
        storage = window.storage
        index = self._local.get(storage.uid)
        if index is None:
            index = self._local[storage.uid] = RegionIndex(storage.name)
        key = tuple(window.ranges())
        return index.get(key) or index.add(key, key)

    def _gm_uses(self, record: Record, atomic: bool) -> tuple[Use, ...]:
        found: list[Use] = []
        for operand, writes, window in record.gm:
            use = window.use
            if use is None:
                place = window.signature
                region = self._gm.get(place) or self._gm.add(place, window.place)
                if region is None:
                    continue
                use = window.use = Use(operand, writes, region, None, atomic and writes)
            found.append(use)
            if self.scalar.busy or record.plan.pipe is Pipe.S:
                self._through_cache(record, window, writes)
        return tuple(found)

    def _through_cache(self, record: Record, window: GmWindow, writes: bool) -> None:
        core = self.machine.core
        scalar = record.pipe is Pipe.S
        self.scalar.access(core, scalar, window.ranges(), writes, record.site)

    def recycle(self, storages: Any) -> None:
        """Forget the history of memories that are handed to another block."""
        for storage in storages:
            index = self._local.get(storage.uid)
            if index is not None:
                index.forget()

    # ---- conflicts ------------------------------------------------------------------------------

    def _suspects(self, use: Use, known: Clock, ordered: int) -> list[tuple[Region, Record, bool]]:
        """Accesses to the same bytes that may not be complete; `ordered` keeps its own order."""
        found: list[tuple[Region, Record, bool]] = []
        for peer in use.region.peers:
            for wrote, earlier in (
                *((True, r) for r in peer.writes),
                *((False, r) for r in (peer.reads.values() if use.writes else ())),
            ):
                if known.get(earlier.agent, 0) < earlier.time and earlier.agent != ordered:
                    found.append((peer, earlier, wrote))
        return found

    def _judge(self, use: Use, record: Record, known: Clock, ordered: int) -> None:
        """Report what conflicts among the accesses that may not be complete."""
        suspects = self._suspects(use, known, ordered)
        crossed, agent = False, record.agent
        for peer, earlier, wrote in suspects:
            # What was reported counts as ordered from then on.
            if earlier.agent != agent and known.get(earlier.agent, 0) < earlier.time:
                crossed |= self._conflict(use, peer, earlier, record, wrote)
        if crossed:
            return  # order inside the pipe would come back with the order that was missing
        for peer, earlier, wrote in suspects:
            if earlier.agent == agent and self._same_pipe(use, peer, earlier, record):
                self._conflict(use, peer, earlier, record, wrote)

    def _same_pipe(self, use: Use, peer: Region, earlier: Record, record: Record) -> bool:
        """Whether the order of one pipe does not protect this pair."""
        if earlier is record:
            return False
        if use.streams is None or peer is not use.region:
            return True
        return not any(u.region is peer and u.streams == use.streams for u in earlier.uses)

    def _conflict(
        self, use: Use, peer: Region, earlier: Record, record: Record, wrote: bool
    ) -> bool:
        """Report a pair, unless its order does not matter; from then on, take it as ordered."""
        if use.atomic and wrote and _is_atomic(earlier):
            return False
        if use.region is peer and wrote and use.writes and _twins(record, earlier):
            return False
        self.findings.race(self.machine, use, peer, earlier, record, record.agent, wrote)
        self.clocks.acquire((record.agent,), {earlier.agent: earlier.time})
        return True

    # ---- unit flags -----------------------------------------------------------------------------

    def _handshake(self, record: Record, phase: int) -> None:
        """Cube unit and fix pipe hand an accumulator over by themselves, tile by tile."""
        known = self.clocks.of(record.agent)
        partner = Pipe.FIX if record.pipe is Pipe.M else Pipe.M
        other = record.agent - record.pipe + partner
        # TMATMUL_ACC names its accumulator twice; that is one step.
        for use in {id(u.region): u for u in record.uses}.values():
            if use.region.memory != "L0C":
                continue
            unit = self._units.setdefault(id(use.region), _Unit(use.region))
            unit.step(record, phase, self.findings, self.machine)
            for peer in use.region.peers:
                for earlier in (*peer.writes, *peer.reads.values()):
                    if earlier.agent == other and earlier.clock is not None:
                        join(known, earlier.clock)

    def open_units(self) -> list[Record]:
        """The instructions that left a handshake open."""
        return [unit.last for unit in self._units.values() if unit.is_open and unit.last]


class _Unit:
    """The state of one accumulator under unit flags."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.state = "empty"  # empty | filling | full
        self.last: Record | None = None

    @property
    def is_open(self) -> bool:
        return self.state != "empty"

    def step(self, record: Record, phase: int, findings: Findings, machine: Machine) -> None:
        final = phase == AccPhase.Final
        if record.pipe is Pipe.M:
            if self.state == "full":
                findings.unit(machine, record, self.last, "is accumulated into before it is stored")
            self.state = "full" if final else "filling"
        else:
            if self.state != "full":
                findings.unit(machine, record, self.last, "is stored before its last accumulation")
            self.state = "empty" if final else self.state
        self.last = record


def phase_of(plan: Any) -> int:
    """The unit-flag phase of an instruction; 0 when it takes no part in a handshake."""
    if getattr(plan, "phase", 0):
        return plan.phase
    for value in plan.ops.attrs.values():
        if isinstance(value, AccPhase | STPhase) and value:
            return int(value)
        config_phase = getattr(value, "Phase", None)
        if isinstance(config_phase, STPhase) and config_phase:
            return int(config_phase)
    return 0


def _is_atomic(record: Record) -> bool:
    return AtomicType.AtomicAdd in record.plan.ops.attrs.values()


def _twins(record: Record, other: Record) -> bool:
    """Whether two vector cores push the same entry, unsplit: A2/A3 makes both go through it."""
    mine, theirs = record.plan, other.plan
    return isinstance(mine, Move) and isinstance(theirs, Move) and record.insn is other.insn
