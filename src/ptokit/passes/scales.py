"""Scales of block-scaled products: which memory a tile means, and how its view lies.

Files of other tools have one word (`loc=scaling`) for three memories: the parameters of the fix
pipe, and the scales that belong to a left or a right operand of a block-scaled product. What a tile
is used for tells them apart. Nor do they write how scales lie in global memory: a matrix of them
that is loaded into a Zz or Nn tile lies there in the boxes of that tile.
"""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.dtypes import DType
from ptokit.base.enums import TileType
from ptokit.base.tiles import TileSpec
from ptokit.ir.attributes import EnumAttr
from ptokit.ir.core import Function, Module, Op, Value
from ptokit.ir.dialects.memory import MAKE_VIEW, PARTITION
from ptokit.ir.rewrite import clone
from ptokit.ir.types import TileBufType, ViewType
from ptokit.isa.binding import TGET_SCALE_ADDR

_OPERANDS = {"aScaleMatrix": TileType.ScaleLeft, "bScaleMatrix": TileType.ScaleRight}
_SIDES = {TileType.Left: TileType.ScaleLeft, TileType.Right: TileType.ScaleRight}
_ARRANGED = {"ZZ": "mx_a_zz", "NN": "mx_b_nn"}
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


def with_scale_layouts(module: Module) -> Module:
    """The module whose views of scales say how they lie; the same one when nothing changes."""
    if not any(_boxed_views(function) for function in module.functions):
        return module
    module = clone(module)
    for function in module.functions:
        for made, layout in _boxed_views(function).items():
            made.attrs["layout"] = EnumAttr("layout", layout)
    return module


def _boxed_views(function: Function) -> dict[Op, str]:
    """The matrices of scales whose every use is a load into tiles of one kind of boxes."""
    origins: dict[Value, Op] = {}
    found: dict[Op, set[str]] = {}
    for op in function.walk():
        if MAKE_VIEW.matches(op):
            if "layout" not in op.attrs and _is_matrix_of_scales(op.result):
                origins[op.result] = op
        elif PARTITION.matches(op) and op.operands[0] in origins:
            origins[op.result] = origins[op.operands[0]]
        elif op.insn is not None:
            for value in op.operands:
                if value in origins:
                    found.setdefault(origins[value], set()).add(_boxes(op.operand("dst")))
    chosen = {op: asked.pop() for op, asked in found.items() if len(asked) == 1}
    return {op: layout for op, layout in chosen.items() if layout}


def _is_matrix_of_scales(view: Value) -> bool:
    type_ = view.type
    return isinstance(type_, ViewType) and len(type_.shape) == 2 and _is_scale(type_.element.dtype)


def _boxes(tile: Value | None) -> str:
    """How scales lie that are loaded into a tile; one row of them is just a row."""
    spec = tile.type.spec if tile is not None and isinstance(tile.type, TileBufType) else None
    if spec is None or spec.loc != TileType.Mat or not _is_scale(spec.dtype):
        return ""
    return "" if spec.layout == "ZZ" and spec.rows == 1 else _ARRANGED.get(spec.layout, "")


def _is_scale(element: DType | None) -> bool:
    return element is not None and element.name == "f8e8m0"


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
