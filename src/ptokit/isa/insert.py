"""TINSERT: one tile fills a window of another."""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import TInsertMode
from ptokit.base.layout import Array
from ptokit.isa import transfer as moves
from ptokit.isa import transfer_rules as paths
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.facts import Ops
from ptokit.isa.rules import in_types, must, separate
from ptokit.isa.scalars import unsigned
from ptokit.isa.services import Core, Poison
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, inout, insn, rule, scalar, src
from ptokit.isa.transfer import c0, path, up, whole
from ptokit.isa.transfer_rules import along, index, inside


def _size(o: Any) -> tuple[int, int]:
    """Rows and columns that are inserted."""
    rows, cols = o.src.vr, o.src.vc
    if not o.target.is_device:
        return rows, cols
    if path(o) == "Vec>Mat":
        return rows - rows % _unit(o)[0], cols - cols % _unit(o)[1]
    if path(o) != "Acc>Mat" or o.dst.layout != "NZ":
        return rows, cols
    room = max(min(o.dst.cols - index(o, "indexCol"), whole(o.src)[1]), cols)
    return whole(o.src)[0], min(up(cols, o.dst.inner[1]), room)


def _unit(o: Any) -> tuple[int, int]:
    """Rows and columns that go from Vec to Mat together: of ZN boxes, and pairs of 4-bit codes."""
    return c0(o.src) if o.src.layout == "ZN" else 1, 2 if o.src.dtype.is_packed else 1


def _window(o: Any) -> tuple[slice, slice]:
    row, col = index(o, "indexRow"), index(o, "indexCol")
    if o.target.is_device and path(o) == "Vec>Mat":
        row, col = row - row % _unit(o)[0], col - col % _unit(o)[1]
    rows, cols = moves.share_size(o, *_size(o))
    return slice(row, row + rows), slice(col, col + cols)


_WORDS = moves.no_column, moves.source_columns
_ACCUMULATOR_RULES = [
    *along("Acc>Mat")(
        must("acc-window", "a2a3")(
            "all of src fits into dst from (indexRow, indexCol) on",
            lambda o: (
                index(o, "indexRow") + o.src.rows <= o.dst.rows
                and index(o, "indexCol") + o.src.cols <= o.dst.cols
            ),
            otherwise=paths.where_it_lies("dst"),
        ),
        inside("acc-window", "src", "dst", A5_FAMILY),
        must("acc-mat-layout", A5_FAMILY)(
            "the Mat tile that takes an accumulator is NZ", lambda o: o.dst.layout == "NZ"
        ),
    ),
    *along("Acc>Vec", A5_FAMILY)(inside("acc-window", "src", "dst")),
]
_WINDOW = inside("window", "src", "dst", "cpu")  # the devices have it by path


def _as_one(o: Any) -> bool:
    """Whether boxes of scale factors are copied in one piece."""
    return (
        o.src.layout == o.dst.layout == "ZZ"
        and o.src.vc == o.src.cols == o.dst.cols
        and (o.src.vr % 16, index(o, "indexRow") % 16, index(o, "indexCol")) == (0, 0, 0)
    )


_VECTOR_RULES = [
    *along("Vec>Mat", A5_FAMILY)(
        paths.vector_types(A5_FAMILY),
        must("vec-mat-layouts")(
            "src and dst are both row-major, NZ or ZN, or ZZ and inserted in whole rows of boxes",
            lambda o: paths.is_matching(o) or o.src.layout == o.dst.layout == "ZN" or _as_one(o),
            "the arrangement follows src: declare dst the same way, or TMOV src to NZ first",
        ),
        inside("window", "src", "dst"),
        must("zn-boxes")(
            "in ZN tiles indexRow and the valid rows of src are multiples of 32 / sizeof",
            lambda o: (
                o.src.layout != "ZN"
                or (index(o, "indexRow") % c0(o.src) == 0 and o.src.vr % c0(o.src) == 0)
            ),
            otherwise="both are cut down to whole boxes",
        ),
        must("fp4-pairs", "a5")(
            "4-bit types: indexCol and the valid columns of src are even",
            lambda o: (
                not in_types("src", paths.FP4)(o)
                or (index(o, "indexCol") % 2 == 0 and o.src.vc % 2 == 0)
            ),
            otherwise="both are cut down to whole bytes",
        ),
    ),
    *along("Vec>Vec")(paths.matching("vector-layouts", DEVICES), paths.window_rules("src", "dst")),
]


