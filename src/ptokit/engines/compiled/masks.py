"""Packed masks, one bit per element: comparisons that make them, and choices that follow them.

The words: rows and columns, then of the result and of each source, masks included, memory, offset
and the stride of a row; the bytes of a row of a mask that is made; the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import stored
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.loops import VECTOR, as_element, spread
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import BOOL, Arg, Expr, walk
from ptokit.isa.masks import Packed
from ptokit.isa.meaning import Each

if TYPE_CHECKING:
    from ptokit.engines.compiled.natives import Native
    from ptokit.machine.calls import Call

_FEWEST = 8  # lanes: a byte of a mask


@dataclass(frozen=True)
class Masked:
    """A function of the library: an expression over rows of elements and of bits."""

    expr: Expr  # of the result; bits where it is a comparison
    sources: tuple[tuple[str, DType], ...]  # bits where they are BOOL
    numbers: tuple[tuple[str, DType], ...]
    lanes: int

    @property
    def operands(self) -> Sequence[int]:
        return [2 + 3 * n for n in range(1 + len(self.sources))]

    def text(self, name: str) -> str:
        code = Function(name)
        rows, columns, at = code.word(0), code.word(1), 2
        begins: list[Value] = []
        strides: list[Value] = []
        for _ in range(1 + len(self.sources)):
            begins.append(code.pointer(at))
            strides.append(code.word(at + 2))
            at += 3
        width = code.word(at)
        words = [code.word(at + 1 + n) for n in range(len(self.numbers))]
        whole = code.number("and", columns, str(-self.lanes))

        def groups(start: Value, stop: Value, lanes: int, lines: Sequence[Value]) -> None:
            given = {
                label: spread(code, kind, lanes, as_element(code, kind, word))
                for (label, kind), word in zip(self.numbers, words, strict=True)
            }
            step = str(lanes)
            code.loop(start, stop, step, lambda i: self._group(code, i, lines, given, lanes))

        def row(_: Value, *lines: Value) -> Sequence[Value]:
            groups("0", whole, self.lanes, lines)
            if self.expr.kind is not BOOL:  # a mask that is made is made of whole bytes
                groups(whole, columns, 1, lines)
            if self.expr.kind is BOOL:
                code.loop(code.number("lshr", columns, "3"), width, "1", lambda i: rest(i, lines))
            return [code.behind(p, s) for p, s in zip(lines, strides, strict=True)]

        def rest(index: Value, lines: Sequence[Value]) -> Sequence[Value]:
            code.act(f"store i8 0, ptr {code.behind(lines[0], index)}")
            return ()

        code.loop("0", rows, "1", row, [("ptr", p) for p in begins])
        return code.text()

    def _group(
        self,
        code: Function,
        index: Value,
        lines: Sequence[Value],
        numbers: Mapping[str, Value],
        lanes: int,
    ) -> Sequence[Value]:
        plain = Lanes(code, lanes, {})

        def place(line: Value, kind: DType) -> Value:
            if kind is BOOL:
                return code.behind(line, code.number("lshr", index, "3"))
            return code.at(line, index, str(kind.itemsize))

        bits, tests = f"i{max(lanes, _FEWEST)}", plain.vector("i1")
        given: dict[str, Value] = {}
        for (label, kind), line in zip(self.sources, lines[1:], strict=True):
            held = bits if kind is BOOL else plain.vector(stored(kind))
            value = code.do(f"load {held}, ptr {place(line, kind)}, align 1")
            if kind is BOOL and lanes == 1:
                bit = code.do(f"trunc i64 {code.number('and', index, '7')} to {bits}")
                last = code.do(f"trunc {bits} {code.do(f'lshr {bits} {value}, {bit}')} to i1")
                given[label] = code.do(f"bitcast i1 {last} to {tests}")
            elif kind is BOOL:
                given[label] = code.do(f"bitcast {bits} {value} to {tests}")
            else:
                given[label] = plain.taken(kind, value)
        given |= {label: plain.taken(kind, numbers[label]) for label, kind in self.numbers}
        kind, found = self.expr.kind, Lanes(code, lanes, given)
        result, held = found.value(self.expr), bits
        if kind is BOOL:
            result = code.do(f"bitcast {tests} {result} to {bits}")
        else:
            result, held = found.given(kind, result), plain.vector(stored(kind))
        code.act(f"store {held} {result}, ptr {place(lines[0], kind)}, align 1")
        return ()


def native(call: Call, given: Mapping[str, Any]) -> Native:
    """What the library has for a call that makes a mask or follows one."""
    from ptokit.engines.compiled.natives import Native, bits_of, handed

    meaning, ops = call.insn.means, call.ops
    assert meaning is not None
    form = meaning.form
    (expr,), (to,) = meaning.expressions(ops), meaning.outs
    if call.copies or (isinstance(form, Each) and (form.early or form.repeats)):
        raise Unsupported("rows that are not dense, or repeat")
    if isinstance(form, Packed) and (form.inverts(ops) or form.places(ops) is not None):
        raise Unsupported("bits that are not where the elements are")
    args = list(dict.fromkeys(node for node in walk(expr) if isinstance(node, Arg)))
    sources = [arg for arg in args if not arg.is_number]
    numbers = [arg for arg in args if arg.is_number]
    makes = expr.kind is BOOL
    shaped = given[sources[0].name] if makes else given[to]
    rows, columns = _shape(shaped)
    sizes = [arg.kind.itemsize for arg in sources if arg.kind is not BOOL]
    sizes += [] if makes else [expr.kind.itemsize]
    lanes = max(VECTOR // max(sizes), _FEWEST)
    if makes:
        while columns % lanes:
            lanes //= 2
        if lanes < _FEWEST:
            raise Unsupported("a part of a byte")
    words: list[int] = [rows, columns]
    for label, kind in ((to, expr.kind), *((arg.name, arg.kind) for arg in sources)):
        array: Array = given[label]
        needed = -(-columns // 8) if kind is BOOL else columns
        size = 1 if kind is BOOL else kind.itemsize
        found = _shape(array)
        is_wide = found[1] >= needed if kind is BOOL else found[1] == needed
        if found[0] != rows or not is_wide or array.strides[1] != size or array.itemsize != size:
            raise Unsupported("operands of other shapes")
        if array is not given[to] and not _apart_or_same(given[to], array):
            raise Unsupported("a result that overlaps what is read")
        words += [0, 0, array.strides[0]]
    width = given[to].shape[1] if makes else 0
    if makes and given[to].strides[0] < width:
        raise Unsupported("rows of a mask that overlap")
    kernel = Masked(
        expr,
        tuple((arg.name, arg.kind) for arg in sources),
        tuple((arg.name, arg.kind) for arg in numbers),
        lanes,
    )
    tail = [bits_of(given[arg.name], arg.kind) for arg in numbers]
    labels = [to, *(arg.name for arg in sources)]
    places = tuple(handed(call, 2 + 3 * n, label) for n, label in enumerate(labels))
    return Native(kernel, (*words, width, *tail), places)


def _shape(array: Any) -> tuple[int, int]:
    if not isinstance(array, np.ndarray) or array.ndim != 2 or 0 in array.shape:
        raise Unsupported("no rows and columns")
    return array.shape[0], array.shape[1]


def _apart_or_same(result: Array, source: Array) -> bool:
    (low, high), (begin, end) = map(np.lib.array_utils.byte_bounds, (result, source))
    is_same = (low, result.strides, result.itemsize) == (begin, source.strides, source.itemsize)
    return is_same or begin >= high or low >= end
