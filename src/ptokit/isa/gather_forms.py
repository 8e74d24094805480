"""Regions and rules of the three forms of TGATHER: by index, by a fixed pattern, by comparison.

The forms share a name and little else, so every rule belongs to one of them.
"""

from __future__ import annotations

from typing import Any

from ptokit.base import dtypes as dt
from ptokit.base.enums import CmpMode, GatherAxis, TileType
from ptokit.isa.devices import A5_FAMILY, KIRIN, on
from ptokit.isa.lane_masks import count_selected, start_of, step_of
from ptokit.isa.rules import behind, must, on_devices, where
from ptokit.isa.spec import Extent, Rule, View, rule
from ptokit.isa.vector_rules import ceil_to, lanes

COMPARING = "a2a3 a5 cpu"  # where elements can be gathered by comparison
_WORDS = (dt.i32, dt.u32)
_HALF_WORDS = (dt.i16, dt.u16)
_KEEPS_ROWS_APART = on("a5")  # in kernels of 64-bit elements
_READS_ON = on("a2a3 a5")  # when rows are gathered, behind the last one

# ---- forms and regions ---------------------------------------------------------------------------


def by_index(o: Any) -> bool:
    return o.src1 is not None


def by_comparison(o: Any) -> bool:
    return o.k_value is not None


def by_pattern(o: Any) -> bool:
    return o.src1 is None and o.k_value is None


def by_columns(o: Any) -> bool:
    return by_pattern(o) and o.attrs["gatherType"] == GatherAxis.GATHER_ROW


def by_rows(o: Any) -> bool:
    return by_pattern(o) and o.attrs["gatherType"] == GatherAxis.GATHER_COL


def row_step(o: Any) -> int:
    """Elements from one gathered row to the next; 64-bit kernels keep rows apart."""
    wide = o.src0.itemsize == 8 and _KEEPS_ROWS_APART(o)
    return o.dst.cols // step_of(o) if wide else count_selected(o, o.src0.vc)


def _gathered(o: Any) -> int:
    """Elements of the storage of dst that a gather of columns reaches."""
    if o.src0.vr == 0:
        return 0
    return (o.src0.vr - 1) * row_step(o) + count_selected(o, o.src0.vc)


def gathered_rows(o: Any) -> int:
    return o.src0.vr // step_of(o) if o.target.is_device else count_selected(o, o.src0.vr)


def dst_region(o: Any) -> View | Extent:
    if by_index(o):
        return View.VALID
    if by_comparison(o):
        return slice(0, o.src0.vr * o.dst.cols)
    return slice(0, _gathered(o)) if by_columns(o) else (gathered_rows(o), o.src0.vc)


