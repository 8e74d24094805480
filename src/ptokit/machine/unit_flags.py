"""Unit flags: the cube unit and the fix pipe hand accumulators over by themselves.

Every accumulator has one bit, clear at first. A product with a phase starts when the bit is clear,
and sets it behind itself if it is Final; a store with a phase starts when the bit is set, and
clears it behind itself if it is Final. The wait is the pipe's, in every schedule: the scalar unit
goes on, and so does whatever does not stand behind in the same pipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.enums import AccPhase, STPhase
from ptokit.base.location import Location, Site
from ptokit.isa.effects import Pipe
from ptokit.isa.facts import Ops
from ptokit.machine.flags import Semaphore, Token
from ptokit.machine.memory import Storage

HINT = "accumulate with AccPhase.Partial, last with AccPhase.Final, then store with STPhase.Final"
BELOW = "accumulate with check_only, last with check_and_set, then store with check_and_clear"
_MEMORY = "L0C"


class UnitFlag(Semaphore):
    """The bit of an accumulator in one of its two states: it has a token when the bit is so."""

    __slots__ = ()

    def __init__(self, state: str) -> None:
        super().__init__(f"an accumulator to be {state}", 1)


Step = tuple[str, Site | Location]  # an instruction and its line


@dataclass
class _Accumulator:
    clear: UnitFlag = field(default_factory=lambda: UnitFlag("free"))
    set: UnitFlag = field(default_factory=lambda: UnitFlag("full"))
    product: Step | None = None  # the last one, as the program is written
    is_partial: bool = False  # which it was, and nothing stored it


class UnitFlags:
    """The accumulators of a launch that take part in a handshake."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], _Accumulator] = {}

    def around(
        self, call: Any, site: Site | Location, operands: Sequence[Any]
    ) -> tuple[list[Semaphore], list[Semaphore]]:
        """What a call with a phase waits for, and what it signals behind itself.

        An operand that is work of the level below tiles names its accumulator itself.
        """
        is_final, is_product = call.phase == AccPhase.Final, call.pipe is Pipe.M
        waits: list[Semaphore] = []
        signals: list[Semaphore] = []
        # A product that accumulates names its accumulator twice.
        places = {(a.memory.uid, a.offset) for a in call.accesses if a.memory.name == _MEMORY}
        named = [getattr(each, "accumulator", None) for each in operands]
        places |= {(at.buffer.uid, at.offset) for at in named if at is not None}
        for place in places:
            unit = self._known.get(place)
            if unit is None:
                unit = self._known[place] = _Accumulator()
                unit.clear.put(Token(site, "the start of the kernel"))
            before, behind = unit.clear, unit.set
            if not is_product:
                before, behind = behind, before
            waits.append(before)
            signals.append(behind if is_final else before)
            if is_product and call.accesses:  # below tiles flags may stay as they are
                unit.product = call.insn.name, site
            unit.is_partial = is_product and not is_final
        return waits, signals

    def close(self, memories: Iterable[Storage]) -> list[Step]:
        """Forget the accumulators of a core that has ended; returns the products left open."""
        uids = {memory.uid for memory in memories}
        mine = [place for place in self._known if place[0] in uids]
        units = [self._known.pop(place) for place in mine]
        return [u.product for u in units if u.product and (u.is_partial or u.set.tokens)]


def phase_of(pipe: Pipe, ops: Ops) -> int:
    """The unit-flag phase of an instruction; 0 when it takes no part in a handshake."""
    if pipe not in (Pipe.M, Pipe.FIX):
        return 0
    for value in ops.attrs.values():
        if isinstance(value, AccPhase | STPhase) and value:
            return int(value)
        config_phase = getattr(value, "Phase", None)
        if isinstance(config_phase, STPhase) and config_phase:
            return int(config_phase)
    return 0
