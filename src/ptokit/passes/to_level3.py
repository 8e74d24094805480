"""From Level 2 to Level 3: an address for every tile, and flags that keep the order of the text.

The simplest correct choice: tiles lie one behind the other, and every instruction waits for the
one before it. Placement that reuses memory and synchronisation that overlaps pipes are passes of
their own; this one never needs to look ahead.
"""

from __future__ import annotations

from ptokit.base.diagnostics import PtoError, fail
from ptokit.ir.attributes import Attribute, EnumAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Op
from ptokit.ir.instructions import run_time_operands, template_arguments
from ptokit.ir.types import I64, TileBufType
from ptokit.isa.facts import Ops, Unknown
from ptokit.isa.spec import Pipe
from ptokit.isa.targets import Target
from ptokit.passes.facts import Known

EVENT = EnumAttr("event", "EVENT_ID0")


def to_level3(module: Module, target: Target) -> Module:
    """Level 2 to Level 3, in place."""
    for function in module.functions:
        if function.body is not None:
            _place(function, target)
            known = Known(target)
            _order(function.body, known, target)
    return module


# ---- addresses -----------------------------------------------------------------------------------


def _place(function: Function, target: Target) -> None:
    assert function.body is not None
    free: dict[str, int] = {}
    head = Builder(location=function.location)
    for op in function.walk():
        type_ = op.result.type if op.name == "pto.alloc_tile" else None
        if not isinstance(type_, TileBufType) or op.operand("addr") is not None:
            continue
        space = target.spaces[type_.spec.loc]
        start = -(-free.get(space.memory, 0) // space.alignment) * space.alignment
        free[space.memory] = start + type_.spec.nbytes
        if free[space.memory] > space.capacity:
            raise _overflow(op, space.memory, free[space.memory], space.capacity)
        op.operands.insert(0, head.constant(start, I64, f"a{start}"))
        op.labels = ("addr", *op.labels)
    function.body.ops = [*head.block.ops, *function.body.ops]


def _overflow(op: Op, memory: str, need: int, have: int) -> PtoError:
    return fail(
        "capacity",
        f"the tiles do not fit into {memory} side by side",
        got=[("bytes needed so far", need), ("capacity", have)],
        fix="reuse buffers, or give addresses by hand",
        site=op.location,
    )


# ---- order ---------------------------------------------------------------------------------------


def _order(block: Block, known: Known, target: Target, before: Pipe | None = None) -> None:
    """Chain every instruction to the one before it."""
    ops: list[Op] = []
    for op in block.ops:
        known.see(op)
        pipe = _pipe(op, known, target)
        if pipe is not None:
            if before is not None:
                ops += _wait(before, pipe, op)
            before = pipe
        elif op.regions or op.name in ("func.return", "func.call"):
            if before is not None:
                ops.append(_barrier(Pipe.ALL, op))
            before = None
        for region in op.regions:
            _order(region, known, target)
            _close(region)
        ops.append(op)
    block.ops = ops


def _close(block: Block) -> None:
    """A body of a loop or branch ends with everything done."""
    if any(op.insn is not None for op in block.ops):
        at = len(block.ops) - int(block.ops[-1].name in ("scf.yield", "scf.condition"))
        block.ops.insert(at, _barrier(Pipe.ALL, block.ops[-1]))


def _pipe(op: Op, known: Known, target: Target) -> Pipe | None:
    """The pipe an instruction runs on; None for what runs on no pipe of its own."""
    insn = op.insn
    if insn is None or insn.pipe is None:
        return None
    if not callable(insn.pipe):
        return insn.pipe
    named = {
        o.name: known.facts(v) for o, v in zip(insn.operands, run_time_operands(op), strict=True)
    }
    chosen = {a.name: v for a, v in zip(insn.attrs, template_arguments(op), strict=True)}
    try:
        return insn.pipe(Ops(named, chosen, target, "manual"))
    except Unknown:
        return Pipe.ALL


def _wait(first: Pipe, second: Pipe, op: Op) -> list[Op]:
    if first == second or Pipe.ALL in (first, second):
        same = first if first == second else Pipe.ALL
        return [] if same == Pipe.S else [_barrier(same, op)]
    attrs: dict[str, Attribute] = {
        "src_pipe": EnumAttr("pipe", f"PIPE_{first.name}"),
        "dst_pipe": EnumAttr("pipe", f"PIPE_{second.name}"),
        "event_id": EVENT,
    }
    builder = Builder(location=op.location)
    return [builder.op(f"pto.{what}_flag", attrs=attrs) for what in ("set", "wait")]


def _barrier(pipe: Pipe, op: Op) -> Op:
    attrs: dict[str, Attribute] = {"pipe": EnumAttr("pipe", f"PIPE_{pipe.name}")}
    return Builder(location=op.location).op("pto.barrier", attrs=attrs)
