"""Unit flags when pipes have queues: the cube unit and the fix pipe hand accumulators over.

A product marked Final leaves its accumulator full; a phased store waits for that, and a Final store
leaves it free for the next phased product. Steps are paired as the program is written. A step out
of line is not held up here: the hazard log reports it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ptokit.base.enums import AccPhase
from ptokit.isa.spec import Pipe
from ptokit.machine.flags import Semaphore
from ptokit.machine.hazards import phase_of

Steps = tuple[tuple[Semaphore, ...], tuple[Semaphore, ...]]  # to wait for, and to signal behind


def _counter(what: str) -> Semaphore:
    return Semaphore(f"an accumulator to be {what}", 1 << 30)


@dataclass
class _Accumulator:
    full: Semaphore = field(default_factory=lambda: _counter("full"))
    free: Semaphore = field(default_factory=lambda: _counter("free"))
    is_full: bool = False
    is_stored: bool = False  # by a Final store that no product has waited for yet


class UnitFlags:
    """The accumulators of a launch that take part in a handshake."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], _Accumulator] = {}

    def around(self, call: Any, pipe: Pipe) -> Steps:
        """The semaphores before and behind a call, in program order."""
        if pipe not in (Pipe.M, Pipe.FIX):
            return (), ()
        phase = phase_of(call)
        if not phase:
            return (), ()
        places = {
            (access.memory.uid, access.offset)
            for access in call.accesses
            if access.memory.name == "L0C"
        }
        waits: list[Semaphore] = []
        signals: list[Semaphore] = []
        for place in places:
            unit = self._known.setdefault(place, _Accumulator())
            step = self._product if pipe is Pipe.M else self._store
            step(unit, phase == AccPhase.Final, waits, signals)
        return tuple(waits), tuple(signals)

    def _product(
        self, unit: _Accumulator, final: bool, waits: list[Semaphore], signals: list[Semaphore]
    ) -> None:
        if unit.is_stored:
            waits.append(unit.free)
            unit.is_stored = False
        if final and not unit.is_full:
            signals.append(unit.full)
            unit.is_full = True

    def _store(
        self, unit: _Accumulator, final: bool, waits: list[Semaphore], signals: list[Semaphore]
    ) -> None:
        if not unit.is_full:
            return
        waits.append(unit.full)
        if final:
            signals.append(unit.free)
            unit.is_full, unit.is_stored = False, True
        else:
            signals.append(unit.full)  # looked at, and left as it was
