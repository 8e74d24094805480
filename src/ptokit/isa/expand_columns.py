"""Broadcasts along columns: one row meets all rows of a tile.

In the binary forms either source may be the single row; the result is always src0 op src1.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ptokit.base.precision import DivAlgorithm
from ptokit.isa.expand import (
    ARITHMETIC,
    DIV_ACCURACY,
    EXP_ACCURACY,
    FLOATS,
    QUOTIENTS,
    STRICT,
)
from ptokit.isa.expr import Expr
from ptokit.isa.meaning import Each
from ptokit.isa.numerics import exp_difference, larger, quotient, smaller
from ptokit.isa.pointwise import (
    A5_FAMILY,
    DEVICES,
    not_empty,
    on_a2a3,
    one_vector_of_i64,
    plain,
    precision,
)
from ptokit.isa.rules import located, same_dtype, separate, whole_overlap
from ptokit.isa.spec import Extent, Rule, View, insn, out, rule, src, types
from ptokit.isa.vector_rules import BLOCK_BYTES, arithmetic, ceil_to, per_block, rows_16bit


def _has_shape_of(tile: Any, dst: Any) -> bool:
    return tile.vr == dst.vr and tile.vc == dst.vc


def _row(o: Any) -> Extent:
    """Row 0, as wide as dst; nothing when dst is empty."""
    return min(1, o.dst.vr), o.dst.vc


def _sources(o: Any) -> tuple[Any, Any]:
    """The full source and the single row."""
    return (o.src0, o.src1) if _has_shape_of(o.src0, o.dst) else (o.src1, o.src0)


def _in_one_go(o: Any) -> bool:
    """Whether a2a3 covers all rows with one repeated instruction, whose fields have 8 bits."""
    return o.dst.valid_col == o.dst.cols or o.dst.rows == 1


def _blocks(tile: Any) -> int:
    return tile.row_stride * tile.itemsize // BLOCK_BYTES


def _binary_rules(major: str = "layout") -> list[Rule]:
    return [
        plain("dst", id=major),
        plain("src0", "src1", id="source-layout"),
        located("Vec", "dst", "src0", "src1"),
        same_dtype("dst", "src0", "src1"),
        arithmetic("dst"),
        rule(
            "full-source",
            "src0 or src1 has the valid region of dst",
            lambda o: _has_shape_of(o.src0, o.dst) or _has_shape_of(o.src1, o.dst),
            fix="give one source the valid rows and columns of dst",
        ),
        rule(
            "row-source",
            "the other source has at least one valid row, and the valid columns of dst",
            lambda o: _sources(o)[1].vr >= 1 and _sources(o)[1].vc >= o.dst.vc,
            fix="declare it as Tile[Vec, T, 1, Cols] with as many valid columns as dst",
        ),
        rule(
            "repeat-count",
            "dst without padding columns has at most 255 valid rows",
            lambda o: not _in_one_go(o) or o.dst.vr <= 255,
            "a2a3",
            "split the rows",
        ),
        rule(
            "repeat-stride",
            "dst without padding columns: rows of dst and of the full source are at most 255 "
            "blocks of 32 bytes apart",
            lambda o: (
                not _in_one_go(o) or (_blocks(o.dst) <= 255 and _blocks(_sources(o)[0]) <= 255)
            ),
            "a2a3",
            "split the columns",
        ),
        rows_16bit("dst"),
        whole_overlap("dst", "src0", "src1"),
    ]


# src0 is the full source when it has the valid region of dst, otherwise src1 is.
_with_row = partial(
    insn,
    out("dst"),
    src("src0", view=lambda o: View.VALID if _has_shape_of(o.src0, o.dst) else _row(o)),
    src("src1", view=lambda o: _row(o) if _has_shape_of(o.src0, o.dst) else View.VALID),
    means=Each(),
    example={"dst": "Vec {T} 16x64", "src0": "Vec {T} 16x64", "src1": "Vec {T} 1x64"},
    more_examples=[
        {"dst": "Vec f16 16x64", "src0": "Vec f16 1x64", "src1": "Vec f16 16x64"},
        {"dst": "Vec f32 1x1024", "src0": "Vec f32 1x1024", "src1": "Vec f32 1x1024"},
    ],
)


def _block_tail(o: Any) -> tuple[slice, slice] | None:
    """a2a3 copies whole 32-byte blocks: what lies behind the valid columns is overwritten."""
    stop = ceil_to(o.dst.vc, per_block(o.dst))
    if not on_a2a3(o) or not _copies(o) or stop == o.dst.vc:
        return None
    return slice(0, o.dst.vr), slice(o.dst.vc, stop)


def _copies(o: Any) -> bool:
    return min(o.dst.vr, o.dst.vc, o.src.vr, o.src.vc) > 0


@insn(
    out("dst", view=lambda o: View.VALID if _copies(o) else (0, 0), unspecified=_block_tail),
    src("src", view=lambda o: (1, o.dst.vc) if _copies(o) else (0, 0)),
    means=Each(),
    types=types(
        "dst",
        a2a3="i8 u8 i16 u16 i32 u32 f16 bf16 f32",
        a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
        kirin="i8 u8 i16 u16 i32 u32 f16 f32",
    ),
    rules=[
        located("Vec", "dst", "src"),
        plain("dst", "src"),
        same_dtype("dst", "src"),
        rule(
            "same-columns",
            "src has as many valid columns as dst",
            lambda o: o.src.vc == o.dst.vc,
            DEVICES,
        ),
        not_empty("src", on=A5_FAMILY),
        one_vector_of_i64("dst"),
        rows_16bit("dst"),
        separate("dst", "src"),
    ],
    example={"dst": "Vec {T} 16x64", "src": "Vec {T} 1x64"},
)
def TCOLEXPAND(src: Expr) -> Expr:
    """Copy row 0 of src to all valid rows of dst.

    The valid region of dst governs; other rows of src are ignored. a2a3 copies whole 32-byte
    blocks, so up to there the columns behind the valid ones are lost, and it does nothing when one
    of the tiles is empty.
    """
    return src


@_with_row(types=types(**ARITHMETIC), rules=_binary_rules())
def TCOLEXPANDADD(src0: Expr, src1: Expr) -> Expr:
    """Add a row to all rows of a tile: dst = src0 + src1, where one source is a single row.

    The valid region of dst governs and dst may be the full source. The single row is
    src1 or, less portably, src0; only its row 0 is read. Integers wrap.
    """
    return src0 + src1


@_with_row(types=types(**ARITHMETIC, ids="SA-0147"), rules=_binary_rules("SA-0148"))
def TCOLEXPANDSUB(src0: Expr, src1: Expr) -> Expr:
    """Subtract with a single row: dst = src0 - src1, where one source is one row for all.

    The operands keep their order whichever is the single row; see TCOLEXPANDADD. Integers wrap.
    """
    return src0 - src1


@_with_row(types=types(**ARITHMETIC, ids="SA-0145"), rules=_binary_rules("SA-0146"))
def TCOLEXPANDMUL(src0: Expr, src1: Expr) -> Expr:
    """Multiply all rows of a tile by one row: dst = src0 * src1; one source is a single row.

    See TCOLEXPANDADD for the operands. Integers wrap.
    """
    return src0 * src1


@_with_row(
    attrs=precision(DivAlgorithm),
    types=types(**QUOTIENTS, ids="SA-0141"),
    rules=_binary_rules("SA-0142"),
    freedom=DIV_ACCURACY,
)
def TCOLEXPANDDIV(src0: Expr, src1: Expr, PrecisionType: DivAlgorithm) -> Expr:
    """Divide with a single row: dst = src0 / src1, where one source is one row for all.

    The operands keep their order whichever is the single row; see TCOLEXPANDADD. Integers are
    truncated toward zero; what division by zero gives is not defined for them (0 here).
    HIGH_PRECISION asks a5 for the correctly rounded quotient of floats.
    """
    return quotient(src0, src1, PrecisionType == DivAlgorithm.HIGH_PRECISION)


@_with_row(types=types(**ARITHMETIC), rules=_binary_rules(), freedom=STRICT)
def TCOLEXPANDMAX(src0: Expr, src1: Expr) -> Expr:
    """Take the larger of an element and that of one row in its column; one source is a single row.

    See TCOLEXPANDADD for the operands. Keep the data free of NaN.
    """
    return larger(src0, src1)


@_with_row(types=types(**ARITHMETIC), rules=_binary_rules(), freedom=STRICT)
def TCOLEXPANDMIN(src0: Expr, src1: Expr) -> Expr:
    """Take the smaller of an element and that of one row in its column; one source is a single row.

    See TCOLEXPANDADD for the operands. Keep the data free of NaN.
    """
    return smaller(src0, src1)


@_with_row(
    types=types(**FLOATS, ids="SA-0143"), rules=_binary_rules("SA-0144"), freedom=EXP_ACCURACY
)
def TCOLEXPANDEXPDIF(src0: Expr, src1: Expr) -> Expr:
    """Compute exp(src0 - src1), where one source is a single row for all rows.

    The operands keep their order whichever is the single row; see TCOLEXPANDADD. The difference is
    rounded to the element type before the exponential, except for f32 on a5.
    """
    return exp_difference(src0, src1)
