"""Executing flags, events, barriers and the pipes between cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import NotSupported, PtoError, fail
from ptokit.base.location import Location
from ptokit.base.tiles import DYNAMIC
from ptokit.engines.steps import Frame, Handler, Step
from ptokit.engines.values import View
from ptokit.ir.core import Op
from ptokit.ir.dialects import Definition, fifo
from ptokit.ir.dialects import sync as dialect
from ptokit.ir.fifos import buffer_address, fifo_of, pipe_spec
from ptokit.ir.instructions import template_arguments
from ptokit.ir.ordering import effects_of, orders_pipes
from ptokit.ir.types import OpaqueType, TileBufType
from ptokit.isa.effects import Effect
from ptokit.isa.spec import Insn
from ptokit.machine.fifo import PipeObject
from ptokit.machine.objects import TileObject
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
    spec = pipe_spec(op, run.function, run.machine.target)
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


def _front_pipe(run: Interpreter, op: Op, frame: Frame) -> None:
    gm = op.operand("gm_slot_buffer")
    buffers = (op.operand("c2v_consumer_buf"), op.operand("v2c_consumer_buf"))
    c2v, v2c = (0 if buffer is None else frame[buffer] for buffer in buffers)
    memory = None if gm is None else frame[gm]
    run.pipes[_here(run, op)] = _open(run, op, memory, c2v, v2c)


def _here(run: Interpreter, op: Op) -> str:
    core = run.machine.core
    return f"{core.kind} {core.block} {core.subblock} {fifo_of(op)}"


def _low_pipe(run: Interpreter, op: Op, frame: Frame) -> None:
    gm, local, peer = (op.operand(n) for n in ("gm_addr", "local_addr", "peer_local_addr"))
    assert local is not None
    first = frame[local]
    second = first if peer is None else frame[peer]
    memory = None if gm is None else frame[gm]
    frame[op.result] = _open(run, op, memory, first, second)


def _pipe_here(run: Interpreter, op: Op) -> PipeObject:
    found = run.pipes.get(_here(run, op))
    if found is None:
        raise fail(
            "pipe-init",
            f"{op.name}: this core has opened no pipe {fifo_of(op)}",
            fix="initialise the pipe first, in a function of this kind of core",
            site=op.location,
        )
    return found


def _transfer(run: Interpreter, op: Op, frame: Frame) -> None:
    """A transfer as a front end writes it: through the pipe of an id."""
    insn = op.insn
    assert insn is not None
    entry = _popped(run, op, frame) if op.results else next((frame[v] for v in op.operands), None)
    given = {"pipe": _pipe_here(run, op), "tile": entry}
    operands = [given.get(o.name) for o in insn.operands]
    run.machine.execute(insn, operands, template_arguments(op), op.location)
    if op.results:
        frame[op.result] = entry


def _popped(run: Interpreter, op: Op, frame: Frame) -> TileObject:
    """The tile that a pop makes; the FIFO gives it its place."""
    if not isinstance(op.result.type, TileBufType):
        raise fail("not-supported", f"{op.name} makes a tile", site=op.location, kind=NotSupported)
    spec = run.spec(op.result)
    given = [frame[v] for v in op.operands]
    rows = given[0] if given else spec.rows if spec.valid_row == DYNAMIC else spec.valid_row
    cols = given[1] if given else spec.cols if spec.valid_col == DYNAMIC else spec.valid_col
    return TileObject(spec, rows, cols)


HANDLERS: dict[Definition, Handler] = {
    **dict.fromkeys(fifo.TRANSFERS, _transfer),
    dialect.ID_ARRAY: _id_array,
    dialect.ID_GET: _id_get,
    dialect.ID_SET: _id_set,
    fifo.RESERVE: _buffer,
    fifo.IMPORT: _buffer,
    fifo.AIC_PIPE: _front_pipe,
    fifo.AIV_PIPE: _front_pipe,
    fifo.GM_PIPE: _low_pipe,
    fifo.DIRECT_PIPE: _low_pipe,
}
