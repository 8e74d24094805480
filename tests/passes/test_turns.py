"""Which of several buffers is meant: a linear function of a value, as far back as it goes."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from ptokit.ir.core import Op, Value
from ptokit.ir.evaluate import evaluate
from ptokit.ir.types import INDEX
from ptokit.passes.turns import turn_of

MAKES = {"+": "addi", "-": "subi", "*": "muli", "%": "remsi"}


class Chain:
    """Operations with constants, one after the other, on one value."""

    def __init__(self, *steps: tuple[str, int]) -> None:
        self.numbers: dict[Value, int] = {}
        self.start = self.value = Value("i", INDEX)
        self.ops: list[Op] = []
        for sign, number in steps:
            constant = Value("c", INDEX)
            self.numbers[constant] = number
            made = Value("v", INDEX)
            op = Op(f"arith.{MAKES[sign]}", [self.value, constant], ("lhs", "rhs"), [made])
            made.owner = op
            self.ops.append(op)
            self.value = made

    def at(self, start: int) -> dict[Value, Any]:
        """Every value, where the first is this number."""
        known: dict[Value, Any] = {**self.numbers, self.start: start}
        for op in self.ops:
            found = evaluate(op, [known[v] for v in op.operands])
            assert found is not None
            known[op.result] = found[0]
        return known

    def turn(self, count: int, varying: set[Value] | None = None) -> Any:
        known: Any = SimpleNamespace(number=self.numbers.get)
        return turn_of(self.value, count, known, varying or set())


@pytest.mark.parametrize(
    ("steps", "count", "wanted"),
    [
        ([("+", 1), ("%", 2)], 2, (1, 1)),
        ([("-", 3), ("%", 4)], 2, (1, -3)),
        ([("*", 3), ("+", 2), ("%", 6)], 3, (3, 2)),
        ([("+", 2), ("*", 5)], 4, (5, 10)),
    ],
)
def test_it_is_followed_to_the_first_value(steps: Any, count: int, wanted: Any) -> None:
    chain = Chain(*steps)
    turn = chain.turn(count)
    assert (turn.base, turn.factor, turn.offset) == (chain.start, *wanted)
    assert turn.is_fixed
    assert not chain.turn(count, {chain.start}).is_fixed


def test_a_remainder_by_another_number_is_a_value_of_its_own() -> None:
    for number in (3, 1):
        chain = Chain(("%", number))
        assert chain.turn(2).base is chain.value


@pytest.mark.parametrize("seed", range(20))
def test_what_it_says_holds_for_every_value(seed: int) -> None:
    """Random chains of steps: the slot is the linear function of the base, whatever the start."""
    draw = random.Random(seed)
    signs = [draw.choice([*MAKES]) for _ in range(draw.randint(1, 5))]
    chain = Chain(*((sign, draw.randint(1, 8)) for sign in signs))
    count = draw.choice([2, 3, 4])
    turn = chain.turn(count)
    for start in range(50, 100):  # large enough that nothing is negative
        known = chain.at(start)
        if min(known.values()) < 0:
            continue
        slot = known[chain.value] % count
        assert slot == (turn.factor * known[turn.base] + turn.offset) % count
