"""What the matrix products of the cube share: sizes, operands, rules, and the product itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import convert, from_float, keep_mantissa
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import AccPhase, RoundMode, SaturationMode, TileType
from ptokit.base.layout import Array
from ptokit.isa.devices import DEVICES
from ptokit.isa.facts import Ops
from ptokit.isa.freedom import reassociates
from ptokit.isa.regions import end_of
from ptokit.isa.rules import Told, Words, behind, memory_of, must, under, where
from ptokit.isa.services import Places, Refused, Registers
from ptokit.isa.spec import Attr, Operand, Parts, Rule, rule, src

LIMIT = 4095  # of m, k and n
FRACTAL = 16  # rows and columns of an accumulator box

PHASE = Attr("Phase", AccPhase, AccPhase.Unspecified, "unit flag for the store that follows")
PHASE_KEY = {"Phase": "accPhase phase"}
FREEDOM = reassociates(
    "The order of summation along K and the rounding inside the cube are not stated by any source. "
    "The reference multiplies in float32 (float64 for integers that need it and for MX), lets the "
    "host's matrix product choose the order, adds the start value last and rounds once to the type "
    "of the accumulator."
)
SPLIT = "split the product into smaller ones"

Size = Callable[[Any], int]


# ---- sizes and operands --------------------------------------------------------------------------


def n_of(o: Any) -> int:
    return o.bMatrix.vc


@dataclass(frozen=True)
class Sizes:
    """A product takes m x k times k x n; the tiles that say how large m and k are differ."""

    m: Size
    k: Size

    def result(self, name: str = "cMatrix", role: str = "out") -> Operand:
        """The accumulator: m x n of it, whatever its own valid region."""
        return Operand(
            name,
            role,
            view=self._result,
            boxes=True,
            unspecified=self._rest_of_fractals(),
        )

    def old_result(self, c: str, note: str, **more: Any) -> Operand:
        """The accumulator the sum starts from, where it is named separately.

        Devices do not look at it, unless it is the result: they add to what that holds.
        """

        def region(o: Any) -> tuple[int, int]:
            return (0, 0) if adds_to_result(o, c) else self._result(o)

        return src("cInMatrix", view=region, boxes=True, note=note, same_as=c, **more)

    def left(self) -> Operand:
        return src("aMatrix", view=lambda o: (self.m(o), self.k(o)), boxes=True)

    def right(self) -> Operand:
        return src("bMatrix", view=lambda o: (self.k(o), n_of(o)), boxes=True)

    def _result(self, o: Any) -> tuple[int, int]:
        return self.m(o), n_of(o)

    def _rest_of_fractals(self) -> Callable[[Any], Parts | None]:
        """The part of the touched accumulator boxes beside the result: what is there is lost."""

        def parts(o: Any) -> Parts | None:
            if not o.target.is_device:
                return None
            rows, cols = self._result(o)
            bottom, right = (-(-size // FRACTAL) * FRACTAL for size in (rows, cols))
            below = (slice(rows, bottom), slice(0, right))
            beside = (slice(0, rows), slice(cols, right))
            return [part for part in (below, beside) if all(s.start < s.stop for s in part)]

        return parts


def bias_row(optional: bool = False) -> Operand:
    return src("biasData", view=lambda o: (1, n_of(o)), optional=optional)


def _one_row(o: Any) -> int:
    """The vector mode of the cube; the permissive profile takes all rows of the left operand."""
    return 1 if o.target.is_device else o.aMatrix.vr


MATMUL = Sizes(lambda o: o.aMatrix.vr, lambda o: o.aMatrix.vc)
GEMV = Sizes(_one_row, lambda o: o.bMatrix.vr)
GEMV_MX = Sizes(_one_row, MATMUL.k)


# ---- rules ---------------------------------------------------------------------------------------


def in_range(what: str, size: Size, said: str, id: str) -> Rule:
    text = f"1 <= {what} <= {LIMIT}, with {what} = {said}"
    return rule(id, text, lambda o: 1 <= size(o) <= LIMIT, fix=SPLIT)


def fits(*operands: Operand) -> Rule:
    """What is touched of each operand has room in its memory, however large the tile is."""

    def holds(o: Any) -> bool:
        return all(
            _touched(each, o) <= o.target.spaces[memory_of(o[each.name])].capacity
            for each in operands
            if o[each.name] is not None and o[each.name].loc != TileType.Ctrl
        )

    return rule("fits", "what is used of each operand fits in its memory", holds, DEVICES, SPLIT)


def _touched(declared: Operand, o: Any) -> int:
    """Bytes from the start of an operand to the end of the boxes that are used of it."""
    assert callable(declared.view)
    return end_of(declared.view(o), o[declared.name])


def shapes_agree(c: str, ids: Mapping[str, str]) -> list[Rule]:
    """The capacities of a matrix product agree; `ids` under which targets report it."""
    return under(
        ids,
        f"aMatrix.Rows == {c}.Rows, aMatrix.Cols == bMatrix.Rows and bMatrix.Cols == {c}.Cols",
        lambda o: (
            o.aMatrix.rows == o[c].rows
            and o.aMatrix.cols == o.bMatrix.rows
            and o.bMatrix.cols == o[c].cols
        ),
        otherwise=_sizes_decide(c, MATMUL),
    )


def row_shapes_agree(c: str, sizes: Sizes, ids: Mapping[str, str]) -> list[Rule]:
    """The capacities of a one-row product, whose left operand is padded, agree."""
    return under(
        ids,
        f"aMatrix.Cols and bMatrix.Rows are at least k, and bMatrix.Cols == {c}.Cols",
        lambda o: (
            o.aMatrix.cols >= sizes.k(o)
            and o.bMatrix.rows >= sizes.k(o)
            and o.bMatrix.cols == o[c].cols
        ),
        otherwise=_sizes_decide(c, sizes),
    )


def _sizes_decide(c: str, sizes: Sizes) -> Words:
    def fits(o: Any) -> bool:
        m, k, n = sizes.m(o), sizes.k(o), n_of(o)
        return k <= o.aMatrix.cols and k <= o.bMatrix.rows and m <= o[c].rows and n <= o[c].cols

    words = "the valid sizes decide, and each tile is addressed by its own Rows and Cols"
    return behind(words, fits)


def column_fractals(c: str, id: str, on: str, fix: str = "") -> Rule:
    """The order of the fractals where the left operand has columns of them."""
    return must(id, on)(
        f"aMatrix and {c} have column-major fractals with rows inside (NZ), bMatrix row-major ones "
        "with columns inside (ZN)",
        lambda o: (o.aMatrix.layout, o.bMatrix.layout, o[c].layout) == ("NZ", "ZN", "NZ"),
        fix,
    )


def bias_rules(id: str, on: str | None = None) -> list[Rule]:
    """A bias is one row as wide as the product."""
    return where(lambda o: o.biasData is not None)(
        must(id, on)(
            "biasData is a Bias tile of one row",
            lambda o: o.biasData.loc == TileType.Bias and o.biasData.rows == 1,
        ),
        must("bias-columns")(
            "the valid columns of biasData are those of bMatrix",
            lambda o: o.biasData.vc == o.bMatrix.vc,
            otherwise=behind(
                "a word of the bias table is added to each column of the product",
                lambda o: n_of(o) <= o.biasData.cols,
            ),
        ),
    )


ONE_PADDED_ROW = must("one-row", DEVICES)(
    "aMatrix has one row of whole 512-byte blocks",
    lambda o: o.aMatrix.rows == 1 and o.aMatrix.cols * o.aMatrix.dtype.bits % (512 * 8) == 0,
    "declare a Left tile of one row, its columns rounded up to 512 bytes, and set its valid "
    "columns",
    Told(
        "the row lies at the start of its last block, and what follows it does not count",
        lambda o: o.aMatrix.rows == 1,
    ),
)


def is_result(o: Any, c: str) -> bool:
    """Whether the accumulator that is named separately is that of the result."""
    alike = ("dtype", "rows", "cols", "addr")
    return o.cInMatrix is None or all(getattr(o.cInMatrix, f) == getattr(o[c], f) for f in alike)


def adds_to_result(o: Any, c: str) -> bool:
    """Whether a device is given another accumulator to start from, and does not look at it."""
    return o.target.is_device and not is_result(o, c)


def same_accumulator(c: str, on: str = DEVICES) -> Rule:
    """The hardware adds to what cOut holds and never looks at cIn."""
    return must("same-accumulator", on)(
        f"cInMatrix is the storage of {c}",
        lambda o: is_result(o, c),
        "pass the same accumulator tile twice",
        # A compiler may place them anywhere: what is meant is then not known.
        Told(f"cInMatrix is not read: the sum starts from {c}", lambda o: o.mode != "auto"),
    )


def require_same_storage(c: str, ops: Ops, places: Places) -> None:
    """In auto mode tiles have storage of their own: equal addresses do not say it all."""
    old = "cInMatrix"
    if not ops.target.is_device or ops.mode != "auto" or ops[old] is None:
        return
    if not places.same_storage(old, c):
        broken = same_accumulator(c)
        got = [(name, places.described(name)) for name in (old, c)]
        raise Refused(broken.id, broken.text, got=got, fix=str(broken.fix))


# ---- the product ---------------------------------------------------------------------------------

_ONE_THREAD = 1 << 19  # multiplications for which BLAS libraries start no threads
_COLUMNS = 16  # floats in the widest vectors of hosts
TF32_ON, TF32_ROUND = 1 << 46, 1 << 47  # bits of the control register


def accumulate(
    name: str,
    c: Array,
    a: Array,
    b: Array,
    ops: Ops,
    registers: Registers,
    start: Array | None = None,
) -> None:
    """Put a x b into the accumulator, added to what the sum starts from: old sums, or a bias row.

    Integers are multiplied exactly, everything else in float32. All come with their boxes apart.
    """
    kinds = ops.aMatrix.dtype, ops.bMatrix.dtype
    if start is not None:
        start = start.reshape(-1, *c.shape[1:])
    if kinds[0].is_integer and kinds[1].is_integer:
        total = _integer_product(a, b, *kinds, c.shape)
    else:
        left, right = (
            float_operand(values, kind, registers, ops.target.tf32_bits)
            for values, kind in zip((a, b), kinds, strict=True)
        )
        left = left.reshape(c.shape[0], -1)
        right = right.reshape(left.shape[1], -1)
        if start is None and c.dtype == np.float32:
            multiply(left, right, c.shape, c)
            return
        total = multiply(left, right, c.shape)
    if start is not None:
        if total.dtype == start.dtype == c.dtype:
            np.add(total, start, out=c)
            return
        total = total + start
    c[...] = settled(total, ops[name].dtype)


def multiply(a: Array, b: Array, shape: tuple[int, ...], out: Array | None = None) -> Array:
    """The host's matrix product, laid out as the accumulator has it, so that sums need no copy.

    It goes in bands of rows small enough for the host to stay on one thread: a product of this size
    gains little from a second one and waits for milliseconds when the machine is busy. One row, and
    columns that fill no vector, the host adds up in an order of its own: they get company, so that
    sums go along k as all others do.
    """
    rows, cols = shape[0], shape[-1]
    if rows == 1 or cols % _COLUMNS:
        return _filled_up(a, b, shape, out)
    panels = b.reshape(b.shape[0], -1, cols).transpose(1, 0, 2)
    if out is None:
        found = np.empty((panels.shape[0], rows, cols), a.dtype)
    else:
        found = out.reshape(rows, -1, cols).transpose(1, 0, 2)
    band = max(16, _ONE_THREAD // (b.shape[0] * cols))
    for row in range(0, rows, band):
        np.matmul(a[row : row + band], panels, out=found[:, row : row + band])
    return found.transpose(1, 0, 2).reshape(shape)


def _filled_up(a: Array, b: Array, shape: tuple[int, ...], out: Array | None) -> Array:
    """A product with more rows and columns than were asked for, which are left out again."""
    (rows, depth), cols = a.shape, shape[-1]
    more = -cols % _COLUMNS
    left = np.concatenate([a, np.zeros_like(a)]) if rows == 1 else a
    right = np.pad(b.reshape(depth, -1, cols), ((0, 0), (0, 0), (0, more)))
    whole = (len(left), *shape[1:-1], cols + more)
    found = multiply(left, right.reshape(depth, -1), whole)[:rows, ..., :cols]
    if out is None:
        return found
    out[...] = found
    return out


def _integer_product(
    a: Array, b: Array, left: DType, right: DType, shape: tuple[int, ...]
) -> Array:
    """An exact product modulo 2^64, on the widest units that keep every partial sum exact."""
    a = a.reshape(shape[0], -1)
    b = b.reshape(a.shape[1], -1)
    bound = a.shape[1] * _largest(left) * _largest(right)
    wide = np.float32 if bound <= 1 << 24 else np.float64 if bound <= 1 << 53 else np.int64
    if dt.i4 in (left, right):
        a, b = convert(a, left, dt.i8), convert(b, right, dt.i8)
    return multiply(a.astype(wide), b.astype(wide), shape).astype(np.int64)


def _largest(kind: DType) -> int:
    return max(-int(kind.min_value), int(kind.max_value))


def heeds_tf32(o: Ops) -> bool:
    """Whether TF32 mode makes a difference to a product: to f32 operands, where there is one."""
    return dt.f32 in (o.aMatrix.dtype, o.bMatrix.dtype) and bool(o.target.tf32_bits)


def float_operand(values: Array, kind: DType, registers: Registers, tf32_bits: int) -> Array:
    """The operand as float32; under TF32 mode float32 inputs lose mantissa bits first."""
    control = registers.get("CTRL", 0)
    if kind is dt.f32 and control & TF32_ON and tf32_bits:
        mode = RoundMode.CAST_ROUND if control & TF32_ROUND else RoundMode.CAST_RINT
        return keep_mantissa(values, tf32_bits, mode)
    return convert(values, kind, dt.f32)


def settled(total: Array, kind: DType) -> Array:
    """The sum as elements of the accumulator: integers wrap, floats are rounded once."""
    if total.dtype == kind.np:
        return total
    if kind.is_integer and total.dtype == np.int64:
        return total.astype(kind.np)
    floats = total if total.dtype in (np.float32, np.float64) else total.astype(np.float64)
    return from_float(floats, kind, saturation=SaturationMode.OFF)
