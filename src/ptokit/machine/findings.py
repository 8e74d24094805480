"""Findings: what a checked run has to say, each thing once, with both lines and the way out.

The codes are explained in docs/guide/races-and-hangs.md.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import Diagnostic, Note, where
from ptokit.base.evidence import (
    BETWEEN_BLOCKS,
    BETWEEN_CORES,
    BETWEEN_RANKS,
    Accessed,
    Evidence,
    Part,
)
from ptokit.base.location import Location, Site
from ptokit.base.policy import DEFAULT, Origin, Policy
from ptokit.isa.effects import Flag, Pipe
from ptokit.isa.spec import Insn
from ptokit.machine.clocks import PIPES
from ptokit.machine.core import Core, Engine
from ptokit.machine.events import Event
from ptokit.machine.flags import Semaphore
from ptokit.machine.regions import Region

if TYPE_CHECKING:
    from ptokit.machine.regions import Use

Place = Site | Location
_RANK = {"E1": 1, "E13": 1, "E2": 2, "E3": 3}  # hangs, then flags out of step, then leftovers


class Findings:
    """The complaints of one run, without repetitions."""

    def __init__(self, target: str, policy: Policy = DEFAULT, event_ids: int = 0) -> None:
        self.target = target
        self.event_ids = event_ids  # of every pair of pipes
        self.policy = policy
        self.schedule = "in order"  # of the run
        self.cores: dict[int, Core] = {}  # by number, for the names in messages
        self.flags: set[Flag] = set()  # that the program uses
        self.core_flags: Sequence[int] = ()  # ids of flags between cores that programs may use
        self.used_core_flags: Container[int] = ()
        self.settle: Callable[[], None] = _nothing  # lets the checker read what was noted
        self._found: dict[Any, Diagnostic] = {}
        self._seen: set[Any] = set()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All complaints; what names two lines comes before what it leads to."""
        self.settle()
        found = map(self._with_free_ids, self._found.values())
        return tuple(sorted(found, key=lambda d: _RANK.get(d.code, 0)))

    def _with_free_ids(self, found: Diagnostic) -> Diagnostic:
        """A race inside a cluster with the ids that could order it: known when all has run."""
        evidence = found.evidence
        if evidence is None:
            return found
        if evidence.earlier.core != evidence.later.core:
            if evidence.edge == BETWEEN_CORES:
                free = tuple(id for id in self.core_flags if id not in self.used_core_flags)
                return replace(found, evidence=replace(evidence, free=free))
            return found
        pair = evidence.earlier.pipe, evidence.later.pipe
        if Pipe.ALL.name in pair:  # an engine takes no flags
            return found
        used = {flag.id for flag in self.flags if (flag.src.name, flag.dst.name) == pair}
        free = tuple(id for id in range(self.event_ids) if id not in used)
        return replace(found, evidence=replace(evidence, free=free))

    def forget(self) -> None:
        """What was found so far is told: it is not to be told again."""
        self._found.clear()
        self._seen.clear()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def doubtful(self) -> str:
        """The severity of what shipped kernels do and get away with."""
        return self.policy.severity(Origin("own"), is_defined=True)

    def add(
        self,
        code: str,
        message: str,
        site: Place | None,
        *,
        got: Iterable[tuple[str, object]] = (),
        fix: str = "",
        notes: Iterable[Note] = (),
        severity: str = "error",
        stops: bool = False,
        once: Any = None,
        evidence: Evidence | None = None,
    ) -> None:
        """Keep a complaint, unless the same was said about the same lines or it is allowed.

        `stops`: the program does not come to its end, and no allowance helps.
        """
        self.settle()
        location = None if site is None else where(site)
        kept = tuple(notes)
        key = (code, once or message, location, tuple(n.location for n in kept))
        if key not in self._found:
            values = tuple((path, str(value)) for path, value in got)
            found = Diagnostic(
                code,
                message,
                location,
                values,
                fix,
                self.target,
                severity,
                kept,
                not stops,
                evidence,
            )
            for each in self.policy.judge([found]):
                self._found[key] = each

    # ---- races ----------------------------------------------------------------------------------

    def are_of_one_program(self, one: Event, other: Event) -> bool:
        """Whether one core issued both, for itself or to an engine."""
        return _owner(self.cores[one.agent // PIPES]) == _owner(self.cores[other.agent // PIPES])

    def race(
        self,
        use: Use,
        peer: Region,
        earlier: Event,
        event: Event,
        wrote: bool,
        excuse: str = "",
    ) -> None:
        """Two accesses that nothing orders; with an excuse it is a warning."""
        other = earlier.operand(peer, wrote)
        key = (id(event.call), id(earlier.call), use.operand, other, event.agent, excuse)
        if key in self._seen:
            return
        self._seen.add(key)
        first, second = earlier.pipe, event.pipe
        here, there = (self.cores[each.agent // PIPES] for each in (event, earlier))
        kind = ("WAW" if use.writes else "RAW") if wrote else "WAR"
        ring = not wrote and event.insn.moves_entries and use.region.memory != "GM"
        same_pipe = event.agent == earlier.agent and not isinstance(here, Engine)
        code = _code(same_pipe, use.region.memory, ring)
        does = "writes" if use.writes else "reads"
        did, doing = ("wrote", "writing") if wrote else ("read", "reading")
        low, high = use.region.common(peer)
        at = use.region.memory
        shown = f"{high - low} bytes" if at == "GM" else f"{at} 0x{low:x}..0x{high:x}"
        is_near = here is there and not isinstance(there, Engine)
        by = f"PIPE_{first.name}" if is_near else there.pipe_name(first)
        on = here.pipe_name(second) if isinstance(here, Engine) else f"PIPE_{second.name}"
        message = (
            f"{event.insn.name} on {on} {does} {use.operand} while "
            f"{earlier.insn.name} on {by} may still be {doing} the same bytes ({kind})"
        )
        if ring:
            message += ": the local ring of the FIFO comes round"
        line = where(earlier.site)
        fix = remedy(here, there, earlier, event, line, where(event.site))
        notes = [Note(f"the other access, {earlier.insn.name}", line)]
        severity = "error"
        if excuse:
            message, severity = f"{message}; {excuse}", self.doubtful
        once = (kind, code, excuse)
        span = low, high
        one = _accessed(earlier, other, did=wrote, core=there, span=span)
        two = _accessed(event, use.operand, did=use.writes, core=here, span=span)
        edge = edge_of(here, there, first.name, second.name)
        evidence = Evidence(one, two, at, span, edge, self.schedule)
        got = [
            ("bytes", shown),
            ("earlier", f"{earlier.insn.name} {did} {other}{one.part or ''}"),
            ("later", f"{event.insn.name} {does} {use.operand}{two.part or ''}"),
            ("missing", edge),
        ]
        self.add(
            code,
            message,
            event.site,
            got=got,
            fix=fix,
            notes=notes,
            severity=severity,
            once=once,
            evidence=evidence,
        )

    def unlike_twins(self, event: Event, earlier: Event) -> None:
        """Both vector cores push an entry that is not divided, and not the same."""
        here, there = (self.cores[each.agent // PIPES] for each in (event, earlier))
        self.add(
            "E10",
            f"{event.insn.name} of the {here.name} pushes other values than the {there.name} into "
            "the same entry: which of them the consumer sees depends on the schedule",
            event.site,
            fix="push the same values from both vector cores, or divide the entry: "
            "TPUSH[TileSplitAxis.TILE_UP_DOWN]",
            notes=[Note("the other push", where(earlier.site))],
        )

    def inner_flag(self, insn: Insn, site: Place, flag: Flag, pending: Semaphore) -> None:
        """An instruction raises a flag by itself that the program has raised already."""
        name = f"PIPE_{flag.src.name}, PIPE_{flag.dst.name}, EVENT_ID{flag.id}"
        self.add(
            "E2",
            f"{insn.name} sets and waits for ({name}) by itself, while the program's own is "
            "pending",
            site,
            fix="wait for it before this line, or use another event id",
            notes=[Note("the set that is still pending", where(pending.tokens[0].site))],
        )

    def stale(
        self, message: str, site: Place, other: Place, fix: str, severity: str = "error"
    ) -> None:
        """A scalar access that the data cache spoils."""
        notes = [Note("the other access", where(other))]
        self.add("E14", message, site, fix=fix, notes=notes, severity=severity)


def _nothing() -> None:
    """Nobody notes anything."""


def _owner(core: Core) -> int:
    """The core itself, or the one that an engine copies for."""
    return core.owner if isinstance(core, Engine) else core.number


def _is_asked_by(here: Core, there: Core) -> bool:
    """Whether a core gives an engine work, or has a part in it: its scalar unit says when."""
    return isinstance(here, Engine) and (here.is_silent or _owner(there) == _owner(here))


def edge_of(here: Core, there: Core, first: str, second: str) -> str:
    """What would order two accesses."""
    if isinstance(there, Engine) and there.is_silent:
        return "the end of the launch"
    if isinstance(there, Engine) and _owner(there) == _owner(here):
        return "wait for the event"
    if _is_asked_by(here, there):
        return f"{first}->S"
    if here.rank != there.rank:
        return BETWEEN_RANKS
    if here.block != there.block:
        return BETWEEN_BLOCKS
    if here is not there:
        return BETWEEN_CORES
    return f"barrier {first}" if first == second else f"{first}->{second}"


def _accessed(
    event: Event, operand: str, *, did: bool, core: Core, span: tuple[int, int]
) -> Accessed:
    accesses = (*getattr(event.call, "accesses", ()), *event.reached)
    mine = next((a for a in accesses if a.operand == operand and (a.writes if did else a.reads)), 0)
    return Accessed(
        event.insn.name,
        operand,
        "writes" if did else "reads",
        event.pipe.name,
        core.name,
        where(event.site),
        part_of(mine, span) if mine else None,
    )


def part_of(access: Any, span: tuple[int, int]) -> Part | None:
    """The rows and columns of an access that lie in a stretch of bytes."""
    pattern = getattr(access, "pattern", None)
    if pattern is None:
        return None
    places = pattern.axis_map.offsets[pattern.rows, pattern.cols]
    places = places // 2 if pattern.dtype.is_packed else places * pattern.dtype.itemsize
    places = places + access.memory.base + access.offset
    rows, cols = ((places >= span[0]) & (places < span[1])).nonzero()
    if not len(rows):
        return None
    row, col = pattern.rows.start, pattern.cols.start
    return Part(
        (row + int(rows.min()), row + int(rows.max()) + 1),
        (col + int(cols.min()), col + int(cols.max()) + 1),
    )


def _code(same_pipe: bool, memory: str, ring: bool) -> str:
    if ring:
        return "E10"
    if same_pipe:
        return "E8"
    return "E7" if memory == "GM" else "E6"


def remedy(
    here: Core, there: Core, earlier: Event, later: Event, first: Location, second: Location
) -> str:
    """Which order is missing, and where its two ends belong."""
    src, dst = earlier.pipe, later.pipe
    if isinstance(there, Engine) and there.is_silent:
        return (
            f"the {there.title} tells the host alone when it is done: use what line {first.line} "
            "moves in a later launch"
        )
    if isinstance(there, Engine) and _owner(there) == _owner(here):
        return f"event.Wait(session) of line {first.line}, before line {second.line}"
    if _is_asked_by(here, there):
        dst = Pipe.S  # it posts the transfer
        here = there
    if here.rank != there.rank:
        raised = f"PIPE_{src.name}, PIPE_S, EVENT_IDn"
        proven = "" if src is Pipe.S else f"set_flag({raised}), wait_flag({raised}), "
        return (
            f"signal the other rank: after line {first.line} {proven}TNOTIFY, before line "
            f"{second.line} TWAIT"
        )
    if here is not there:
        if here.block != there.block:
            if first == second:  # all of them do it
                return "let every block write a part of its own, which get_block_idx() tells"
            return "blocks are ordered only by SYNCALL, or by separate launches"
        return (
            "order the cores: hand the data over with TPUSH and TPOP, or signal after line "
            f"{first.line} on PIPE_{src.name} and wait before line {second.line}"
        )
    if src is dst:
        return f"pipe_barrier(PIPE_{src.name}) between line {first.line} and line {second.line}"
    names = f"PIPE_{src.name}, PIPE_{dst.name}, EVENT_IDn"
    return (
        f"set_flag({names}) after line {first.line}, wait_flag({names}) before line {second.line}"
    )
