"""The rules of TMOV, path by path."""

from __future__ import annotations

from typing import Any

from ptokit.base.dtypes import dtype
from ptokit.base.enums import CompactMode, Layout
from ptokit.isa.rules import DEVICES, KIRIN, NOT_A2A3
from ptokit.isa.spec import Rule, rule
from ptokit.isa.transfer import c0, is_plain, up
from ptokit.isa.transfer_rules import (
    CUBE,
    along,
    box_multiples,
    boxed_source,
    holds_type,
    is_matching,
    operand_layouts,
    same_type,
    scale_layouts,
    transposed_multiples,
    vector_operand,
    weight_rules,
)

ZZ_TYPES = "u8 hif8 f8e8m0"
NZ_TYPES = "f16 bf16 f32 i32 f8e4m3 f8e5m2 hif8 i8 u8 f4e2m1x2 f4e1m2x2"
ZN_TYPES = "f16 bf16 f32 i32 i8 u8 f8e4m3 f8e5m2 hif8"


def operand_rules() -> list[Rule]:
    """Matmul operands, their scale factors, and convolution weights."""
    a2a3, a5 = "a2a3 kirinx90", "a5"
    return [
        *along(
            CUBE,
            [
                same_type("SA-0160", a2a3),
                same_type("SA-0254", "a5 kirin9030"),
                holds_type("SA-0162", "i8 f16 bf16 f32", "a2a3", "of a matmul operand"),
                holds_type(
                    "SA-0264",
                    "i8 f8e4m3 f8e5m2 hif8 f16 bf16 f32 f4e2m1x2 f4e1m2x2 f8e8m0",
                    a5,
                    "of a matmul operand",
                ),
                holds_type("cube-dtype", "f16 i8", "kirin9030", "of a matmul operand"),
                holds_type("cube-dtype", "f16 i8 f32", "kirinx90", "of a matmul operand"),
            ],
        ),
        *boxed_source("SA-0166", a2a3),
        *boxed_source("SA-0259", "a5 kirin9030", plain=True),
        *operand_layouts(a2a3, "ZZ", "SA-0163", "SA-0164"),
        *operand_layouts("a5 kirin9030", "NZ", "SA-0255", "SA-0255"),
        *box_multiples(a2a3, indexed=False),
        *transposed_multiples("a5 kirin9030"),
        *vector_operand("a2a3 a5 kirinx90", indexed=False),
        *vector_operand("kirin9030", source_unit=32, indexed=False),
        *scale_layouts(a5),
        *along("Mat>ScaleLeft Mat>ScaleRight", [same_type("same-dtype", a5)]),
        *weight_rules("a2a3", "i8 f16 bf16 f32", (Layout.FRACTAL_Z, Layout.FRACTAL_Z_3D)),
        *weight_rules("kirinx90", "i8 f16 f32", (Layout.FRACTAL_Z, Layout.FRACTAL_Z_3D)),
        *weight_rules("a5", "i8 u8 i16 u16 i32 u32 f16 bf16 f32", (Layout.FRACTAL_Z,)),
    ]


def _pairs(id: str, pairs: str, on: str) -> Rule:
    allowed = [tuple(dtype(one) for one in pair.split(",")) for pair in pairs.split()]
    told = ", ".join(pair.replace(",", " to ") for pair in pairs.split())
    return rule(
        id, f"a bias moves from {told}", lambda o: (o.src.dtype, o.dst.dtype) in allowed, on
    )


