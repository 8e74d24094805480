"""What the matrix products of the cube share: sizes, operands, rules, and the product itself.

A product takes m x k times k x n; which tile says how large m, k and n are differs between the
matrix and the one-row instructions, so the parts below take those sizes as functions of the facts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import convert, from_float, keep_mantissa
from ptokit.base.dtypes import DType
from ptokit.base.enums import AccPhase, RoundMode, SaturationMode, TileType
from ptokit.base.layout import Array
from ptokit.isa.rules import located
from ptokit.isa.spec import (
    Attr,
    Operand,
    Parts,
    Rule,
    Types,
    inout,
    out,
    rule,
    src,
    types,
)

DEVICES = "a2a3 a5 kirin9030 kirinx90"
KIRIN = "kirin9030 kirinx90"
LIMIT = 4095  # of m, k and n
FRACTAL = 16  # rows and columns of an accumulator box

PHASE = Attr("Phase", AccPhase, AccPhase.Unspecified, "unit flag for the store that follows")
FREEDOM = (
    "The order of summation along K and the rounding inside the cube are not stated by any source. "
    "The reference multiplies in float32 (float64 for integers that need it and for MX), lets the "
    "host's matrix product choose the order, adds the start value last and rounds once to the type "
    "of the accumulator."
)

Size = Callable[[Any], int]


# ---- sizes: m x k times k x n --------------------------------------------------------------------


def m_of(o: Any) -> int:
    return o.aMatrix.vr


def k_of(o: Any) -> int:
    return o.aMatrix.vc


def n_of(o: Any) -> int:
    return o.bMatrix.vc


def gemv_m(o: Any) -> int:
    """One row; the permissive profile takes as many as the left operand has."""
    return 1 if o.target.is_device else o.aMatrix.vr


def gemv_k(o: Any) -> int:
    return o.bMatrix.vr


def rest_of_fractals(name: str, m: Size) -> Callable[[Any], Parts | None]:
    """The part of the touched accumulator boxes beside the m x n result: what is there is lost."""

    def parts(o: Any) -> Parts | None:
        if not o.target.is_device:
            return None
        axis_map = o[name].axis_map(o[name].vr, o[name].vc)
        rows, cols = m(o), n_of(o)
        bottom = min(-(-rows // FRACTAL) * FRACTAL, axis_map.rows)
        right = min(-(-cols // FRACTAL) * FRACTAL, axis_map.cols)
        below = (slice(rows, bottom), slice(0, right))
        beside = (slice(0, rows), slice(cols, right))
        return [part for part in (below, beside) if all(s.start < s.stop for s in part)]

    return parts


def result(name: str = "cMatrix", m: Size = m_of, role: str = "out") -> Operand:
    """The accumulator: m x n of it, whatever its own valid region."""
    make = out if role == "out" else inout
    rest = rest_of_fractals(name, m)
    return make(name, view=lambda o: (m(o), n_of(o)), boxes=True, unspecified=rest)


def old_result(m: Size = m_of) -> Operand:
    """The accumulator the sum starts from, where it is named separately."""
    note = "the storage of cOutMatrix"
    return src("cInMatrix", view=lambda o: (m(o), n_of(o)), boxes=True, note=note)


def left(m: Size = m_of, k: Size = k_of) -> Operand:
    return src("aMatrix", view=lambda o: (m(o), k(o)), boxes=True)


def right(k: Size = k_of) -> Operand:
    return src("bMatrix", view=lambda o: (k(o), n_of(o)), boxes=True)


def bias_row(optional: bool = False) -> Operand:
    return src("biasData", view=lambda o: (1, n_of(o)), optional=optional)


# ---- rules ---------------------------------------------------------------------------------------


def in_range(what: str, size: Size, said: str, id: str) -> Rule:
    return rule(
        id,
        f"1 <= {what} <= {LIMIT}, with {what} = {said}",
        lambda o: 1 <= size(o) <= LIMIT,
        fix="split the product into smaller ones",
    )


def spaces(c: str) -> list[Rule]:
    """Where the operands live."""
    return [
        located("Left", "aMatrix", id="SA-0225"),
        located("Right", "bMatrix", id="SA-0227"),
        located("Acc", c, id="SA-0226"),
    ]


def fits(*names: str) -> Rule:
    """Each operand has room in its memory."""
    return rule(
        "fits",
        "each operand is no larger than its memory",
        lambda o: all(
            o[n] is None
            or o[n].loc == TileType.Ctrl
            or o[n].nbytes <= o.target.spaces[o[n].loc].capacity
            for n in names
        ),
        DEVICES,
        fix="split the product into smaller ones",
    )


def shapes_agree(c: str, id: str, on: str | None = None) -> Rule:
    """The capacities of a matrix product agree."""
    return rule(
        id,
        f"aMatrix.Rows == {c}.Rows, aMatrix.Cols == bMatrix.Rows and bMatrix.Cols == {c}.Cols",
        lambda o: (
            o.aMatrix.rows == o[c].rows
            and o.aMatrix.cols == o.bMatrix.rows
            and o.bMatrix.cols == o[c].cols
        ),
        on,
    )


def row_shapes_agree(c: str, k: Size, id: str, on: str | None = None) -> Rule:
    """The capacities of a one-row product, whose left operand is padded, agree."""
    return rule(
        id,
        f"aMatrix.Cols and bMatrix.Rows are at least k, and bMatrix.Cols == {c}.Cols",
        lambda o: o.aMatrix.cols >= k(o) and o.bMatrix.rows >= k(o) and o.bMatrix.cols == o[c].cols,
        on,
    )


def one_padded_row() -> Rule:
    """The left operand of a one-row product."""
    return rule(
        "one-row",
        "aMatrix has one row of whole 512-byte blocks",
        lambda o: o.aMatrix.rows == 1 and o.aMatrix.cols * o.aMatrix.dtype.bits % (512 * 8) == 0,
        DEVICES,
        fix="declare a Left tile of one row, its columns rounded up to 512 bytes, and set its "
        "valid columns",
    )


def _layouts(c: str) -> Callable[[Any], bool]:
    return lambda o: (o.aMatrix.layout, o.bMatrix.layout, o[c].layout) == ("NZ", "ZN", "NZ")


def layouts(c: str, a5: str = "SA-0080") -> list[Rule]:
    """The order of the fractals; the left operand's differs between the targets."""
    said = "column-major fractals with rows inside (NZ)"
    fix = "use TileLeft, TileRight and TileAcc, which take the layout of the target"
    by_columns = f"aMatrix and {c} have {said}, bMatrix row-major ones with columns inside (ZN)"
    by_rows = (
        f"aMatrix has row-major fractals with rows inside (ZZ), {c} {said}, bMatrix row-major ones "
        "with columns inside (ZN)"
    )
    return [
        rule(a5, by_columns, _layouts(c), "a5", fix),
        rule("layout", by_columns, _layouts(c), "kirin9030", fix),
        rule(
            "layout",
            by_rows,
            lambda o: (
                # One row of boxes is the same in both orders.
                (o.aMatrix.layout == "ZZ" or (o.aMatrix.layout == "NZ" and o.aMatrix.rows <= 16))
                and (o.bMatrix.layout, o[c].layout) == ("ZN", "NZ")
            ),
            "a2a3 kirinx90",
            fix,
        ),
    ]


