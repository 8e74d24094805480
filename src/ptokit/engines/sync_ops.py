"""Executing flags, events, barriers and the pipes between cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import NotSupported, PtoError, fail
from ptokit.base.enums import TileSplitAxis
from ptokit.base.location import Location
from ptokit.base.tiles import DYNAMIC
from ptokit.engines.steps import Frame, Handler, Step
from ptokit.engines.values import View
from ptokit.ir.attributes import Attribute, EnumAttr, IntAttr
from ptokit.ir.core import Op
from ptokit.ir.fifos import (
    TRANSFERS,
    buffer_address,
    entry_of,
    instruction_of,
    pipe_spec,
    split_of,
)
from ptokit.ir.types import OpaqueType, TileBufType
from ptokit.isa.effects import Pipe, Reach
from ptokit.machine.fifo import PipeObject
from ptokit.machine.objects import GlobalObject, TileObject
from ptokit.machine.sync import FlagKey

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter

# The pipe that carries a class of operations out.
CLASS_PIPES = {
    "TLOAD": Pipe.MTE2,
    "TSTORE_ACC": Pipe.FIX,
    "TSTORE_VEC": Pipe.MTE3,
    "TMOV_M2L": Pipe.MTE1,
    "TMOV_M2B": Pipe.MTE1,
    "TMOV_M2S": Pipe.FIX,
    "TMOV_M2V": Pipe.MTE1,
    "TMOV_V2M": Pipe.FIX,
    "TMATMUL": Pipe.M,
    "TVEC": Pipe.V,
    "TVECWAIT_EVENT": Pipe.V,
}


def _pipe(op: Op, key: str) -> Pipe:
    attr = op.attrs[key]
    assert isinstance(attr, EnumAttr)
    found = _named(attr.enum, attr.value)
    if found is None:
        raise fail(
            "pipe", f"{op.name}: there is no pipe {attr.value}", site=op.location, kind=NotSupported
        )
    return found


def _named(enum: str, value: str) -> Pipe | None:
    """The pipe an attribute names."""
    if enum != "pipe":
        return CLASS_PIPES[value]
    return Pipe.__members__.get(value.removeprefix("PIPE_"))


def _number(attr: Attribute | None, default: int = 0) -> int:
    if isinstance(attr, EnumAttr):
        return attr.number
    return attr.value if isinstance(attr, IntAttr) else default


def _event_id(op: Op, number: int) -> int:
    if not 0 <= number <= 7:
        raise fail(
            "event-id",
            f"{op.name}: an event id lies in 0..7",
            got=[("event id", number)],
            site=op.location,
        )
    return number


# ---- inside a core -----------------------------------------------------------------------------


def _ends(op: Op) -> tuple[Pipe, Pipe]:
    if "src_pipe" in op.attrs:
        return _pipe(op, "src_pipe"), _pipe(op, "dst_pipe")
    return _pipe(op, "src_op"), _pipe(op, "dst_op")


def flag_act(op: Op) -> tuple[bool, FlagKey, Location] | None:
    """What an operation on a flag does, if its number is written."""
    raises = FLAGS.get(op.name)
    if raises is None or op.operand("event_id") is not None:
        return None
    id = _event_id(op, _number(op.attrs.get("event_id")))
    return raises, (*_ends(op), id), op.location


def flags(acts: Sequence[tuple[bool, FlagKey, Location]]) -> Step:
    """Operations on flags that follow each other."""
    return lambda run, frame: run.machine.sync.flags(acts)


def _numbered_flag(run: Interpreter, op: Op, frame: Frame) -> None:
    """A flag whose number is computed."""
    number = op.operand("event_id")
    assert number is not None
    key = (*_ends(op), _event_id(op, frame[number]))
    run.machine.sync.flags([(FLAGS[op.name], key, op.location)])


def _barrier(run: Interpreter, op: Op, frame: Frame) -> None:
    pipe = _pipe(op, "pipe" if "pipe" in op.attrs else "op_type")
    run.machine.sync.barrier(pipe, op.location)


def _get_buffer(run: Interpreter, op: Op, frame: Frame) -> None:
    number = _number(op.attrs.get("buf_id"))
    run.machine.sync.get_buffer(_pipe(op, "op_type"), number, op.location)


def _release_buffer(run: Interpreter, op: Op, frame: Frame) -> None:
    number = _number(op.attrs.get("buf_id"))
    run.machine.sync.release_buffer(_pipe(op, "op_type"), number, op.location)


def _nothing(run: Interpreter, op: Op, frame: Frame) -> None:
    """Waits for work that is complete, or sets up what needs no setting up here."""


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


# ---- between cores -----------------------------------------------------------------------------


def _cross_id(op: Op, frame: Frame) -> int:
    dynamic = op.operand("event_id_dyn")
    return _number(op.attrs.get("event_id")) if dynamic is None else frame[dynamic]


def _cross_set(run: Interpreter, op: Op, frame: Frame) -> None:
    sync, flag = run.machine.sync, _cross_id(op, frame)
    if run.machine.target.core_signals is Reach.CORE:
        sync.to_core(_pipe(op, "pipe"), flag, op.location)
    elif (mode := _number(op.attrs.get("ffts_mode"), 2)) == 2:
        sync.to_cluster(_pipe(op, "pipe"), flag, op.location)
    else:
        sync.to_group(_pipe(op, "pipe"), mode, flag, op.location)


def _cross_wait(run: Interpreter, op: Op, frame: Frame) -> None:
    sync, flag = run.machine.sync, _cross_id(op, frame)
    if run.machine.target.core_signals is Reach.CORE:
        sync.wait_core(_pipe(op, "pipe"), flag, op.location)
    else:
        sync.wait_device(flag, op.location)


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
        return PipeObject(spec, run.machine, memory, c2v, v2c)
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
    c2v, v2c = op.operand("c2v_consumer_buf"), op.operand("v2c_consumer_buf")
    assert c2v is not None
    assert v2c is not None
    memory = None if gm is None else frame[gm]
    run.pipes[_here(run)] = _open(run, op, memory, frame[c2v], frame[v2c])


def _here(run: Interpreter) -> str:
    core = run.machine.core
    return f"{core.kind} {core.block} {core.subblock}"


def _low_pipe(run: Interpreter, op: Op, frame: Frame) -> None:
    gm, local, peer = (op.operand(n) for n in ("gm_addr", "local_addr", "peer_local_addr"))
    assert local is not None
    first = frame[local]
    second = first if peer is None else frame[peer]
    memory = None if gm is None else frame[gm]
    frame[op.result] = _open(run, op, memory, first, second)


def _pipe_of(run: Interpreter, op: Op, frame: Frame) -> PipeObject:
    handle = op.operand("pipe_handle")
    if handle is not None:
        return frame[handle]
    found = run.pipes.get(_here(run))
    if found is None:
        raise fail(
            "pipe-init",
            f"{op.name}: this core has opened no pipe",
            fix="initialise the pipe first, in a function of this kind of core",
            site=op.location,
        )
    return found


def _transfer(run: Interpreter, op: Op, frame: Frame) -> None:
    """Issue the instruction behind a transfer; an entry is a tile, or a slot in hand."""
    named = entry_of(op)
    if op.results:
        entry = _popped(run, op, frame)
    else:
        entry = None if named is None else frame[named]
    if isinstance(entry, View):
        raise fail(
            "pipe-entry",
            f"{op.name}: an entry is a tile, or a view without memory",
            fix="make the view with pto.declare_view",
            site=op.location,
        )
    insn = instruction_of(op)
    kind = "gmTensor" if isinstance(entry, GlobalObject) else "tile"
    given = {"pipe": _pipe_of(run, op, frame), kind: entry}
    split = {"Split": TileSplitAxis(split_of(op))}
    operands = [given.get(o.name) for o in insn.operands]
    attrs = tuple(split.get(a.name, a.default) for a in insn.attrs)
    run.machine.execute(insn, operands, attrs, op.location)
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


FLAGS = {  # whether an operation raises a flag or waits for it
    "pto.set_flag": True,
    "pto.wait_flag": False,
    "pto.set_flag_dyn": True,
    "pto.wait_flag_dyn": False,
    "pto.record_event": True,
    "pto.wait_event": False,
}
HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(FLAGS, _numbered_flag),
    **dict.fromkeys(TRANSFERS, _transfer),
    "pto.barrier": _barrier,
    "pto.barrier_sync": _barrier,
    "pto.get_buf": _get_buffer,
    "pto.rls_buf": _release_buffer,
    "pto.tsync": _nothing,
    "pto.set_ffts": _nothing,
    "pto.declare_eventid_array": _id_array,
    "pto.eventid_array_get": _id_get,
    "pto.eventid_array_set": _id_set,
    "pto.sync.set": _cross_set,
    "pto.sync.wait": _cross_wait,
    "pto.reserve_buffer": _buffer,
    "pto.import_reserved_buffer": _buffer,
    "pto.aic_initialize_pipe": _front_pipe,
    "pto.aiv_initialize_pipe": _front_pipe,
    "pto.initialize_l2g2l_pipe": _low_pipe,
    "pto.initialize_l2l_pipe": _low_pipe,
}
