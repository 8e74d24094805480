"""TMOV: a whole tile moves to another memory space or layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.dtypes import dtype, f16, f32
from ptokit.base.enums import CompactMode, Layout, TileType
from ptokit.base.layout import Array, AxisMap, flat_map
from ptokit.base.tiles import DYNAMIC
from ptokit.isa import transfer as moves
from ptokit.isa import transfer_rules as paths
from ptokit.isa.devices import A5_FAMILY, DEVICES, KIRIN, NEW, OLD
from ptokit.isa.facts import Ops
from ptokit.isa.language import in_text
from ptokit.isa.rules import Told, behind, in_types, must, or_else, separate, under, where
from ptokit.isa.services import Core, Poison
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, Rule, insn, out, rule, src, tmp
from ptokit.isa.targets import PerTarget
from ptokit.isa.transfer import c0, is_plain, path, up, whole
from ptokit.isa.transfer_rules import CUBE, along, matching, same_type

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
        [paths.holds_type(*row, on, "of a matmul operand") for on, row in CUBE_TYPES.items()],
    ),
    *paths.operand_rules(source="SA-0259", plain=True, layout="SA-0255", indexed=False),
    *along("Mat>ScaleLeft Mat>ScaleRight", "a5")(same_type("same-dtype")),
    *paths.weight_rules("a2a3 kirinx90"),
    *paths.weight_rules("a5", (Layout.FRACTAL_Z,)),
]

# ---- the bias table and the parameters of the fix pipe: one row of whole units -------------------


def _pairs(id: str, pairs: str, on: str) -> Rule:
    allowed = [tuple(dtype(one) for one in pair.split(",")) for pair in pairs.split()]
    told = ", ".join(pair.replace(",", " to ") for pair in pairs.split())
    text = f"a bias moves from {told}"
    return rule(id, text, lambda o: (o.src.dtype, o.dst.dtype) in allowed, on)


def _fits(o: Any) -> bool:
    return o.dst.nbytes <= o.target.spaces[o.dst.loc].capacity


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
            {"SA-0268": "a2a3", "SA-0269": A5_FAMILY},
            "a bias is one row",
            lambda o: o.src.rows == 1,
        ),
        must("SA-0267", "a2a3")(
            "src Cols * sizeof is a multiple of 64 bytes",
            lambda o: o.src.cols * o.src.itemsize % 64 == 0,
        ),
        must("SA-0266", A5_FAMILY)(
            "dst Cols * sizeof is a multiple of 64 bytes",
            lambda o: o.dst.cols * o.dst.itemsize % 64 == 0,
        ),
        under({"SA-0260": "a5", "bias-capacity": KIRIN}, "dst fits into its memory", _fits),
    ),
    *along("Mat>Scaling")(
        must("SA-0254", "a2a3")(
            "src and dst have the same element type", lambda o: o.src.dtype is o.dst.dtype
        ),
        same_type("same-dtype", A5_FAMILY),
        rule(
            "SA-0256", "quantisation words are int64 or uint64", in_types("dst", "i64 u64"), DEVICES
        ),
        under(
            {"SA-0272": "a2a3", "SA-0273": A5_FAMILY},
            "quantisation words are one row",
            lambda o: o.src.rows == 1,
        ),
        under(
            {"SA-0271": "a2a3", "SA-0270": A5_FAMILY},
            "Cols * sizeof is a multiple of 128 bytes",
            lambda o: o.dst.cols * o.dst.itemsize % 128 == 0,
        ),
        under({"SA-0261": "a5", "scaling-capacity": KIRIN}, "dst fits into its memory", _fits),
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


_COPIES_BYTES = PerTarget(False, a2a3=True)


def _moves_bytes(o: Any) -> bool:
    """Whether a vector tile moves to one of another arrangement, which nothing looks at."""
    return (
        _COPIES_BYTES[o.target]
        and path(o) == "Vec>Vec"
        and not (is_plain(o.src) and is_plain(o.dst))
        and not _wholly_alike(o)
    )


def _bytes_moved(o: Any, tile: Any) -> AxisMap:
    """The rows that move, in whole blocks: as one piece where they are whole rows of both tiles."""
    rows, cols = _common(o)
    if cols == o.dst.cols and (o.dst.cols == o.src.cols or o.dst.rows == 1):
        return flat_map(up(rows * cols, c0(o.dst)))
    length = up(cols, c0(o.dst)) if rows and cols else 0
    return AxisMap((rows, length), (tile.row_stride, 1), (0,), (1,))


def _stays(o: Any) -> bool:
    """Whether a tile is moved to where it is: the assembler leaves such a move out."""
    return (o.dst.addr, o.dst.spec, o.dst.vr, o.dst.vc) == (
        o.src.addr,
        o.src.spec,
        o.src.vr,
        o.src.vc,
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
            otherwise="nothing moves",
        ),
        must("same-layout", "a2a3")(
            "both tiles have the same layout", lambda o: o.src.layout == o.dst.layout
        ),
        must("vector-layouts", "a2a3")(
            "both tiles are row-major, or of one layout and wholly valid",
            lambda o: not _moves_bytes(o),
            "TRESHAPE both to row-major tiles first",
            behind("bytes move as they lie: whole 32-byte blocks of each row, by Cols of the tile"),
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
    *along("Vec>Mat", A5_FAMILY)(
        same_type("same-dtype", A5_FAMILY),
        matching("vec-mat-layouts", A5_FAMILY),
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
    return o.src.cols == o.src.vc


def _typed(tile: Any) -> tuple[int, int]:
    return tile.valid_row, tile.valid_col


def _scales(o: Any) -> int:
    """The elements of all boxes of 16 by 2, which follow one another from the start of dst on."""
    if o.attrs["grp_axis"]:
        return up(o.dst.vr, 16) * (o.dst.vc // 2 * 2)
    return (o.src.vr // 2 * 2) * (o.src.vc // 16 * 16)


SCALE_RULES = where(lambda o: o.tmp is not None, "a5 kirinx90")(
    must("zz-dtype")(
        f"dst, src and tmp have one element type of {ZZ_TYPES}",
        lambda o: o.src.dtype is o.dst.dtype is o.tmp.dtype and in_types("dst", ZZ_TYPES)(o),
    ),
    must("zz-layouts")(
        "src is row-major and dst is ZZ, whatever its boxes",
        lambda o: is_plain(o.src) and o.dst.layout == "ZZ",
    ),
    must("zz-packed")(
        "src is densely packed, and so is dst with grp_axis 1: its Cols are wholly valid", _packed
    ),
    must("zz-pairs")(
        "grp_axis 1 takes an even number of columns",
        lambda o: not o.attrs["grp_axis"] or o.dst.vc % 2 == 0,
    ),
    must("zz-room")(
        "dst holds all boxes, with grp_axis 1 also those of rows that are filled up to 16",
        lambda o: o.dst.numel >= _scales(o),
    ),
    separate("tmp", "src", "dst", id="zz-apart"),
    must("zz-groups")(
        "grp_axis 0 takes an even number of rows and a multiple of 16 columns",
        lambda o: o.attrs["grp_axis"] or (o.src.vr % 2 == 0 and o.src.vc % 16 == 0),
        otherwise="an odd row and the columns past the last sixteen are not moved",
    ),
    must("zz-tmp")(
        "tmp holds 2 * (32 + ceil(R / 16) * C / 2) bytes of indices",
        lambda o: (
            not o.attrs["grp_axis"]
            or o.tmp.nbytes >= 2 * (32 + up(o.dst.vr, 16) // 16 * o.dst.vc // 2)
        ),
    ),
    rule("zz-axis", "grp_axis is 0 or 1", lambda o: o.attrs["grp_axis"] in (0, 1)),
)
_SCALES_IN_TEXT = where(lambda o: o.tmp is not None)(
    in_text("zz-target", "scales are boxed on A5", lambda o: False, "a2a3", "move them by hand"),
    in_text(
        "zz-vec",
        "src, dst and tmp are Vec tiles",
        lambda o: o.src.loc == o.dst.loc == o.tmp.loc == TileType.Vec,
    ),
    in_text(
        "zz-static",
        "the valid sizes of src and dst are in their types",
        lambda o: DYNAMIC not in (*_typed(o.src), *_typed(o.dst)),
        fix="write v_row and v_col as numbers",
    ),
    in_text(
        "zz-groups",
        "grp_axis 0 takes an even number of rows, 2 or more, and a multiple of 16 columns",
        lambda o: (
            o.attrs["grp_axis"] == 1
            or (o.src.valid_row >= 2 and o.src.valid_row % 2 == o.src.valid_col % 16 == 0)
        ),
    ),
    in_text(
        "zz-source",
        "src has room for its rows filled up to 16, which are cleared there",
        lambda o: o.attrs["grp_axis"] != 1 or o.src.nbytes >= _scales(o),
    ),
)


# ---- regions -----------------------------------------------------------------------------------


def _common(o: Any) -> tuple[int, int]:
    return min(o.src.vr, o.dst.vr), min(o.src.vc, o.dst.vc)


def _moved(o: Any) -> tuple[int, int]:
    """Rows and columns that move."""
    way = path(o)
    if way == "Conv>Right":
        return moves.weight_size(o)
    if not o.target.is_device or way == "Vec>Vec":
        return _common(o)
    boxed = o.dst.layout == "NZ"
    if way.startswith("Mat>"):
        return whole(o.dst)
    if way == "Acc>Mat" and boxed:
        return whole(o.src)[0], min(up(o.src.vc, o.dst.inner[1]), o.dst.cols, o.src.cols)
    if boxed and o.attrs.get("accToVecMode") in moves.DUAL:
        return whole(o.src)[0], min(up(o.src.vc, moves.dual_columns(o)), o.src.cols)
    if way == "Vec>Mat" and boxed:
        rows, cols = map(min, whole(o.src), whole(o.dst))
        return min(up(o.dst.vr, 16), rows), min(up(o.dst.vc, c0(o.dst)), cols)
    return (o.dst.vr, o.dst.vc) if way == "Vec>Mat" else (o.src.vr, o.src.vc)


def _is_zz(o: Any) -> bool:
    """Whether scale factors are boxed; only the device's form differs from a plain copy."""
    return o.tmp is not None and o.target.is_device


