"""Which blocks of a grid do the same: what a program does to pipes, without doing it.

All that a core hands to its pipes is decided by the way its program takes - the blocks of IR it
enters, one after the other - and by the numbers that instructions are given. An outline walks a
program for these alone: arithmetic, views and control flow are executed, instructions only note
the numbers they would get and the places in global memory they would go to. Blocks of a grid with
the same outline issue the same, elsewhere in memory. A program whose way depends on more than
numbers - data, other blocks - has no outline. Cores of one block meet in FIFOs, whose entries come
in the order of the program at either end: who waits for whom changes nothing about which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptokit.base.namedtuple import NamedTuple
from ptokit.engines import micro_ops, sync_ops
from ptokit.engines.fast import Code, FastInterpreter, Prepared, fast_step
from ptokit.engines.steps import Step
from ptokit.engines.values import Frame, View
from ptokit.ir.core import Block, Function, Op, Value
from ptokit.ir.dialects import arith, definition_of, func
from ptokit.ir.flow import is_terminator
from ptokit.ir.instructions import RETURNED, group_operands, run_time_operands
from ptokit.ir.ordering import orders_pipes
from ptokit.ir.types import (
    ConvTileType,
    MultiTileType,
    TileBufType,
    ViewType,
    is_column_tile,
)
from ptokit.machine.executor import named
from ptokit.machine.fifo import PipeObject
from ptokit.machine.machine import Machine
from ptokit.machine.objects import GlobalObject


class NoOutline(Exception):  # noqa: N818 - no error: the program is walked block by block instead
    """What a core issues depends on more than numbers."""


class Walked(NamedTuple):
    """The way through a program, with the numbers on it, and the views that it moves."""

    way: tuple[Any, ...]
    views: list[tuple[GlobalObject, ...]]  # of one instruction each


class Outline(Prepared):
    """A module prepared for being walked."""

    def walk(self, machine: Machine, function: Function, args: tuple[Any, ...]) -> Walked:
        """Walk a function on the core in force; raises NoOutline."""
        run = _Walk(self, machine)
        run.launch(function, args)
        return Walked(tuple(run.way), run.views)

    def code(self, block: Block) -> Code:
        found = self._code.get(block)
        if found is None:
            found = self._code[block] = _outlined(block)
        return found


class OutlineMachine(Machine):
    """The machine of a walk: of instructions it is given those on FIFOs, which name entries."""

    def enqueue(self, call: Any, operands: Sequence[Any], site: Any) -> None:
        given = named(call, operands)
        pipe: PipeObject = given["pipe"]
        if pipe.spec.is_both or self.core.kind == "mix":
            raise NoOutline  # which end acts is not known by the core alone
        if given.get("gmTensor") is not None:
            pipe.name(call, given, site)
        elif not pipe.direct:
            raise NoOutline  # the entry is moved through global memory


class _Walk(FastInterpreter):
    def __init__(self, prepared: Outline, machine: Machine) -> None:
        super().__init__(prepared, machine)
        self.way: list[Any] = []
        self.views: list[tuple[GlobalObject, ...]] = []

    def block(self, block: Block, frame: Frame) -> list[Any]:
        self.way.append(id(block))
        return super().block(block, frame)


def _outlined(block: Block) -> Code:
    steps: list[Step] = []
    for op in block.ops:
        if is_terminator(op):
            return Code(tuple(steps), tuple(op.operands))
        if sync_ops.is_static(op):
            continue
        if micro_ops.handler_of(op) is not None:
            raise NoOutline  # work below instructions is noted nowhere
        step = _instruction(op) if op.insn is not None else _other(op)
        if step is not None:
            steps.append(step)
    return Code(tuple(steps), ())


def _varies(value: Value) -> bool:
    owner = value.owner
    return not (isinstance(owner, Op) and definition_of(owner) is arith.CONSTANT)


def _numbers(values: list[Value]) -> list[Value]:
    """Those of the operands that are numbers which may differ from block to block."""
    return [v for v in values if not isinstance(v.type, (*_TILES, ViewType)) and _varies(v)]


def _noted(numbers: list[Value]) -> Step | None:
    if not numbers:
        return None

    def step(run: _Walk, frame: Frame) -> None:
        run.way.append(tuple([frame[v] for v in numbers]))

    return step


def _instruction(op: Op) -> Step | None:
    insn = op.insn
    assert insn is not None
    returns = any(label == RETURNED for label in op.result_labels)
    is_ours = not insn.orders or orders_pipes(op)
    if returns or not (is_ours or insn.moves_entries) or any(group_operands(op)):
        raise NoOutline
    given = [value for value in run_time_operands(op) if value is not None]
    if insn.moves_entries:
        if any(isinstance(value.type, _TILES) for value in given):
            raise NoOutline  # a walk has no tiles
        return fast_step(op)
    views = [value for value in given if isinstance(value.type, ViewType)]
    note = _noted(_numbers(given))
    if not views:
        return note
    in_columns = any(is_column_tile(value.type) for value in given)

    def step(run: _Walk, frame: Frame) -> None:
        if note is not None:
            note(run, frame)
        run.views.append(tuple([_tensor(frame[v], in_columns) for v in views]))

    return step


def _tensor(view: Any, in_columns: bool) -> GlobalObject:
    if isinstance(view, GlobalObject):  # the entry that it points at now
        return view.over(view.data())
    if view.__class__ is not View:
        raise NoOutline
    return view.tensor(in_columns)


def _other(op: Op) -> Step | None:
    tiles_in = any(isinstance(value.type, _TILES) for value in op.operands)
    tiles_out = any(isinstance(value.type, _TILES) for value in op.results)
    if not (tiles_in or tiles_out):
        return fast_step(op)
    if op.regions or definition_of(op) is func.CALL or not tiles_out:
        raise NoOutline  # tiles that are handed on, sized at run time, or looked at
    return _noted(_numbers(op.operands))


_TILES = (TileBufType, ConvTileType, MultiTileType)
