"""THISTOGRAM: how often each value of a byte occurs in a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.dtypes import u8, u32
from ptokit.base.enums import HistByte
from ptokit.base.layout import Array, AxisMap
from ptokit.isa.rules import behind, located, must, row_major, static_valid_fits
from ptokit.isa.spec import Asm, Attr, Cpp, Extent, insn, out, src, types

_BINS = 256
_DEVICES = "a5 kirin9030"
_PACKED = behind(
    "rows of bins follow one another from the start of dst on",
    lambda o: o.src.vr * _BINS <= o.dst.numel,
)


def _filters(o: Any) -> int:
    """How many bytes above the counted one decide whether an element counts."""
    return o.src.itemsize - 1 - o.attrs["byte"]


def _filter_bytes(o: Any) -> tuple[int, int]:
    if o.src.itemsize == 2:
        return o.src.vr * _filters(o), 1  # one byte per row of src; none for the high byte
    return _filters(o), 1


def _bins(o: Any) -> Extent:
    """The bins of every row; devices put the rows 256 words apart, whatever dst is."""
    size = o.src.vr, _BINS
    return AxisMap(size, (_BINS, 1), (0,), (1,)) if o.target.is_device else size


@insn(
    out("dst", view=_bins),
    src("src"),
    src("idx", view=_filter_bytes),
    attrs=[Attr("byte", HistByte, HistByte.BYTE_1, "which byte is counted; BYTE_0 is the lowest")],
    types=types("src", a5="u16 u32", kirin9030="u16 u32", cpu="u16 u32"),
    rules=[
        must("histogram-types")(
            "dst is u32 and idx u8", lambda o: (o.dst.dtype, o.idx.dtype) == (u32, u8)
        ),
        must("byte")(
            "the byte to count lies in the element: BYTE_0 or BYTE_1 of u16, any of u32",
            lambda o: 0 <= o.attrs["byte"] < o.src.itemsize,
        ),
        *static_valid_fits("dst", "src", "idx"),
        row_major("dst", "src"),
        located("Vec", "dst", "src", "idx", on=_DEVICES),
        must("bins")(
            "dst has 256 columns and a row for every valid row of src",
            lambda o: o.dst.cols >= _BINS and o.dst.rows >= o.src.vr,
            otherwise=_PACKED,
        ),
        must("bin-pitch", _DEVICES)(
            "rows of dst are 256 elements apart",
            lambda o: o.dst.cols == _BINS,
            otherwise=_PACKED,
        ),
        must("u16-filter", _DEVICES)(
            "the idx of a u16 src is one column, column-major without an inner box",
            lambda o: o.src.itemsize != 2 or (o.idx.layout == "DN" and o.idx.cols == 1),
            "declare idx with BLayout.ColMajor and Cols = 1",
        ),
        must("u32-filter", _DEVICES)(
            "the idx of a u32 src is row-major, 3 - byte rows of src.Cols columns",
            lambda o: (
                o.src.itemsize != 4
                or o.attrs["byte"] == HistByte.BYTE_3
                or (o.idx.is_row_major, o.idx.rows, o.idx.cols) == (True, _filters(o), o.src.cols)
            ),
        ),
    ],
    asm=Asm(forms=frozenset({"l2"}), attrs={"byte": "byte isMSB"}, types={"byte": "i32"}),
    example={
        "dst": "Vec u32 16x256",
        "src": "Vec u16 16x64",
        "idx": "Vec u8 32x1 DN",
        "byte": "BYTE_1",
    },
    more_examples="""
        dst            | src           | idx         | byte
        Vec u32 16x256 | Vec u32 16x64 | Vec u8 2x64 | BYTE_1
    """,
    cpp=Cpp(("@byte",)),
)
def THISTOGRAM(dst: Array, src: Array, idx: Array, byte: HistByte) -> None:
    """Count one byte of every element, row by row, into a cumulative histogram of 256 bins.

    dst[r, b] becomes the number of elements of row r whose byte is at most b; dst[r, 255] is the
    number of elements counted. Only elements whose higher bytes equal the filter in idx count. For
    u16 and BYTE_0 the filter of row r is idx[r, 0]. For u32 one filter serves all rows: idx[0, 0]
    is the required byte 3, idx[1, 0] byte 2, idx[2, 0] byte 1, as far as they lie above the
    counted byte. Repeated with growing prefixes this is a radix select.
    """
    counted = src >> src.dtype.type(8 * byte) & src.dtype.type(0xFF)
    kept = np.ones(src.shape, np.bool_)
    if src.itemsize == 2 and idx.size:
        kept = src >> np.uint16(8) == idx
    elif src.itemsize == 4:
        for row, wanted in enumerate(idx[:, 0]):
            kept &= src >> np.uint32(8 * (3 - row)) & np.uint32(0xFF) == wanted
    bins = np.arange(src.shape[0])[:, None] * _BINS + counted
    counts = np.bincount(bins[kept], minlength=dst.size).reshape(dst.shape)
    dst[...] = np.cumsum(counts, axis=1)
