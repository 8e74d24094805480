"""Tiles of a manual kernel that are used although nothing gives them an address."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.core import Function, Op, Value
from ptokit.ir.flow import allocates
from ptokit.ir.instructions import run_time_operands
from ptokit.ir.types import BufferType
from ptokit.isa.spec import Insn, Operand, View
from ptokit.machine.faults import unbound_tile


def unbound(function: Function) -> Iterator[Diagnostic]:
    """Complain at the first use of each of them."""
    loose = {op.result for op in function.walk() if allocates(op) and op.operand("addr") is None}
    if not loose:
        return
    for op in function.walk():
        loose -= {value for _, declared, value in _tiles(op) if _binds(declared)}
    for op in function.walk():
        for insn, declared, value in _tiles(op):
            if value in loose:
                loose.remove(value)
                assert isinstance(value.type, BufferType)
                tile = f"Tile[{value.type.spec}] not bound to an address"
                yield from unbound_tile(tile, insn, declared.name, op.location).diagnostics


def _binds(declared: Operand) -> bool:
    """Whether an instruction gives an operand its place instead of using what is there."""
    return declared.view is View.OBJECT and declared.writes


def _tiles(op: Op) -> Iterator[tuple[Insn, Operand, Value]]:
    """The tiles an operation names."""
    if op.insn is None:
        return
    for declared, value in zip(op.insn.operands, run_time_operands(op), strict=True):
        if value is not None and isinstance(value.type, BufferType):
            yield op.insn, declared, value
