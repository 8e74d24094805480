"""Loads and stores of registers and masks: what they touch, their footprint, is their meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.isa.freedom import unspecified
from ptokit.isa.micro import footprints as fp
from ptokit.isa.micro.footprints import Footprint
from ptokit.isa.micro.spec import CALL, Masking, Word, micro

_LOADED = " : T(base) -> T(dst)[?, T(next)?]"
_NARROW = "i8>i8 u8>u8 i16>i16 u16>u16 f16>f16 bf16>bf16 i32>i32 u32>u32 f32>f32"


# ---- loads -------------------------------------------------------------------------------------


@micro(
    "base:ub offset:index -> dst:V next?:ub",
    words=[Word("dist", fp.LOADS, "NORM")],
    footprint=Footprint(offset="offset", image=fp.loaded),
    syntax="%base[%offset] {}" + _LOADED,
    aliases="vlds_post",
    cpp="{name}({dst}, {base}, {offset}, {dist})",
    freedom=unspecified("E2B and UNPK4", "No recorded run shows these patterns."),
)
def vlds() -> None:
    """Load a register: as it lies (NORM), or spread, thinned out or repeated.

    `BRC` repeats one slot, `BRC_BLK` a block of 32 bytes; `US` takes every slot twice, `DS` every
    second one; `UNPK` widens slots with zeros, `UNPK4` bytes to words; `E2B` fills a block with
    each slot. Loads have no mask: all bytes of the pattern are read.
    """


@micro(
    "base:ub offset:index -> low:V high:V next?:ub",
    words=[Word("dist", fp.PAIR_LOADS)],
    footprint=Footprint(offset="offset", image=fp.loaded_apart),
    syntax="%base[%offset], @dist {} : T(base), T(offset) -> T(low), T(high)[?, T(next)?]",
    freedom=unspecified("BDINTLV", "No recorded run shows this pattern."),
)
def vldsx2() -> None:
    """Load 512 bytes; even slots make one register, odd slots another."""


_STRIDES = "block_stride:int repeat_stride:int mask:M"
_BY_BLOCK = unspecified(
    "blocks with some active lanes",
    "Whether the mask acts by lanes or by blocks is open: recorded runs have full masks.",
)


@micro(
    f"base:ub {_STRIDES} -> dst:V next?:ub",
    footprint=Footprint(
        offset="repeat_stride",
        unit="block",
        places=fp.blocks,
        active=fp.by_any_of_block,
        alignment=fp.BLOCK,
    ),
    syntax="%base, %block_stride, %repeat_stride, %mask {} : "
    "T(base), T(block_stride), T(repeat_stride), T(mask) -> T(dst)[?, T(next)?]",
    freedom=_BY_BLOCK,
)
def vsldb() -> None:
    """Load eight blocks of 32 bytes that lie a stride apart; strides count blocks.

    A block without an active lane is not read, and is 0.
    """


_GATHERED = Footprint(places=fp.by_index, active=fp.by_lane)
_GATHER = "base:ub index:X mask:M -> dst:V"


@micro(_GATHER, footprint=_GATHERED, cpp=CALL)
def vgather2() -> None:
    """Gather elements by index; indices have no sign. An inactive lane makes no access, and is 0.

    Elements of 8 bits are widened with zeros to the lanes of their 16-bit indices.
    """


@micro(_GATHER, footprint=_GATHERED)
def vgather2_bc() -> None:
    """Gather elements by 32-bit indices: an older form of vgather2."""


@micro(
    "base:ub index:X mask:N -> dst:V",
    footprint=Footprint(places=fp.by_block, active=fp.by_word_of_block, alignment=fp.BLOCK),
)
def vgatherb() -> None:
    """Gather eight blocks of 32 bytes at byte offsets, the first eight words of the indices.

    The first eight words of the mask say which of them are read; the others are 0.
    """


# ---- stores ------------------------------------------------------------------------------------


@micro(
    "src:V base:ub offset:index mask:N -> next?:ub",
    words=[Word("dist", ("", *fp.STORES), "")],
    masking=Masking.WRITE,
    footprint=Footprint(writes=True, offset="offset", image=fp.stored),
    syntax="%src, %base[%offset], %mask {} : T(src), T(base), T(mask)[? -> T(next)?]",
    aliases="vsts_post",
    cpp="{name}({src}, {base}, {offset}, {dist:=NORM_B$;NORM=NORM_B$;"
    "1PT_B8=ONEPT_B8;1PT_B16=ONEPT_B16;1PT_B32=ONEPT_B32}, {mask})",
    freedom=(
        unspecified("1PT", "That the mask has no say is stated, and no recorded run shows it."),
        unspecified("NORM", "No recorded run tells a masked store from one of all lanes."),
    ),
)
def vsts() -> None:
    """Store a register: as it lies (NORM), its first slot (1PT), or the low part of each (PK).

    `PK` keeps the lower half of every slot, `PK4` its lowest byte. Slots whose bit is not set keep
    what memory holds; the mask counts the slots of the pattern. 1PT does not look at it.
    """


@micro(
    "low:V high:V base:ub offset:index mask:N",
    words=[Word("dist", fp.PAIR_STORES)],
    masking=Masking.IGNORED,
    footprint=Footprint(writes=True, offset="offset", image=fp.stored_together),
    syntax="%low, %high, %base[%offset], @dist, %mask {} : "
    "T(low), T(high), T(base), T(offset), T(mask)",
)
def vstsx2() -> None:
    """Store the slots of two registers in turn. The mask is there, and has no effect."""


@micro(
    f"src:V base:ub {_STRIDES} -> next?:ub",
    masking=Masking.WRITE,
    footprint=Footprint(
        writes=True,
        offset="repeat_stride",
        unit="block",
        places=fp.blocks,
        active=fp.by_lane,
        alignment=fp.BLOCK,
    ),
    syntax="%src, %base, %block_stride, %repeat_stride, %mask {} : "
    "T(src), T(base), T(block_stride), T(repeat_stride), T(mask)[? -> T(next)?]",
    freedom=_BY_BLOCK,
)
def vsstb() -> None:
    """Store eight blocks of 32 bytes a stride apart; strides count blocks."""


@micro(
    "src:V base:ub index:X mask:N",
    masking=Masking.WRITE,
    footprint=Footprint(writes=True, places=fp.by_index, active=fp.by_lane),
    freedom=unspecified("two active lanes with one index", "Which of them stays is open."),
    cpp=CALL,
)
def vscatter() -> None:
    """Scatter lanes by index; indices have no sign. Of 8-bit lanes every second one is stored."""


# ---- masks -------------------------------------------------------------------------------------


def _bits(data: Any) -> Any:
    return np.unpackbits(data, bitorder="little").view(np.bool_)


def _load(unit: Any, at: Any, start: int, image: Any, dist: str) -> Any:
    bits, lost = _bits(unit.raw(at, start, image, writes=False)), unit.lost(at, start, image)
    return unit.mask(
        _spread(bits, dist), None if lost is None else _spread(np.repeat(lost, 8), dist)
    )


def _spread(bits: Any, dist: str) -> Any:
    """The bits of a mask, of those in memory."""
    if dist == "US":
        return np.repeat(bits, 2)
    return bits[::2] if dist == "DS" else bits


def _store(unit: Any, at: Any, start: int, image: Any, mask: Any, dist: str) -> None:
    bits = mask.bits if dist == "NORM" else mask.bits[::2]
    unit.raw(at, start, image, True, mask)[:] = np.packbits(bits, bitorder="little")
    if mask.poison is not None:
        lost = mask.poison if dist == "NORM" else mask.poison[::2]
        unit.lose(at, start, lost.reshape(-1, 8).any(axis=1))


_LOADS = Word("dist", fp.MASK_LOADS, note="NORM: all bits; US: each twice; DS: every second one")
_STORES = Word("dist", fp.MASK_STORES, note="NORM: all bits; PK: every second one")
_LOADS_MASK = "%base[%offset], @dist {} : T(base), T(offset) -> T(dst)[?, T(next)?]"
_STORES_MASK = "%mask, %base[%offset], @dist {} : T(mask), T(base), T(offset)[? -> T(next)?]"
for _letter, _unit, _words in (
    ("s", "byte", "bytes"),
    ("i", "pattern", "units of what the pattern takes"),
):
    micro(
        "base:ub offset:index -> dst:B next?:ub",
        name=f"pld{_letter}",
        words=[_LOADS],
        footprint=Footprint(offset="offset", unit=_unit, image=fp.mask_image),
        syntax=_LOADS_MASK,
        cpp="{name}({dst}, {base}, {offset}, {dist})",
        doc=f"Load a mask, bit k from bit k % 8 of byte k // 8; the offset counts {_words}.",
    )(_load)
    micro(
        "mask:B base:ub offset:index -> next?:ub",
        name=f"pst{_letter}",
        words=[_STORES],
        masking=Masking.SELECT,
        footprint=Footprint(writes=True, offset="offset", unit=_unit, image=fp.mask_image),
        syntax=_STORES_MASK,
        cpp="{name}({mask}, {base}, {offset}, {dist})",
        doc=f"Store a mask, bit k to bit k % 8 of byte k // 8; the offset counts {_words}.",
    )(_store)
