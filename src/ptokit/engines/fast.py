"""The fast engine: a program is prepared block by block, and run step by step.

Everything an operation's name, attributes and types say is looked up once, when its block is first
reached; a step then fetches values and acts. An instruction whose operands are where they were the
last time goes straight to its call, which the machine executes over the memory itself. What all
this must amount to, the reference engine says.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.diagnostics import fail
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines import (
    aggregate_ops,
    async_ops,
    conv_ops,
    memory_ops,
    micro_ops,
    sync_ops,
)
from ptokit.engines.interpreter import Interpreter
from ptokit.engines.steps import Handler, Step, arithmetic, handled
from ptokit.engines.values import Frame, View
from ptokit.ir.attributes import ArrayAttr, IntAttr, SymbolAttr
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects import Definition, cf, definition_of, func, scf, sync
from ptokit.ir.fifos import pipe_spec
from ptokit.ir.flow import core_of, is_terminator
from ptokit.ir.instructions import (
    RETURNED,
    group_operands,
    literal,
    run_time_operands,
    template_arguments,
)
from ptokit.ir.scratch import scratch_types
from ptokit.ir.types import BufferType, TileBufType, is_column_tile
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.targets import Target
from ptokit.machine.calls import NUMBERS, Call
from ptokit.machine.executor import FastExecutor
from ptokit.machine.machine import Machine


class Code(NamedTuple):
    """A block prepared for running."""

    steps: tuple[Step, ...]
    results: tuple[Value, ...]  # what its last operation hands on


class Prepared:
    """A module prepared for running, block by block as they are first reached."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._code: dict[Block, Code] = {}
        self._scratch: dict[tuple[Op, Target], dict[str, TileBufType]] = {}
        self._pipes: dict[tuple[Op, Target], PipeSpec] = {}

    def run(self, machine: Machine, function: Function, args: tuple[Any, ...]) -> None:
        """Run a function of the module on the core in force."""
        FastInterpreter(self, machine).launch(function, args)

    def code(self, block: Block) -> Code:
        """The steps of a block."""
        found = self._code.get(block)
        if found is None:
            found = self._code[block] = _prepare(block)
        return found

    def scratch_types(self, op: Op, target: Target) -> dict[str, TileBufType]:
        """The temporaries of an instruction that the text leaves out, worked out once."""
        found = self._scratch.get((op, target))
        if found is None:
            found = self._scratch[op, target] = scratch_types(op, target)
        return found

    def pipe_spec(self, op: Op, function: Function, target: Target) -> PipeSpec:
        """The type of the pipe that an operation opens: all of a function says it, once."""
        found = self._pipes.get((op, target))
        if found is None:
            found = self._pipes[op, target] = pipe_spec(op, function, target)
        return found


def _prepare(block: Block) -> Code:
    steps: list[Step] = []
    row: list[Op] = []  # operations that only order and follow each other are one step
    for op in block.ops:
        if sync_ops.is_static(op):
            if not row:
                steps.append(sync_ops.in_a_row(row))
            row.append(op)
            continue
        row = []
        if is_terminator(op):
            return Code(tuple(steps), tuple(op.operands))
        steps.append(fast_step(op))
    return Code(tuple(steps), ())


def fast_step(op: Op) -> Step:
    """An operation that is no row of signals and waits, prepared."""
    definition, of_micro = definition_of(op), micro_ops.handler_of(op)
    if of_micro is not None:
        return handled(of_micro, op)
    if definition in memory_ops.PREPARED:
        return memory_ops.PREPARED[definition](op)
    if definition in HANDLERS:
        return handled(HANDLERS[definition], op)
    return arithmetic(op) if op.insn is None else _instruction(op)


class FastInterpreter(Interpreter):
    """Runs prepared blocks on one core."""

    def __init__(self, prepared: Prepared, machine: Machine) -> None:
        super().__init__(prepared.module, machine)
        self._prepared = prepared
        # An inline cache in front of the machine's: of an instruction, the keys of its operands
        # when it ran last, and the call they led to. Most instructions of a loop find their
        # operands where they were, and comparing keys is cheaper than hashing them.
        self.calls: dict[Op, tuple[list[Any], Call]] = {}

    def block(self, block: Block, frame: Frame) -> list[Any]:
        """Run a block and return what its last operation hands on."""
        code = self._prepared.code(block)
        for step in code.steps:
            step(self, frame)
        return [frame[v] for v in code.results]

    def scratch_types(self, op: Op) -> dict[str, TileBufType]:
        return self._prepared.scratch_types(op, self.machine.target)

    def pipe_spec(self, op: Op, function: Function) -> PipeSpec:
        return self._prepared.pipe_spec(op, function, self.machine.target)


