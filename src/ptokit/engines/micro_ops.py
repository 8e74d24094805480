"""Executing micro-operations: scopes of the vector unit, and what stands beside them.

To the machine a scope is one instruction of PIPE_V: it is handed over as a whole, with the values
that it uses from outside as they are now, and runs when the pipe comes to it. Inside, blocks are
prepared like those of the fast engine, for every engine alike: what there is to define about
registers, the records say (isa/micro).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.convert import element, number
from ptokit.base.diagnostics import fail
from ptokit.engines import memory_ops
from ptokit.engines.steps import Handler, Step, arithmetic, handled
from ptokit.engines.values import Frame
from ptokit.ir.attributes import SymbolAttr
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects import Definition, definition_of, func, micro, scf
from ptokit.ir.flow import is_terminator
from ptokit.ir.types import PtrType
from ptokit.isa.effects import Pipe
from ptokit.machine.objects import Pointer
from ptokit.machine.registers import LocalPointer

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter
    from ptokit.machine.vector_unit import Address, VectorUnit, Work


# ---- inside a scope ----------------------------------------------------------------------------


class Code:
    """A block of a scope, prepared for running."""

    __slots__ = ("results", "steps")

    def __init__(self, block: Block) -> None:
        self.steps: list[Step] = []
        self.results: tuple[Value, ...] = ()
        for op in block.ops:
            if is_terminator(op):
                self.results = tuple(op.operands)
                return
            self.steps.append(_inner(op))

    def run(self, run: Interpreter, frame: Frame) -> list[Any]:
        for step in self.steps:
            step(run, frame)
        return [frame[v] for v in self.results]


def _inner(op: Op) -> Step:
    definition = definition_of(op)
    if definition is not None and definition.micro is not None:
        return _operation(op)
    if definition in _CONTROL:
        return _CONTROL[definition](op)
    if definition in memory_ops.PREPARED:
        return memory_ops.PREPARED[definition](op)
    if definition in _SCALAR:
        return handled(_SCALAR[definition], op)
    if op.insn is not None and op.insn.accesses_element:
        return handled(_element, op)
    return arithmetic(op)


def _operation(op: Op) -> Step:
    from ptokit.ir.micro_calls import arguments, typed  # where there are some
    from ptokit.machine.micro_calls import call_of  # where there are some

    call, place, results = call_of(typed(op)), op.location, tuple(op.results)
    fetch = arguments(op)
    if len(results) == 1:
        (result,) = results

        def one(run: Interpreter, frame: Frame) -> None:
            unit = run.unit
            unit.place = place  # type: ignore[union-attr]
            frame[result] = call(unit, *fetch(frame))

        return one

    def several(run: Interpreter, frame: Frame) -> None:
        unit = run.unit
        unit.place = place  # type: ignore[union-attr]
        found = call(unit, *fetch(frame))
        if results:
            frame.update(zip(results, found, strict=True))

    return several


def _for(op: Op) -> Step:
    lower, upper, step_ = op.operands[:3]
    inits, results = op.operands[3:], op.results
    (body,) = op.regions
    code, index, carried = Code(body), body.args[0], body.args[1:]

    def step(run: Interpreter, frame: Frame) -> None:
        width = frame[step_]
        if width <= 0:
            raise fail("loop-step", "the step of scf.for is positive", site=op.location)
        values = [frame[v] for v in inits]
        steps, given = code.steps, code.results
        budget = run.machine.budget
        for number_ in range(frame[lower], frame[upper], width):
            if budget is not None:
                budget.step(run.machine.core, op.location)
            frame[index] = number_
            for name, value in zip(carried, values, strict=True):
                frame[name] = value
            for each in steps:
                each(run, frame)
            values = [frame[v] for v in given]
        frame.update(zip(results, values, strict=True))

    return step


def _if(op: Op) -> Step:
    codes = [Code(region) for region in op.regions]
    condition, results = op.operands[0], op.results

    def step(run: Interpreter, frame: Frame) -> None:
        which = 0 if frame[condition] else 1
        found = codes[which].run(run, frame) if which < len(codes) else []
        frame.update(zip(results, found, strict=True))

    return step


def _while(op: Op) -> Step:
    before, after = op.regions
    test, body = Code(before), Code(after)

    def step(run: Interpreter, frame: Frame) -> None:
        given = [frame[v] for v in op.operands]
        while True:
            run.count(op.location)
            frame.update(zip(before.args, given, strict=True))
            goes_on, *passed = test.run(run, frame)
            if not goes_on:
                frame.update(zip(op.results, passed, strict=True))
                return
            frame.update(zip(after.args, passed, strict=True))
            given = body.run(run, frame)

    return step


def _call(op: Op) -> Step:
    """A function that is a part of the scope."""
    callee = op.attrs["callee"]
    assert isinstance(callee, SymbolAttr)

    def step(run: Interpreter, frame: Frame) -> None:
        function = run.module.function(callee.name)
        assert function is not None
        if function.body is None:
            run.call(function, [])  # which says that there is no definition
            return
        code = run.scopes.get(function.body)
        if code is None:
            code = run.scopes[function.body] = Code(function.body)
        inside: Frame = {
            name: frame[v] for name, v in zip(function.params, op.operands, strict=True)
        }
        frame.update(zip(op.results, code.run(run, inside), strict=True))

    return step


_CONTROL: dict[Definition | None, Callable[[Op], Step]] = {
    scf.FOR: _for,
    scf.IF: _if,
    scf.WHILE: _while,
    func.CALL: _call,
}


# ---- single elements ---------------------------------------------------------------------------


def _access(op: Op, frame: Frame) -> Work:
    """What an access of the scalar unit to one element does."""
    from ptokit.machine.vector_unit import Work  # where there are some

    pointer, offset, value = (op.operand(n) for n in ("ptr", "offset", "value"))
    assert pointer is not None
    assert offset is not None
    stored = None if value is None else frame[value]

    def work(unit: VectorUnit, at: Address, where: int, stored: Any) -> Any:
        unit.place = op.location
        data = unit.element(at, where, writes=value is not None)
        if stored is None:
            return number(data.view(at.dtype.np)[0], at.dtype)
        data[:] = np.frombuffer(element(stored, at.dtype).tobytes(), np.uint8)
        return None

    return Work(work, [frame[pointer], frame[offset], stored])


def _element(run: Interpreter, op: Op, frame: Frame) -> None:
    """Inside a scope."""
    assert run.unit is not None
    found = _access(op, frame)(run.unit)
    if op.results:
        frame[op.result] = found


def _element_beside(run: Interpreter, op: Op, frame: Frame) -> None:
    """Beside scopes: an instruction of the scalar unit that reaches on-chip memory."""
    from ptokit.isa.micro.scopes import carrier  # where there are some

    assert op.insn is not None
    instruction = carrier(op.insn.name, Pipe.S)
    found = run.machine.execute(instruction, [_access(op, frame)], (), op.location)
    if op.results:
        frame[op.result] = found


# ---- pointers ----------------------------------------------------------------------------------


def _castptr(run: Interpreter, op: Op, frame: Frame) -> None:
    """An address, or a pointer, as a pointer of another type; or the address of a pointer."""
    from ptokit.ir.micro_calls import SPACES, element_of  # where there are some

    given, wanted = frame[op.operands[0]], op.result.type
    if not isinstance(wanted, PtrType):
        if isinstance(op.operands[0].type, PtrType) and op.operands[0].type.space:
            frame[op.result] = given.offset
        else:
            memory_ops.HANDLERS[memory_ops.memory.PTR_TO_INT](run, op, frame)
        return
    kind = element_of(wanted.element)
    if isinstance(given, Pointer):
        frame[op.result] = Pointer(given.buffer, kind, given.offset)
    elif isinstance(given, LocalPointer):
        frame[op.result] = LocalPointer(given.buffer, kind, given.offset)
    elif wanted.space:
        memory = run.machine.core.memory(SPACES[wanted.space])
        frame[op.result] = LocalPointer(memory, kind, given)
    else:
        memory_ops.HANDLERS[memory_ops.memory.INT_TO_PTR](run, op, frame)


_SCALAR: dict[Definition | None, Handler] = {
    **memory_ops.HANDLERS,
    micro.CAST_POINTER: _castptr,
}


# ---- from outside ------------------------------------------------------------------------------


def _used(block: Block) -> set[Value]:
    """The values that a block and what is in it take from outside."""
    found: set[Value] = set()
    made: set[Value] = set(block.args)
    for op in block.walk():
        found.update(op.operands)
        made.update(op.results)
        for region in op.regions:
            made.update(region.args)
    return found - made


def _scope(run: Interpreter, op: Op, frame: Frame) -> None:
    from ptokit.isa.micro.scopes import carrier  # where there are some
    from ptokit.machine.vector_unit import Code as Written  # where there are some
    from ptokit.machine.vector_unit import Work  # where there are some

    (body,) = op.regions
    prepared_ = run.scopes.get(body)
    if prepared_ is None:
        prepared_ = run.scopes[body] = Code(body), tuple(_used(body))
    code, used = prepared_
    handed = [(value, frame[value]) for value in used]
    handed += [(name, frame[given]) for name, given in micro.scope_arguments(op)]
    names, values = zip(*handed, strict=True) if handed else ((), ())

    def work(unit: VectorUnit, *given: Any) -> None:
        before, run.unit = run.unit, unit
        try:
            code.run(run, dict(zip(names, given, strict=True)))
        finally:
            run.unit = before

    name = op.name.removeprefix("pto.")
    made = Work(work, values, source=Written(body, names, run.module))
    run.machine.execute(carrier(name, Pipe.V), [made], (), op.location)


def _beside(run: Interpreter, op: Op, frame: Frame) -> None:
    """An operation that is an instruction by itself."""
    from ptokit.ir.micro_calls import arguments, typed  # where there are some
    from ptokit.machine.micro_calls import call_of, perform  # where there are some

    prepared_ = run.scopes.get(op)
    if prepared_ is None:
        given = typed(op)
        assert not given.record.is_inside, f"{op.name} stands in no scope"  # see open_scopes.py
        prepared_ = run.scopes[op] = given, call_of(given), arguments(op)
    given, call, fetch = prepared_
    found = perform(run.machine, given, call, fetch(frame), op.location)
    if op.results:
        made = (found,) if len(op.results) == 1 else found
        frame.update(zip(op.results, made, strict=True))


HANDLERS: dict[Definition, Handler] = {
    micro.SCOPE: _scope,
    micro.STRICT_SCOPE: _scope,
    micro.CAST_POINTER: _castptr,
}


def handler_of(op: Op) -> Handler | None:
    """What executes an operation of this level; None: it belongs to another one."""
    if op.insn is not None:
        pointer = op.operand("ptr") if op.insn.accesses_element else None
        is_local = pointer is not None and isinstance(pointer.type, PtrType) and pointer.type.space
        return _element_beside if is_local else None
    definition = definition_of(op)
    if definition is None:
        return None
    return _beside if definition.micro is not None else HANDLERS.get(definition)
