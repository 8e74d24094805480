"""What an executed instruction leaves behind: who touched which bytes, on which pipe, whence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ptokit.base.location import Location, Site
from ptokit.isa.spec import Insn, Pipe
from ptokit.machine.gm import GmWindow

if TYPE_CHECKING:
    from ptokit.machine.plan import Plan


@dataclass(frozen=True, slots=True)
class Access:
    """One operand of an executed instruction: which bytes, read or written."""

    memory: str
    ranges: tuple[tuple[int, int], ...]
    writes: bool
    operand: str


class Record(NamedTuple):
    """An executed instruction: who, where from, on which pipe, and what it touched."""

    insn: Insn
    pipe: Pipe
    site: Site | Location
    plan: Plan
    gm: tuple[tuple[str, bool, GmWindow], ...]

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Byte ranges of every operand; worked out when asked for."""
        found = [
            Access(w.storage.name, tuple(w.ranges()), writes, name)
            for name, writes, w in self.plan.windows
        ]
        found += [Access("GM", tuple(w.ranges()), writes, name) for name, writes, w in self.gm]
        return tuple(found)
