"""What an executed instruction leaves behind: who touched which bytes, on which pipe, whence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptokit.base.location import Location, Site
from ptokit.isa.spec import Insn, Pipe
from ptokit.machine.flags import Clock
from ptokit.machine.gm import GmWindow
from ptokit.machine.regions import Region, Use

if TYPE_CHECKING:
    from ptokit.machine.plan import Plan

GmWindows = tuple[tuple[str, bool, GmWindow], ...]  # (operand, written, where)


@dataclass(frozen=True, slots=True)
class Access:
    """One operand of an executed instruction: which bytes, read or written."""

    memory: str
    ranges: tuple[tuple[int, int], ...]
    writes: bool
    operand: str


class Record:
    """An executed instruction: what was run, where from, and what of global memory it touched.

    The hazard log adds when that was: `time` counts the instructions of `agent`, `uses` are all
    accesses, `clock` what was complete before where a handshake will need it.
    """

    __slots__ = ("agent", "clock", "gm", "plan", "site", "time", "uses")

    def __init__(self, plan: Plan, site: Site | Location, gm: GmWindows) -> None:
        self.plan = plan
        self.site = site
        self.gm = gm

    time: int
    agent: int
    uses: tuple[Use, ...]
    clock: Clock | None

    @property
    def insn(self) -> Insn:
        return self.plan.insn

    @property
    def pipe(self) -> Pipe:
        return self.plan.pipe

    def operand(self, region: Region, wrote: bool) -> str:
        """The operand through which it accessed a region."""
        found = (u.operand for u in self.uses if u.region is region and u.writes == wrote)
        return next(found, "")

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Byte ranges of every operand; worked out when asked for."""
        found = [
            Access(w.storage.name, tuple(w.ranges()), writes, name)
            for name, writes, w in self.plan.windows
        ]
        found += [Access("GM", tuple(w.ranges()), writes, name) for name, writes, w in self.gm]
        return tuple(found)
