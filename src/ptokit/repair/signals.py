"""Signals between cores: which instruction waits for what another one gives, by their effects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import CoreFlag, Effect, Reach, Signal, Wait
from ptokit.isa.samples import sample
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS


class CoreSignal(NamedTuple):
    """An instruction that signals other cores, with the one that waits for it."""

    gives: Insn
    takes: Insn
    reach: Reach

    @property
    def by_core(self) -> bool:
        """Whether each core of a cluster has a counter of its own."""
        return self.reach is Reach.CORE


@lru_cache(maxsize=1)
def core_signals() -> tuple[CoreSignal, ...]:
    """All of them."""
    gives, takes = list(_of_cores(Signal)), list(_of_cores(Wait))
    found: list[CoreSignal] = []
    for given, signal, beside in gives:
        # A wait for a signal to one core names its counter; the other waits are the same for all.
        fitting = [
            taken
            for taken, wait, others in takes
            if others == beside and (wait is Reach.CORE) == (signal is Reach.CORE)
        ]
        alike = [taken for taken in fitting if _operands(taken) == _operands(given)]
        found.append(CoreSignal(given, (alike or fitting)[0], signal))
    return tuple(found)


def signal_of(code: str) -> CoreSignal | None:
    """The signal that a line gives, by the name it begins with."""
    found = [each for each in core_signals() if re.search(rf"\b({names(each.gives)})\b", code)]
    return found[0] if found else None


def names(*records: Insn) -> str:
    """The names of instructions in both languages, for a pattern; the longest come first."""
    known = {each.name.rpartition(".")[2] for each in records}
    known |= {word for each in records if each.asm is not None for word in each.asm.syntax}
    return "|".join(re.escape(name) for name in sorted(known, key=lambda n: (-len(n), n)))


def _of_cores(kind: type[Signal | Wait]) -> Iterator[tuple[Insn, Reach, list[Effect]]]:
    """Instructions with a signal to other cores, or a wait for one: whom it reaches, and what else
    they do."""
    for insn in INSTRUCTIONS.values():
        if not insn.orders or insn.moves_entries or insn.effects is None:
            continue
        target = next(t for t in TARGETS.values() if t.name in insn.targets)
        effects = insn.effects(sample(insn, target, {}).facts())
        for effect in effects:
            if isinstance(effect, kind) and isinstance(effect.token, CoreFlag):
                yield insn, effect.token.reach, [each for each in effects if each is not effect]


def _operands(insn: Insn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return insn.names, tuple(each.name for each in insn.attrs)
