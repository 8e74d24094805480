"""Temporaries that a text leaves to the tool, written out: C++ has no implied scratch tiles."""

from __future__ import annotations

from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Module, Op
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
    return op.insn is not None and op.insn.asm is not None and bool(missing_scratch(op))


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
    builder = Builder(location=op.location)
    for name, type_ in scratch_types(op, target).items():
        made = builder.op("pto.alloc_tile", {}, [type_], names=[name])
        op.operands.append(made.result)
        op.labels += (name,)
    ops += builder.block.ops