def table_rules() -> list[Rule]:
    """The bias table and the parameter buffer of the fix pipe: one row of whole units."""
    f16, words = dtype("f16"), (dtype("i64"), dtype("u64"))
    bias = [
        rule(
            "SA-0254",
            "src and dst have the same element type, except a half bias that becomes float",
            lambda o: o.src.dtype in (f16, o.dst.dtype),
            "a2a3",
        ),
        rule(
            "SA-0265",
            "a half bias becomes float",
            lambda o: o.src.dtype is not f16 or o.dst.dtype.name == "f32",
            "a2a3",
        ),
        _pairs("bias-dtype", "i32,i32 f32,f32 f16,f32", "a2a3"),
        _pairs("SA-0062", "i32,i32 f32,f32 f16,f32 bf16,f32", "a5"),
        _pairs("bias-dtype", "i32,i32 f16,f16", "kirin9030"),
        _pairs("bias-dtype", "i32,i32 f16,f16 f32,f32", "kirinx90"),
        rule("SA-0268", "a bias is one row", lambda o: o.src.rows == 1, "a2a3"),
        rule("SA-0269", "a bias is one row", lambda o: o.src.rows == 1, NOT_A2A3),
        rule(
            "SA-0267",
            "src Cols * sizeof is a multiple of 64 bytes",
            lambda o: o.src.cols * o.src.itemsize % 64 == 0,
            "a2a3",
        ),
        rule(
            "SA-0266",
            "dst Cols * sizeof is a multiple of 64 bytes",
            lambda o: o.dst.cols * o.dst.itemsize % 64 == 0,
            NOT_A2A3,
        ),
        _fits("SA-0260", "a5"),
        _fits("bias-capacity", KIRIN),
    ]
    scaling = [
        rule(
            "SA-0254",
            "src and dst have the same element type",
            lambda o: o.src.dtype is o.dst.dtype,
            "a2a3",
        ),
        same_type("same-dtype", NOT_A2A3),
        rule(
            "SA-0256",
            "quantisation words are int64 or uint64",
            lambda o: o.dst.dtype in words,
            DEVICES,
        ),
        rule("SA-0272", "quantisation words are one row", lambda o: o.src.rows == 1, "a2a3"),
        rule("SA-0273", "quantisation words are one row", lambda o: o.src.rows == 1, NOT_A2A3),
        rule(
            "SA-0271",
            "Cols * sizeof is a multiple of 128 bytes",
            lambda o: o.dst.cols * o.dst.itemsize % 128 == 0,
            "a2a3",
        ),
        rule(
            "SA-0270",
            "Cols * sizeof is a multiple of 128 bytes",
            lambda o: o.dst.cols * o.dst.itemsize % 128 == 0,
            NOT_A2A3,
        ),
        _fits("SA-0261", "a5"),
        _fits("scaling-capacity", KIRIN),
    ]
    return along("Mat>Bias", bias) + along("Mat>Scaling", scaling)


def _fits(id: str, on: str) -> Rule:
    return rule(
        id,
        "dst fits into its memory",
        lambda o: o.dst.nbytes <= o.target.spaces[o.dst.loc].capacity,
        on,
    )


def vector_rules() -> list[Rule]:
    """Moves that start in the vector memory."""
    plus_one = CompactMode.RowPlusOne

    def turns(o: Any, layout: str) -> bool:
        return is_plain(o.src) and o.dst.layout == layout and o.tmp is None

    def line_up(o: Any) -> bool:
        """Whether rows lie alike: plain rows, or single columns."""
        return (is_plain(o.src) and is_plain(o.dst)) or (
            o.src.layout == o.dst.layout == "DN" and o.src.vc == o.dst.vc == 1
        )

    def is_whole(tile: Any) -> bool:
        return (tile.vr, tile.vc) == (tile.rows, tile.cols)

    moves = [
        rule(
            "SA-0258",
            "elements of src and dst have the same size",
            lambda o: o.src.itemsize == o.dst.itemsize,
            DEVICES,
        ),
        rule(
            "not-empty",
            "the common valid region has rows and columns",
            lambda o: min(o.src.vr, o.dst.vr) > 0 and min(o.src.vc, o.dst.vc) > 0,
            DEVICES,
        ),
        rule(
            "vector-layouts",
            "both tiles are row-major, or of one layout and wholly valid",
            lambda o: (
                (is_plain(o.src) and is_plain(o.dst))
                or (o.src.layout == o.dst.layout and is_whole(o.src) and is_whole(o.dst))
            ),
            "a2a3",
            "TRESHAPE both to row-major tiles first",
        ),
        rule(
            "vector-layouts",
            "both tiles are row-major or one valid column, or a row-major tile becomes NZ or ZN",
            lambda o: o.tmp is not None or line_up(o) or turns(o, "NZ") or turns(o, "ZN"),
            "a5",
        ),
        rule(
            "vector-layouts",
            "both tiles are row-major or one valid column, or a row-major tile becomes NZ",
            lambda o: line_up(o) or turns(o, "NZ"),
            "kirin9030",
        ),
        rule(
            "vector-layouts",
            "both tiles are row-major or one valid column, or a row-major tile becomes NZ or ZZ",
            lambda o: o.tmp is not None or line_up(o) or turns(o, "NZ") or turns(o, "ZZ"),
            "kirinx90",
        ),
        _turned("nd-nz-dtype", "NZ", NZ_TYPES, "a5"),
        _turned("nd-nz-dtype", "NZ", "f16 f32 i32 i8", KIRIN),
        _turned("nd-zn-dtype", "ZN", ZN_TYPES, "a5"),
        rule(
            "nd-nz-pitch",
            "an NZ destination has as many rows as its valid rows rounded up to 16, or is compact "
            "RowPlusOne: boxes are packed by the valid size",
            lambda o: (
                not turns(o, "NZ") or o.dst.compact == plus_one or o.dst.rows == up(o.dst.vr, 16)
            ),
            "a5 kirinx90",
        ),
        rule(
            "nd-nz-pitch",
            "an NZ destination has as many rows as src rounded up to 16: boxes are packed by the "
            "rows of src",
            lambda o: (
                not turns(o, "NZ")
                or up(o.src.rows, 16)
                == (up(o.dst.vr, 16) if o.dst.compact == plus_one else o.dst.rows)
            ),
            "kirin9030",
        ),
        rule(
            "nd-zn-boxes",
            "src Rows is a multiple of 32 / sizeof and Cols of 16; a ZN destination is wholly "
            "valid in columns: boxes are packed by the valid size",
            lambda o: (
                not turns(o, "ZN")
                or (
                    o.src.rows % c0(o.src) == 0
                    and o.src.cols % 16 == 0
                    and o.dst.cols == up(o.dst.vc, 16)
                )
            ),
            "a5",
        ),
    ]
    to_mat = [
        same_type("same-dtype", NOT_A2A3),
        rule(
            "vec-mat-layouts",
            "src and dst are both row-major or both NZ",
            is_matching,
            NOT_A2A3,
        ),
        rule(
            "vec-mat-rows",
            "row-major tiles are copied in one piece: dst is one row, or rows of both tiles are "
            "wholly valid and equally long",
            lambda o: not is_plain(o.dst) or o.dst.vr == 1 or o.dst.vc == o.dst.cols == o.src.cols,
            NOT_A2A3,
        ),
    ]
    return along("Vec>Vec", moves) + along("Vec>Mat", to_mat)


