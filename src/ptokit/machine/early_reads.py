"""Early reads: bytes read before the instruction that writes them, which was issued, has run.

To the reading instruction the bytes are poison. But when their writer stands in the queue of a
pipe, the fault is a missing order between two lines, and that is what the author must be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import Note, PtoError, where
from ptokit.base.evidence import Accessed, Evidence
from ptokit.machine.core import Core
from ptokit.machine.faults import PoisonRead
from ptokit.machine.findings import edge_of, part_of, remedy
from ptokit.machine.issued import Issued
from ptokit.machine.queues import PipeQueue, Work

if TYPE_CHECKING:
    from ptokit.machine.scheduler import Scheduler


def note_early_read(scheduler: Scheduler, error: PtoError) -> bool:
    """Report a read of poison as a race, when the writer is on its way."""
    if not isinstance(error, PoisonRead) or error.access is None or not scheduler.careful:
        return False
    reading, issued = error.late or (scheduler.machine.core, None)
    found = _writer(scheduler.queues.pending, error.access, reading, issued)
    if found is None:
        return False
    queue, work, operand = found
    reader, writer = error.call, work.call
    (problem,) = error.diagnostics
    line, here = where(work.site), problem.location
    assert here is not None
    at_home = any(m is error.access.memory for m in queue.core.memories.values())
    by = f"PIPE_{writer.pipe.name}" + ("" if at_home else f" of the {queue.core.name}")
    other = queue.core if at_home else reading
    same = reader.pipe is writer.pipe and at_home
    access = error.access
    low, high = span = _span(access)
    core = queue.core.name
    mine = next(a for a in writer.accesses if a.writes and a.operand == operand)
    one = Accessed(writer.insn.name, operand, "writes", writer.pipe.name, core, line,
                   part_of(mine, span))  # fmt: skip
    two = Accessed(reader.insn.name, access.operand, "reads", reader.pipe.name, other.name, here,
                   part_of(access, span))  # fmt: skip
    edge = edge_of(other, queue.core, writer.pipe.name, reader.pipe.name)
    scheduler.findings.add(
        "E8" if same else "E6",
        f"{reader.insn.name} on PIPE_{reader.pipe.name} reads {access.operand} before "
        f"{writer.insn.name} on {by} has written the same bytes (RAW)",
        here,
        got=[
            ("bytes", f"{access.memory.name} 0x{low:x}..0x{high:x}"),
            ("earlier", f"{writer.insn.name} writes {operand}{one.part or ''}"),
            ("later", f"{reader.insn.name} reads {access.operand}{two.part or ''}"),
            ("missing", edge),
        ],
        fix=remedy(other, queue.core, writer, reader, line, here),
        notes=[Note(f"the other access, {writer.insn.name}", line)],
        evidence=Evidence(one, two, access.memory.name, span, edge, scheduler.findings.schedule),
    )
    return True


def is_on_its_way(scheduler: Scheduler, access: Any) -> bool:
    """Whether an instruction that stands in a queue will write some of these bytes."""
    journal = scheduler.journal
    issued = None if journal is None else journal.issued
    reading = scheduler.machine.core
    return _writer(scheduler.queues.pending, access, reading, issued) is not None


def _writer(
    queues: Iterable[PipeQueue], access: Any, reading: Core, issued: Issued | None
) -> tuple[PipeQueue, Work, str] | None:
    """The first instruction in a queue that will write some of these bytes.

    A core that reads them reads none of what it issued behind that: where the reader has waited
    itself, `issued` tells.
    """
    low, high = _span(access)
    for queue in queues:
        for entry in queue.entries:
            if not isinstance(entry, Work):
                continue
            if queue.core is reading and issued and entry.issued and entry.issued > issued:
                break
            for other in entry.call.accesses:
                if other.writes and other.memory is access.memory:
                    start, stop = _span(other)
                    if start < high and low < stop:
                        return queue, entry, other.operand
    return None


def _span(access: Any) -> tuple[int, int]:
    ranges = list(access.ranges())
    return ranges[0][0], ranges[-1][1]
