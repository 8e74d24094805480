"""The rules of TMOV, path by path."""

from __future__ import annotations

from typing import Any

from ptokit.base.dtypes import dtype, f16, f32
from ptokit.base.enums import CompactMode, Layout
from ptokit.isa.devices import DEVICES, KIRIN
from ptokit.isa.rules import NEW, NOT_A2A3, OLD, in_types, must, under, where
from ptokit.isa.spec import Rule, rule
from ptokit.isa.transfer import c0, is_plain, up
from ptokit.isa.transfer_rules import (
    CUBE,
    along,
    holds_type,
    matching,
    operand_rules,
    same_type,
    weight_rules,
)

ZZ_TYPES = "u8 hif8 f8e8m0"
NZ_TYPES = "f16 bf16 f32 i32 f8e4m3 f8e5m2 hif8 i8 u8 f4e2m1x2 f4e1m2x2"
ZN_TYPES = "f16 bf16 f32 i32 i8 u8 f8e4m3 f8e5m2 hif8"
CUBE_TYPES = {
    "a2a3": ("SA-0162", "i8 f16 bf16 f32"),
    "a5": ("SA-0264", "i8 f8e4m3 f8e5m2 hif8 f16 bf16 f32 f4e2m1x2 f4e1m2x2 f8e8m0"),
    "kirin9030": ("cube-dtype", "f16 i8"),
    "kirinx90": ("cube-dtype", "f16 i8 f32"),
}

# ---- matmul operands, their scale factors, and convolution weights -------------------------------

OPERAND_RULES = [
    *along(CUBE)(
        same_type("SA-0160", OLD),
        same_type("SA-0254", NEW),
        [holds_type(*row, on, "of a matmul operand") for on, row in CUBE_TYPES.items()],
    ),
    *operand_rules(source="SA-0259", plain=True, layout="SA-0255", indexed=False),
    *along("Mat>ScaleLeft Mat>ScaleRight", "a5")(same_type("same-dtype")),
    *weight_rules("a2a3 kirinx90"),
    *weight_rules("a5", (Layout.FRACTAL_Z,)),
]

# ---- the bias table and the parameters of the fix pipe: one row of whole units -------------------


def _pairs(id: str, pairs: str, on: str) -> Rule:
    allowed = [tuple(dtype(one) for one in pair.split(",")) for pair in pairs.split()]
    told = ", ".join(pair.replace(",", " to ") for pair in pairs.split())
    text = f"a bias moves from {told}"
    return rule(id, text, lambda o: (o.src.dtype, o.dst.dtype) in allowed, on)


def _fits(ids: dict[str, str]) -> list[Rule]:
    def holds(o: Any) -> bool:
        return o.dst.nbytes <= o.target.spaces[o.dst.loc].capacity

    return under(ids, "dst fits into its memory", holds)


TABLE_RULES = [
    *along("Mat>Bias")(
        must("SA-0254", "a2a3")(
            "src and dst have the same element type, except a half bias that becomes float",
            lambda o: o.src.dtype in (f16, o.dst.dtype),
        ),
        must("SA-0265", "a2a3")(
            "a half bias becomes float", lambda o: o.src.dtype is not f16 or o.dst.dtype is f32
        ),
        _pairs("bias-dtype", "i32,i32 f32,f32 f16,f32", "a2a3"),
        _pairs("SA-0062", "i32,i32 f32,f32 f16,f32 bf16,f32", "a5"),
        _pairs("bias-dtype", "i32,i32 f16,f16", "kirin9030"),
        _pairs("bias-dtype", "i32,i32 f16,f16 f32,f32", "kirinx90"),
        under(
            {"SA-0268": "a2a3", "SA-0269": NOT_A2A3},
            "a bias is one row",
            lambda o: o.src.rows == 1,
        ),
        must("SA-0267", "a2a3")(
            "src Cols * sizeof is a multiple of 64 bytes",
            lambda o: o.src.cols * o.src.itemsize % 64 == 0,
        ),
        must("SA-0266", NOT_A2A3)(
            "dst Cols * sizeof is a multiple of 64 bytes",
            lambda o: o.dst.cols * o.dst.itemsize % 64 == 0,
        ),
        _fits({"SA-0260": "a5", "bias-capacity": KIRIN}),
    ),
    *along("Mat>Scaling")(
        must("SA-0254", "a2a3")(
            "src and dst have the same element type", lambda o: o.src.dtype is o.dst.dtype
        ),
        same_type("same-dtype", NOT_A2A3),
        rule(
            "SA-0256", "quantisation words are int64 or uint64", in_types("dst", "i64 u64"), DEVICES
        ),
        under(
            {"SA-0272": "a2a3", "SA-0273": NOT_A2A3},
            "quantisation words are one row",
            lambda o: o.src.rows == 1,
        ),
        under(
            {"SA-0271": "a2a3", "SA-0270": NOT_A2A3},
            "Cols * sizeof is a multiple of 128 bytes",
            lambda o: o.dst.cols * o.dst.itemsize % 128 == 0,
        ),
        _fits({"SA-0261": "a5", "scaling-capacity": KIRIN}),
    ),
]

# ---- moves that start in the vector memory -------------------------------------------------------


def _turns(o: Any, *layouts: str) -> bool:
    """Whether a row-major tile becomes one of these boxed layouts."""
    return is_plain(o.src) and o.dst.layout in layouts and o.tmp is None


def _line_up(o: Any) -> bool:
    """Whether rows lie alike: plain rows, or single columns."""
    return (is_plain(o.src) and is_plain(o.dst)) or (
        o.src.layout == o.dst.layout == "DN" and o.src.vc == o.dst.vc == 1
    )


