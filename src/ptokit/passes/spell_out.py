"""Temporaries that a text leaves to the tool, written out: C++ has no implied scratch tiles.

A placed text has none either, but for those that its target does not touch: they stay left out.
"""

from __future__ import annotations

from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Module, Op
from ptokit.ir.rewrite import clone
from ptokit.ir.scratch import missing_scratch, supplied
from ptokit.ir.types import I64
from ptokit.isa.targets import Target
from ptokit.passes.verify import has_addresses


def spelled_out(module: Module, target: Target, *, idle: bool = True) -> Module:
    """A module in which every instruction has all its operands; the same one if it has already.

    `idle`: those as well that nothing touches.
    """
    if not any(_is_short(op) for op in module.walk()):
        return module
    module = clone(module)
    is_placed = has_addresses(module)
    for function in module.functions:
        if function.body is not None:
            _block(function.body, target, is_placed, idle)
    return module


def _is_short(op: Op) -> bool:
    return (
        op.insn is not None and op.insn.asm is not None and bool(missing_scratch(op, in_text=True))
    )


def _block(block: Block, target: Target, is_placed: bool, idle: bool) -> None:
    ops: list[Op] = []
    for op in block.ops:
        if _is_short(op):
            _complete(op, ops, target, is_placed, idle)
        ops.append(op)
        for region in op.regions:
            _block(region, target, is_placed, idle)
    block.ops = ops


def _complete(op: Op, ops: list[Op], target: Target, is_placed: bool, idle: bool) -> None:
    """Make the tiles of an instruction; one that nothing touches may lie anywhere."""
    builder = Builder(location=op.location)
    for name, each in supplied(op, target, in_text=True).items():
        if not (idle or each.is_used):
            continue
        is_anywhere = is_placed and not each.is_used
        where = {"addr": builder.constant(0, I64)} if is_anywhere else {}
        made = builder.op("pto.alloc_tile", where, [each.type], names=[name])
        op.operands.append(made.result)
        op.labels += (name,)
    ops += builder.block.ops
