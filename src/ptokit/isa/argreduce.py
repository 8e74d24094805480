"""Where the extreme of a row or column is: reductions that give an index, and the value as well.

The index form writes 32-bit indices only. The form with `dstVal` also writes the value, and takes
indices as narrow as the sources.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.layout import Array
from ptokit.isa.devices import A5_FAMILY
from ptokit.isa.effects import UNTIL_DONE, steps
from ptokit.isa.expr import Expr, given, on
from ptokit.isa.facts import Ops
from ptokit.isa.freedom import unspecified
from ptokit.isa.language import covers, filled, in_text, is_open, single
from ptokit.isa.meaning import ArgReduce, at_the_same_places
from ptokit.isa.pointwise import arithmetic, not_empty, on_a2a3, plain, scratch, scratch_held
from ptokit.isa.regions import Extent, Region, View, pitched
from ptokit.isa.rules import disjoint, in_types, located, must, or_else, same_dtype, separate
from ptokit.isa.spec import Asm, Rule, family, insn, out, src, types
from ptokit.isa.vector_rules import (
    by_target,
    ceil_to,
    counted,
    lanes,
    per_block,
    row_reduction,
    row_results,
    rows_16bit,
)

Step = Callable[[Expr, Expr], Expr]
WORDS = (dt.i32, dt.u32)
HALF_WORDS = (dt.i16, dt.u16)


def _index_form() -> Rule:
    return must("index-type")(
        "without dstVal, dstIdx is i32 or u32",
        lambda o: o.dstVal is not None or o.dstIdx.dtype in WORDS,
    )


def _family(
    results: Region, source: Region, room: Callable[[Any], int], means: ArgReduce, **more: Any
) -> Any:
    """The instructions along one axis: the results, what of src they are made of, the scratch."""
    return partial(
        insn,
        out("dstVal", view=results, optional=True),
        out("dstIdx", view=results),
        src("src", view=source),
        scratch(room, note="scratch; only a2a3 uses it"),
        forms=("dstIdx src tmp", "dstVal dstIdx src tmp"),
        means=means,
        asm=Asm(outs=("dstVal", "dstIdx"), tmp=frozenset({"l1", "l2"})),
        **more,
    )


# ---- rows ----------------------------------------------------------------------------------------


def _row_scratch(o: Any) -> int:
    """Elements per row of tmp that a2a3 needs for a row wider than a register.

    Pairs of value and index, one per register, and behind them the values once more.
    """
    registers = -(-o.src.vc // lanes(o.src))
    block = per_block(o.src)
    return ceil_to(2 * registers, block) + ceil_to(registers, block)


def _pairs(o: Any) -> int:
    """Elements of scratch that texts ask for, beside the columns in the type of src."""
    registers, block = -(-o.src.valid_col // lanes(o.src)), per_block(o.src)
    return ceil_to(2 * registers, block) + ceil_to(registers, block)


def _typed_scratch(columns: Callable[[Any], int]) -> Rule:
    """What texts ask of a temporary that is written and not like src."""

    def wanted(o: Any) -> int | None:
        is_free = is_open(o.src.valid_col) or o.tmp.layout == "DN"
        return None if is_free or _like_src(o) else columns(o)

    return in_text(
        "tmp-valid",
        "tmp has the valid region of src, or as many valid columns as pairs of value and index "
        "for each 256 bytes of a row, and the values once more, take in whole blocks",
        covers("tmp", "valid_col", wanted),
        "a2a3",
        "declare tmp with the type and shape of src",
    )


def _like_src(o: Any) -> bool:
    return (o.tmp.valid_row, o.tmp.valid_col) == (o.src.valid_row, o.src.valid_col)


def _is_wide(o: Any) -> bool:
    return o.src.vc > lanes(o.src)


def _row_room(o: Any) -> int:
    """Bytes of scratch: pairs of value and index, or a row of tmp for every wide row."""
    if not _is_wide(o):
        return 0 if o.dstVal is None else 2 * o.src.vr * o.tmp.itemsize
    return ((o.src.vr - 1) * o.tmp.cols + _row_scratch(o)) * o.tmp.itemsize if o.src.vr else 0


_ROW_RULES: list[Rule] = [
    *row_reduction("dstVal", "dstIdx"),
    *by_target("SA-0190", "SA-0091", lambda i, on: same_dtype("src", "dstVal", id=i, on=on)),
    _index_form(),
    must("value-index-type")(
        "with dstVal, dstIdx is i32 or u32, and for 2-byte elements also i16 or u16",
        lambda o: (
            o.dstVal is None
            or o.dstIdx.dtype in WORDS
            or (o.src.itemsize == 2 and o.dstIdx.dtype in HALF_WORDS)
        ),
    ),
    must("index-range")(
        "dstIdx can hold the last column index of src",
        lambda o: o.src.vc - 1 <= o.dstIdx.dtype.max_value,
        "use 32-bit indices",
        "the index is stored modulo 65536",
    ),
    must("SA-0187", "a2a3")(
        "elements of src are f16, f32, i16 or i32", in_types("src", "f16 f32 i16 i32")
    ),
    must("element-size", A5_FAMILY)(
        "elements of src have 2 or 4 bytes", lambda o: o.src.itemsize in (2, 4)
    ),
    must("tmp-pitch", "a2a3", _is_wide)(
        "more than 256 bytes per row, several rows: a row of tmp has room for three elements per "
        "256 bytes of a row (whole blocks of pairs, then of values)",
        lambda o: o.src.vr <= 1 or o.tmp.cols >= _row_scratch(o),
        "declare tmp with the type and shape of src",
        "rows of the scratch overlap: the result is undefined",
        voids=True,
    ),
    scratch_held(
        "tmp",
        _row_room,
        "with dstVal two elements per valid row of src; for more than 256 bytes per row as many "
        "rows as src has valid ones",
    ),
    _typed_scratch(lambda o: 2 if o.src.valid_col <= lanes(o.src) else _pairs(o)),
]


def _by_scalar_unit(o: Any) -> bool:
    """Whether a2a3 has the scalar unit store the results."""
    outs = [tile for tile in (o.dstVal, o.dstIdx) if tile is not None]
    scattered = len(outs) > 1 and any(tile.cols != 1 for tile in outs)
    return _is_wide(o) or scattered


_along_row = _family(
    row_results,
    lambda o: at_the_same_places(o.src, (counted(o, o.src.vr), o.src.vc)),
    _row_room,
    ArgReduce(axis=1),
    steps=[
        steps(when=_by_scalar_unit, between="V", end="V->S S->V", complete=True),
        UNTIL_DONE,
    ],
    types=types(
        "src",
        a2a3="f16 f32",
        a5="f16 f32",
        kirin="f16 f32",
        otherwise="the result is that of the definition, but no test of the makers covers it",
    ),
    rules=_ROW_RULES,
    example={"dstIdx": "Vec i32 32x1 DN", "src": "Vec {T} 32x64", "tmp": "Vec {T} 32x64"},
    more_examples="""
        dstVal          | dstIdx          | src           | tmp
        Vec f16 32x1 DN | Vec i16 32x1 DN | Vec f16 32x64 | Vec f16 32x64
        Vec f16 32x1 DN | Vec u32 32x1 DN | Vec f16 32x64 | Vec f16 32x64
        Vec f32 32x1 DN | Vec i32 32x1 DN | Vec f32 32x64 | Vec f32 32x64
    """,
    freedom=unspecified(
        "NaN",
        "For NaN nothing is stated; the reference does what a scan with a strict comparison does.",
    ),
)


family(
    _along_row,
    """Store the column index of the [maximum|minimum] of every row in column 0 of dstIdx.

    The valid region of src governs; of equal [maxima|minima] the first wins. `{name}(dstVal,
    dstIdx, src, tmp)` also stores the [maximum|minimum] itself, bit for bit, in column 0 of dstVal.
    tmp is scratch that only a2a3 uses.
    """,
    TROWARGMAX=operator.lt,
    TROWARGMIN=operator.gt,
)


# ---- columns -------------------------------------------------------------------------------------


def _column_room(o: Any) -> int:
    """Bytes of scratch: counters, best values and, in f16, best indices."""
    gap = lanes(o.src) if o.src.vc >= lanes(o.src) else ceil_to(o.src.vc, per_block(o.src))
    return (3 if o.dstVal is None and o.src.itemsize == 2 else 2) * gap * o.src.itemsize


def _rows_seen(o: Any) -> int:
    """The rows of src that are looked at; a2a3 takes the first without looking."""
    return max(1, o.src.vr) if on_a2a3(o) else counted(o, o.src.vr)


def _columns_of(o: Any) -> Extent | View:
    """The columns of src; its rows lie `Cols` elements apart, whatever its layout."""
    sizes = _rows_seen(o), o.src.vc
    if o.src.layout == "ND" or not o.target.is_device:
        return at_the_same_places(o.src, sizes)
    return pitched(*sizes, o.src.cols)


def _kept_index(index: Array, ops: Ops) -> Array:
    """The index of a row as it is kept on the way into dstIdx."""
    if on_a2a3(ops) and ops.dstVal is None and ops.src.itemsize == 2:
        return index.astype(np.float16).astype(np.int64)
    if ops.target.is_device and not on_a2a3(ops) and ops.src.itemsize <= 2:
        return index.astype(np.int16)
    return index


_BY_SRC = "row 0 is written, as many columns as are valid in src"
_COLUMN_RULES: list[Rule] = [
    located("Vec", "dstVal", "dstIdx", "src"),
    plain("dstVal", "dstIdx"),
    *or_else("rows are addressed by the distance of Cols", plain("src", id="src-layout")),
    arithmetic("src"),
    *or_else(
        "without columns nothing is written, without rows the first is taken",
        not_empty("src", on="a2a3"),
    ),
    *or_else(
        "without columns nothing is written, without rows the results are undefined",
        not_empty("src", on="cpu " + A5_FAMILY),
        voids=True,
    ),
    must("index-shape")(
        "dstIdx has one valid row and as many valid columns as src",
        lambda o: o.dstIdx.vr == 1 and o.dstIdx.vc == o.src.vc,
        otherwise=_BY_SRC,
    ),
    must("value-shape")(
        "dstVal has one valid row and as many valid columns as src",
        lambda o: o.dstVal is None or (o.dstVal.vr == 1 and o.dstVal.vc == o.src.vc),
        otherwise=_BY_SRC,
    ),
    same_dtype("src", "dstVal", id="value-type"),
    _index_form(),
    must("value-index-type", "a2a3 " + A5_FAMILY)(
        "with dstVal, dstIdx is i16 or u16 for 2-byte elements, i32 or u32 for 4-byte ones",
        lambda o: (
            o.dstVal is None
            or (o.src.itemsize == 2 and o.dstIdx.dtype in HALF_WORDS)
            or (o.src.itemsize == 4 and o.dstIdx.dtype in WORDS)
        ),
    ),
    disjoint("dstVal", "dstIdx", "src"),
    separate("tmp", "dstVal", "dstIdx", "src", id="tmp-apart", on="a2a3"),
    same_dtype("tmp", "src", id="tmp-type", on="a2a3"),
    single("dstIdx", "valid_row"),
    filled("src"),
    _typed_scratch(_pairs),
    scratch_held(
        "tmp",
        _column_room,
        "two elements per column of a 256-byte step, three for 2-byte elements without dstVal",
    ),
    must("index-precision", "a2a3")(
        "2-byte elements without dstVal: src has at most 2049 valid rows (indices pass through "
        "f16)",
        lambda o: o.dstVal is not None or o.src.itemsize != 2 or o.src.vr <= 2049,
        "split the rows, or take the form with dstVal",
        "indices above 2048 are rounded to f16",
    ),
    must("index-range", "a2a3")(
        "2-byte elements with dstVal: src has at most 32768 valid rows",
        lambda o: o.dstVal is None or o.src.itemsize != 2 or o.src.vr <= 32768,
        "split the rows",
    ),
    must("index-range", A5_FAMILY)(
        "1- and 2-byte elements: src has at most 32768 valid rows (indices are signed 16-bit)",
        lambda o: o.src.itemsize > 2 or o.src.vr <= 32768,
        "split the rows",
        "the index wraps around in 16 bits",
    ),
    must("narrow-values", A5_FAMILY)(
        "with dstVal, elements have 2 or 4 bytes",
        lambda o: o.dstVal is None or o.src.itemsize in (2, 4),
        "convert with TCVT first, or take the index alone",
    ),
    rows_16bit("src"),
]


_along_column = _family(
    lambda o: (min(1, _rows_seen(o)), o.src.vc),
    _columns_of,
    _column_room,
    ArgReduce(axis=0, kept=_kept_index),
    steps=[
        steps(
            when=lambda o: o.dstVal is None and o.src.itemsize == 2,
            between="V",
            keeps_scratch=True,
        ),
        UNTIL_DONE,
    ],
    types=types(
        "src",
        a2a3="f16 f32 u16 u32",
        a5="i8 u8 i16 u16 i32 u32 f16 f32",
        kirin="i8 u8 i16 u16 i32 u32 f16 f32",
    ),
    rules=_COLUMN_RULES,
    example={"dstIdx": "Vec i32 1x64", "src": "Vec {T} 16x64", "tmp": "Vec {T} 16x64"},
    more_examples="""
        dstVal       | dstIdx       | src           | tmp
        Vec f16 1x64 | Vec i16 1x64 | Vec f16 16x64 | Vec f16 16x64
        Vec u16 1x64 | Vec u16 1x64 | Vec u16 16x64 | Vec u16 16x64
        Vec f32 1x64 | Vec u32 1x64 | Vec f32 16x64 | Vec f32 16x64
    """,
)


def _moves(better: Step, keeps: Step) -> Callable[[Expr, Expr], tuple[Expr, Expr]]:
    """Take the value where it is better; a2a3 moves the index wherever it does not keep it.

    There unsigned integers are compared as floats of the same bits.
    """

    def taken(held: Expr, element: Expr) -> tuple[Expr, Expr]:
        found = better(held, element)
        a, b = held, element
        if held.kind in (dt.u16, dt.u32):
            a, b = (e.bits(dt.f16 if e.kind is dt.u16 else dt.f32) for e in (held, element))
        value = given(on("a2a3"), better(a, b), found)
        return value, given(on("a2a3"), ~keeps(a, b), found)

    return taken


family(
    _along_column,
    """Store the row index of the [maximum|minimum] of every column in row 0 of dstIdx.

    The valid region of src governs; of equal [maxima|minima] the first wins. `{name}(dstVal,
    dstIdx, src, tmp)` also stores the [maximum|minimum] itself, bit for bit, in row 0 of dstVal.
    With NaN targets differ: a2a3 moves on to the row after every comparison with one, others keep
    what they have. a2a3 compares u16 and u32 as f16 and f32: patterns with the top bit set are
    negative there, those above infinity NaN. tmp is scratch that only a2a3 uses.
    """,
    TCOLARGMAX=_moves(operator.lt, operator.ge),
    TCOLARGMIN=_moves(operator.gt, operator.le),
)
