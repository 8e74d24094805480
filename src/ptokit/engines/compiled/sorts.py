"""Sorting records of a value and an index: runs of some values, and the merge of sorted lists.

A record is a word: the bits of the value below, its index above. Values compare by sign and
magnitude of their bits, as the instructions do (`isa/sort_records.py`). A run is sorted by
counting, for each of its elements, those that come before it: that is its place. Lists are merged
by their heads: the greatest is next, of equal ones that of the first list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.layout import Array
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.idioms import Merge, Sort

if TYPE_CHECKING:
    from ptokit.engines.compiled.natives import Native
    from ptokit.machine.calls import Call

_RECORD = 8  # bytes

# Of runs the words are rows and runs, then of the records, the values and the indices memory,
# offset and the stride of a row. Of lists: how often, then of the result memory, offset and bytes,
# of each list memory, offset, the bytes to the next one, and its records.
_ROWS, _RUNS, _OPERANDS = 0, 1, 2
_TIMES, _TO, _LISTS = 0, 1, 4


@dataclass(frozen=True)
class SortedRuns:
    """A function of the library: runs of so many values of so many bits."""

    count: int
    bits: int

    @property
    def operands(self) -> Sequence[int]:
        return [_OPERANDS + 3 * n for n in range(3)]

    def text(self, name: str) -> str:
        code, size = Function(name), self.bits // 8
        whole = f"<{self.count} x i32>"
        ranks = code.do(f"alloca {whole}, align 64")
        rows, runs = code.word(_ROWS), code.word(_RUNS)
        begins = [code.pointer(_OPERANDS + 3 * n) for n in range(3)]
        steps = [code.word(_OPERANDS + 3 * n + 2) for n in range(3)]

        def row(_: Value, *lines: Value) -> Sequence[Value]:
            def run(_: Value, to: Value, values: Value, indices: Value) -> Sequence[Value]:
                self._sort(code, ranks, to, values, indices)
                widths = (_RECORD, size, 4)
                return [
                    code.behind(place, str(self.count * width))
                    for place, width in zip((to, values, indices), widths, strict=True)
                ]

            code.loop("0", runs, "1", run, [("ptr", line) for line in lines])
            return [code.behind(p, s) for p, s in zip(lines, steps, strict=True)]

        code.loop("0", rows, "1", row, [("ptr", p) for p in begins])
        return code.text()

    def _sort(self, code: Function, ranks: Value, to: Value, values: Value, indices: Value) -> None:
        whole, tests = f"<{self.count} x i32>", f"<{self.count} x i1>"
        held = code.do(f"load <{self.count} x i{self.bits}>, ptr {values}, align 1")
        keys = _keys(code, held, self.bits, self.count)
        ones = ", ".join(["i32 -1"] * self.count)
        lower = code.do(f"add {whole} {keys}, <{ones}>")
        rank: Value = "zeroinitializer"
        for number in range(self.count):
            one = ", ".join([f"i32 {number}"] * self.count)
            spread = code.do(f"shufflevector {whole} {keys}, {whole} poison, {whole} <{one}>")
            # An equal one comes before those that stand behind it: they are greater by one.
            behind = ", ".join(f"i1 {int(lane > number)}" for lane in range(self.count))
            against = code.do(f"select {tests} <{behind}>, {whole} {lower}, {whole} {keys}")
            before = code.do(f"icmp sgt {whole} {spread}, {against}")
            more = code.do(f"zext {tests} {before} to {whole}")
            rank = code.do(f"add {whole} {rank}, {more}")
        code.act(f"store {whole} {rank}, ptr {ranks}, align 64")
        for number in range(self.count):
            value = _element(code, values, number, self.bits)
            index = _element(code, indices, number, 32)
            above = code.number("shl", code.do(f"zext i32 {index} to i64"), "32")
            record = code.number("or", code.do(f"zext i{self.bits} {value} to i64"), above)
            place = code.do(f"zext i32 {_element(code, ranks, number, 32)} to i64")
            there = code.do(f"getelementptr i64, ptr {to}, i64 {place}")
            code.act(f"store i64 {record}, ptr {there}, align 1")


def _element(code: Function, line: Value, number: int, bits: int) -> Value:
    place = code.do(f"getelementptr i{bits}, ptr {line}, i64 {number}")
    return code.do(f"load i{bits}, ptr {place}, align 1")


def _keys(code: Function, held: Value, bits: int, count: int = 0) -> Value:
    """Integers of 32 bits that order as values do; of a vector where a count is given."""

    def kind(width: int) -> str:
        return f"<{count} x i{width}>" if count else f"i{width}"

    def same(number: int) -> Value:
        return "<" + ", ".join([f"i32 {number}"] * count) + ">" if count else str(number)

    whole, tests = kind(32), f"<{count} x i1>" if count else "i1"
    wide = held if bits == 32 else code.do(f"sext {kind(bits)} {held} to {whole}")
    size = code.do(f"and {whole} {wide}, {same((1 << bits - 1) - 1)}")
    other = code.do(f"sub {whole} {same(0)}, {size}")
    below = code.do(f"icmp slt {whole} {wide}, {same(0)}")
    return code.do(f"select {tests} {below}, {whole} {other}, {whole} {size}")


@dataclass(frozen=True)
class Merged:
    """A function of the library: some lists into one, again and again."""

    lists: int
    bits: int  # of a value

    @property
    def operands(self) -> Sequence[int]:
        return [_TO, *(_LISTS + 4 * n for n in range(self.lists))]

    def text(self, name: str) -> str:
        code = Function(name)
        to, step = code.pointer(_TO), code.word(_TO + 2)
        places = [_LISTS + 4 * n for n in range(self.lists)]
        begins = [code.pointer(at) for at in places]
        steps = [code.word(at + 2) for at in places]
        sizes = [code.number("mul", code.word(at + 3), str(_RECORD)) for at in places]

        def once(_: Value, there: Value, *heads: Value) -> Sequence[Value]:
            self._merge(code, there, heads, sizes, step)
            behind = zip((there, *heads), (step, *steps), strict=True)
            return [code.behind(place, by) for place, by in behind]

        carried = [("ptr", each) for each in (to, *begins)]
        code.loop("0", code.word(_TIMES), "1", once, carried)
        return code.text()

    def _merge(
        self,
        code: Function,
        to: Value,
        begins: Sequence[Value],
        sizes: Sequence[Value],
        taken: Value,
    ) -> None:
        ends = [code.behind(b, s) for b, s in zip(begins, sizes, strict=True)]

        def key(place: Value, end: Value, safe: Value) -> Value:
            """Of the record at a place; a list that has come to its end is behind all others."""
            is_over = code.do(f"icmp eq ptr {place}, {end}")
            there = code.do(f"select i1 {is_over}, ptr {safe}, ptr {place}")
            found = _keys(code, code.do(f"load i{self.bits}, ptr {there}, align 1"), self.bits)
            long = code.do(f"sext i32 {found} to i64")
            return code.do(f"select i1 {is_over}, i64 {_LAST}, i64 {long}")

        def take(at: Value, *held: Value) -> Sequence[Value]:
            heads, keys = held[: self.lists], held[self.lists :]
            best, head, last, number = keys[0], heads[0], ends[0], "0"
            for n in range(1, self.lists):
                test = code.do(f"icmp sgt i64 {keys[n]}, {best}")
                best = code.do(f"select i1 {test}, i64 {keys[n]}, i64 {best}")
                head = code.do(f"select i1 {test}, ptr {heads[n]}, ptr {head}")
                last = code.do(f"select i1 {test}, ptr {ends[n]}, ptr {last}")
                number = code.do(f"select i1 {test}, i64 {n}, i64 {number}")
            record = code.do(f"load i64, ptr {head}, align 1")
            code.act(f"store i64 {record}, ptr {code.behind(to, at)}, align 1")
            after = code.behind(head, str(_RECORD))
            new = key(after, last, head)
            moved: list[Value] = []
            renewed: list[Value] = []
            for n in range(self.lists):
                test = code.do(f"icmp eq i64 {number}, {n}")
                moved.append(code.do(f"select i1 {test}, ptr {after}, ptr {heads[n]}"))
                renewed.append(code.do(f"select i1 {test}, i64 {new}, i64 {keys[n]}"))
            return [*moved, *renewed]

        firsts = [("ptr", begin) for begin in begins]
        firsts += [("i64", key(begin, end, begin)) for begin, end in zip(begins, ends, strict=True)]
        code.loop("0", taken, str(_RECORD), take, firsts)


_LAST = np.iinfo(np.int64).min


def sort(call: Call, idiom: Sort, given: Mapping[str, Any]) -> Native:
    """What the library has for runs of records."""
    from ptokit.engines.compiled.natives import Native, handed

    to, values, indices = (_rows(call, given[n]) for n in (idiom.to, idiom.values, idiom.indices))
    rows, columns = values.shape
    if columns % idiom.run or indices.shape[1] < columns or len(indices) not in (1, rows):
        raise Unsupported("runs that are cut")
    if to.shape != (rows, columns * _RECORD // to.itemsize) or to.strides[0] < to[0].nbytes:
        raise Unsupported("records that overlap")
    words = [rows, columns // idiom.run]
    words += [0, 0, to.strides[0], 0, 0, values.strides[0]]
    words += [0, 0, indices.strides[0] if len(indices) == rows else 0]
    labels = enumerate((idiom.to, idiom.values, idiom.indices))
    places = tuple(handed(call, _OPERANDS + 3 * n, label) for n, label in labels)
    return Native(SortedRuns(idiom.run, 8 * values.itemsize), tuple(words), places)


def merge(call: Call, idiom: Merge, given: Mapping[str, Any]) -> Native:
    """What the library has for lists of records."""
    from ptokit.engines.compiled.natives import Native, handed

    to, *lists = (_rows(call, given[name])[0] for name in (idiom.to, *idiom.lists))
    names, lengths, times = idiom.lists, [each.nbytes for each in lists], 1
    if idiom.block is not None:  # neighbouring blocks of one list
        names, size = idiom.lists * idiom.ways, idiom.block * _RECORD
        lengths, times = [size] * idiom.ways, lists[0].nbytes // (size * idiom.ways)
    total = sum(lengths)
    taken = total if idiom.block is not None else to.nbytes  # the rest of the lists is left
    if to.nbytes != taken * times or taken > total or taken % _RECORD or 0 in (taken, times):
        raise Unsupported("a result that is longer than the lists")
    if idiom.block is None and any(np.may_share_memory(to, each) for each in lists):
        raise Unsupported("a result that overlaps what is read")
    words, places = [times, 0, 0, taken], [handed(call, _TO, idiom.to)]
    behind = 0
    for n, (name, length) in enumerate(zip(names, lengths, strict=True)):
        at, operand, begin = handed(call, _LISTS + 4 * n, name)
        places.append((at, operand, begin + (behind if idiom.block is not None else 0)))
        words += [0, 0, total, length // _RECORD]
        behind += length
    return Native(Merged(len(names), 8 * to.itemsize), tuple(words), tuple(places))


def _rows(call: Call, array: Any) -> Array:
    if not isinstance(array, np.ndarray) or array.ndim != 2 or 0 in array.shape or call.copies:
        raise Unsupported("no rows and columns")
    if array.strides[1] != array.itemsize:
        raise Unsupported("rows that are not dense")
    return array
