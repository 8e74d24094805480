"""Products of block-scaled matrices: bytes times the scales of their blocks, summed in doubles.

Both factors are written out as rows of doubles along k, then every element of the result is the
product of two of them, added to what the sum starts from, and rounded once.

The words: rows, columns and blocks along k; then of the result and both factors memory, offset, and
for rows and columns how many there are in a box and the steps from box to box and inside; of the
scales the same; of the start, and of the rows that are written out, memory and offset.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptokit.base import dtypes as dt
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.engines.compiled.conversions import converted
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import stored
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.product import levels
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import F64
from ptokit.machine.access import Access

BLOCK = 32  # elements along k that share a scale
_WIDE = 8  # doubles that are multiplied at once
M, N, K = range(3)
_OPERAND = 8  # words
TO, LEFT, RIGHT, LEFT_SCALES, RIGHT_SCALES = (3 + _OPERAND * n for n in range(5))
START, ROWS, COLUMNS, WORDS = (3 + 5 * _OPERAND + 2 * n for n in range(4))


@dataclass(frozen=True)
class ScaledMultiply:
    """A function of the library."""

    left: DType
    right: DType
    start: str  # "", "sum" or "row"

    @property
    def operands(self) -> Sequence[int]:
        beside = (START,) if self.start == "row" else ()
        return TO, LEFT, RIGHT, LEFT_SCALES, RIGHT_SCALES, *beside

    def text(self, name: str) -> str:
        code = Function(name)
        length = code.number("mul", code.word(K), str(8 * BLOCK))
        rows = self._written(code, self.left, (LEFT, LEFT_SCALES, ROWS), code.word(M))
        at = RIGHT, RIGHT_SCALES, COLUMNS
        columns = self._written(code, self.right, at, code.word(N), is_turned=True)

        def row(i: Value) -> Sequence[Value]:
            left = code.at(rows, i, length)

            def column(j: Value) -> Sequence[Value]:
                right = code.at(columns, j, length)
                self._leave(code, i, j, _dot(code, left, right, length))
                return ()

            code.loop("0", code.word(N), "1", column)
            return ()

        code.loop("0", code.word(M), "1", row)
        return code.text()

    def _written(
        self,
        code: Function,
        kind: DType,
        at: tuple[int, int, int],
        count: Value,
        *,
        is_turned: bool = False,
    ) -> Value:
        """The lines of a factor along k; in one that is turned these are its columns."""
        operand, scales, to = at
        begin = code.pointer(to)
        lanes, one = Lanes(code, BLOCK, {}), Lanes(code, 1, {})

        def line(i: Value, there: Value) -> Sequence[Value]:
            def block(b: Value, there: Value) -> Sequence[Value]:
                k = code.number("mul", b, str(BLOCK))
                place = _place(code, operand, *((k, i) if is_turned else (i, k)))
                value = _double(lanes, kind, place)
                place = _place(code, scales, *((b, i) if is_turned else (i, b)))
                scale = _double(one, dt.f8e8m0, place)
                real, zeros = lanes.vector("double"), f"{lanes.vector('i32')} zeroinitializer"
                spread = f"shufflevector <1 x double> {scale}, <1 x double> poison, {zeros}"
                value = code.do(f"fmul {real} {value}, {code.do(spread)}")
                code.act(f"store {real} {value}, ptr {there}, align 8")
                return [code.behind(there, str(8 * BLOCK))]

            return code.loop("0", code.word(K), "1", block, [("ptr", there)])

        code.loop("0", count, "1", line, [("ptr", begin)])
        return begin

    def _leave(self, code: Function, i: Value, j: Value, total: Value) -> None:
        place = _place(code, TO, i, j)
        if self.start:
            old = place
            if self.start == "row":
                old = code.behind(code.pointer(START), code.number("mul", j, "4"))
            held = code.do(f"fpext float {code.do(f'load float, ptr {old}, align 4')} to double")
            total = code.do(f"fadd double {total}, {held}")
        code.act(f"store float {code.do(f'fptrunc double {total} to float')}, ptr {place}, align 4")


def _place(code: Function, operand: int, row: Value, column: Value) -> Value:
    place = code.pointer(operand)
    for at, index in ((operand + 2, row), (operand + 5, column)):
        box, outer, inner = (code.word(at + n) for n in range(3))
        place = code.behind(place, code.number("mul", code.number("sdiv", index, box), outer))
        place = code.behind(place, code.number("mul", code.number("srem", index, box), inner))
    return place


def _double(lanes: Lanes, kind: DType, place: Value) -> Value:
    value = lanes.code.do(f"load {lanes.vector(stored(kind))}, ptr {place}, align 1")
    value = lanes.taken(kind, value)
    return converted(lanes, value, dt.f32, F64, RoundMode.CAST_RINT, SaturationMode.OFF)


def _dot(code: Function, left: Value, right: Value, length: Value) -> Value:
    kind = f"<{_WIDE} x double>"

    def along(at: Value, total: Value) -> Sequence[Value]:
        pair = [
            code.do(f"load {kind}, ptr {code.behind(line, at)}, align 8") for line in (left, right)
        ]
        return [code.call(kind, f"llvm.fma.v{_WIDE}f64", *((kind, v) for v in (*pair, total)))]

    (sums,) = code.loop("0", length, str(8 * _WIDE), along, [(kind, "zeroinitializer")])
    name = f"llvm.vector.reduce.fadd.v{_WIDE}f64"
    added = f"call reassoc double @{name}(double -0.0, {kind} {sums})"
    code.declare(f"declare double @{name}(double, {kind})")
    return code.do(added)


def scaled_product(
    to: Access,
    factors: tuple[Access, Access],
    scales: tuple[Access, Access],
    start: Access | None,
) -> tuple[ScaledMultiply, list[int], int]:
    """The function for these operands, its words with their places left at 0, and the bytes of
    what is written out."""
    left, right = factors
    (m, k), n = left.shape, right.shape[1]
    if to.dtype is not dt.f32 or k % BLOCK or 0 in (m, k, n):
        raise Unsupported("a part of a block, or sums of another type")
    if any(each.dtype.itemsize != 1 or each.dtype.is_packed for each in (*factors, *scales)):
        raise Unsupported("elements that share bytes")
    words = [0] * WORDS
    words[M : K + 1] = m, n, k // BLOCK
    for at, access in zip(range(TO, START, _OPERAND), (to, *factors, *scales), strict=True):
        lines = levels(access)
        for number, ((_, outer), (extent, inner)) in enumerate(lines):
            words[at + 2 + 3 * number : at + 5 + 3 * number] = extent, outer, inner
    along = levels(left)[1][1], levels(right)[0][1]
    if any(extent % BLOCK or step != 1 for extent, step in along):
        raise Unsupported("operands that are not dense along k")
    row = 8 * k
    words[COLUMNS + 1] = row * m
    how = "" if start is None else "sum" if start is to else "row"
    if how == "row" and (start is None or start.dtype is not dt.f32):
        raise Unsupported("a start that is no row")
    return ScaledMultiply(left.dtype, right.dtype, how), words, row * (m + n)
