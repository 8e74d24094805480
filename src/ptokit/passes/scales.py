"""Which scale memory a `loc=scaling` tile lies in.

Files of other tools have one word for three memories: the parameters of the fix pipe, and the
scales that belong to a left or a right operand of a block-scaled product. What a tile is used for
tells them apart.
"""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.enums import TileType
from ptokit.base.tiles import TileSpec
from ptokit.ir.core import Function, Module, Op, Value
from ptokit.ir.rewrite import clone
from ptokit.ir.types import TileBufType
from ptokit.isa.binding import TGET_SCALE_ADDR

_OPERANDS = {"aScaleMatrix": TileType.ScaleLeft, "bScaleMatrix": TileType.ScaleRight}
_SIDES = {TileType.Left: TileType.ScaleLeft, TileType.Right: TileType.ScaleRight}
_LAYOUTS = {"ZZ": TileType.ScaleLeft, "NN": TileType.ScaleRight}


def with_scale_memories(module: Module) -> Module:
    """The module with every scale tile in its own memory; the same one when nothing changes."""
    if not any(_meanings(function) for function in module.functions):
        return module
    module = clone(module)
    for function in module.functions:
        for value, memory in _meanings(function).items():
            value.type = _moved(value, memory)
    return module


def _moved(value: Value, memory: TileType) -> TileBufType:
    assert isinstance(value.type, TileBufType)
    s = value.type.spec
    fields = (s.valid_row, s.valid_col, s.slayout, s.fractal, s.pad, s.compact)
    spec = TileSpec.of(memory, s.dtype, s.rows, s.cols, s.blayout, *fields)
    return replace(value.type, spec=spec)


def _meanings(function: Function) -> dict[Value, TileType]:
    """The scale tiles of a function with the memory each of them means."""
    found: dict[Value, set[TileType]] = {}
    by_layout: dict[Value, TileType] = {}
    for op in function.walk():
        if op.insn is None:
            continue
        for value, label in zip(op.operands, op.labels, strict=True):
            if not _is_scaling(value):
                continue
            memory = _OPERANDS.get(label) or _side(op)
            if memory is not None:
                found.setdefault(value, set()).add(memory)
            elif label == "dst" and _comes_from_mat(op):
                assert isinstance(value.type, TileBufType)
                layout = _LAYOUTS.get(value.type.spec.layout)
                if layout is not None:
                    by_layout[value] = layout
            else:  # parameters of the fix pipe
                found.setdefault(value, set()).add(TileType.Scaling)
    chosen = {v: next(iter(m)) for v, m in found.items() if len(m) == 1}
    chosen |= {v: memory for v, memory in by_layout.items() if v not in found}
    return {v: memory for v, memory in chosen.items() if memory != TileType.Scaling}


def _is_scaling(value: Value) -> bool:
    return isinstance(value.type, TileBufType) and value.type.spec.loc == TileType.Scaling


def _side(op: Op) -> TileType | None:
    """The scales that belong to the tile whose address they are derived from."""
    source = op.operand("src")
    if op.insn is not TGET_SCALE_ADDR or source is None:
        return None
    return _SIDES.get(source.type.spec.loc) if isinstance(source.type, TileBufType) else None


def _comes_from_mat(op: Op) -> bool:
    source = op.operand("src")
    type_ = source.type if source is not None else None
    return isinstance(type_, TileBufType) and type_.spec.loc == TileType.Mat
