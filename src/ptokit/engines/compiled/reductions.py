"""Reductions of rows and columns: the extreme element, its place, or a sum in the order that the
target has.

The words: rows and columns, then of result and source memory, offset and the stride of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.engines.compiled.conversions import converted
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import stored
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.loops import spread
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import Apply, Arg, Expr, apply
from ptokit.isa.folds import (
    LEFT_TO_RIGHT,
    PAIRED_REGISTERS,
    REGISTER_BYTES,
    REGISTERS,
    ROW_BY_ROW,
    Order,
    tree,
)
from ptokit.isa.meaning import ArgReduce, Reduce

if TYPE_CHECKING:
    from ptokit.engines.compiled.natives import Kernel, Native
    from ptokit.machine.calls import Call

ROWS, COLUMNS, TO, SOURCE = 0, 1, 2, 5


@dataclass(frozen=True)
class Extreme:
    """The largest or smallest element of each row, as a scan with a strict comparison finds it."""

    kind: DType
    largest: bool
    lanes: int
    is_even: bool  # rows are made of whole vectors

    @property
    def operands(self) -> Sequence[int]:
        return TO, SOURCE

    def text(self, name: str) -> str:
        code = Function(name)
        to, source = code.pointer(TO), code.pointer(SOURCE)
        steps = code.word(TO + 2), code.word(SOURCE + 2)
        columns = code.word(COLUMNS)

        def row(_: Value, there: Value, line: Value) -> Sequence[Value]:
            self._row(code, there, line, columns)
            return [code.behind(there, steps[0]), code.behind(line, steps[1])]

        code.loop("0", code.word(ROWS), "1", row, [("ptr", to), ("ptr", source)])
        return code.text()

    def _row(self, code: Function, to: Value, line: Value, columns: Value) -> None:
        element, wide = stored(self.kind), f"<{self.lanes} x {stored(self.kind)}>"
        whole = columns if self.is_even else code.number("and", columns, str(-self.lanes))

        def load(kind: str, index: Value) -> Value:
            place = code.do(f"getelementptr {element}, ptr {line}, i64 {index}")
            return code.do(f"load {kind}, ptr {place}, align 1")

        (found,) = code.loop(
            "0", whole, str(self.lanes),
            lambda i, held: [self.combined(code, held, [load(wide, i)], self.lanes)],
            [self.begin(code, self.lanes)],
        )  # fmt: skip
        found = self._best(code, found, self.lanes)
        if not self.is_even:
            (found,) = code.loop(
                whole, columns, "1",
                lambda i, held: [self._better(code, load(element, i), held)],
                [(element, found)],
            )  # fmt: skip
        self._settle(code, found, to, line, columns)

    # What a loop over the vectors of a row is made of: `fusion.py` has loops that do more.

    @property
    def vectors(self) -> int:
        """How many vectors are combined at a time."""
        return 1

    def begin(self, code: Function, lanes: int) -> tuple[str, Value]:
        """What is held in front of the first vector."""
        worst = "0xFFF0000000000000" if self.largest else "0x7FF0000000000000"
        wide, element = Lanes(code, lanes, {}), stored(self.kind)
        if element == "half":
            worst = "0xHFC00" if self.largest else "0xH7C00"
        return wide.vector(element), wide.same(element, worst)

    def combined(self, code: Function, held: Value, values: Sequence[Value], lanes: int) -> Value:
        """What is held behind some vectors."""
        for value in values:
            held = self._better(code, value, held, lanes)
        return held

    def _better(self, code: Function, value: Value, held: Value, lanes: int = 0) -> Value:
        """The better of two vectors, lane by lane, or of two numbers; of equal ones the second."""
        # NaN compares as no better, whichever side it is on; one in front comes back below.
        kind, test, how = stored(self.kind), "i1", "ogt" if self.largest else "olt"
        if lanes:
            kind, test = f"<{lanes} x {kind}>", f"<{lanes} x {test}>"
        is_better = code.do(f"fcmp {how} {kind} {value}, {held}")
        return code.do(f"select {test} {is_better}, {kind} {value}, {kind} {held}")

    def leave(
        self, code: Function, found: Value, lanes: int, to: Value, line: Value, columns: Value
    ) -> None:
        """Store the result of a row that lies there."""
        self._settle(code, self._best(code, found, lanes), to, line, columns)

    def _best(self, code: Function, found: Value, lanes: int) -> Value:
        """The best lane of all: against those so far away, then half as far."""
        kind, distance = f"<{lanes} x {stored(self.kind)}>", lanes // 2
        while distance:
            mask = ", ".join(f"i32 {lane ^ distance}" for lane in range(lanes))
            order = f"<{lanes} x i32> <{mask}>"
            other = code.do(f"shufflevector {kind} {found}, {kind} poison, {order}")
            found = self._better(code, found, other, lanes)
            distance //= 2
        return code.do(f"extractelement {kind} {found}, i64 0")

    def _settle(self, code: Function, found: Value, to: Value, line: Value, columns: Value) -> None:
        """Store the extreme, but a NaN in front and the first of zeros come first."""
        element = stored(self.kind)

        def load(index: Value) -> Value:
            place = code.do(f"getelementptr {element}, ptr {line}, i64 {index}")
            return code.do(f"load {element}, ptr {place}, align 1")

        first = load("0")
        odd = code.do(f"fcmp uno {element} {first}, {first}")
        found = code.do(f"select i1 {odd}, {element} {first}, {element} {found}")
        code.act(f"store {element} {found}, ptr {to}, align 1")
        is_zero = code.do(f"fcmp oeq {element} {found}, 0.0")

        def first_zero() -> None:
            """Among zeros of both signs the first one counts: backwards, each overwrites."""

            def back(i: Value) -> Sequence[Value]:
                place = code.number("sub", code.number("sub", columns, "1"), i)
                value = load(place)
                test = code.do(f"fcmp oeq {element} {value}, 0.0")
                code.when(test, lambda: code.act(f"store {element} {value}, ptr {to}, align 1"))
                return ()

            code.loop("0", columns, "1", back)

        code.when(is_zero, first_zero)


@dataclass(frozen=True)
class RegisterSum:
    """Sums of rows, a register at a time: neighbours first, then neighbouring sums, onto zero.

    Or registers are added lane by lane before, onto what no sum is changed by.
    """

    kind: DType
    by_lane: bool = False

    @property
    def operands(self) -> Sequence[int]:
        return TO, SOURCE

    def text(self, name: str) -> str:
        code = Function(name)
        to, source = code.pointer(TO), code.pointer(SOURCE)
        steps = code.word(TO + 2), code.word(SOURCE + 2)
        columns, lanes = code.word(COLUMNS), self.lanes
        element = stored(self.kind)

        def row(_: Value, there: Value, line: Value) -> Sequence[Value]:
            def register(i: Value, total: Value) -> Sequence[Value]:
                values: list[Value] = []
                for first in range(0, lanes * self.vectors, lanes):
                    index = code.number("add", i, str(first))
                    place = code.do(f"getelementptr {element}, ptr {line}, i64 {index}")
                    values.append(code.do(f"load <{lanes} x {element}>, ptr {place}, align 1"))
                return [self.combined(code, total, values, lanes)]

            first = [self.begin(code, lanes)]
            (total,) = code.loop("0", columns, str(lanes * self.vectors), register, first)
            self.leave(code, total, lanes, there, line, columns)
            return [code.behind(there, steps[0]), code.behind(line, steps[1])]

        code.loop("0", code.word(ROWS), "1", row, [("ptr", to), ("ptr", source)])
        return code.text()

    @property
    def lanes(self) -> int:
        return REGISTER_BYTES // self.vectors // self.kind.itemsize

    @property
    def vectors(self) -> int:
        """How many vectors are combined at a time: a register."""
        return 4

    def begin(self, code: Function, lanes: int) -> tuple[str, Value]:
        """What is held in front of the first vector."""
        if self.by_lane:
            wide = Lanes(code, lanes * self.vectors, {})
            return wide.vector(stored(self.kind)), wide.same(stored(self.kind), "-0.0")
        return stored(self.kind), "0.0"

    def combined(self, code: Function, held: Value, values: Sequence[Value], lanes: int) -> Value:
        """What is held behind the vectors of a register."""
        if self.by_lane:
            wide = f"<{lanes * self.vectors} x {stored(self.kind)}>"
            return code.do(f"fadd {wide} {held}, {_side_by_side(code, self.kind, values, lanes)}")
        sum_ = neighbours(code, stored(self.kind), values, lanes)
        return code.do(f"fadd {stored(self.kind)} {held}, {sum_}")

    def leave(
        self, code: Function, found: Value, lanes: int, to: Value, line: Value, columns: Value
    ) -> None:
        """Store the result of a row."""
        element = stored(self.kind)
        if self.by_lane:
            wide, parts = f"<{lanes * self.vectors} x {element}>", list[Value]()
            for first in range(0, lanes * self.vectors, lanes):
                mask = ", ".join(f"i32 {first + lane}" for lane in range(lanes))
                shape = f"<{lanes} x i32> <{mask}>"
                parts.append(code.do(f"shufflevector {wide} {found}, {wide} poison, {shape}"))
            found = neighbours(code, element, parts, lanes)
        code.act(f"store {element} {found}, ptr {to}, align 1")


def _side_by_side(code: Function, kind: DType, vectors: Sequence[Value], lanes: int) -> Value:
    """Vectors as one, that is as long as all of them."""
    while len(vectors) > 1:
        vector = f"<{lanes} x {stored(kind)}>"
        lanes *= 2
        mask = ", ".join(f"i32 {lane}" for lane in range(lanes))
        vectors = [
            code.do(f"shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{mask}>")
            for a, b in zip(vectors[0::2], vectors[1::2], strict=True)
        ]
    return vectors[0]


def neighbours(code: Function, element: str, vectors: Sequence[Value], lanes: int) -> Value:
    """The sum of all lanes of four vectors: neighbours first, then neighbouring sums.

    Lanes change places inside of blocks of four, which takes processors no time, until each block
    holds the sums of its lanes in each of the vectors. Then blocks are added, and at last what is
    in them: sums that stand twice are added twice, and nobody looks at the second.
    """
    vector = f"<{lanes} x {element}>"

    def shuffled(a: Value, b: Value, order: Sequence[int]) -> Value:
        mask = ", ".join(f"i32 {lane}" for lane in order)
        return code.do(f"shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{mask}>")

    def every_other(a: Value, b: Value, first: int) -> Value:
        blocks, pair = range(0, lanes, 4), (first, first + 2)
        order = [side + block + n for block in blocks for side in (0, lanes) for n in pair]
        return shuffled(a, b, order)

    def paired(a: Value, b: Value) -> Value:
        return code.do(f"fadd {vector} {every_other(a, b, 0)}, {every_other(a, b, 1)}")

    first, second, third, fourth = vectors
    found = paired(paired(first, second), paired(third, fourth))
    distances = [1 << n for n in range(2, lanes.bit_length() - 1)]
    for distance in (*distances, 1, 2):
        other = shuffled(found, "poison", [lane ^ distance for lane in range(lanes)])
        found = code.do(f"fadd {vector} {found}, {other}")
    return code.do(f"extractelement {vector} {found}, i64 0")


@dataclass(frozen=True)
class Fold:
    """Sums and products in the order of a target, written out for so many elements.

    Along a row the elements are single numbers; along a column they are rows, of which some lanes
    at a time are combined.
    """

    step: Expr  # of `held` and `element`
    order: Order
    count: int  # elements that meet
    source: DType
    wide: DType  # in which they are combined
    to: DType
    identity: float
    lanes: int  # that are combined side by side

    @property
    def operands(self) -> Sequence[int]:
        return TO, SOURCE

    def text(self, name: str) -> str:
        code = Function(name)
        to, source = code.pointer(TO), code.pointer(SOURCE)
        steps = code.word(TO + 2), code.word(SOURCE + 2)
        along = steps[1] if self.order.axis == 0 else str(self.source.itemsize)
        lines, size = code.word(ROWS), (self.to.itemsize, self.source.itemsize)

        def walk(first: Value, last: Value, lanes: int) -> None:
            def line(i: Value) -> Sequence[Value]:
                across = steps if self.order.axis else [str(n) for n in size]
                there = code.at(to, i, across[0])
                begin = code.at(source, i, across[1])
                self._line(Lanes(code, lanes, {}), there, begin, along)
                return ()

            code.loop(first, last, str(lanes), line)

        whole = code.number("and", lines, str(-self.lanes))
        if self.lanes > 1:
            walk("0", whole, self.lanes)
        walk(whole if self.lanes > 1 else "0", lines, 1)
        return code.text()

    def _line(self, lanes: Lanes, to: Value, begin: Value, along: Value) -> None:
        code = lanes.code

        def load(number: int) -> Value:
            place = code.at(begin, str(number), along)
            value = code.do(f"load {lanes.vector(stored(self.source))}, ptr {place}, align 1")
            return self._cast(lanes, lanes.taken(self.source, value), self.source, self.wide)

        def combine(node: Any, kind: DType) -> Value:
            match node:
                case None:
                    return lanes.constant(kind, self.identity)
                case int():
                    return load(node)
                case (str() as name, inner):
                    after = next(k for k in (dt.f32, dt.f16, dt.bf16) if k.name == name)
                    before = self.wide if after is dt.f32 else dt.f32
                    return self._cast(lanes, combine(inner, before), before, after)
                case (left, right):
                    rights = [right]
                    while isinstance(left, tuple) and not isinstance(left[0], str):
                        left, right = left  # a long sum leans to the left
                        rights.append(right)
                    value = combine(left, kind)
                    for right in reversed(rights):
                        pair = {"held": value, "element": combine(right, kind)}
                        value = Lanes(code, lanes.count, pair).value(self._step_of(kind))
                    return value
                case _:
                    raise Unsupported(f"{node} in an order")

        found = combine(tree(self.order, self.wide, self.count), self.wide)
        found = lanes.given(self.to, self._cast(lanes, found, self.wide, self.to))
        code.act(f"store {lanes.vector(stored(self.to))} {found}, ptr {to}, align 1")

    def _step_of(self, kind: DType) -> Expr:
        """The step; part of an order may be done in another type."""
        if kind is self.wide:
            return self.step
        assert isinstance(self.step, Apply)
        return apply(self.step.name, Arg(kind, "held"), Arg(kind, "element"))

    @staticmethod
    def _cast(lanes: Lanes, value: Value, before: DType, after: DType) -> Value:
        return converted(lanes, value, before, after, RoundMode.CAST_RINT, SaturationMode.OFF)


@dataclass(frozen=True)
class Place:
    """Where in each line the element lies that a scan from the first one on is left with.

    Lines are rows, or columns, of which some lanes at a time are scanned. The words: how many lines
    and how long, then of the indices, the source and the elements, where these are wanted, memory,
    offset and the way from line to line; at last the way along a line of the source.
    """

    takes: tuple[Expr, Expr]  # whether the next element is held instead, and whether its index is
    kind: DType
    index: DType
    has_values: bool
    lanes: int

    @property
    def operands(self) -> Sequence[int]:
        return [TO + 3 * n for n in range(3 if self.has_values else 2)]

    def text(self, name: str) -> str:
        code = Function(name)
        count, length = code.word(ROWS), code.word(COLUMNS)
        begins = [code.pointer(at) for at in self.operands]
        steps = [code.word(at + 2) for at in self.operands]
        along = code.word(self.operands[-1] + 3)

        def walk(first: Value, last: Value, lanes: int) -> None:
            def line(number: Value) -> Sequence[Value]:
                moved = (code.number("mul", number, step) for step in steps)
                places = [code.behind(p, by) for p, by in zip(begins, moved, strict=True)]
                self._line(Lanes(code, lanes, {}), places, length, along)
                return ()

            code.loop(first, last, str(lanes), line)

        whole = code.number("and", count, str(-self.lanes))
        walk("0", whole, self.lanes)
        if self.lanes > 1:
            walk(whole, count, 1)
        return code.text()

    def _line(self, lanes: Lanes, places: Sequence[Value], length: Value, along: Value) -> None:
        code, numbers, tests = lanes.code, lanes.vector("i32"), lanes.vector("i1")
        vector = lanes.vector(stored(self.kind))

        def load(number: Value) -> Value:
            place = code.at(places[1], number, along)
            return code.do(f"load {vector}, ptr {place}, align 1")

        def scan(number: Value, held: Value, place: Value) -> Sequence[Value]:
            new = load(number)
            pair = {"held": lanes.taken(self.kind, held), "element": lanes.taken(self.kind, new)}
            found = Lanes(code, lanes.count, pair)
            better, moved = (found.value(each) for each in self.takes)
            here = spread(code, dt.i32, lanes.count, code.do(f"trunc i64 {number} to i32"))
            return [
                code.do(f"select {tests} {better}, {vector} {new}, {vector} {held}"),
                code.do(f"select {tests} {moved}, {numbers} {here}, {numbers} {place}"),
            ]

        first = [(vector, load("0")), (numbers, lanes.integer(32, 0))]
        value, place = code.loop("1", length, "1", scan, first)
        result, bits = lanes.vector(stored(self.index)), self.index.bits
        if bits != 32:
            how = "trunc" if bits < 32 else "zext"
            place = code.do(f"{how} {numbers} {place} to {result}")
        code.act(f"store {result} {place}, ptr {places[0]}, align 1")
        if self.has_values:
            code.act(f"store {vector} {value}, ptr {places[2]}, align 1")


def place(call: Call, given: dict[str, Any]) -> Native:
    """What the library has for the place of an extreme element of each row or column."""
    from ptokit.engines.compiled.natives import Native, handed

    meaning, ops = call.insn.means, call.ops
    assert meaning is not None
    form, exprs = meaning.form, meaning.expressions(ops)
    assert isinstance(form, ArgReduce)
    value, index = (given.get(name) for name in meaning.outs)
    source, axis = given["src"], form.axis
    if index is None or source.ndim != 2 or 0 in source.shape:
        raise Unsupported("no rows and columns")
    count, length = source.shape if axis else source.shape[::-1]
    numbers = np.arange(length)
    if form.kept is not None and not np.array_equal(form.kept(numbers, ops), numbers):
        raise Unsupported("indices that change on the way")
    labels = [meaning.outs[1], "src", *([] if value is None else meaning.outs[:1])]
    words, is_dense = [count, length], True
    for label in labels:
        array = given[label]
        wanted = source.shape if label == "src" else (count, 1) if axis else (1, count)
        if array.shape != wanted:
            raise Unsupported("results that are no line")
        if label != "src" and np.may_share_memory(array, source):
            raise Unsupported("results that lie in the source")
        words += [0, 0, array.strides[1 - axis]]
        is_dense = is_dense and array.strides[1 - axis] == array.itemsize
    if value is not None and (np.may_share_memory(value, index) or value.dtype != source.dtype):
        raise Unsupported("results that overlap, or of another type")
    lanes = 1 << min(16, count).bit_length() - 1 if is_dense else 1
    takes = exprs[0], exprs[-1]
    kernel = Place(takes, ops.src.dtype, ops.dstIdx.dtype, value is not None, lanes)
    places = tuple(handed(call, TO + 3 * n, label) for n, label in enumerate(labels))
    return Native(kernel, (*words, source.strides[axis]), places)


_MOST = 2048  # elements whose order is written out
_IN_A_ROW = 3 * REGISTER_BYTES  # of a row in registers that are paired: up to three, one by one


def native(call: Call, given: dict[str, Any]) -> Native:
    """What the library has for a reduction."""
    from ptokit.engines.compiled.natives import Native, handed

    meaning, ops = call.insn.means, call.ops
    assert meaning is not None
    form = meaning.form
    assert isinstance(form, Reduce)
    (step,) = meaning.expressions(ops)
    (label,) = meaning.outs
    to, source, kind, result = given[label], given["src"], ops.src.dtype, ops.dst.dtype
    if source.ndim != 2 or source.strides[1] != kind.itemsize or 0 in source.shape:
        raise Unsupported("rows that are not dense")
    rows, columns = source.shape
    lines, count = (rows, columns) if form.axis else (columns, rows)
    if to.ndim != 2 or to.shape[0 if form.axis else 1] != lines:
        raise Unsupported("results that are no line")
    if not form.axis and to.strides[1] != result.itemsize:
        raise Unsupported("results that are not dense")
    order = form.order(ops)
    if order is None:
        if kind is not result:
            raise Unsupported("extremes of another type")
        if form.axis and kind in (dt.f32, dt.f16):
            held = Arg(kind, "held")
            largest = isinstance(step, Apply) and step.parts[0] == (held < Arg(kind, "element"))
            lanes = 1 << min(64 // kind.itemsize, columns).bit_length() - 1
            kernel: Kernel = Extreme(kind, largest, lanes, not columns % lanes)
        else:
            order = LEFT_TO_RIGHT if form.axis else ROW_BY_ROW
            kernel = _fold(step, order, count, (kind, kind, kind), 0, columns)
    else:
        assert isinstance(step, Apply)
        wide = form.accumulates(ops)
        if wide.is_integer:  # every order gives the same bits
            order = LEFT_TO_RIGHT if form.axis else ROW_BY_ROW
        registers = columns % (REGISTER_BYTES // kind.itemsize) == 0
        is_sum = step.name == "add" and kind is wide is result is dt.f32
        if order is REGISTERS and is_sum and registers:
            kernel = RegisterSum(kind)
        elif order is PAIRED_REGISTERS and is_sum and registers and columns * 4 <= _IN_A_ROW:
            kernel = RegisterSum(kind, by_lane=True)
        else:
            widened = apply(step.name, Arg(wide, "held"), Arg(wide, "element"))
            kinds = kind, wide, result
            kernel = _fold(widened, order, count, kinds, form.identity, columns)
    words = (lines, columns, 0, 0, to.strides[0], 0, 0, source.strides[0])
    return Native(kernel, words, (handed(call, TO, label), handed(call, SOURCE, "src")))


def _fold(
    step: Expr,
    order: Order,
    count: int,
    kinds: tuple[DType, DType, DType],
    identity: float,
    columns: int,
) -> Fold:
    if count > _MOST:
        raise Unsupported(f"an order of {count} elements")
    lanes = 1 if order.axis else 1 << min(16, columns).bit_length() - 1
    return Fold(step, order, count, *kinds, identity, lanes)
