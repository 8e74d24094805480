"""Hazards: two accesses to the same bytes, one of them a write, that nothing puts in order.

Every event passes through `HazardLog.see`. Which bytes it touches and how follows from the
operand roles of its instruction; whether an earlier access is complete follows from the clocks.
Configuration registers are bytes as well, which only the scalar unit writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location, Site
from ptokit.isa.spec import Pipe
from ptokit.isa.targets import Target
from ptokit.isa.walks import is_positionwise
from ptokit.machine.call_facts import CallFacts, View
from ptokit.machine.clocks import PIPES, Clocks
from ptokit.machine.events import Event
from ptokit.machine.flags import Clock
from ptokit.machine.gm import GmBuffer
from ptokit.machine.issued import IssueOrder
from ptokit.machine.regions import Region, RegionIndex, Rows, Use, behind

if TYPE_CHECKING:
    from ptokit.machine.findings import Findings
    from ptokit.machine.history import History


@dataclass(slots=True, eq=False)
class Noted:
    """An instruction as a journal lists it: all that its executions have in common."""

    call: Any
    site: Site | Location
    pipe: int  # of whichever core has its turn
    bound: tuple[Any, ...]  # accesses to global memory, and to scratch beside the operands
    moves: bool  # these lie where the journal says
    compared: Mapping[str, bool]  # of operands: whether another core had written the same bytes
    changed: tuple[str, ...]  # registers
    facts: CallFacts
    uses: tuple[Use, ...] | None = None  # the same each time
    views: tuple[View | None, ...] = ()  # what moves; None where no bytes are touched
    spared: tuple[int, int] = (0, 0)  # bytes of arrays that are only read
    # Where something does: by addresses, of instructions that are executed more than once.
    by_place: dict[Sequence[int], tuple[Use, ...]] | None = None


class HazardLog:
    """Who touched which bytes last, and the conflicts found so far."""

    def __init__(
        self,
        target: Target,
        clocks: Clocks,
        findings: Findings,
        history: History | None = None,
    ) -> None:
        self._target = target
        self.clocks = clocks
        self.findings = findings
        self._by_pipe = clocks.is_by_pipe
        unordered = target.unordered if self._by_pipe else frozenset[Pipe]()
        self._barriers = unordered | {Pipe.ALL}  # engines promise no order between two transfers
        self._known: dict[int, RegionIndex] = {}  # by memory; all of GM is one
        self._history = history  # of windows, which other ranks reach as well
        self._spares = False  # whether arrays that are only read need not be looked at
        self._written: list[tuple[int, int]] = []  # the others: where they begin and end
        self._registers: dict[tuple[int, str], Region] = {}  # of a core
        self._changes: dict[Region, list[Event]] = {}  # of a register, as they were executed
        self.issued = IssueOrder()
        self._laid: list[CallFacts] = []  # whose uses were laid out here
        self.moment = 0  # events so far
        self.has_compared = False  # whether the values that are written have had a say

    # ---- what an event touches ------------------------------------------------------------------

    def see(self, event: Event) -> None:
        """Check the accesses of an event against earlier ones, and remember them."""
        event.moment = self.moment = self.moment + 1
        noted = event.noted
        facts, uses = noted.facts, noted.uses
        if uses is None:
            uses = self._first_uses(event, noted)
        if noted.views:
            uses = self._moving_uses(event, noted, uses)
        is_special = facts.has_registers and self._by_pipe
        if not uses and not is_special:
            return
        clocks = self.clocks
        event.uses = uses
        agent = event.agent
        event.time = clocks.count[agent] = clocks.count[agent] + 1
        if is_special:
            self._registered(event, facts)
        mine = clocks.known[agent]
        core = mine.core  # what the pipe has learnt itself, what its core has, and at meetings
        complete, learnt, met = mine.get, core.get, core.base.get
        is_free = noted.call.pipe in self._barriers
        ordered = -1 if is_free else agent  # most pipes keep their own order
        for use in uses:
            region, writes = use.region, use.writes
            # Nearly every access finds all earlier ones complete: this must be quick to see.
            for peer in region.peers:
                last = peer.write
                if last is not None:
                    other, time = last.agent, last.time
                    if (
                        other != ordered
                        and complete(other, 0) < time > learnt(other, 0)
                        and met(other, 0) < time
                    ):
                        break
                # Additions may happen at the same time as each other, and so may maxima.
                if peer.additions and peer.combines != use.atomic and peer.settled is not core.base:
                    break
                if writes and peer.reads:
                    for earlier in peer.reads.values():
                        other, time = earlier.agent, earlier.time
                        if (
                            other != ordered
                            and complete(other, 0) < time > learnt(other, 0)
                            and met(other, 0) < time
                        ):
                            break
                    else:
                        continue
                    break
            else:
                peer = None
            if peer is not None:
                self._judge(use, event, mine, ordered)
            if not writes:
                # In an unordered pipe a walk in step does not stand for another kind of read.
                region.reads[agent if use.walk is None else ~agent] = event
            elif use.atomic:
                region.add(agent, use.atomic, event)
            else:
                # Whatever came before is ordered before this write, or was reported.
                region.write = event
                if region.additions:
                    region.additions = {}
                if region.reads:
                    region.reads = {}
        if self._history is not None:
            self._history.seen(event, mine, self.findings)

    def _tile_uses(self, facts: CallFacts) -> tuple[Use, ...]:
        """Calls and memories outlive launches, and so do the regions of the one in the other."""
        if not self._by_pipe:
            return ()
        uses, known = facts.uses, self._known
        for memory, index in facts.laid:
            if (known.get(memory.uid) or self._index(memory)) is not index:
                break
        else:
            if uses is not None:
                return uses
        indices = {tile.access.memory: self._index(tile.access.memory) for tile in facts.tiles}
        facts.laid = tuple(indices.items())
        self._laid.append(facts)
        found: list[Use] = []
        for access, place, walk, is_over in facts.tiles:
            index, key = indices[access.memory], access.signature
            region = index.known.get(key) or index.add(key, place)
            assert region is not None
            found.append(Use(access.operand, access.writes, region, walk, "", is_over))
        facts.uses = uses = tuple(found)
        return uses

    def _index(self, memory: Any) -> RegionIndex:
        """The regions of a memory; what an earlier launch did to them is forgotten."""
        if memory.uid == _ALL_GM:
            return self.global_index()
        found = self._known.get(memory.uid)
        if found is None:
            found = memory.regions
            if found is None or found.is_closed:
                found = memory.regions = RegionIndex(memory.name)
            found.begin()
            self._known[memory.uid] = found
        return found

    def region(self, access: Any) -> Region | None:
        """The bytes that an access touches; None where there are none."""
        memory = access.memory
        index = self._index(memory)
        history = self._history
        if history is not None and isinstance(memory, GmBuffer) and history.holds(access):
            index = history.windows
        key = access.signature
        return index.get(key) or index.add(key, access.place)

    def region_at(self, address: int, view: View) -> Region:
        """The bytes of global memory that a view touches at an address."""
        index, key = self.global_index(), (address, view.place)
        found = index.known.get(key) or index.add(key, behind(view.place, address))
        assert found is not None  # a view of no bytes is none
        return found

    def _bound_uses(self, event: Event, facts: CallFacts) -> tuple[Use, ...]:
        """Global memory, and scratch beside the operands."""
        found: list[Use] = []
        for access in event.bound:
            region = self.region(access)
            if region is None or access.operand in facts.handles:
                continue
            writes, is_global = access.writes, isinstance(access.memory, GmBuffer)
            is_over = facts.is_over and self._by_pipe and not is_global
            atomic = facts.atomic if writes else ""
            found.append(Use(access.operand, writes, region, None, atomic, is_over))
            shade = self._shade(access)
            if shade is not None:
                found.append(Use(access.operand, writes, shade, None, atomic, is_over))
        return tuple(found)

    def _shade(self, access: Any) -> Region | None:
        """All that an access might have touched, whose values have chosen a part of it."""
        whole = getattr(access, "whole", None)
        if whole is None:
            return None
        index, key = self.global_index(), (_SHADE, whole.signature)
        shade = index.get(key) or index.add(key, whole.place)
        if shade is not None:
            shade.is_shade = True
        return shade

    def _first_uses(self, event: Event, noted: Noted) -> tuple[Use, ...]:
        """What an instruction touches each time."""
        found = self._tile_uses(noted.facts)
        if noted.moves:
            noted.views = noted.facts.views
        else:
            found += self._bound_uses(event, noted.facts)
        noted.uses = found
        return found

    def _moving_uses(self, event: Event, noted: Noted, fixed: tuple[Use, ...]) -> tuple[Use, ...]:
        """With global memory at the addresses that the journal names."""
        known, places, views = noted.by_place, event.places, noted.views
        if known is not None:
            found = known.get(places)
            if found is not None:
                return found
        found = fixed
        if self._history is not None:  # windows of others come and go
            for access, view in zip(event.reached, views, strict=True):
                found += _moving_use(self.region(access), view)
            return found
        for address, view in zip(places, views, strict=True):
            if view is None or self.is_spared(noted, view, address, address):
                continue
            found += _moving_use(self.region_at(address, view), view)
        if known is None:
            noted.by_place = {}
        else:
            known[places] = found
        return found

    # ---- what is only read ----------------------------------------------------------------------

    def spare_all_but(self, written: Iterable[GmBuffer]) -> None:
        """All that is still to be seen, and was, writes only these arrays of global memory.

        What reads others can be in conflict with nothing, and is not looked at.
        """
        self._written = [(each.base, each.base + each.nbytes) for each in written]
        self._spares = self._history is None

    def is_spared(self, noted: Noted, view: View, first: int, last: int) -> bool:
        """Whether what an operand touches, at addresses from one to another, is only read."""
        if view.writes or not self._spares:
            return False
        start, stop = first + view.start, last + view.stop
        low, high = noted.spared
        if low <= start and stop <= high:
            return True
        low, high = 0, _EVERYWHERE
        for begin, end in self._written:
            if end <= start:
                low = max(low, end)
            elif stop <= begin:
                high = min(high, begin)
            else:
                return False
        noted.spared = low, high
        return True

    # ---- what a window of a journal touches -----------------------------------------------------

    def regions_of(self, noted: Noted, number: int) -> list[Region]:
        """The bytes and registers that an instruction of a core touches wherever its views lie."""
        facts = noted.facts
        found = [use.region for use in self._tile_uses(facts)]
        if not noted.moves:
            for access in noted.bound:
                found += (r for r in (self.region(access), self._shade(access)) if r is not None)
        names = (*facts.registers, *noted.call.insn.sets) if self._by_pipe else ()
        return found + [self._register(number, name) for name in names]

    def global_index(self) -> RegionIndex:
        """All regions of global memory."""
        found = self._known.get(_ALL_GM)
        if found is None:  # it is asked for with every view
            found = self._known[_ALL_GM] = RegionIndex("GM")
        return found

    def in_the_way(self, use: Use, noted: Noted, agent: int) -> list[Region]:
        """Regions with which an access of an instruction could be in conflict from now on."""
        ordered = -1 if noted.call.pipe in self._barriers else agent
        return [peer for peer, _, _ in self._suspects(use, self.clocks.of(agent), ordered)]

    def recycle(self, memories: Iterable[int]) -> None:
        """Forget the history of memories that are handed to another block."""
        for uid in memories:
            index = self._known.get(uid)
            if index is not None:
                index.forget()

    def close(self, keeps: bool) -> None:
        """Forget all of it; what refers to itself is taken apart, so that nothing is left over.

        The regions of memories that are kept stay with these.
        """
        for uid, index in self._known.items():
            if keeps and uid != _ALL_GM:
                index.forget()
            if not keeps or uid == _ALL_GM or index.is_stale:
                index.close()
        for facts in self._laid if not keeps else ():
            facts.uses, facts.laid = None, ()
        for each in (self._known, self._registers, self._changes, self._laid):
            each.clear()

    # ---- conflicts ------------------------------------------------------------------------------

    def _suspects(self, use: Use, known: Clock, ordered: int) -> list[tuple[Region, Event, bool]]:
        """Accesses to the same bytes that may not be complete; `ordered` keeps its own order."""
        found: list[tuple[Region, Event, bool]] = []
        for peer in use.region.peers:
            for wrote, earlier in (
                *((True, r) for r in peer.writes(use.atomic)),
                *((False, r) for r in (peer.reads.values() if use.writes else ())),
            ):
                if known.knows(earlier.agent) < earlier.time and earlier.agent != ordered:
                    found.append((peer, earlier, wrote))
        return found

    def _judge(self, use: Use, event: Event, known: Clock, ordered: int) -> None:
        """Report what conflicts among the accesses that may not be complete."""
        suspects = self._suspects(use, known, ordered)
        if use.region.is_shade or any(peer.is_shade for peer, _, _ in suspects):
            # With other values there might be a conflict: what is found holds for these alone.
            self.has_compared |= any(earlier is not event for _, earlier, _ in suspects)
            suspects = [s for s in suspects if not (use.region.is_shade or s[0].is_shade)]
        sweeps = [peer for peer in use.region.peers if peer.sweep is not None] if suspects else ()
        if sweeps:  # what is known to be complete among them may have come behind a suspect
            for peer in sweeps:
                peer.sweep.unfold(self, peer)
            suspects = self._suspects(use, known, ordered)
            suspects = [s for s in suspects if not (use.region.is_shade or s[0].is_shade)]
        met = known.core.base
        for peer in use.region.peers:
            if all(met.get(a.agent, 0) >= a.time for a in peer.additions.values()):
                peer.settled = met
        suspects.sort(key=_rank)
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
        if self._was_overtaken(event, earlier):
            if self.clocks.of(earlier.agent).knows(event.agent) < event.time:
                self.findings.race(*_in_order(use, peer, earlier, event, wrote))
                self.clocks.acquire((earlier.agent,), Clock({event.agent: event.time}))
            return True
        excuse = ""
        if wrote and use.writes and use.region is peer:
            is_same = self._is_same(use, event)
            if _are_twins(event, earlier):
                if is_same is False:
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
        done = Clock({event.agent: earlier.time})
        if self._was_overtaken(event, earlier):
            use, peer, earlier, event, wrote = _in_order(use, peer, earlier, event, wrote)
        through = [u for u in earlier.uses if u.region is peer and u.writes == wrote]
        if through and all(u.is_over for u in through):
            return
        if self._keeps_order(use, peer, earlier, event, wrote):
            return
        excuse = ""
        if wrote and use.writes and event.pipe in _TRANSFERS:
            excuse = "transfers of one pipe write in order as a rule"
        elif any(is_positionwise(use.walk, other.walk) for other in through):
            excuse = "both go through the same bytes position by position"
        self.findings.race(use, peer, earlier, event, wrote, excuse)
        if not excuse:
            self.clocks.acquire((event.agent,), done)

    def _was_overtaken(self, event: Event, earlier: Event) -> bool:
        """Whether a program issued an instruction before another that was executed earlier."""
        place = self.issued.of
        return (
            bool(self.issued)
            and self.findings.are_of_one_program(event, earlier)
            and place(event.moment) < place(earlier.moment)
        )

    def _keeps_order(
        self, use: Use, peer: Region, earlier: Event, event: Event, wrote: bool
    ) -> bool:
        """Whether the hardware does: of loads that write, and of one long stretch that is read."""
        target, pipe = self._target, event.pipe
        if wrote and use.writes:
            return pipe in target.lands_in_order
        least, rows = target.long_stretch, peer.rows
        if use.writes or use.region is not peer or least is None or rows is None:
            return False
        is_whole = rows.number == 1 or rows.pitch == rows.width
        is_long = is_whole and peer.stop - peer.start >= least and pipe in target.overlapped
        return is_long and not _has_scratch(earlier) and not _has_scratch(event)

    def _is_same(self, use: Use, event: Event) -> bool | None:
        """Whether it wrote what another core had written there; None where nobody compared."""
        found = event.noted.compared.get(use.operand)
        last = use.region.write
        if found is None or last is None or last.agent // PIPES == event.agent // PIPES:
            return None
        if self.clocks.of(event.agent).knows(last.agent) >= last.time:
            return None
        self.has_compared = True
        return found

    # ---- registers ------------------------------------------------------------------------------

    def _register(self, core: int, name: str) -> Region:
        found = self._registers.get((core, name))
        if found is None:
            found = self._registers[core, name] = Region(name, Rows(0, 8, 8, 1))
        return found

    def _registered(self, event: Event, facts: CallFacts) -> None:
        """Registers that an instruction uses, or changes while earlier ones may still use them."""
        insn, number = event.insn, event.agent // PIPES
        for name in facts.registers:
            register = self._register(number, name)
            change = self._changed_before(event, self._changes.get(register, ()))
            if change is None:
                register.reads[event.agent] = event
            else:  # it has waited, and holds another value by now
                self._changed_under(name, register, event, change)
        for name in insn.sets:
            if name not in event.noted.changed:  # it holds what it held
                continue
            register = self._register(number, name)
            self._changes.setdefault(register, []).append(event)
            event.uses += (Use(name, True, register, None, ""),)
            for earlier in register.reads.values():
                if self.clocks.of(event.agent).knows(earlier.agent) < earlier.time:
                    self._changed_under(name, register, earlier, event)
            register.reads = {}

    def _changed_before(self, event: Event, changes: Sequence[Event]) -> Event | None:
        """The first change of a register that was issued behind an instruction, and is done."""
        found = None
        for change in reversed(changes):
            if not self._was_overtaken(event, change):
                break
            found = change
        return found

    def _changed_under(self, name: str, register: Region, user: Event, change: Event) -> None:
        """Report that a register is set while an instruction may still use it."""
        user.uses += (Use(name, False, register, None, ""),)
        sets = next(use for use in change.uses if use.region is register)
        excuse = _LATCHED if self.findings.policy.profile == "release" else ""
        self.findings.race(sets, register, user, change, False, excuse)


def _rank(suspect: tuple[Region, Event, bool]) -> tuple[int, int]:
    """The order in which suspects are told: as they were executed, by operand.

    In which order a region knows its peers says nothing: it may stem from another launch.
    """
    peer, earlier, wrote = suspect
    places = (n for n, u in enumerate(earlier.uses) if u.region is peer and u.writes == wrote)
    return earlier.moment, next(places, 0)


def _moving_use(region: Region | None, view: View | None) -> tuple[Use, ...]:
    if region is None or view is None:
        return ()
    return (Use(view.operand, view.writes, region, None, view.atomic),)


def _in_order(
    use: Use, peer: Region, earlier: Event, event: Event, wrote: bool
) -> tuple[Use, Region, Event, Event, bool]:
    """The same two accesses, with the one as the earlier that was executed later."""
    theirs = next(u for u in earlier.uses if u.region is peer and u.writes == wrote)
    return theirs, use.region, event, earlier, use.writes


def _has_scratch(event: Event) -> bool:
    ops = event.call.ops
    return any(o.role == "tmp" and ops[o.name] is not None for o in event.insn.operands)


_EVERYWHERE = 1 << 62  # more than any address
_ALL_GM = -1  # the number of all its buffers
_SHADE = "might have touched"
# The makers' own instructions change such registers between others that are still queued.
_LATCHED = "on a device an instruction takes along what its registers hold when it is issued"
_TRANSFERS = (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3)


def _are_twins(event: Event, other: Event) -> bool:
    """Whether two vector cores push the same entry, unsplit: A2/A3 makes both go through it."""
    return event.insn.moves_entries and event.call.insn is other.call.insn
