"""Reductions: every row into column 0 of the destination, or every column into its row 0.

Nothing else of the destination is written. Where the order of a sum or product matters it differs
between targets; `folds.py` has the orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import convert
from ptokit.base.layout import Array
from ptokit.isa.folds import (
    extreme,
    fold_rows,
    row_products,
    row_sums,
    row_sums_by_blocks,
    simulated_row_products,
    simulated_row_sums,
    tree_rows,
)
from ptokit.isa.pointwise import A5_FAMILY, DEVICES, on_a2a3, one_vector_of_i64, plain
from ptokit.isa.rules import disjoint, located, same_dtype
from ptokit.isa.spec import Asm, Attr, Operand, Rule, insn, out, rule, src, tmp, types
from ptokit.isa.vector_rules import (
    arithmetic,
    by_target,
    ceil_to,
    lanes,
    per_block,
    row_reduction,
    rows_16bit,
)

SUM_ORDER = (
    "A device adds the 256-byte pieces of a row in an order of its own, which the reference "
    "follows; the order inside a piece is not stated, and the reference adds neighbours, then "
    "neighbouring sums. Compare float sums with a tolerance."
)
FOLD_ORDER = (
    "Rows are combined in the order of the target: one by one on a2a3, two at a time on a5 and "
    "kirin, each step rounded to the element type."
)
STRICT_SCAN = (
    "For NaN, and for the sign of a zero, nothing is stated; the reference does what a scan with "
    "a strict comparison does."
)

_ROW_ASM = Asm(tmp=frozenset({"l1", "l2"}))
_ROW_IDS = {"a2a3": "SA-0187"} | dict.fromkeys(A5_FAMILY.split(), "SA-0087")
_ROW_EXAMPLE = {"dst": "Vec {T} 32x1 DN", "src": "Vec {T} 32x64", "tmp": "Vec {T} 32x64"}
_COLUMN_EXAMPLE = {"dst": "Vec {T} 1x64"}


# ---- operands and rules of the rows --------------------------------------------------------------


def _column(name: str = "dst") -> Operand:
    """Column 0 of a result, one element per valid row of src."""
    return out(name, view=lambda o: (o.src.vr, 1))


def _scratch() -> Operand:
    return tmp("tmp", lost=on_a2a3, note="scratch; only a2a3 uses it")


def _keeps_type(*, widens: bool = False) -> list[Rule]:
    """Rows keep their element type; the permissive profile may widen sums."""
    rules = by_target(
        "SA-0190",
        "SA-0091",
        lambda i, on: same_dtype("dst", "src", id=i, on=on),
        cpu=not widens,
    )
    return [*rules, _WIDENING] if widens else rules


# The public simulator sums into wider types; the permissive profile takes that over.
_WIDER = {(dt.f16, dt.f32), (dt.bf16, dt.f32), (dt.i16, dt.i32)}
_WIDENING = rule(
    "widening",
    "dst has the element type of src, or f32 for f16 and bf16, or i32 for i16",
    lambda o: o.dst.dtype is o.src.dtype or (o.src.dtype, o.dst.dtype) in _WIDER,
    "cpu",
)

# Shapes a2a3 reduces block by block, and the assertion that belongs to each.
_BLOCK_SHAPES = {
    (16, 512): "SA-0213",
    (32, 256): "SA-0214",
    (64, 128): "SA-0215",
    (8, 1024): "SA-0216",
}


def _by_blocks(o: Any) -> bool:
    """Whether a2a3 takes its block path: f32, a column as result, one of four full shapes."""
    shape = (o.src.rows, o.src.cols)
    return (
        on_a2a3(o)
        and o.src.dtype is dt.f32
        and o.dst.layout == "DN"
        and o.dst.valid_col == 1
        and shape == (o.src.valid_row, o.src.valid_col)
        and shape in _BLOCK_SHAPES
    )


def _block_scratch(rows: int, cols: int, id: str) -> Rule:
    needed = rows * cols // 8
    return rule(
        id,
        f"f32, {rows}x{cols} into a column: tmp holds {needed} elements, whatever its shape",
        lambda o: (
            not _by_blocks(o) or (o.src.rows, o.src.cols) != (rows, cols) or o.tmp.numel >= needed
        ),
        "a2a3",
        "declare tmp with the type and shape of src",
    )


def _float_scratch(text: str, columns: Callable[[Any], int]) -> list[Rule]:
    """On a2a3, rows of floats that are wider than a register need scratch."""
    return [
        rule(
            "tmp-size",
            "floats, more than 256 bytes per row: tmp has as many rows as src has valid ones, "
            f"and {text}",
            lambda o: (
                not o.src.dtype.is_float
                or o.src.vc <= lanes(o.src)
                or _by_blocks(o)
                or (o.tmp.rows >= o.src.vr and o.tmp.cols >= columns(o.src))
            ),
            "a2a3",
            "declare tmp with the type and shape of src",
        ),
        *(_block_scratch(*shape, id) for shape, id in _BLOCK_SHAPES.items()),
    ]


# Samples of the block path, one per shape.
_BLOCK_SAMPLES = [
    {"dst": f"Vec f32 {r}x1 DN", "src": f"Vec f32 {r}x{c}", "tmp": f"Vec f32 {r}x{c}"}
    for r, c in _BLOCK_SHAPES
]


# ---- rows ----------------------------------------------------------------------------------------


@insn(
    _column(),
    src("src"),
    _scratch(),
    types=types(
        "src",
        a2a3="f16 f32 i16 i32",
        a5="f16 f32 i16 i32 i64 u64",
        kirin="f16 f32 i16 i32",
        ids=_ROW_IDS,
    ),
    rules=[
        row_reduction("dst"),
        _keeps_type(widens=True),
        _float_scratch(
            "half as many registers as src fills, at least one",
            lambda t: lanes(t) * max(1, t.vc // lanes(t) // 2),
        ),
        one_vector_of_i64("src"),
    ],
    asm=_ROW_ASM,
    example=_ROW_EXAMPLE,
    more_examples=_BLOCK_SAMPLES,
    freedom=SUM_ORDER,
)
def TROWSUM(dst: Array, src: Array, tmp: Array, ctx: Any) -> None:
    """Sum every row of src into column 0 of dst.

    The valid region of src governs. Sums are formed in the element type: f16 rounds, and overflows
    to infinity, at every step; integers wrap. tmp is scratch that only a2a3 uses; one of the type
    and shape of src is always large enough. The permissive profile adds from left to right, f16
    and bf16 in f32, and may sum f16 and bf16 into f32 and i16 into i32.
    """
    o = ctx.ops
    if o.target.name == "cpu":
        dst[:, 0] = simulated_row_sums(src, o.src.dtype, o.dst.dtype)
    elif _by_blocks(o):
        dst[:, 0] = row_sums_by_blocks(src)
    else:
        dst[:, 0] = row_sums(src, o.target.name)


@insn(
    _column(),
    src("src"),
    _scratch(),
    types=types(
        "src",
        a2a3="f16 f32 i16 i32",
        a5="f16 f32 i16 i32",
        kirin="f16 f32 i16 i32",
        ids=_ROW_IDS,
    ),
    rules=[row_reduction("dst"), _keeps_type()],
    asm=_ROW_ASM,
    example=_ROW_EXAMPLE,
    freedom=(
        "a2a3 multiplies 32-byte blocks lane by lane and then the lanes from left to right (f16 in "
        "f32, rounded once); a5 and kirin multiply 256-byte registers and then halves. The "
        "reference follows each."
    ),
)
def TROWPROD(dst: Array, src: Array, tmp: Array, ctx: Any) -> None:
    """Multiply every row of src into column 0 of dst.

    The valid region of src governs. Products are rounded to the element type at every step;
    integers wrap. tmp is scratch that only a2a3 uses: one 32-byte block.
    """
    o = ctx.ops
    if o.target.name == "cpu":
        dst[:, 0] = simulated_row_products(src, o.src.dtype, o.dst.dtype)
    else:
        dst[:, 0] = row_products(src, o.src.dtype, o.target.name)


_ROW_EXTREME_TYPES = types(
    "src",
    a2a3="f16 f32 i16 i32",
    a5="f16 f32 i8 u8 i16 i32 i64 u64",
    kirin="f16 f32 i8 u8 i16 i32",
    ids=_ROW_IDS,
)
_ROW_EXTREME_RULES: list[Rule] = [
    *row_reduction("dst"),
    *_keeps_type(),
    *_float_scratch("at least 256 bytes per row", lanes),
    one_vector_of_i64("src"),
]


@insn(
    _column(),
    src("src"),
    _scratch(),
    types=_ROW_EXTREME_TYPES,
    rules=_ROW_EXTREME_RULES,
    asm=_ROW_ASM,
    example=_ROW_EXAMPLE,
    more_examples=_BLOCK_SAMPLES,
    freedom=STRICT_SCAN,
)
def TROWMAX(dst: Array, src: Array, tmp: Array) -> None:
    """Store the maximum of every row of src in column 0 of dst.

    The valid region of src governs. The result is one of the elements, bit for bit; keep the data
    free of NaN. tmp is scratch that only a2a3 uses; one of the type and shape of src is always
    large enough.
    """
    dst[...] = extreme(src, 1, largest=True)


@insn(
    _column(),
    src("src"),
    _scratch(),
    types=_ROW_EXTREME_TYPES,
    rules=_ROW_EXTREME_RULES,
    asm=_ROW_ASM,
    example=_ROW_EXAMPLE,
    more_examples=_BLOCK_SAMPLES,
    freedom=STRICT_SCAN,
)
def TROWMIN(dst: Array, src: Array, tmp: Array) -> None:
    """Store the minimum of every row of src in column 0 of dst.

    The valid region of src governs. The result is one of the elements, bit for bit; keep the data
    free of NaN. tmp is scratch that only a2a3 uses; one of the type and shape of src is always
    large enough.
    """
    dst[...] = extreme(src, 1, largest=False)


# ---- operands and rules of the columns -----------------------------------------------------------


def _block_tail(o: Any) -> tuple[slice, slice] | None:
    """a2a3 copies whole 32-byte blocks: what lies behind the columns of dst is overwritten."""
    stop = ceil_to(o.src.vc, per_block(o.dst))
    if not on_a2a3(o) or o.src.vr == 0 or stop == o.src.vc:
        return None
    return slice(0, 1), slice(o.src.vc, stop)


def _row() -> Operand:
    """Row 0 of dst, one element per valid column of src; nothing when src has no rows."""
    return out("dst", view=lambda o: (min(1, o.src.vr), o.src.vc), unspecified=_block_tail)


def _column_rules(*, widens: bool = False) -> list[Rule]:
    return [
        located("Vec", "dst", "src", id="SA-0211"),
        plain("dst", "src", id="SA-0207"),
        same_dtype("dst", "src", id="SA-0190", on=DEVICES if widens else None),
        *([_WIDENING] if widens else []),
        rule("PA-0031", "dst has as many valid columns as src", lambda o: o.dst.vc == o.src.vc),
        arithmetic("src"),
        disjoint("dst", "src"),
        rows_16bit("src"),
    ]


_COLUMN_TYPES = types(
    "src",
    a2a3="f16 f32 i16 i32",
    a5="f16 f32 bf16 i8 u8 i16 u16 i32 u32 i64 u64",
    kirin="f16 f32 i8 u8 i16 u16 i32 u32",
    ids="SA-0187",
)


def _binary(o: Any) -> bool:
    return o.tmp is not None and o.attrs["isBinary"]


# ---- columns -------------------------------------------------------------------------------------


@insn(
    _row(),
    src("src"),
    tmp("tmp", optional=True, lost=_binary, note="rows of partial sums, for the tree"),
    attrs=[Attr("isBinary", bool, False, "sum by a pairwise tree, through tmp", argument=True)],
    forms=["dst src", "dst src tmp"],
    types=_COLUMN_TYPES,
    rules=[
        _column_rules(widens=True),
        one_vector_of_i64("src"),
        same_dtype("src", "tmp", id="SA-0189"),
        located("Vec", "tmp", id="SA-0211", on="a2a3"),
        plain("tmp", id="SA-0207", on="a2a3"),
        disjoint("dst", "src", "tmp", id="tmp-apart"),
        rule(
            "tree-columns",
            "isBinary: a row of tmp is as wide as the valid columns of src",
            lambda o: not _binary(o) or o.src.vc * o.src.itemsize <= o.tmp.cols * o.tmp.itemsize,
            DEVICES,
            "declare tmp with the type and shape of src",
        ),
        rule(
            "tree-rows",
            "isBinary: tmp has a row for every two valid rows of src",
            lambda o: not _binary(o) or o.tmp.rows >= o.src.vr // 2,
            DEVICES,
            "declare tmp with the type and shape of src",
        ),
        rule(
            "tmp-64bit",
            "64-bit elements are summed without tmp",
            lambda o: o.tmp is None or o.src.itemsize != 8,
            "a5",
            "leave tmp and isBinary out",
        ),
    ],
    asm=Asm(
        tmp=frozenset({"l1", "l2"}),
        attrs={"isBinary": "isBinary"},
        place={"isBinary": "ins"},
        beside={"isBinary": "tmp"},
    ),
    example=_COLUMN_EXAMPLE,
    more_examples=[
        {"dst": "Vec f32 1x64", "src": "Vec f32 16x64", "tmp": "Vec f32 16x64", "isBinary": "True"}
    ],
    freedom=FOLD_ORDER + " With isBinary the sums form a tree; an odd row joins the first sum on "
    "a2a3, the last one on a5 and kirin.",
)
def TCOLSUM(dst: Array, src: Array, tmp: Array | None, isBinary: bool, ctx: Any) -> None:
    """Sum every column of src into row 0 of dst.

    The valid region of src governs; without valid rows nothing is written. Every sum is rounded to
    the element type, integers wrap. `TCOLSUM(dst, src, tmp, True)` sums by a pairwise tree that
    keeps its partial sums in tmp: half as many rows as src, rounded up, are enough. a2a3 writes
    whole 32-byte blocks, so up to there the columns behind dst are lost. The permissive profile
    ignores tmp and isBinary, and may sum f16 and bf16 into f32.
    """
    o = ctx.ops
    if not src.size:
        return
    values = src if o.src.dtype is o.dst.dtype else convert(src, o.src.dtype, o.dst.dtype)
    by_tree = tmp is not None and isBinary and o.target.name != "cpu"
    dst[0] = (tree_rows if by_tree else fold_rows)(np.add, values, o.target.name)


@insn(
    _row(),
    src("src"),
    types=types(
        "src",
        a2a3="f16 f32 i16 i32",
        a5="f16 f32 bf16 i16 u16 i32 u32",
        kirin="f16 f32 i16 u16 i32 u32",
        ids="SA-0187",
    ),
    rules=_column_rules(),
    example=_COLUMN_EXAMPLE,
    freedom=FOLD_ORDER,
)
def TCOLPROD(dst: Array, src: Array, ctx: Any) -> None:
    """Multiply every column of src into row 0 of dst.

    The valid region of src governs; without valid rows nothing is written. Every product is rounded
    to the element type, integers wrap. a2a3 writes whole 32-byte blocks, so up to there the columns
    behind dst are lost.
    """
    if src.size:
        dst[0] = fold_rows(np.multiply, src, ctx.target.name)


@insn(
    _row(),
    src("src"),
    types=_COLUMN_TYPES,
    rules=[_column_rules(widens=True), one_vector_of_i64("src")],
    example=_COLUMN_EXAMPLE,
    freedom=STRICT_SCAN,
)
def TCOLMAX(dst: Array, src: Array, ctx: Any) -> None:
    """Store the maximum of every column of src in row 0 of dst.

    The valid region of src governs; without valid rows nothing is written. The result is one of the
    elements, bit for bit; keep the data free of NaN. a2a3 writes whole 32-byte blocks, so up to
    there the columns behind dst are lost. The permissive profile also widens f16 and bf16 to f32.
    """
    if src.size:
        found = extreme(src, 0, largest=True)
        kinds = ctx.ops.src.dtype, ctx.ops.dst.dtype
        dst[...] = found if kinds[0] is kinds[1] else convert(found, *kinds)


@insn(
    _row(),
    src("src"),
    types=_COLUMN_TYPES,
    rules=[_column_rules(), one_vector_of_i64("src")],
    example=_COLUMN_EXAMPLE,
    freedom=STRICT_SCAN,
)
def TCOLMIN(dst: Array, src: Array) -> None:
    """Store the minimum of every column of src in row 0 of dst.

    The valid region of src governs; without valid rows nothing is written. The result is one of the
    elements, bit for bit; keep the data free of NaN. a2a3 writes whole 32-byte blocks, so up to
    there the columns behind dst are lost.
    """
    if src.size:
        dst[...] = extreme(src, 0, largest=False)
