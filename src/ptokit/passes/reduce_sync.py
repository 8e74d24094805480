"""Leaving out flags and barriers that the others imply.

Each group - a set with its wait, the four ends of a flag that goes round a loop, a barrier - is
left out for a try, and stays out when the proof (`pending.py`) finds nothing that it did not find
before. So the result is never weaker, and none of what remains can be left out by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptokit.base.namedtuple import NamedTuple
from ptokit.ir.core import Block, Function, Op
from ptokit.ir.flow import core_of, is_loop
from ptokit.ir.ordering import effects_of, orders_pipes
from ptokit.isa.effects import Barrier, Pipe, Wait
from ptokit.passes.pending import Proof

_EFFORT = 150_000  # steps of proofs for one function; very long ones keep some of their flags


def implied(proof: Proof, groups: Sequence[Sequence[Op]]) -> set[Op]:
    """The operations that can be left out, tried in the given order."""
    gone = _spoilt(proof, groups)
    effort = 0
    for group in groups:
        if effort > _EFFORT:
            break
        if proof.holds_without({*gone, *group}):
            gone.update(group)
        effort += proof.steps
    return gone


def _spoilt(proof: Proof, groups: Sequence[Sequence[Op]]) -> set[Op]:
    """Flags that might be set again before the wait; what else orders the work stays."""
    gone: set[Op] = set()
    proof.run()
    while proof.found:
        bad = next((g for g in groups if len(g) > 1 and proof.found.keys() & {*g} - gone), None)
        if bad is None:
            break
        gone.update(bad)
        proof.without = gone
        proof.run()
    proof.without = set()
    return gone


class Count(NamedTuple):
    """How often the pipes of a function wait, as it is written."""

    waits: int = 0  # for a flag or a buffer
    barriers: int = 0  # of one pipe
    meetings: int = 0  # of all pipes

    def __str__(self) -> str:
        waits, barriers = _amount(self.waits, "wait"), _amount(self.barriers, "barrier")
        return f"{waits}, {barriers}, {self.meetings} of all pipes"


def count(function: Function) -> Count:
    """The waits and barriers of a function."""
    effects = [e for op in function.walk() if orders_pipes(op) for e in effects_of(op)]
    barriers = [e.pipe for e in effects if isinstance(e, Barrier)]
    full = barriers.count(Pipe.ALL)
    return Count(sum(isinstance(e, Wait) for e in effects), len(barriers) - full, full)


def total(counts: Iterable[Count]) -> Count:
    """All of them together."""
    return Count(*map(sum, zip(Count(), *counts, strict=True)))


def _amount(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


_PRICES = {Pipe.ALL: 16}
_USUAL_PRICE = 2  # of waits, and of barriers of one pipe


def cost(block: Block, weight: int = 1) -> int:
    """What the flags and barriers of a block cost: a round of a loop counts several times."""
    total = 0
    for op in block.ops:
        for effect in effects_of(op) if orders_pipes(op) else ():
            if isinstance(effect, Wait):
                total += _USUAL_PRICE * weight
            elif isinstance(effect, Barrier):
                total += _PRICES.get(effect.pipe, _USUAL_PRICE) * weight
        for region in op.regions:
            total += cost(region, weight * 4 if is_loop(op) else weight)
    return total


def remove(block: Block, gone: set[Op]) -> None:
    """Take operations out of a block, and sections that have nothing else in them."""
    if not gone:
        return
    for op in block.ops:
        for region in op.regions:
            had = len(region.ops)
            remove(region, gone)
            if had and not region.ops and core_of(op):
                gone.add(op)
    block.ops = [op for op in block.ops if op not in gone]
