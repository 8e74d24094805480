"""Views whose sizes count pairs of 4-bit floats, in single elements as all others.

`!pto.tensor_view<16x32x!pto.f4E2M1x2>` has rows of 64 floats, and floats are what is counted here.
The type of a tile says all its sizes, and is read so (`typetext`); those of a view are values of
the program too, which are doubled here, once, behind reading.
"""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.tiles import DYNAMIC
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Module, Op, Value
from ptokit.ir.dialects.memory import MAKE_VIEW, PARTITION, constant
from ptokit.ir.types import SINGLES_OF, PtrType, ScalarType, Type, ViewType

# The operands that count elements: along the last axis, and between neighbours along the others.
# Pointers move by bytes, which are pairs.
_COUNTS = {
    MAKE_VIEW: {"shape": slice(-1, None), "strides": slice(0, -1)},
    PARTITION: {"offsets": slice(-1, None), "sizes": slice(-1, None)},
}


def count_singles(module: Module) -> list[Diagnostic]:
    """Let every view of a program count single elements; return what cannot be said so."""
    found: list[Diagnostic] = []
    for function in module.functions:
        function.inputs = tuple(map(_single, function.inputs))
        function.results = tuple(map(_single, function.results))
        if function.body is not None:
            _block(function.body, found)
    return found


def _block(block: Block, found: list[Diagnostic]) -> None:
    ops: list[Op] = []
    for op in block.ops:
        for definition, counts in _COUNTS.items():
            if definition.matches(op) and _single(op.result.type) is not op.result.type:
                _scale(op, counts, ops, found)
        for region in op.regions:
            _block(region, found)
        for result in op.results:
            result.type = _single(result.type)
        ops.append(op)
    for arg in block.args:
        arg.type = _single(arg.type)
    block.ops = ops


def _scale(op: Op, counts: dict[str, slice], before: list[Op], found: list[Diagnostic]) -> None:
    """Double the operands of an operation that count pairs."""
    strides = op.group("strides")
    if strides and constant(strides[-1]) != 1:
        what = f"{op.name}: pairs of 4-bit floats lie side by side: the last stride is 1"
        found.append(Diagnostic("type-mismatch", what, op.location))
    builder = Builder(Block(ops=before), op.location)
    for label, chosen in counts.items():
        places = [n for n, each in enumerate(op.labels) if each == label][chosen]
        for place in places:
            op.operands[place] = _doubled(op.operands[place], builder)


def _doubled(value: Value, builder: Builder) -> Value:
    known = constant(value)
    if known is not None:
        return builder.constant(2 * known, value.type)
    two = builder.constant(2, value.type)
    operands = {"lhs": value, "rhs": two}
    return builder.op("arith.muli", operands, [value.type], names=[value.name]).result


def _single(type_: Type) -> Type:
    """A pointer or view with the elements that it counts."""
    if not isinstance(type_, PtrType | ViewType) or type_.element.name not in SINGLES_OF:
        return type_
    element = ScalarType(SINGLES_OF[type_.element.name])
    if isinstance(type_, PtrType):
        return replace(type_, element=element)
    *others, last = type_.shape
    return replace(type_, shape=(*others, last if last == DYNAMIC else 2 * last), element=element)
