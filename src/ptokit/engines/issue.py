"""Giving an instruction of the table to the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptokit.engines.steps import Frame, Step
from ptokit.engines.values import View
from ptokit.ir.core import Op
from ptokit.ir.instructions import literal, run_time_operands, template_arguments
from ptokit.ir.types import BufferType, is_column_tile
from ptokit.machine.calls import NUMBERS

if TYPE_CHECKING:
    from ptokit.engines.reference import Interpreter


def instruction(op: Op) -> Step:
    """An instruction with its operands in the order of the table."""
    insn, site, attrs = op.insn, op.location, template_arguments(op)
    assert insn is not None
    values = run_time_operands(op)
    # An operand is a value of the program, or a number written in its place, or left out.
    literals: list[tuple[int, int | float]] = []
    scratch: list[tuple[int, str]] = []
    for index, (declared, value) in enumerate(zip(insn.operands, values, strict=True)):
        if value is None and declared.role == "tmp":
            scratch.append((index, declared.name))
        elif value is None and (number := literal(op, declared)) is not None:
            literals.append((index, number))
    tiles = [i for i, v in enumerate(values) if v is not None and isinstance(v.type, BufferType)]
    views = [i for i, v in enumerate(values) if v is not None and i not in tiles]
    others = views + [index for index, _ in scratch]  # what is left out, or a literal, stays so
    in_columns = any(is_column_tile(value.type) for value in values if value is not None)
    labelled = list(zip(op.results, op.result_labels, strict=True))
    made = [(r, op.operand(label)) for r, label in labelled if isinstance(r.type, BufferType)]
    numbers = [result for result, label in labelled if not label]
    is_plain = not (made or views or literals or scratch or numbers)

    def plain_step(run: Interpreter, frame: Frame) -> None:
        """As below, for what works on tiles alone: most instructions of most programs."""
        operands: list[Any] = [None if value is None else frame[value] for value in values]
        keys = [operands[i].key for i in tiles]
        known, machine = run.calls.get(op), run.machine
        if known is None or known[0] != keys:
            known = run.calls[op] = keys, machine.executor.call(insn, operands, attrs, site)
        machine.enqueue(known[1], operands, site)

    def step(run: Interpreter, frame: Frame) -> None:
        for tile, alias in made:
            frame[tile] = run.buffer(op, tile) if alias is None else frame[alias]
        operands: list[Any] = [None if value is None else frame[value] for value in values]
        for index in views:
            view = operands[index]
            if view.__class__ is View:
                operands[index] = view.tensor(in_columns)
        for index, number in literals:
            operands[index] = number
        for index, name in scratch:
            operands[index] = run.scratch(op, name)
        # Most instructions of a loop find their operands where they were.
        keys: list[Any] = [operands[i].key for i in tiles]
        for index in others:
            operand: Any = operands[index]
            if operand is None or operand.__class__ in NUMBERS:
                keys.append(operand)
            else:
                keys.append(operand.key)
        known, machine = run.calls.get(op), run.machine
        if known is None or known[0] != keys:
            known = run.calls[op] = keys, machine.executor.call(insn, operands, attrs, site)
        result: Any = machine.enqueue(known[1], operands, site)
        for number in numbers:
            frame[number] = result

    return plain_step if is_plain else step
