"""Views and tiles whose sizes count pairs of 4-bit floats, in single elements as all others.

`!pto.tensor_view<16x32x!pto.f4E2M1x2>` has rows of 64 floats, and floats are what is counted here.
Sizes that stand in the type of a tile are read so (`typetext`); those of a view, and what is valid
of a tile, are values of the program too, which are doubled here, once, behind reading.
"""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.tiles import DYNAMIC
from ptokit.ir.attributes import ArrayAttr, IntAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Module, Op, Value
from ptokit.ir.dialects.fifo import TRANSFERS
from ptokit.ir.dialects.memory import (
    ALLOC,
    ALLOC_TILES,
    GET_VALID,
    MAKE_VIEW,
    PARTITION,
    SET_VALID,
    SUBSET,
    SUBVIEW,
    VALID_COLS,
    VALID_ROWS,
    constant,
)
from ptokit.ir.types import (
    SINGLES_OF,
    MultiTileType,
    PtrType,
    ScalarType,
    TileBufType,
    Type,
    ViewType,
)
from ptokit.isa.pipes import TPOP

# The operands that count elements: along the last axis, and between neighbours along the others.
# Pointers move by bytes, which are pairs.
_COUNTS = {
    MAKE_VIEW: {"shape": slice(-1, None), "strides": slice(0, -1)},
    PARTITION: {"offsets": slice(-1, None), "sizes": slice(-1, None)},
}
# The same of tiles: rows, then columns.
_TILE_COUNTS = ("valid_row", "valid_col"), ("offsets", "offsets"), ("valid", "valid")
_TOLD = {GET_VALID: (0, 1), VALID_ROWS: (0,), VALID_COLS: (1,)}  # results that are rows, or columns
_POPS = (each for each, insn in TRANSFERS.items() if insn is TPOP)
_HAS_SIZES = (ALLOC, ALLOC_TILES, SET_VALID, SUBVIEW, SUBSET, *_POPS)


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
        _scale_tile(op, ops)
        ops.append(op)
        _halve(op, ops)
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


def _scale_tile(op: Op, before: list[Op]) -> None:
    """Double what counts pairs of a tile: what is valid of it, and where a window lies."""
    types = (value.type for value in (*op.results, *op.operands))
    tiles = (each for each in types if isinstance(each, TileBufType | MultiTileType))
    units = next((each.elements for each in tiles), (1, 1))
    if units == (1, 1) or not any(each.matches(op) for each in _HAS_SIZES):
        return
    builder, along = Builder(Block(ops=before), op.location), units.index(2)
    for labels in _TILE_COUNTS:
        places = [n for n, label in enumerate(op.labels) if label == labels[along]]
        is_list = labels[0] == labels[1]
        for place in places[along : along + 1] if is_list else places:
            op.operands[place] = _doubled(op.operands[place], builder)
    sizes = op.attrs.get("sizes")
    if isinstance(sizes, ArrayAttr):
        items = zip(sizes.items, units, strict=True)
        op.attrs["sizes"] = ArrayAttr(
            tuple(replace(n, value=n.value * u) if isinstance(n, IntAttr) else n for n, u in items)
        )


def _halve(op: Op, behind: list[Op]) -> None:
    """Let the program see pairs where it asks how much of a tile is valid."""
    axes = next((axes for each, axes in _TOLD.items() if each.matches(op)), ())
    tile = op.operands[0].type if axes else None
    for n, axis in enumerate(axes):
        if not isinstance(tile, TileBufType) or tile.elements[axis] == 1:
            continue
        seen = op.results[n]
        op.results[n] = Value(seen.name, seen.type, op, seen.location)
        builder = Builder(Block(ops=behind), op.location)
        operands = {"lhs": op.results[n], "rhs": builder.constant(2, seen.type)}
        halved = builder.op("arith.divui", operands, [seen.type], names=[seen.name])
        halved.results[0] = seen
        seen.owner = halved


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
