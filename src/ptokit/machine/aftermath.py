"""What can be said only at certain moments: before an instruction, at the end of a block, of a
launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import Note, fail, where
from ptokit.machine.cluster import Cluster
from ptokit.machine.core import Core
from ptokit.machine.findings import Findings
from ptokit.machine.flags import Semaphore
from ptokit.machine.objects import TileObject
from ptokit.machine.unit_flags import HINT

if TYPE_CHECKING:
    from ptokit.machine.scheduler import Scheduler


def at_pipe(findings: Findings, core: Core, call: Any, operands: Sequence[Any], site: Any) -> None:
    """Before an instruction: does this core have the pipe, and does a tile lie in a FIFO?

    The core notes the calls of which nothing can be said until another FIFO is used.
    """
    if call.pipe not in core.target.pipes[core.kind]:
        raise fail(
            "E5",
            f"{call.insn.name} runs on PIPE_{call.pipe.name}, which a {core.kind} core has not",
            fix="issue it from a program of the other kind of core",
            site=site,
            target=core.target.name,
        )
    pipes, is_clear = [pipe for pipe in core.pipes if pipe.local], True
    # Another tile at the address of an entry is the same to the call.
    entries: list[int] = []
    for nth, operand in enumerate(operands if call.insn.pipe is not None else ()):
        if not isinstance(operand, TileObject) or operand.storage is None:
            continue
        if operand.in_ring:
            entries.append(nth)
        else:
            start, stop = operand.address, operand.address + operand.spec.nbytes
            for pipe in pipes:
                low, high = pipe.reserved(core, operand.spec.loc)
                if start < high and low < stop:
                    is_clear = False
                    findings.add(
                        "E16",
                        f"{call.insn.name} uses a tile that lies in the local slots of {pipe.spec}",
                        site,
                        got=[("tile", operand), ("slots", f"0x{low:x}..0x{high:x}")],
                        fix="bind the tile elsewhere, or move the slots (the consumer address of "
                        "the TPipe)",
                        notes=[Note("the FIFO", pipe.site)],
                        # On a device it harms once an entry comes to lie there, which is a race.
                        severity="warning" if findings.policy.profile == "release" else "error",
                    )
    if is_clear:
        core.clear[call] = tuple(entries)


def left_flags(findings: Findings, core: Core) -> None:
    """When the program of a core has ended: no flag may be left up."""
    for (src, dst, id), flag in core.flags.items():
        if flag.tokens:
            findings.add(
                "E3",
                f"{flag.title} is set and never waited for: it would satisfy a wait of the next "
                "kernel",
                flag.tokens[0].site,
                fix=f"wait_flag(PIPE_{src.name}, PIPE_{dst.name}, EVENT_ID{id}) before the end",
                severity=findings.doubtful,
            )


def at_block_end(scheduler: Scheduler, cluster: Cluster, cores: list[Core]) -> None:
    """When all programs of a block have ended: nothing may be left over."""
    findings = scheduler.findings
    for core in cores:
        for name, site in scheduler.sync.units.close(core.memories.values()):
            what = f"{name} leaves the unit flag of its accumulator open"
            findings.add("E9", what, site, fix=HINT)
        left_flags(findings, core)
        for (id, pipe), held in core.buffers.items():
            if not held.given:
                findings.add(
                    "E3",
                    f"PIPE_{pipe.name} of the {core.name} never releases buffer {id}",
                    None,
                    fix=f"rls_buf(PIPE_{pipe.name}, {id}) after its last use",
                )
        for pipe in core.pipes:
            pipe.check_balance(findings, core)
    owners = {  # the FIFO behind each cross-core flag
        flag: pipe
        for core in cores
        for pipe in core.pipes
        for flag in range(pipe.spec.FlagID, pipe.spec.last_flag + 1)
    }
    for (role, flag, _), semaphore in cluster.semaphores.items():
        if semaphore.tokens:
            _leftover(scheduler, role, flag, semaphore, owners)


def _leftover(
    scheduler: Scheduler, role: Any, flag: int, semaphore: Semaphore, owners: dict[int, Any]
) -> None:
    token, pipe = semaphore.tokens[0], owners.get(flag % 16)
    many = len(semaphore.tokens)
    if pipe is None:
        scheduler.findings.add(
            "E3",
            f"{semaphore.title}: {many} signals are never waited for",
            token.site,
            fix="pair every signal with a wait on the core that receives it",
            severity=scheduler.findings.doubtful,
        )
        return
    ready = flag % 16 in (pipe.spec.FlagID, pipe.spec.FlagID + 2)
    who = "the cube core" if role == "cube" else f"vector core {role}"
    what = "entries" if ready else "announcements of free space"
    taken = "unpopped" if ready else "untaken"
    fix = "pop as often as is pushed, on every core that takes part"
    fifos = scheduler.target.fifos
    if fifos is not None and fifos.pairs_cores and role != "cube":
        fix += "; on A2/A3 both vector cores take part, also without a split"
    scheduler.findings.add(
        "E10", f"{who} leaves {many} {what} of {pipe.spec} {taken}", token.site, fix=fix
    )


def at_end(scheduler: Scheduler) -> None:
    """When the whole launch has ended."""
    findings = scheduler.findings
    for (place, turn), meeting in scheduler.sync.meetings.items():
        # Entered by fewer cores than it has, without anybody waiting for them.
        if len(meeting.arrived) < meeting.total and place[0] != "group":
            token = next(iter(meeting.arrived.values()))
            findings.add(
                "E13",
                f"round {turn + 1} of SYNCALL is entered by {len(meeting.arrived)} of "
                f"{meeting.total} cores",
                token.site,
                fix="every participant must enter it equally often",
            )
    if scheduler.sync.met:
        for flag, site in scheduler.sync.used_flags.items():
            if flag in scheduler.target.reserved_flags:
                findings.add(
                    "E4",
                    f"cross-core flag {flag} belongs to SYNCALL, which this program uses",
                    site,
                    fix="use flags below 11",
                    notes=[Note("SYNCALL", where(next(iter(scheduler.sync.met.values()))))],
                )


def flag_clash(findings: Findings, core: Core, pipe: Any) -> None:
    """FIFOs of one cluster must not share cross-core flags, nor use those of SYNCALL."""
    mine = range(pipe.spec.FlagID, pipe.spec.last_flag + 1)
    for other in core.pipes:
        theirs = range(other.spec.FlagID, other.spec.last_flag + 1)
        # What one line opens anew is the same FIFO.
        is_other = other.spec != pipe.spec or where(other.site) != where(pipe.site)
        if is_other and set(mine) & set(theirs):
            findings.add(
                "E4",
                f"{pipe.spec} shares cross-core flags with {other.spec}",
                pipe.site,
                got=[("flags", f"{mine[0]}..{mine[-1]}"), ("others", f"{theirs[0]}..{theirs[-1]}")],
                fix="give each pipe flags of its own",
                notes=[Note("the other FIFO", where(other.site))],
            )


def odd_ring(findings: Findings, pipe: Any) -> None:
    """Rings that the sparse notification of free space does not protect."""
    spec = pipe.spec
    if spec.SlotNum % spec.SyncPeriod:
        findings.add(
            "E10",
            f"{spec}: SlotNum is no multiple of SyncPeriod, so the producer overwrites a slot "
            "before it is read",
            pipe.site,
            got=[("SlotNum", spec.SlotNum), ("SyncPeriod", spec.SyncPeriod)],
            fix="use 1, 2, 3 or an even number of slots",
        )
    if spec.SlotNum > 15:
        findings.add(
            "E10",
            f"{spec}: more than 15 entries can be pending, the counters have 4 bits",
            pipe.site,
            fix="use at most 15 slots",
        )
