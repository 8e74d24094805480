"""Deadlock: when nothing can go on, say who waits for what, and who should have ended the wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptokit.base.diagnostics import Note, where
from ptokit.isa.effects import Meeting
from ptokit.machine.fifo import PipeObject
from ptokit.machine.flags import Semaphore
from ptokit.machine.queues import Give, Take
from ptokit.machine.unit_flags import UnitFlag

if TYPE_CHECKING:
    from ptokit.machine.launch_sync import Stream
    from ptokit.machine.scheduler import Scheduler


def explain(scheduler: Scheduler) -> None:
    """Report every wait that nothing will end; those that only follow from one are its notes."""
    waits: list[tuple[str, Take]] = []
    for queue in scheduler.queues.pending:
        if queue.stalled is not None:
            waits.append((f"PIPE_{queue.pipe.name} of the {queue.core.name}", queue.stalled))
    blocked = [(s, s.blocked) for s in scheduler.streams if not s.done and s.blocked is not None]
    # A core at its end, or at a barrier, only waits for its own pipes.
    held = [(s, wait) for s, wait in blocked if wait.semaphores or s.polls]
    meeting = [s for s, wait in held if isinstance(wait.token, Meeting)]
    waits += [(f"the {s.core.name}", wait) for s, wait in held if s not in meeting]
    if meeting:
        _subset(scheduler, meeting)
    coming = _coming(scheduler)
    looking = [w for w in waits if not w[1].semaphores]
    roots = looking + [w for w in waits if any(id(s) not in coming for s in w[1].missing)]
    roots = roots or [w for w in waits if w[1].early]  # a ring of waits: who began it?
    fifos = _fifos(scheduler)
    for who, wait in roots or waits:
        is_unit = bool(wait.missing) and all(isinstance(s, UnitFlag) for s in wait.missing)
        scheduler.findings.add(
            "E9" if is_unit else "E1",
            f"{who} waits forever: {wait.why().what.removesuffix(' and')}",
            wait.site,
            got=[(s.title, f"{s.given} signalled, {s.taken} taken") for s in wait.missing],
            fix=wait.why().hint or _hint(wait.missing),
            notes=[*_last_signals(wait.missing), *_meanwhile(waits, who), *fifos],
            stops=True,
        )
    if not waits and not meeting:
        for stream, wait in blocked:
            what = f"the {stream.core.name} waits forever: {wait.why().what}"
            scheduler.findings.add("E1", what, wait.site, stops=True)


def _coming(scheduler: Scheduler) -> set[int]:
    """The semaphores that would be signalled, were it not for another wait."""
    entries = (e for q in scheduler.queues.pending for e in q.entries)
    return {id(s) for e in entries if isinstance(e, Give) for s in e.semaphores}


def _meanwhile(waits: list[tuple[str, Take]], but: str) -> list[Note]:
    """The other ends of the wait-for graph."""
    notes: list[Note] = []
    for who, wait in waits:
        if who != but:
            what = ", ".join(s.title for s in wait.missing) or wait.why().what
            notes.append(Note(f"meanwhile {who} waits for {what}", where(wait.site)))
    return notes


def _last_signals(missing: list[Semaphore]) -> list[Note]:
    return [
        Note(
            f"the last signal that was taken came from {s.last_taken.giver}",
            where(s.last_taken.site),
        )
        for s in missing
        if s.last_taken is not None
    ]


def _hint(missing: list[Semaphore]) -> str:
    return "signal it first: " + ", ".join(s.title for s in missing) if missing else ""


def _subset(scheduler: Scheduler, meeting: list[Stream]) -> None:
    """SYNCALL was entered by some of its participants only."""
    inside = {s.core.number for s in meeting}
    outside = [c for n, c in scheduler.findings.cores.items() if n not in inside]
    first = meeting[0].blocked
    assert first is not None
    rounds = scheduler.sync.rounds
    counts = {
        n: sum(c for (_, core), c in rounds.items() if core == n) for n in scheduler.findings.cores
    }
    scheduler.findings.add(
        "E13",
        f"SYNCALL is entered by {len(inside)} cores and never by the others",
        first.site,
        got=[(c.name, f"entered {counts[c.number]} times") for c in outside[:8]],
        fix="every participant must enter it equally often",
        stops=True,
        notes=[
            Note(f"the {s.core.name} waits here", where(s.blocked.site))
            for s in meeting[1:4]
            if s.blocked is not None
        ],
    )


def _fifos(scheduler: Scheduler) -> list[Note]:
    """The state of each FIFO: what was pushed and popped, and what is pending."""
    notes: list[Note] = []
    pipes: dict[tuple[int, object], list[PipeObject]] = {}
    for stream in scheduler.streams:
        for pipe in stream.core.pipes:
            pipes.setdefault((stream.core.block, pipe.spec), []).append(pipe)
    for (block, spec), objects in pipes.items():
        acts: list[str] = []
        last = None
        for pipe in objects:
            for (act, role), (count, site) in pipe.history.items():
                who = "cube core" if role == "cube" else f"vector core {role}"
                acts.append(f"{count} {act.name} by the {who}")
                last = where(site)
        notes.append(Note(f"{spec} of block {block}: {', '.join(acts) or 'unused'}", last))
    return notes
