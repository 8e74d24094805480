"""Tiles at fixed addresses that overlap while both hold live data.

Sharing bytes is legal and often meant; what is worth a warning is data that is overwritten through
one tile and read afterwards through another. A tile that was laid over another one shares its data:
neither overwrites the other's, and who writes the whole of it writes that of all in it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import field
from itertools import chain

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, Note
from ptokit.ir.core import Block, Function, Op, Value
from ptokit.ir.flow import allocates, rebound
from ptokit.isa.facts import ConvFacts, TileFacts
from ptokit.passes.facts import Known


@dataclass
class _Life:
    """A placed tile: its bytes, and the positions where it is written and read."""

    value: Value
    alloc: Op
    memory: int
    start: int
    stop: int
    writes: list[tuple[int, Op]] = field(default_factory=list[tuple[int, Op]])
    reads: list[tuple[int, Op]] = field(default_factory=list[tuple[int, Op]])
    sharing: list[_Life] = field(default_factory=list["_Life"])  # it, and those laid over it

    def __post_init__(self) -> None:
        self.sharing.append(self)

    def covers(self, other: _Life) -> bool:
        return self.start <= other.start and other.stop <= self.stop


def overlaps(function: Function, known: Known) -> list[Diagnostic]:
    """Warn about every tile whose data another tile overwrites before its last read."""
    assert function.body is not None
    lives: dict[Value, _Life] = {}
    _collect(function.body, known, lives, [0])
    found: list[Diagnostic] = []
    placed = sorted(lives.values(), key=lambda life: (life.memory, life.start))
    for n, first in enumerate(placed):
        for second in placed[n + 1 :]:
            if second.memory != first.memory or second.start >= first.stop:
                break
            if (second.start, second.stop) == (first.start, first.stop):
                continue  # two names for one buffer, as compilers write them
            if first.sharing is second.sharing:
                continue
            found += _clash(first, second) or _clash(second, first)
    return found


def _collect(block: Block, known: Known, lives: dict[Value, _Life], clock: list[int]) -> None:
    for op in block.ops:
        clock[0] += 1
        if allocates(op):
            facts = known.facts(op.result)
            if isinstance(facts, TileFacts | ConvFacts) and facts.address is not None:
                stop = facts.address + facts.spec.nbytes
                loc = int(facts.spec.loc)
                lives[op.result] = _Life(op.result, op, loc, facts.address, stop)
        elif op.insn is not None and op.insn.binds:
            _lay(op, lives)
        elif op.insn is not None:
            writes = {operand.name for operand in op.insn.operands if operand.writes}
            for value, label in zip(op.operands, op.labels, strict=True):
                life = lives.get(value)
                if life is None:
                    continue
                if label not in writes:
                    life.reads.append((clock[0], op))
                    continue
                for each in filter(life.covers, life.sharing):
                    each.writes.append((clock[0], op))
        for region in op.regions:
            _collect(region, known, lives, clock)


def _lay(op: Op, lives: dict[Value, _Life]) -> None:
    """Note that a tile is laid over another one: it holds what was written to that before."""
    edge = rebound(op)
    if edge is not None and edge.name in lives and edge.value in lives:
        above, below = lives[edge.name].sharing, lives[edge.value].sharing
        if above is not below:
            for each in above:
                held = (lower.writes for lower in below if lower.covers(each))
                each.writes = sorted(chain(each.writes, *held), key=_when)
            below += above
            for each in above:
                each.sharing = below


def _clash(victim: _Life, other: _Life) -> list[Diagnostic]:
    """A write to `other` between a write to `victim` and a later read of it."""
    for when, writer in other.writes:
        written = bisect_left(victim.writes, when, key=_when)
        anew = bisect_right(victim.writes, when, key=_when)
        read = bisect_right(victim.reads, when, key=_when)
        if not written or read == len(victim.reads):
            continue
        before, after = victim.writes[written - 1], victim.reads[read]
        if anew < len(victim.writes) and victim.writes[anew][0] < after[0]:
            continue  # written anew before it is read
        return [
            Diagnostic(
                "tile-overlap",
                f"%{other.value.name} overwrites bytes of %{victim.value.name}, "
                "which is read later",
                writer.location,
                (
                    (f"%{victim.value.name}", f"0x{victim.start:x}..0x{victim.stop:x}"),
                    (f"%{other.value.name}", f"0x{other.start:x}..0x{other.stop:x}"),
                ),
                "give the tiles addresses apart, or read the first one before",
                severity="warning",
                notes=(
                    Note("written here", before[1].location),
                    Note("read here", after[1].location),
                ),
            )
        ]
    return []


def _when(access: tuple[int, Op]) -> int:
    return access[0]
