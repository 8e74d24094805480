"""Tiles that another compiler has lowered to memrefs, as tiles again.

`memref.alloc` in on-chip memory makes a tile, `pto.bind_tile` says its layout and valid sizes,
`pto.pointer_cast` makes one at an address. What is written about the handle in several places is
said by one `pto.alloc_tile`.
"""

from __future__ import annotations

from collections import Counter

from ptokit.base.tiles import DYNAMIC
from ptokit.ir.attributes import OpaqueAttr
from ptokit.ir.core import Block, Module, Op, Value
from ptokit.ir.dialects.func import MEMREF_ALLOC
from ptokit.ir.dialects.memory import ALLOC, BIND_TILE, POINTER_CAST
from ptokit.ir.rewrite import clone
from ptokit.ir.types import ShapedType, TileBufType, Type
from ptokit.ir.typetext import is_local
from ptokit.passes.facts import memref_tile


def with_tiles(module: Module) -> Module:
    """The module with a tile for every memref in on-chip memory; the same one if it has none."""
    if not any(_makes_tile(op) for op in module.walk()):
        return module
    module = clone(module)
    for function in module.functions:
        if function.body is None:
            continue
        uses = Counter(value for op in function.walk() for value in op.operands)
        bound = {op.operands[0] for op in function.walk() if BIND_TILE.matches(op)}
        # A buffer that is only ever bound is made where it is bound.
        only = {value for value in bound if uses[value] == 1}
        _rewrite(function.body, only)
        for value in _values(function.body):
            value.type = _tile_type(value.type)
    return module


def _makes_tile(op: Op) -> bool:
    made = MEMREF_ALLOC.matches(op) or BIND_TILE.matches(op) or POINTER_CAST.matches(op)
    return made and is_local(op.result.type)


def _rewrite(block: Block, only_bound: set[Value]) -> None:
    ops: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            _rewrite(region, only_bound)
        if not _makes_tile(op):
            ops.append(op)
        elif MEMREF_ALLOC.matches(op):
            if op.result not in only_bound:
                ops.append(_alloc(op, None))
        elif POINTER_CAST.matches(op):
            addresses = op.group("addrs")
            ops.append(_alloc(op, addresses[0]) if len(addresses) == 1 else op)
        else:
            ops.append(_alloc(op, None) if op.operands[0] in only_bound else op)
    block.ops = ops


def _alloc(op: Op, address: Value | None) -> Op:
    """The operation that makes the tile of another one."""
    sizes = {label: op.operand(label) for label in ("valid_row", "valid_col")}
    given = {label: v for label, v in ({"addr": address} | sizes).items() if v is not None}
    config = op.attrs.get("config")
    type_ = op.result.type
    assert isinstance(type_, ShapedType)
    spec = memref_tile(type_, config.text if isinstance(config, OpaqueAttr) else "")
    if "valid_row" in given:
        spec = spec.but(valid_row=DYNAMIC, valid_col=DYNAMIC)
    made = Op(ALLOC.name, list(given.values()), tuple(given), [op.result], ("result",))
    made.location = op.location
    op.result.owner, op.result.type = made, TileBufType(spec)
    return made


def _values(block: Block) -> list[Value]:
    found = list(block.args)
    for op in block.walk():
        found += op.results
        found += [arg for region in op.regions for arg in region.args]
    return found


def _tile_type(type_: Type) -> Type:
    """The type of a name for a memref that became a tile."""
    if isinstance(type_, ShapedType) and type_.kind == "memref" and is_local(type_):
        return TileBufType(memref_tile(type_))
    return type_
