"""Comparison and selection: packed predicate masks, with a tile and with one number.

A comparison stores whole vector registers, so it writes more of a mask row than its elements ask
for: `_stored_bytes` tells how much, and what A2/A3 finds behind its sources is compared as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ptokit.base.dtypes import f16, i32, u8
from ptokit.base.enums import CmpMode
from ptokit.base.layout import Array, AxisMap
from ptokit.isa.costs import SELECTION
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.effects import SCRATCH_IN_USE, steps
from ptokit.isa.expr import Expr, apply, given, on, select
from ptokit.isa.facts import TileFacts
from ptokit.isa.language import room
from ptokit.isa.masks import Packed
from ptokit.isa.meaning import Each, at_the_same_places
from ptokit.isa.pointwise import (
    AS_DST,
    GOVERNED,
    NUMBERS,
    arithmetic,
    in_place_or_apart,
    on_a2a3,
    one_vector,
    one_vector_of_i64,
    plain,
    scratch,
    scratch_held,
)
from ptokit.isa.regions import Extent, Reach, View, pitched
from ptokit.isa.rules import (
    located,
    must,
    or_else,
    same_dtype,
    same_valid,
    same_valid_shape,
    separate,
    static_valid_fits,
)
from ptokit.isa.scalars import element_of
from ptokit.isa.spec import Asm, Attr, Operand, Rule, insn, out, scalar, src, types

# ---- what a comparison touches -----------------------------------------------------------------


def _compared(a: Expr, b: Expr, mode: CmpMode) -> Expr:
    """The answer to a comparison; A2/A3 cannot order i32 and answers EQ."""
    answer = apply(mode.name.lower(), a, b)
    if a.kind is not i32 or mode in (CmpMode.EQ, CmpMode.NE):
        return answer
    return given(on("a2a3"), a.eq(b), answer)


def _is_later(o: Any) -> bool:
    return o.target.is_device and not on_a2a3(o)


def _columns(o: Any) -> int:
    """Columns of src0 that count."""
    return one_vector(o, "src0")[1]


def _stored_bytes(o: Any) -> int:
    """Bytes of a mask row that a comparison of src0 writes on a device: whole registers."""
    size, cols = o.src0.itemsize, o.src0.vc
    if size == 8:
        return 32
    lanes = 256 // size if on_a2a3(o) else 128 if size > 1 else 256
    return -(-cols // lanes) * lanes // 8


def _row_bytes(mask: Any) -> int:
    return mask.cols * mask.itemsize


def _inverted(o: Any) -> int:
    """Bytes behind those stored that A2/A3, for which NE is EQ inverted, inverts as well."""
    mode = next(value for value in o.attrs.values() if isinstance(value, CmpMode))
    is_read = on_a2a3(o) and mode == CmpMode.NE
    return max(0, _row_bytes(o.dst) - _stored_bytes(o)) if is_read else 0


def _written_mask(o: Any) -> Extent:
    """The bytes of `dst` that are written; the permissive profile clears all of them."""
    pitch = _row_bytes(o.dst)
    if not o.target.is_device:
        return pitched(o.dst.rows, pitch, pitch, u8)
    return pitched(
        o.src0.vr, _stored_bytes(o) + _inverted(o), pitch if on_a2a3(o) else pitch // 4 * 4, u8
    )


def _mask_of_scalar(o: Any) -> Extent:
    """The same for TCMPS: in the assembler's library the rows of its mask follow one another,
    whatever the columns of `dst`, and those of a tile without padding are one run of bits."""
    if not o.target.tile_library:
        return _written_mask(o)
    is_run = o.src0.vc == o.src0.cols and o.src0.vc % 8 == 0
    width = o.src0.vc // 8 if is_run else _stored_bytes(o)
    return pitched(o.src0.vr, width, width, u8)


def _compares_behind(o: Any) -> bool:
    """Whether A2/A3 compares, in whole registers, what lies past the rows of its sources.

    Where tiles are placed automatically, or at the end of the memory, nobody knows what that is.
    """
    if not on_a2a3(o) or o.mode == "auto" or not o.src0.vr:
        return False
    width, capacity = 8 * _stored_bytes(o), o.target.spaces[o.src0.loc].capacity
    tiles = [tile for _, tile in o if isinstance(tile, TileFacts) and tile is not o.dst]
    ends = [t.addr + ((o.src0.vr - 1) * t.cols + width) * t.itemsize for t in tiles]
    return max(ends) <= capacity


def _undefined_tail(o: Any) -> tuple[slice, slice] | None:
    """The bytes past the last element of which A2/A3 makes something nobody knows."""
    if not on_a2a3(o) or _compares_behind(o):
        return None
    start, stop = -(-o.src0.vc // 8), _stored_bytes(o) + _inverted(o)
    return (slice(0, o.src0.vr), slice(start, stop)) if start < stop else None


def _has_mixed_strides(o: Any) -> bool:
    """Whether later targets take the row strides of two 32-bit sources one for the other."""
    mixed = o.src0.row_stride != o.src1.row_stride
    return _is_later(o) and o.src0.itemsize == 4 and mixed


def _mixed_places(o: Any) -> Array | None:
    """Where the elements of both sources lie: every other 64 columns by the stride of src1."""
    if not _has_mixed_strides(o):
        return None
    row, col = np.indices((o.src0.vr, _columns(o)))
    return row * np.where(col % 128 < 64, o.src0.row_stride, o.src1.row_stride) + col


def _plain_places(_: Any) -> None:
    """Elements lie where their tile says."""


def _source(name: str, lie: Callable[[Any], Array | None]) -> Operand:
    """A tile that is compared, at the places of src0."""

    def region(o: Any) -> View | Extent:
        tile, rows, cols = o[name], o.src0.vr, _columns(o)
        places = lie(o)
        if places is not None:
            return slice(0, int(places.max(initial=-1)) + 1)
        if _compares_behind(o):
            cols = 8 * _stored_bytes(o)
        if tile.layout == "ND" or not o.target.is_device:
            return at_the_same_places(tile, (rows, cols))
        return pitched(rows, cols, tile.cols if on_a2a3(o) else tile.row_stride)

    return src(name, view=region, carries=True)


_means = partial(Packed, columns=_columns, inverts=_inverted)


# ---- rules of masks ----------------------------------------------------------------------------

_BY_SRC0 = "the valid region of src0 governs: other tiles are taken there, whatever their sizes"


def _overlapping(o: Any) -> str:
    """What becomes of rows of a mask that are too short; inverting them is not followed."""
    return "" if _inverted(o) else "the bytes of a row are overwritten by those of the next"


def _mask_rules(name: str, of: str, outcome: str) -> list[Rule]:
    """A packed mask has a bit for every valid element of `of`."""
    return [
        must("mask-layout")(
            f"{name} is a packed mask: row-major, without an inner box",
            lambda o: o[name].layout == "ND",
            "declare the mask tile with BLayout.RowMajor and SLayout.NoneBox",
            "rows are addressed by the distance of Cols elements",
        ),
        must("mask-type")(
            f"{name} is a packed mask: its elements have whole bytes",
            lambda o: not o[name].dtype.is_packed,
            "declare the mask tile with uint8_t elements",
        ),
        must("mask-rows")(
            f"{name} has a row for every valid row of {of}",
            lambda o: o[name].rows >= o[of].vr,
            "give the mask tile as many rows as the data tile",
            "the rows that follow lie past the tile",
        ),
        must("mask-width")(
            f"a row of {name} holds one bit per valid column of {of}",
            lambda o: 8 * o[name].cols * o[name].itemsize >= o[of].vc,
            "give the mask tile more columns",
            outcome,
        ),
    ]


_ALL, _KIRIN = NUMBERS["a5"], NUMBERS["kirin"]
_dst = partial(out, "dst", unspecified=_undefined_tail, note="packed mask")
_MASK_TYPES = types(
    "dst",
    a2a3="u8 i8",
    a5="u8 i8 u32",
    kirin="u8 i8 u32",
    ids="mask-dtype",
    otherwise="rows of the mask lie Cols elements of dst apart, whatever their type",
)


def alike(names: str, count: int) -> str:
    """Combinations of `count` operands that have the same element type."""
    return " ".join(",".join([name] * count) for name in names.split())


# ---- comparison --------------------------------------------------------------------------------


def _comparison(mode: str, *sources: str, rows: Mapping[str, str], fix: str) -> list[Rule]:
    """What a comparison asks of its mask and its tiles.

    `mode` is the template argument, `rows` the id, per target, of the rule about valid rows.
    """
    return [
        *_mask_rules("dst", "src0", "the bytes of a row are overwritten by those of the next"),
        must("mask-store", DEVICES)(
            "a row of dst holds the whole vector registers of bits that are stored for src0",
            lambda o: _row_bytes(o.dst) >= _stored_bytes(o),
            "give the mask tile more columns: 16 bytes for every 128 columns of src0, "
            "32 for every 256 when its elements are bytes",
            _overlapping,
        ),
        arithmetic("src0"),
        located("Vec", "dst", id="SA-0230", on=DEVICES),
        located("Vec", *sources, id="SA-0232", on=DEVICES),
        *static_valid_fits("dst", *sources),
        *or_else("rows are addressed by Cols, on A5 by RowStride", plain(*sources, on=DEVICES)),
        separate("dst", *sources),
        *(
            must(id, on)(
                "dst has as many valid rows as src0",
                lambda o: o.dst.vr == o.src0.vr,
                otherwise=_BY_SRC0,
            )
            for id, on in rows.items()
        ),
        must("i32-order", "a2a3")(
            "i32 is compared for EQ or NE: A2/A3 cannot order it and would answer EQ",
            lambda o: o.src0.dtype is not i32 or o.attrs[mode] in (CmpMode.EQ, CmpMode.NE),
            fix,
            "the answer is that of EQ",
        ),
        one_vector_of_i64("src0"),
    ]


@insn(
    _dst(view=_written_mask),
    _source("src0", _mixed_places),
    _source("src1", _mixed_places),
    means=_means(places=_mixed_places),
    attrs=[Attr("cmpMode", CmpMode, CmpMode.EQ, argument=True)],
    types=[
        types(
            "src0 src1",
            a2a3=alike("i32 f16 f32", 2),
            a5=alike(_ALL, 2),
            kirin=alike(_KIRIN, 2),
        ),
        _MASK_TYPES,
    ],
    rules=[
        _comparison(
            "cmpMode",
            "src0",
            "src1",
            rows={"mask-valid-rows": "a2a3"},
            fix="convert to f32 with TCVT first, or compare the difference",
        ),
        same_dtype("src0", "src1"),
        *or_else(_BY_SRC0, same_valid("src0", "src1", on="a2a3")),
        must("src1-covers")(
            "the valid region of src1 covers that of src0",
            lambda o: o.src1.vr >= o.src0.vr and o.src1.vc >= o.src0.vc,
            otherwise=_BY_SRC0,
        ),
        must("same-stride", A5_FAMILY)(
            "src0 and src1 have the same row stride when their elements have 32 bits",
            lambda o: not _has_mixed_strides(o),
            "declare both sources with the same number of columns",
            "of every 128 columns the first 64 go by the stride of src0, the others by that of "
            "src1, in both sources",
        ),
    ],
    asm=Asm(attrs={"cmpMode": "cmpMode"}, place={"cmpMode": "ins"}),
    steps=[steps(when=lambda o: o.attrs["cmpMode"] == CmpMode.NE, between="V")],
    example={"dst": "Vec {T} 16x32", "dst@cpu": "Vec u8 16x32"},
)
def TCMP(src0: Expr, src1: Expr, cmpMode: CmpMode) -> Expr:
    """Compare two tiles and pack the answers, one bit per element, into a mask.

    Bit j % 8 of byte j // 8 in row i of the mask answers for element (i, j); rows of the mask start
    at rows of its tile, whatever its element type. NaN is unequal to everything, +0 equals -0.
    Whole registers of bits are stored: past the last element of a row A5 and Kirin fill up with
    zeros, A2/A3 with garbage (with NE, to the end of the row). A2/A3 cannot order i32.
    """
    return _compared(src0, src1, cmpMode)


@insn(
    _dst(view=_mask_of_scalar),
    _source("src0", _plain_places),
    Operand(
        "scalar",
        "in",
        kinds=("scalar", "tile"),
        takes=element_of("src0"),
        view=lambda _: slice(0, 1),
        note="a number, or a tile whose first element in memory is taken",
    ),
    means=_means(places=_plain_places, streams=True),
    attrs=[Attr("mode", CmpMode, CmpMode.EQ, argument=True)],
    types=[types("src0", a2a3="i16 u16 i32 f16 f32", a5=_ALL, kirin=_KIRIN), _MASK_TYPES],
    rules=[
        _comparison(
            "mode",
            "src0",
            rows={"PA-0020": "a2a3", "mask-valid-rows": A5_FAMILY},
            fix="convert to f32 with TCVT first",
        ),
        must("scalar-type")(
            "a tile that holds the scalar has the element type of src0",
            lambda o: o.scalar.kind != "tile" or o.scalar.dtype is o.src0.dtype,
        ),
    ],
    asm=Asm(attrs={"mode": "cmpMode"}, place={"mode": "ins"}),
    steps=[
        steps(when=lambda o: o.scalar.kind == "tile", start="V->S MTE1->S MTE2->S", between="V"),
        steps(when=lambda o: o.attrs["mode"] == CmpMode.NE, between="V"),
    ],
    example={"dst": "Vec u8 16x32", "src0": "Vec {T} 16x64", "scalar": "1"},
    more_examples=[{"dst": "Vec u8 16x32", "src0": "Vec f32 16x64", "scalar": "Vec f32 1x64"}],
)
def TCMPS(src0: Expr, scalar: Expr, mode: CmpMode) -> Expr:
    """Compare every element with a scalar and pack the answers, one bit each, into a mask.

    The mask is laid out, and filled up past the last element, as TCMP does it. The scalar may be
    given as a tile: its first element in memory counts. NaN is unequal to everything, +0 equals -0.
    A2/A3 cannot order i32, and compares i16 and u16 as if their bits were f16: equality is right
    except for 0 against 0x8000 and the patterns of NaN, order only among small positive numbers.
    """
    found = _compared(src0, scalar, mode)
    if src0.kind.is_float or src0.kind.bits != 16:
        return found
    return given(on("a2a3"), _compared(src0.bits(f16), scalar.bits(f16), mode), found)


# ---- selection ---------------------------------------------------------------------------------


def _mask(name: str, *, scaled: bool = False) -> Operand:
    """The mask of a selection.

    A5 takes its row stride for bytes, whatever its elements, unless it is `scaled` or the data have
    8 bytes; and for tiles of bytes it goes on by 16 instead of 32 bytes for every 256 columns.
    """

    def region(o: Any) -> Extent:
        mask, (rows, cols) = o[name], one_vector(o)
        in_bytes = _is_later(o) and not scaled and o.dst.itemsize < 8
        pitch = mask.row_stride * (1 if in_bytes else mask.itemsize)
        if _is_later(o) and not scaled and o.dst.itemsize == 1 and cols > 256:
            steps = (-(-cols // 256), 32)
            places = AxisMap((rows, *steps), (pitch, 16, 1), (0,), (1, 2))
            return Reach(places, u8, (rows, -(-cols // 8)))
        return pitched(rows, -(-cols // 8), pitch, u8)

    return src(name, view=region, note="packed mask")


def _selection(mask: str, *sources: str, tmp_text: str, tmp_bytes: Any) -> list[Rule]:
    """What a selection asks of its mask, its tiles and its scratch."""
    return [
        *_mask_rules(mask, "dst", "the bits go on in the bytes of the next row"),
        must("mask-bytes", DEVICES)(
            f"{mask} has elements of one byte",
            lambda o: o[mask].itemsize == 1,
            "declare the mask tile with uint8_t elements",
            "its rows lie RowStride elements apart, for TSEL on A5 RowStride bytes",
        ),
        *or_else(AS_DST, same_dtype("dst", *sources)),
        located("Vec", "dst", mask, *sources, on=DEVICES),
        *static_valid_fits("dst", mask, *sources),
        *in_place_or_apart("dst", *sources),
        separate("dst", mask, id="mask-separate"),
        located("Vec", "tmp", id="tmp-location", on="a2a3"),
        scratch_held("tmp", tmp_bytes, tmp_text),
        one_vector_of_i64(),
    ]


def _line_address(o: Any) -> int:
    """Bytes of scratch in which A2/A3 repeats the address of a row of the mask."""
    return 32 // o.dst.itemsize


@insn(
    out("dst"),
    _mask("selMask"),
    src("src0", note="taken where the bit is 1"),
    src("src1", note="taken where the bit is 0"),
    scratch(_line_address, note="32 bytes on A2/A3"),
    means=Each(masks=("selMask",), streams=False, over=one_vector),
    cost=SELECTION,
    types=types(
        a2a3="i16 u16 i32 u32 f16 bf16 f32", a5=_ALL, kirin=_KIRIN, ids={"a2a3": "SA-0326"}
    ),
    rules=[
        _selection(
            "selMask",
            "src0",
            "src1",
            tmp_text="8 for 4-byte elements, 16 for 2-byte ones",
            tmp_bytes=_line_address,
        ),
        separate("tmp", "dst", "selMask", "src0", "src1", id="tmp-separate", on="a2a3"),
        must("source-type")(
            "src0 or src1 has the element type of dst",
            lambda o: o.dst.dtype in (o.src0.dtype, o.src1.dtype),
            "declare the tiles with one element type",
        ),
        *or_else(GOVERNED, same_valid("dst", "src0", "src1")),
        room(lambda o: 32 // o.dst.itemsize, "8 bytes for 4-byte elements, 16 for 2-byte ones"),
        plain("dst", "src0", "src1"),
        must("byte-columns", A5_FAMILY)(
            "8-bit tiles have at most 256 valid columns",
            lambda o: o.dst.itemsize > 1 or o.dst.vc <= 256,
            "process the tile in pieces of 256 columns",
            "for every 256 columns the mask is read on 16 bytes further, not 32",
        ),
    ],
    asm=Asm(called={"mask": "selMask"}),
    example={"selMask": "Vec u8 16x32", "tmp": "Vec u8 1x32"},
    steps=[SCRATCH_IN_USE],
)
def TSEL(selMask: Expr, src0: Expr, src1: Expr) -> Expr:
    """Choose between two tiles, element by element, by the bits of a packed mask.

    Bits are laid out as TCMP leaves them; give the mask tile u8 elements. Nothing is converted, so
    NaNs keep their payload. The destination may be one of the sources. A2/A3 needs `tmp`; other
    targets do not touch it.
    """
    return select(selMask, src0, src1)


_beside_dst = separate("tmp", "dst").holds


def _keeps_scalar(o: Any) -> bool:
    """Whether the scalar is left in tmp; in dst the result overwrites it."""
    return on_a2a3(o) and _beside_dst(o)


@insn(
    out("dst"),
    _mask("mask", scaled=True),
    src("src", note="taken where the bit is 1"),
    scratch(lambda o: o.dst.itemsize, used=_keeps_scalar, note="32 bytes on A2/A3"),
    scalar("scalar", element_of("src"), note="taken where the bit is 0"),
    means=Each(masks=("mask",), over=one_vector),
    cost=SELECTION,
    types=types(
        a2a3="i16 u16 i32 u32 f16 bf16 f32",
        a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 f32",
        kirin=_KIRIN,
        ids={"a2a3": "SA-0327", **dict.fromkeys(A5_FAMILY.split(), "SA-0328")},
    ),
    rules=[
        _selection("mask", "src", tmp_text="a block of 32", tmp_bytes=lambda _: 32),
        separate("tmp", "mask", "src", id="tmp-separate", on="a2a3"),
        *or_else(GOVERNED, same_valid_shape("dst", "src", rows="PA-0020", cols="PA-0017")),
        plain("dst", "src", on=DEVICES),
    ],
    example={"mask": "Vec u8 16x32", "tmp": "Vec u8 1x32"},
    steps=[steps(start="S->V", between="V", keeps_scratch=True)],
)
def TSELS(mask: Expr, src: Expr, scalar: Expr) -> Expr:
    """Take elements of a tile where a packed mask has ones, and a scalar where it has zeros.

    Bits are laid out as TCMP and TCMPS leave them. Nothing is computed, so NaNs of src keep their
    payload. The destination may be the source. A2/A3 needs `tmp`; other targets do not touch it.
    """
    return select(mask, src, scalar)
