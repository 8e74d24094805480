"""Which instruction waits for what another one gives, by their effects: between cores, and for
numbered buffers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeVar

from ptokit.base.namedtuple import NamedTuple
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import Buffer, CoreFlag, Effect, Reach, Signal, Token, Wait
from ptokit.isa.samples import sample
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS

_Token = TypeVar("_Token", bound=Token)


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
    gives, takes = list(_with(Signal, CoreFlag)), list(_with(Wait, CoreFlag))
    found: list[CoreSignal] = []
    for given, signal, beside in gives:
        # A wait for a signal to one core names its counter; the other waits are the same for all.
        fitting = [
            taken
            for taken, wait, others in takes
            if others == beside and (wait.reach is Reach.CORE) == (signal.reach is Reach.CORE)
        ]
        alike = [taken for taken in fitting if _operands(taken) == _operands(given)]
        found.append(CoreSignal(given, (alike or fitting)[0], signal.reach))
    return tuple(found)


@lru_cache(maxsize=1)
def buffer_ends() -> tuple[Insn, Insn]:
    """The instructions that acquire a numbered buffer, and release it."""
    ((acquires, _, _),), ((releases, _, _),) = _with(Wait, Buffer), _with(Signal, Buffer)
    return acquires, releases


def signal_of(code: str) -> CoreSignal | None:
    """The signal that a line gives, by the name it begins with."""
    found = [each for each in core_signals() if re.search(rf"\b({names(each.gives)})\b", code)]
    return found[0] if found else None


def names(*records: Insn) -> str:
    """The names of instructions in both languages, for a pattern; the longest come first."""
    known = {each.name.rpartition(".")[2] for each in records}
    known |= {word for each in records if each.asm is not None for word in each.asm.syntax}
    return "|".join(re.escape(name) for name in sorted(known, key=lambda n: (-len(n), n)))


def _with(
    kind: type[Signal | Wait], token: type[_Token]
) -> Iterator[tuple[Insn, _Token, list[Effect]]]:
    """Instructions that give tokens of a kind, or wait for one, and what else they do."""
    for insn in INSTRUCTIONS.values():
        if not insn.orders or insn.moves_entries or insn.effects is None:
            continue
        target = next(t for t in TARGETS.values() if t.name in insn.targets)
        effects = insn.effects(sample(insn, target, {}).facts())
        for effect in effects:
            if isinstance(effect, kind) and isinstance(effect.token, token):
                yield insn, effect.token, [each for each in effects if each is not effect]


def _operands(insn: Insn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return insn.names, tuple(each.name for each in insn.attrs)
