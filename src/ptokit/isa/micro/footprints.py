"""Footprints: which bytes of memory an operation on registers touches, stated once.

A *pattern* is a word of the text (`BRC_B32`, `PK_B16`) that says how the bytes of memory meet those
of a register. `loaded` and `stored` give its `Image`: a table from the one to the other. To load
is to index memory with it, what is known to be undefined travels through the same table, the
bounds are its length, and what the checker of order compares are its bytes. What lies where the
values of operands say - gathers, scatters, blocks a stride apart - gives the table as it runs
(`Footprint.places`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.layout import Array
from ptokit.base.patterns import regex

REGISTER = 256  # bytes
BLOCK = 32  # bytes: what the unified buffer moves at a time
ABSENT = -1  # in a table: no byte of memory
SCALES, FACTORS = 0, 1  # the tables of the fix pipe
PARAMETER_TABLES, PARAMETER_TABLE = 2, 1 << 16  # how many, and the bytes from one to the next


@dataclass(frozen=True, eq=False)
class Image:
    """How a stretch of memory meets registers, byte by byte.

    Of a load, `tables` has for every register the byte of memory that each of its bytes comes
    from, ABSENT for a zero; of a store one table, the byte of the registers (one after the other)
    for each byte of memory. None: they are the same, in order. `controls` has the bit of the mask
    for each byte that is stored; None: the mask has no say.
    """

    nbytes: int
    tables: tuple[Array | None, ...] = (None,)
    controls: Array | None = None
    lane: int = 0  # bytes of a lane where `controls` are those of whole lanes in order
    alignment: int = 1


@dataclass(frozen=True)
class Footprint:
    """The memory that an operation touches, as far as its record can tell.

    The address is that of `base`, moved by `offset` times `unit` bytes: by "element" of the
    pointer, "byte", "word" or "block", or by whatever a stretch of the "pattern" takes. With a
    result `next` it is moved afterwards instead, and the result is where it is then.
    """

    writes: bool = False
    offset: str = ""
    unit: str = "element"
    # The image for a pattern, bytes of an element of the register and of memory.
    image: Callable[[str, int, int], Image] | None = None
    # Where each byte of the register lies past the base, by the values of the operands; and
    # which of them are touched, by the bits of the mask and the bytes of a lane.
    places: Callable[..., Array | None] | None = None
    active: Callable[[Array, int], Array] | None = None
    pattern: str = "dist"  # the word that names it
    alignment: int = 1  # of the base, where `places` tells the rest


_WIDTH = regex(r"_B(\d+)$")


def width(pattern: str, otherwise: int = 1) -> int:
    """The bytes of the slots that a pattern moves: 4 of PK_B32."""
    found = _WIDTH.search(pattern)
    return int(found[1]) // 8 if found else otherwise


def _table(values: Array) -> Array:
    table = np.ascontiguousarray(values, np.intp).reshape(-1)
    table.flags.writeable = False
    return table


def _bytes(slots: Array, size: int) -> Array:
    """The bytes of slots of so many bytes, given by their numbers."""
    return _table(np.asarray(slots)[:, None] * size + np.arange(size))


# ---- loads -------------------------------------------------------------------------------------

LOADS = (
    *("NORM", "BRC_B8", "BRC_B16", "BRC_B32", "BRC_BLK", "US_B8", "US_B16", "DS_B8", "DS_B16"),
    *("UNPK_B8", "UNPK_B16", "UNPK_B32", "UNPK4", "E2B_B16", "E2B_B32"),
)
PAIR_LOADS = ("DINTLV_B8", "DINTLV_B16", "DINTLV_B32", "BDINTLV")


@cache
def loaded(pattern: str, size: int, memory_size: int) -> Image:
    """The image of a pattern of vlds; `size` is that of the lanes."""
    w = width(pattern, size)
    count = REGISTER // w
    kind = pattern.partition("_")[0]
    if kind == "NORM":
        return Image(REGISTER, alignment=BLOCK)
    if pattern == "BRC_BLK":
        return Image(BLOCK, (_table(np.arange(REGISTER) % BLOCK),), alignment=BLOCK)
    if kind == "BRC":
        return Image(w, (_table(np.arange(REGISTER) % w),), alignment=w)
    if kind == "US":
        return Image(REGISTER // 2, (_bytes(np.arange(count) // 2, w),), alignment=w)
    if kind == "DS":
        return Image(2 * REGISTER, (_bytes(np.arange(count) * 2, w),), alignment=w)
    if kind == "E2B":
        per_block = BLOCK // w
        return Image(8 * w, (_bytes(np.arange(count) // per_block, w),), alignment=w)
    w, factor = (1, 4) if kind == "UNPK4" else (w, 2)
    table = np.full((REGISTER // (factor * w), factor * w), ABSENT)
    table[:, :w] = np.arange(table.shape[0] * w).reshape(-1, w)
    return Image(REGISTER // factor, (_table(table),), alignment=w)


@cache
def loaded_apart(pattern: str, size: int, memory_size: int) -> Image:
    """The image of a pattern of vldsx2: even slots to one register, odd ones to another."""
    w = width(pattern, BLOCK)
    even = np.arange(REGISTER // w) * 2
    return Image(2 * REGISTER, (_bytes(even, w), _bytes(even + 1, w)), alignment=BLOCK)


def loaded_plain(pattern: str, size: int, memory_size: int) -> Image:
    """A register as it lies, wherever that is."""
    return _PLAIN[size]


_PLAIN = {size: Image(REGISTER, alignment=size) for size in (1, 2, 4, 8)}


# ---- stores ------------------------------------------------------------------------------------

STORES = (
    *("NORM_B8", "NORM_B16", "NORM_B32", "1PT_B8", "1PT_B16", "1PT_B32"),
    *("PK_B16", "PK_B32", "PK_B64", "PK4_B32"),
)
PAIR_STORES = ("INTLV_B8", "INTLV_B16", "INTLV_B32")


@cache
def stored(pattern: str, size: int, memory_size: int) -> Image:
    """The image of a pattern of vsts; without one, whole lanes lie side by side."""
    w = width(pattern, size)
    kind = pattern.partition("_")[0]
    if kind in ("", "NORM"):
        lanes = np.arange(REGISTER) // w * w
        return Image(REGISTER, (None,), _table(lanes), w, BLOCK)
    if kind == "1PT":
        return Image(w, (_table(np.arange(w)),), alignment=w)
    kept = 1 if kind == "PK4" else w // 2
    slots = np.arange(REGISTER // w)[:, None] * w
    table = slots + np.arange(kept)
    controls = np.broadcast_to(slots, table.shape)
    return Image(table.size, (_table(table),), _table(controls), alignment=BLOCK)


@cache
def stored_together(pattern: str, size: int, memory_size: int) -> Image:
    """The image of a pattern of vstsx2: slots of two registers in turn."""
    w = width(pattern)
    slots = np.arange(2 * REGISTER // w)
    table = _bytes(slots // 2 + slots % 2 * (REGISTER // w), w)
    return Image(2 * REGISTER, (table,), alignment=BLOCK)


# ---- masks -------------------------------------------------------------------------------------

# Bits of a mask take the place of bytes of a register: their images count bytes of memory, and the
# body of the operation sorts out the bits.
MASK_LOADS, MASK_STORES = ("NORM", "US", "DS"), ("NORM", "PK")
_MASK_BYTES = {"NORM": 32, "US": 16, "DS": 64, "PK": 16}
MASK_UNITS = {"NORM": 32, "US": 16, "DS": 32, "PK": 16}  # that an offset in patterns counts


@cache
def mask_image(pattern: str, size: int, memory_size: int) -> Image:
    """The bytes that the bits of a mask take."""
    return Image(_MASK_BYTES[pattern], alignment=min(_MASK_BYTES[pattern], BLOCK))


@cache
def word_image(pattern: str, size: int, memory_size: int) -> Image:
    """One word."""
    return Image(4, alignment=4)


# ---- what values lead to -----------------------------------------------------------------------


def blocks(block_stride: int, **_: Any) -> Array:
    """The bytes of eight blocks that lie a stride apart; strides have 16 bits and no sign."""
    starts = np.arange(REGISTER // BLOCK) * ((block_stride & 0xFFFF) * BLOCK)
    return (starts[:, None] + np.arange(BLOCK)).reshape(-1)


def by_index(index: Array, size: int, memory_size: int, **_: Any) -> Array:
    """The bytes of elements that indices without sign lead to; narrow ones are widened."""
    starts = index.astype(np.int64) * memory_size
    table = np.full((starts.size, size), ABSENT, np.int64)
    kept = min(size, memory_size)
    table[:, :kept] = starts[:, None] + np.arange(kept)
    return table.reshape(-1)


def by_block(index: Array, **_: Any) -> Array:
    """The bytes of eight blocks at byte offsets."""
    starts = index.view(np.uint32)[: REGISTER // BLOCK].astype(np.int64)
    return (starts[:, None] + np.arange(BLOCK)).reshape(-1)


def by_lane(bits: Array, size: int) -> Array:
    """A lane is touched when its bit is set."""
    return np.repeat(bits[::size], size)


def by_any_of_block(bits: Array, size: int) -> Array:
    """A block is touched when a lane of it is active."""
    return np.repeat(bits.reshape(-1, BLOCK).any(axis=1), BLOCK)


def by_word_of_block(bits: Array, size: int) -> Array:
    """A block is touched when the word of its number is active."""
    return np.repeat(bits[::4][: REGISTER // BLOCK], BLOCK)
