"""What texts say in short, as the machine has it.

A text gives a barrier the address of its counter, where the instruction takes a view; flags of A5
to a target that has other ones; and pipes their numbers. Whoever checks, runs or writes a program
sees the long form.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.attributes import IntAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Module, Op
from ptokit.ir.rewrite import clone
from ptokit.ir.types import PtrType, ViewType
from ptokit.isa.effects import Reach
from ptokit.isa.spec import Insn
from ptokit.isa.sync import (
    SYNCALL,
    WORKSPACE_WORDS,
    set_intra_block,
    sync_set,
    sync_wait,
    wait_intra_block,
)
from ptokit.isa.targets import Target
from ptokit.passes.lower_pipes import lower_pipes, uses_pipes
from ptokit.passes.pipe_rules import check_pipes
from ptokit.passes.signal_rules import check_signals


def unfolded(module: Module, target: Target) -> Module:
    """The module in its long form; the same one when it is that already.

    What is wrong with the short form goes with it as remarks.
    """
    broken = tuple(check_pipes(module, target))
    older = tuple(_older_signals(module, target))
    remarks = (*check_signals(module), *broken, *older)
    lowers = not broken and uses_pipes(module)
    if not (remarks or lowers or any(_is_short(op, target) for op in module.walk())):
        return module
    module = clone(module)
    module.remarks += remarks
    if older:
        for op in module.walk():
            if op.insn in _CORE_SIGNALS:
                _core_signal(op)
    if lowers:
        lower_pipes(module, target)
    for function in module.functions:
        if function.body is not None:
            _block(function.body, target)
    return module


def _is_short(op: Op, target: Target) -> bool:
    if op.insn is SYNCALL:
        return any(isinstance(value.type, PtrType) for value in op.operands)
    return op.insn in _CLUSTER_SIGNALS and target.core_signals is Reach.CLUSTER


def _block(block: Block, target: Target) -> None:
    ops: list[Op] = []
    for op in block.ops:
        if _is_short(op, target):
            ops += _workspace(op) if op.insn is SYNCALL else _signal(op)
        ops.append(op)
        for region in op.regions:
            _block(region, target)
    block.ops = ops


def _workspace(op: Op) -> list[Op]:
    """A pointer to the counter of a barrier becomes a view of the words that it takes."""
    builder, pointer = Builder(location=op.location), op.operands[0]
    assert isinstance(pointer.type, PtrType)
    size, step, start = (builder.constant(n) for n in (WORKSPACE_WORDS, 1, 0))
    shape = (WORKSPACE_WORDS,)
    whole = ViewType("tensor_view", shape, pointer.type.element)
    view = builder.op(
        "pto.make_tensor_view", {"ptr": pointer, "shape": [size], "strides": [step]}, [whole]
    )
    part = ViewType("partition_tensor_view", shape, pointer.type.element)
    made = builder.op(
        "pto.partition_view", {"source": view.result, "offsets": [start], "sizes": [size]}, [part]
    )
    op.operands[0] = made.result
    return builder.block.ops


_CLUSTER_SIGNALS: dict[Insn | None, tuple[Insn, str]] = {
    set_intra_block: (sync_set, "pto.sync.set"),
    wait_intra_block: (sync_wait, "pto.sync.wait"),
}


_CORE_SIGNALS = {
    short: (long, name)
    for long, name, short in (
        (set_intra_block, "pto.set_intra_block", sync_set),
        (wait_intra_block, "pto.wait_intra_block", sync_wait),
    )
}


def _older_signals(module: Module, target: Target) -> Iterator[Diagnostic]:
    """Texts of before August 2026 name flags between two cores of A5 `sync.set`, up to 31.

    They give each vector core its own, id and id + 16: both in one text tell how all are meant.
    """
    if target.core_signals is not Reach.CORE:
        return
    found: dict[int, Op] = {}
    for op in module.walk():
        id_ = op.attrs.get("event_id")
        if op.insn in _CORE_SIGNALS and isinstance(id_, IntAttr):
            found.setdefault(id_.value, op)
    for id_, op in found.items():
        if 15 < id_ < 32 and id_ - 16 in found:
            name = _CORE_SIGNALS[op.insn][1]
            yield Diagnostic(
                "older-signal",
                f"{op.name}: flags {id_ - 16} and {id_} are those between two cores, as older "
                f"texts name them: all are read as {name} and its sister",
                op.location,
                (("id", str(id_)),),
                f"write {name} and its sister, for every id",
                severity="warning",
            )
            return


def _core_signal(op: Op) -> None:
    """A flag of an older text, under its name of today."""
    op.insn, op.name = _CORE_SIGNALS[op.insn]
    op.attrs.pop("ffts_mode", None)
    op.labels = tuple("id" if label == "event_id" else label for label in op.labels)


def _signal(op: Op) -> list[Op]:
    """A flag between two cores is one of the whole cluster."""
    op.insn, op.name = _CLUSTER_SIGNALS[op.insn]
    op.labels = tuple("event_id" if label == "id" else label for label in op.labels)
    return []
