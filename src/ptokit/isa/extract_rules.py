"""The rules of TEXTRACT, path by path."""

from __future__ import annotations

from typing import Any

from ptokit.base.dtypes import dtype
from ptokit.base.enums import CompactMode, Layout, TileType
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.rules import KIRIN, NOT_A2A3
from ptokit.isa.spec import Rule, rule
from ptokit.isa.transfer import c0, is_plain, up
from ptokit.isa.transfer_rules import (
    CUBE,
    along,
    box_multiples,
    boxed_source,
    holds_type,
    index,
    is_matching,
    operand_layouts,
    scale_layouts,
    transposed_multiples,
    vector_operand,
    weight_rules,
)
from ptokit.isa.window_rules import inside, window_rules

WORDS = ("preQuantScalar", "fp")
A5_TYPES = "i8 f8e4m3 f8e5m2 hif8 f16 bf16 f32 f4e2m1x2 f4e1m2x2 f8e8m0"


def corner(o: Any) -> tuple[int, int]:
    """Where the window starts."""
    return index(o, "indexRow"), index(o, "indexCol")


def corner1(o: Any) -> tuple[int, int]:
    """Where the second window starts."""
    return index(o, "indexRow1"), index(o, "indexCol1")


def operand_rules() -> list[Rule]:
    """Windows of Mat tiles, which become matmul operands."""
    a2a3, a5 = "a2a3 kirinx90", "a5 kirin9030"
    unquantised = CUBE + " Acc>Mat Acc>Vec"

    def plainly(id: str, kinds: str, on: str) -> Rule:
        allowed = tuple(dtype(kind) for kind in kinds.split())
        return rule(
            id,
            f"the element type is one of {kinds}, unless a quantisation word makes another",
            lambda o: any(o[name] is not None for name in WORDS) or o.dst.dtype in allowed,
            on,
        )

    return [
        *along(
            unquantised,
            [
                plainly("SA-0162", "i8 f16 bf16 f32", "a2a3"),
                plainly("SA-0167", A5_TYPES, "a5"),
            ],
        ),
        *along(
            CUBE,
            [
                holds_type("cube-dtype", "f16 i8 u8 i16 u16", "kirin9030", "of a matmul operand"),
                holds_type("cube-dtype", "i8 f16 f32", "kirinx90", "of a matmul operand"),
            ],
        ),
        *boxed_source("SA-0166", a2a3),
        *boxed_source("SA-0165", a5),
        *operand_layouts(a2a3, "ZZ", "SA-0163", "SA-0164"),
        *operand_layouts(a5, "NZ", "SA-0161", "SA-0161"),
        *box_multiples(a2a3, indexed=True),
        *transposed_multiples(a5),
        *vector_operand("a2a3 a5 kirinx90"),
        *vector_operand("kirin9030", source_unit=32),
        *scale_layouts("a5"),
        *weight_rules("a2a3", "i8 f16 bf16 f32", (Layout.FRACTAL_Z, Layout.FRACTAL_Z_3D)),
        *weight_rules("kirinx90", "i8 f16 f32", (Layout.FRACTAL_Z, Layout.FRACTAL_Z_3D)),
        *weight_rules(
            "a5", "i8 u8 i16 u16 i32 u32 f16 bf16 f32", (Layout.FRACTAL_Z, Layout.FRACTAL_Z_3D)
        ),
        *weight_rules(
            "kirin9030", "i8 u8 i16 u16 i32 u32 f16 f32", (Layout.FRACTAL_Z, Layout.FRACTAL_Z_3D)
        ),
    ]