_A2A3 = "i32,i8,i8 f32,f16,f16 f32,f32,f32 f32,bf16,bf16"
_FP8 = "f32,f8e4m3,f8e4m3 f32,f8e4m3,f8e5m2 f32,f8e5m2,f8e4m3 f32,f8e5m2,f8e5m2 f32,hif8,hif8"
_A5_PAIRS = types("a b", a5="f16,f16 bf16,bf16 f32,f32 " + _FP8.replace("f32,", "")).allowed["a5"]


def products(c: str) -> Types:
    """Element types of the result and the operands; a5 reports them under three ids."""
    return types(
        f"{c} aMatrix bMatrix",
        a2a3=_A2A3,
        a5=f"{_A2A3} {_FP8}",
        kirin="f16,f16,f16 i32,i8,i8",
        ids={"a2a3": "SA-0185", "a5": ""},
    )


def a5_products(c: str) -> list[Rule]:
    """The same for a5, as its three checks."""
    return [
        rule("SA-0005", f"{c} is i32 or f32", lambda o: o[c].dtype in (dt.i32, dt.f32), "a5"),
        rule(
            "SA-0068",
            f"with an i32 {c}, aMatrix and bMatrix are i8",
            lambda o: (
                o[c].dtype is not dt.i32 or (o.aMatrix.dtype, o.bMatrix.dtype) == (dt.i8, dt.i8)
            ),
            "a5",
        ),
        rule(
            "SA-0076",
            f"with an f32 {c}, aMatrix and bMatrix are both f16, bf16, f32 or hif8, or are fp8",
            lambda o: o[c].dtype is not dt.f32 or (o.aMatrix.dtype, o.bMatrix.dtype) in _A5_PAIRS,
            "a5",
        ),
    ]


