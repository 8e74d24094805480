"""Executing flags, events, barriers and the pipes between cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.location import Location
from ptokit.engines.steps import Frame, Handler, Step
from ptokit.engines.values import View
from ptokit.ir.core import Op
from ptokit.ir.dialects import Definition, fifo
from ptokit.ir.dialects import sync as dialect
from ptokit.ir.fifos import buffer_address
from ptokit.ir.ordering import effects_of, orders_pipes
from ptokit.ir.types import OpaqueType
from ptokit.isa.effects import Effect
from ptokit.isa.spec import Insn
from ptokit.machine.fifo import PipeObject
from ptokit.machine.sync import NO_OPERANDS

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter


# ---- inside a core -----------------------------------------------------------------------------


def is_static(op: Op) -> bool:
    """Whether an operation only orders, and all it says is written in it."""
    return not op.operands and orders_pipes(op)


def in_a_row(ops: Sequence[Op]) -> Step:
    """Operations that only order and follow each other: their effects are found once.

    Flags are two thirds of a synchronised program, so who handles them is found once per launch.
    """
    found: list[tuple[Insn, list[Effect], Location]] = []
    key = object()  # of what a launch knows about this row

    def step(run: Interpreter, frame: Frame) -> None:
        sync = run.machine.sync
        handlers = sync.rows.get(key)
        if handlers is None:
            if not found:
                found.extend((op.insn, effects_of(op), op.location) for op in ops if op.insn)
            handlers = sync.rows[key] = sync.handlers(found)
        if not handlers or run.machine.follows:
            for operation in found:
                sync.execute(*operation)
        else:
            for handle, pipe, token, site in handlers:
                handle(pipe, token, site, NO_OPERANDS)

    return step


def _id_array(run: Interpreter, op: Op, frame: Frame) -> None:
    type_ = op.result.type
    assert isinstance(type_, OpaqueType)
    frame[op.result] = [None] * int(type_.parameter or "8")


def _slot(op: Op, frame: Frame) -> tuple[list[Any], int]:
    array, index = frame[op.operands[0]], frame[op.operands[1]]
    if not 0 <= index < len(array):
        raise fail(
            "event-array",
            f"{op.name}: the index lies inside the array",
            got=[("index", index), ("size", len(array))],
            site=op.location,
        )
    return array, index


def _id_get(run: Interpreter, op: Op, frame: Frame) -> None:
    array, index = _slot(op, frame)
    if array[index] is None:
        raise fail(
            "poison-read",
            f"{op.name} reads entry {index}, which nothing has written",
            site=op.location,
        )
    frame[op.result] = array[index]


def _id_set(run: Interpreter, op: Op, frame: Frame) -> None:
    array, index = _slot(op, frame)
    array[index] = frame[op.operands[2]]


# ---- pipes -------------------------------------------------------------------------------------


def _buffer(run: Interpreter, op: Op, frame: Frame) -> None:
    assert run.function is not None
    found = buffer_address(op, run.function, run.module)
    if found is None:
        peer, name = op.attrs.get("peer_func"), op.attrs.get("name")
        raise fail("peer-buffer", f"{op.name}: {peer} reserves no buffer {name}", site=op.location)
    frame[op.result] = found


def _open(run: Interpreter, op: Op, gm: Any, c2v: int, v2c: int) -> PipeObject:
    assert run.function is not None
    spec = run.pipe_spec(op, run.function)
    memory = gm.pointer if isinstance(gm, View) else gm
    try:
        return PipeObject(spec, run.machine, memory, c2v, v2c, op.location)
    except PtoError as error:
        raise _at(error, op) from None


def _at(error: PtoError, op: Op) -> PtoError:
    """The same error, told of the line of the text."""
    first = error.diagnostics[0]
    return fail(
        first.code,
        first.message,
        got=first.got,
        fix=first.fix,
        target=first.target,
        site=op.location,
        kind=type(error),
    )


def _low_pipe(run: Interpreter, op: Op, frame: Frame) -> None:
    gm, local, peer = (op.operand(n) for n in ("gm_addr", "local_addr", "peer_local_addr"))
    first = 0 if local is None else frame[local]
    second = first if peer is None else frame[peer]
    memory = None if gm is None else frame[gm]
    frame[op.result] = _open(run, op, memory, first, second)


HANDLERS: dict[Definition, Handler] = {
    dialect.ID_ARRAY: _id_array,
    dialect.ID_GET: _id_get,
    dialect.ID_SET: _id_set,
    fifo.RESERVE: _buffer,
    fifo.IMPORT: _buffer,
    fifo.GM_PIPE: _low_pipe,
    fifo.DIRECT_PIPE: _low_pipe,
}
