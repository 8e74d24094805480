"""A run-time choice among tiles: `tiles[i % 2]`.

Tiles that auto mode places are laid side by side: they become slots of one `alloc_multi_tile`, and
the choice a `multi_tile_get`. Among others - with addresses of the author's, with run-time sizes,
in another order than they were laid - a switch yields one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptokit.base.enums import CompactMode, TileType
from ptokit.base.tiles import TileSpec
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.numbers import Number
from ptokit.frontend.lowering.symbols import BufferSymbol
from ptokit.frontend.session import current
from ptokit.ir.attributes import ArrayAttr, IntAttr
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.arith import CONSTANT
from ptokit.ir.dialects.memory import ALLOC, ALLOC_TILES, GET_TILE, constant
from ptokit.ir.types import I64, INDEX, MOST_SLOTS, MultiTileType


def chosen_tile(emitter: Emitter, tiles: Sequence[Any], index: Number) -> Any:
    """The tile of a list or tuple at a run-time index; other lists need a known one."""
    if not tiles or not all(isinstance(tile, BufferSymbol) for tile in tiles):
        return tiles[int(index)]  # asks for a known one
    types = dict.fromkeys(str(tile.spec) for tile in tiles)
    if len(types) > 1:
        raise emitter.fail(
            "choice",
            "a run-time index chooses among tiles of one type; these are " + " and ".join(types),
            "declare them with one type, or choose with `if`",
        )
    side_by_side = _laid(emitter, tiles) if current().mode == "auto" else None
    if side_by_side is None:
        return _switched(emitter, tiles, index)
    pairs = [("source", side_by_side), ("slot", index.value)]
    made = emitter.emit(GET_TILE.name, pairs, [("result", tiles[0].value.type)], hint="chosen")
    return tiles[0].renamed(made.result)


def _laid(emitter: Emitter, tiles: Sequence[Any]) -> Value | None:
    """The tiles as slots of one value, in their order; None where they cannot be."""
    makers = [tile.value.owner for tile in tiles]
    ops = [op for op in makers if isinstance(op, Op)]
    if len(ops) < len(tiles) or len(set(ops)) < len(ops):
        return None
    if all(GET_TILE.matches(op) for op in ops):  # by an earlier choice
        whole, slots = ops[0].operands[0], [constant(op.operands[1]) for op in ops]
        same = all(op.operands[0] is whole for op in ops) and slots == list(range(len(ops)))
        assert isinstance(whole.type, MultiTileType)
        return whole if same and len(ops) == whole.type.count else None
    kind = tiles[0].spec
    if not isinstance(kind, TileSpec) or kind.loc in _SCALES or len(ops) > MOST_SLOTS:
        return None
    if kind.compact is CompactMode.RowPlusOne or len(ops) < 2:
        return None
    if any(not ALLOC.matches(op) or op.operands for op in ops):
        return None
    block = emitter.block_of(ops[0])
    if block is None or any(op not in block.ops for op in ops):
        return None
    return _lay(block, ops, MultiTileType(kind, len(ops)))


def _lay(block: Block, ops: list[Op], type_: MultiTileType) -> Value:
    """Turn the operations that make tiles into those that take slots, where they stand."""
    first = min(ops, key=block.ops.index)
    whole = Op(ALLOC_TILES.name, location=first.location, result_labels=("result",))
    whole.results = [Value("tiles", type_, whole, first.location)]
    block.ops.insert(block.ops.index(first), whole)
    for slot, op in enumerate(ops):
        number = Op(CONSTANT.name, location=op.location, result_labels=("result",))
        number.results = [Value(f"c{slot}", INDEX, number, op.location)]
        number.attrs["value"] = IntAttr(slot, INDEX)
        block.ops.insert(block.ops.index(op), number)
        op.name = GET_TILE.name
        op.operands, op.labels = [whole.result, number.result], ("source", "slot")
    return whole.result


_SCALES = (TileType.ScaleLeft, TileType.ScaleRight)  # their places follow those of other tiles


def _switched(emitter: Emitter, tiles: Sequence[BufferSymbol], index: Number) -> BufferSymbol:
    """A choice among tiles that were made one by one."""
    cases: list[Block] = []
    for tile in tiles:
        cases.append(Block())
        with emitter.region(cases[-1]):
            emitter.emit("scf.yield", [("args", tile.value)])
    outside = Block()
    with emitter.region(outside):
        emitter.emit("pto.trap")
        emitter.emit("scf.yield", [("args", tiles[0].value)])
    numbers = tuple(IntAttr(n, I64) for n in range(len(tiles)))
    op = emitter.emit(
        "scf.index_switch",
        [("arg", index.value)],
        [("results", tiles[0].value.type)],
        {"cases": ArrayAttr(numbers, I64)},
        [outside, *cases],
        hint="chosen",
    )
    chosen = tiles[0].renamed(op.result)
    chosen.is_chosen = True
    return chosen
