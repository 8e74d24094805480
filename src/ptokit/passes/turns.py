"""Which of several buffers is meant, as a linear function of a value that the program computes.

Slots are counted modulo their number: `(i + 1) mod 2` and `i mod 2` are never the same, whatever i.
"""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.dataclass import dataclass
from ptokit.ir.core import Function, Op, Value
from ptokit.ir.dialects.arith import arithmetic_of
from ptokit.ir.flow import is_loop
from ptokit.passes.facts import Known


@dataclass(frozen=True)
class Turn:
    """The slot `factor * base + offset`, modulo the number of slots."""

    base: Value
    factor: int
    offset: int
    count: int
    is_fixed: bool  # the base is the same in all rounds of the loops around


def turn_of(value: Value, count: int, known: Known, varying: set[Value]) -> Turn:
    """A slot in terms of the value it is computed from, as far back as that can be followed.

    `varying` are the values that loops compute anew in every round.
    """
    turn = Turn(value, 1, 0, count, False)
    while isinstance(turn.base.owner, Op):
        before = _before(turn, turn.base.owner, known)
        if before is None:
            break
        turn = before
    return replace(turn, is_fixed=turn.base not in varying)


def varying(function: Function) -> set[Value]:
    """The values that loops of a function compute anew in every round."""
    found: set[Value] = set()
    for op in function.walk():
        for region in op.regions if is_loop(op) else ():
            found.update(region.args)
            for inner in region.walk():
                found.update(inner.results)
                found.update(arg for each in inner.regions for arg in each.args)
    return found


def _before(turn: Turn, op: Op, known: Known) -> Turn | None:
    """The same slot in terms of an operand of the operation that computes its base."""
    computed = arithmetic_of(op)
    if computed is None:
        return None
    if computed.keeps:
        return replace(turn, base=op.operands[0])
    operator, numbers = computed.operator, [known.number(v) for v in op.operands]
    if len(numbers) != 2 or (numbers[0] is None) == (numbers[1] is None):
        return None
    at, number = next((n, v) for n, v in enumerate(numbers) if v is not None)
    base = op.operands[1 - at]
    if operator == "+":
        return replace(turn, base=base, offset=turn.offset + turn.factor * number)
    if operator == "-" and at == 1:
        return replace(turn, base=base, offset=turn.offset - turn.factor * number)
    if operator == "*":
        return replace(turn, base=base, factor=turn.factor * number)
    # A remainder of a number that is not negative; of a negative one there is no such slot.
    if operator == "%" and at == 1 and number > 0 and number % turn.count == 0:
        return replace(turn, base=base)
    return None
