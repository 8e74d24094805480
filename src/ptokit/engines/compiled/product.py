"""Matrix products over boxed tiles: operands are packed into vectors, then multiplied in registers.

Both operands lie in boxes whose rows along k are dense. The left one is written out as float rows,
the right one as panels of sixteen columns, transposed in registers; then each step takes four rows
times four panels with their sums in registers. Sums go along k from the first element on, and what
the product is added to is added last.

Operands that lie as plain matrices are simpler to pack, and where `forwarding.py` finds the one
that a tile was copied from, it is taken instead: rows of floats are read where they lie, and rows
of the right operand are cut into panels without being transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.compiled.conversions import converted
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import stored
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.text import Function, Value
from ptokit.machine.access import Access

PANEL = 16  # columns
ROWS, PANELS = 4, 4  # of a step
_REAL = f"<{PANEL} x float>"
_FOUR = 4  # vectors that are transposed at a time
_PAGE = 4096  # bytes: rows that lie so far apart take each other's places in the caches

# The words: rows, rows of a box, whole boxes along k, panels; then of each operand memory, offset
# and strides in bytes. The packed operands lie in the scratch memory of the library. The last words
# are truths: whether each of them is to be packed, and whether sums are added to what is there:
# such things differ from call to call, and each combination would be a function to compile.
M, M_INNER, K, N = range(4)
TO, LEFT, RIGHT, START, LEFT_ROWS, PACKED = 4, 8, 13, 17, 20, 22
PACKS_LEFT, PACKS_RIGHT, ADDS = 24, 25, 26


@dataclass(frozen=True)
class Multiply:
    """A function of the library: element types, the length of a box along k, sizes of steps."""

    left: DType
    right: DType
    to: DType
    box: int
    tail: int  # elements of a last box along k that is not whole
    is_from_row: bool  # the sums start from a row
    heights: tuple[int, ...]  # of the steps that its rows are done in, large ones first
    widths: tuple[int, ...]  # and of those that its panels are done in
    is_even: bool  # rows of the left operand follow each other in even steps
    is_read_in_place: bool  # they are rows of floats already
    is_wide: bool = False  # the right operand is dense along n instead, a row for each k

    @property
    def operands(self) -> Sequence[int]:
        return (TO, LEFT, RIGHT, START) if self.is_from_row else (TO, LEFT, RIGHT)

    def text(self, name: str) -> str:
        code = Function(name)
        if not self.is_read_in_place:
            code.when(_is_set(code, PACKS_LEFT), lambda: code.part(self._pack_left))
        code.when(_is_set(code, PACKS_RIGHT), lambda: code.part(self._pack_right))
        code.part(self._multiply)
        return code.text()

    def _depth(self, code: Function) -> Value:
        """Elements along k, those included that fill the last box."""
        boxes = code.number("add", code.word(K), str(int(self.tail > 0)))
        return code.number("mul", boxes, str(self.box))

    # ---- packing ---------------------------------------------------------------------------------

    def _pack_left(self, code: Function) -> None:
        """Rows of floats, one after the other; the words say where."""
        depth = self._depth(code)
        source, rows = code.pointer(LEFT), code.pointer(LEFT_ROWS)
        m1, m0, k1 = (code.word(LEFT + 2 + i) for i in range(3))
        inner, boxes = code.word(M_INNER), code.word(K)
        pitch = code.number("mul", depth, "4")
        lanes = Lanes(code, self.box, {})

        def line(i: Value, at: Value) -> Sequence[Value]:
            if self.is_even:
                begin = code.stepped(source, i, m0)
            else:
                outer = code.number("mul", code.number("sdiv", i, inner), m1)
                begin = code.behind(source, outer)
                begin = code.behind(begin, code.number("mul", code.number("srem", i, inner), m0))

            def box(b: Value, there: Value, count: int = self.box) -> Sequence[Value]:
                place = code.stepped(begin, b, k1)
                value = _loaded(lanes, self.left, place, count)
                code.act(f"store {lanes.vector('float')} {value}, ptr {there}, align 4")
                return [code.behind(there, str(4 * self.box))]

            (end,) = code.loop("0", boxes, "1", box, [("ptr", at)])
            if self.tail:
                box(boxes, end, self.tail)
            return [code.behind(at, pitch)]

        code.loop("0", code.word(M), "1", line, [("ptr", rows)])

    def _pack_right(self, code: Function) -> None:
        """Panels of sixteen columns, k rows each; those that a step takes go side by side."""
        panels, count = code.pointer(PACKED), code.word(N)
        length = code.number("mul", self._depth(code), str(4 * PANEL))
        whole = code.number("and", count, str(-PANELS))  # as steps divide them
        pack = self._cut if self.is_wide else self._turned

        def one(p: Value) -> Sequence[Value]:
            beside = code.do(f"icmp slt i64 {p}, {whole}")
            group = code.number("and", p, str(-PANELS))
            first = code.do(f"select i1 {beside}, i64 {group}, i64 {p}")
            step = code.do(f"select i1 {beside}, i64 {4 * PANEL * PANELS}, i64 {4 * PANEL}")
            begin = code.stepped(panels, first, length)
            place = code.number("mul", code.number("sub", p, first), str(4 * PANEL))
            pack(code, p, code.behind(begin, place), step)
            return ()

        code.loop("0", count, "1", one)

    def _turned(self, code: Function, p: Value, at: Value, step: Value) -> None:
        """A panel of columns that are dense along k."""
        k1, n, boxes = code.word(RIGHT + 2), code.word(RIGHT + 3), code.word(K)
        width = code.number("mul", n, str(PANEL))
        begin = code.stepped(code.pointer(RIGHT), p, width)
        size = min(self.box, PANEL)
        lanes = Lanes(code, size, {})

        def box(b: Value, there: Value, count: int = self.box) -> Sequence[Value]:
            place = code.stepped(begin, b, k1)
            for first in range(0, self.box, size):
                source = code.behind(place, str(first * self.right.itemsize))

                def piece(column: Value, source: Value = source, first: int = first) -> Value:
                    at = code.stepped(source, column, n)
                    return _loaded(lanes, self.right, at, min(max(count - first, 0), size))

                _transpose(code, piece, size, there, step)
                there = code.behind(there, code.number("mul", step, str(size)))
            return [there]

        (end,) = code.loop("0", boxes, "1", box, [("ptr", at)])
        if self.tail:
            box(boxes, end, self.tail)

    def _cut(self, code: Function, p: Value, at: Value, step: str) -> None:
        """A panel of rows that are dense along n."""
        row, depth = code.word(RIGHT + 2), code.number("mul", code.word(K), str(self.box))
        width = code.number("mul", p, str(PANEL * self.right.itemsize))
        lanes = Lanes(code, PANEL, {})

        def line(_: Value, place: Value, there: Value) -> Sequence[Value]:
            value = _loaded(lanes, self.right, place, PANEL)
            code.act(f"store {_REAL} {value}, ptr {there}, align 4")
            return [code.behind(place, row), code.behind(there, step)]

        begin = code.behind(code.pointer(RIGHT), width)
        code.loop("0", depth, "1", line, [("ptr", begin), ("ptr", at)])

    # ---- multiplying -----------------------------------------------------------------------------

    def _multiply(self, code: Function) -> None:
        depth = self._depth(code)
        rows = code.pointer(LEFT if self.is_read_in_place else LEFT_ROWS)
        pitch = code.word(LEFT + 3) if self.is_read_in_place else code.number("mul", depth, "4")
        panels, length = code.pointer(PACKED), code.number("mul", depth, str(4 * PANEL))
        to, row, panel = code.pointer(TO), code.word(TO + 2), code.word(TO + 3)
        adds = _is_set(code, ADDS)

        def across(p: Value, width: int) -> None:
            right = code.stepped(panels, p, length)
            top = code.stepped(to, p, panel)

            def down(r: Value, height: int) -> None:
                begin = code.stepped(rows, r, pitch)
                left = _followed(code, begin, pitch, height)
                sums = self._summed(code, left, right, width, depth)
                first = code.stepped(top, r, row)
                lines = _followed(code, first, row, height)
                places = [each for line in lines for each in _followed(code, line, panel, width)]
                self._leave(code, sums, places, p, width, adds)

            _in_steps(code, code.word(M), self.heights, down)

        _in_steps(code, code.word(N), self.widths, across)

    @staticmethod
    def _summed(
        code: Function, left: Sequence[Value], right: Value, width: int, depth: Value
    ) -> Sequence[Value]:
        """Some rows times some panels."""

        def along(k: Value, *sums: Value) -> Sequence[Value]:
            line = code.at(right, k, str(4 * PANEL * width))
            factors = [
                code.do(f"load {_REAL}, ptr {code.behind(line, str(4 * PANEL * j))}, align 4")
                for j in range(width)
            ]
            found: list[Value] = []
            for i, row in enumerate(left):
                place = code.do(f"getelementptr float, ptr {row}, i64 {k}")
                one = code.do(f"load float, ptr {place}, align 4")
                first = code.do(f"insertelement {_REAL} poison, float {one}, i64 0")
                spread = code.do(
                    f"shufflevector {_REAL} {first}, {_REAL} poison, "
                    f"<{PANEL} x i32> zeroinitializer"
                )
                for j, factor in enumerate(factors):
                    found.append(
                        code.call(
                            _REAL,
                            f"llvm.fma.v{PANEL}f32",
                            (_REAL, spread),
                            (_REAL, factor),
                            (_REAL, sums[i * width + j]),
                        )
                    )
            return found

        zero = [(_REAL, "zeroinitializer")] * (len(left) * width)
        return code.loop("0", depth, "1", along, zero)

    def _leave(
        self,
        code: Function,
        sums: Sequence[Value],
        places: Sequence[Value],
        p: Value,
        width: int,
        adds: Value,
    ) -> None:
        """Add what the sum starts from, and store it."""
        kind = f"<{PANEL} x {stored(self.to)}>"
        if self.to.is_integer:  # every partial sum was exact
            sums = [code.do(f"fptosi {_REAL} {total} to {kind}") for total in sums]

        def store(starts: Sequence[Value] = ()) -> None:
            how = "add" if self.to.is_integer else "fadd"
            for number, (total, place) in enumerate(zip(sums, places, strict=True)):
                if starts:
                    held = code.do(f"load {kind}, ptr {starts[number]}, align 4")
                    total = code.do(f"{how} {kind} {total}, {held}")
                code.act(f"store {kind} {total}, ptr {place}, align 4")

        if self.is_from_row:
            beside = code.word(START + 2)
            begin = code.stepped(code.pointer(START), p, beside)
            store(_followed(code, begin, beside, width) * (len(sums) // width))
        else:
            code.when(adds, lambda: store(places), store)


def _is_set(code: Function, word: int) -> Value:
    return code.do(f"icmp ne i64 {code.word(word)}, 0")


def _followed(code: Function, first: Value, step: Value, count: int) -> list[Value]:
    """A place, and those that come behind it in even steps."""
    found = [first]
    while len(found) < count:
        found.append(code.behind(found[-1], step))
    return found


def _steps(count: int, most: int) -> tuple[int, ...]:
    """The sizes of steps that so many are done in: so many at a time, what is left one by one."""
    return (*[most][: count // most], *[1][: count % most])


def _in_steps(
    code: Function, count: Value, sizes: Sequence[int], body: Callable[[Value, int], None]
) -> None:
    """All of them, in steps of these sizes."""
    first = "0"
    for size in sizes:
        last = count if size == 1 else code.number("and", count, str(-size))

        def once(i: Value, size: int = size) -> Sequence[Value]:
            body(i, size)
            return ()

        code.loop(first, last, str(size), once)
        first = last


def _loaded(lanes: Lanes, kind: DType, place: Value, count: int) -> Value:
    """A box of elements as floats; those behind the first `count` are zero."""
    code, real = lanes.code, lanes.vector("float")
    value = code.do(f"load {lanes.vector(stored(kind))}, ptr {place}, align 1")
    value = lanes.taken(kind, value)
    value = converted(lanes, value, kind, dt.f32, RoundMode.CAST_RINT, SaturationMode.OFF)
    if count == lanes.count:
        return value
    mask = ", ".join(f"i1 {int(lane < count)}" for lane in range(lanes.count))
    return code.do(f"select {lanes.vector('i1')} <{mask}>, {real} {value}, {real} zeroinitializer")


def _transpose(
    code: Function, piece: Callable[[Value], Value], size: int, to: Value, step: Value
) -> None:
    """Sixteen columns of so many floats as rows of sixteen, which are stored in even steps.

    Columns that are shorter lie side by side in one vector. Then blocks off the diagonal change
    places, first of single elements, then of pairs, ...: two such steps at a time take four
    vectors, and are a loop over all fours. Shuffles are what compilers take longest for, and
    written out at once they would be four times as many.
    """
    room = code.room(4 * PANEL * size) if size > _FOUR else to

    def taken(vector: Value) -> Value:
        parts = [piece(code.number("add", vector, str(first))) for first in range(0, PANEL, size)]
        length = size
        while len(parts) > 1:
            kind, both = f"<{length} x float>", range(2 * length)
            pairs = zip(parts[0::2], parts[1::2], strict=True)
            parts = [_shuffled(code, kind, a, b, both) for a, b in pairs]
            length *= 2
        return parts[0]

    def near(first: Value) -> Sequence[Value]:
        found = [taken(code.number("add", first, str(i))) for i in range(_FOUR)]
        pitch = str(4 * PANEL) if size > _FOUR else step
        place = code.stepped(room, first, pitch)
        _leave_rows(code, _exchanged(code, found, 1), place, pitch)
        return ()

    def far(first: Value) -> Sequence[Value]:
        begin = code.at(room, first, str(4 * PANEL))
        places = _followed(code, begin, str(_FOUR * 4 * PANEL), size // _FOUR)
        found = [code.do(f"load {_REAL}, ptr {place}, align 4") for place in places]
        place = code.stepped(to, first, step)
        pitch = code.number("mul", step, str(_FOUR))
        _leave_rows(code, _exchanged(code, found, _FOUR), place, pitch)
        return ()

    code.loop("0", str(size), str(_FOUR), near)
    if size > _FOUR:
        code.loop("0", str(_FOUR), "1", far)


def _leave_rows(code: Function, rows: Sequence[Value], place: Value, pitch: Value) -> None:
    for row, there in zip(rows, _followed(code, place, pitch, len(rows)), strict=True):
        code.act(f"store {_REAL} {row}, ptr {there}, align 4")


def _exchanged(code: Function, rows: Sequence[Value], apart: int) -> list[Value]:
    """Some vectors that are so far apart, with blocks of that size exchanged, then of twice it."""
    found, step = list(rows), 1
    while step < len(found):
        block = step * apart
        low = [j if not j & block else PANEL + j - block for j in range(PANEL)]
        high = [j + block if not j & block else PANEL + j for j in range(PANEL)]
        for i in range(len(found)):
            if not i & step:
                a, b = found[i], found[i + step]
                found[i] = _shuffled(code, _REAL, a, b, low)
                found[i + step] = _shuffled(code, _REAL, a, b, high)
        step *= 2
    return found


def _shuffled(code: Function, kind: str, a: Value, b: Value, lanes: Sequence[int]) -> Value:
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    return code.do(f"shufflevector {kind} {a}, {kind} {b}, <{len(lanes)} x i32> <{mask}>")


# ---- which products ------------------------------------------------------------------------------

_FACTORS = (dt.f16, dt.bf16, dt.f32, dt.i8)


def _is_byte(kind: DType) -> bool:
    return kind.is_float and kind.bits == 8 and not kind.is_packed


_EXACT = 1 << 24  # integers up to this are floats


def product(
    to: Access, left: Access, right: Access, start: Access | None, is_device: bool
) -> tuple[Multiply, list[int]]:
    """The function for these operands, and its words with their places left at 0."""
    result, first, second = to.dtype, left.dtype, right.dtype
    factors = (each in _FACTORS or _is_byte(each) for each in (first, second))
    if not all(factors) or result not in (dt.f32, dt.i32):
        raise Unsupported(f"{first.name} times {second.name}")
    if (result is dt.i32) != (first is dt.i8 and second is dt.i8):
        raise Unsupported("integers into floats")
    (m, k), n = left.shape, right.shape[1]
    if 0 in (m, k, n):
        raise Unsupported("nothing to do")
    if result is dt.i32 and k << 14 > _EXACT:
        raise Unsupported("integer sums beyond 24 bits")
    if n % PANEL and (not is_device or start not in (None, to)):
        raise Unsupported("a result that ends inside a box")  # on devices the rest of it is open
    rows, columns = levels(left)
    deep, wide = levels(right)
    down, across = levels(to)
    box = deep[1][0]
    if columns[0][0] == 1 and columns[1][1] == first.itemsize:  # one long row
        columns = (-(-k // box), box * first.itemsize), (box, first.itemsize)
    if columns[1] != (box, first.itemsize) or deep[1][1] != second.itemsize:
        raise Unsupported("operands that are not dense along k")
    if box not in (4, 8, 16, 32) or wide[0][0] != 1 or down[0][0] != 1:
        raise Unsupported("boxes of other shapes")
    size = result.itemsize
    if across[0][0] == 1:  # a plain row, or a single box
        across = (-(-n // PANEL), PANEL * size), (PANEL, across[1][1])
    if across[1] != (PANEL, size):
        raise Unsupported("an accumulator in other boxes")
    panels = -(-n // PANEL)
    if panels > 1 and to.pattern.size[1] > across[0][0] * PANEL:
        raise Unsupported("an accumulator in other boxes")
    words = [m, rows[1][0], k // box, panels]
    words += [0, 0, down[1][1], across[0][1]]
    words += [0, 0, rows[0][1], rows[1][1], columns[0][1]]
    words += [0, 0, deep[0][1], wide[1][1]]
    words += [0, 0, PANEL * size]
    depth = -(-k // box) * box
    words += [0, 0, 0, 4 * m * depth]
    words += [1, 1, int(start is to)]
    is_from_row = False
    if start is not None and start is not to:
        if start.dtype is not result or start.pattern.axis_map.matrix_strides is None:
            raise Unsupported("a start that is no row")
        is_from_row = True
    is_even = rows[0][0] == 1 or rows[0][1] == rows[1][0] * rows[1][1]
    is_plain = is_even and not k % box and columns[0][1] == box * first.itemsize
    in_place = is_plain and first is dt.f32
    steps = _steps(m, ROWS), _steps(panels, PANELS)
    kinds = first, second, result, box, k % box
    return Multiply(*kinds, is_from_row, *steps, is_even, in_place), words


Level = tuple[int, int]  # extent, and stride in bytes


def levels(access: Access) -> tuple[tuple[Level, Level], tuple[Level, Level]]:
    """Rows and columns of an operand as boxes and what is inside of them."""
    pattern = access.pattern
    if pattern.rows.start or pattern.cols.start or pattern.dtype.is_packed:
        raise Unsupported("a part of a tile")
    size, found = pattern.dtype.itemsize, list[tuple[Level, Level]]()
    for axes in (pattern.axis_map.row_steps, pattern.axis_map.col_steps):
        if len(axes) > 2:
            raise Unsupported("boxes of boxes")
        levels = [(extent, stride * size) for extent, stride in axes]
        outer, inner = levels if len(levels) == 2 else ((1, 0), levels[0])
        found.append((outer, inner))
    return found[0], found[1]


def room(words: Sequence[int]) -> int:
    """Bytes of packed operands."""
    left = words[PACKED + 1]
    return left + left // max(words[M], 1) * words[N] * PANEL


# ---- operands from elsewhere ---------------------------------------------------------------------


class Axis(NamedTuple):
    """Some elements in boxes: how many, how many of a box, and the steps in bytes."""

    length: int
    box: int
    from_box_to_box: int
    step: int

    def places(self) -> Array:
        """Where each of them lies, in bytes past the first."""
        box, inside = np.divmod(np.arange(self.length), max(self.box, 1))
        return box * self.from_box_to_box + inside * self.step


class Factor(NamedTuple):
    """How the elements of a factor that are read lie past its beginning."""

    down: Axis
    across: Axis
    size: int  # of an element

    def places(self) -> Array:
        return self.down.places()[:, None] + self.across.places()


class Landing(NamedTuple):
    """How the sums of a product lie past the beginning of its result."""

    rows: int
    panels: int
    steps: tuple[int, int]  # from row to row, and from panel to panel
    size: int  # of an element

    def places(self) -> Array:
        """Where each of them lies."""
        columns = np.arange(self.panels * PANEL)
        across = columns // PANEL * self.steps[1] + columns % PANEL * self.size
        return np.arange(self.rows)[:, None] * self.steps[0] + across

    @property
    def span(self) -> tuple[int, int]:
        """The bytes between the first and the last."""
        last = (self.rows - 1) * self.steps[0] + (self.panels - 1) * self.steps[1]
        return 0, last + PANEL * self.size

    @property
    def is_dense(self) -> bool:
        """Whether they are all bytes there."""
        return self.span[1] == self.rows * self.panels * PANEL * self.size


def landing(kernel: Multiply, words: Sequence[int]) -> Landing:
    """How the result lies."""
    steps = words[TO + 2], words[TO + 3]
    return Landing(words[M], words[N], steps, kernel.to.itemsize)


def factor(kernel: Multiply, words: Sequence[int], operand: int) -> Factor:
    """How the operand at LEFT or RIGHT lies."""
    depth = (words[K] + (kernel.tail > 0)) * kernel.box
    if operand == LEFT:
        outer, inner, deep = words[LEFT + 2 : LEFT + 5]
        size = kernel.left.itemsize
        down = Axis(words[M], words[M_INNER], outer, inner)
        return Factor(down, Axis(depth, kernel.box, deep, size), size)
    step, across = words[RIGHT + 2 : RIGHT + 4]
    size, wide = kernel.right.itemsize, words[N] * PANEL
    deep = Axis(depth, depth, 0, step) if kernel.is_wide else Axis(depth, kernel.box, step, size)
    return Factor(deep, Axis(wide, wide, 0, across), size)


def taken_from(
    kernel: Multiply,
    words: Sequence[int],
    operand: int,
    steps: tuple[int, int],
) -> tuple[Multiply, list[int]] | None:
    """The same product with a factor that is a plain matrix elsewhere, with such steps from row to
    row and from column to column, its place still open; None where no packing is made for it."""
    if kernel.tail:
        return None
    down, across = steps
    changed = list(words)
    if operand == LEFT:
        if across != kernel.left.itemsize:
            return None
        changed[M_INNER] = words[M]
        changed[LEFT + 2 : LEFT + 5] = 0, down, kernel.box * across
        in_place = kernel.left is dt.f32 and down % _PAGE != 0
        return replace(kernel, is_even=True, is_read_in_place=in_place), changed
    size = kernel.right.itemsize
    if across == size:
        changed[RIGHT + 2 : RIGHT + 4] = steps
        return replace(kernel, is_wide=True), changed
    if down == size:
        changed[RIGHT + 2 : RIGHT + 4] = kernel.box * size, across
        return replace(kernel, is_wide=False), changed
    return None


class Packing(NamedTuple):
    """What packing an operand comes to: equal for those that are packed alike."""

    operand: int
    words: tuple[int, ...]
    kernel: tuple[DType, int, int, bool]
    nbytes: int


def packing(kernel: Multiply, words: Sequence[int], operand: int) -> Packing | None:
    """How the operand at LEFT or RIGHT is packed; None: it is not."""
    depth = (words[K] + (kernel.tail > 0)) * kernel.box
    if operand == LEFT:
        if kernel.is_read_in_place:
            return None
        form = kernel.left, kernel.box, kernel.tail, kernel.is_even
        given = words[M], words[M_INNER], words[K], *words[LEFT:RIGHT]
        return Packing(operand, given, form, 4 * words[M] * depth)
    form = kernel.right, kernel.box, kernel.tail, kernel.is_wide
    given = words[K], words[N], *words[RIGHT:START]
    return Packing(operand, given, form, 4 * PANEL * words[N] * depth)


def packed_at(words: Sequence[int], operand: int, offset: int, is_first: bool) -> list[int]:
    """The words of a product with an operand that is packed there, by this one or one before."""
    changed, is_left = list(words), operand == LEFT
    changed[(LEFT_ROWS if is_left else PACKED) + 1] = offset
    changed[PACKS_LEFT if is_left else PACKS_RIGHT] = int(is_first)
    return changed
