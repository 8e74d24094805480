"""Whether the rest of a program would take a tile or view that is declared otherwise.

Advice on a broken rule is tried on the instruction first (`isa/remedies.py`); here the same change
is tried on every other instruction that uses the operand, and on the memory around it. This runs
only where a rule is broken.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location
from ptokit.ir.core import Value
from ptokit.isa.facts import Facts, Ops, TileFacts
from ptokit.isa.spec import Insn
from ptokit.isa.verify import verify


@dataclass(frozen=True, eq=False)
class Use:
    """One instruction of a program, as the verifier looked at it."""

    insn: Insn
    values: tuple[Value | None, ...]  # in the order of the record's operands
    ops: Ops
    location: Location | None

    @property
    def names(self) -> list[tuple[str, Value]]:
        """The operands that are values of the program."""
        pairs = zip(self.insn.operands, self.values, strict=True)
        return [(declared.name, value) for declared, value in pairs if value is not None]


class Surroundings:
    """All instructions of a function."""

    def __init__(self, uses: list[Use]) -> None:
        self._uses = uses

    @cached_property
    def _of(self) -> dict[Value, list[Use]]:
        found: dict[Value, list[Use]] = {}
        for use in self._uses:
            for value in dict.fromkeys(value for _, value in use.names):
                found.setdefault(value, []).append(use)
        return found

    @cached_property
    def _placed(self) -> dict[Value, TileFacts]:
        """The tiles with a known address."""
        return {
            value: facts
            for use in self._uses
            for name, value in use.names
            if isinstance(facts := use.ops[name], TileFacts) and facts.address is not None
        }

    def take(self, use: Use, name: str, changed: Facts) -> bool:
        """Whether no instruction breaks a rule that it kept, and no tile comes to lie in another,
        when the operand of one instruction is changed everywhere."""
        value, before = dict(use.names).get(name), use.ops[name]
        if value is None:
            return True
        if any(_breaks_more(other, value, before, changed) for other in self._of[value]):
            return False
        return not self._meets_more(value, before, changed)

    def _meets_more(self, value: Value, before: Facts, changed: Facts) -> bool:
        if not isinstance(before, TileFacts) or not isinstance(changed, TileFacts):
            return False
        return any(
            _meet(changed, other) and not _meet(before, other)
            for each, other in self._placed.items()
            if each is not value
        )


def _breaks_more(use: Use, value: Value, before: Facts, changed: Facts) -> bool:
    named = dict(use.ops)
    for name, operand in use.names:
        if operand is value:
            named[name] = _like(named[name], before, changed)
    after = Ops(named, use.ops.attrs, use.ops.target, use.ops.mode)
    return bool(_broken(use.insn, after) - _broken(use.insn, use.ops))


def _like(here: Facts | None, before: Facts, changed: Facts) -> Facts | None:
    """The operand as another instruction sees it, changed in the same way."""
    if here == before or not isinstance(here, TileFacts) or not isinstance(changed, TileFacts):
        return changed
    assert isinstance(before, TileFacts)
    valid = here.valid if changed.valid == before.valid else changed.valid
    return replace(changed, valid=valid)


def _broken(insn: Insn, ops: Ops) -> set[tuple[str, str]]:
    return {(d.code, d.message) for d in verify(insn, ops, advise=False)}


def _meet(a: TileFacts, b: TileFacts) -> bool:
    if a.address is None or b.address is None or a.spec.loc is not b.spec.loc:
        return False
    return a.address < b.address + b.spec.nbytes and b.address < a.address + a.spec.nbytes