def matmul_rules(c: str = "cMatrix") -> list[Rule]:
    """What every TMATMUL form asks for."""
    return [
        *spaces(c),
        shapes_agree(c, "SA-0060", DEVICES),
        shapes_agree(c, "SA-0059", "cpu"),
        in_range("m", m_of, "valid rows of aMatrix", "PA-0006"),
        in_range("k", k_of, "valid columns of aMatrix", "PA-0005"),
        in_range("n", n_of, "valid columns of bMatrix", "PA-0007"),
        same_k(),
        *a5_products(c),
        *layouts(c),
        fits("aMatrix", "bMatrix", c),
    ]


def gemv_rules(c: str = "cMatrix") -> list[Rule]:
    """What every TGEMV form asks for."""
    return [
        *spaces(c),
        row_shapes_agree(c, gemv_k, "SA-0060", DEVICES),
        shapes_agree(c, "SA-0059", "cpu"),
        in_range("k", gemv_k, "valid rows of bMatrix", "PA-0005"),
        in_range("n", n_of, "valid columns of bMatrix", "PA-0007"),
        same_k(),
        one_padded_row(),
        *a5_products(c),
        *layouts(c),
        fits("aMatrix", "bMatrix", c),
    ]


def same_k() -> Rule:
    return rule(
        "same-k",
        "the valid columns of aMatrix are the valid rows of bMatrix",
        lambda o: o.aMatrix.vc == o.bMatrix.vr,
        fix="give both tiles the same valid K (the template arguments, or SetValidShape)",
    )


def same_accumulator(c: str, on: str = DEVICES) -> Rule:
    """The hardware adds to what cOut holds and never looks at cIn."""
    return rule(
        "same-accumulator",
        f"cInMatrix is the storage of {c}",
        lambda o: (
            o.cInMatrix is None
            or (
                o.cInMatrix.dtype is o[c].dtype
                and o.cInMatrix.rows == o[c].rows
                and o.cInMatrix.cols == o[c].cols
                and o.cInMatrix.addr == o[c].addr
            )
        ),
        on,
        fix="pass the same accumulator tile twice",
    )


def bias_rules(c: str = "cMatrix", row_major_on: str = KIRIN) -> list[Rule]:
    """What the bias forms ask for; `row_major_on` lists the targets besides a5 that check order."""
    same = f"biasData has the element type of {c}"
    rows = "biasData is row-major"
    found = [
        rule(
            "SA-0219",
            "biasData is a Bias tile of one row",
            lambda o: o.biasData.loc == TileType.Bias and o.biasData.rows == 1,
        ),
        rule(
            "bias-columns",
            "the valid columns of biasData are those of bMatrix",
            lambda o: o.biasData.vc == o.bMatrix.vc,
        ),
        rule("SA-0075", same, lambda o: o.biasData.dtype is o[c].dtype, "a2a3 a5"),
        rule("bias-type", same, lambda o: o.biasData.dtype is o[c].dtype, KIRIN),
        fits("biasData"),
    ]
    if row_major_on:
        found.append(rule("SA-0078", rows, lambda o: o.biasData.is_row_major, "a5"))
        found.append(rule("bias-order", rows, lambda o: o.biasData.is_row_major, row_major_on))
    return found


