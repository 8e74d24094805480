"""Broadcasts: one value per row meets all elements of that row, or one row all rows of a tile.

The per-row operand of the binary forms is a column (DN, one valid column) or 32 bytes per row (ND),
which repeat along the row. Either source may be the one that is broadcast; the result is always
src0 op src1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ptokit.base.enums import TileType
from ptokit.base.layout import AxisMap
from ptokit.base.precision import DivAlgorithm
from ptokit.base.tiles import DYNAMIC
from ptokit.isa.costs import BROADCAST
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.effects import IN_STEPS, Scratch, steps
from ptokit.isa.expr import Expr
from ptokit.isa.freedom import ulp, unspecified
from ptokit.isa.language import filled, in_text, known, precise_with_tmp, room
from ptokit.isa.meaning import Each, at_the_same_places
from ptokit.isa.numerics import exp_difference, larger, quotient, smaller
from ptokit.isa.pointwise import (
    AS_DST,
    COPIED,
    NUMBERS,
    arithmetic,
    in_place_or_apart,
    narrow,
    not_empty,
    on_a2a3,
    one_vector,
    one_vector_of_i64,
    plain,
    precision,
    scratch,
    scratch_held,
)
from ptokit.isa.regions import Extent, Reach, View, pitched
from ptokit.isa.rules import located, must, or_else, same_dtype, separate, unboxed
from ptokit.isa.spec import Asm, Operand, Rule, family, insn, out, src, types
from ptokit.isa.vector_rules import (
    BLOCK_BYTES,
    block_tail,
    by_target,
    ceil_to,
    counted,
    lanes,
    per_block,
    rows_16bit,
    same_region,
)

STRICT = unspecified(
    "NaN; zeros of both signs",
    "For NaN, and for zeros of either sign, nothing is stated; the reference keeps src0 unless "
    "src1 compares as better.",
)
_NUMBERS = narrow(NUMBERS)


# ---- a value per row -----------------------------------------------------------------------------

# Where a2a3 spreads a column out when it is given no tmp: the last 8 KiB of 192.
_WINDOW = (188416, 196608)


def _is_full(tile: Any, dst: Any) -> bool:
    return tile.is_row_major and same_region(tile, dst)


def _per_row(o: Any) -> str:
    """The name of the source that holds one value per row; valid regions alone tell which."""
    if not same_region(o.src0, o.dst):
        return "src0"
    wider = on_a2a3(o) and o.tmp is None and o.src0.row_stride < o.src1.row_stride
    return "src0" if wider and same_region(o.src1, o.dst) else "src1"


def _full(o: Any) -> Any:
    return o["src1" if _per_row(o) == "src0" else "src0"]


def _from_column(o: Any) -> bool:
    """Whether the per-row operand is taken as a column, which a2a3 spreads out first; the
    assembler's library takes the first column of any operand."""
    if o.target.tile_library:
        return True
    return not o[_per_row(o)].is_row_major or (on_a2a3(o) and o.tmp is not None)


def _uses_window(o: Any) -> bool:
    return on_a2a3(o) and o.tmp is None and _from_column(o)


def _is_one_run(o: Any) -> bool:
    """Whether later targets take a narrow dst without padding, and its source, for one run."""
    unpadded = o.dst.valid_col == o.dst.cols or o.dst.rows == 1
    return o.target.is_device and not on_a2a3(o) and o.dst.cols < lanes(o.dst) and unpadded


def _by_groups(o: Any) -> bool:
    """Whether a2a3 goes over so many rows in groups."""
    return on_a2a3(o) and min(o.dst.rows, o.dst.vr) >= 256


