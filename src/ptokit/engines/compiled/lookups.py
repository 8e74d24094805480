"""Entries of a table by their numbers: gathers, and scatters the other way round.

What an index leads to when it is beyond the table is said by the idiom; where nothing is, the call
is doubted: the function leaves a word behind, and the run counts as one that has not taken place.

The words: rows and columns of the indices, entries of the table and the bytes from one to the next,
pieces of an entry; then memory and offset of the tile with the stride of its rows, of the table, of
the indices with their strides, and of the word of doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.layout import Array
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.idioms import Lookup

if TYPE_CHECKING:
    from ptokit.engines.compiled.natives import Native
    from ptokit.machine.access import Access
    from ptokit.machine.calls import Call

_ROWS, _COLUMNS, _ENTRIES, _STEP, _PIECES = range(5)
_TILE, _TABLE, _INDEX, _DOUBT, _WORDS = 5, 8, 10, 14, 16
_WIDEST = 64  # bytes that are moved at once


@dataclass(frozen=True)
class Looked:
    """A function of the library: pieces of so many bytes, to a table or from it."""

    size: int  # of a piece
    bits: int  # of an index
    is_signed: bool
    scatters: bool
    clears: bool  # the table is zero before
    aligned: int  # what an index is a multiple of
    beyond: str

    @property
    def operands(self) -> Sequence[int]:
        return (_TABLE, _TILE, _INDEX) if self.scatters else (_TILE, _TABLE, _INDEX)

    def text(self, name: str) -> str:
        code = Function(name)
        tile, table, index = (code.pointer(at) for at in (_TILE, _TABLE, _INDEX))
        entries, step, pieces = (code.word(at) for at in (_ENTRIES, _STEP, _PIECES))
        pitch, down, across = (code.word(at) for at in (_TILE + 2, _INDEX + 2, _INDEX + 3))
        kind = f"<{self.size} x i8>" if self.size > 8 else f"i{8 * self.size}"
        zero = "zeroinitializer" if self.size > 8 else "0"
        length = code.number("mul", pieces, str(self.size))

        def clear(at: Value) -> Sequence[Value]:
            code.act(f"store {kind} {zero}, ptr {code.behind(table, at)}, align 1")
            return ()

        if self.clears:
            code.loop("0", code.number("mul", entries, step), str(self.size), clear)

        def row(_: Value, line: Value, numbers: Value, doubt: Value) -> Sequence[Value]:
            def column(_: Value, place: Value, at: Value, doubt: Value) -> Sequence[Value]:
                found = code.do(f"load i{self.bits}, ptr {at}, align 1")
                if self.bits < 64:
                    how = "sext" if self.is_signed else "zext"
                    found = code.do(f"{how} i{self.bits} {found} to i64")
                outside = code.do(f"icmp uge i64 {found}, {entries}")
                number, counts, wrong = self._settled(code, found, entries, outside)
                entry = code.at(table, number, step)

                def move() -> None:
                    source, to = (place, entry) if self.scatters else (entry, place)

                    def piece(part: Value) -> Sequence[Value]:
                        value = code.do(f"load {kind}, ptr {code.behind(source, part)}, align 1")
                        if counts and not self.scatters:
                            value = code.do(f"select i1 {counts}, {kind} {value}, {kind} {zero}")
                        code.act(f"store {kind} {value}, ptr {code.behind(to, part)}, align 1")
                        return ()

                    code.loop("0", length, str(self.size), piece)

                if counts and self.scatters:
                    code.when(counts, move)
                else:
                    move()
                if wrong:
                    doubt = code.do(f"or i1 {doubt}, {wrong}")
                return [code.behind(place, length), code.behind(at, across), doubt]

            carried = [("ptr", line), ("ptr", numbers), ("i1", doubt)]
            found = code.loop("0", code.word(_COLUMNS), "1", column, carried)
            return [code.behind(line, pitch), code.behind(numbers, down), found[-1]]

        carried = [("ptr", tile), ("ptr", index), ("i1", "false")]
        *_, doubted = code.loop("0", code.word(_ROWS), "1", row, carried)
        code.when(doubted, lambda: code.act(f"store i64 1, ptr {code.pointer(_DOUBT)}"))
        return code.text()

    def _settled(
        self, code: Function, found: Value, entries: Value, outside: Value
    ) -> tuple[Value, Value, Value]:
        """The entry that is moved, whether it counts where not all do, and what is doubted."""
        if self.beyond == "Wrap":
            return code.number("urem", found, entries), "", ""
        last = code.number("sub", entries, "1")
        inside = code.do(f"select i1 {outside}, i64 {last}, i64 {found}")
        if self.beyond == "Clamp":
            return inside, "", ""
        if self.beyond in ("Zero", "Skip"):
            return inside, code.do(f"xor i1 {outside}, true"), ""
        wrong = outside
        if self.aligned > 1:
            rest = code.number("and", inside, str(self.aligned - 1))
            wrong = code.do(f"or i1 {wrong}, {code.do(f'icmp ne i64 {rest}, 0')}")
        return inside, code.do(f"xor i1 {wrong}, true") if self.scatters else "", wrong


def native(call: Call, idiom: Lookup, given: Mapping[str, Any], bound: Sequence[Access]) -> Native:
    """What the library has for a call that looks entries up."""
    from ptokit.engines.compiled.natives import Native, access_of, is_far

    names = (idiom.tile, idiom.table, idiom.index)
    tile, table, index = (_array(given[name]) for name in names)
    if idiom.per_row:
        if 1 not in index.shape:
            raise Unsupported("indices that are no line")
        index = index if index.shape[1] == 1 else index.T
    places: list[tuple[int, int, int]] = []
    for at, name in zip((_TILE, _TABLE, _INDEX), names, strict=True):
        operand = call.insn.names.index(name)
        access = access_of(call, bound, operand)
        if access is None or access.pattern.steps is None:
            raise Unsupported("operands that go element by element")
        places.append((at, operand, access.pattern.start))
    rows, columns = index.shape
    wide = idiom.size * columns
    if tile.shape[0] != rows or tile.shape[1] * tile.itemsize != wide:
        raise Unsupported("a part of an entry, or indices of another shape")
    if tile.strides[1] != tile.itemsize or (rows > 1 and tile.strides[0] < wide):
        raise Unsupported("rows that are not dense")
    if idiom.step is None:
        step = table.strides[0]
        if table.shape[0] < idiom.entries or table.strides[1] != table.itemsize:
            raise Unsupported("a table whose rows are not dense")
    else:
        step = idiom.step
        if not table.flags.c_contiguous or (idiom.entries - 1) * step + idiom.size > table.nbytes:
            raise Unsupported("a table with gaps")
    written, others = (table, (tile, index)) if idiom.scatters else (tile, (table, index))
    if any(np.may_share_memory(written, each) for each in others):
        raise Unsupported("a result that overlaps what is read")
    if idiom.scatters and len(bound) > 1:
        raise Unsupported("arrays of the user that may be one")
    size = min(idiom.size & -idiom.size, _WIDEST)
    words = [0] * _WORDS
    words[_ROWS : _PIECES + 1] = rows, columns, idiom.entries, step, idiom.size // size
    words[_TILE + 2] = tile.strides[0]
    words[_INDEX + 2 : _INDEX + 4] = index.strides
    kind = Looked(
        size,
        8 * index.itemsize,
        index.dtype.kind == "i" and not idiom.is_unsigned,
        idiom.scatters,
        idiom.clears,
        idiom.aligned,
        idiom.beyond,
    )
    to = access_of(
        call, bound, call.insn.names.index(idiom.table if idiom.scatters else idiom.tile)
    )
    in_turn = to is not None and is_far(to)
    return Native(kind, tuple(words), tuple(places), doubt=_DOUBT, in_turn=in_turn)


def _array(array: Any) -> Array:
    if not isinstance(array, np.ndarray) or 0 in array.shape or array.ndim > 2:
        raise Unsupported("no rows and columns")
    return array if array.ndim == 2 else array[None]
