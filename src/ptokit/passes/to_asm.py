"""From Level 1 to assembly lines: views and partitions become arguments with indices."""

from __future__ import annotations

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tiles import DYNAMIC
from ptokit.ir.core import Module, Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.arith import CONSTANT
from ptokit.ir.dialects.func import RETURN
from ptokit.ir.dialects.memory import MAKE_VIEW, PARTITION
from ptokit.ir.types import PtrType, ViewType
from ptokit.isa.targets import Target
from ptokit.passes.facts import Known


class Part(NamedTuple):
    """A part of an argument: where it starts, and whether it is all of it."""

    param: Value
    offsets: list[Value]
    is_whole: bool


def to_asm(module: Module, target: Target) -> Module:
    """Level 1 to assembly lines, in place."""
    for function in module.functions:
        if function.body is None:
            continue
        known = Known(target)
        parts: dict[Value, Part] = {}
        wholes: dict[Value, Value] = {}
        ops: list[Op] = []
        for op in function.body.ops:
            known.see(op)
            if op.regions:
                raise _refusal(op, "assembly lines have no control flow")
            if MAKE_VIEW.matches(op):
                wholes[op.result] = _argument(op, known)
            elif PARTITION.matches(op):
                if op.operands[0] not in wholes:
                    raise _refusal(op, "only views of parameters can be indexed")
                is_whole = all(known.number(v) == 0 for v in op.group("offsets")) and (
                    known.view(op.result).shape == known.view(op.operands[0]).shape
                )
                parts[op.result] = Part(wholes[op.operands[0]], op.group("offsets"), is_whole)
            elif definition_of(op) in (CONSTANT, RETURN) or op.insn is not None:
                if op.insn is not None:
                    _index(op, parts)
                ops.append(op)
            else:
                raise _refusal(op, "assembly lines are arguments, constants and instructions")
        used = {v for op in ops for v in op.operands}
        function.body.ops = [op for op in ops if not CONSTANT.matches(op) or op.result in used]
    return module


def _argument(op: Op, known: Known) -> Value:
    """The parameter a view is made of, typed with the view's shape."""
    param = op.operands[0]
    view = known.view(op.result)
    dense: list[int] = []
    step = 1
    for extent in reversed(view.shape):
        dense.insert(0, step)
        step *= extent
    if DYNAMIC in view.shape or tuple(dense) != view.stride or len(view.shape) != 2:
        raise _refusal(op, "an argument of assembly lines is a dense matrix of known size")
    if isinstance(param.type, PtrType):
        param.type = ViewType("memref", view.shape, param.type.element)
    elif not isinstance(param.type, ViewType) or param.type.shape != view.shape:
        raise _refusal(op, "a parameter is seen through one view only")
    return param


def takes_whole_views(op: Op) -> bool:
    """Whether an operation names memory without a place: one with a syntax of its own."""
    return op.insn is not None and op.insn.asm is not None and bool(op.insn.asm.syntax)


def _index(op: Op, parts: dict[Value, Part]) -> None:
    operands: list[Value] = []
    labels: list[str] = []
    for value, label in zip(op.operands, op.labels, strict=True):
        if value in parts:
            part = parts[value]
            if not part.is_whole and takes_whole_views(op):
                raise _refusal(op, "it takes an argument of assembly lines as a whole")
            offsets = [] if takes_whole_views(op) else part.offsets
            operands += [part.param, *offsets]
            labels += [label, *[f"{label}.index"] * len(offsets)]
        else:
            operands.append(value)
            labels.append(label)
    op.operands, op.labels = operands, tuple(labels)


def _refusal(op: Op, why: str) -> PtoError:
    return fail("convert-level", f"{op.name}: {why}", site=op.location)
