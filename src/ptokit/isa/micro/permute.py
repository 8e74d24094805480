"""Lanes that change places."""

from __future__ import annotations

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.micro.arithmetic import BITS
from ptokit.isa.micro.spec import CALL, Flow, Masking, Word, micro

_PAIR = "a:V b:V -> low:V high:V"
_WIDER = "i8>i16 u8>u16 i16>i32 u16>u32 u8>i16 i8>u16 u16>i32 i16>u32"
_NARROWER = "i32>u16 u32>u16 i16>u8 u16>u8 i32>i16 i16>i8 u32>i16 u16>i8"


@micro(_PAIR, types=BITS, flow=Flow.BYTES, cpp=CALL)
def vintlv(a: Array, b: Array) -> tuple[Array, Array]:
    """Take the lanes of two registers in turn: the first half of them, and the second."""
    both = np.stack([a, b], axis=1).reshape(2, -1)
    return both[0], both[1]


@micro(_PAIR, types=BITS, flow=Flow.BYTES, cpp=CALL)
def vdintlv(a: Array, b: Array) -> tuple[Array, Array]:
    """Divide the lanes of two registers, one after the other, into even and odd ones."""
    both = np.concatenate([a, b])
    return both[::2].copy(), both[1::2].copy()


@micro(
    "a:V mask:M -> dst:V",
    types=BITS,
    masking=Masking.SELECT,
    flow=Flow.BYTES,
    sets="SQZN",
    called=CALL,
)
def vsqz(a: Array, mask: Array, hidden: dict[str, int]) -> Array:
    """Move the active lanes to the front, in their order; zeros follow.

    The hidden register SQZN has the bytes that they take, for vstur.
    """
    found = np.zeros_like(a)
    kept = a[mask]
    found[: kept.size] = kept
    hidden["SQZN"] = kept.nbytes
    return found


@micro(
    "a:V mask:M -> dst:V",
    types="i8 u8 i16 u16 i32 u32",
    masking=Masking.SELECT,
    called=CALL,
)
def vusqz(mask: Array, T: DType) -> Array:
    """Count for each lane the active ones before it. The register itself is not looked at."""
    before = np.cumsum(mask) - mask
    return before.astype(T.np)


@micro(
    "a:V -> dst:W",
    types=_NARROWER,
    words=[Word("part", ("LOWER", "HIGHER"))],
    flow=Flow.BYTES,
    cpp="{name}({all}, {part})",
)
def vpack(a: Array, part: str, U: DType) -> Array:
    """Put the low halves of all lanes into one half of a register; the rest is 0."""
    half = np.ascontiguousarray(a.view(np.uint8).reshape(a.size, -1)[:, : U.itemsize])
    found = np.zeros((2, half.size), np.uint8)
    found[0 if part == "LOWER" else 1] = half.reshape(-1)
    return found.reshape(-1).view(U.np)


def _unpacked(a: Array, part: int, kind: str, U: DType) -> Array:
    half = a.size // 2
    chosen = a[part * half : (part + 1) * half]
    return chosen.view(f"{kind}{a.itemsize}").astype(f"{kind}{U.itemsize}").view(U.np)


@micro(
    "a:V part:index -> dst:W", types=_WIDER, flow=Flow.BYTES, syntax="%a, %part {} : T(a) -> T(dst)"
)
def vsunpack(a: Array, part: int, U: DType) -> Array:
    """Widen the lanes of one half with their sign."""
    return _unpacked(a, part, "i", U)


@micro(
    "a:V part:index -> dst:W", types=_WIDER, flow=Flow.BYTES, syntax="%a, %part {} : T(a) -> T(dst)"
)
def vzunpack(a: Array, part: int, U: DType) -> Array:
    """Widen the lanes of one half with zeros."""
    return _unpacked(a, part, "u", U)


@micro("a:V -> dst:W", flow=Flow.BYTES, cpp="&{a}")
def vbitcast(a: Array, U: DType) -> Array:
    """Look at the same bytes as lanes of another type."""
    return a.view(U.np)
