"""Operands that a text leaves to the tool, written out: temporaries, and numbers in attributes.

C++ has neither implied scratch tiles nor operands as attributes, so a program is spelled out before
it is written there.
"""

from __future__ import annotations

from ptokit.ir.attributes import FloatAttr, IntAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Module, Op
from ptokit.ir.instructions import literal_keys
from ptokit.ir.rewrite import clone
from ptokit.ir.scratch import missing_scratch, scratch_types
from ptokit.isa.targets import Target


def spelled_out(module: Module, target: Target) -> Module:
    """A module in which every instruction has all its operands; the same one if it has already."""
    if not any(_is_short(op) for op in module.walk()):
        return module
    module = clone(module)
    for function in module.functions:
        if function.body is not None:
            _block(function.body, target)
    return module


def _is_short(op: Op) -> bool:
    if op.insn is None or op.insn.asm is None:
        return False
    return bool(missing_scratch(op)) or any(key in op.attrs for key in literal_keys(op.insn))


def _block(block: Block, target: Target) -> None:
    ops: list[Op] = []
    for op in block.ops:
        if _is_short(op):
            _complete(op, ops, target)
        ops.append(op)
        for region in op.regions:
            _block(region, target)
    block.ops = ops


def _complete(op: Op, ops: list[Op], target: Target) -> None:
    assert op.insn is not None
    builder = Builder(location=op.location)
    for name, type_ in scratch_types(op, target).items():
        made = builder.op("pto.alloc_tile", {}, [type_], names=[name])
        op.operands.append(made.result)
        op.labels += (name,)
    for key, operand in literal_keys(op.insn).items():
        number = op.attrs.pop(key, None)
        if isinstance(number, IntAttr | FloatAttr):
            attrs = {"value": number}
            made = builder.op("arith.constant", {}, [number.type], attrs, names=[operand.name])
            op.operands.append(made.result)
            op.labels += (operand.name,)
    ops += builder.block.ops
