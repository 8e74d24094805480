"""Microscaling quantisation: TQUANT with the MX formats, along a row or down a column.

What is computed is said in `microscaling.py`; here is which tiles are legal and where the codes,
exponents and scales of each group go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.dtypes import bf16, f16, f32
from ptokit.base.enums import MxQuantAlg, QuantScaleAlg, QuantType, TileType, VecStoreMode
from ptokit.base.layout import Array
from ptokit.isa.costs import QUANTISE
from ptokit.isa.devices import on
from ptokit.isa.facts import Ops
from ptokit.isa.microscaling import GROUP, format_of, in_one_word, in_two_words, quantise
from ptokit.isa.mxtext import ALONG_ROW, DOWN_COLUMN
from ptokit.isa.regions import pitched
from ptokit.isa.rules import (
    USED_AS_UB,
    disjoint,
    in_place,
    located,
    must,
    on_devices,
    or_else,
    row_major,
    static_valid_fits,
)
from ptokit.isa.services import Beyond, Poison
from ptokit.isa.spec import Asm, Attr, Cpp, Extent, Rule, insn, out, rule, src, types

_UB = TileType.Vec
Size = Callable[[Any], tuple[int, int]]
_ON_A5 = on("a5")  # keeps scratch of its own in exp and behind max


def _text(**more: Any) -> Asm:
    """One operation for both axes, which says the axis where it is not that of a row."""
    keys = {
        "quant_type": "quant_type",
        "scale_alg": "quantScaleAlg scale_alg",
        "store_mode": "storeMode store_mode",
        "grp_axis": "grpAxis grp_axis",
    }
    types = {"grpAxis": "mx_group_axis"}
    return Asm(
        name="tquant.mx", ins=("src",), attrs=keys, types=types, rewritten=in_two_words, **more
    )


# ---- legality ----------------------------------------------------------------------------------


def _rules(apart: str) -> list[Rule]:
    """What both axes share; `apart` says how far rows of codes lie from each other."""
    return [
        must("format")(
            "an MX format is given, and it is not Hif4",
            lambda o: (
                o.attrs["mx_alg"] != MxQuantAlg.Hif4
                and (o.attrs["mx_alg"] is not None or o.attrs.get("quant_type") is not None)
            ),
            "TQUANT[1, MxQuantAlg.OcpMxFp8E4M3](dst, src, exp, max, scaling)",
        ),
        must("source-type")("src is f32, f16 or bf16", lambda o: o.src.dtype in (f32, f16, bf16)),
        must("fp4-source", "a5")(
            "src of an E2M1 quantisation is f16 or bf16",
            lambda o: not format_of(o.attrs).fp4 or o.src.dtype in (f16, bf16),
            "convert with TCVT first",
        ),
        must("code-type")(
            "dst is f4e2m1x2 for E2M1; i8, u8 or f8e4m3 for E4M3",
            lambda o: (
                o.dst.dtype.name
                in (("f4e2m1x2",) if format_of(o.attrs).fp4 else ("i8", "u8", "f8e4m3"))
            ),
        ),
        rule("exponent-type", "exp is u8 or i8", lambda o: o.exp.dtype.name in ("u8", "i8")),
        must("scratch-type", "a5")(
            "max and scaling have the element type of src",
            lambda o: o.max.dtype is o.src.dtype and o.scaling.dtype is o.src.dtype,
        ),
        must("scratch-type")(
            "max and scaling are float tiles",
            lambda o: o.max.dtype in (f32, f16, bf16) and o.scaling.dtype in (f32, f16, bf16),
        ),
        must("shape")(
            "dst has the rows and columns of src",
            lambda o: (o.dst.rows, o.dst.cols) == (o.src.rows, o.src.cols),
            otherwise=on_devices(apart),
        ),
        *static_valid_fits("dst", "src", "exp", "max", "scaling"),
        *or_else(
            on_devices("their storage is taken for rows of Cols elements"),
            row_major("dst", "src", "exp", "max", "scaling"),
        ),
        *or_else(USED_AS_UB, located("Vec", "dst", "src", "exp", "max", "scaling")),
        in_place("dst", "src", "exp", "max", "scaling"),
        disjoint("src", "exp", "max", "scaling"),
    ]


# ---- storage -----------------------------------------------------------------------------------


def _rows(name: str, size: Size, pitch: Callable[[Any], int]) -> Callable[[Any], Extent]:
    """Rows of a tile that devices find so many elements apart, however it is declared."""

    def view(o: Any) -> Extent:
        tile, step = o[name], pitch(o)
        if not o.target.is_device or (tile.is_row_major and tile.cols == step):
            return size(o)
        return pitched(*size(o), step)

    return view


def _own(name: str) -> Callable[[Any], int]:
    return lambda o: o[name].cols


_of_source = _own("src")
_SOURCE = src("src", view=_rows("src", lambda o: (o.src.vr, o.src.vc), _of_source), memory=_UB)


def _clear_padding(ops: Ops, poison: Poison, beyond: Beyond) -> None:
    """Columns of a 16-bit src that are not valid become zero first."""
    tile = ops.src
    if tile.dtype is f32 or tile.vc == tile.cols:
        return
    if tile.is_row_major or not ops.target.is_device:
        poison.fill("src", slice(0, tile.vr), slice(tile.vc, tile.cols), 0)
    else:
        places = np.arange(tile.vr * tile.cols).reshape(tile.vr, tile.cols)[:, tile.vc :].ravel()
        beyond.write("src", places, np.zeros(places.size, tile.dtype.np))


# ---- groups along a row ------------------------------------------------------------------------


def _is_flat(o: Any) -> bool:
    """Whether the groups of all padded rows are stored one after the other."""
    return o.exp.rows == 1


def _groups(o: Any) -> int:
    """Groups per row."""
    return o.src.cols // GROUP if _is_flat(o) else -(-o.src.vc // GROUP)


def _codes_per_row(o: Any) -> int:
    return o.src.vc if o.src.dtype is f32 else GROUP * _groups(o)


_exponent_rows = _rows("exp", lambda o: (o.src.vr, _groups(o)), _own("exp"))


def _exponent_view(o: Any) -> Extent:
    return slice(0, o.src.vr * _groups(o)) if _is_flat(o) else _exponent_rows(o)


def _group_words(o: Any) -> slice:
    return slice(0, o.src.vr * _groups(o))


def _clobbered_exponents(o: Any) -> list[Extent] | None:
    """A5 keeps scratch in bytes 16..31 of every exponent row when there are few groups."""
    few = not _is_flat(o) and o.src.vr * _groups(o) < 8
    if _ON_A5(o) and few and o.src.dtype is not f32 and not format_of(o.attrs).fp4:
        return [slice(16 + r * o.exp.cols, 32 + r * o.exp.cols) for r in range(o.src.vr)]
    return None


@insn(
    out(
        "dst",
        view=_rows("dst", lambda o: (o.src.vr, _codes_per_row(o)), _of_source),
        memory=_UB,
    ),
    _SOURCE,
    out("exp", view=_exponent_view, unspecified=_clobbered_exponents, memory=_UB),
    # In the two-dimensional form max becomes a scale window after its first use.
    out(
        "max",
        view=_group_words,
        lost=lambda o: o.target.is_device and not _is_flat(o),
        memory=_UB,
    ),
    out("scaling", view=_group_words, memory=_UB),
    out("exp_zz", view=_group_words, optional=True),
    overload_of="TQUANT",
    attrs=[
        Attr("quant_type", QuantType, None, "format", (QuantType.MXFP8, QuantType.MXFP4_E2M1)),
        Attr("scale_alg", QuantScaleAlg, QuantScaleAlg.OCP, "scale algorithm of quant_type"),
        Attr("store_mode", VecStoreMode, VecStoreMode.ND, "NZ: also write exp_zz"),
        Attr("grp_axis", int, 1, "1: groups lie along a row", (1,)),
        Attr("mx_alg", MxQuantAlg, None, "format and scale algorithm in one"),
    ],
    forms=["dst src exp max scaling", "dst src exp max scaling exp_zz"],
    when={"dst src exp max scaling exp_zz": {"store_mode": VecStoreMode.NZ}},
    types=types("src", a5="f32 f16 bf16"),
    rules=[
        *_rules("rows of codes lie as far apart as those of src"),
        *ALONG_ROW,
        rule("groups", "src.Cols is a multiple of 32", lambda o: o.src.cols % GROUP == 0),
        must("padding", None, _is_flat)(
            "an f32 src whose groups are stored flat (exp.Rows == 1) has no padding columns",
            lambda o: o.src.dtype is not f32 or o.src.vc == o.src.cols,
            "zero the padding, or give exp one row per row of src",
        ),
        must("exponent-size")(
            "exp holds ceil(valid columns / 32) exponents in every valid row, or all in one row",
            lambda o: (
                o.exp.cols >= o.src.vr * _groups(o)
                if _is_flat(o)
                else o.exp.rows >= o.src.vr and o.exp.cols >= _groups(o)
            ),
        ),
        must("scratch-size")(
            "max and scaling hold one element per group; max of the two-dimensional f32 form "
            "holds one more",
            lambda o: (
                o.scaling.numel >= o.src.vr * _groups(o)
                and o.max.numel
                >= o.src.vr * _groups(o) + (_ON_A5(o) and o.src.dtype is f32 and not _is_flat(o))
            ),
        ),
        must("no-zz", "a5")(
            "VecStoreMode.NZ exists in the simulator only",
            lambda o: o.attrs["store_mode"] != VecStoreMode.NZ,
            "reorder the exponents with TMOV",
        ),
        must("zz")(
            "VecStoreMode.NZ takes exp_zz (u8), MXFP8, rows in sixteens and groups in pairs",
            lambda o: (
                o.attrs["store_mode"] != VecStoreMode.NZ
                or (
                    o.exp_zz is not None
                    and o.exp_zz.dtype.name == "u8"
                    and not format_of(o.attrs).fp4
                    and o.src.vr % 16 == 0
                    and _groups(o) % 2 == 0
                )
            ),
        ),
    ],
    asm=_text(refused={"interleave": "only with grpAxis = axis0 are exponents interleaved"}),
    example={
        "dst": "Vec i8 16x64",
        "src": "Vec {T} 16x64",
        "exp": "Vec u8 16x32 valid 16x2",
        "max": "Vec {T} 1x64",
        "scaling": "Vec {T} 1x64",
        "quant_type": "MXFP8",
    },
    more_examples="""
        dst          | src           | exp         | max          | scaling      | mx_alg
        Vec i8 16x64 | Vec f32 16x64 | Vec u8 1x32 | Vec f32 1x64 | Vec f32 1x64 | NvMxFp8E4M3
    """,
    cpp=Cpp(
        (
            "@grp_axis @mx_alg",
            "@quant_type @store_mode",
            "@quant_type dst src exp max scaling @scale_alg",
        ),
        pointers=frozenset({"exp", "max", "scaling", "exp_zz"}),
    ),
    cost=QUANTISE,
)
def TQUANT_MX(
    dst: Array,
    src: Array,
    exp: Array,
    max: Array,
    scaling: Array,
    exp_zz: Array | None,
    ops: Ops,
    poison: Poison,
    beyond: Beyond,
) -> None:
    """Quantise to MXFP8 (E4M3) or MXFP4 (E2M1); 32 consecutive elements of a row share an exponent.

    Written `TQUANT[QuantType.MXFP8](...)`, with `QuantScaleAlg.NV` for the other scale algorithm,
    or `TQUANT[1, MxQuantAlg.NvMxFp8E4M3](...)`. dst gets the codes, exp the exponent bytes; max and
    scaling are scratch that holds one word per group. Codes are rounded to nearest, ties to even,
    and saturate; a NaN makes its whole group NaN (exponent 0xFF; E2M1 has no NaN and stores +6).

    Storage: with exp.Rows == 1 all groups of all padded rows follow one another in exp, max and
    scaling. Otherwise row i of exp holds the ceil(valid columns / 32) exponents of row i, max and
    scaling hold them packed, and max is left undefined. Padding columns of an f16 or bf16 src are
    set to 0 first, in src itself. 16-bit scales are stored as the bits of a bf16. `VecStoreMode.NZ`
    also writes the exponents to exp_zz in blocks of 16 rows and 2 groups (simulator only).
    """
    form = format_of(ops.attrs)
    rows, cols = src.shape
    count = _groups(ops)
    padded = np.zeros((rows, count * GROUP), src.dtype)
    padded[:, :cols] = src
    _clear_padding(ops, poison, beyond)
    found = quantise(padded.reshape(rows, count, GROUP), form, ops)
    dst[...] = found.codes.reshape(rows, -1)[:, : dst.shape[1]].view(dst.dtype)
    exp[...] = found.exponent.reshape(exp.shape).view(exp.dtype)
    max[...] = found.maximum.reshape(-1)
    scaling[...] = found.scaling.reshape(-1)
    if exp_zz is not None:
        boxes = found.exponent.reshape(rows // 16, 16, count // 2, 2)
        exp_zz[...] = boxes.transpose(0, 2, 1, 3).reshape(-1)


# ---- groups down a column ----------------------------------------------------------------------


def _down_rows(o: Any) -> int:
    """The rows that are quantised: devices process whole groups, interleaved ones in pairs."""
    step = (2 if o.attrs["interleave"] else 1) * GROUP
    return -(-o.src.vr // step) * step if o.target.is_device else o.src.vr


def _down(o: Any) -> tuple[int, int]:
    """Groups down a column, and columns."""
    return _down_rows(o) // GROUP, o.src.vc


def _whole_groups(o: Any) -> tuple[int, int]:
    return _down_rows(o), o.src.vc


def _down_exponents(o: Any) -> tuple[int, int]:
    count, cols = _down(o)
    return (count // 2, 2 * cols) if o.attrs["interleave"] else (count, cols)


def _down_pitch(name: str) -> Callable[[Any], int]:
    """Columns of src; one row of groups may have fewer, which makes no difference."""
    return lambda o: o[name].cols if _down_rows(o) <= GROUP else o.src.cols


def _exponent_pitch(o: Any) -> int:
    return o.exp.cols if o.attrs["interleave"] else _down_pitch("exp")(o)


def _code_pitch(o: Any) -> int:
    return o.src.cols if o.dst.dtype.is_packed else o.dst.cols


def _interleaved_size(o: Any) -> tuple[int, int]:
    return -(-o.src.rows // (2 * GROUP)), 32 * -(-2 * o.src.cols // 32)


@insn(
    out("dst", view=_rows("dst", _whole_groups, _code_pitch), memory=_UB),
    src("src", view=_rows("src", _whole_groups, _of_source), memory=_UB),
    out("exp", view=_rows("exp", _down_exponents, _exponent_pitch), memory=_UB),
    out("max", view=_rows("max", _down, _down_pitch("max")), memory=_UB),
    out("scaling", view=_rows("scaling", _down, _down_pitch("scaling")), memory=_UB),
    overload_of="TQUANT",
    attrs=[
        Attr("grp_axis", int, 0, "0: groups lie down a column", (0,)),
        Attr("mx_alg", MxQuantAlg, None, "format and scale algorithm"),
        Attr("quant_type", QuantType, None, "format", (QuantType.MXFP8, QuantType.MXFP4_E2M1)),
        Attr("scale_alg", QuantScaleAlg, QuantScaleAlg.OCP, "scale algorithm of quant_type"),
        Attr("interleave", bool, False, "put the exponents of neighbouring groups side by side"),
    ],
    types=types("src", a5="f32 f16 bf16"),
    rules=[
        *_rules("rows of 8-bit codes lie dst.Cols apart, those of 4-bit codes src.Cols"),
        *DOWN_COLUMN,
        must("groups")(
            "rows and valid rows of src are multiples of 32",
            lambda o: o.src.rows % GROUP == 0 and o.src.vr % GROUP == 0,
            otherwise=on_devices("whole groups of 32 rows are read and written"),
        ),
        must("pitch")(
            "max, scaling and a plain exp have the columns of src, unless they have one row",
            lambda o: (
                o.src.vr <= GROUP
                or {o.max.cols, o.scaling.cols}
                | ({o.src.cols} if o.attrs["interleave"] else {o.exp.cols})
                == {o.src.cols}
            ),
        ),
        must("interleaved-groups")(
            "with interleaved exponents rows of src are a multiple of 64",
            lambda o: not o.attrs["interleave"] or o.src.rows % 64 == 0,
        ),
        must("interleaved-exponents")(
            "an interleaved exp has ceil(src.Rows / 64) rows and 2 * src.Cols columns, rounded up "
            "to 32",
            lambda o: not o.attrs["interleave"] or (o.exp.rows, o.exp.cols) == _interleaved_size(o),
        ),
        must("interleaved-valid", applies=lambda o: o.attrs["interleave"])(
            "valid rows of src are a multiple of 64, and an interleaved exp is valid for 2 bytes "
            "per valid column in each of them",
            lambda o: o.src.vr % 64 == 0 and (o.exp.vr, o.exp.vc) == (o.src.vr // 64, 2 * o.src.vc),
            otherwise=on_devices(
                "whole groups of 64 rows are read and written; the valid region of exp is not used"
            ),
        ),
    ],
    asm=_text(absent={"grp_axis": 1}, aliases=("tquant.dn",)),
    example={
        "dst": "Vec i8 64x32",
        "src": "Vec {T} 64x32",
        "exp": "Vec u8 2x32",
        "max": "Vec {T} 2x32",
        "scaling": "Vec {T} 2x32",
        "mx_alg": "OcpMxFp8E4M3",
    },
    more_examples=[
        {
            "dst": "Vec i8 64x32",
            "src": "Vec f32 64x32",
            "exp": "Vec u8 1x64",
            **dict.fromkeys(("max", "scaling"), "Vec f32 2x32"),
            "mx_alg": "OcpMxFp8E4M3",
            "interleave": "True",
        }
    ],
    cpp=Cpp(
        ("@grp_axis @mx_alg", "@grp_axis @mx_alg @interleave"),
        pointers=frozenset({"exp", "max", "scaling"}),
        rewritten=in_one_word,
    ),
    cost=QUANTISE,
)
def TQUANT_DN(
    dst: Array,
    src: Array,
    exp: Array,
    max: Array,
    scaling: Array,
    interleave: bool,
    ops: Ops,
    poison: Poison,
    beyond: Beyond,
) -> None:
    """Quantise to MXFP8 or MXFP4; 32 consecutive elements of a column share an exponent.

    Written `TQUANT[0, MxQuantAlg.OcpMxFp8E4M3](dst, src, exp, max, scaling)`. Row p, column j of
    exp, max and scaling belongs to rows 32 p .. 32 p + 31 of column j; columns beyond the valid
    ones are untouched. With `interleave` (third bracket argument) the exponents of two neighbouring
    groups of a column are neighbours in memory: exp[p // 2, 2 j + p % 2]. Otherwise as TQUANT_MX.
    """
    rows, cols = src.shape
    count = rows // GROUP
    groups = src.reshape(count, GROUP, cols).transpose(0, 2, 1)
    found = quantise(groups, format_of(ops.attrs), ops)
    _clear_padding(ops, poison, beyond)
    dst[...] = found.codes.transpose(0, 2, 1).reshape(rows, cols).view(dst.dtype)
    max[...] = found.maximum
    scaling[...] = found.scaling
    if interleave:
        pairs = found.exponent.reshape(count // 2, 2, cols)
        exp[...] = pairs.transpose(0, 2, 1).reshape(exp.shape).view(exp.dtype)
    else:
        exp[...] = found.exponent.view(exp.dtype)


@insn(
    out("dst", note="f4e1m2x2, two codes per byte"),
    src("src", note="bf16"),
    out("exp", note="u8: three levels of scales"),
    out("max", note="bf16 scratch"),
    out("scaling", note="bf16"),
    targets="",
    asm=None,
    cost=QUANTISE,
)
def TQUANT_HIF4(dst: Array, src: Array, exp: Array, max: Array, scaling: Array) -> None:
    """Quantise bf16 to HiFloat4 with three-level scales; no supported device has it.

    In C++ it is TQUANT with MxQuantAlg::Hif4, which the MX forms of TQUANT refuse by name.
    """
    raise NotImplementedError("HiFloat4 exists on no supported target")
