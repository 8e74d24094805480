"""Padding: what lies beside the valid region of a tile is filled with its pad value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ptokit.base.enums import CompactMode, PadValue, TFillPadMode, TileType
from ptokit.base.layout import Array
from ptokit.isa.devices import DEVICES
from ptokit.isa.effects import steps
from ptokit.isa.facts import Ops
from ptokit.isa.fixpipe import convert_out
from ptokit.isa.idioms import MOVES, Idiom
from ptokit.isa.language import in_text
from ptokit.isa.rules import must, row_major, separate, unboxed, where, whole_overlap
from ptokit.isa.services import Poison
from ptokit.isa.spec import Asm, Attr, Cpp, Extent, Pipe, Rule, insn, out, rule, src
from ptokit.isa.targets import PerTarget
from ptokit.isa.transfer import c0, up, whole

# ---- regions -----------------------------------------------------------------------------------


def _is_mat(o: Any) -> bool:
    return o.dst.loc == TileType.Mat


def _is_empty(o: Any) -> bool:
    return 0 in (o.dst.vr, o.dst.vc)


_TRUSTS_LOAD = PerTarget(False, a2a3=True)


def _keeps_tail(o: Any) -> bool:
    """A2A3 trusts the load to have padded the last block of each row with the same value."""
    return _TRUSTS_LOAD[o.target] and o.src.pad == o.dst.pad != PadValue.Null


def _only_clears(o: Any) -> bool:
    """Whether nothing is copied: devices work on one Mat tile, and write only beside its data."""
    return _is_mat(o) and o.target.is_device


def _source(o: Any) -> Extent:
    if _only_clears(o) or _is_empty(o):
        return 0, 0
    if _keeps_tail(o):
        return o.src.vr, min(up(o.src.vc, c0(o.src)), o.src.cols)
    return o.src.vr, o.src.vc


def _destination(o: Any) -> Extent:
    if _only_clears(o):  # the rows below the valid ones, in the boxes of the valid columns
        end = up(o.dst.vr, 16) if _aligns_rows(o) else whole(o.dst)[0]
        return slice(o.dst.vr, end), slice(0, up(o.dst.vc, c0(o.dst)))
    if _is_empty(o):
        return 0, 0
    if _is_mat(o) or not o.target.is_device:
        return whole(o.dst)
    return max(o.src.vr, o.dst.vr), o.dst.cols


def _aligns_rows(o: Any) -> bool:
    return o.dst.compact == CompactMode.RowAlignedPadding


def _boxes_behind(o: Any) -> Extent | None:
    """Of a Mat tile: the boxes behind the valid columns."""
    if not _only_clears(o) or _aligns_rows(o):
        return None
    rows, cols = whole(o.dst)
    return slice(0, rows), slice(up(o.dst.vc, c0(o.dst)), cols)


# ---- rules -------------------------------------------------------------------------------------


# The one thing the permissive profile asks; devices compare the capacities.
_ROOM = must("room", "cpu")(
    "dst has room for the valid rows and columns of src",
    lambda o: o.src.vr <= o.dst.rows and o.src.vc <= o.dst.cols,
)
# What the three forms on vector tiles have in common.
_VEC = [
    must("SA-0171", DEVICES)(
        "dst declares a pad value",
        lambda o: o.dst.pad != PadValue.Null,
        "declare dst with PadValue.Zero, Max, Min or a custom value",
    ),
    must("SA-0176", DEVICES)(
        "elements of src and dst have the same size", lambda o: o.src.itemsize == o.dst.itemsize
    ),
    rule("SA-0175", "elements have 1, 2 or 4 bytes", lambda o: o.src.itemsize <= 4, DEVICES),
    row_major("dst", "src", on=DEVICES),
    unboxed("dst", "src", on=DEVICES),
    must("tail-rows", "a2a3")(
        "at most 510 rows of 2- and 4-byte elements end inside a 32-byte block",
        lambda o: (
            o.src.itemsize == 1 or _keeps_tail(o) or o.src.vc % c0(o.src) == 0 or o.src.vr <= 510
        ),
        "pad fewer rows at a time, or make the valid columns whole blocks",
    ),
]
_EQUAL_CAPACITY = must("SA-0173", DEVICES)(
    "src and dst have the same Rows and Cols",
    lambda o: (o.src.rows, o.src.cols) == (o.dst.rows, o.dst.cols),
    "use TFILLPAD_EXPAND for a larger destination",
)
_FORMS = {
    TFillPadMode.Normal: [_EQUAL_CAPACITY, whole_overlap("dst", "src", on=DEVICES)],
    TFillPadMode.InPlace: [
        _EQUAL_CAPACITY,
        must("same-storage", DEVICES)(
            "dst and src lie at the same address",
            lambda o: o.mode == "auto" or o.dst.addr == o.src.addr,
            "bind both tiles to one address, or use TFILLPAD",
        ),
    ],
    TFillPadMode.Expand: [
        must("SA-0172", DEVICES)(
            "dst has at least the Rows and Cols of src",
            lambda o: o.src.rows <= o.dst.rows and o.src.cols <= o.dst.cols,
        ),
        separate("dst", "src", on=DEVICES),
    ],
}
_MAT = where(_is_mat, DEVICES)(
    must("mat-pad")(
        "a Mat tile is padded with zeros: its PadValue is Zero or Null",
        lambda o: o.dst.pad in (PadValue.Null, PadValue.Zero),
    ),
    rule("mat-layout", "a Mat tile that is padded is NZ", lambda o: o.dst.layout == "NZ"),
    must("mat-size")(
        "elements of a Mat tile that is padded have 1, 2 or 4 bytes", lambda o: o.dst.itemsize <= 4
    ),
    must("mat-same")(
        "padding works on one Mat tile: src and dst have the same type and address",
        lambda o: (
            (o.src.dtype, o.src.rows, o.src.cols, o.src.layout, o.src.loc)
            == (o.dst.dtype, o.dst.rows, o.dst.cols, o.dst.layout, o.dst.loc)
            and (o.mode == "auto" or o.src.addr == o.dst.addr)
        ),
        "pass the tile as both operands",
    ),
)


def _by_size(tiles: Mapping[str, Any]) -> TFillPadMode:
    """The form that a text means; where dst starts with src, what is copied is there already."""
    dst, src = tiles["dst"], tiles["src"]
    is_larger = (dst.rows, dst.cols) != (src.rows, src.cols) and dst.loc == TileType.Vec
    return TFillPadMode.Expand if is_larger else TFillPadMode.Normal


def _form(mode: TFillPadMode) -> list[Rule]:
    chosen = where(lambda o: not _is_mat(o) and o.attrs["mode"] == mode)
    return chosen(_FORMS[mode])


# ---- the filling -------------------------------------------------------------------------------


def _same_bits(values: Array, o: Any) -> Array:
    if o.src.dtype is o.dst.dtype:
        return values
    if o.target.is_device:
        return values.view(o.dst.dtype.np)
    return convert_out(values, o.src.dtype, o.dst.dtype, target=o.target)


def _pad_value(o: Any) -> Any:
    given = o.attrs.get("PadVal")
    pad = o.dst.pad if not _is_mat(o) else PadValue.Zero if given is None else given
    kind = o.dst.dtype
    if o.target.tile_library and kind.is_float and pad in (PadValue.Max, PadValue.Min):
        finite = kind.max_value if pad == PadValue.Max else kind.min_value
        return np.array(finite, kind.np)  # the others fill with infinities
    return np.array(kind.pad_bits(pad), kind.uint).view(kind.np)


def _moved(o: Any) -> Idiom | None:
    return MOVES if o.src.dtype is o.dst.dtype or o.target.is_device else None


# ---- the instructions --------------------------------------------------------------------------

_OPERANDS = (
    out("dst", view=_destination, zeroed=_boxes_behind),
    src("src", view=_source, carries=True),
)
_STEPS = [
    steps("a2a3", lambda o: not _is_mat(o) and o.src.itemsize > 1, between="V"),
    # The bytes past each row are written by the scalar unit.
    steps("a2a3", lambda o: not _is_mat(o) and o.src.pad != o.dst.pad, between="V->S V"),
]
_SOURCE = "Vec f32 16x64 valid 13x50"


@insn(
    *_OPERANDS,
    attrs=[
        Attr("mode", TFillPadMode, TFillPadMode.Normal, "Vec: which of the three forms"),
        Attr("PadVal", PadValue, None, "Mat: devices write zeros whatever it says"),
    ],
    pipe=lambda o: Pipe.MTE2 if _is_mat(o) else Pipe.V,
    ops={"TFILLPAD_VEC": Pipe.V, "TFILLPAD_MAT": Pipe.MTE2},
    targets=DEVICES,
    asm=Asm(inferred={"mode": _by_size}),
    rules=[
        must("location", DEVICES)(
            "dst is a Vec or Mat tile, in the space of src",
            lambda o: o.dst.loc == o.src.loc and o.dst.loc in (TileType.Vec, TileType.Mat),
        ),
        _ROOM,
        where(lambda o: not _is_mat(o))(_VEC),
        *map(_form, TFillPadMode),
        _MAT,
        in_text(
            "mat-type",
            "src and dst in Mat have one type: its sizes, its valid sizes and its pad value",
            lambda o: not _is_mat(o) or o.src.spec == o.dst.spec,
            fix="pad the tile in place, or in Vec, where the types may differ",
        ),
    ],
    example={"dst": "Vec f32 16x64 pad Zero", "src": _SOURCE},
    more_examples="""
        dst                   | src                              | mode
        Vec i8 16x64 pad Max  | Vec i8 16x64 valid 13x50 pad Max |
        Vec f16 24x96 pad Min | Vec f16 16x64 valid 13x50        | Expand
        Vec f16 16x64 pad Min | Vec f16 16x64 valid 13x50        | InPlace

        dst                                                   | src                          | on
        Mat f16 32x64 NZ valid 20x50                          | Mat f16 32x64 NZ valid 20x50 |
        Mat i8 64x64 NZ valid 20x50 compact RowAlignedPadding | Mat i8 64x64 NZ valid 20x50  |
        Vec f32 512x16 pad Zero                               | Vec f32 512x16 valid 510x9   | a2a3
    """,
    steps=_STEPS,
    cpp=Cpp(("", "@mode", "dst @PadVal")),
    idiom=_moved,
)
def TFILLPAD(dst: Array, src: Array, ops: Ops, poison: Poison) -> None:
    """Copy the valid part of a tile and fill what lies beside it with the pad value of dst.

    Vec: every row of src is continued with the pad value up to Cols of dst; rows from the valid
    rows of src up to those of dst hold the pad value only. Rows beyond the valid rows of dst stay
    as they are; the `cpu` profile fills them as well. Nothing happens when dst has no valid rows or
    columns. On A2A3, when src declares the same pad value as dst, the rest of the last 32-byte
    block of each row comes from src, where the load has put it.

    Mat: src and dst are one NZ tile, of which nothing is read: it may be loaded before or after.
    Rows and boxes beside the valid ones are cleared, or with CompactMode.RowAlignedPadding only the
    rows up to the next multiple of 16; the columns between the valid ones and the end of their box
    stay. The `cpu` profile fills everything beside the valid region of src with `PadVal`.
    """
    if _only_clears(ops):
        dst[...] = 0
        return
    if _is_empty(ops):
        return
    poison.demand("src", (slice(0, ops.src.vr), slice(0, ops.src.vc)))
    missing = poison.undefined("src")
    rows, cols = src.shape
    dst[:rows, :cols] = _same_bits(src, ops)
    dst[:rows, cols:] = dst[rows:] = _pad_value(ops)
    if missing is not None:
        lost = np.zeros(dst.shape, bool)
        lost[: missing.shape[0], : missing.shape[1]] = missing
        poison.poison_where("dst", lost)


def _vec_form(name: str, mode: TFillPadMode, dst: str, doc: str) -> None:
    """Define a form of TFILLPAD that has a name of its own, on vector tiles."""
    location = must("location", DEVICES)(
        "dst and src are Vec tiles", lambda o: o.dst.loc == o.src.loc == TileType.Vec
    )
    insn(
        *_OPERANDS,
        name=name,
        ops={"TFILLPAD_VEC": Pipe.V},
        targets=DEVICES,
        rules=[location, _ROOM, _VEC, _FORMS[mode]],
        steps=_STEPS,
        asm=Asm(forms=frozenset({"l1", "l2"})),
        example={"dst": dst, "src": _SOURCE},
        doc=doc,
        idiom=_moved,
    )(TFILLPAD.body)


_vec_form(
    "TFILLPAD_INPLACE",
    TFillPadMode.InPlace,
    "Vec f32 16x64 pad Zero",
    """Fill what lies beside the valid part of a tile with the pad value of dst, in place.

    src and dst are two views of one storage: src gives the valid part, dst what is padded. See
    TFILLPAD for the region.
    """,
)
_vec_form(
    "TFILLPAD_EXPAND",
    TFillPadMode.Expand,
    "Vec f32 24x96 pad Zero",
    """Copy the valid part of a tile into a larger one and fill the rest with its pad value.

    See TFILLPAD for the region.
    """,
)