# ---- the product ---------------------------------------------------------------------------------

_ONE_THREAD = 1 << 19  # multiplications for which BLAS libraries start no threads
TF32_ON, TF32_ROUND = 1 << 46, 1 << 47  # bits of the control register
_TF32_BITS = {"a2a3": 11, "a5": 10}  # mantissa bits that are left


def accumulate(
    ctx: Any, name: str, c: Array, a: Array, b: Array, start: Array | None = None
) -> None:
    """Put a x b into the accumulator, added to what the sum starts from: old sums, or a bias row.

    Integers are multiplied exactly, everything else in float32. All come with their boxes apart.
    """
    kinds = ctx.ops.aMatrix.dtype, ctx.ops.bMatrix.dtype
    if start is not None:
        start = start.reshape(-1, *c.shape[1:])
    if kinds[0].is_integer and kinds[1].is_integer:
        total = _integer_product(a, b, *kinds, c.shape)
    else:
        left = _float_operand(ctx, a, kinds[0]).reshape(c.shape[0], -1)
        right = _float_operand(ctx, b, kinds[1]).reshape(left.shape[1], -1)
        if start is None and c.dtype == np.float32:
            multiply(left, right, c.shape, c)
            return
        total = multiply(left, right, c.shape)
    if start is not None:
        if total.dtype == start.dtype == c.dtype:
            np.add(total, start, out=c)
            return
        total = total + start
    c[...] = settled(ctx, name, total)


def multiply(a: Array, b: Array, shape: tuple[int, ...], out: Array | None = None) -> Array:
    """The host's matrix product, laid out as the accumulator has it, so that sums need no copy.

    It goes in bands of rows small enough for the host to stay on one thread: a product of this size
    gains little from a second one and waits for milliseconds when the machine is busy.
    """
    rows, cols = shape[0], shape[-1]
    panels = b.reshape(b.shape[0], -1, cols).transpose(1, 0, 2)
    if out is None:
        found = np.empty((panels.shape[0], rows, cols), a.dtype)
    else:
        found = out.reshape(rows, -1, cols).transpose(1, 0, 2)
    band = max(16, _ONE_THREAD // (b.shape[0] * cols))
    for row in range(0, rows, band):
        np.matmul(a[row : row + band], panels, out=found[:, row : row + band])
    return found.transpose(1, 0, 2).reshape(shape)


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


def _float_operand(ctx: Any, values: Array, kind: DType) -> Array:
    """The operand as float32; under TF32 mode float32 inputs lose mantissa bits first."""
    control = ctx.registers.get("CTRL", 0)
    if kind is dt.f32 and control & TF32_ON and ctx.target.name in _TF32_BITS:
        mode = RoundMode.CAST_ROUND if control & TF32_ROUND else RoundMode.CAST_RINT
        return keep_mantissa(values, _TF32_BITS[ctx.target.name], mode)
    return convert(values, kind, dt.f32)


def settled(ctx: Any, c: str, total: Array) -> Array:
    """The sum as elements of the accumulator: integers wrap, floats are rounded once."""
    kind = ctx.ops[c].dtype
    if total.dtype == kind.np:
        return total
    if kind.is_integer and total.dtype == np.int64:
        return total.astype(kind.np)
    floats = total if total.dtype in (np.float32, np.float64) else total.astype(np.float64)
    return from_float(floats, kind, saturation=SaturationMode.OFF)


def require_same_storage(ctx: Any, c: str) -> None:
    """In auto mode tiles have storage of their own: equal addresses do not say it all."""
    old, new = ctx.operand("cInMatrix"), ctx.operand(c)
    if ctx.target.is_device and old is not None and old.storage is not new.storage:
        raise ctx.fail(
            "same-accumulator",
            f"cInMatrix is the storage of {c}",
            got=[("cInMatrix", old), (c, new)],
            fix="pass the same accumulator tile twice",
        )
