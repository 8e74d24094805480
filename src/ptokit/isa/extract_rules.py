"""The rules of TEXTRACT, path by path."""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import CompactMode, TileType
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.devices import KIRIN
from ptokit.isa.rules import NEW, NOT_A2A3, OLD, in_types, must, when, where
from ptokit.isa.spec import Rule, rule
from ptokit.isa.transfer import c0, is_plain, up
from ptokit.isa.transfer_rules import (
    CUBE,
    along,
    holds_type,
    index,
    matching,
    operand_rules,
    weight_rules,
)
from ptokit.isa.window_rules import VECTOR_TYPES, inside, window_rules

A5_TYPES = "i8 f8e4m3 f8e5m2 hif8 f16 bf16 f32 f4e2m1x2 f4e1m2x2 f8e8m0"
DRAINS = "Acc>Mat Acc>Vec"


def corner(o: Any) -> tuple[int, int]:
    """Where the window starts."""
    return index(o, "indexRow"), index(o, "indexCol")


def corner1(o: Any) -> tuple[int, int]:
    """Where the second window starts."""
    return index(o, "indexRow1"), index(o, "indexCol1")


# ---- windows of Mat tiles, which become matmul operands ------------------------------------------


def _plainly(id: str, kinds: str, on: str) -> Rule:
    text = f"the element type is one of {kinds}, unless a quantisation word makes another"
    without_word = when(lambda o: o.preQuantScalar is None and o.fp is None, in_types("dst", kinds))
    return rule(id, text, without_word, on)


OPERAND_RULES = [
    *along(f"{CUBE} {DRAINS}")(
        _plainly("SA-0162", "i8 f16 bf16 f32", "a2a3"),
        _plainly("SA-0167", A5_TYPES, "a5"),
    ),
    *along(CUBE)(
        holds_type("cube-dtype", "f16 i8 u8 i16 u16", "kirin9030", "of a matmul operand"),
        holds_type("cube-dtype", "i8 f16 f32", "kirinx90", "of a matmul operand"),
    ),
    *operand_rules(source="SA-0165", plain=False, layout="SA-0161", indexed=True),
    *weight_rules("a2a3 kirinx90 a5 kirin9030"),
]

# The window lies in the source; A5 leaves that to the author on the way to the cube.
CORNER_RULES = [
    *along(f"{CUBE} {DRAINS}", OLD)(
        must("PA-0041")(
            "indexRow + dst.Rows <= src.Rows",
            lambda o: index(o, "indexRow") + o.dst.rows <= o.src.rows,
        ),
        must("PA-0040")(
            "indexCol + dst.Cols <= src.Cols",
            lambda o: index(o, "indexCol") + o.dst.cols <= o.src.cols,
        ),
    ),
    *along(DRAINS, NEW)(
        must("acc-window-layout")(
            "the tile that takes a window of an accumulator is NZ or ND",
            lambda o: o.dst.layout in ("NZ", "ND"),
        ),
        inside("acc-window", "dst", "src"),
    ),
]

# ---- windows of vector tiles, one or two at a time -----------------------------------------------


def _fits(o: Any, tile: Any, at: tuple[int, int]) -> bool:
    return at[0] + tile.vr <= o.src.rows and at[1] + tile.vc <= o.src.cols


_TWO_WINDOWS = where(lambda o: o.dst1 is not None, "a2a3 a5", "two windows: ")(
    must("two-boxed")(
        "src is row-major, dst and dst1 are NZ vector tiles of its element type",
        lambda o: (
            is_plain(o.src)
            and o.dst.layout == o.dst1.layout == "NZ"
            and o.dst1.loc == TileType.Vec
            and o.dst.dtype is o.dst1.dtype is o.src.dtype
        ),
    ),
    [
        rule("two-dtype", f"the element type is one of {kinds}", in_types("dst", kinds), on)
        for on, kinds in (("a2a3", "i8 f16 bf16 f32 i32"), ("a5", VECTOR_TYPES["a5"]))
    ],
    must("two-blocks")(
        "Cols of dst and dst1 are multiples of 32 / sizeof, rows of src whole 32-byte blocks",
        lambda o: (
            o.dst.cols % c0(o.dst) == o.dst1.cols % c0(o.dst1) == 0
            and o.src.cols * o.src.itemsize % BLOCK_BYTES == 0
        ),
    ),
    must("two-windows")(
        "both lie inside src", lambda o: _fits(o, o.dst, corner(o)) and _fits(o, o.dst1, corner1(o))
    ),
    must("two-compact", "a2a3")(
        "dst and dst1 are not compact RowPlusOne",
        lambda o: CompactMode.RowPlusOne not in (o.dst.compact, o.dst1.compact),
    ),
    must("two-pitch", "a5")(
        "dst and dst1 have as many rows as their valid rows rounded up to 16, or are compact "
        "RowPlusOne: boxes are packed by the valid size",
        lambda o: all(
            t.compact == CompactMode.RowPlusOne or t.rows == up(t.vr, 16) for t in (o.dst, o.dst1)
        ),
    ),
)

VECTOR_RULES = [
    *along("Vec>Vec")(
        where(lambda o: o.dst1 is None)(
            window_rules("dst", "src"), matching("vector-layouts", "a2a3 a5")
        ),
        matching("vector-layouts", KIRIN),
        _TWO_WINDOWS,
    ),
    *along("Vec>Mat", NOT_A2A3)(
        matching("vec-mat-layouts", NOT_A2A3),
        inside("vec-mat-window", "dst", "src"),
    ),
]