def _wholly_alike(o: Any) -> bool:
    return o.src.layout == o.dst.layout and all(
        (tile.vr, tile.vc) == (tile.rows, tile.cols) for tile in (o.src, o.dst)
    )


def _turned(id: str, layout: str, kinds: str, on: str) -> Rule:
    allowed = in_types("dst", kinds)
    return must(id, on)(
        f"the element type of a row-major tile that becomes {layout} is one of {kinds}",
        lambda o: not is_plain(o.src) or o.dst.layout != layout or allowed(o),
    )


_ROWS_OR_COLUMN = "both tiles are row-major or one valid column, or a row-major tile becomes "

VECTOR_RULES = [
    *along("Vec>Vec")(
        must("SA-0258", DEVICES)(
            "elements of src and dst have the same size", lambda o: o.src.itemsize == o.dst.itemsize
        ),
        must("not-empty", DEVICES)(
            "the common valid region has rows and columns",
            lambda o: min(o.src.vr, o.dst.vr) > 0 and min(o.src.vc, o.dst.vc) > 0,
        ),
        must("vector-layouts", "a2a3")(
            "both tiles are row-major, or of one layout and wholly valid",
            lambda o: (is_plain(o.src) and is_plain(o.dst)) or _wholly_alike(o),
            "TRESHAPE both to row-major tiles first",
        ),
        must("vector-layouts", "a5")(
            _ROWS_OR_COLUMN + "NZ or ZN",
            lambda o: o.tmp is not None or _line_up(o) or _turns(o, "NZ", "ZN"),
        ),
        must("vector-layouts", "kirin9030")(
            _ROWS_OR_COLUMN + "NZ", lambda o: _line_up(o) or _turns(o, "NZ")
        ),
        must("vector-layouts", "kirinx90")(
            _ROWS_OR_COLUMN + "NZ or ZZ",
            lambda o: o.tmp is not None or _line_up(o) or _turns(o, "NZ", "ZZ"),
        ),
        _turned("nd-nz-dtype", "NZ", NZ_TYPES, "a5"),
        _turned("nd-nz-dtype", "NZ", "f16 f32 i32 i8", KIRIN),
        _turned("nd-zn-dtype", "ZN", ZN_TYPES, "a5"),
        where(lambda o: _turns(o, "NZ"), prefix="an NZ destination has as many rows as ")(
            must("nd-nz-pitch", "a5 kirinx90")(
                "its valid rows rounded up to 16, or is compact RowPlusOne: boxes are packed by "
                "the valid size",
                lambda o: o.dst.compact == CompactMode.RowPlusOne or o.dst.rows == up(o.dst.vr, 16),
            ),
            must("nd-nz-pitch", "kirin9030")(
                "src rounded up to 16: boxes are packed by the rows of src",
                lambda o: (
                    up(o.src.rows, 16)
                    == (up(o.dst.vr, 16) if o.dst.compact == CompactMode.RowPlusOne else o.dst.rows)
                ),
            ),
        ),
        must("nd-zn-boxes", "a5")(
            "src Rows is a multiple of 32 / sizeof and Cols of 16; a ZN destination is wholly "
            "valid in columns: boxes are packed by the valid size",
            lambda o: (
                not _turns(o, "ZN")
                or (
                    o.src.rows % c0(o.src) == 0
                    and o.src.cols % 16 == 0
                    and o.dst.cols == up(o.dst.vc, 16)
                )
            ),
        ),
    ),
    *along("Vec>Mat", NOT_A2A3)(
        same_type("same-dtype", NOT_A2A3),
        matching("vec-mat-layouts", NOT_A2A3),
        must("vec-mat-rows")(
            "row-major tiles are copied in one piece: dst is one row, or rows of both tiles are "
            "wholly valid and equally long",
            lambda o: not is_plain(o.dst) or o.dst.vr == 1 or o.dst.vc == o.dst.cols == o.src.cols,
        ),
    ),
]

# ---- scale factors in row order become the ZZ boxes the matrix unit reads ------------------------


def _packed(o: Any) -> bool:
    if o.attrs["grp_axis"]:
        return o.dst.cols == o.dst.vc and (o.src.rows == 1 or o.src.cols == o.dst.vc)
    return o.dst.cols == o.src.vr and o.src.cols == o.src.vc


def _tmp_bytes(o: Any) -> int:
    return 2 * (16 + up(o.dst.vr, 16) // 16 * o.dst.vc // 2 + 16)


SCALE_RULES = where(lambda o: o.tmp is not None, "a5 kirinx90")(
    must("zz-dtype")(
        f"dst, src and tmp have one element type of {ZZ_TYPES}",
        lambda o: o.src.dtype is o.dst.dtype is o.tmp.dtype and in_types("dst", ZZ_TYPES)(o),
    ),
    must("zz-layouts")(
        "src is row-major and dst is ZZ with boxes of 32 bytes",
        lambda o: is_plain(o.src) and (o.dst.layout, o.dst.fractal) == ("ZZ", 32),
    ),
    must("zz-packed")(
        "dst Cols are wholly valid (grp_axis 0: equal the valid rows of src) and src is densely "
        "packed",
        _packed,
    ),
    must("zz-groups")(
        "grp_axis 0 takes an even number of rows and a multiple of 16 columns",
        lambda o: o.attrs["grp_axis"] or (o.src.vr % 2 == 0 and o.src.vc % 16 == 0),
    ),
    must("zz-tmp")(
        "tmp holds 2 * (32 + ceil(R / 16) * C / 2) bytes of indices",
        lambda o: not o.attrs["grp_axis"] or o.tmp.nbytes >= _tmp_bytes(o),
    ),
    rule("zz-axis", "grp_axis is 0 or 1", lambda o: o.attrs["grp_axis"] in (0, 1)),
)
