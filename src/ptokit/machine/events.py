"""What an executed operation leaves behind: who touched which bytes, on which pipe, whence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptokit.base.location import Location, Site
from ptokit.isa.spec import Insn, Pipe
from ptokit.machine.flags import Clock
from ptokit.machine.regions import Ranges, Region, Use

if TYPE_CHECKING:
    from ptokit.machine.executor import Ready


class Touch(NamedTuple):
    """One operand of an executed instruction: which bytes, read or written."""

    memory: str
    ranges: Ranges
    writes: bool
    operand: str


class Event:
    """An executed instruction: what was run, where from, and what of global memory it touched.

    The hazard log adds when that was: `time` counts the instructions of `agent`, `uses` are all
    accesses, `clock` what was complete before where a handshake will need it.
    """

    __slots__ = ("agent", "bound", "call", "clock", "site", "time", "uses")

    def __init__(self, call: Ready, site: Site | Location, bound: Sequence[Any] = ()) -> None:
        self.call = call
        self.site = site
        self.bound = bound  # accesses whose place is known only now: to global memory

    time: int
    agent: int
    uses: tuple[Use, ...]
    clock: Clock | None

    @property
    def insn(self) -> Insn:
        return self.call.insn

    @property
    def pipe(self) -> Pipe:
        return self.call.pipe

    def operand(self, region: Region, wrote: bool) -> str:
        """The operand through which it accessed a region."""
        found = (u.operand for u in self.uses if u.region is region and u.writes == wrote)
        return next(found, "")

    @property
    def accesses(self) -> tuple[Touch, ...]:
        """Byte ranges of every operand; worked out when asked for."""
        return tuple(
            Touch(access.memory.name, access.ranges(), writes, access.operand)
            for access in (*self.call.accesses, *self.bound)
            for writes in (False, True)
            if (access.writes if writes else access.reads)
        )