@insn(
    inout("dst", view=_window, carries=True, note="elements outside the window keep their values"),
    src("src", view=_size, carries=True),
    moves.WORD,
    moves.words(*_WORDS, "quantisation words, one per column of src"),
    scalar("indexRow", unsigned(16), note="first row of the window, 0 when left out"),
    scalar("indexCol", unsigned(16), note="first column of the window, 0 when left out"),
    attrs=[
        moves.RELU,
        moves.VEC_MODE,
        Attr("mode", TInsertMode, None, "bursts of a Vec to Mat transfer"),
    ],
    pipe=lambda o: {"Vec>Vec": Pipe.V, "Vec>Mat": Pipe.MTE3}.get(path(o), Pipe.FIX),
    idiom=moves.loop,
    ops={"TINSERT_A2M": Pipe.FIX},
    targets=DEVICES,
    forms=[
        "dst src indexRow indexCol",
        "dst src preQuantScalar indexRow indexCol",
        "dst src fp indexRow indexCol",
        "dst src",
        "dst src indexRow",
    ],
    rules=[
        separate("dst", "src", on=DEVICES),
        paths.paths_exist("space-pair", "Acc>Mat Vec>Vec", "a2a3"),
        paths.paths_exist("space-pair", "Acc>Mat Acc>Vec Vec>Mat Vec>Vec", A5_FAMILY),
        paths.same_type("same-dtype", DEVICES),
        _ACCUMULATOR_RULES,
        _VECTOR_RULES,
        _WINDOW,
        paths.needs_accumulator("accumulator-source", DEVICES),
        paths.drain_rules(),
        paths.mode_rules(),
        paths.fp_rules(*_WORDS),
        rule(
            "bursts", "the burst forms do not exist here", lambda o: o.attrs["mode"] is None, "a2a3"
        ),
        must("bursts", A5_FAMILY)(
            "the burst forms insert an NZ Vec tile into a Mat tile",
            lambda o: o.attrs["mode"] is None or (path(o) == "Vec>Mat" and o.src.layout == "NZ"),
        ),
    ],
    asm=moves.window_text("fp preQuantScalar", attrs={"mode": "tinsertMode"}),
    steps=[paths.one_element("src")],
    example={"dst": "Vec f32 16x64", "src": "Vec f32 8x32", "indexRow": "3", "indexCol": "8"},
    more_examples="""
        dst                | src                          | indexRow | indexCol | mode   | on
        Vec i8 16x64       | Vec i8 8x32                  | 3        | 32       |        |
        Vec f32 32x64 NZ   | Vec f32 16x32 NZ             | 16       | 16       |        |
        Vec f4e2m1x2 16x64 | Vec f4e2m1x2 16x32           | 0        | 32       |        | a5
        Mat f16 64x64 NZ   | Vec f16 32x32 NZ valid 30x32 | 3        | 16       |        | a5 kirin
        Mat f16 64x64 NZ   | Vec f16 32x32 NZ             | 16       | 16       | SPLIT2 | a5 kirin

        dst                   | src                   | indexRow | indexCol | on
        Mat f16 64x64 ZN      | Vec f16 32x32 ZN      | 16       | 16       | a5 kirin
        Mat f8e8m0 64x4 ZZ/32 | Vec f8e8m0 32x4 ZZ/32 | 16       | 0        | a5
        Mat f4e2m1x2 16x64    | Vec f4e2m1x2 16x32    | 0        | 32       | a5
        Mat f16 64x64 NZ      | Acc f32 32x32         | 16       | 16       | a2a3 a5 cpu
        Mat f16 64x64 NZ      | Acc f16 32x32         | 16       | 16       | kirin

        dst             | src           | preQuantScalar | indexRow | indexCol
        Mat i8 64x64 NZ | Acc i32 32x32 | 0x3f800000     | 16       | 32

        dst             | src           | fp               | indexRow | indexCol | on
        Mat i8 64x64 NZ | Acc f32 32x32 | Scaling u64 1x32 | 16       | 32       | a2a3 a5 cpu
        Vec i8 64x64    | Acc i32 32x32 | Scaling u64 1x32 | 16       | 32       | kirin
        Vec i32 64x64   | Acc i32 32x32 |                  | 1        | 32       | a5 kirin
    """,
    cpp=Cpp((*moves.PARTS, "@mode")),
)
def TINSERT(
    dst: Array,
    src: Array,
    preQuantScalar: int | None,
    fp: Array | None,
    indexRow: int | None,
    indexCol: int | None,
    ops: Ops,
    poison: Poison,
    core: Core,
) -> None:
    """Copy src into the window of dst that starts at (indexRow, indexCol).

    A vector tile contributes its valid region. An accumulator is converted by the fix pipe, with
    one quantisation word or one per column of src; into an NZ Mat tile it writes all its rows and
    whole boxes of columns. From Vec to Mat the data is arranged as in src, so both tiles need the
    same layout; the burst forms (SPLIT2, SPLIT4) give the same result. Only the window of dst
    changes.
    """
    moves.transfer(dst, src, ops, poison, core, preQuantScalar if fp is None else fp)