def _row_values(o: Any) -> View | Extent:
    """Where the values of the rows lie: the layout of their tile alone decides."""
    tile, rows = o[_per_row(o)], o.dst.vr
    block = per_block(o.dst)
    if _from_column(o):
        column = at_the_same_places(tile, (rows, 1))
        return column if tile.cols == 1 else pitched(rows, 1, 1 if on_a2a3(o) else tile.cols)
    columns = min(block, o.dst.vc)
    if tile.cols == block or not o.target.is_device:
        return at_the_same_places(tile, (rows, columns))
    if not _by_groups(o):
        return pitched(rows, columns, block)
    groups = AxisMap((-(-rows // 255), 255, columns), (255 * tile.cols, block, 1), (0, 1), (2,))
    return Reach(groups, sizes=(rows, columns))


def _either(name: str) -> Operand:
    """A source that is full or holds the values of the rows."""

    def region(o: Any) -> View | Extent:
        if _per_row(o) == name:
            return _row_values(o)
        if _is_one_run(o) and o[name].row_stride != o.dst.vc:
            return pitched(o.dst.vr, o.dst.vc, o.dst.vc)
        return at_the_same_places(o[name], (o.dst.vr, o.dst.vc))

    return src(name, view=region)


def _spread(o: Any) -> int:
    """Bytes into which a2a3 spreads a column out."""
    return 7680 if _by_groups(o) else 256 * -(-o.dst.vr // 8)


def _rows_processed(o: Any) -> int:
    """Rows a2a3 processes: from 256 on in groups of 240, of which the last may be filled up."""
    overrun = on_a2a3(o) and _from_column(o) and o.dst.vr >= 256 and o.dst.vr % 240 >= 233
    return ceil_to(o.dst.vr, 240) if overrun else o.dst.vr


def _overrun(o: Any) -> tuple[slice, slice] | None:
    rows = _rows_processed(o)
    return None if rows == o.dst.vr else (slice(o.dst.vr, rows), slice(0, o.dst.vc))


_HIDDEN = Scratch(TileType.Vec, _WINDOW[0], _WINDOW[1] - _WINDOW[0], _spread)
_STEPS = [
    steps(when=_uses_window, between="V", keeps_scratch=True, scratch=_HIDDEN),
    steps(when=lambda o: o.tmp is not None, between="V", keeps_scratch=True),
]


_BY_LAYOUT = (
    "only the layout of the per-row source counts: a row-major one is read as packed blocks of 32 "
    "bytes, a column-major one as a column"
)


def _with_row_value_rules(
    dtype: str = "same-dtype", major: str = "layout", shape: str = "per-row-source"
) -> list[Rule]:
    """What every binary broadcast along rows demands; the ids differ between instructions."""
    tiles = ("dst", "src0", "src1")
    return [
        same_dtype(*tiles, id=dtype),
        plain("dst", id=major),
        located("Vec", *tiles, "tmp"),
        unboxed("src0", "src1"),
        arithmetic("dst"),
        must("full-source")(
            "src0 or src1 is row-major and has the valid region of dst",
            lambda o: _is_full(o.src0, o.dst) or _is_full(o.src1, o.dst),
            "give one source the valid rows and columns of dst",
            "the full source is src0 if its valid region is that of dst, otherwise src1, whatever "
            "it looks like",
        ),
        must(shape)(
            "the other source has as many valid rows as dst and is a column with one valid "
            "column, or row-major with 32 bytes of valid columns",
            lambda o: (
                o[_per_row(o)].vr == o.dst.vr
                and o[_per_row(o)].vc == (per_block(o.dst) if o[_per_row(o)].is_row_major else 1)
            ),
            "declare it as Tile[Vec, T, Rows, 1, BLayout.ColMajor], or with 32 bytes per row",
            _BY_LAYOUT,
        ),
        must(shape, "a2a3")(
            "with tmp, the per-row source is a column",
            lambda o: o.tmp is None or not o[_per_row(o)].is_row_major,
            "declare it as Tile[Vec, T, Rows, 1, BLayout.ColMajor], or leave tmp out",
            "it is read like a column: row i takes element i of its storage",
        ),
        must("row-pitch", DEVICES)(
            "rows of a row-major per-row source are 32 bytes apart (Cols * sizeof(DType) == 32)",
            lambda o: _from_column(o) or o[_per_row(o)].cols == per_block(o.dst),
            "declare that tile with 32 bytes per row",
            _BY_LAYOUT,
        ),
        must("ub-window", "a2a3")(
            "a column without tmp: no operand reaches into bytes 188416 to 196608 of UB, where "
            "the column is spread out",
            lambda o: (
                o.mode == "auto"
                or not _uses_window(o)
                or all(o[n].addr + o[n].nbytes <= _WINDOW[0] for n in tiles)
            ),
            "bind the tiles below 188416 (184 KiB), or pass a tmp",
            "they are overwritten before they are read: the result is undefined",
            voids=True,
        ),
        scratch_held("tmp", _spread, "256 for every 8 valid rows of dst, 7680 from 256 rows on"),
        precise_with_tmp(),
        room(
            lambda o: min(known(o.dst.valid_row, per=8) or 0, 30) * 256,
            "256 bytes for every 8 valid rows of dst, at most 7680",
        ),
        in_text(
            "tmp-type",
            "tmp has the element type of dst",
            lambda o: o.tmp is None or o.tmp.dtype is o.dst.dtype,
            fix="declare tmp with the type of dst, or leave it out",
        ),
        in_text(
            shape,
            "with tmp, the per-row source is a column",
            lambda o: o.tmp is None or not (o.src0.is_row_major and o.src1.is_row_major),
            "a2a3",
            "leave tmp out",
        ),
        must("row-groups", "a2a3")(
            "from 256 valid rows on, rows come in groups of 240: when the last group lacks at most "
            "7, dst and the full source have room for all of it",
            lambda o: min(o.dst.rows, _full(o).rows) >= _rows_processed(o),
            "give the tiles more rows, or split them",
            "the rows past the tile are written as well",
        ),
        must("contiguous", A5_FAMILY)(
            "dst narrower than 256 bytes without padding columns: the full source has none either",
            lambda o: not _is_one_run(o) or _full(o).row_stride == o.dst.vc,
            "give the full source as many columns as dst",
            "row i of the full source is read at element i times the valid columns of dst",
        ),
        must("step-count", A5_FAMILY)(
            "valid rows times 256-byte pieces per row are at most 65535",
            lambda o: o.dst.vr * -(-o.dst.vc // lanes(o.dst)) <= 65535,
            "split the tile",
        ),
        *in_place_or_apart("dst", "src0", "src1"),
        separate("tmp", "dst", "src0", "src1", id="tmp-apart", on="a2a3"),
    ]


_with_row_value = partial(
    insn,
    out("dst", unspecified=_overrun),
    _either("src0"),
    _either("src1"),
    scratch(_spread, optional=True, note="scratch; only a2a3 uses it"),
    means=Each(repeats=True),
    steps=_STEPS,
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


def _by_scalar_unit(o: Any) -> bool:
    """Whether a2a3 reads the value of each row with the scalar unit."""
    sizes = (o.dst.valid_row, o.dst.valid_col, o.src.valid_row, o.src.valid_col)
    return o.dst.itemsize == 1 or o.src.is_row_major or DYNAMIC in sizes


def _first_column(o: Any) -> View | Extent:
    """Column 0 of src; later targets go from row to row by `Cols` whatever the layout."""
    rows = counted(o, o.dst.vr)
    if o.target.is_device and not on_a2a3(o) and not o.src.is_row_major:
        return pitched(rows, 1, o.src.cols)
    return at_the_same_places(o.src, (rows, 1))


@insn(
    # a2a3 writes bytes in pairs: behind an odd number of columns one more gets the value.
    out(
        "dst",
        view=lambda o: (
            counted(o, o.dst.vr),
            one_vector(o)[1] + (o.dst.vc % 2 if on_a2a3(o) and o.dst.itemsize == 1 else 0),
        ),
    ),
    src("src", view=_first_column),
    means=Each(),
    cost=BROADCAST,
    types=types(**COPIED, ids={"a2a3": "SA-0008"}),
    rules=[
        by_target("SA-0112", "SA-0111", lambda i, on: located("Vec", "src", id=i, on=on)),
        by_target("SA-0112", "SA-0033", lambda i, on: located("Vec", "dst", id=i, on=on)),
        unboxed("src", id="SA-0103"),
        plain("dst"),
        same_dtype("dst", "src", id="SA-0188"),
        must("same-rows")(
            "src has as many valid rows as dst",
            lambda o: o.src.vr == o.dst.vr,
            otherwise="the valid rows of dst govern",
        ),
        *or_else("the valid sizes of src are not looked at", not_empty("src")),
        not_empty("dst", on="a2a3"),
        must("static-column", A5_FAMILY)(
            "the static ValidCol of src is 1, or it is DYNAMIC",
            lambda o: o.src.valid_col in (1, DYNAMIC),
            "declare src with ValidCol 1",
            in_text=lambda o: o.src.vc >= 1 or o.dst.vr == o.dst.vc == 0,
        ),
        must("single-column", A5_FAMILY)(
            "a column-major src has one column",
            lambda o: o.src.is_row_major or o.src.cols == 1,
            otherwise="row i is read at element i * Cols of its storage",
        ),
        one_vector_of_i64("dst"),
        rows_16bit("dst"),
        separate("dst", "src"),
        filled("dst", "src", marker="dst"),
    ],
    example={"dst": "Vec {T} 32x64", "src": "Vec {T} 32x1 DN"},
    steps=[steps(when=_by_scalar_unit, start="V->S", between="V->S S->V")],
)
def TROWEXPAND(src: Expr) -> Expr:
    """Copy column 0 of every row of src to all valid columns of that row of dst.

    The valid region of dst governs; other columns of src are ignored. On a2a3 tiles of bytes with
    an odd number of valid columns also get the value in the next column.
    """
    return src


# ---- a single row --------------------------------------------------------------------------------


def _sources(o: Any) -> tuple[Any, Any]:
    """The full source and the single row."""
    return (o.src0, o.src1) if same_region(o.src0, o.dst) else (o.src1, o.src0)


def _in_one_go(o: Any) -> bool:
    """Whether a2a3 covers all rows with one repeated instruction, whose fields have 8 bits."""
    return o.dst.valid_col == o.dst.cols or o.dst.rows == 1


def _blocks(tile: Any) -> int:
    return tile.row_stride * tile.itemsize // BLOCK_BYTES


def _with_row_rules(major: str = "layout") -> list[Rule]:
    return [
        plain("dst", id=major),
        plain("src0", "src1", id="source-layout"),
        located("Vec", "dst", "src0", "src1"),
        *or_else(AS_DST, same_dtype("dst", "src0", "src1")),
        arithmetic("dst"),
        must("full-source")(
            "src0 or src1 has the valid region of dst",
            lambda o: same_region(o.src0, o.dst) or same_region(o.src1, o.dst),
            "give one source the valid rows and columns of dst",
            "src1 is taken as the full source, and read at the places of dst",
        ),
        must("row-source")(
            "the other source has at least one valid row, and the valid columns of dst",
            lambda o: _sources(o)[1].vr >= 1 and _sources(o)[1].vc >= o.dst.vc,
            "declare it as Tile[Vec, T, 1, Cols] with as many valid columns as dst",
            "row 0 of its storage is read, as many columns as dst has",
        ),
        must("repeat-count", "a2a3")(
            "dst without padding columns has at most 255 valid rows",
            lambda o: not _in_one_go(o) or o.dst.vr <= 255,
            "split the rows",
            "the count has 8 bits: rows modulo 256 are processed",
        ),
        must("repeat-stride", "a2a3")(
            "dst without padding columns: rows of dst and of the full source are at most 255 "
            "blocks of 32 bytes apart",
            lambda o: (
                not _in_one_go(o) or (_blocks(o.dst) <= 255 and _blocks(_sources(o)[0]) <= 255)
            ),
            "split the columns",
            "the distance of rows has 8 bits: blocks modulo 256",
        ),
        rows_16bit("dst"),
        *in_place_or_apart("dst", "src0", "src1"),
    ]


def _repeats(o: Any, full: Any) -> View | Extent:
    """The rows of a tile that a repeated instruction reaches: count and distance have 8 bits."""
    rows, cols = counted(o, o.dst.vr), o.dst.vc
    if on_a2a3(o) and _in_one_go(o):
        rows %= 256
        if _blocks(full) > 255:
            return pitched(rows, cols, _blocks(full) % 256 * per_block(full), o.dst.dtype)
    return at_the_same_places(full, (rows, cols), o.dst.dtype)


def _either_way(name: str) -> Operand:
    """The full source, or the single row.

    src0 is the full source when it has the valid region of dst, otherwise src1 is.
    """

    def region(o: Any) -> View | Extent:
        full, row = _sources(o)
        if o[name] is full and (name == "src0" or full is not row):
            return _repeats(o, full)
        return at_the_same_places(row, (min(1, o.dst.vr), o.dst.vc), o.dst.dtype)

    return src(name, view=region)


_with_row = partial(
    insn,
    out("dst", view=lambda o: _repeats(o, o.dst)),
    _either_way("src0"),
    _either_way("src1"),
    means=Each(),
    example={"dst": "Vec {T} 16x64", "src0": "Vec {T} 16x64", "src1": "Vec {T} 1x64"},
    more_examples=[
        {"dst": "Vec f16 16x64", "src0": "Vec f16 1x64", "src1": "Vec f16 16x64"},
        {"dst": "Vec f32 1x1024", "src0": "Vec f32 1x1024", "src1": "Vec f32 1x1024"},
    ],
)


def _copied(o: Any) -> tuple[int, int]:
    """The rows and columns that get the row; later targets do not look at the sizes of src."""
    ignores_src = o.target.is_device and not on_a2a3(o)
    sizes = (o.dst.vr, o.dst.vc) if ignores_src else (o.dst.vr, o.dst.vc, o.src.vr, o.src.vc)
    return (counted(o, o.dst.vr), one_vector(o)[1]) if min(sizes) > 0 else (0, 0)


@insn(
    out("dst", unspecified=lambda o: block_tail(o, *_copied(o))),
    src("src", view=lambda o: at_the_same_places(o.src, (min(1, _copied(o)[0]), _copied(o)[1]))),
    means=Each(over=_copied),
    types=types(**COPIED),
    rules=[
        located("Vec", "dst", "src"),
        plain("dst", "src"),
        same_dtype("dst", "src"),
        must("same-columns", DEVICES)(
            "src has as many valid columns as dst",
            lambda o: o.src.vc == o.dst.vc,
            otherwise="the valid columns of dst govern: its storage is read as far",
        ),
        *or_else("row 0 of its storage is read", not_empty("src", on=A5_FAMILY)),
        one_vector_of_i64("dst"),
        rows_16bit("dst"),
        separate("dst", "src"),
    ],
    example={"dst": "Vec {T} 16x64", "src": "Vec {T} 1x64"},
)
def TCOLEXPAND(src: Expr) -> Expr:
    """Copy row 0 of src to all valid rows of dst.

    The valid region of dst governs; other rows of src are ignored. a2a3 copies whole 32-byte
    blocks, so up to there the columns past the valid ones are lost, and it does nothing when one
    of the tiles is empty.
    """
    return src


# ---- both ways -----------------------------------------------------------------------------------


_NOTHING: Mapping[str, Any] = {}


def _both_ways(
    suffix: str,
    function: Callable[..., Expr],
    doc: str,
    *,
    kinds: Mapping[str, str] = _NUMBERS,
    row: str = "",
    column: str = "",
    row_block: Mapping[str, Any] = _NOTHING,
    column_block: Mapping[str, Any] = _NOTHING,
    **more: Any,
) -> None:
    """Define an operation with a value per row and the same with a single row.

    `row` and `column` are the assertions on the element types and of the rules, in their order;
    `row_block` and `column_block` what only one of them says.
    """
    (row_types, *row_rules), (types_, *rules) = row.split() or [""], column.split() or [""]
    ways = {
        f"TROWEXPAND{suffix}": partial(
            _with_row_value,
            types=types(**kinds, ids=row_types),
            rules=_with_row_value_rules(*row_rules),
            **row_block,
        ),
        f"TCOLEXPAND{suffix}": partial(
            _with_row,
            types=types(**kinds, ids=types_),
            rules=_with_row_rules(*rules),
            **column_block,
        ),
    }
    block: Any = lambda name, doc: ways[name](name=name, doc=doc, **more)  # noqa: E731
    family(block, doc, **dict.fromkeys(ways, function))


_both_ways(
    "ADD",
    operator.add,
    """Add a [value per row to a tile|row to all rows of a tile]: dst = src0 + src1, where one \
source [has one value per row|is a single row].

    The valid region of dst governs and dst may be the full source. [The per-row source is a column,
    or holds 32 bytes per row that repeat along it. On a2a3 a column is spread out in tmp or, when
    there is none, in UB bytes 188416 to 196608, whose contents are lost.|The single row is src1 or,
    less portably, src0; only its row 0 is read.] Integers wrap.
    """,
    row_block={"asm": Asm(tmp=frozenset())},
)
_both_ways(
    "SUB",
    operator.sub,
    """Subtract with [one value per row|a single row]: dst = src0 - src1, where one source \
[has one value per row|is one row for all].

    The operands keep their order whichever is the [per-row source. Layout, tmp and the UB scratch
    of a2a3 are as for TROWEXPANDADD|single row; see TCOLEXPANDADD]. Integers wrap.
    """,
    row="SA-0315 SA-0317 SA-0316 PA-0059",
    column="SA-0147 SA-0148",
)
_both_ways(
    "MUL",
    operator.mul,
    """Multiply [a tile by a value per row|all rows of a tile by one row]: dst = src0 * src1; \
one source [has one value per row|is a single row].

    [Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD|See TCOLEXPANDADD for the
    operands]. Integers wrap.
    """,
    row="SA-0312 SA-0314 SA-0313 PA-0058",
    column="SA-0145 SA-0146",
)


def _divided(src0: Expr, src1: Expr, PrecisionType: DivAlgorithm) -> Expr:
    return quotient(src0, src1, PrecisionType == DivAlgorithm.HIGH_PRECISION)


_both_ways(
    "DIV",
    _divided,
    """Divide with [one value per row|a single row]: dst = src0 / src1, where one source \
[has one value per row|is one row for all].

    The operands keep their order whichever is the [per-row source|single row; see TCOLEXPANDADD].
    Integers are truncated toward zero; what division by zero gives is not defined for them (0
    here). HIGH_PRECISION asks a5 for the correctly rounded quotient of floats.[ Layout, tmp and the
    UB scratch of a2a3 are as for TROWEXPANDADD.|]
    """,
    kinds=_NUMBERS | {"a2a3": "f16 f32"},
    row="SA-0306 SA-0308 SA-0307 PA-0057",
    column="SA-0141 SA-0142",
    attrs=precision(DivAlgorithm),
    freedom=ulp(
        None, "The accuracy of the hardware division is not stated; the reference rounds once."
    ),
)
for _suffix, _word, _function in (("MAX", "larger", larger), ("MIN", "smaller", smaller)):
    _both_ways(
        _suffix,
        _function,
        f"""Take the {_word} of an element and [the value of its row|that of one row in its \
column]; one source [has one value per row|is a single row].

        [Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD|See TCOLEXPANDADD for the
        operands]. Keep the data free of NaN.
        """,
        freedom=STRICT,
    )
_both_ways(
    "EXPDIF",
    exp_difference,
    """Compute exp(src0 - src1), where one source [has one value per row: the core of a softmax|\
is a single row for all rows].

    The operands keep their order whichever is the [per-row source|single row; see TCOLEXPANDADD].
    The difference is rounded to the element type before the exponential, except for f32 on a5.[
    Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD.|]
    """,
    kinds=dict.fromkeys(("a2a3", "a5", "kirin"), "f16 f32"),
    # The barrier before the exponential covers the scratch.
    row_block={"steps": [steps(when=_uses_window, between="V", scratch=_HIDDEN), IN_STEPS]},
    column_block={"steps": [IN_STEPS]},
    row="SA-0309 SA-0311 SA-0310",
    column="SA-0143 SA-0144",
    freedom=ulp(
        None,
        "The accuracy of the hardware exponential is not stated; the reference rounds the exact "
        "one once. Only a5 does not round an f32 difference first.",
    ),
)
