"""Events: what an executed operation leaves behind, for any number of subscribers.

An `Event` is made for each operation when somebody listens: which instruction, on which pipe of
which core, what it touched, which tokens it gave and which it took, and from whom. Whoever only
looks at memory - the hazard log - is told of accesses alone; then ordering costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.location import Location, Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.effects import Pipe, Token
from ptokit.isa.spec import Insn
from ptokit.machine.access import Access
from ptokit.machine.regions import Ranges, Region, Use

if TYPE_CHECKING:
    from ptokit.machine.core import Core
    from ptokit.machine.executor import Ready
    from ptokit.machine.hazards import Noted


class Touch(NamedTuple):
    """One operand of an executed instruction: which bytes, read or written."""

    memory: str
    ranges: Ranges
    writes: bool
    operand: str


class Name(NamedTuple):
    """Which operation of a launch: its core, and its place among those of the core."""

    block: int
    core: str
    number: int


class Event:
    """An executed operation.

    `call` and `bound` hold its accesses: those known beforehand, and those to global memory. The
    hazard log adds when that was: `time` counts the instructions of `agent`, `uses` are all
    accesses; where the journal says at which addresses `bound` lies, these are `places`. `name`,
    `signals` and `waits` are filled in when the whole stream is followed.
    """

    __slots__ = (
        "agent", "bound", "call", "insn", "is_told", "left", "moment", "name", "noted", "outer",
        "pipe", "places", "signals", "site", "time", "uses", "waits",
    )  # fmt: skip

    def __init__(self, insn: Insn, pipe: Pipe, site: Site | Location) -> None:
        self.insn = insn
        self.pipe = pipe
        self.site = site
        self.bound: Sequence[Any] = ()
        self.places: Sequence[int] = ()

    call: Ready  # what was executed; of an operation that only orders there is none
    noted: Noted  # what the journal says of it
    time: int
    moment: int  # among all that the hazard log has seen
    agent: int
    uses: tuple[Use, ...]
    name: Name
    signals: list[Token]
    waits: list[tuple[Token, Event | None]]  # each token taken, and the operation that gave it
    left: int  # parts that its pipes have not executed yet
    is_told: bool
    outer: Event | None  # the operation of which it is a step

    @staticmethod
    def begin(insn: Insn, pipe: Pipe, site: Site | Location, core: Core) -> Event:
        """The event of an operation that is issued now."""
        event = Event(insn, pipe, site)
        issuer = core.issuer
        event.name = Name(core.block, issuer.place, issuer.issued)
        issuer.issued += 1
        event.signals, event.waits = [], []
        event.left, event.is_told = 1, False
        return event

    def operand(self, region: Region, wrote: bool) -> str:
        """The operand through which it accessed a region."""
        found = (u.operand for u in self.uses if u.region is region and u.writes == wrote)
        return next(found, "")

    @property
    def reached(self) -> Sequence[Any]:
        """The accesses to global memory, where they lay this time."""
        if not self.places:
            return self.bound
        return [
            Access(each.pattern, each.memory, address - each.memory.base)
            for each, address in zip(self.bound, self.places, strict=True)
        ]

    @property
    def accesses(self) -> tuple[Touch, ...]:
        """Byte ranges of every operand; worked out when asked for."""
        known = self.call.accesses if hasattr(self, "call") else ()
        return tuple(
            Touch(access.memory.name, access.ranges(), writes, access.operand)
            for access in (*known, *self.bound)
            for writes in (False, True)
            if (access.writes if writes else access.reads)
        )


class Executed(Event):
    """The event of an instruction that a journal has listed: all but its place is said there."""

    __slots__ = ()

    def __init__(self, noted: Noted, agent: int, places: Sequence[int] = ()) -> None:
        self.noted = noted
        self.agent = agent
        self.places = places
        self.bound = noted.bound

    @property
    def call(self) -> Ready:  # type: ignore[override]
        return self.noted.call

    @property
    def insn(self) -> Insn:  # type: ignore[override]
        return self.noted.call.insn

    @property
    def pipe(self) -> Pipe:  # type: ignore[override]
        return self.noted.call.pipe

    @property
    def site(self) -> Site | Location:  # type: ignore[override]
        return self.noted.site
