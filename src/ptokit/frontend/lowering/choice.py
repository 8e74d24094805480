"""A run-time choice among tiles: `tiles[i % 2]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.symbols import BufferSymbol, Number
from ptokit.ir.attributes import ArrayAttr, IntAttr
from ptokit.ir.core import Block
from ptokit.ir.types import I64


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
    return _switched(emitter, tiles, index)


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
    return tiles[0].renamed(op.result)
