"""Generators, histograms and scalar access: TCI, TTRI, TRANDOM, THISTOGRAM, GETVAL, SETVAL."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.convert import element, number
from ptokit.base.dtypes import DType, u8, u32
from ptokit.base.enums import Choice
from ptokit.base.layout import Array
from ptokit.isa.costs import GENERATE
from ptokit.isa.devices import DEVICES, on
from ptokit.isa.facts import Ops
from ptokit.isa.rules import located, must, row_major, separate, static_valid_fits
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, Rule, insn, out, rule, scalar, src, tmp, types


class HistByte(Choice):
    """HistByte."""

    BYTE_0 = 0
    BYTE_1 = 1
    BYTE_2 = 2
    BYTE_3 = 3


# ---- sequences and triangles -------------------------------------------------------------------

# The vector form on A2/A3 builds its base sequence in tmp: three vectors of 4-byte elements, or
# seven of 2-byte ones.
_TCI_SCRATCH = {4: 768, 2: 1792}
_COUNTS_ALONE = on("a2a3")  # without tmp the scalar unit counts


@insn(
    out("dst", view=lambda o: (1, o.dst.vc)),
    scalar("start", note="converted to the element type of dst"),
    tmp("tmp", optional=True),
    attrs=[
        Attr("T", DType, None, "element type of dst, if given"),
        Attr("descending", bool, False, "count down instead of up"),
    ],
    # The event table says S for every form, but the vector forms run on V.
    pipe=lambda o: Pipe.S if _COUNTS_ALONE(o) and o.tmp is None else Pipe.V,
    ops={"TCI": Pipe.S},
    types=types(a2a3="i16 u16 i32 u32", a5="i16 u16 i32 u32", kirin="i16 u16 i32 u32"),
    rules=[
        must("SA-0140")(
            "dst has one row",
            lambda o: o.dst.rows == 1,
            "declare dst as 1 x Cols and fill further rows one by one",
        ),
        must("SA-0139")(
            "the template type T is the element type of dst",
            lambda o: o.attrs["T"] is None or o.attrs["T"] is o.dst.dtype,
            "leave T out",
        ),
        must("SA-0046", "a2a3")(
            "elements of dst are 2 or 4 bytes wide", lambda o: o.dst.itemsize in (2, 4)
        ),
        *static_valid_fits("dst", "tmp"),
        located("Vec", "dst", "tmp", on=DEVICES),
        must("tmp-size", "a2a3")(
            "tmp has 4-byte elements and 768 bytes for a 4-byte dst, 1792 for a 2-byte one",
            lambda o: (
                o.tmp is None
                or (o.tmp.itemsize == 4 and o.tmp.nbytes >= _TCI_SCRATCH.get(o.dst.itemsize, 0))
            ),
            "declare tmp as a 1x512 tile of a 4-byte type",
        ),
        separate("tmp", "dst", on="a2a3"),
    ],
    asm=Asm(
        ins=("start",),
        tmp=frozenset(),
        attrs={"descending": "descending"},
        place={"descending": "ins"},
    ),
    example={"dst": "Vec {T} 1x64", "start": "3", "tmp": "Vec i32 1x512"},
    cpp=Cpp(("dst tmp dst.T @descending", "dst dst.T @descending")),
    cost=GENERATE,
)
def TCI(dst: Array, start: float, tmp: Array | None, descending: bool, ops: Ops) -> None:
    """Write consecutive integers into a row: start, start + 1, ... or start, start - 1, ...

    Row 0 of dst is filled up to its valid columns; numbers beyond the type wrap. Without tmp the
    A2/A3 targets count in the scalar unit, element by element; with it they use the vector unit, as
    all others always do. An event that waits for TCI must name that pipe.
    """
    first = element(start, ops.dst.dtype)
    steps = np.arange(dst.shape[1]).astype(dst.dtype)
    dst[...] = first - steps if descending else first + steps


@insn(
    out("dst"),
    scalar("diagonal", note="an int; may be negative or lie outside the tile"),
    attrs=[Attr("isUpperOrLower", int, 0, "0: lower triangle, 1: upper triangle")],
    types=types(
        a2a3="i32 i16 u32 u16 f16 f32",
        a5="i64 u64 i32 i16 i8 u32 u16 u8 f16 f32 bf16",
        kirin="i32 i16 i8 u32 u16 u8 f16 f32",
    ),
    rules=[
        *static_valid_fits("dst"),
        row_major("dst"),
        located("Vec", "dst"),
        must("triangle", "a2a3")(
            "isUpperOrLower is 0 or 1", lambda o: o.attrs["isUpperOrLower"] in (0, 1)
        ),
        must("one-vector", "a5")(
            "64-bit rows have at most 64 valid columns",
            lambda o: o.dst.itemsize < 8 or o.dst.vc <= 64,
            "split the tile by columns",
        ),
    ],
    asm=Asm(
        forms=frozenset({"l1", "l2"}),
        attrs={"isUpperOrLower": "upperOrLower"},
        place={"isUpperOrLower": "ins"},
    ),
    cpp=Cpp(("dst @isUpperOrLower",)),
    cost=GENERATE,
)
def TTRI(dst: Array, diagonal: int, isUpperOrLower: int) -> None:
    """Write a triangular matrix of ones and zeros.

    The lower triangle has ones where column <= row + diagonal, the upper one where
    column >= row + diagonal: `diagonal` 0 is the main diagonal, which belongs to both. Only the
    valid region is written.
    """
    row = np.arange(dst.shape[0])[:, None] + int(diagonal)
    col = np.arange(dst.shape[1])
    dst[...] = (col >= row if isUpperOrLower else col <= row).astype(dst.dtype)


# ---- random numbers ----------------------------------------------------------------------------

_COUNTER = tuple(f"counter{i}" for i in range(4))
_LANES = 64  # counters used per step; each makes four numbers
_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1


def _philox(counter: list[Array], key: list[int], rounds: int) -> list[Array]:
    """Run Philox4x32 on arrays of counter words, held in 64 bits so that products fit."""
    c0, c1, c2, c3 = counter
    k0, k1 = (np.uint64(k & _MASK32) for k in key)
    low, shift = np.uint64(_MASK32), np.uint64(32)
    for _ in range(rounds):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = p1 >> shift ^ c1 ^ k0, p1 & low, p0 >> shift ^ c3 ^ k1, p0 & low
        k0, k1 = k0 + np.uint64(0x9E3779B9) & low, k1 + np.uint64(0xBB67AE85) & low
    return [c0, c1, c2, c3]


def _counters(base: int, steps: Array) -> list[Array]:
    """The four words of the 128-bit counters base + steps."""
    low = np.uint64(base & _MASK64) + steps
    high = np.uint64(base >> 64 & _MASK64) + (low < steps)
    mask, shift = np.uint64(_MASK32), np.uint64(32)
    return [low & mask, low >> shift, high & mask, high >> shift]


@insn(
    out("dst"),
    *(scalar(name) for name in ("key0", "key1", *_COUNTER)),
    attrs=[Attr("Rounds", int, 10, "7 or 10")],
    types=types(a5="i32 u32", cpu="i32 u32"),
    rules=[
        rule("rounds", "Rounds is 7 or 10", lambda o: o.attrs["Rounds"] in (7, 10)),
        *static_valid_fits("dst"),
        row_major("dst"),
        located("Vec", "dst", on="a5"),
    ],
    asm=Asm(attrs={"Rounds": "rounds"}, place={"Rounds": "ins"}),
    cpp=Cpp(
        arrays={
            "TRandomKey": ("key0", "key1"),
            "TRandomCounter": ("counter0", "counter1", "counter2", "counter3"),
        }
    ),
    cost=GENERATE,
)
def TRANDOM(
    dst: Array,
    key0: int,
    key1: int,
    counter0: int,
    counter1: int,
    counter2: int,
    counter3: int,
    Rounds: int,
) -> None:
    """Fill a tile with random 32-bit words (Philox4x32, 7 or 10 rounds).

    The call is `TRANDOM(dst, key, counter)` with two key words and four counter words, word 0 the
    least significant. Each 128-bit counter value makes four neighbouring elements. A row takes its
    counters in steps of 64, one step per 256 columns; behind the last step of a row the counter
    advances by (valid columns - 1) % 64 + 1, so that rows may share counters or skip some. The
    caller's counter does not change: to continue the stream, advance it by the same total.
    """
    rows, cols = dst.shape
    chunks = -(-cols // (4 * _LANES))
    per_row = _LANES * (chunks - 1) + (cols - 1) % _LANES + 1
    steps = np.arange(rows)[:, None] * per_row + np.arange(chunks * _LANES)
    words = (int(c) & _MASK32 for c in (counter0, counter1, counter2, counter3))
    base = sum(word << 32 * i for i, word in enumerate(words))
    made = _philox(_counters(base, steps.astype(np.uint64)), [int(key0), int(key1)], Rounds)
    numbers = np.stack(made, axis=-1).reshape(rows, -1)[:, :cols]
    dst[...] = numbers.astype(np.uint32).view(dst.dtype)


# ---- histogram ---------------------------------------------------------------------------------

_BINS = 256


def _filters(o: Any) -> int:
    """How many bytes above the counted one decide whether an element counts."""
    return o.src.itemsize - 1 - o.attrs["byte"]


def _filter_bytes(o: Any) -> tuple[int, int]:
    if o.src.itemsize == 2:
        return o.src.vr * _filters(o), 1  # one byte per row of src; none for the high byte
    return _filters(o), 1


def _histogram_rules() -> list[Rule]:
    on = "a5 kirin9030"
    return [
        must("histogram-types")(
            "dst is u32 and idx u8", lambda o: (o.dst.dtype, o.idx.dtype) == (u32, u8)
        ),
        must("byte")(
            "the byte to count lies in the element: BYTE_0 or BYTE_1 of u16, any of u32",
            lambda o: 0 <= o.attrs["byte"] < o.src.itemsize,
        ),
        *static_valid_fits("dst", "src", "idx"),
        row_major("dst", "src"),
        located("Vec", "dst", "src", "idx", on=on),
        must("bins")(
            "dst has 256 columns and a row for every valid row of src",
            lambda o: o.dst.cols >= _BINS and o.dst.rows >= o.src.vr,
        ),
        rule("bin-pitch", "rows of dst are 256 elements apart", lambda o: o.dst.cols == _BINS, on),
        must("u16-filter", on)(
            "the idx of a u16 src is one column, column-major without an inner box",
            lambda o: o.src.itemsize != 2 or (o.idx.layout == "DN" and o.idx.cols == 1),
            "declare idx with BLayout.ColMajor and Cols = 1",
        ),
        must("u32-filter", on)(
            "the idx of a u32 src is row-major, 3 - byte rows of src.Cols columns",
            lambda o: (
                o.src.itemsize != 4
                or o.attrs["byte"] == HistByte.BYTE_3
                or (o.idx.is_row_major, o.idx.rows, o.idx.cols) == (True, _filters(o), o.src.cols)
            ),
        ),
    ]


@insn(
    out("dst", view=lambda o: (o.src.vr, _BINS)),
    src("src"),
    src("idx", view=_filter_bytes),
    attrs=[Attr("byte", HistByte, HistByte.BYTE_1, "which byte is counted; BYTE_0 is the lowest")],
    types=types("src", a5="u16 u32", kirin9030="u16 u32", cpu="u16 u32"),
    rules=_histogram_rules(),
    asm=Asm(forms=frozenset({"l2"}), attrs={"byte": "isMSB"}),
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


# ---- scalar access -----------------------------------------------------------------------------


def _at(o: Any) -> slice:
    return slice(int(o.offset.value), int(o.offset.value) + 1)


def _scalar_access(tile: str) -> list[Rule]:
    return [
        located("Vec", tile),
        must("offset")(
            f"offset lies in 0 .. Rows * Cols - 1 of {tile}",
            lambda o: 0 <= o.offset.value < o[tile].numel,
        ),
    ]


@insn(
    src("src", view=_at),
    scalar("offset", note="element offset in memory order"),
    pipe=Pipe.S,
    ops={"SCALAR": Pipe.S},
    rules=_scalar_access("src"),
    asm=Asm(name="tgetval", forms=frozenset({"l2"})),
    returns="src",
    cpp=Cpp(method="GetValue"),
)
def GETVAL(src: Array, offset: int, ops: Ops) -> float:
    """Read one element in the scalar unit and return it as a Python number.

    `tile.GetValue(offset)` is the usual spelling. The offset counts elements in memory order from
    the base of the tile, whatever its layout and valid region. The read happens on pipe S: wait for
    the producer first (V to S, MTE2 to S).
    """
    return number(src[0], ops.src.dtype)


@insn(
    out("dst", view=_at),
    scalar("offset", note="element offset in memory order"),
    scalar("val", note="converted to the element type of dst"),
    pipe=Pipe.S,
    ops={"SCALAR": Pipe.S},
    rules=_scalar_access("dst"),
    asm=Asm(
        name="tsetval",
        ins=("offset", "val"),
        forms=frozenset({"l2"}),
        order=("dst", "offset", "val"),
    ),
    cpp=Cpp(method="SetValue"),
)
def SETVAL(dst: Array, offset: int, val: float, ops: Ops) -> None:
    """Write one element in the scalar unit; all others keep their value.

    `tile.SetValue(offset, value)` is the usual spelling. The offset counts elements in memory
    order. The write happens on pipe S: order it against the other pipes on both sides.
    """
    dst[0] = element(val, ops.dst.dtype)
