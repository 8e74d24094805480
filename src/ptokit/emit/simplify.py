"""Arithmetic that says nothing: sums with zero, products of known numbers, `a + b - a`."""

from __future__ import annotations

from collections.abc import Mapping

from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Module, Op, Value
from ptokit.ir.dialects.arith import CONSTANT, operator_of
from ptokit.ir.rewrite import clone
from ptokit.ir.types import INDEX

Known = Mapping[Value, int]


def simplified(module: Module) -> Module:
    """The program with the values that such operations stand for in their places."""
    made = clone(module)
    known: dict[Value, int] = {}
    same: dict[Value, Value] = {}
    for op in made.walk():
        op.operands = [same.get(value, value) for value in op.operands]
        if CONSTANT.matches(op) and isinstance(number := op.attrs["value"], IntAttr):
            known[op.result] = number.value
        found: Value | int | None = None
        if (settle := _RULES.get(operator_of(op))) is not None and op.result.type == INDEX:
            left, right = op.operands
            found = settle(left, right, known)
        if isinstance(found, int):
            known[op.result] = found
            op.name, op.operands, op.labels = CONSTANT.name, [], ()
            op.attrs = {"value": IntAttr(found, INDEX)}
        elif found is not None:
            same[op.result] = found
    return made


def _sum(left: Value, right: Value, known: Known) -> Value | int | None:
    a, b = known.get(left), known.get(right)
    if a is not None and b is not None:
        return a + b
    return left if b == 0 else right if a == 0 else None


def _difference(left: Value, right: Value, known: Known) -> Value | int | None:
    a, b = known.get(left), known.get(right)
    if a is not None and b is not None:
        return a - b
    return left if b == 0 else _rest(left, right)


def _product(left: Value, right: Value, known: Known) -> Value | int | None:
    a, b = known.get(left), known.get(right)
    if a is not None and b is not None:
        return a * b
    return 0 if 0 in (a, b) else left if b == 1 else right if a == 1 else None


_RULES = {"+": _sum, "-": _difference, "*": _product}


def _rest(total: Value, part: Value) -> Value | None:
    """What a sum is made of beside one of its terms."""
    owner = total.owner
    if not isinstance(owner, Op) or operator_of(owner) != "+":
        return None
    first, second = owner.operands
    return second if part is first else first if part is second else None
