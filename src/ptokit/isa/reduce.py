"""Reductions: every row into column 0 of the destination, or every column into its row 0.

Nothing else of the destination is written. The function of an instruction is the step that joins
one more element to what is held; where the order of a sum or product matters it differs between
targets (`folds.py` has the orders).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ptokit.base import dtypes as dt
from ptokit.isa import folds
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.effects import UNTIL_DONE, steps
from ptokit.isa.expr import Condition, Expr, on
from ptokit.isa.freedom import reassociates, unspecified
from ptokit.isa.meaning import Reduce, at_the_same_places
from ptokit.isa.numerics import larger, smaller
from ptokit.isa.pointwise import (
    NUMBERS,
    WIDER_NUMBERS,
    arithmetic,
    narrow,
    on_a2a3,
    one_vector_of_i64,
    plain,
    scratch,
    scratch_held,
)
from ptokit.isa.regions import Extent, end_of, pitched
from ptokit.isa.rules import in_place, located, must, or_else, same_dtype, separate
from ptokit.isa.spec import Asm, Attr, Operand, Rule, family, insn, out, src, tmp, types
from ptokit.isa.vector_rules import (
    block_tail,
    by_target,
    lanes,
    reduced_rows,
    row_reduction,
    row_results,
    rows_16bit,
)

STRICT_SCAN = unspecified(
    "NaN; zeros of both signs",
    "For NaN, and for the sign of a zero, nothing is stated; the reference does what a scan with "
    "a strict comparison does.",
)

# The public simulator sums into wider types; the permissive profile takes that over.
_WIDER = {(dt.f16, dt.f32), (dt.bf16, dt.f32), (dt.i16, dt.i32)}
_WIDENING = must("widening", "cpu")(
    "dst has the element type of src, or f32 for f16 and bf16, or i32 for i16",
    lambda o: o.dst.dtype is o.src.dtype or (o.src.dtype, o.dst.dtype) in _WIDER,
)

# ---- rows ----------------------------------------------------------------------------------------

# Shapes a2a3 reduces block by block, and the assertion that belongs to each.
_BLOCK_SHAPES = {
    (16, 512): "SA-0213",
    (32, 256): "SA-0214",
    (64, 128): "SA-0215",
    (8, 1024): "SA-0216",
}
_BLOCK_SAMPLES = [
    {"dst": f"Vec f32 {r}x1 DN", "src": f"Vec f32 {r}x{c}", "tmp": f"Vec f32 {r}x{c}"}
    for r, c in _BLOCK_SHAPES
]


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

    def applies(o: Any) -> bool:
        return o.mode == "auto" and _by_blocks(o) and (o.src.rows, o.src.cols) == (rows, cols)

    return must(id, "a2a3", applies)(
        f"f32, {rows}x{cols} into a column: tmp, where tiles are placed automatically, holds "
        f"{needed} elements, whatever its shape",
        lambda o: o.tmp.numel >= needed,
        "declare tmp with the type and shape of src",
    )


def _in_rows_of_tmp(o: Any) -> bool:
    """Whether a2a3 keeps floats of every row in a row of tmp."""
    return o.src.dtype.is_float and o.src.vc > lanes(o.src) and not _by_blocks(o)


def _float_scratch(text: str, columns: Callable[[Any], int]) -> list[Rule]:
    """On a2a3, rows of floats that are wider than a register need scratch."""
    return [
        must("tmp-pitch", "a2a3", _in_rows_of_tmp)(
            f"floats, more than 256 bytes per row, several rows: a row of tmp has {text}",
            lambda o: o.src.vr <= 1 or o.tmp.cols >= columns(o.src),
            "declare tmp with the type and shape of src",
            "rows of the scratch overlap: the result is undefined",
            voids=True,
        ),
        scratch_held(
            "tmp",
            lambda o: _room(o, columns),
            "for floats of more than 256 bytes per row, as many rows as src has valid ones, else "
            "a block",
        ),
        *(_block_scratch(*shape, id) for shape, id in _BLOCK_SHAPES.items()),
    ]


def _room(o: Any, columns: Callable[[Any], int]) -> int:
    """Bytes of scratch from the address of tmp on."""
    if _by_blocks(o):
        return o.src.numel // 8 * o.src.itemsize
    if not _in_rows_of_tmp(o):
        return 0 if o.src.dtype.is_float else 32
    return ((o.src.vr - 1) * o.tmp.cols + columns(o.src)) * o.tmp.itemsize if o.src.vr else 0


def _row_scratch(columns: Callable[[Any], int]) -> tuple[Operand, ...]:
    """The operands of a reduction of rows, by what a2a3 keeps of a wide row."""
    return (
        out("dst", view=row_results),
        src("src", view=lambda o: at_the_same_places(o.src, reduced_rows(o))),
        scratch(lambda o: _room(o, columns), note="scratch; only a2a3 uses it"),
    )


def _half_of(tile: Any) -> int:
    return lanes(tile) * max(1, tile.vc // lanes(tile) // 2)


def _row_rules(*more: Any, widens: bool = False) -> list[Any]:
    """Rows keep their element type; the permissive profile may widen sums."""
    same = partial(same_dtype, "dst", "src")
    kept = by_target("SA-0190", "SA-0091", lambda i, on: same(id=i, on=on), cpu=not widens)
    return [row_reduction("dst"), kept, [_WIDENING] if widens else [], *more]


_rows = partial(
    insn,
    asm=Asm(tmp=frozenset({"l1", "l2"})),
    example={"dst": "Vec {T} 32x1 DN", "src": "Vec {T} 32x64", "tmp": "Vec {T} 32x64"},
)
_row_types = partial(
    types, "src", ids={"a2a3": "SA-0187"} | dict.fromkeys(A5_FAMILY.split(), "SA-0087")
)
_NUMBERS = "f16 f32 i16 i32"
# The scalar unit finishes the rows of integers, and all products.
_OF_FLOATS = steps(when=lambda o: o.src.dtype.is_float, between="V", end="V", complete=True)
_OF_INTEGERS = steps(between="V V->S S->V", end="S->V", complete=True)


@_rows(
    *_row_scratch(_half_of),
    steps=[_OF_FLOATS, _OF_INTEGERS],
    means=Reduce(
        axis=1,
        orders=(
            (on("cpu"), folds.WIDE_LEFT_TO_RIGHT),
            (Condition("on a2a3, f32 of four full shapes into a column", _by_blocks), folds.BLOCKS),
            (on("a2a3"), folds.PAIRED_REGISTERS),
            (None, folds.REGISTERS),
        ),
    ),
    types=_row_types(a2a3=_NUMBERS, a5=_NUMBERS + " i64 u64", kirin=_NUMBERS),
    rules=_row_rules(
        _float_scratch("half as many registers as src fills, at least one", _half_of),
        one_vector_of_i64("src"),
        widens=True,
    ),
    more_examples=_BLOCK_SAMPLES,
    freedom=reassociates(
        "A device adds the 256-byte pieces of a row in an order of its own, which the reference "
        "follows; the order inside a piece is not stated, and the reference adds neighbours, then "
        "neighbouring sums. Compare float sums with a tolerance."
    ),
)
def TROWSUM(held: Expr, element: Expr) -> Expr:
    """Sum every row of src into column 0 of dst.

    The valid region of src governs. Sums are formed in the element type: f16 rounds, and overflows
    to infinity, at every step; integers wrap. tmp is scratch that only a2a3 uses; one of the type
    and shape of src is always large enough. The permissive profile adds from left to right, f16
    and bf16 in f32, and may sum f16 and bf16 into f32 and i16 into i32.
    """
    return held + element


@_rows(
    *_row_scratch(lanes)[:2],
    scratch(lambda _: 32, note="scratch; only a2a3 uses it"),
    steps=[_OF_INTEGERS],
    means=Reduce(
        axis=1,
        identity=1,
        orders=(
            (on("cpu"), folds.LEFT_TO_RIGHT),
            (on("a2a3"), folds.LANES_THEN_SCALAR),
            (None, folds.LANES_THEN_HALVES),
        ),
    ),
    types=_row_types(a2a3=_NUMBERS, a5=_NUMBERS, kirin=_NUMBERS),
    rules=_row_rules(scratch_held("tmp", lambda _: 32, "a block")),
    freedom=reassociates(
        "a2a3 multiplies 32-byte blocks lane by lane and then the lanes from left to right (f16 in "
        "f32, rounded once); a5 and kirin multiply 256-byte registers and then halves. The "
        "reference follows each."
    ),
)
def TROWPROD(held: Expr, element: Expr) -> Expr:
    """Multiply every row of src into column 0 of dst.

    The valid region of src governs. Products are rounded to the element type at every step;
    integers wrap. tmp is scratch that only a2a3 uses: one 32-byte block.
    """
    return held * element


family(
    partial(
        _rows,
        *_row_scratch(lanes),
        steps=[_OF_FLOATS, _OF_INTEGERS],
        means=Reduce(axis=1),
        types=_row_types(a2a3=_NUMBERS, a5=_NUMBERS + " i8 u8 i64 u64", kirin=_NUMBERS + " i8 u8"),
        rules=_row_rules(_float_scratch("at least 256 bytes", lanes), one_vector_of_i64("src")),
        more_examples=_BLOCK_SAMPLES,
        freedom=STRICT_SCAN,
    ),
    """Store the [maximum|minimum] of every row of src in column 0 of dst.

    The valid region of src governs. The result is one of the elements, bit for bit; keep the data
    free of NaN. tmp is scratch that only a2a3 uses; one of the type and shape of src is always
    large enough.
    """,
    TROWMAX=larger,
    TROWMIN=smaller,
)


# ---- columns -------------------------------------------------------------------------------------


def _column_rules(*more: Rule, widens: bool = False) -> list[Rule]:
    return [
        located("Vec", "dst", "src", id="SA-0211"),
        plain("dst", "src", id="SA-0207"),
        same_dtype("dst", "src", id="SA-0190", on=DEVICES if widens else None),
        *([_WIDENING] if widens else []),
        must("PA-0031")(
            "dst has as many valid columns as src",
            lambda o: o.dst.vc == o.src.vc,
            otherwise="the valid columns of src govern: there is a result for every one of them",
        ),
        arithmetic("src"),
        in_place("dst", "src", id="disjoint"),
        rows_16bit("src"),
        *more,
    ]


def _by_tree(o: Any) -> bool:
    return o.tmp is not None and o.attrs["isBinary"]


def _tree_width(o: Any) -> int:
    """Elements of a row of partial sums; a5 and kirin keep a register of them at a time."""
    return o.src.vc if on_a2a3(o) else min(o.src.vc, lanes(o.src))


def _tree_rows(o: Any) -> Extent:
    """The rows of partial sums, as elements of src at the distance of the rows of tmp."""
    pitch = o.tmp.row_stride * o.tmp.itemsize // o.src.itemsize
    return pitched(max(1, o.src.vr // 2), _tree_width(o), pitch, o.src.dtype)


def _tree_fits(o: Any) -> bool:
    """Whether rows of partial sums do not overlap."""
    row = o.tmp.row_stride * o.tmp.itemsize
    return o.src.vr < 4 or _tree_width(o) * o.src.itemsize <= row


_TREE = Condition("with isBinary on later ones", lambda o: o.target.is_device and _by_tree(o))
_TREE_ON_A2A3 = Condition("with isBinary on a2a3", lambda o: on_a2a3(o) and _by_tree(o))


def _row_of_results(o: Any) -> tuple[int, int]:
    """Row 0, one element per valid column of src; nothing when src has no rows."""
    rows, cols = reduced_rows(o)
    return min(1, rows), cols


_DST = out("dst", view=_row_of_results, unspecified=lambda o: block_tail(o, *_row_of_results(o)))
_SRC = src("src", view=lambda o: at_the_same_places(o.src, reduced_rows(o)))
_columns = partial(
    insn,
    types=types("src", **NUMBERS, ids="SA-0187"),
    example={"dst": "Vec {T} 1x64"},
)
_FOLDS = ((on("a2a3 cpu"), folds.ROW_BY_ROW), (None, folds.TWO_ROWS_AT_A_TIME))
_FOLD_ORDER = (
    "Rows are combined in the order of the target: one by one on a2a3, two at a time on a5 and "
    "kirin, each step rounded to the element type."
)


@_columns(
    _DST,
    _SRC,
    tmp(
        optional=True,
        view=lambda o: _tree_rows(o) if _by_tree(o) else (0, 0),
        lost=_by_tree,
        note="rows of partial sums, for the tree",
    ),
    attrs=[Attr("isBinary", bool, False, "sum by a pairwise tree, through tmp", argument=True)],
    forms=["dst src", "dst src tmp"],
    steps=[
        steps(when=lambda o: o.tmp is not None or o.src.vr > 1, between="V", end="V", complete=True)
    ],
    means=Reduce(
        axis=0,
        orders=(
            (_TREE_ON_A2A3, folds.TREE_TO_FIRST),
            (_TREE, folds.TREE_TO_LAST),
            *_FOLDS,
        ),
    ),
    rules=[
        *_column_rules(widens=True),
        one_vector_of_i64("src"),
        *or_else("the distance of rows in bytes counts", same_dtype("src", "tmp", id="SA-0189")),
        located("Vec", "tmp", id="SA-0211", on="a2a3"),
        plain("tmp", id="SA-0207", on="a2a3"),
        separate("tmp", "dst", "src", id="tmp-apart"),
        must("tree-columns", DEVICES)(
            "isBinary: a row of tmp is as wide as the valid columns of src",
            lambda o: not _by_tree(o) or o.src.vc * o.src.itemsize <= o.tmp.cols * o.tmp.itemsize,
            "declare tmp with the type and shape of src",
            lambda o: (
                "at most 256 bytes of a row are in use: the result is right"
                if _tree_fits(o)
                else "rows of the scratch overlap: the result is undefined"
            ),
        ),
        must("tree-pitch", DEVICES, _by_tree)(
            "isBinary: a row of tmp holds the partial sums of a row, on a5 those of 256 bytes",
            _tree_fits,
            "declare tmp with the type and shape of src",
            "rows of the scratch overlap: the result is undefined",
            voids=True,
        ),
        scratch_held(
            "tmp",
            lambda o: end_of(_tree_rows(o), o.tmp) if _by_tree(o) else 0,
            "with isBinary a row for every two valid rows of src",
            DEVICES,
        ),
        must("tmp-64bit", "a5")(
            "64-bit elements are summed without tmp",
            lambda o: o.tmp is None or o.src.itemsize != 8,
            "leave tmp and isBinary out",
        ),
    ],
    asm=Asm(
        tmp=frozenset({"l1", "l2"}),
        attrs={"isBinary": "isBinary"},
        place={"isBinary": "ins"},
        beside={"isBinary": "tmp"},
        supplied={"tmp": lambda o: o.attrs["isBinary"]},
    ),
    more_examples=[
        {"dst": "Vec f32 1x64", "src": "Vec f32 16x64", "tmp": "Vec f32 16x64", "isBinary": "True"}
    ],
    freedom=reassociates(
        _FOLD_ORDER + " With isBinary the sums form a tree; an odd row joins the first sum on "
        "a2a3, the last one on a5 and kirin."
    ),
)
def TCOLSUM(held: Expr, element: Expr) -> Expr:
    """Sum every column of src into row 0 of dst.

    The valid region of src governs; without valid rows nothing is written. Every sum is rounded to
    the element type, integers wrap. `TCOLSUM(dst, src, tmp, True)` sums by a pairwise tree that
    keeps its partial sums in tmp: half as many rows as src, rounded up, are enough. a2a3 writes
    whole 32-byte blocks, so up to there the columns past dst are lost. The permissive profile
    ignores tmp and isBinary, and may sum f16 and bf16 into f32.
    """
    return held + element


@_columns(
    _DST,
    _SRC,
    means=Reduce(axis=0, identity=1, orders=_FOLDS),
    steps=[UNTIL_DONE],
    types=types("src", **narrow(WIDER_NUMBERS), ids="SA-0187"),
    rules=_column_rules(),
    freedom=reassociates(_FOLD_ORDER),
)
def TCOLPROD(held: Expr, element: Expr) -> Expr:
    """Multiply every column of src into row 0 of dst.

    The valid region of src governs; without valid rows nothing is written. Every product is rounded
    to the element type, integers wrap. a2a3 writes whole 32-byte blocks, so up to there the columns
    past dst are lost.
    """
    return held * element


family(
    partial(
        _columns,
        _DST,
        _SRC,
        means=Reduce(axis=0),
        freedom=STRICT_SCAN,
        steps=[UNTIL_DONE],
    ),
    """Store the [maximum|minimum] of every column of src in row 0 of dst.

    The valid region of src governs; without valid rows nothing is written. The result is one of the
    elements, bit for bit; keep the data free of NaN. a2a3 writes whole 32-byte blocks, so up to
    there the columns past dst are lost.[ The permissive profile widens f16 and bf16 to f32.|]
    """,
    TCOLMAX=(larger, {"rules": _column_rules(one_vector_of_i64("src"), widens=True)}),
    TCOLMIN=(smaller, {"rules": _column_rules(one_vector_of_i64("src"))}),
)