def scratch_region(o: Any) -> Extent:
    """What a2a3 uses of tmp, from its start on: whatever its size and type are."""
    words = 0
    if by_comparison(o):  # a bitmap, the numbers of all elements, the thresholds
        words = o.tmp.numel + o.src0.numel * o.dst.itemsize + o.src0.rows * o.src0.itemsize
    elif by_index(o) and o.dst.itemsize == 2:  # byte offsets, in the rows of dst
        words = o.dst.vr * o.dst.cols * 4
    return slice(0, -(-words // o.tmp.itemsize))


def src0_region(o: Any) -> View:
    if not by_index(o):
        return View.VALID
    return View.WHOLE if o.src0.layout == "ND" else View.STORAGE


def garbage_rows(o: Any) -> tuple[slice, slice] | None:
    """Some go on for as many rows as src0 has; the surplus comes from behind its rows."""
    first = gathered_rows(o) if by_rows(o) and _READS_ON(o) else o.src0.vr
    return None if first == o.src0.vr else (slice(first, o.src0.vr), slice(0, o.src0.vc))


# ---- rules ---------------------------------------------------------------------------------------

A5_DATA = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f8e4m3 f8e5m2 hif8"
_A5_TYPES = frozenset(dt.dtype(name) for name in A5_DATA.split())


def _is_common(kind: dt.DType) -> bool:
    """Whether all targets have the type: an integer of up to 32 bits, f16 or f32."""
    return (kind.is_integer and kind.bits in (8, 16, 32)) or kind in (dt.f16, dt.f32)


INDEX_RULES = where(by_index, prefix="by index: ")(
    must("SA-0050")(
        "dst and src0 have the same element type", lambda o: o.dst.dtype is o.src0.dtype
    ),
    must("index-cover")(
        "src1 has an index for every element of the valid region of dst",
        lambda o: o.src1.rows >= o.dst.vr and o.src1.cols >= o.dst.vc,
        otherwise=behind("what lies past src1, in its rows, counts as indices"),
    ),
    rule("SA-0045", "the indices are i32 or u32", lambda o: o.src1.dtype in _WORDS, "a2a3 cpu"),
    must("index-tmp-type", "a2a3")(
        "tmp has the element type of the indices", lambda o: o.tmp.dtype is o.src1.dtype
    ),
    must("index-tmp-region", "a2a3")(
        "tmp has the valid region of src1",
        lambda o: o.tmp.vr == o.src1.vr and o.tmp.vc == o.src1.vc,
        otherwise="only the address of tmp counts",
    ),
    must("index-tmp-size", "a2a3")(
        "for 2-byte elements tmp holds an element for each one of the valid rows of dst",
        lambda o: o.dst.itemsize != 2 or o.tmp.numel >= o.dst.vr * o.dst.cols,
        "declare tmp with the type of the indices and the shape of dst",
        behind("what lies past tmp is overwritten"),
    ),
    must("SA-0047", "a5")(
        "dst has elements of 1, 2, 4 or 8 bytes that are no scales or 4-bit codes",
        lambda o: o.dst.dtype in _A5_TYPES,
    ),
    must("index-type", A5_FAMILY)(
        "the indices are 16-bit integers for 1-byte elements, 16- or 32-bit ones for 2-byte "
        "elements, 32-bit ones for wider elements",
        lambda o: (
            (o.src1.dtype in _WORDS and o.dst.itemsize != 1)
            or (o.src1.dtype in _HALF_WORDS and o.dst.itemsize <= 2)
        ),
    ),
    must("i64-columns", "a5")(
        "with 64-bit elements dst has at most 64 valid columns",
        lambda o: o.dst.itemsize != 8 or o.dst.vc <= 64,
    ),
    must("byte-elements", KIRIN)(
        "elements have 2 or 4 bytes", lambda o: o.dst.itemsize != 1, "convert with TCVT first"
    ),
)

_BY_SOURCE = behind(
    "rows are copied as long as src0 has some; as many more as it has valid ones become undefined, "
    "also past dst",
    lambda o: o.dst.rows >= o.src0.vr,
)
PATTERN_RULES: list[Rule] = [
    *where(by_pattern, prefix="by pattern: ")(
        must("SA-0180")(
            "dst and src0 are Vec tiles", lambda o: o.dst.loc == o.src0.loc == TileType.Vec
        ),
        must("SA-0178")(
            "dst and src0 are row-major", lambda o: o.dst.is_row_major and o.src0.is_row_major
        ),
        must("SA-0179")(
            "elements of dst and src0 have the same size",
            lambda o: o.dst.itemsize == o.src0.itemsize,
        ),
        must("SA-0181", "a2a3")(
            "elements of src0 have 2 or 4 bytes", lambda o: o.src0.itemsize in (2, 4)
        ),
        must("SA-0128", "a5")(
            "src0 has an element type of 8 to 64 bits that is no scale or 4-bit code",
            lambda o: o.src0.dtype in _A5_TYPES,
        ),
        must("pattern-64bit", "a5")(
            "of 64-bit elements columns are selected, at most 64 of them",
            lambda o: o.src0.itemsize != 8 or (by_columns(o) and o.src0.vc // step_of(o) <= 64),
        ),
        must("pattern-type", KIRIN)(
            "src0 is an 8-, 16- or 32-bit integer, f16 or f32", lambda o: _is_common(o.src0.dtype)
        ),
    ),
    *where(by_columns, prefix="by a pattern of columns: ")(
        must("PA-0009", "a2a3 cpu")(
            "all columns of dst are valid",
            lambda o: o.dst.vc == o.dst.cols,
            otherwise=on_devices(
                "the selected elements of all rows follow one another from the start of dst on"
            ),
        ),
        must("pattern-room")(
            "dst holds the selected elements",
            lambda o: o.dst.numel >= _gathered(o),
            otherwise=behind("the selected elements go on past dst"),
        ),
    ),
    *where(by_rows, prefix="by a pattern of rows: ")(
        must("pattern-rows", "a2a3")(
            "src0 has a whole number of times the valid rows of dst",
            lambda o: o.src0.vr == o.dst.vr * step_of(o),
            otherwise=_BY_SOURCE,
        ),
        must("row-offset", "a2a3 a5")(
            "the last selected row starts within 65535 elements",
            lambda o: (
                (step_of(o) * (gathered_rows(o) - 1) + start_of(o)) * o.src0.row_stride <= 65535
            ),
        ),
        must("row-room", "a2a3 a5")(
            "dst has as many rows as src0 has valid ones, and src0 that many for every selected "
            "one, because the loop runs over all of them",
            lambda o: (
                o.dst.rows >= o.src0.vr and o.src0.rows > step_of(o) * (o.src0.vr - 1) + start_of(o)
            ),
            "give both tiles more rows",
            _BY_SOURCE,
        ),
    ),
    must("pattern-axis", KIRIN)(
        "a pattern selects columns: the axis is ignored here", lambda o: not by_rows(o)
    ),
]


def _bitmap_row(o: Any) -> int:
    """Bytes per row of the bitmap of hits that a2a3 keeps in tmp."""
    return ceil_to(o.src0.vc, lanes(o.src0)) // 8


def _thresholds(o: Any) -> bool:
    """Whether the threshold is a tile with one for each row, not a number for all."""
    return o.k_value.kind != "scalar"


COMPARISON_RULES: list[Rule] = [
    must("compare-available", KIRIN)(
        "comparing exists on a2a3 and a5 only", lambda o: not by_comparison(o)
    ),
    *where(by_comparison, prefix="comparing: ")(
        must("compare-location", "a2a3 a5")(
            "dst and src0 are Vec tiles", lambda o: o.dst.loc == o.src0.loc == TileType.Vec
        ),
        must("compare-mode", COMPARING)(
            "cmpMode is GT or EQ", lambda o: o.attrs["cmpMode"] in (CmpMode.GT, CmpMode.EQ)
        ),
        must("compare-result", COMPARING)(
            "dst is i32 or u32, cdst a 32-bit integer",
            lambda o: o.dst.dtype in _WORDS and o.cdst.dtype in _WORDS,
        ),
        must("compare-source", "a2a3")(
            "src0 is f16 or f32 or, with EQ, i32",
            lambda o: (
                o.src0.dtype in (dt.f16, dt.f32)
                or (o.src0.dtype is dt.i32 and o.attrs["cmpMode"] == CmpMode.EQ)
            ),
        ),
        must("compare-threshold", "a2a3", _thresholds)(
            "k_value has integers as wide as the elements of src0",
            lambda o: o.k_value.dtype.is_integer and o.k_value.itemsize == o.src0.itemsize,
        ),
        must("compare-source", "a5")(
            "src0 is an 8-, 16- or 32-bit integer, f16 or f32", lambda o: _is_common(o.src0.dtype)
        ),
        must("compare-threshold", "a5", _thresholds)(
            "k_value is u16 or u32", lambda o: o.k_value.dtype in (dt.u16, dt.u32)
        ),
        must("compare-columns", "a5")(
            "1-byte elements come in 128 valid columns, 2-byte ones in 64",
            lambda o: o.src0.itemsize > 2 or o.src0.vc % (128 // o.src0.itemsize) == 0,
        ),
        must("compare-u16", "a5")(
            "u16 elements compare with EQ only",
            lambda o: o.src0.dtype is not dt.u16 or o.attrs["cmpMode"] != CmpMode.GT,
            "convert to u32 with TCVT first",
        ),
        must("compare-rows", COMPARING)(
            "dst has a row, cdst and k_value an element, for each valid row of src0",
            lambda o: (
                min(o.dst.rows, o.cdst.numel) >= o.src0.vr
                and (not _thresholds(o) or o.k_value.numel >= o.src0.vr)
            ),
        ),
        must("compare-bitmap", "a2a3")(
            "tmp has as many rows as src0 has valid ones, and a bit per element, in whole "
            "registers, in the bytes of Cols",
            lambda o: o.tmp.rows >= o.src0.vr and o.tmp.cols >= _bitmap_row(o),
        ),
        must("compare-scratch", "a2a3")(
            "tmp has Rows * Cols bytes for the bitmap, then an index per element of src0, then a "
            "threshold per row",
            lambda o: (
                o.tmp.nbytes
                >= o.tmp.numel + o.src0.numel * o.dst.itemsize + o.src0.rows * o.src0.itemsize
            ),
            otherwise=behind("what lies past tmp is overwritten"),
        ),
    ),
]
