"""Gathers: elements of a tile by index, by a fixed pattern or by comparison, and whole blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import convert, to_float32
from ptokit.base.dtypes import DType
from ptokit.base.enums import CmpMode, MaskPattern, SaturationMode
from ptokit.base.layout import Array
from ptokit.isa.costs import GATHER
from ptokit.isa.devices import A5_FAMILY, KIRIN, on
from ptokit.isa.facts import Ops
from ptokit.isa.gather_forms import (
    A5_DATA,
    COMPARISON_RULES,
    INDEX_RULES,
    PATTERN_RULES,
    GatherAxis,
    by_index,
    by_pattern,
    dst_region,
    garbage_rows,
    row_step,
    scratch_region,
    src0_region,
)
from ptokit.isa.idioms import MOVES, Lookup, Moves
from ptokit.isa.lane_masks import selected
from ptokit.isa.language import in_text
from ptokit.isa.pointwise import COPIED, narrow, plain
from ptokit.isa.rules import Told, located, must, on_devices, same_size, separate
from ptokit.isa.scalars import element_of
from ptokit.isa.services import Beyond, Poison, Refused
from ptokit.isa.spec import Asm, Attr, Cpp, View, insn, out, scalar, src, tmp, types
from ptokit.isa.vector_rules import BLOCK_BYTES, ceil_to, lanes, per_block, rows_16bit

EVERYTHING = (slice(None), slice(None))
_UNSIGNED = on("a5")  # compares unsigned 32-bit numbers, and counts elements in whole vectors
_ON_KIRIN = on(KIRIN)


def _moved(o: Any) -> Moves | Lookup | None:
    """A pattern moves bytes; an index names an element of all of src0."""
    if by_pattern(o):
        return MOVES
    if not by_index(o) or not o.target.is_device:
        return None
    size = o.src0.itemsize
    return Lookup("dst", "src0", "src1", size, size, o.src0.numel)


@insn(
    out("dst", view=dst_region, unspecified=garbage_rows),
    src("src0", view=src0_region, carries=True),
    src(
        "src1",
        view=lambda o: (o.dst.vr, o.dst.vc),
        optional=True,
        steers=True,
        note="indices",
    ),
    src(
        "k_value",
        view=lambda o: slice(0, o.src0.vr),
        optional=True,
        note="one threshold per row, contiguous",
    ),
    out(
        "cdst",
        view=lambda o: slice(0, o.src0.vr),
        optional=True,
        note="one count of hits per row, contiguous",
    ),
    tmp(
        "tmp",
        optional=True,
        view=scratch_region,
        lost=on("a2a3"),
        note="scratch; only a2a3 uses it",
    ),
    scalar(
        "offset",
        element_of("dst"),
        optional=True,
        note="what the numbering of elements starts with",
    ),
    attrs=[
        Attr("maskPattern", MaskPattern, MaskPattern.P1111, "which of every two or four"),
        Attr("gatherType", GatherAxis, GatherAxis.GATHER_ROW, "GATHER_COL: the pattern is of rows"),
        Attr("cmpMode", CmpMode, CmpMode.EQ, "GT or EQ"),
    ],
    forms=["dst src0 src1 tmp", "dst src0", "dst src0 k_value cdst tmp offset"],
    types=types(
        a2a3="i16 u16 i32 u32 f16 bf16 f32",
        a5=A5_DATA,
        kirin="i8 u8 i16 u16 i32 u32 f16 f32",
        ids={"a2a3": "SA-0044", "a5": "SA-0127"},
    ),
    rules=[
        INDEX_RULES,
        PATTERN_RULES,
        COMPARISON_RULES,
        separate("dst", "src0", "src1", "k_value", "cdst"),
        separate("tmp", "dst", "src0", "src1", "k_value", "cdst", id="tmp-apart", on="a2a3"),
        in_text(
            "index-tmp",
            "by index or by comparison: tmp is written out",
            lambda o: o.tmp is not None or (o.src1 is None and o.k_value is None),
            "a2a3",
            "write tmp after the indices, a tile of their type and shape",
        ),
    ],
    asm=Asm(
        ins=("src0", "src1", "k_value", "tmp", "offset"),
        outs=("dst", "cdst"),
        called={"src": "src0", "indices": "src1"},
        formerly={"tmp": "src1"},
        attrs={"maskPattern": "maskPattern", "cmpMode": "cmpMode"},
        place={"maskPattern": "own,"},
        words={"gatherType": ("row", "col")},
        literals={"offset": "offset"},
        numbers=frozenset({"k_value"}),
        order=("src0", "dst", "cdst", "src1", "tmp", "k_value"),
        is_counted=True,
    ),
    example={"dst": "Vec {T} 16x64", "src0": "Vec {T} 16x64", "maskPattern": "P0101"},
    more_examples="""
        dst          | src0         | src1         | tmp          | on
        Vec f16 8x64 | Vec f16 8x64 | Vec i32 8x64 | Vec i32 8x64 |
        Vec f32 8x64 | Vec f32 8x64 | Vec u32 8x64 | Vec u32 8x64 |
        Vec i64 8x64 | Vec i64 8x64 | Vec i32 8x64 | Vec i32 8x64 | a5

        dst                      | src0                      | maskPattern | gatherType | on
        Vec f32 16x64 valid 8x64 | Vec f32 32x64 valid 16x64 | P1010       | GATHER_COL | a2a3 a5

        dst          | src0         | k_value      | cdst        | tmp          | offset | on
        Vec i32 8x64 | Vec f32 8x64 | Vec i32 1x8  | Vec u32 1x8 | Vec u32 8x88 | 7      | a2a3
        Vec u32 8x64 | Vec u16 8x64 | Vec u16 1x16 | Vec u32 1x8 | Vec u32 8x88 |        | a5

        dst          | src0         | k_value     | cdst        | tmp          | cmpMode | on
        Vec i32 8x64 | Vec f32 8x64 | Vec i32 1x8 | Vec u32 1x8 | Vec u32 8x88 | GT      | a2a3
    """,
    cpp=Cpp(
        (
            "dst src0 k_value cdst tmp @cmpMode",
            "",
            "dst src0 @maskPattern @gatherType",
        )
    ),
    cost=GATHER,
    idiom=_moved,
)
def TGATHER(
    dst: Array,
    src0: Array,
    src1: Array | None,
    k_value: Array | None,
    cdst: Array | None,
    tmp: Array | None,
    offset: int | None,
    maskPattern: MaskPattern,
    gatherType: GatherAxis,
    cmpMode: CmpMode,
    ops: Ops,
    poison: Poison,
    beyond: Beyond,
) -> None:
    """Gather elements of a tile: by an index tile, by a fixed pattern, or those that compare.

    `TGATHER(dst, src0, src1, tmp)` copies to each valid element of dst the element of src0 that
    src1 names; an index counts the elements of src0 in memory order, padding included, and may
    lead to what lies around it.
    `TGATHER[pattern](dst, src)` packs the columns a pattern selects, row after row, into the
    storage of dst; `TGATHER[pattern, GatherAxis.GATHER_COL](dst, src)` packs rows. Types may differ
    as long as their size agrees: bits are copied. `TGATHER[mode](dst, src0, k, cdst, tmp, offset)`
    stores, row by row, the numbers of the elements that are greater than (GT) or equal to (EQ) the
    threshold of their row, and in cdst how many there are; elements are numbered from offset on, on
    a2a3 with the padding columns of src0, on a5 with rows rounded up to 64 elements (128 of one
    byte). What lies past the numbers in a row of dst is undefined. a5 compares unsigned: keep the
    data non-negative.
    """
    if src1 is not None:
        dst[...] = _by_index(src0, src1, ops.target.is_device, poison, beyond)
        return
    poison.demand("src0", EVERYTHING)
    if k_value is not None and cdst is not None:
        hits = _hits(src0, k_value, cmpMode, ops)
        _store_numbers(dst, cdst, hits, int(offset or 0), ops, poison, beyond)
        return
    lost, chosen = poison.undefined("src0"), selected(maskPattern)
    if gatherType == GatherAxis.GATHER_COL:
        dst[...] = src0[chosen][: dst.shape[0]].view(dst.dtype)
        if lost is not None:
            poison.poison_where("dst", lost[chosen][: dst.shape[0]])
        return
    packed, left = src0[:, chosen].view(dst.dtype), None if lost is None else lost[:, chosen]
    if row_step(ops) != packed.shape[1]:
        _spread_rows(dst, packed, row_step(ops), left, poison)
        return
    dst[...] = packed.reshape(-1)
    if left is not None:
        poison.poison_where("dst", left.reshape(1, -1))


def _by_index(
    src0: Array, indices: Array, is_device: bool, poison: Poison, beyond: Beyond
) -> Array:
    """The named elements; an index that is out of range leads to what lies around src0.

    The permissive profile takes it as 0.
    """
    inside = (indices >= 0) & (indices < src0.size)
    if is_device and not inside.all():
        row, col = np.argwhere(~inside)[0]
        error = Refused(
            "index-range",
            f"indices count the {src0.size} elements of src0 from 0",
            got=[(f"src1[{row}, {col}]", int(indices[row, col]))],
            fix="check how the indices are computed; they are not rows but elements",
        )
        beyond.lead("src0", indices[~inside], error, "doc", "what lies there in UB is taken")
    named = np.where(inside, indices, 0).astype(np.int64)
    asked = np.zeros(src0.size, np.bool_)
    asked[named[inside]] = True
    poison.demand_where("src0", asked)
    found = np.where(inside, src0.reshape(-1)[named], src0.dtype.type(0))
    if is_device and not inside.all():
        found[~inside] = beyond.read("src0", indices[~inside])
    lost = poison.undefined("src0")
    if lost is not None:
        poison.poison_where("dst", inside & lost.reshape(-1)[named])
    return found


def _spread_rows(dst: Array, packed: Array, step: int, lost: Array | None, poison: Poison) -> None:
    """64-bit kernels of a5 leave room between rows; it keeps what it held."""
    gaps = poison.undefined("dst")
    if gaps is None and lost is not None:
        gaps = np.zeros((1, dst.size), np.bool_)
    for row, values in enumerate(packed):
        dst[row * step : row * step + len(values)] = values
        if gaps is not None:
            gaps[0, row * step : row * step + len(values)] = False if lost is None else lost[row]
    if gaps is not None:
        poison.poison_where("dst", gaps)


def _hits(src0: Array, k_value: Array, mode: CmpMode, o: Ops) -> Array:
    """Which elements compare with the threshold of their row."""
    compare = np.greater if mode == CmpMode.GT else np.equal
    kind = o.src0.dtype
    if np.ndim(k_value) == 0:  # one number for all rows, as text may write it
        return compare(src0, kind.np.type(k_value))
    if _UNSIGNED(o):
        elements, threshold = _as_a5_compares(src0, k_value, kind)
    else:  # the threshold is a signed integer, converted to the type of the elements
        signed = dt.dtype(f"i{o.k_value.dtype.bits}")
        elements, threshold = src0, convert(k_value.view(signed.np), signed, kind)
    return compare(elements, threshold[:, None])


def _as_a5_compares(src0: Array, k_value: Array, kind: DType) -> tuple[Array, Array]:
    """a5 compares halves as f32 and everything else as unsigned 32-bit integers."""
    if kind is dt.f16:
        return to_float32(src0, kind), to_float32(k_value.astype(np.uint16).view("i2"), dt.i16)
    if kind is dt.f32:
        elements = convert(src0, dt.f32, dt.i32, saturation=SaturationMode.OFF).view("u4")
    else:
        elements = src0.view(kind.uint).astype(np.uint32)
    return elements, k_value.astype(np.uint32)


def _store_numbers(
    dst: Array, cdst: Array, hits: Array, offset: int, o: Ops, poison: Poison, beyond: Beyond
) -> None:
    """Store the numbers of the hits; what lies past them in a row is undefined."""
    rows, cols = hits.shape
    counts = hits.sum(axis=1)
    if counts.max(initial=0) > o.dst.cols:
        row = int(np.argmax(counts))
        error = Refused(
            "hits",
            "the hits of a row fit into a row of dst",
            got=[("row", row), ("hits", int(counts[row])), ("dst.cols", o.dst.cols)],
            fix="give dst as many columns as src0 has valid ones",
        )
        rest = np.arange(dst.size, (rows - 1) * o.dst.cols + int(counts[-1]))
        beyond.lead("dst", rest, error, "own", "the rest of a row runs into the next one")
    chunk = 128 if o.src0.itemsize == 1 else 64
    pitch = ceil_to(cols, chunk) if _UNSIGNED(o) else o.src0.cols
    numbers = offset + np.arange(rows)[:, None] * pitch + np.arange(cols)
    row, col = np.nonzero(hits)
    place = row * o.dst.cols + (np.cumsum(hits, axis=1) - 1)[row, col]
    found = (numbers[row, col] & 0xFFFF_FFFF).astype(np.uint32).view(dst.dtype)
    inside = place < dst.size
    # Of several numbers for one place, that of the later row stays.
    dst[place[inside]] = found[inside]
    if not inside.all():
        beyond.write("dst", place[~inside], found[~inside])
    cdst[...] = counts
    behind = np.ones(dst.shape, np.bool_)
    behind[place[inside]] = False
    poison.poison_where("dst", behind[None])


# ---- TGATHERB ------------------------------------------------------------------------------------


def _blocks(o: Any) -> int:
    """32-byte blocks per row of dst; the simulator leaves a part of one out."""
    whole, part = divmod(o.dst.vc, per_block(o.dst))
    return whole + (part > 0 and o.target.is_device)


def _offsets_read(o: Any) -> int:
    """Kirin reads eight offsets at a time, needed or not."""
    return ceil_to(_blocks(o), 8) if _ON_KIRIN(o) else _blocks(o)


def _whole_blocks(o: Any) -> Lookup | None:
    """The blocks of rows that end with one."""
    if not o.target.is_device or o.dst.vc % per_block(o.dst):
        return None
    last = o.src.numel * o.src.itemsize - BLOCK_BYTES
    return Lookup(
        "dst", "src", "offset", BLOCK_BYTES, 1, last + 1, is_unsigned=True, aligned=BLOCK_BYTES
    )


@insn(
    out("dst"),
    src("src", view=View.STORAGE, carries=True),
    src(
        "offset",
        view=lambda o: (o.dst.vr, _offsets_read(o)),
        steers=True,
        note="byte offsets, one per block",
    ),
    types=types(**narrow(COPIED), ids="SA-0182"),
    rules=[
        located("Vec", "dst", "src", "offset"),
        same_size("dst", "src", otherwise=on_devices("blocks are cut into elements of dst")),
        must("offset-type")(
            "offset is u32",
            lambda o: o.offset.dtype is dt.u32,
            otherwise=Told("its words are read as u32", lambda o: o.offset.itemsize == 4),
        ),
        plain("offset", id="offset-layout"),
        plain("dst", id="SA-0183", on="a2a3 cpu"),
        plain("dst", on=A5_FAMILY),
        must("offset-columns")(
            "offset has a valid column for each 32-byte block of a row of dst",
            lambda o: o.offset.vc >= _blocks(o) and o.offset.rows >= o.dst.vr,
        ),
        must("whole-registers", "a2a3")(
            "the valid columns of dst are a multiple of 256 bytes",
            lambda o: o.dst.vc % lanes(o.dst) == 0,
            "round the valid columns up",
        ),
        must("tail-bytes", A5_FAMILY)(
            "dst with more 256-byte pieces per row than rows: its valid columns have a multiple of "
            "4 bytes",
            lambda o: (
                -(-o.dst.cols // lanes(o.dst)) <= o.dst.rows or o.dst.vc * o.dst.itemsize % 4 == 0
            ),
        ),
        must("columns", "a5")("dst has at least one valid column", lambda o: o.dst.vc > 0),
        must("eight-offsets", KIRIN)(
            "offset has columns for eight offsets at a time, the last ones needed or not",
            lambda o: o.offset.cols >= _offsets_read(o),
        ),
        rows_16bit("dst"),
        separate("dst", "src", "offset"),
    ],
    asm=Asm(ins=("src", "offset")),
    example={"dst": "Vec {T} 4x256", "src": "Vec {T} 4x256", "offset": "Vec u32 4x32 = 32"},
    more_examples=[
        {"dst": "Vec f16 1x512", "src": "Vec f16 4x256", "offset": "Vec u32 1x32 = 64"},
    ],
    cost=GATHER,
    idiom=_whole_blocks,
)
def TGATHERB(dst: Array, src: Array, offset: Array, ops: Ops, poison: Poison) -> None:
    """Copy 32-byte blocks of src, each from a byte offset of its own, to dst.

    The valid region of dst governs: block b of row r comes from `offset[r, b]` bytes past the
    start of src. Offsets are multiples of 32 and lie inside src. On a2a3 rows have whole 256 bytes.
    The permissive profile takes any offset, leaves a block alone that would end past src, and
    copies whole blocks only.
    """
    blocks = _blocks(ops)
    data, offset = src.view(np.uint8), offset.view(np.uint32)
    inside = offset <= data.size - BLOCK_BYTES
    wrong = ~inside | (offset % BLOCK_BYTES != 0)
    if wrong.any() and ops.target.is_device:
        row, col = np.argwhere(wrong)[0]
        raise Refused(
            "offset-range",
            f"offsets are multiples of 32 and lie inside the {data.size} bytes of src",
            got=[(f"offset[{row}, {col}]", int(offset[row, col]))],
            fix="offsets count bytes, one per 32-byte block",
        )
    starts = np.where(inside, offset, 0)[:, :blocks].astype(np.int64)
    found = starts[:, :, None] + np.arange(BLOCK_BYTES)
    taken = np.repeat(inside[:, :blocks], per_block(ops.dst), axis=1)[:, : dst.shape[1]]
    asked = np.zeros(data.size, np.bool_)
    asked[found[inside[:, :blocks]]] = True
    poison.demand_where("src", np.logical_or.reduce(asked.reshape(src.size, -1), axis=1))
    copied = data[found].reshape(dst.shape[0], -1).view(dst.dtype)
    before = poison.undefined("dst")
    width = taken.shape[1]
    np.copyto(dst[:, :width], copied[:, :width], where=taken)
    if before is not None and not taken.all():  # what is not copied stays as it was
        before[:, :width] &= ~taken
        poison.poison_where("dst", before)
