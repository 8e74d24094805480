"""TEXTRACT: a window of one tile becomes another tile."""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import AccToVecMode, CompactMode, ReluPreMode, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa import transfer as moves
from ptokit.isa import transfer_rules as paths
from ptokit.isa.devices import A5_FAMILY, DEVICES, KIRIN, NEW, OLD
from ptokit.isa.effects import Scratch, steps
from ptokit.isa.facts import Ops
from ptokit.isa.language import in_text
from ptokit.isa.rules import APART, in_types, must, overlap, when, where
from ptokit.isa.scalars import unsigned
from ptokit.isa.services import Core, Poison
from ptokit.isa.spec import Asm, Cpp, Pipe, Rule, insn, out, rule, scalar, src
from ptokit.isa.targets import PerTarget
from ptokit.isa.transfer import c0, is_plain, is_row, path, up, whole
from ptokit.isa.transfer_rules import CUBE, along, index, inside, matching

# Bytes of UB over which A2A3 re-boxes odd int8 rows.
SCRATCH = Scratch(TileType.Vec, 188416, 8192, lambda o: 64 * min(o.dst.vr, 128))


A5_TYPES = "i8 f8e4m3 f8e5m2 hif8 f16 bf16 f32 f4e2m1x2 f4e1m2x2 f8e8m0"
DRAINS = "Acc>Mat Acc>Vec"


# A row of a Mat tile is read in whole boxes of 512 bytes: where the window starts is cut down.
_CUTS_ROWS = PerTarget(False, a2a3=True, a5=True, kirinx90=True)


def corner(o: Any) -> tuple[int, int]:
    """Where the window starts."""
    row, col = index(o, "indexRow"), index(o, "indexCol")
    if path(o) == "Mat>Left" and is_row(o.src) and _CUTS_ROWS[o.target]:
        col -= col % (512 // o.src.itemsize)
    return row, col


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
        paths.holds_type("cube-dtype", "f16 i8 u8 i16 u16", "kirin9030", "of a matmul operand"),
        paths.holds_type("cube-dtype", "i8 f16 f32", "kirinx90", "of a matmul operand"),
    ),
    *paths.operand_rules(source="SA-0165", plain=False, layout="SA-0161", indexed=True),
    *paths.weight_rules("a2a3 kirinx90 a5 kirin9030"),
]


def _stays(o: Any) -> bool:
    """Whether all that is read lies in the source."""
    rows, cols = _source(o)
    return rows.stop <= o.src.rows and cols.stop <= o.src.cols


_WINDOW = "the window lies inside src"
WINDOW_RULES = [
    *along(f"{CUBE} Mat>ScaleLeft Mat>ScaleRight", NEW)(  # where the makers ask for nothing
        must("window")(_WINDOW, _stays, otherwise=paths.where_it_lies("src"))
    ),
    *where(lambda o: o.src.kind == "tile", "cpu")(must("window")(_WINDOW, _stays)),
]
CORNER_RULES = [
    *along(f"{CUBE} {DRAINS}", OLD)(
        must("PA-0041")(
            "indexRow + dst.Rows <= src.Rows",
            lambda o: index(o, "indexRow") + o.dst.rows <= o.src.rows,
            otherwise=paths.where_it_lies("src"),
        ),
        must("PA-0040")(
            "indexCol + dst.Cols <= src.Cols",
            lambda o: index(o, "indexCol") + o.dst.cols <= o.src.cols,
            otherwise=paths.where_it_lies("src"),
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
        for on, kinds in (("a2a3", "i8 f16 bf16 f32 i32"), ("a5", paths.VECTOR_TYPES["a5"]))
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
            paths.window_rules("dst", "src"), matching("vector-layouts", "a2a3 a5")
        ),
        matching("vector-layouts", KIRIN),
        _TWO_WINDOWS,
    ),
    *along("Vec>Mat", A5_FAMILY)(
        matching("vec-mat-layouts", A5_FAMILY),
        inside("vec-mat-window", "dst", "src"),
    ),
]


# ---- regions -----------------------------------------------------------------------------------


