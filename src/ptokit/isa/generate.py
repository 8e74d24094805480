"""Tiles made of nothing: sequences, triangles and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dtypes import DType, f16, f32
from ptokit.base.enums import TileType
from ptokit.base.layout import Array, AxisMap
from ptokit.isa.costs import GENERATE
from ptokit.isa.devices import A5_FAMILY, DEVICES, on
from ptokit.isa.facts import Ops
from ptokit.isa.idioms import MOVES
from ptokit.isa.language import room
from ptokit.isa.pointwise import NUMBERS
from ptokit.isa.rules import (
    USED_AS_UB,
    Told,
    behind,
    located,
    must,
    on_devices,
    or_else,
    row_major,
    separate,
    static_valid_fits,
)
from ptokit.isa.scalars import element_of, signed, word
from ptokit.isa.spec import Asm, Attr, Cpp, Extent, Pipe, View, insn, out, rule, scalar, tmp, types

# ---- sequences and triangles -------------------------------------------------------------------

# The vector form on A2/A3 builds its base sequence in tmp: three vectors of 4-byte elements, or
# seven of 2-byte ones.
_TCI_SCRATCH = {4: 768, 2: 1792}
_COUNTED = "i16 u16 i32 u32"
_COUNTS_ALONE = on("a2a3")  # without tmp the scalar unit counts


def _sequence(o: Any) -> View | Extent:
    """The bytes of tmp that are used, from its start on: whatever its size and type are."""
    if not _COUNTS_ALONE(o) or o.dst.itemsize not in _TCI_SCRATCH:
        return View.WHOLE
    return slice(0, -(-_TCI_SCRATCH[o.dst.itemsize] // o.tmp.itemsize))


@insn(
    out("dst", view=lambda o: (1, o.dst.vc)),
    scalar("start", element_of("dst")),
    tmp("tmp", view=_sequence, optional=True),
    attrs=[
        Attr("T", DType, None, "element type of dst, if given"),
        Attr("descending", bool, False, "count down instead of up"),
    ],
    # The event table says S for every form, but the vector forms run on V.
    pipe=lambda o: Pipe.S if _COUNTS_ALONE(o) and o.tmp is None else Pipe.V,
    ops={"TCI": Pipe.S},
    types=types(
        a2a3=_COUNTED,
        a5=_COUNTED,
        kirin=_COUNTED,
        otherwise=Told(
            "numbers are counted in the type of dst",
            lambda o: _COUNTS_ALONE(o) and o.dst.dtype in (f16, f32),
        ),
    ),
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
            behind(
                "only the address of tmp counts, and what lies past it is overwritten",
                lambda o: o.tmp.nbytes >= _TCI_SCRATCH.get(o.dst.itemsize, 0),
            ),
        ),
        separate("tmp", "dst", on="a2a3"),
        room(
            lambda o: _TCI_SCRATCH.get(o.dst.itemsize, 0),
            "768 bytes for a 4-byte dst, 1792 for a 2-byte one",
        ),
    ],
    asm=Asm(
        ins=("start", "tmp"),
        called={"S": "start"},
        tmp=frozenset({"l2"}),
        attrs={"descending": "descending"},
        place={"descending": "outs"},
        supplied={"tmp": _COUNTS_ALONE},
    ),
    example={"dst": "Vec {T} 1x64", "start": "3", "tmp": "Vec i32 1x512"},
    idiom=lambda o: MOVES,
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


def _rows(o: Any) -> View | Extent:
    """The valid region; a device takes every tile for one of rows, RowStride elements apart."""
    if not o.target.is_device:
        return View.VALID
    size = o.dst.vr, min(o.dst.vc, 64) if o.dst.itemsize == 8 else o.dst.vc
    return size if o.dst.is_row_major else AxisMap(size, (o.dst.row_stride, 1), (0,), (1,))


@insn(
    out("dst", view=_rows, memory=TileType.Vec),
    scalar("diagonal", signed(32), note="may be negative or lie outside the tile"),
    attrs=[Attr("isUpperOrLower", int, 0, "0: lower triangle, 1: upper triangle")],
    types=types(**NUMBERS | {"a2a3": "i32 i16 u32 u16 f16 f32"}),
    rules=[
        *static_valid_fits("dst"),
        must("row-major")(
            "dst is row-major",
            lambda o: o.dst.is_row_major,
            "declare the tile with BLayout.RowMajor",
            on_devices("rows are written RowStride elements apart", *A5_FAMILY.split()),
        ),
        *or_else(USED_AS_UB, located("Vec", "dst")),
        must("triangle", "a2a3")(
            "isUpperOrLower is 0 or 1", lambda o: o.attrs["isUpperOrLower"] in (0, 1)
        ),
        must("one-vector", "a5")(
            "64-bit rows have at most 64 valid columns",
            lambda o: o.dst.itemsize < 8 or o.dst.vc <= 64,
            "split the tile by columns",
            "the columns past them are not written",
        ),
    ],
    asm=Asm(
        forms=frozenset({"l1", "l2"}),
        attrs={"isUpperOrLower": "upperOrLower"},
        place={"isUpperOrLower": "ins"},
    ),
    cpp=Cpp(("dst @isUpperOrLower",)),
    cost=GENERATE,
    idiom=lambda o: MOVES,
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
    *(scalar(name, word(32)) for name in ("key0", "key1", *_COUNTER)),
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
def TRANDOM(dst: Array, *words: int, Rounds: int) -> None:
    """Fill a tile with random 32-bit words (Philox4x32, 7 or 10 rounds).

    The call is `TRANDOM(dst, key, counter)` with two key words and four counter words, word 0 the
    least significant. Each 128-bit counter value makes four neighbouring elements. A row takes its
    counters in steps of 64, one step per 256 columns; after the last step of a row the counter
    advances by (valid columns - 1) % 64 + 1, so that rows may share counters or skip some. The
    caller's counter does not change: to continue the stream, advance it by the same total.
    """
    rows, cols = dst.shape
    chunks = -(-cols // (4 * _LANES))
    per_row = _LANES * (chunks - 1) + (cols - 1) % _LANES + 1
    steps = np.arange(rows)[:, None] * per_row + np.arange(chunks * _LANES)
    key, counter = [int(word) for word in words[:2]], words[2:]
    base = sum((int(word) & _MASK32) << 32 * i for i, word in enumerate(counter))
    made = _philox(_counters(base, steps.astype(np.uint64)), key, Rounds)
    numbers = np.stack(made, axis=-1).reshape(rows, -1)[:, :cols]
    dst[...] = numbers.astype(np.uint32).view(dst.dtype)