def _turned(id: str, layout: str, kinds: str, on: str) -> Rule:
    allowed = tuple(dtype(kind) for kind in kinds.split())
    return rule(
        id,
        f"the element type of a row-major tile that becomes {layout} is one of {kinds}",
        lambda o: not is_plain(o.src) or o.dst.layout != layout or o.dst.dtype in allowed,
        on,
    )


def scale_rules() -> list[Rule]:
    """Scale factors in row order become the ZZ boxes the matrix unit reads."""
    allowed = tuple(dtype(kind) for kind in ZZ_TYPES.split())

    def form(id: str, text: str, holds: Any) -> Rule:
        return rule(id, text, lambda o: o.tmp is None or holds(o), "a5 kirinx90")

    def tmp_bytes(o: Any) -> int:
        return 2 * (16 + up(o.dst.vr, 16) // 16 * o.dst.vc // 2 + 16)

    return [
        form(
            "zz-dtype",
            f"dst, src and tmp have one element type of {ZZ_TYPES}",
            lambda o: o.src.dtype is o.dst.dtype is o.tmp.dtype and o.dst.dtype in allowed,
        ),
        form(
            "zz-layouts",
            "src is row-major and dst is ZZ with boxes of 32 bytes",
            lambda o: is_plain(o.src) and (o.dst.layout, o.dst.fractal) == ("ZZ", 32),
        ),
        form(
            "zz-packed",
            "dst Cols are wholly valid (grp_axis 0: equal the valid rows of src) and src is "
            "densely packed",
            lambda o: (
                o.dst.cols == o.dst.vc and (o.src.rows == 1 or o.src.cols == o.dst.vc)
                if o.attrs["grp_axis"]
                else o.dst.cols == o.src.vr and o.src.cols == o.src.vc
            ),
        ),
        form(
            "zz-groups",
            "grp_axis 0 takes an even number of rows and a multiple of 16 columns",
            lambda o: o.attrs["grp_axis"] or (o.src.vr % 2 == 0 and o.src.vc % 16 == 0),
        ),
        form(
            "zz-tmp",
            "tmp holds 2 * (32 + ceil(R / 16) * C / 2) bytes of indices",
            lambda o: not o.attrs["grp_axis"] or o.tmp.nbytes >= tmp_bytes(o),
        ),
        form("zz-axis", "grp_axis is 0 or 1", lambda o: o.attrs["grp_axis"] in (0, 1)),
    ]