def _size(o: Any) -> tuple[int, int]:
    """Rows and columns of the window."""
    way = path(o)
    if way == "Conv>Right":
        return moves.weight_size(o)
    if not o.target.is_device or way == "Vec>Vec":
        return o.dst.vr, o.dst.vc
    if way.startswith("Mat>"):
        rows, cols = whole(o.dst)
        if is_row(o.src):
            cols = min(up(o.dst.vc, 512 // o.dst.itemsize), _rest(o, 1), cols)
        return (1, cols) if is_row(o.src) else (rows, cols)
    if o.dst.layout != "NZ":
        return o.dst.vr, o.dst.vc
    rows = up(o.dst.vr, 16) if way == "Vec>Mat" else o.dst.vr
    cols = min(up(o.dst.vc, o.dst.inner[1]), _rest(o, 1), o.dst.cols)
    return min(rows, _rest(o, 0)), cols


def _rest(o: Any, axis: int) -> int:
    """Rows or columns of src from the window on, or as many as are asked for if that is more."""
    size, asked = ((o.src.rows, o.dst.vr), (o.src.cols, o.dst.vc))[axis]
    return max(size - corner(o)[axis], asked)


def _source(o: Any) -> Any:
    if o.dst1 is None:
        return _window(corner(o), _size(o))
    # Both windows, and what lies between them.
    (r0, c0), (r1, c1) = corner(o), corner1(o)
    rows = slice(min(r0, r1), max(r0 + o.dst.vr, r1 + o.dst1.vr))
    return rows, slice(min(c0, c1), max(c0 + o.dst.vc, c1 + o.dst1.vc))


def _window(start: tuple[int, int], size: tuple[int, int]) -> tuple[slice, slice]:
    (row, col), (rows, cols) = start, size
    return slice(row, row + rows), slice(col, col + cols)


def _off_blocks(o: Any) -> bool:
    """Whether one of two windows starts inside a 32-byte block."""
    starts = corner(o)[1], corner1(o)[1]
    return o.dst1 is not None and any(col * o.src.itemsize % BLOCK_BYTES for col in starts)


def _is_odd(o: Any) -> bool:
    """Whether two windows of bytes are cut whose rows do not end with a pair."""
    return o.dst1 is not None and o.dst.itemsize == 1 and (o.dst.vc % 2 or o.dst1.vc % 2) == 1


def _first_word(o: Any) -> int:
    return index(o, "indexCol")


def _word_count(o: Any) -> int:
    return o.dst.vc


def _is_part(o: Any) -> bool:
    """Whether dst already is what is taken: the same elements at the same addresses."""
    if (o.dst.loc, o.dst.layout, o.dst.dtype) != (o.src.loc, o.src.layout, o.src.dtype):
        return False
    if o.src.is_boxed or (o.dst.row_stride != o.src.row_stride and o.dst.vr > 1):
        return False
    row, col = index(o, "indexRow"), index(o, "indexCol")
    offset = row * o.src.row_stride + col * o.src.col_stride
    return o.dst.lease == o.src.lease and o.dst.addr == o.src.addr + offset * o.src.itemsize


def _drops_relu(o: Any) -> bool:
    """Whether ReLU is asked for on the one way out of an accumulator that has none."""
    return (
        _PLAIN_WITHOUT_RELU[o.target]
        and o.attrs["reluPreMode"] != ReluPreMode.NoRelu
        and path(o) == "Acc>Vec"
        and o.attrs["accToVecMode"] is None
        and o.preQuantScalar is None
        and o.fp is None
    )


_PLAIN_WITHOUT_RELU = PerTarget(False, a5=True)


# ---- the instructions --------------------------------------------------------------------------

A2A3_PATHS = "Mat>Left Mat>Right Acc>Mat Vec>Vec Conv>Right"
KIRIN_PATHS = A2A3_PATHS + " Acc>Vec Vec>Mat"
A5_PATHS = KIRIN_PATHS + " Mat>ScaleLeft Mat>ScaleRight"


@insn(
    out("dst", view=lambda o: moves.share_size(o, *_size(o))),
    out("dst1", optional=True, note="second window of a vector tile"),
    src("src", view=_source, kinds=("tile", "conv"), carries=True),
    moves.WORD,
    moves.words(_first_word, _word_count, "quantisation words, one per source column"),
    scalar("indexRow", unsigned(16), note="first row of the window, 0 when left out"),
    scalar("indexCol", unsigned(16), note="first column of the window, 0 when left out"),
    scalar("indexRow1", unsigned(16), optional=True, note="first row of the second window"),
    scalar("indexCol1", unsigned(16), optional=True, note="first column of the second window"),
    attrs=[moves.RELU, moves.VEC_MODE],
    pipe=moves.pipe_of,
    idiom=moves.loop,
    ops={"TEXTRACT_M2LR": Pipe.MTE1, "TEXTRACT_A2M": Pipe.FIX, "TEXTRACT_V2M": Pipe.FIX},
    targets=DEVICES,
    forms=[
        "dst src",
        "dst src indexRow",
        "dst src indexRow indexCol",
        "dst src preQuantScalar indexRow indexCol",
        "dst src fp indexRow indexCol",
        "dst dst1 src",
        "dst dst1 src indexRow",
        "dst dst1 src indexRow indexCol",
        "dst dst1 src indexRow indexCol indexRow1",
        "dst dst1 src indexRow indexCol indexRow1 indexCol1",
    ],
    rules=[
        paths.weights_to_right(),
        must("separate", DEVICES)(
            "dst is the taken part of src, element by element, or shares no storage with it",
            lambda o: _is_part(o) or not overlap(o.dst, o.src),
            APART,
        ),
        paths.paths_exist("space-pair", A2A3_PATHS, "a2a3"),
        paths.paths_exist("space-pair", KIRIN_PATHS, KIRIN),
        paths.paths_exist("space-pair", A5_PATHS, "a5"),
        paths.same_type("SA-0160", OLD),
        paths.same_type("SA-0159", NEW),
        OPERAND_RULES,
        CORNER_RULES,
        WINDOW_RULES,
        VECTOR_RULES,
        in_text(
            "vector-layouts",
            "from Vec to Vec both tiles are row-major, without an inner box",
            lambda o: (
                not (o.src.loc == o.dst.loc == TileType.Vec) or o.src.layout == o.dst.layout == "ND"
            ),
            "a5",
            "declare them with blayout=row_major, slayout=none_box",
        ),
        paths.needs_accumulator("accumulator-source", DEVICES),
        paths.drain_rules(),
        paths.mode_rules(moved="dst"),
        paths.fp_rules(_first_word, _word_count),
        must("first-core", "kirinx90")(
            "the receiving vector core is core 0",
            lambda o: o.attrs["accToVecMode"] in (None, AccToVecMode.SingleModeVec0),
        ),
        must("relu-to-vec", "a5")(
            "ReLU on the way to a Vec tile needs an AccToVecMode or a quantisation word",
            lambda o: not _drops_relu(o),
            "TEXTRACT[AccToVecMode.SingleModeVec0, ReluPreMode.NormalRelu](...)",
            "it is dropped",
        ),
    ],
    asm=moves.window_text("fp", "indexRow1 indexCol1"),
    steps=[
        paths.one_element("dst"),
        steps("a2a3", _off_blocks, start="V->S", end="S->V", complete=True),
        steps("a2a3", _is_odd, between="V", end="V", complete=True, scratch=SCRATCH),
    ],
    more_examples="""
        src                               | dst                    | indexRow | indexCol | on
        Mat f16 64x96 NZ                  | Left f16 32x32         | 16       | 32       |
        Mat f16 64x96 ZN                  | Left f16 32x32         | 16       | 32       |
        Mat f16 64x96 ZN                  | Right f16 32x32        | 16       | 32       |
        Mat f16 64x96 NZ                  | Right f16 32x32        | 16       | 32       |
        Mat f16 1x512                     | Left f16 1x256         | 0        | 256      |
        Mat f8e8m0 32x8 ZZ/32             | ScaleLeft f8e8m0 16x4  |          |          | a5
        Mat f8e8m0 8x32 NN/32             | ScaleRight f8e8m0 4x16 |          |          | a5
        Conv Mat i8 FRACTAL_Z 2x2x1x64x32 | Right i8 64x32         | 32       | 16       |
        Conv Mat f16 FRACTAL_Z 4x4x16x16  | Right f16 32x32        |          |          |

        src           | dst              | indexRow | indexCol | preQuantScalar | on
        Acc f32 64x64 | Mat f16 32x32 NZ | 16       | 16       |                | a2a3 a5 cpu
        Acc i32 64x64 | Mat i8 32x32 NZ  | 16       | 16       | 0x3f800000     |
        Acc f32 64x64 | Mat i8 32x32 NZ  | 16       | 16       | 0x3f800000     | a2a3 a5 cpu

        src                | dst                | fp               | indexRow | indexCol | on
        Acc i32 64x64      | Mat i8 32x32 NZ    | Scaling u64 1x64 | 16       | 16       |
        Acc f32 32x32      | Vec f32 32x32      |                  |          |          | a5
        Acc f16 32x32      | Vec f16 32x32      |                  |          |          | kirin
        Acc i32 32x32      | Vec i32 32x32      |                  |          |          | kirin
        Vec i8 16x64       | Vec i8 8x32        |                  | 3        | 32       |
        Vec f32 32x64 NZ   | Vec f32 16x32 NZ   |                  | 16       | 16       |
        Vec f4e2m1x2 16x64 | Vec f4e2m1x2 16x32 |                  |          |          | a5

        src           | dst              | dst1             | indexRow | indexCol | \
            indexRow1 | indexCol1 | on
        Vec f16 64x64 | Vec f16 32x32 NZ | Vec f16 16x16 NZ | 3        | 16       | \
            40        | 48        | a2a3 a5

        src           | dst           | indexRow | indexCol | on
        Vec f16 32x32 | Mat f16 16x32 | 8        | 0        | a5 kirin
    """,
    cpp=Cpp(moves.PARTS),
)
def TEXTRACT(
    dst: Array,
    dst1: Array | None,
    src: Array,
    preQuantScalar: int | None,
    fp: Array | None,
    indexRow: int | None,
    indexCol: int | None,
    indexRow1: int | None,
    indexCol1: int | None,
    ops: Ops,
    poison: Poison,
    core: Core,
) -> None:
    """Copy the window of src that starts at (indexRow, indexCol) into dst.

    Into a matmul operand the window has the capacity of dst, in compact tiles its valid boxes; one
    row of a Mat tile becomes the left operand of a matrix-vector product. From an accumulator the
    valid size of dst is read, in whole boxes of columns when dst is NZ, and converted by the fix
    pipe; quantisation words belong to source columns. Between vector tiles the valid region of dst
    is filled. Convolution weights are read as the matrix K x N with K = (c1, h, w, c0).

    With two destinations, two windows of a row-major vector tile are boxed at once; on A2A3 an odd
    width of int8 uses 8 KiB of the vector memory at byte 188416 as scratch. Elements outside the
    source's valid region may be undefined and stay undefined in dst.
    """
    at = corner(ops)
    if ops.src.kind == "conv":
        moves.transfer_weights(dst, src, poison, at)
    elif dst1 is not None:
        _two_windows(dst, dst1, src, ops, poison)
    else:
        word = preQuantScalar if fp is None else fp
        relu = False if _drops_relu(ops) else None
        moves.transfer(dst, src, ops, poison, core, word, at, relu)


def _two_windows(dst: Array, dst1: Array, src: Array, o: Ops, poison: Poison) -> None:
    corners = corner(o), corner1(o)
    first = tuple(map(min, *corners))  # where the region handed over starts
    for out_, at in zip((dst, dst1), corners, strict=True):
        start = at[0] - first[0], at[1] - first[1]
        part = _window(start, (out_.shape[0], out_.shape[1]))
        poison.demand("src", part)
        out_[...] = src[part]


@insn(
    out("dst", view=_size),
    src("src", view=lambda o: _window(corner(o), _size(o)), carries=True),
    moves.words(
        *(_first_word, _word_count), "quantisation words, one per source column", optional=False
    ),
    scalar("indexRow", unsigned(16)),
    scalar("indexCol", unsigned(16)),
    attrs=[moves.RELU],
    pipe=Pipe.FIX,
    ops={"TEXTRACT_A2M": Pipe.FIX},
    targets=DEVICES,
    rules=[
        paths.fp_rules(_first_word, _word_count),
        paths.paths_exist("accumulator", "Acc>Mat Acc>Vec", DEVICES),
        paths.drain_rules("fp"),
        CORNER_RULES,
        inside("window", "dst", "src", "cpu"),
    ],
    asm=Asm(forms=frozenset({"l1", "l2"})),
    example={
        "src": "Acc i32 64x64",
        "dst": "Mat i8 32x32 NZ",
        "fp": "Scaling u64 1x64",
        "indexRow": "16",
        "indexCol": "16",
    },
    more_examples="""
        src           | dst             | fp               | indexRow | indexCol | on
        Acc f32 64x64 | Mat i8 32x32 NZ | Scaling u64 1x64 | 16       | 16       | a2a3 a5 cpu
        Acc f16 64x64 | Vec i8 32x32    | Scaling u64 1x64 | 16       | 16       | kirin
    """,
    cpp=Cpp(moves.PARTS_FP),
)
def TEXTRACT_FP(
    dst: Array,
    src: Array,
    fp: Array,
    indexRow: int,
    indexCol: int,
    ops: Ops,
    poison: Poison,
    core: Core,
) -> None:
    """Extract a window of an accumulator with a quantisation word per column.

    dst(r, c) = quant(src(indexRow + r, indexCol + c), fp[indexCol + c]), over the region TEXTRACT
    has from an accumulator. The words start at fp + 8 * indexCol, which has to be a multiple of
    128 bytes.
    """
    moves.transfer(dst, src, ops, poison, core, fp, (indexRow, indexCol))