def _source(o: Any) -> Any:
    if _moves_bytes(o):
        return _bytes_moved(o, o.src)
    if not _is_zz(o):
        return _moved(o)
    # Scales come densely packed, often as one long row: the valid size of dst divides them.
    if o.attrs["grp_axis"]:
        return slice(0, o.dst.vr * (o.dst.vc // 2 * 2))
    return o.src.vr // 2 * 2, o.src.vc // 16 * 16


def _destination(o: Any) -> Any:
    if _moves_bytes(o):
        return _bytes_moved(o, o.dst)
    return slice(0, _scales(o)) if _is_zz(o) else moves.share_size(o, *_moved(o))


def _spill(o: Any) -> Any:
    in_blocks = o.target.writes_whole_blocks and path(o) == "Vec>Vec" and is_plain(o.dst)
    return moves.rest_of_blocks(o, *_common(o)) if in_blocks else None


# ---- the instructions --------------------------------------------------------------------------

_WORDS = moves.no_column, moves.source_columns
A2A3_PATHS = "Mat>Left Mat>Right Mat>Bias Mat>Scaling Vec>Vec Acc>Mat Conv>Right"
KIRIN_PATHS = "Mat>Left Mat>Right Mat>Bias Mat>Scaling Vec>Vec Vec>Mat Acc>Mat Acc>Vec"
A5_PATHS = KIRIN_PATHS + " Mat>ScaleLeft Mat>ScaleRight Conv>Right"
OPS = {
    "TMOV_V2V": Pipe.V,
    "TMOV_V2M": Pipe.FIX,
    "TMOV_M2L": Pipe.MTE1,
    "TMOV_M2R": Pipe.MTE1,
    "TMOV_M2B": Pipe.MTE1,
    "TMOV_M2S": Pipe.FIX,
    "TMOV_A2V": Pipe.FIX,
    "TMOV_A2M": Pipe.FIX,
}


@insn(
    out("dst", view=_destination, unspecified=_spill),
    src("src", view=_source, kinds=("tile", "conv"), carries=True),
    moves.WORD,
    moves.words(*_WORDS, "quantisation words, one per column"),
    tmp(optional=True, lost=lambda o: o.attrs["grp_axis"] == 1, note="indices of the ZZ form"),
    attrs=[
        moves.RELU,
        moves.VEC_MODE,
        moves.PHASE,
        Attr("grp_axis", int, 1, "ZZ form: groups along the columns (1) or the rows (0) of src"),
    ],
    pipe=moves.pipe_of,
    idiom=moves.loop,
    pointwise=lambda o: (
        o.src.kind == "tile" and o.fp is None and o.tmp is None and o.attrs["accToVecMode"] is None
    ),
    ops=OPS,
    targets=DEVICES,
    forms=["dst src", "dst src preQuantScalar", "dst src fp", "dst src tmp"],
    rules=[
        paths.fp_rules(*_WORDS),
        paths.weights_to_right(),
        *or_else(Told("nothing changes", _stays), separate("dst", "src", on=DEVICES)),
        paths.paths_exist("SA-0257", A2A3_PATHS, "a2a3"),
        paths.paths_exist("space-pair", A5_PATHS, "a5"),
        paths.paths_exist("space-pair", KIRIN_PATHS, "kirin9030"),
        paths.paths_exist("space-pair", KIRIN_PATHS + " Conv>Right", "kirinx90"),
        paths.same_capacity("SA-0263", "a2a3"),
        along(" ".join(way for way in A5_PATHS.split() if way.startswith("Mat>")), A5_FAMILY)(
            paths.same_capacity("SA-0262")
        ),
        OPERAND_RULES,
        TABLE_RULES,
        VECTOR_RULES,
        SCALE_RULES,
        _SCALES_IN_TEXT,
        paths.needs_accumulator("SA-0102", "a2a3"),
        paths.needs_accumulator("accumulator-source", A5_FAMILY),
        paths.drain_rules(),
        paths.mode_rules(in_boxes=True),
        must("phase", "a2a3")(
            "the forms with a unit-flag phase do not exist here",
            lambda o: o.attrs["stPhase"] is None,
        ),
        must("group-axis")(
            "an axis of groups goes with the ZZ form, which has a tmp",
            lambda o: o.tmp is not None or o.attrs["grp_axis"] == 1,
            "leave it out",
        ),
    ],
    asm=Asm(
        ins=("src", "fp", "preQuantScalar"),
        outs=("dst",),
        attrs={
            "accToVecMode": "accToVecMode",
            "reluPreMode": "reluPreMode",
            "grp_axis": "grpAxis grp_axis",
        },
        types={"grpAxis": "mx_group_axis"},
        distinct=("src", "dst", "tmp"),
        is_paired=True,
        order=("src", "dst", "fp+tmp", "preQuantScalar"),
        is_counted=True,
        aliases=tuple(name.lower().replace("_", ".") for name in OPS),  # tmov.m2l ...
    ),
    more_examples="""
        src                   | dst                                       | on
        Mat f16 32x64 NZ      | Left f16 32x64                            |
        Mat f16 32x64 ZN      | Left f16 32x64                            |
        Mat f16 1x256         | Left f16 1x256                            |
        Mat f16 32x64 ZN      | Right f16 32x64                           |
        Mat f16 32x64 NZ      | Right f16 32x64                           |
        Mat f16 64x64 NZ      | Left f16 64x64 valid 40x40 compact Normal |
        Mat i32 1x64          | Bias i32 1x64                             |
        Mat f16 1x64          | Bias f32 1x64                             | a2a3 a5
        Mat u64 1x16          | Scaling u64 1x16                          |
        Mat f8e8m0 32x4 ZZ/32 | ScaleLeft f8e8m0 32x4                     | a5
        Mat f8e8m0 4x32 NN/32 | ScaleRight f8e8m0 4x32                    | a5

        src                                | dst              | on
        Conv Mat f16 FRACTAL_Z 2x2x1x64x16 | Right f16 64x32  | a2a3 a5 kirinx90 cpu
        Conv Mat f16 FRACTAL_Z 4x4x16x16   | Right f16 64x32  | a2a3 a5 kirinx90 cpu
        Acc f32 32x32                      | Mat f16 32x32 NZ | a2a3 a5 cpu

        src           | dst             | preQuantScalar | accToVecMode   | on
        Acc i32 32x32 | Mat i8 32x32 NZ | 0x3f800000     |                |
        Acc f32 32x32 | Mat i8 32x32 NZ | 0x3f800000     |                | a2a3 a5 cpu
        Acc i32 32x32 | Vec i32 32x32   |                |                | a5 kirin
        Acc f16 32x32 | Vec f16 32x32   |                |                | kirin
        Acc f32 32x32 | Vec f32 16x32   |                | DualModeSplitM | a5

        src           | dst             | fp               | accToVecMode   | on
        Acc i32 32x32 | Mat i8 32x32 NZ | Scaling u64 1x32 |                | a2a3
        Acc i32 32x32 | Vec i8 32x32    | Scaling u64 1x32 | SingleModeVec0 | a5 kirin cpu

        src                          | dst                          | tmp          | on
        Vec f16 32x32 NZ valid 20x20 | Mat f16 32x32 NZ valid 20x20 |              | a5 kirin
        Vec f16 32x32                | Mat f16 32x32                |              | a5 kirin
        Vec f16 32x32 valid 30x20    | Vec f16 32x32 NZ valid 30x20 |              | a5 kirin
        Vec f16 32x32                | Vec f16 32x32 ZN             |              | a5
        Vec u8 1x128                 | Vec u8 32x4 ZZ/32            | Vec u8 1x128 | a5 kirinx90

        src         | dst               | tmp          | grp_axis | on
        Vec u8 4x32 | Vec u8 32x4 ZZ/32 | Vec u8 1x128 | 0        | a5 kirinx90
    """,
    cpp=Cpp((*moves.PARTS, "@grp_axis"), first=moves.PHASE.name),
)
def TMOV(
    dst: Array,
    src: Array,
    preQuantScalar: int | None,
    fp: Array | None,
    tmp: Array | None,
    ops: Ops,
    poison: Poison,
    core: Core,
) -> None:
    """Move a tile to another memory space or layout; element (r, c) stays element (r, c).

    Which spaces can be connected depends on the target. From Mat the whole capacity moves, in
    compact tiles the valid boxes; a half or bfloat16 row is widened when it becomes a float bias.
    Between vector tiles the common valid region moves; A2A3 copies whole 32-byte blocks and leaves
    the rest of the last block of each row unspecified. An accumulator is converted on the way, see
    the fix pipe: plainly, with one quantisation word (`preQuantScalar`) or one per column (`fp`),
    then ReLU. Into an NZ Mat tile it writes all rows and whole boxes of columns.

    A mode that names a vector core writes to the address of dst in the memory of that core; the
    dual modes give half of the rows or columns to each; into NZ tiles they divide all rows of src,
    and its columns in whole boxes. Tiles that were placed automatically have no other side: there a
    core sees the half of its own sub-block. With `tmp`, scale factors become
    ZZ boxes: rows are filled up to 16 with zeros, and the source rows read as filling are
    overwritten. Elements outside the source's valid region may be undefined and stay undefined in
    dst.
    """
    if ops.src.kind == "conv":
        moves.transfer_weights(dst, src, poison)
    elif _is_zz(ops):
        _box_scales(dst, src, ops, poison)
    else:
        moves.transfer(dst, src, ops, poison, core, preQuantScalar if fp is None else fp)


def _box_scales(dst: Array, src: Array, o: Ops, poison: Poison) -> None:
    poison.demand("src", (slice(None), slice(None)))
    if o.attrs["grp_axis"] == 0:
        rows, cols = src.shape
        boxes = src.reshape(rows // 2, 2, cols // 16, 16).transpose(2, 0, 3, 1)
        dst[...] = boxes.reshape(dst.shape)
        return
    rows, pairs = o.dst.vr, o.dst.vc // 2
    filled = np.zeros((up(rows, 16), pairs * 2), src.dtype)
    filled[:rows] = src.reshape(rows, pairs * 2)
    boxes = filled.reshape(-1, 16, pairs, 2).transpose(0, 2, 1, 3)
    dst[...] = boxes.reshape(dst.shape)
    poison.poison("src", slice(o.dst.vr, min(up(o.dst.vr, 16), o.src.rows)), slice(0, o.src.cols))


@insn(
    out("dst", view=_moved),
    src("src", view=_moved, carries=True),
    moves.words(*_WORDS, "quantisation words, one per column", optional=False),
    attrs=[moves.RELU, moves.PHASE],
    pipe=Pipe.FIX,
    ops={"TMOV_A2M": Pipe.FIX, "TMOV_A2V": Pipe.FIX},
    targets=DEVICES,
    rules=[
        paths.fp_rules(*_WORDS),
        rule("accumulator", "src is an Acc tile", lambda o: o.src.loc.name == "Acc"),
        paths.paths_exist("space-pair", "Acc>Mat Acc>Vec", A5_FAMILY),
        paths.drain_rules("fp"),
        paths.same_capacity("SA-0263", "a2a3"),
        must("phase", "a2a3")(
            "the form with a unit-flag phase does not exist here",
            lambda o: o.attrs["stPhase"] is None,
        ),
    ],
    asm=Asm(name="tmov.fp"),
    example={"src": "Acc i32 32x32", "dst": "Mat i8 32x32 NZ", "fp": "Scaling u64 1x32"},
    more_examples="""
        src                       | dst             | fp               | on
        Acc f32 32x32             | Mat i8 32x32 NZ | Scaling u64 1x32 | a2a3 a5 cpu
        Acc f32 32x48 valid 20x40 | Vec f16 32x48   | Scaling u64 1x48 | a5
        Acc f16 32x32             | Vec i8 32x32    | Scaling u64 1x32 | kirin
    """,
    cpp=Cpp(moves.PARTS_FP),
)
def TMOV_FP(dst: Array, src: Array, fp: Array, ops: Ops, poison: Poison, core: Core) -> None:
    """Move an accumulator with a quantisation word per column: dst(r, c) = quant(src(r, c), fp[c]).

    The region is that of TMOV from an accumulator. `fp` must stay unchanged until the move is done.
    """
    moves.transfer(dst, src, ops, poison, core, fp)
