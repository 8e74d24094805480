"""Quantisation to 8-bit integers and back, one scale per row. Microscaling is in `mxquant.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.convert import convert, to_float32
from ptokit.base.dtypes import dtype, f32
from ptokit.base.enums import QuantType, SaturationMode, TileType
from ptokit.base.layout import Array, AxisMap
from ptokit.base.tiles import DYNAMIC
from ptokit.isa.costs import QUANTISE
from ptokit.isa.devices import A5_FAMILY, on
from ptokit.isa.expr import Arg
from ptokit.isa.idioms import Elementwise, Idiom
from ptokit.isa.language import agree, in_text
from ptokit.isa.rules import (
    USED_AS_UB,
    Told,
    behind,
    decides,
    in_place,
    located,
    must,
    or_else,
    row_major,
    same_dtype,
    same_valid_shape,
    separate,
    static_valid_fits,
)
from ptokit.isa.spec import Asm, Attr, Cpp, Extent, View, insn, out, src, tmp, types

_BLOCK = 8  # rows whose values A2/A3 spreads over 256 bytes
_UB = TileType.Vec
_SYM, _ASYM = QuantType.INT8_SYM, QuantType.INT8_ASYM
_ON_A2A3, _STORES_WHOLE = on("a2a3"), on("a5 kirin9030")


def _row_values(name: str) -> Callable[[Any], Extent]:
    """The words of a parameter tile that serve the valid rows of src: by position in memory.

    The simulator looks them up in the rows of the tile.
    """

    def view(o: Any) -> Extent:
        by_position = o[name].rows == 1 or o.target.is_device
        return slice(0, o.src.vr) if by_position else (o.src.vr, 1)

    return view


def _by_rows(name: str) -> Callable[[Any], View | Extent]:
    """The valid region of src in a tile; devices take every tile for a row-major one."""

    def view(o: Any) -> View | Extent:
        tile, size = o[name], (o.src.vr, o.src.vc)
        if tile.is_row_major or not o.target.is_device:
            return size
        return AxisMap(size, (tile.cols, 1), (0,), (1,))

    return view


_PER_ROW = frozenset({"scale", "offset"})


def _quantised(o: Any) -> Idiom | None:
    values = Arg(f32, "src") * Arg(f32, "scale")
    if o.attrs["quant_type"] == _ASYM:
        values = values + Arg(f32, "offset")
    kept = values.to(o.dst.dtype, saturation=SaturationMode.ON)
    return Elementwise("dst", kept, per_row=_PER_ROW)


def _restored(o: Any) -> Idiom | None:
    values = Arg(o.src.dtype, "src").to(f32) - Arg(f32, "offset")
    return Elementwise("dst", values * Arg(f32, "scale"), per_row=_PER_ROW)


def _scratch(o: Any) -> View | Extent:
    """What A2/A3 uses of tmp from its start on: row values in blocks, then 32-bit integers."""
    if not _ON_A2A3(o):
        return View.WHOLE
    used = max(-(-o.src.vr // _BLOCK) * 256, o.src.rows * o.src.cols * 4)
    return slice(0, -(-used // o.tmp.itemsize))


def _parameters(o: Any) -> list[Any]:
    return [tile for tile in (o.scale, o.offset) if tile is not None]


_BY_POSITION = "row r takes word r of the storage, whatever shape is declared"
_PARAMETER_RULES = [
    must("parameter-type")(
        "elements of scale and offset are f32",
        lambda o: all(tile.dtype is f32 for tile in _parameters(o)),
    ),
    must("parameter-size")(
        "scale and offset hold one value per valid row of src",
        lambda o: all(tile.numel >= o.src.vr for tile in _parameters(o)),
        otherwise=behind(_BY_POSITION),
    ),
    must("parameter-shape", A5_FAMILY)(
        "scale and offset are row-major [1, Rows] or column-major [Rows, 1] tiles",
        lambda o: all((t.rows if t.is_row_major else t.cols) == 1 for t in _parameters(o)),
        otherwise=_BY_POSITION,
    ),
    must("parameter-shape", "a2a3")(
        "scale and offset are column-major, with one valid column and the valid rows of src",
        lambda o: all(not t.is_row_major and (t.vr, t.vc) == (o.src.vr, 1) for t in _parameters(o)),
        otherwise=_BY_POSITION,
    ),
]

_IN_TEXT = [
    in_text(
        "offset",
        "INT8_SYM takes no offset",
        lambda o: o.attrs["quant_type"] != _SYM or o.offset is None,
        fix="leave the offset out, or ask for INT8_ASYM",
    ),
    in_text("same-valid", "dst and src have the same valid rows and columns", agree("dst", "src")),
    in_text(
        "parameter-shape",
        "scale and offset are column-major",
        lambda o: not any(t.is_row_major for t in _parameters(o)),
        "a2a3",
        "declare them as columns: blayout=col_major",
    ),
    in_text(
        "tmp",
        "tmp has the shape of src; one that is left out needs static sizes in the type of src",
        lambda o: (
            DYNAMIC not in (o.src.valid_row, o.src.valid_col)
            if o.tmp is None
            else agree("src", "tmp", facts="rows cols valid_row valid_col")(o)
        ),
        "a2a3",
        "write a tmp with the shape of src",
    ),
]


@insn(
    out("dst", view=_by_rows("dst"), memory=_UB),
    src("src", view=_by_rows("src"), lost=_ON_A2A3, memory=_UB),
    src("scale", view=_row_values("scale"), memory=_UB),
    tmp("tmp", view=_scratch, optional=True, lost=_ON_A2A3, memory=_UB),
    src("offset", view=_row_values("offset"), optional=True, memory=_UB),
    attrs=[Attr("quant_type", QuantType, None, "INT8_SYM or INT8_ASYM", (_SYM, _ASYM))],
    forms=[
        "dst src scale",
        "dst src scale tmp",
        "dst src scale offset",
        "dst src scale tmp offset",
    ],
    when={
        "dst src scale tmp": {"quant_type": _SYM},
        "dst src scale offset": {"quant_type": _ASYM},
    },
    types=types("src", a2a3="f32", a5="f32", kirin="f32"),
    rules=[
        must("quant-type")(
            "the quantisation type is given: INT8_SYM or INT8_ASYM",
            lambda o: o.attrs["quant_type"] in (_SYM, _ASYM),
            "TQUANT[QuantType.INT8_SYM](dst, src, scale)",
        ),
        must("result-type")(
            "dst is i8 for INT8_SYM and u8 for INT8_ASYM; src is f32",
            lambda o: (
                o.src.dtype is f32
                and o.dst.dtype.name == ("u8" if o.attrs["quant_type"] == _ASYM else "i8")
            ),
        ),
        must("offset")(
            "INT8_ASYM takes an offset tile",
            lambda o: o.attrs["quant_type"] != _ASYM or o.offset is not None,
        ),
        *static_valid_fits("dst", "src", "scale", "offset", "tmp"),
        must("row-major")(
            "dst and src are row-major",
            lambda o: o.dst.is_row_major and o.src.is_row_major,
            "declare the tile with BLayout.RowMajor, or TMOV/TTRANS it first",
            behind("their storage is taken for rows of Cols elements"),
        ),
        *or_else(USED_AS_UB, located("Vec", "dst", "src", "scale", "tmp", "offset")),
        _PARAMETER_RULES,
        must("tmp", "a2a3")(
            "a tmp tile of f32, at least as large as src, is given",
            lambda o: o.tmp is not None and o.tmp.dtype is f32 and o.tmp.nbytes >= o.src.nbytes,
            "TQUANT[...](dst, src, scale, tmp) with a tmp of the type of src",
            Told(
                "only the address of tmp counts, and what lies past it is overwritten",
                lambda o: o.tmp is not None and (o.mode != "auto" or o.tmp.nbytes >= o.src.nbytes),
            ),
        ),
        separate("dst", "src", "scale", "offset", "tmp", on="a2a3 cpu"),
        in_place("dst", "src", "scale", "offset", on=A5_FAMILY),
        separate("tmp", "src", "scale", "offset", id="separate-tmp", on="a2a3"),
        *_IN_TEXT,
    ],
    asm=Asm(
        ins=("src", "scale", "offset"),
        outs=("dst", "tmp"),
        called={"fp": "scale"},
        forms=frozenset({"l1", "l2"}),
        attrs={"quant_type": "quant_type"},
        order=("src", "scale", "offset", "tmp", "dst"),
        is_counted=True,
        supplied={"tmp": _ON_A2A3},
    ),
    example={
        "dst": "Vec i8 16x64",
        "src": "Vec f32 16x64",
        "scale": "Vec f32 16x1 DN",
        "tmp": "Vec f32 16x64",
        "quant_type": "INT8_SYM",
    },
    cpp=Cpp(("@quant_type",), pointers=frozenset({"offset"})),
    cost=QUANTISE,
    idiom=_quantised,
)
def TQUANT(
    dst: Array,
    src: Array,
    scale: Array,
    tmp: Array | None,
    offset: Array | None,
    quant_type: QuantType,
) -> None:
    """Quantise f32 rows to 8-bit integers.

    `INT8_SYM`: round(src * scale) as i8; `INT8_ASYM`: round(src * scale + offset) as u8. scale and
    offset hold one f32 per row; scale is the reciprocal of the quantisation step, it multiplies.
    The product and the sum are f32 operations; the result is rounded to nearest, ties to even, and
    saturates; NaN becomes 0. The valid region of src rules. A2/A3 needs a tmp tile and leaves src
    undefined; elsewhere tmp may be given and is ignored.

    The same name with an `MxQuantAlg`, `QuantType.MXFP8` or `QuantType.MXFP4_E2M1` quantises to
    microscaling formats: see TQUANT_MX and TQUANT_DN.
    """
    values = src * scale.reshape(-1, 1)
    if quant_type == _ASYM:
        assert offset is not None
        values = values + offset.reshape(-1, 1)
    dst[...] = convert(values, f32, dtype(dst.dtype))


# ---- back to floats ----------------------------------------------------------------------------


def _row_parameters(o: Any) -> Extent:
    # The public simulator, and so the permissive profile, takes one value per column as well.
    return o.dst.vr, (1 if o.target.is_device else o.scale.vc)


def _overrun(o: Any) -> tuple[slice, slice] | None:
    """Where every vector step of a row is masked alike, a last, partial one is stored whole."""
    end = min(-(-o.dst.vc // 64) * 64, o.dst.cols)
    if not _STORES_WHOLE(o) or o.dst.vc <= 64 or end == o.dst.vc:
        return None
    return slice(0, o.dst.vr), slice(o.dst.vc, end)


@insn(
    out("dst", unspecified=_overrun),
    src("src", view=lambda o: (o.dst.vr, o.dst.vc)),
    src("scale", view=_row_parameters),
    src("offset", view=_row_parameters),
    types=types("dst src", **dict.fromkeys(("a2a3", "a5", "kirin9030", "cpu"), "f32,i8 f32,i16")),
    rules=[
        must("parameter-type")(
            "elements of scale and offset are f32",
            lambda o: o.scale.dtype is f32 and o.offset.dtype is f32,
        ),
        *static_valid_fits("dst", "src", "scale", "offset"),
        row_major("dst", "src"),
        same_dtype("scale", "offset"),
        must("parameter-tiles")(
            "scale and offset have the same shape and layout",
            lambda o: (
                (o.scale.rows, o.scale.cols, o.scale.layout)
                == (o.offset.rows, o.offset.cols, o.offset.layout)
            ),
        ),
        same_valid_shape(
            *("dst", "src"),
            rows="valid-rows",
            cols="valid-columns",
            otherwise=decides("dst", "src"),
        ),
        must("parameter-rows", "a5 kirin9030")(
            "scale and offset have the valid rows of dst",
            lambda o: o.scale.vr == o.offset.vr == o.dst.vr,
            otherwise=behind(
                "row r takes the first element of row r",
                lambda o: min(o.scale.rows, o.offset.rows) >= o.dst.vr,
            ),
        ),
        located("Vec", "dst", "src", "scale", "offset", on="a2a3 a5 kirin9030"),
        separate("dst", "src", "scale", "offset"),
    ],
    asm=Asm(forms=frozenset({"l1", "l2"})),
    example={
        "dst": "Vec f32 16x64",
        "scale": "Vec f32 16x8",
        "offset": "Vec f32 16x8",
    },
    cost=QUANTISE,
    idiom=_restored,
)
def TDEQUANT(dst: Array, src: Array, scale: Array, offset: Array) -> None:
    """Turn quantised integers back into f32: (src - offset) * scale, one scale and offset per row.

    Row i takes the first element of row i of scale and offset. Difference and product are f32
    operations; the integers are exact. On the permissive profile a parameter tile with more valid
    columns serves one column each, the last one all that follow. A5 and Kirin 9030 may overwrite
    padding columns of dst when more than 64 columns, but no multiple of 64, are valid.
    """
    columns = np.minimum(np.arange(dst.shape[1]), scale.shape[1] - 1)
    values = to_float32(src, dtype(src.dtype))
    dst[...] = (values - offset[:, columns]) * scale[:, columns]
