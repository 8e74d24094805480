"""TLOAD: from global memory into tiles, with a change of arrangement where the pair allows it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from ptokit.base.enums import Layout, PadValue, TileType
from ptokit.base.layout import Array
from ptokit.base.tensors import ROW_AND_COLUMN_AXES
from ptokit.base.tiles import DYNAMIC
from ptokit.isa import memory
from ptokit.isa.bursts import filled, moved
from ptokit.isa.conv_load import CONV_EXAMPLES, CONV_RULES, load_conv, taken_of_maps
from ptokit.isa.devices import DEVICES, KIRIN, NEW, OLD
from ptokit.isa.facts import Ops
from ptokit.isa.idioms import MOVES, copy
from ptokit.isa.memory import FIX_VIEW, arranged, as_bits_of, c0_of, is_tile, pairs, view_rows_cols
from ptokit.isa.rules import Predicate, both, must, where
from ptokit.isa.spec import Asm, Pipe, View, examples, gm_in, insn, out, rule
from ptokit.isa.targets import PerTarget
from ptokit.isa.transfer import up

_tile = is_tile("dst")
_vec, _mat = is_tile("dst", TileType.Vec), is_tile("dst", TileType.Mat)
_eight_bytes = both(_tile, lambda o: o.dst.itemsize == 8)


def _pair(listed: str) -> Predicate:
    return both(_tile, pairs("dst", "src", listed))


def _one_matrix(o: Any) -> bool:
    return o.src.static_shape[:3] == (1, 1, 1)


_nd, _dn, _nz = (arranged("src", layout) for layout in (Layout.ND, Layout.DN, Layout.NZ))
SAME_PAIRS = "ND-ND DN-DN NZ-NZ"
_nd_to_nd, _dn_to_dn = _pair("ND-ND"), _pair("DN-DN")
_nd_to_nz, _dn_to_zn = _pair("ND-NZ"), _pair("DN-ZN")
_to_nz = _pair("ND-NZ DN-NZ")
_to_box = _pair("ND-NZ DN-ZN")


def _vector(o: Any) -> bool:
    """A single row or column: the unboxed Mat forms that need no whole 32-byte blocks."""
    return (_nd_to_nd(o) and o.dst.rows == 1) or (_dn_to_dn(o) and o.dst.cols == 1)


def _all_static(o: Any) -> bool:
    """Whether A5 compares the sizes of a Vec load at compile time."""
    sizes = (o.dst.valid_row, o.dst.valid_col, *o.src.static_shape)
    return _vec(o) and _nd_to_nd(o) and min(sizes) > 0


def _static_columns_agree(o: Any) -> bool:
    sizes = o.dst.valid_col, o.src.static_shape[4]
    return min(sizes) <= 0 or sizes[0] == sizes[1]


def _static_rows_agree(o: Any) -> bool:
    sizes = o.dst.valid_row, *o.src.static_shape[:4]
    return min(sizes) <= 0 or sizes[0] == prod(sizes[1:])


# ---- scale factors of matmul operands on A5, which go into Zz and Nn tiles ---------------------

_SCALES_A = (Layout.MX_A_ZZ, Layout.MX_A_ND, Layout.MX_A_DN)
_SCALES_B = (Layout.MX_B_NN, Layout.MX_B_ND, Layout.MX_B_DN)
_MX = _SCALES_A + _SCALES_B
_HIF4 = (Layout.HIF4_A_ZZ, Layout.HIF4_B_NN)

_scales, _scales_a = arranged("src", *_MX), arranged("src", *_SCALES_A)
_boxed = arranged("src", Layout.MX_A_ZZ, Layout.MX_B_NN)


_into_tile = both(_tile, _scales)


def _one_row_of_scales(o: Any) -> bool:
    """A plain row of scales that goes to a Zz tile of one row."""
    return _pair("ND-ZZ")(o) and o.dst.rows == 1


def _says(o: Any, sizes: Mapping[int, int]) -> bool:
    """Whether the type of the view has these sizes, or leaves them open."""
    return all(o.src.static_shape[axis] in (size, DYNAMIC) for axis, size in sizes.items())


def _fits(o: Any) -> bool:
    """Whether the view holds just the valid scales, in whole boxes."""
    rows, cols = view_rows_cols(o, "src")
    valid_rows, valid_cols = o.dst.vr, o.dst.vc
    if o.src.layout == Layout.MX_A_ZZ:
        valid_rows = up(valid_rows, 16)
    elif o.src.layout == Layout.MX_B_NN:
        valid_cols = up(valid_cols, 16)
    return (rows, cols) == (valid_rows, valid_cols)


def _has_room(o: Any) -> bool:
    """Whether the tile has room for the boxes of the type of the view."""
    rows, cols = (_static_size(o, axes) for axes in ROW_AND_COLUMN_AXES[o.src.layout])
    return rows <= o.dst.rows and cols <= o.dst.cols


def _static_size(o: Any, axes: tuple[int, ...]) -> int:
    sizes = [o.src.static_shape[a] for a in axes]
    return 0 if DYNAMIC in sizes else prod(sizes)


_MX_RULES = [
    must("mx-target", "a5")(
        "the target has MX scales; HIF4 scale views exist on no supported device",
        lambda o: not arranged("src", *_HIF4)(o),
    ),
    must("mx-target", "a2a3 " + KIRIN)(
        "the target has MX scales; HIF4 scale views exist on no supported device",
        lambda o: not arranged("src", *_MX, *_HIF4)(o),
    ),
    must("mx-dtype", "a5", _scales)(
        "MX scales are f8e8m0 in the tile and in the view",
        lambda o: o.dst.dtype.name == o.src.dtype.name == "f8e8m0",
    ),
    must("mx-tile", "a5", _into_tile)(
        "scales of A (MX_A_*) go to a Zz Mat tile, scales of B (MX_B_*) to an Nn Mat tile",
        lambda o: o.dst.loc == TileType.Mat and o.dst.layout == ("ZZ" if _scales_a(o) else "NN"),
    ),
    must("mx-fractal", "a5", _into_tile)(
        "a tile of MX scales has boxes of 32 bytes (SFractalSize)", lambda o: o.dst.fractal == 32
    ),
    must("mx-box", "a5", _boxed)(
        "MX_A_ZZ, MX_B_NN: dimensions 3 and 4 of src are 16 and 2, or open and so at run time",
        lambda o: _says(o, {3: 16, 4: 2}) and o.src.shape[3:] == (16, 2),
    ),
    must("mx-pairs", "a5", both(_scales, lambda o: not _boxed(o)))(
        "MX_A_ND, MX_A_DN, MX_B_ND, MX_B_DN: dimensions 0, 1, 4 of src are 1, 1, 2, or open",
        lambda o: _says(o, {0: 1, 1: 1, 4: 2}),
    ),
    must("mx-open", "a5", _scales)(
        "the type of src says the sizes that group MX scales (ZZ, NN: 3 and 4; others: 0, 1, 4)",
        lambda o: all(
            o.src.static_shape[a] != DYNAMIC for a in ((3, 4) if _boxed(o) else (0, 1, 4))
        ),
        "give them in Shape",
        "the sizes at run time count",
    ),
    must("mx-even", "a5", _into_tile)(
        "scales come in pairs along K: valid columns of A, valid rows of B are even",
        lambda o: (o.dst.vc if _scales_a(o) else o.dst.vr) % 2 == 0,
        otherwise="of an odd number of scales the last one is not loaded",
    ),
    *where(both(_into_tile, _boxed), "a5", "MX_A_ZZ, MX_B_NN: ")(
        rule("mx-room", "the static sizes of src lie in the tile", _has_room, fix=FIX_VIEW),
    ),
    must("mx-size", "a5", _into_tile)(
        "the view describes the valid scales (ZZ and NN: in whole boxes)",
        _fits,
        FIX_VIEW,
        memory.by_bursts(
            *("dst", "src"),
            "all boxes of a ZZ or NN view move; of other views the valid scales, in its steps",
        ),
    ),
    must("scale-row", NEW, _one_row_of_scales)(
        "one row of scales is loaded from an ND view of static shape (1, 1, 1, 1, k)",
        lambda o: o.src.static_shape[:4] == (1, 1, 1, 1),
    ),
]


# ---- where a load lands ------------------------------------------------------------------------


# Whether single rows and columns of Mat tiles go through the box engine, as boxes do;
# elsewhere unboxed Mat tiles are padded like Vec tiles.
_BOXES_ROWS = PerTarget(False, a2a3=True, kirinx90=True)


def _filled(o: Any, rows: int, cols: int) -> tuple[int, int]:
    """Rows and columns, the contiguous ones filled up to whole 32-byte blocks of the tile."""
    tile = o.dst
    if tile.layout in ("DN", "ZN"):
        return min(filled(tile, rows), max(rows, tile.rows)), cols
    return rows, min(filled(tile, cols), max(cols, tile.cols))


def _landing(o: Any) -> Any:
    """The part of the tile that gets definite values."""
    tile = o.dst
    if tile.kind == "conv":
        return View.VALID
    if not o.target.is_device:  # the permissive profile sets the whole tile to its pad value first
        full = (tile.vr, tile.vc) == (tile.rows, tile.cols)
        return View.VALID if full else View.WHOLE
    here = moved(o, "dst", "src").tile
    if o.src.layout in _MX or not isinstance(here, tuple) or not _is_padded(o):
        return here
    return _filled(o, *here)


def _is_padded(o: Any) -> bool:
    """Whether lines are filled up to a 32-byte boundary with a definite value."""
    tile = o.dst
    if o.src.layout == Layout.NZ or (tile.loc == TileType.Vec and tile.pad == PadValue.Null):
        return False
    return tile.loc == TileType.Vec or tile.is_boxed or not _BOXES_ROWS[o.target] or _vector(o)


def _left_open(o: Any) -> tuple[slice, slice] | None:
    """The rest of the last 32-byte block of each line, where no pad value is asked for."""
    tile = o.dst
    if tile.kind == "conv" or tile.is_boxed or not o.target.is_device or _is_padded(o):
        return None
    here = moved(o, "dst", "src").tile
    if not isinstance(here, tuple) or 0 in here:
        return None
    rows, cols = _filled(o, *here)
    if rows > here[0]:
        return slice(here[0], rows), slice(0, cols)
    return (slice(0, rows), slice(here[1], cols)) if cols > here[1] else None


def _taken(o: Any) -> Any:
    """The part of global memory that is read."""
    return taken_of_maps(o) if o.dst.kind == "conv" else moved(o, "dst", "src").view


def _surround(dst: Array, o: Any) -> None:
    """Set the landing to what lies beside the data: pad values, or zeros of the box engine."""
    tile = o.dst
    boxing = tile.is_boxed or (_BOXES_ROWS[o.target] and _vector(o))
    zero = o.target.is_device and tile.loc == TileType.Mat and boxing
    dst.view(tile.dtype.uint)[...] = 0 if zero else tile.dtype.pad_bits(tile.pad)


# ---- rules -------------------------------------------------------------------------------------

_ON_CHIP = (TileType.Vec, TileType.Mat)
_MOVE_ON = "load into a Mat tile and move it on with TMOV or TEXTRACT"
_SAME = "declare tile and view with the same layout"
_PAIRS = "declare tile and view with one of these pairs of layouts"
_ONE = "load one matrix at a time"

# A2A3 and KirinX90 check sizes when the load runs.
_OLD_RULES = [
    *where(_tile, OLD)(
        rule("SA-0032", "dst is a Vec or Mat tile", lambda o: o.dst.loc in _ON_CHIP, fix=_MOVE_ON),
    ),
    *where(_vec, OLD, "a Vec tile ")(
        rule("SA-0235", "is loaded ND to ND, DN to DN or NZ to NZ", _pair(SAME_PAIRS), fix=_SAME),
    ),
    *where(_mat, OLD, "a Mat tile ")(
        must("SA-0234")(
            "is loaded ND to ND, DN to DN, NZ to NZ, ND to Nz or DN to Zn",
            _pair(SAME_PAIRS + " ND-NZ DN-ZN"),
            _PAIRS,
        ),
    ),
    must("SA-0233", OLD, _eight_bytes)(
        "8-byte elements are loaded ND to ND or DN to DN",
        _pair("ND-ND DN-DN"),
        "use an unboxed tile with the layout of the view",
    ),
    must("SA-0236", OLD, both(_vec, _nd))(
        "a Vec tile loaded from an ND view has fewer than 4096 rows",
        lambda o: o.dst.rows < 4096,
        "load the rows in several tiles",
    ),
    *memory.checked_sizes("dst", "src", _pair(SAME_PAIRS), OLD),
    *where(both(_mat, _nd_to_nd, lambda o: o.dst.rows > 1), "a2a3")(
        memory.whole_blocks("PA-0029", "is loaded in", Layout.ND, "dst", "src")
    ),
    *where(both(_mat, _dn_to_dn, lambda o: o.dst.cols > 1), OLD)(
        memory.whole_blocks("PA-0028", "is loaded in", Layout.DN, "dst", "src")
    ),
    must("vector-shape", OLD, both(_mat, _vector))(
        "a Mat tile of one row or column is loaded from a view whose dimensions 0 to 2 are 1",
        _one_matrix,
        FIX_VIEW,
    ),
    *where(_nd_to_nz, OLD, "ND to Nz: ")(
        rule("SA-0057", "dimensions 0, 1 and 2 of src are 1, statically", _one_matrix, fix=_ONE),
        rule("SA-0202", "Rows of dst is at most 16384", lambda o: o.dst.rows <= 16384),
        rule("PA-0035", "1 <= S3 <= 16384", lambda o: 1 <= o.src.shape[3] <= 16384),
        rule("PA-0038", "1 <= S4 <= 65535", lambda o: 1 <= o.src.shape[4] <= 65535),
    ),
    *where(_dn_to_zn, OLD, "DN to Zn: ")(
        rule("SA-0056", "dimensions 0, 1 and 2 of src are 1, statically", _one_matrix, fix=_ONE),
        rule("SA-0184", "Cols of dst is at most 16384", lambda o: o.dst.cols <= 16384),
        rule("PA-0037", "1 <= S4 <= 16384", lambda o: 1 <= o.src.shape[4] <= 16384),
        rule("PA-0036", "1 <= S3 <= 65535", lambda o: 1 <= o.src.shape[3] <= 65535),
    ),
    *where(_to_box, OLD)(
        must("SA-0220")(
            "ND to Nz and DN to Zn fill boxes of 512 bytes (SFractalSize)",
            lambda o: o.dst.fractal == 512,
        ),
        must("PA-0039")(
            "the distance of lines is 1 to 65535 elements (ND to Nz: stride 3, DN to Zn: stride 4)",
            lambda o: 1 <= o.src.stride[3 if o.src.layout == Layout.ND else 4] <= 65535,
        ),
    ),
]

# A5 and Kirin9030 check them mostly when it is compiled.
_NEW_RULES = [
    *where(_tile, NEW)(
        rule("location", "dst is a Vec or Mat tile", lambda o: o.dst.loc in _ON_CHIP, fix=_MOVE_ON),
    ),
    must("SA-0223", NEW, _eight_bytes)(
        "a tile of 8-byte elements pads with PadValue.Null or PadValue.Zero",
        lambda o: o.dst.pad in (PadValue.Null, PadValue.Zero),
    ),
    must("SA-0104", NEW, _vec)(
        "a Vec tile is loaded ND to a row-major unboxed tile, DN to a column-major unboxed one, "
        "or NZ to row-major boxes (Nz)",
        _pair(SAME_PAIRS),
        _SAME,
    ),
    *where(both(_vec, _nd_to_nd), NEW, "ND to ND, sizes known statically: ")(
        must("SA-0108")(
            "ValidCol of dst == S4 of src",
            _static_columns_agree,
            FIX_VIEW,
            in_text=lambda o: o.dst.vc <= o.src.shape[4] <= o.dst.cols,
        ),
        must("SA-0109")(
            "ValidRow of dst == S0*S1*S2*S3 of src",
            _static_rows_agree,
            FIX_VIEW,
            in_text=lambda o: o.dst.vr <= prod(o.src.shape[:4]) <= o.dst.rows,
        ),
    ),
    must("SA-0110", NEW, both(_tile, _nz))(
        "NZ: dimensions 3 and 4 of src are 16 and 32/sizeof (64 for 4-bit types), statically",
        lambda o: o.src.static_shape[3:] == (16, c0_of(o, "dst")),
        FIX_VIEW,
    ),
    must(
        "SA-0082",
        NEW,
        both(_mat, lambda o: not arranged("src", *_MX, *_HIF4)(o) and not _one_row_of_scales(o)),
    )(
        "a Mat tile is loaded ND or DN to Nz, ND to ND, DN to DN, NZ to NZ, DN to Zn, "
        "from an MX view, or (one row of scales) ND to Zz",
        _pair(SAME_PAIRS + " ND-NZ DN-NZ DN-ZN"),
        _PAIRS,
    ),
    *where(_mat, NEW)(
        must("dn-to-nz", "kirin9030")(
            "Kirin 9030 has no load from DN to Nz",
            lambda o: not _pair("DN-NZ")(o),
            "use a Zn tile, or an ND view",
        ),
        rule("SA-0224", "a Mat tile has at most 16384 rows", lambda o: o.dst.rows <= 16384),
        must("SA-0222")(
            "a Mat tile has at most 524288 elements (Rows * Cols)",
            lambda o: o.dst.rows * o.dst.cols <= 524288,
        ),
    ),
    *where(both(_mat, _to_nz), NEW, "ND or DN to Nz")(
        rule("SA-0221", " fills boxes of 512 bytes (SFractalSize)", lambda o: o.dst.fractal == 512),
        rule("SA-0041", " moves elements of 1, 2 or 4 bytes", lambda o: o.dst.itemsize != 8),
        rule("SA-0055", ": dimensions 0, 1 and 2 of src are 1, statically", _one_matrix, fix=_ONE),
    ),
    must("SA-0021", "a5", _pair("DN-NZ"))(
        "4-bit elements are not loaded from DN views into NZ tiles",
        lambda o: not o.dst.dtype.is_packed,
        "use an ND view",
    ),
    memory.same_extent(
        "dst",
        "src",
        both(_tile, lambda o: o.src.layout not in _MX and not _all_static(o)),
        "view-size",
        NEW,
        memory.BY_VIEW,
    ),
]


@insn(
    out("dst", kinds=("tile", "conv"), view=_landing, unspecified=_left_open),
    gm_in("src", view=_taken),
    pipe=Pipe.MTE2,
    pointwise=_tile,
    idiom=lambda o: (copy("dst", o.dst.dtype) if _tile(o) else None) or MOVES,
    asm=Asm(
        indexed="src",
        order=(
            "src",
            "dst",
            "pad_value",
            "left_padding_num",
            "right_padding_num",
            "init_condition",
        ),
        is_counted=True,
    ),
    types=memory.moved_types("dst", "i4", "SA-0010", "SA-0009"),
    rules=[
        memory.same_bits("dst", "src", "same-element-size"),
        memory.positive_sizes("dst", "src", OLD + " cpu"),
        must("base-alignment")(
            "dst starts at a multiple of 32 bytes",
            lambda o: o.dst.addr % 32 == 0,
            "bind the tile to an aligned address",
        ),
        memory.known_arrangement("dst", "src"),
        memory.unit_stride("src", DEVICES),
        _OLD_RULES,
        _NEW_RULES,
        _MX_RULES,
        CONV_RULES,
        memory.same_extent("dst", "src", _tile, "CA-0002", "cpu"),
    ],
    more_examples=[
        *examples("""
            dst                   | src                    | on
            Vec f32 32x16 DN      | GM f32 32x16 DN        |
            Vec f16 32x64 NZ      | GM f16 32x64 NZ        |
            Vec i64 16x16         | GM i64 16x16           |
            Mat f16 32x64         | GM f16 32x64           |
            Mat f16 32x64 DN      | GM f16 32x64 DN        |
            Mat f16 1x64          | GM f16 1x64            |
            Mat f16 32x64 NZ      | GM f16 32x64           |
            Mat f16 32x64 ZN      | GM f16 32x64 DN        |
            Mat f8e8m0 32x4 ZZ/32 | GM f8e8m0 32x4 MX_A_ZZ | a5
            Mat f8e8m0 32x4 ZZ/32 | GM f8e8m0 32x4 MX_A_ND | a5
            Mat f8e8m0 4x32 NN/32 | GM f8e8m0 4x32 MX_B_NN | a5
            Mat f8e8m0 4x32 NN/32 | GM f8e8m0 4x32 MX_B_DN | a5
            Mat f8e8m0 1x32 ZZ/32 | GM f8e8m0 1x32 ND      | a5
        """),
        *CONV_EXAMPLES,
        {"dst": "Mat f16 32x64 NZ", "src": "GM f16 32x64 DN", "on": "a5"},
    ],
)
def TLOAD(dst: Array, src: Array, ops: Ops) -> None:
    """Load a view of global memory into a Vec or Mat tile, or a Mat convolution tile.

    In two dimensions, with a view that begins at row r0 and column c0 of its array: dst[i, j] =
    src[r0 + i, c0 + j]. Which elements these are in memory follows from shape and strides of the
    view and from the layout of the tile.

    The transfer has the size of the valid region of `dst`; the view must describe just as many
    rows and columns. Elements are copied bit by bit. Into a Mat tile the load may rearrange: ND
    to Nz and DN to Zn boxes (on A5 also DN to Nz, and MX scales to Zz and Nn), and on A5 feature
    maps and weights to their split-channel forms.

    Around the valid region: a Vec tile gets its pad value up to the next 32-byte boundary of each
    line; with PadValue.Null that rest of the block is unspecified. The box engine writes zeros to
    the end of the last block of a line; unboxed Mat tiles on A5 are padded like Vec tiles, with
    zero for Null. Everything further out keeps its contents: use TFILLPAD for more. The permissive
    profile sets the whole tile to its pad value first.
    """
    bits = as_bits_of(src, dst)
    if ops.dst.kind == "conv":
        load_conv(dst, bits, ops)
    elif dst.shape == src.shape:
        dst[...] = bits
    else:
        _surround(dst, ops)
        dst[: src.shape[0], : src.shape[1]] = bits