@insn(
    inout("dst", view=_window, carries=True, note="elements outside the window keep their values"),
    src("src", view=_size, carries=True),
    moves.words(*_WORDS, "quantisation words, one per column of src", optional=False),
    scalar("indexRow", unsigned(16)),
    scalar("indexCol", unsigned(16)),
    attrs=[moves.RELU],
    pipe=Pipe.FIX,
    ops={"TINSERT_A2M": Pipe.FIX},
    targets=DEVICES,
    rules=[
        paths.fp_rules(*_WORDS),
        paths.paths_exist("accumulator", "Acc>Mat Acc>Vec", DEVICES),
        paths.drain_rules("fp"),
        _ACCUMULATOR_RULES,
        _WINDOW,
    ],
    asm=Asm(forms=frozenset({"l1", "l2"})),
    example={
        "dst": "Mat i8 64x64 NZ",
        "src": "Acc i32 32x32",
        "fp": "Scaling u64 1x32",
        "indexRow": "16",
        "indexCol": "32",
    },
    more_examples="""
        dst             | src           | fp               | indexRow | indexCol | on
        Mat i8 64x64 NZ | Acc f32 32x32 | Scaling u64 1x32 | 16       | 32       | a2a3 a5 cpu
        Vec i8 64x64    | Acc i32 32x32 | Scaling u64 1x32 | 16       | 32       | a5 kirin
        Mat i8 64x64 NZ | Acc f16 32x32 | Scaling u64 1x32 | 16       | 32       | kirin
    """,
    cpp=Cpp(moves.PARTS_FP),
)
def TINSERT_FP(
    dst: Array,
    src: Array,
    fp: Array,
    indexRow: int,
    indexCol: int,
    ops: Ops,
    poison: Poison,
    core: Core,
) -> None:
    """Insert an accumulator with a quantisation word per column of src.

    dst(indexRow + r, indexCol + c) = quant(src(r, c), fp[c]), over the region TINSERT has from an
    accumulator. Only the window of dst changes.
    """
    moves.transfer(dst, src, ops, poison, core, fp)