def _instruction(op: Op) -> Step:
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
    groups = [(i, members) for i, members in enumerate(group_operands(op)) if members]
    tiles = [i for i, v in enumerate(values) if v is not None and isinstance(v.type, BufferType)]
    views = [i for i, v in enumerate(values) if v is not None and i not in tiles]
    others = views + [index for index, _ in scratch]  # what is left out, or a literal, stays so
    in_columns = any(is_column_tile(value.type) for value in values if value is not None)
    labelled = list(zip(op.results, op.result_labels, strict=True))
    made = [(r, op.operand(label)) for r, label in labelled if isinstance(r.type, BufferType)]
    numbers = [result for result, label in labelled if label == RETURNED]
    is_plain = not (made or views or literals or scratch or numbers or groups)

    def plain_step(run: FastInterpreter, frame: Frame) -> None:
        """As below, for what works on tiles alone: most instructions of most programs."""
        operands: list[Any] = [None if value is None else frame[value] for value in values]
        keys = [operands[i].key for i in tiles]
        known, machine = run.calls.get(op), run.machine
        if known is None or known[0] != keys:
            known = run.calls[op] = keys, machine.executor.call(insn, operands, attrs, site)
        machine.enqueue(known[1], operands, site)

    def step(run: FastInterpreter, frame: Frame) -> None:
        for tile, alias in made:
            frame[tile] = run.buffer(tile) if alias is None else frame[alias]
        operands: list[Any] = [None if value is None else frame[value] for value in values]
        for index in views:
            view = operands[index]
            if view.__class__ is View:
                operands[index] = view.tensor(in_columns)
        for index, members in groups:
            operands[index] = run.group(op, members, frame)
        for index, number in literals:
            operands[index] = number
        for index, name in scratch:
            operands[index] = run.scratch(op, name)
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


# ---- control flow ------------------------------------------------------------------------------


def _for(run: Interpreter, op: Op, frame: Frame) -> None:
    lower, upper, step = (frame[v] for v in op.operands[:3])
    carried = [frame[v] for v in op.operands[3:]]
    body = op.regions[0]
    if step <= 0:
        raise fail("loop-step", "the step of scf.for is positive", site=op.location)
    machine, budget = run.machine, run.machine.budget
    for index in range(lower, upper, step):
        if budget is not None:
            budget.step(machine.core, op.location)
        frame[body.args[0]] = index
        frame.update(zip(body.args[1:], carried, strict=True))
        carried = run.block(body, frame)
    frame.update(zip(op.results, carried, strict=True))


def _if(run: Interpreter, op: Op, frame: Frame) -> None:
    if frame[op.operands[0]]:
        found = run.block(op.regions[0], frame)
    else:
        found = run.block(op.regions[1], frame) if len(op.regions) > 1 else []
    frame.update(zip(op.results, found, strict=True))


def _while(run: Interpreter, op: Op, frame: Frame) -> None:
    before, after = op.regions
    carried = [frame[v] for v in op.operands]
    machine, budget = run.machine, run.machine.budget
    while True:
        if budget is not None:
            budget.step(machine.core, op.location)
        frame.update(zip(before.args, carried, strict=True))
        go_on, *passed = run.block(before, frame)
        if not go_on:
            frame.update(zip(op.results, passed, strict=True))
            return
        frame.update(zip(after.args, passed, strict=True))
        carried = run.block(after, frame)


def _switch(run: Interpreter, op: Op, frame: Frame) -> None:
    cases = op.attrs["cases"]
    assert isinstance(cases, ArrayAttr)
    numbers = [c.value for c in cases.items if isinstance(c, IntAttr)]
    chosen = frame[op.operands[0]]
    region = op.regions[1 + numbers.index(chosen)] if chosen in numbers else op.regions[0]
    frame.update(zip(op.results, run.block(region, frame), strict=True))


def _execute(run: Interpreter, op: Op, frame: Frame) -> None:
    frame.update(zip(op.results, run.block(op.regions[0], frame), strict=True))


def _blocks(run: Interpreter, op: Op, frame: Frame) -> None:
    frame.update(zip(op.results, run.blocks(op, frame), strict=True))


def _call(run: Interpreter, op: Op, frame: Frame) -> None:
    callee = op.attrs["callee"]
    assert isinstance(callee, SymbolAttr)
    function = run.module.function(callee.name)
    assert function is not None
    found = run.call(function, [frame[v] for v in op.operands])
    frame.update(zip(op.results, found, strict=True))


def _section(run: Interpreter, op: Op, frame: Frame) -> None:
    if run.runs_here(core_of(op)):
        run.block(op.regions[0], frame)


HANDLERS: dict[Definition, Handler] = {
    scf.FOR: _for,
    scf.IF: _if,
    scf.WHILE: _while,
    scf.SWITCH: _switch,
    scf.EXECUTE: _execute,
    scf.FUSION: _execute,
    cf.BLOCKS: _blocks,
    func.CALL: _call,
    sync.CUBE_SECTION: _section,
    sync.VECTOR_SECTION: _section,
    **memory_ops.HANDLERS,
    **sync_ops.HANDLERS,
    **conv_ops.HANDLERS,
    **async_ops.HANDLERS,
    **aggregate_ops.HANDLERS,
}


class FastEngine:
    """Runs prepared programs over the memory itself."""

    executor = FastExecutor
    prepare = Prepared
