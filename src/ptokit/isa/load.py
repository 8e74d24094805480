"""Loads: from global memory into tiles, and the two ways of only warming the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.enums import Layout, PadValue, TileType
from ptokit.base.layout import Array
from ptokit.base.tensors import ROW_AND_COLUMN_AXES
from ptokit.isa.conv_load import CONV_RULES, load_conv
from ptokit.isa.memory import (
    DEVICES,
    FIX_VIEW,
    NEW,
    OLD,
    Predicate,
    arranged,
    as_bits_of,
    both,
    c0_of,
    checked_sizes,
    known_arrangement,
    pairs,
    positive_sizes,
    round_up,
    same_bits,
    same_extent,
    unit_stride,
    view_rows_cols,
    when,
)
from ptokit.isa.rules import located
from ptokit.isa.spec import Operand, Pipe, View, gm_in, insn, out, rule, thing, types

SCALES_A = (Layout.MX_A_ZZ, Layout.MX_A_ND, Layout.MX_A_DN)
SCALES_B = (Layout.MX_B_NN, Layout.MX_B_ND, Layout.MX_B_DN)
_MX = SCALES_A + SCALES_B
_HIF4 = (Layout.HIF4_A_ZZ, Layout.HIF4_B_NN)


def _tile(o: Any) -> bool:
    return o.dst.kind == "tile"


def _vec(o: Any) -> bool:
    return _tile(o) and o.dst.loc == TileType.Vec


def _mat(o: Any) -> bool:
    return _tile(o) and o.dst.loc == TileType.Mat


def _eight_bytes(o: Any) -> bool:
    return _tile(o) and o.dst.itemsize == 8


def _pair(listed: str) -> Predicate:
    return pairs("dst", "src", listed)


def _static(o: Any, *dims: int) -> tuple[int, ...]:
    return tuple(o.src.static_shape[d] for d in dims)


def _vector(o: Any) -> bool:
    """A single row or column: the Mat forms that need no whole 32-byte blocks."""
    return (_pair("ND-ND")(o) and o.dst.rows == 1) or (_pair("DN-DN")(o) and o.dst.cols == 1)


def _scale_row(o: Any) -> bool:
    """One row of scales, loaded from a plain row into a Zz tile."""
    return _pair("ND-ZZ")(o) and o.dst.rows == 1


# ---- where a load lands ------------------------------------------------------------------------


def _tail(o: Any) -> tuple[int, int]:
    """Valid rows and columns, the contiguous one rounded up to whole 32-byte blocks."""
    tile = o.dst
    block = c0_of(o, "dst")
    if tile.layout in ("DN", "ZN"):
        return min(round_up(tile.vr, block), tile.rows), tile.vc
    return tile.vr, min(round_up(tile.vc, block), tile.cols)


def _landing(o: Any) -> Any:
    """The part of the tile that gets definite values."""
    tile = o.dst
    if tile.kind == "conv":
        return View.VALID
    if not o.target.is_device:  # the permissive profile sets the whole tile to its pad value first
        whole = (tile.vr, tile.vc) == (tile.rows, tile.cols)
        return View.VALID if whole else View.WHOLE
    if o.src.layout in _MX:
        return view_rows_cols(o, "src")
    if tile.layout == "NZ" and o.src.layout == Layout.NZ:
        return View.VALID
    if tile.loc == TileType.Vec:
        return View.VALID if tile.pad == PadValue.Null else _tail(o)
    if tile.is_boxed or o.target.name in NEW.split() or _vector(o):
        return _tail(o)
    return View.VALID


def _left_open(o: Any) -> tuple[slice, slice] | None:
    """The rest of the last 32-byte block of each line, where no pad value is asked for."""
    tile = o.dst
    if tile.kind == "conv" or not o.target.is_device or tile.is_boxed or _landing(o) != View.VALID:
        return None
    rows, cols = _tail(o)
    if rows > tile.vr:
        return slice(tile.vr, rows), slice(0, tile.vc)
    return (slice(0, tile.vr), slice(tile.vc, cols)) if cols > tile.vc else None


def _fill(dst: Array, o: Any) -> None:
    """Set the landing to what surrounds the data: the pad value, or the zeros of the box engine."""
    tile = o.dst
    zeros = o.target.is_device and tile.loc == TileType.Mat and (tile.is_boxed or _vector(o))
    bits = 0 if zeros and o.target.name in OLD.split() or zeros and tile.is_boxed else None
    dst.view(tile.dtype.uint)[...] = tile.dtype.pad_bits(tile.pad) if bits is None else bits


# ---- rules -------------------------------------------------------------------------------------

_BOXING = _pair("ND-NZ DN-NZ")  # into Nz boxes
_OLD_BOXING = _pair("ND-NZ DN-ZN")

_OLD_RULES = [
    rule(
        "SA-0032",
        "dst is a Vec or Mat tile",
        when(_tile, lambda o: o.dst.loc in (TileType.Vec, TileType.Mat)),
        OLD,
        "load into a Mat tile and move it on with TMOV or TEXTRACT",
    ),
    rule(
        "SA-0235",
        "a Vec tile is loaded ND to ND, DN to DN or NZ to NZ",
        when(_vec, _pair("ND-ND DN-DN NZ-NZ")),
        OLD,
        "declare tile and view with the same layout",
    ),
    rule(
        "SA-0234",
        "a Mat tile is loaded ND to ND, DN to DN, NZ to NZ, ND to Nz or DN to Zn",
        when(_mat, _pair("ND-ND DN-DN NZ-NZ ND-NZ DN-ZN")),
        OLD,
        "declare tile and view with one of these pairs of layouts",
    ),
    rule(
        "SA-0233",
        "8-byte elements are loaded ND to ND or DN to DN",
        when(_eight_bytes, _pair("ND-ND DN-DN")),
        OLD,
        "use an unboxed tile of the layout of the view",
    ),
    rule(
        "SA-0236",
        "a Vec tile loaded from an ND view has fewer than 4096 rows",
        when(both(_vec, arranged("src", Layout.ND)), lambda o: o.dst.rows < 4096),
        OLD,
        "load the rows in several tiles",
    ),
    *checked_sizes("dst", "src", _tile, OLD),
    rule(
        "SA-0350",
        "NZ: dimensions 3 and 4 of src are 16 and 32/sizeof, statically",
        when(
            both(_tile, arranged("src", Layout.NZ)),
            lambda o: _static(o, 3, 4) == (16, 32 // o.dst.itemsize),
        ),
        OLD,
        FIX_VIEW,
    ),
    rule(
        "PA-0029",
        "ND to ND into a Mat tile moves rows of whole 32-byte blocks (S4 * sizeof % 32 == 0)",
        when(
            both(_mat, _pair("ND-ND"), lambda o: o.dst.rows > 1),
            lambda o: o.src.shape[4] * o.src.itemsize % 32 == 0,
        ),
        "a2a3",
        "load more columns, or use a Vec or a boxed tile",
    ),
    rule(
        "PA-0028",
        "DN to DN into a Mat tile moves columns of whole 32-byte blocks (S3 * sizeof % 32 == 0)",
        when(
            both(_mat, _pair("DN-DN"), lambda o: o.dst.cols > 1),
            lambda o: o.src.shape[3] * o.src.itemsize % 32 == 0,
        ),
        OLD,
        "load more rows, or use a Vec or a boxed tile",
    ),
    rule(
        "vector-shape",
        "a Mat tile of one row or column is loaded from a view whose dimensions 0 to 2 are 1",
        when(both(_mat, _vector), lambda o: _static(o, 0, 1, 2) == (1, 1, 1)),
        OLD,
        FIX_VIEW,
    ),
    rule(
        "SA-0057",
        "ND to Nz: dimensions 0, 1 and 2 of src are 1, statically",
        when(both(_tile, _pair("ND-NZ")), lambda o: _static(o, 0, 1, 2) == (1, 1, 1)),
        OLD,
        "load one matrix at a time",
    ),
    rule(
        "SA-0056",
        "DN to Zn: dimensions 0, 1 and 2 of src are 1, statically",
        when(both(_tile, _pair("DN-ZN")), lambda o: _static(o, 0, 1, 2) == (1, 1, 1)),
        OLD,
        "load one matrix at a time",
    ),
    rule(
        "SA-0220",
        "ND to Nz and DN to Zn fill boxes of 512 bytes (SFractalSize)",
        when(both(_tile, _OLD_BOXING), lambda o: o.dst.fractal == 512),
        OLD,
    ),
    rule(
        "SA-0202",
        "ND to Nz: Rows of dst is at most 16384",
        when(both(_tile, _pair("ND-NZ")), lambda o: o.dst.rows <= 16384),
        OLD,
    ),
    rule(
        "SA-0184",
        "DN to Zn: Cols of dst is at most 16384",
        when(both(_tile, _pair("DN-ZN")), lambda o: o.dst.cols <= 16384),
        OLD,
    ),
    rule(
        "PA-0035",
        "ND to Nz: 1 <= S3 <= 16384",
        when(both(_tile, _pair("ND-NZ")), lambda o: 1 <= o.src.shape[3] <= 16384),
        OLD,
    ),
    rule(
        "PA-0038",
        "ND to Nz: 1 <= S4 <= 65535",
        when(both(_tile, _pair("ND-NZ")), lambda o: 1 <= o.src.shape[4] <= 65535),
        OLD,
    ),
    rule(
        "PA-0037",
        "DN to Zn: 1 <= S4 <= 16384",
        when(both(_tile, _pair("DN-ZN")), lambda o: 1 <= o.src.shape[4] <= 16384),
        OLD,
    ),
    rule(
        "PA-0036",
        "DN to Zn: 1 <= S3 <= 65535",
        when(both(_tile, _pair("DN-ZN")), lambda o: 1 <= o.src.shape[3] <= 65535),
        OLD,
    ),
    rule(
        "PA-0039",
        "the distance of lines is 1 to 65535 elements (ND to Nz: stride 3, DN to Zn: stride 4)",
        when(
            both(_tile, _OLD_BOXING),
            lambda o: 1 <= o.src.stride[3 if o.src.layout == Layout.ND else 4] <= 65535,
        ),
        OLD,
    ),
]

_NEW_RULES = [
    rule(
        "location",
        "dst is a Vec or Mat tile",
        when(_tile, lambda o: o.dst.loc in (TileType.Vec, TileType.Mat)),
        NEW,
        "load into a Mat tile and move it on with TMOV or TEXTRACT",
    ),
    rule(
        "SA-0223",
        "a tile of 8-byte elements pads with PadValue.Null or PadValue.Zero",
        when(_eight_bytes, lambda o: o.dst.pad in (PadValue.Null, PadValue.Zero)),
        NEW,
    ),
    rule(
        "SA-0104",
        "a Vec tile is loaded ND to a row-major unboxed tile, DN to a column-major unboxed one, "
        "or NZ to a tile of row-major boxes",
        when(_vec, _pair("ND-ND DN-DN NZ-NZ")),
        NEW,
    ),
    rule(
        "SA-0108",
        "ND to ND with static sizes: ValidCol of dst == S4 of src",
        when(
            both(_vec, _pair("ND-ND"), lambda o: min(o.dst.valid_col, _static(o, 4)[0]) > 0),
            lambda o: o.dst.valid_col == o.src.static_shape[4],
        ),
        NEW,
        FIX_VIEW,
    ),
    rule(
        "SA-0109",
        "ND to ND with static sizes: ValidRow of dst == S0*S1*S2*S3 of src",
        when(
            both(
                _vec,
                _pair("ND-ND"),
                lambda o: min(o.dst.valid_row, *_static(o, 0, 1, 2, 3)) > 0,
            ),
            lambda o: o.dst.valid_row == int(np.prod(_static(o, 0, 1, 2, 3))),
        ),
        NEW,
        FIX_VIEW,
    ),
    rule(
        "SA-0110",
        "NZ: dimensions 3 and 4 of src are 16 and 32/sizeof (64 for 4-bit types), statically",
        when(
            both(_tile, arranged("src", Layout.NZ)),
            lambda o: _static(o, 3, 4) == (16, c0_of(o, "dst")),
        ),
        NEW,
        FIX_VIEW,
    ),
    rule(
        "SA-0082",
        "a Mat tile is loaded ND or DN to Nz, ND to ND, DN to DN, NZ to NZ, DN to Zn, "
        "from an MX view, or (one row of scales) ND to Zz",
        when(
            both(_mat, lambda o: not (arranged("src", *_MX, *_HIF4)(o) or _scale_row(o))),
            _pair("ND-NZ DN-NZ ND-ND DN-DN NZ-NZ DN-ZN"),
        ),
        NEW,
    ),
    rule(
        "dn-to-nz",
        "Kirin 9030 has no load from DN to Nz",
        when(_mat, lambda o: not _pair("DN-NZ")(o)),
        "kirin9030",
        "use a Zn tile, or an ND view",
    ),
    rule(
        "SA-0224",
        "a Mat tile has at most 16384 rows",
        when(_mat, lambda o: o.dst.rows <= 16384),
        NEW,
    ),
    rule(
        "SA-0222",
        "a Mat tile has at most 524288 elements (Rows * Cols)",
        when(_mat, lambda o: o.dst.rows * o.dst.cols <= 524288),
        NEW,
    ),
    rule(
        "SA-0221",
        "ND or DN to Nz fills boxes of 512 bytes (SFractalSize)",
        when(both(_mat, _BOXING), lambda o: o.dst.fractal == 512),
        NEW,
    ),
    rule(
        "SA-0041",
        "ND or DN to Nz moves elements of 1, 2 or 4 bytes",
        when(both(_mat, _BOXING), lambda o: o.dst.itemsize != 8),
        NEW,
    ),
    rule(
        "SA-0055",
        "ND or DN to Nz: dimensions 0, 1 and 2 of src are 1, statically",
        when(both(_mat, _BOXING), lambda o: _static(o, 0, 1, 2) == (1, 1, 1)),
        NEW,
        "load one matrix at a time",
    ),
    rule(
        "SA-0021",
        "4-bit floats are not loaded from DN views",
        when(both(_tile, arranged("src", Layout.DN)), lambda o: not o.dst.dtype.is_packed),
        "a5",
        "use an ND view",
    ),
    same_extent(
        "dst",
        "src",
        both(_tile, lambda o: o.src.layout not in _MX and not _checked_statically(o)),
        "view-size",
        NEW,
    ),
]


def _checked_statically(o: Any) -> bool:
    """Whether SA-0108 and SA-0109 speak about these sizes already."""
    sizes = (o.dst.valid_row, o.dst.valid_col, *o.src.static_shape)
    return _vec(o) and _pair("ND-ND")(o) and min(sizes) > 0


_mx = arranged("src", *_MX)
_mx_a = arranged("src", *SCALES_A)
_mx_b = arranged("src", *SCALES_B)


def _mx_fits(o: Any) -> bool:
    """Whether the boxes of a view lie in the tile and hold just its valid scales."""
    rows, cols = view_rows_cols(o, "src")
    if o.src.layout == Layout.MX_A_ZZ:
        return rows <= o.dst.rows and cols == o.dst.vc and rows == round_up(o.dst.vr, 16)
    if o.src.layout == Layout.MX_B_NN:
        return cols <= o.dst.cols and rows == o.dst.vr and cols == round_up(o.dst.vc, 16)
    return (rows, cols) == (o.dst.vr, o.dst.vc)


_MX_RULES = [
    rule(
        "mx-target",
        "the target has MX scales; HIF4 scale views exist on no supported device",
        lambda o: not arranged("src", *_MX, *_HIF4)(o) or (o.target.name == "a5" and _mx(o)),
        DEVICES,
    ),
    rule(
        "mx-dtype",
        "MX scales are f8e8m0 in the tile and in the view",
        when(_mx, lambda o: o.dst.dtype.name == o.src.dtype.name == "f8e8m0"),
        "a5",
    ),
    rule(
        "mx-tile",
        "scales of A (MX_A_*) go to a Zz Mat tile, scales of B (MX_B_*) to an Nn Mat tile",
        when(
            both(_mx, _tile),
            lambda o: o.dst.loc == TileType.Mat and o.dst.layout == ("ZZ" if _mx_a(o) else "NN"),
        ),
        "a5",
    ),
    rule(
        "mx-fractal",
        "a tile of MX scales has boxes of 32 bytes (SFractalSize)",
        when(both(_mx, _tile), lambda o: o.dst.fractal == 32),
        "a5",
    ),
    rule(
        "mx-box",
        "MX_A_ZZ, MX_B_NN: dimensions 3 and 4 of src are 16 and 2, statically",
        when(
            arranged("src", Layout.MX_A_ZZ, Layout.MX_B_NN), lambda o: _static(o, 3, 4) == (16, 2)
        ),
        "a5",
    ),
    rule(
        "mx-pairs",
        "MX_A_ND, MX_A_DN, MX_B_ND, MX_B_DN: dimensions 0, 1 and 4 of src are 1, 1 and 2, "
        "statically",
        when(
            both(_mx, lambda o: not arranged("src", Layout.MX_A_ZZ, Layout.MX_B_NN)(o)),
            lambda o: _static(o, 0, 1, 4) == (1, 1, 2),
        ),
        "a5",
    ),
    rule(
        "mx-even",
        "scales come in pairs along K: valid columns of A, valid rows of B are even",
        when(both(_mx, _tile), lambda o: (o.dst.vc if _mx_a(o) else o.dst.vr) % 2 == 0),
        "a5",
    ),
    rule(
        "mx-size",
        "the view describes the valid scales (ZZ and NN: rounded up to whole boxes) and they lie "
        "in the tile",
        when(both(_mx, _tile), _mx_fits),
        "a5",
        FIX_VIEW,
    ),
    rule(
        "scale-row",
        "one row of scales is loaded from an ND view of shape (1, 1, 1, 1, k)",
        when(both(_mat, _scale_row), lambda o: _static(o, 0, 1, 2, 3) == (1, 1, 1, 1)),
        NEW,
    ),
]

_ALL = "i8 u8 i16 u16 i32 u32 i64 u64 f16 f32"
LOAD_TYPES = types(
    "dst",
    a2a3=_ALL + " bf16",
    a5=_ALL + " bf16 i4 f8e4m3 f8e5m2 f8e8m0 hif8 f4e2m1x2 f4e1m2x2",
    kirin=_ALL,
    ids={"a2a3": "SA-0010", "kirinx90": "SA-0010", "a5": "SA-0009", "kirin9030": "SA-0009"},
)


@insn(
    out("dst", kinds=("tile", "conv"), view=_landing, unspecified=_left_open),
    gm_in("src", view=lambda o: View.WHOLE if o.dst.kind == "conv" else View.VALID),
    pipe=Pipe.MTE2,
    types=LOAD_TYPES,
    rules=[
        same_bits("dst", "src", "same-element-size"),
        positive_sizes("dst", "src", OLD + " cpu"),
        rule(
            "base-alignment",
            "dst starts at a multiple of 32 bytes",
            lambda o: o.dst.addr % 32 == 0,
            fix="bind the tile to an aligned address",
        ),
        known_arrangement("dst", "src"),
        unit_stride("src", DEVICES),
        _OLD_RULES,
        _NEW_RULES,
        _MX_RULES,
        CONV_RULES,
        same_extent("dst", "src", _tile, "CA-0002", "cpu"),
    ],
)
def TLOAD(dst: Array, src: Array, ctx: Any) -> None:
    """Load a view of global memory into a Vec or Mat tile, or a Mat convolution tile.

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
    o = ctx.ops
    if o.dst.kind == "conv":
        load_conv(dst, as_bits_of(src, dst), o)
    elif dst.shape == src.shape:
        dst[...] = as_bits_of(src, dst)
    else:
        _fill(dst, o)
        dst[: src.shape[0], : src.shape[1]] = as_bits_of(src, dst)


