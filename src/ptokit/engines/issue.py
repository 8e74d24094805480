"""Issuing an instruction of the table to the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptokit.engines.steps import Frame, Step
from ptokit.engines.values import View
from ptokit.ir.core import Op, Value
from ptokit.ir.instructions import literal, run_time_operands, template_arguments
from ptokit.ir.types import TileBufType, is_column_tile
from ptokit.machine.plan import NUMBERS

if TYPE_CHECKING:
    from ptokit.engines.reference import Interpreter


def instruction(op: Op) -> Step:
    """An instruction with its operands in the order of the table."""
    insn, site, attrs = op.insn, op.location, template_arguments(op)
    assert insn is not None
    values = run_time_operands(op)
    # An operand is a value of the program, or a number written in its place, or left out.
    sources = [
        (value, None if value is not None or declared.role == "tmp" else literal(op, declared))
        for declared, value in zip(insn.operands, values, strict=True)
    ]
    given = [value for value in values if value is not None]
    views = [i for i, v in enumerate(values) if v is not None and _may_be_view(v)]
    in_columns = any(is_column_tile(value.type) for value in given)
    scratch = [
        (index, declared.name)
        for index, (declared, value) in enumerate(zip(insn.operands, values, strict=True))
        if value is None and declared.role == "tmp"
    ]
    labelled = list(zip(op.results, op.result_labels, strict=True))
    tiles = [(r, op.operand(label)) for r, label in labelled if isinstance(r.type, TileBufType)]
    numbers = [result for result, label in labelled if not label]

    def step(run: Interpreter, frame: Frame) -> None:
        for tile, alias in tiles:
            frame[tile] = run.tile(op, tile) if alias is None else frame[alias]
        operands: list[Any] = [
            number if value is None else frame[value] for value, number in sources
        ]
        for index in views:
            view = operands[index]
            if view.__class__ is View:
                operands[index] = view.tensor(in_columns)
        for index, name in scratch:
            operands[index] = run.scratch(op, name)
        # Most instructions of a loop find their operands where they were.
        keys = [o if o is None or o.__class__ in NUMBERS else o.key for o in operands]
        known = run.plans.get(op)
        machine = run.machine
        if known is not None and known[0] == keys:
            plan = known[1]
        else:
            plan = machine.plan(insn, operands, attrs, site)
            run.plans[op] = keys, plan
        result: Any = machine.carry_out(plan, operands, site)
        for number in numbers:
            frame[number] = result

    return step


def _may_be_view(value: Value) -> bool:
    return not isinstance(value.type, TileBufType)
