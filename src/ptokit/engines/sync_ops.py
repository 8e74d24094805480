"""Executing flags, events, barriers and the pipes between cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import Effect, Pipe, Reach
from ptokit.isa.facts import Ops, ScalarFacts
from ptokit.isa.opcodes import class_pipe
from ptokit.isa.spec import Insn
from ptokit.isa.sync import cross_core_message
from ptokit.isa.targets import Target
from ptokit.machine.fifo import PipeObject
from ptokit.machine.objects import GlobalObject, TileObject

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter


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
        return class_pipe(value)
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


# ---- what only orders: the effects of an instruction --------------------------------------------

# The instruction behind an operation; signals between cores are another one on each target.
INSTRUCTION_OF = {
    "pto.set_flag": "set_flag",
    "pto.wait_flag": "wait_flag",
    "pto.set_flag_dyn": "set_flag",
    "pto.wait_flag_dyn": "wait_flag",
    "pto.record_event": "set_flag",
    "pto.wait_event": "wait_flag",
    "pto.barrier": "pipe_barrier",
    "pto.barrier_sync": "pipe_barrier",
    "pto.get_buf": "get_buf",
    "pto.rls_buf": "rls_buf",
}


def is_static(op: Op) -> bool:
    """Whether an operation only orders, and all it says is written in it."""
    return op.name in INSTRUCTION_OF and op.operand("event_id") is None


def in_a_row(ops: Sequence[Op]) -> Step:
    """Operations that only order and follow each other: their effects are found once."""
    found: list[tuple[Insn, list[Effect], Location]] = []

    def step(run: Interpreter, frame: Frame) -> None:
        if len(found) < len(ops):
            found[:] = [(*_effects(op, run.machine.target), op.location) for op in ops]
        execute = run.machine.sync.execute
        for insn, effects, location in found:
            execute(insn, effects, location)

    return step


def _effects(op: Op, target: Target, id: int | None = None) -> tuple[Insn, list[Effect]]:
    """The instruction behind an operation, and what it does to the order of work."""
    insn = INSTRUCTIONS[INSTRUCTION_OF[op.name]]
    given: dict[str, int] = {}
    for declared in insn.operands:
        name = declared.name
        if "pipe" in declared.kinds:
            given[name] = _pipe(op, next(k for k in _KEYS[name] if k in op.attrs))
        elif "event" in declared.kinds:
            given[name] = _event_id(op, _number(op.attrs.get(name)) if id is None else id)
        elif name in op.attrs:
            given[name] = _number(op.attrs.get(name))
    return insn, effects_of(insn, target, given)


_KEYS = {  # where an operation says a pipe: itself, or as a class of operations
    "src_pipe": ("src_pipe", "src_op"),
    "dst_pipe": ("dst_pipe", "dst_op"),
    "pipe": ("pipe", "op_type"),
}


def effects_of(insn: Insn, target: Target, given: Mapping[str, int]) -> list[Effect]:
    """The effects of an instruction on these numbers."""
    assert insn.effects is not None
    facts: dict[str, Any] = {
        o.name: ScalarFacts(None, given[o.name]) if o.name in given else None for o in insn.operands
    }
    return insn.effects(Ops(facts, {}, target, "manual"))


def _numbered(run: Interpreter, op: Op, frame: Frame) -> None:
    """An operation on a flag whose number is computed."""
    number = op.operand("event_id")
    assert number is not None
    insn, effects = _effects(op, run.machine.target, frame[number])
    run.machine.sync.execute(insn, effects, op.location)


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
    flag = _cross_id(op, frame)
    if run.machine.target.core_signals is Reach.CORE:
        _signal(run, op, "set_intra_block", id=flag)
    else:
        mode = _number(op.attrs.get("ffts_mode"), Reach.CLUSTER.value)
        _signal(run, op, "ffts_cross_core_sync", msg=cross_core_message(mode, flag))


def _cross_wait(run: Interpreter, op: Op, frame: Frame) -> None:
    is_direct = run.machine.target.core_signals is Reach.CORE
    name = "wait_intra_block" if is_direct else "wait_flag_dev"
    _signal(run, op, name, id=_cross_id(op, frame))


def _signal(run: Interpreter, op: Op, name: str, **given: int) -> None:
    machine, insn = run.machine, INSTRUCTIONS[name]
    machine.core.registers.setdefault("FFTS_BASE", 0)  # whoever launches a text has set it
    effects = effects_of(insn, machine.target, {"pipe": _pipe(op, "pipe"), **given})
    machine.sync.execute(insn, effects, op.location)


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


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(INSTRUCTION_OF, _numbered),
    **dict.fromkeys(TRANSFERS, _transfer),
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
