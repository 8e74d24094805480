"""Broadcasts along rows: one value per row meets all elements of that row.

The per-row operand of the binary forms is a column (DN, one valid column) or 32 bytes per row (ND),
which repeat along the row; either source may be it. The result is always src0 op src1.
`expand_columns.py` has the broadcasts along columns.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ptokit.base.enums import TileType
from ptokit.base.precision import DivAlgorithm
from ptokit.base.tiles import DYNAMIC
from ptokit.isa.expr import Expr
from ptokit.isa.freedom import ulp, unspecified
from ptokit.isa.meaning import Clobber, Each
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
from ptokit.isa.rules import located, same_dtype, separate, unboxed, whole_overlap
from ptokit.isa.spec import Asm, Rule, insn, out, rule, src, tmp, types
from ptokit.isa.vector_rules import arithmetic, by_target, ceil_to, lanes, per_block, rows_16bit

EXP_ACCURACY = ulp(
    None,
    "The accuracy of the hardware exponential is not stated; the reference rounds the exact one "
    "once. Only a5 does not round an f32 difference first.",
)
DIV_ACCURACY = ulp(
    None, "The accuracy of the hardware division is not stated; the reference rounds once."
)
STRICT = unspecified(
    "NaN; zeros of both signs",
    "For NaN, and for zeros of either sign, nothing is stated; the reference keeps src0 unless "
    "src1 compares as better.",
)
ARITHMETIC = {
    "a2a3": "f16 f32 i16 i32",
    "a5": "i8 u8 i16 u16 i32 u32 f16 bf16 f32",
    "kirin": "i8 u8 i16 u16 i32 u32 f16 f32",
}
FLOATS = {"a2a3": "f16 f32", "a5": "f16 f32", "kirin": "f16 f32"}
QUOTIENTS = ARITHMETIC | {"a2a3": "f16 f32"}


# ---- operands and rules of the binary forms ------------------------------------------------------

# Where a2a3 spreads a column out when it is given no tmp: the last 8 KiB of 192.
_WINDOW = (188416, 196608)


def _is_full(tile: Any, dst: Any) -> bool:
    return tile.is_row_major and tile.vr == dst.vr and tile.vc == dst.vc


def _per_row(o: Any) -> str:
    """The name of the source that holds one value per row."""
    if not _is_full(o.src0, o.dst):
        return "src0"
    wider = on_a2a3(o) and o.tmp is None and o.src0.row_stride < o.src1.row_stride
    return "src0" if wider and _is_full(o.src1, o.dst) else "src1"


def _full(o: Any) -> Any:
    return o["src1" if _per_row(o) == "src0" else "src0"]


def _from_column(o: Any) -> bool:
    """Whether the per-row operand is a column, which a2a3 spreads out first."""
    return not o[_per_row(o)].is_row_major


def _uses_window(o: Any) -> bool:
    return on_a2a3(o) and o.tmp is None and _from_column(o)


def _rows_processed(o: Any) -> int:
    """Rows a2a3 processes: from 256 on in groups of 240, of which the last may be filled up."""
    overrun = on_a2a3(o) and _from_column(o) and o.dst.vr >= 256 and o.dst.vr % 240 >= 233
    return ceil_to(o.dst.vr, 240) if overrun else o.dst.vr


def _overrun(o: Any) -> tuple[slice, slice] | None:
    rows = _rows_processed(o)
    return None if rows == o.dst.vr else (slice(o.dst.vr, rows), slice(0, o.dst.vc))


def _clobbered(o: Any) -> Clobber | None:
    """The hidden scratch; where tiles are placed automatically nobody can be harmed."""
    return (TileType.Vec, *_WINDOW) if o.mode == "manual" and _uses_window(o) else None


def _binary_rules(
    *, dtype: str = "same-dtype", major: str = "layout", shape: str = "per-row-source"
) -> list[Rule]:
    """What every binary broadcast along rows demands; the ids differ between instructions."""
    tiles = ("dst", "src0", "src1")
    return [
        same_dtype(*tiles, id=dtype),
        plain("dst", id=major),
        located("Vec", *tiles, "tmp"),
        unboxed("src0", "src1"),
        arithmetic("dst"),
        rule(
            "full-source",
            "src0 or src1 is row-major and has the valid region of dst",
            lambda o: _is_full(o.src0, o.dst) or _is_full(o.src1, o.dst),
            fix="give one source the valid rows and columns of dst",
        ),
        rule(
            shape,
            "the other source has as many valid rows as dst and is a column with one valid "
            "column, or row-major with 32 bytes of valid columns",
            lambda o: (
                o[_per_row(o)].vr == o.dst.vr
                and o[_per_row(o)].vc == (per_block(o.dst) if o[_per_row(o)].is_row_major else 1)
            ),
            fix="declare it as Tile[Vec, T, Rows, 1, BLayout.ColMajor], or with 32 bytes per row",
        ),
        rule(
            shape,
            "with tmp, the per-row source is a column",
            lambda o: o.tmp is None or _from_column(o),
            "a2a3",
            "declare it as Tile[Vec, T, Rows, 1, BLayout.ColMajor], or leave tmp out",
        ),
        rule(
            "row-pitch",
            "rows of a row-major per-row source are 32 bytes apart (Cols * sizeof(DType) == 32)",
            lambda o: _from_column(o) or o[_per_row(o)].cols == per_block(o.dst),
            DEVICES,
            "declare that tile with 32 bytes per row",
        ),
        rule(
            "ub-window",
            "a column without tmp: no operand reaches into bytes 188416 to 196608 of UB, where "
            "the column is spread out",
            lambda o: (
                o.mode == "auto"
                or not _uses_window(o)
                or all(o[n].addr + o[n].nbytes <= _WINDOW[0] for n in tiles)
            ),
            "a2a3",
            "bind the tiles below 188416 (184 KiB), or pass a tmp",
        ),
        rule(
            "tmp-size",
            "tmp holds 256 bytes for every 8 valid rows of dst, or 7680 bytes from 256 rows on",
            lambda o: (
                o.tmp is None
                or o.tmp.nbytes
                >= (7680 if min(o.dst.rows, o.dst.vr) >= 256 else ceil_to(o.dst.vr, 8) * 32)
            ),
            "a2a3",
        ),
        rule(
            "row-groups",
            "from 256 valid rows on, rows come in groups of 240: when the last group lacks at most "
            "7, dst and the full source have room for all of it",
            lambda o: min(o.dst.rows, _full(o).rows) >= _rows_processed(o),
            "a2a3",
            "give the tiles more rows, or split them",
        ),
        rule(
            "contiguous",
            "dst narrower than 256 bytes without padding columns: the full source has none either",
            lambda o: (
                o.dst.cols >= lanes(o.dst)
                or (o.dst.valid_col != o.dst.cols and o.dst.rows != 1)
                or _full(o).row_stride == o.dst.vc
            ),
            A5_FAMILY,
            "give the full source as many columns as dst",
        ),
        rule(
            "step-count",
            "valid rows times 256-byte pieces per row are at most 65535",
            lambda o: o.dst.vr * -(-o.dst.vc // lanes(o.dst)) <= 65535,
            A5_FAMILY,
            "split the tile",
        ),
        whole_overlap("dst", "src0", "src1"),
        separate("tmp", "dst", "src0", "src1", id="tmp-apart"),
    ]


_with_row_value = partial(
    insn,
    out("dst", unspecified=_overrun),
    src("src0"),
    src("src1"),
    tmp("tmp", optional=True, lost=on_a2a3, note="scratch; only a2a3 uses it"),
    means=Each(repeats=True, clobbers=_clobbered),
    example={"dst": "Vec {T} 32x64", "src0": "Vec {T} 32x64", "src1": "Vec {T} 32x1 DN"},
    more_examples=[
        {"dst": "Vec f16 16x64", "src0": "Vec f16 16x16", "src1": "Vec f16 16x64"},
        {**dict.fromkeys(("dst", "src0", "tmp"), "Vec f32 16x64"), "src1": "Vec f32 16x1 DN"},
        {
            **dict.fromkeys(("dst", "src0"), "Vec f32 480x16 valid 475x16"),
            "src1": "Vec f32 480x1 DN valid 475x1",
            "on": "a2a3",
        },
    ],
)


# ---- the instructions ----------------------------------------------------------------------------


@insn(
    # a2a3 writes bytes in pairs: behind an odd number of columns one more gets the value.
    out(
        "dst",
        view=lambda o: (
            o.dst.vr,
            o.dst.vc + (o.dst.vc % 2 if on_a2a3(o) and o.dst.itemsize == 1 else 0),
        ),
    ),
    src("src", view=lambda o: (o.dst.vr, 1)),
    means=Each(),
    types=types(
        "dst",
        a2a3="i8 u8 i16 u16 i32 u32 f16 bf16 f32",
        a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
        kirin="i8 u8 i16 u16 i32 u32 f16 f32",
        ids={"a2a3": "SA-0008"},
    ),
    rules=[
        by_target("SA-0112", "SA-0111", lambda i, on: located("Vec", "src", id=i, on=on)),
        by_target("SA-0112", "SA-0033", lambda i, on: located("Vec", "dst", id=i, on=on)),
        unboxed("src", id="SA-0103"),
        plain("dst"),
        same_dtype("dst", "src", id="SA-0188"),
        rule(
            "same-rows",
            "src has as many valid rows as dst",
            lambda o: o.src.vr == o.dst.vr,
        ),
        not_empty("src"),
        not_empty("dst", on="a2a3"),
        rule(
            "static-column",
            "the static ValidCol of src is 1, or it is DYNAMIC",
            lambda o: o.src.valid_col in (1, DYNAMIC),
            A5_FAMILY,
            "declare src with ValidCol 1",
        ),
        rule(
            "single-column",
            "a column-major src has one column",
            lambda o: o.src.is_row_major or o.src.cols == 1,
            A5_FAMILY,
        ),
        one_vector_of_i64("dst"),
        rows_16bit("dst"),
        separate("dst", "src"),
    ],
    example={"dst": "Vec {T} 32x64", "src": "Vec {T} 32x1 DN"},
)
def TROWEXPAND(src: Expr) -> Expr:
    """Copy column 0 of every row of src to all valid columns of that row of dst.

    The valid region of dst governs; other columns of src are ignored. On a2a3 tiles of bytes with
    an odd number of valid columns also get the value in the column behind.
    """
    return src


@_with_row_value(
    types=types(**ARITHMETIC),
    rules=_binary_rules(),
    asm=Asm(tmp=frozenset()),
)
def TROWEXPANDADD(src0: Expr, src1: Expr) -> Expr:
    """Add a value per row to a tile: dst = src0 + src1, where one source has one value per row.

    The valid region of dst governs and dst may be the full source. The per-row source is a column,
    or holds 32 bytes per row that repeat along it. On a2a3 a column is spread out in tmp or, when
    there is none, in UB bytes 188416 to 196608, whose contents are lost. Integers wrap.
    """
    return src0 + src1


@_with_row_value(
    types=types(**ARITHMETIC, ids="SA-0315"),
    rules=_binary_rules(dtype="SA-0317", major="SA-0316", shape="PA-0059"),
)
def TROWEXPANDSUB(src0: Expr, src1: Expr) -> Expr:
    """Subtract with one value per row: dst = src0 - src1, where one source has one value per row.

    The operands keep their order whichever is the per-row source. Layout, tmp and the UB scratch of
    a2a3 are as for TROWEXPANDADD. Integers wrap.
    """
    return src0 - src1


@_with_row_value(
    types=types(**ARITHMETIC, ids="SA-0312"),
    rules=_binary_rules(dtype="SA-0314", major="SA-0313", shape="PA-0058"),
)
def TROWEXPANDMUL(src0: Expr, src1: Expr) -> Expr:
    """Multiply a tile by a value per row: dst = src0 * src1; one source has one value per row.

    Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD. Integers wrap.
    """
    return src0 * src1


@_with_row_value(
    attrs=precision(DivAlgorithm),
    types=types(**QUOTIENTS, ids="SA-0306"),
    rules=_binary_rules(dtype="SA-0308", major="SA-0307", shape="PA-0057"),
    freedom=DIV_ACCURACY,
)
def TROWEXPANDDIV(src0: Expr, src1: Expr, PrecisionType: DivAlgorithm) -> Expr:
    """Divide with one value per row: dst = src0 / src1, where one source has one value per row.

    The operands keep their order whichever is the per-row source. Integers are truncated toward
    zero; what division by zero gives is not defined for them (0 here). HIGH_PRECISION asks a5 for
    the correctly rounded quotient of floats. Layout, tmp and the UB scratch of a2a3 are as for
    TROWEXPANDADD.
    """
    return quotient(src0, src1, PrecisionType == DivAlgorithm.HIGH_PRECISION)


@_with_row_value(types=types(**ARITHMETIC), rules=_binary_rules(), freedom=STRICT)
def TROWEXPANDMAX(src0: Expr, src1: Expr) -> Expr:
    """Take the larger of an element and the value of its row; one source has one value per row.

    Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD. Keep the data free of NaN.
    """
    return larger(src0, src1)


@_with_row_value(types=types(**ARITHMETIC), rules=_binary_rules(), freedom=STRICT)
def TROWEXPANDMIN(src0: Expr, src1: Expr) -> Expr:
    """Take the smaller of an element and the value of its row; one source has one value per row.

    Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD. Keep the data free of NaN.
    """
    return smaller(src0, src1)


@_with_row_value(
    types=types(**FLOATS, ids="SA-0309"),
    rules=_binary_rules(dtype="SA-0311", major="SA-0310"),
    freedom=EXP_ACCURACY,
)
def TROWEXPANDEXPDIF(src0: Expr, src1: Expr) -> Expr:
    """Compute exp(src0 - src1), where one source has one value per row: the core of a softmax.

    The operands keep their order whichever is the per-row source. The difference is rounded to the
    element type before the exponential, except for f32 on a5. Layout, tmp and the UB scratch of
    a2a3 are as for TROWEXPANDADD.
    """
    return exp_difference(src0, src1)