def corner_rules() -> list[Rule]:
    """The window lies in the source; A5 leaves that to the author on the way to the cube."""
    sizes = [
        rule(
            "PA-0041",
            "indexRow + dst.Rows <= src.Rows",
            lambda o: index(o, "indexRow") + o.dst.rows <= o.src.rows,
            "a2a3 kirinx90",
        ),
        rule(
            "PA-0040",
            "indexCol + dst.Cols <= src.Cols",
            lambda o: index(o, "indexCol") + o.dst.cols <= o.src.cols,
            "a2a3 kirinx90",
        ),
    ]
    drained = [
        rule(
            "acc-window-layout",
            "the tile that takes a window of an accumulator is NZ or ND",
            lambda o: o.dst.layout in ("NZ", "ND"),
            "a5 kirin9030",
        ),
        inside("acc-window", "dst", "src", "a5 kirin9030"),
    ]
    return along(CUBE + " Acc>Mat Acc>Vec", sizes) + along("Acc>Mat Acc>Vec", drained)


def vector_rules() -> list[Rule]:
    """Windows of vector tiles, one or two at a time."""

    def boxed(o: Any) -> bool:
        return o.dst.layout == o.dst1.layout == "NZ"

    def both(id: str, text: str, holds: Any, on: str) -> Rule:
        return rule(id, text, lambda o: o.dst1 is None or holds(o), on)

    def fits(o: Any, tile: Any, at: tuple[int, int]) -> bool:
        return at[0] + tile.vr <= o.src.rows and at[1] + tile.vc <= o.src.cols

    two_types = {
        "a2a3": "i8 f16 bf16 f32 i32",
        "a5": "f16 bf16 f32 i32 i8 hif8 f8e4m3 f8e5m2 f8e8m0 f4e2m1x2 f4e1m2x2",
    }
    single = window_rules("dst", "src")
    one = [
        *(
            rule(each.id, each.text, _alone(each.holds), " ".join(each.targets or ()), each.fix)
            for each in single
        ),
        rule(
            "vector-layouts",
            "src and dst are both row-major or both NZ",
            lambda o: o.dst1 is not None or is_matching(o),
            "a2a3 a5",
        ),
        rule("vector-layouts", "src and dst are both row-major or both NZ", is_matching, KIRIN),
    ]
    two = [
        both(
            "two-boxed",
            "two windows: src is row-major, dst and dst1 are NZ vector tiles of its element type",
            lambda o: (
                is_plain(o.src)
                and boxed(o)
                and o.dst1.loc == TileType.Vec
                and o.dst.dtype is o.dst1.dtype is o.src.dtype
            ),
            "a2a3 a5",
        ),
        *(
            both(
                "two-dtype",
                f"two windows: the element type is one of {kinds}",
                lambda o, kinds=kinds: o.dst.dtype.name in kinds.split(),
                target,
            )
            for target, kinds in two_types.items()
        ),
        both(
            "two-blocks",
            "two windows: Cols of dst and dst1 are multiples of 32 / sizeof, rows of src whole "
            "32-byte blocks",
            lambda o: (
                o.dst.cols % c0(o.dst) == o.dst1.cols % c0(o.dst1) == 0
                and o.src.cols * o.src.itemsize % BLOCK_BYTES == 0
            ),
            "a2a3 a5",
        ),
        both(
            "two-windows",
            "two windows: both lie inside src",
            lambda o: fits(o, o.dst, corner(o)) and fits(o, o.dst1, corner1(o)),
            "a2a3 a5",
        ),
        both(
            "two-compact",
            "two windows: dst and dst1 are not compact RowPlusOne",
            lambda o: CompactMode.RowPlusOne not in (o.dst.compact, o.dst1.compact),
            "a2a3",
        ),
        both(
            "two-pitch",
            "two windows: dst and dst1 have as many rows as their valid rows rounded up to 16, or "
            "are compact RowPlusOne: boxes are packed by the valid size",
            lambda o: all(
                t.compact == CompactMode.RowPlusOne or t.rows == up(t.vr, 16)
                for t in (o.dst, o.dst1)
            ),
            "a5",
        ),
    ]
    to_mat = [
        rule("vec-mat-layouts", "src and dst are both row-major or both NZ", is_matching, NOT_A2A3),
        inside("vec-mat-window", "dst", "src", NOT_A2A3),
    ]
    return along("Vec>Vec", one + two) + along("Vec>Mat", to_mat)


def _alone(holds: Any) -> Any:
    return lambda o: o.dst1 is not None or holds(o)
