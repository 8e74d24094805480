"""Loops over strided arrays: an expression element by element, for arrays of any layout.

The words of a call: the extents of its axes, then of each array its memory, the bytes in front of
it and the strides of its outer axes (and of the inner one where it is not dense), then the numbers.
The inner axis goes in vectors; it is the one along which the result lies densely.

Most calls of most programs are copies, of tiles of all types and layouts. So that few functions do
for all of them, they have one or three axes, and count the bytes of the inner one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import stored, widest
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import Arg, Expr
from ptokit.machine.access import Access

DENSE, ONE, APART = "dense", "one", "apart"  # how an array goes along the inner axis
VECTOR = 64  # bytes
_MOST_PIECES = 64  # of one instruction
_COPIED = 3  # axes that copies have at least, if more than one


def over_outer_axes(
    code: Function,
    places: Sequence[Value],
    strides: Sequence[Sequence[Value]],
    extents: Sequence[Value],
    line: Callable[[Sequence[Value]], None],
) -> None:
    """Loops over all axes but the last; `line` writes what is done along that, from where arrays
    begin there."""

    def outer(axis: int, begins: Sequence[Value]) -> None:
        if axis == len(extents) - 1:
            line(begins)
            return

        def body(_: Value, *moved: Value) -> Sequence[Value]:
            outer(axis + 1, moved)
            return [code.behind(p, s[axis]) for p, s in zip(moved, strides, strict=True)]

        code.loop("0", extents[axis], "1", body, [("ptr", p) for p in begins])

    outer(0, places)


@dataclass(frozen=True)
class Pointwise:
    """A function of the library: an expression over arrays that go in a certain way."""

    expr: Expr
    arrays: tuple[tuple[str, DType, str], ...]  # the result first: name, elements, way
    numbers: tuple[tuple[str, DType], ...]
    lanes: int
    axes: int  # loops, the one over vectors included
    is_even: bool  # the inner axis is made of whole vectors
    is_copy: bool = False  # dense along the inner axis, whose extent is given in bytes

    @property
    def operands(self) -> Sequence[int]:
        at, found = self.axes, list[int]()
        for _, _, way in self.arrays:
            found.append(at)
            at += 1 + self.axes + (way is APART)
        return found

    @property
    def size(self) -> int:
        """How many words it is handed."""
        apart = sum(way is APART for _, _, way in self.arrays)
        return self.axes + len(self.arrays) * (1 + self.axes) + apart + len(self.numbers)

    def text(self, name: str) -> str:
        code = Function(name)
        as_written = self._of_bytes() if self.is_copy else self
        as_written.write(code, lambda _: None)
        return code.text()

    def _of_bytes(self) -> Pointwise:
        """The same copy, whatever it copies."""
        (to, kind, _), (source, _, _) = self.arrays
        arrays = (to, dt.u8, DENSE), (source, dt.u8, DENSE)
        lanes = self.lanes * kind.itemsize
        return replace(self, expr=Arg(dt.u8, source), arrays=arrays, lanes=lanes)

    def laid(self, piece: Piece) -> Piece:
        """A piece with the extents and strides that the words have."""
        if not self.is_copy:
            return piece
        (*outer, inner), size = piece.extents, self.arrays[0][1].itemsize
        more = self.axes - len(piece.extents)
        strides = tuple((*(0,) * more, *each) for each in piece.strides)
        return Piece((*(1,) * more, *outer, inner * size), strides, piece.begins)

    def extents(self, words: Sequence[int]) -> tuple[int, ...]:
        """What the words of a call say: how many elements there are along each axis."""
        found = list(words[: self.axes])
        if self.is_copy:
            found[-1] //= self.arrays[0][1].itemsize
            while len(found) > 1 and found[0] == 1:
                del found[0]
        return tuple(found)

    def write(self, code: Function, meet: Callable[[Lanes], None]) -> None:
        """All loops; `meet` is called with the values of some lanes at a time."""
        extents = [code.word(i) for i in range(self.axes)]
        at, places, strides = self.axes, list[Value](), list[list[Value]]()
        for _, kind, way in self.arrays:
            places.append(code.pointer(at))
            steps = [code.word(at + 2 + axis) for axis in range(self.axes - 1)]
            at += 1 + self.axes
            inner = code.word(at) if way is APART else str(kind.itemsize)
            strides.append([*steps, inner])
            at += way is APART
        given: dict[str, Value] = {}
        for label, kind in self.numbers:
            given[label] = as_element(code, kind, code.word(at))
            at += 1

        def line(begins: Sequence[Value]) -> None:
            self._line(code, list(begins), [s[-1] for s in strides], extents[-1], given, meet)

        over_outer_axes(code, places, strides, extents, line)

    def _line(
        self,
        code: Function,
        begins: list[Value],
        steps: list[Value],
        count: Value,
        numbers: dict[str, Value],
        meet: Callable[[Lanes], None],
    ) -> None:
        """All elements along the inner axis: whole vectors, then what is left one by one."""
        if self.is_even:
            self._walk(code, begins, steps, "0", count, self.lanes, numbers, meet)
            return
        whole = code.number("and", count, str(-self.lanes))
        self._walk(code, begins, steps, "0", whole, self.lanes, numbers, meet)
        self._walk(code, begins, steps, whole, count, 1, numbers, meet)

    def _walk(
        self,
        code: Function,
        begins: list[Value],
        steps: list[Value],
        start: Value,
        stop: Value,
        lanes: int,
        numbers: dict[str, Value],
        meet: Callable[[Lanes], None],
    ) -> None:
        once = {
            name: spread(code, kind, lanes, code.do(f"load {stored(kind)}, ptr {p}, align 1"))
            for (name, kind, way), p in zip(self.arrays[1:], begins[1:], strict=True)
            if way is ONE
        }
        for name, kind in self.numbers:
            once[name] = spread(code, kind, lanes, numbers[name])

        def body(index: Value) -> Sequence[Value]:
            values = Lanes(code, lanes, {})
            loaded: dict[str, Value] = {}
            for (name, kind, way), p, step in zip(
                self.arrays[1:], begins[1:], steps[1:], strict=True
            ):
                value = once.get(name)
                if way is not ONE:
                    place = code.at(p, index, step)
                    value = code.do(f"load {values.vector(stored(kind))}, ptr {place}, align 1")
                assert value is not None
                loaded[name] = values.taken(kind, value)
            for name, kind in self.numbers:
                loaded[name] = values.taken(kind, once[name])
            found = Lanes(code, lanes, loaded)
            meet(found)
            result = found.given(self.arrays[0][1], found.value(self.expr))
            place = code.at(begins[0], index, steps[0])
            kind = found.vector(stored(self.arrays[0][1]))
            code.act(f"store {kind} {result}, ptr {place}, align 1")
            return ()

        code.loop(start, stop, str(lanes), body)


@dataclass(frozen=True)
class Doubted:
    """Loops whose results are undefined where a test holds: then the call is doubted.

    The last words say where the word of doubt lies.
    """

    loops: Pointwise
    test: Expr

    @property
    def operands(self) -> Sequence[int]:
        return self.loops.operands

    def text(self, name: str) -> str:
        code = Function(name)
        found = code.variable("i1", "false")

        def meet(lanes: Lanes) -> None:
            tests = (lanes.vector("i1"), lanes.value(self.test))
            here = code.call("i1", f"llvm.vector.reduce.or.v{lanes.count}i1", tests)
            held = code.do(f"or i1 {code.load(found, kind='i1')}, {here}")
            code.act(f"store i1 {held}, ptr {found}")

        self.loops.write(code, meet)
        doubt = code.pointer(self.loops.size)
        code.when(code.load(found, kind="i1"), lambda: code.store("1", doubt))
        return code.text()


def spread(code: Function, kind: DType, lanes: int, value: Value) -> Value:
    """One element in all lanes."""
    element = stored(kind)
    vector, zeros = f"<{lanes} x {element}>", f"<{lanes} x i32> zeroinitializer"
    first = code.do(f"insertelement {vector} poison, {element} {value}, i64 0")
    return code.do(f"shufflevector {vector} {first}, {vector} poison, {zeros}")


def as_element(code: Function, kind: DType, word: Value) -> Value:
    """A number of the arguments: the bits of an element in the low end of a word."""
    bits = kind.bits
    whole = word if bits == 64 else code.do(f"trunc i64 {word} to i{bits}")
    held = stored(kind)
    return whole if held == f"i{bits}" else code.do(f"bitcast i{bits} {whole} to {held}")


# ---- operands as axes ----------------------------------------------------------------------------


class Lines(NamedTuple):
    """Where the rows and the columns of an operand begin, in bytes past its place."""

    rows: Array
    columns: Array


class Piece(NamedTuple):
    """Some rows and columns along which all operands go evenly, as few axes as possible."""

    extents: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]  # of each operand, in bytes, outermost first
    begins: tuple[int, ...]  # of each operand


def lines_of(
    access: Access, shape: tuple[int, int], window: tuple[int, int] | None = None
) -> Lines:
    """The rows and columns of an access, of a window those from there on.

    What is shorter than the shape repeats.
    """
    pattern = access.pattern
    if pattern.dtype.is_packed or len(pattern.shape) == 1:
        raise Unsupported("elements that share bytes, or have no rows")
    counts = pattern.size
    if 0 in counts or 0 in shape:
        raise Unsupported("nothing to do")
    size = pattern.dtype.itemsize
    origin = pattern.axis_map.offset(pattern.rows.start, pattern.cols.start)
    offsets = pattern.axis_map.offsets[pattern.rows, pattern.cols]
    rows, columns = offsets[:, 0], offsets[0] - origin
    if window is not None:
        rows, columns = rows[window[0] :][: shape[0]], columns[window[1] :][: shape[1]]
        if (len(rows), len(columns)) != shape:
            raise Unsupported("a window that is cut")
        return Lines(rows * size, columns * size)
    return Lines(
        rows[np.arange(shape[0]) % counts[0]] * size,
        columns[np.arange(shape[1]) % counts[1]] * size,
    )


def column_of(access: Access, shape: tuple[int, int]) -> Lines:
    """One element for each row of a shape, in whatever direction they lie."""
    pattern = access.pattern
    if pattern.dtype.is_packed or pattern.size not in ((shape[0], 1), (1, shape[0])):
        raise Unsupported("not one element for each row")
    places = pattern.axis_map.offsets[pattern.rows, pattern.cols].reshape(-1)
    return Lines(places * pattern.dtype.itemsize, np.zeros(shape[1], np.int64))


class _Stretch(NamedTuple):
    start: int
    extents: tuple[int, int]
    strides: tuple[tuple[int, int], ...]  # of each operand


def _stretches(lines: Sequence[Array]) -> list[_Stretch]:
    """The places of all operands along one direction, as loops in loops of even steps."""
    table = np.stack(lines)
    count = table.shape[1]
    steps = np.diff(table, axis=1)
    runs: list[tuple[int, int]] = []  # start and length of even runs
    start = 0
    while start < count:
        stop = start + 1
        while stop < count and (steps[:, stop - 1] == steps[:, start]).all():
            stop += 1
        runs.append((start, stop - start))
        start = stop
        if len(runs) > _MOST_PIECES:
            raise Unsupported("operands in too many pieces")
    found: list[_Stretch] = []
    while runs:
        first, length = runs[0]
        inner = steps[:, first] if length > 1 else np.zeros(len(table), np.int64)
        outer, number = np.zeros(len(table), np.int64), 1
        while number < len(runs) and runs[number][1] == length:
            begin = runs[number][0]
            if length > 1 and not (steps[:, begin] == inner).all():
                break
            jump = table[:, begin] - table[:, runs[number - 1][0]]
            if number > 1 and not (jump == outer).all():
                break
            outer = jump
            number += 1
        pairs = tuple(zip(outer.tolist(), inner.tolist(), strict=True))
        found.append(_Stretch(first, (number, length), pairs))
        del runs[:number]
    return found


def pieces(operands: Sequence[Lines]) -> list[Piece]:
    """Operands of one shape, cut where one of them does not go on evenly; the first one decides
    which axis is the inner one."""
    down = _stretches([each.rows for each in operands])
    across = _stretches([each.columns for each in operands])
    if len(down) * len(across) > _MOST_PIECES:
        raise Unsupported("operands in too many pieces")
    found: list[Piece] = []
    for r in down:
        for c in across:
            axes = [
                (extent, tuple(strides[level] for strides in part.strides))
                for part in (r, c)
                for level, extent in enumerate(part.extents)
            ]
            begins = tuple(int(each.rows[r.start] + each.columns[c.start]) for each in operands)
            found.append(_merged(axes, begins))
    return found


def _merged(axes: list[tuple[int, tuple[int, ...]]], begins: tuple[int, ...]) -> Piece:
    live = sorted((a for a in axes if a[0] != 1), key=lambda axis: -abs(axis[1][0]))
    merged: list[tuple[int, tuple[int, ...]]] = []
    for extent, steps in live:
        if merged and all(h == s * extent for h, s in zip(merged[-1][1], steps, strict=True)):
            merged[-1] = merged[-1][0] * extent, steps
        else:
            merged.append((extent, steps))
    merged = merged or [(1, (0,) * len(begins))]
    extents, strides = zip(*merged, strict=True)
    return Piece(extents, tuple(zip(*strides, strict=True)), begins)


def pointwise(
    expr: Expr,
    names: Sequence[str],
    kinds: Sequence[DType],
    piece: Piece,
    numbers: Sequence[tuple[str, DType]],
    *,
    is_doubted: bool = False,
) -> Pointwise:
    """The function for operands that lie like these; the result is first."""
    ways: list[str] = []
    for kind, steps in zip(kinds, piece.strides, strict=True):
        inner = steps[-1]
        is_dense = inner == kind.itemsize or piece.extents[-1] == 1
        ways.append(DENSE if is_dense else APART if inner else ONE)
    if ways[0] is ONE:
        raise Unsupported("a result of one element that is written many times")
    lanes = 1
    if APART not in ways:
        most = max(1, VECTOR // min(widest(expr, *kinds), 4))
        lanes = 1 << min(most, max(1, piece.extents[-1])).bit_length() - 1
    listed = tuple(zip(names, kinds, ways, strict=True))
    is_even, axes = piece.extents[-1] % lanes == 0, len(piece.extents)
    is_copy = isinstance(expr, Arg) and ways == [DENSE, DENSE] and kinds[0] is kinds[1]
    if is_copy and is_even and not numbers and not is_doubted:
        axes = max(axes, _COPIED) if axes > 1 else 1
        return Pointwise(expr, listed, (), lanes, axes, is_even, is_copy)
    return Pointwise(expr, listed, tuple(numbers), lanes, axes, is_even)


def may_run(accesses: Sequence[Access], lines: Sequence[Lines], found: Sequence[Piece]) -> bool:
    """Whether the first operand is written where no other is still to be read.

    They lie apart, or are one and the same, or the result is narrower: then it is written behind
    what is read, as long as both go upwards.
    """
    first, place = accesses[0], lines[0]
    low, high = _span(first, place)
    for number, (other, where) in enumerate(zip(accesses[1:], lines[1:], strict=True), 1):
        begin, end = _span(other, where)
        if begin >= high or low >= end:
            continue
        if _start(first) != _start(other) or other.dtype.itemsize < first.dtype.itemsize:
            return False
        same = all(map(np.array_equal, where, place))
        if same and other.dtype.itemsize == first.dtype.itemsize:
            continue
        behind = all((w >= p).all() for w, p in zip(where, place, strict=True))
        if not behind or len(found) > 1 or not _goes_up(found[0], number):
            return False
    return True


def _goes_up(piece: Piece, operand: int) -> bool:
    """Whether the places of an operand and of the result grow with every step of the loops."""
    for strides in (piece.strides[0], piece.strides[operand]):
        inside = 0
        for extent, stride in zip(reversed(piece.extents), reversed(strides), strict=True):
            if extent > 1 and stride <= inside:
                return False
            inside += (extent - 1) * stride
    return True


def _start(access: Access) -> int:
    return access.memory.data.ctypes.data + access.offset


def _span(access: Access, lines: Lines) -> tuple[int, int]:
    begin, size = _start(access), access.dtype.itemsize
    least = int(lines.rows.min() + lines.columns.min())
    most = int(lines.rows.max() + lines.columns.max())
    return begin + least, begin + most + size