@insn(
    out("dst", unspecified=lambda o: _everything(o) if o.target.is_device else None),
    gm_in("src"),
    pipe=Pipe.MTE2,
    targets="a2a3 a5",
    rules=[
        located("Vec", "dst"),
        rule(
            "same-dtype",
            "dst and src have the same element type",
            lambda o: o.dst.dtype == o.src.dtype,
            "cpu",
        ),
        known_arrangement("dst", "src"),
    ],
)
def TPREFETCH(dst: Array, src: Array, ctx: Any) -> None:
    """Pull a region of global memory towards the core by reading it through a scratch Vec tile.

    Every slice of the view is read once, in pieces that fit into `dst`, each overwriting the last:
    afterwards the contents of `dst` are unspecified and only the cache is warmer. There are no wait
    events. The permissive profile leaves as many elements as `dst` has valid ones in it.
    """
    if not ctx.target.is_device:
        count = min(dst.size, src.size)
        flat = dst.reshape(-1)
        flat[:count] = src.reshape(-1)[:count]
        dst[...] = flat.reshape(dst.shape)


def _everything(o: Any) -> tuple[slice, slice]:
    return slice(0, o.dst.rows), slice(0, o.dst.cols)


__all__ = ["TLOAD", "TPREFETCH"]
_ = (Operand, ROW_AND_COLUMN_AXES, thing)
