"""Masks: making them, and computing with them bit by bit."""

from __future__ import annotations

import numpy as np

from ptokit.base.layout import Array
from ptokit.isa.expr import Expr, apply, select
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.spec import (
    CALL,
    REGISTER_BYTES,
    Flow,
    Masking,
    Micro,
    Word,
    lanewise,
    micro,
)

_LENGTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
PATTERNS = (
    *("PAT_ALL", "PAT_ALLF", "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4"),
    *(f"PAT_VL{n}" for n in _LENGTHS),
)
_HALF = Word("part", ("LOWER", "HIGHER"))


def _pattern(name: str, lanes: int) -> Array:
    lane = np.arange(lanes)
    match name:
        case "PAT_ALL":
            return lane >= 0
        case "PAT_ALLF":
            return lane < 0
        case "PAT_H":
            return lane < lanes // 2
        case "PAT_Q":
            return lane < lanes // 4
        case "PAT_M3":
            return lane % 3 == 0
        case "PAT_M4":
            return lane % 4 == 0
        case _:
            return lane < int(name.removeprefix("PAT_VL"))


def _for_each_width(size: int) -> list[Micro]:
    """The operations whose name says how wide lanes are."""
    lanes, end = REGISTER_BYTES // size, f"_b{8 * size}"

    def made(pattern: str) -> Array:
        return _pattern(pattern, lanes)

    def first(n: Expr, lane: Expr) -> tuple[Expr, Expr]:
        return lane < n, select(n > lanes, n - lanes, 0)

    def tail(loop: Expr, n: Expr, lane: Expr) -> Expr:
        return lane + (loop & 0xFFFF) * lanes < n

    def interleaved(a: Array, b: Array) -> tuple[Array, Array]:
        both = np.stack([a.reshape(-1, size), b.reshape(-1, size)], axis=1).reshape(2, -1)
        return both[0], both[1]

    def apart(a: Array, b: Array) -> tuple[Array, Array]:
        both = np.concatenate([a, b]).reshape(-1, size)
        return both[::2].reshape(-1), both[1::2].reshape(-1)

    pattern = Word("pattern", PATTERNS)
    named = "The lower half of PAT_H and quarter of PAT_Q: recorded runs say so, the text upper."
    returned = "{dst} = {name}({pattern})"
    pair = "a:B b:B -> low:B high:B"
    return [
        micro("-> dst:N", name=f"pset{end}", words=[pattern],
              freedom=unspecified("PAT_H and PAT_Q", named), cpp=returned,
              doc="Make a mask of a named pattern of lanes.")(made),
        micro("-> dst:N", name=f"pge{end}", words=[pattern], cpp=returned,
              doc="Make a mask of a named pattern of lanes, as pset does.")(made),
        lanewise("n:int -> dst:N rest:int", name=f"plt{end}",
                 cpp="{rest} = {n}; {dst} = {name}({rest}, POST_UPDATE)",
                 doc="Make a mask of the first n lanes; the rest of n is for the next.")(first),
        lanewise("loop:int n:int -> dst:N", name=f"pltm{end}",
                 doc="Make the mask of a round of a loop over n lanes.")(tail),
        micro(pair, name=f"pintlv{end}", flow=Flow.ALL, cpp=CALL,
              doc="Take the lanes of two masks in turn.")(interleaved),
        micro(pair, name=f"pdintlv{end}", flow=Flow.ALL, cpp=CALL,
              doc="Divide the lanes of two masks into even and odd ones.")(apart),
    ]  # fmt: skip


for _size in (1, 2, 4):
    _for_each_width(_size)


# ---- bit by bit --------------------------------------------------------------------------------

_BITWISE = "a:B b:B mask:B -> dst:B"


def _bitwise(name: str, doc: str, operator: str) -> None:
    def combined(a: Expr, b: Expr, mask: Expr) -> Expr:
        return apply(operator, a, b) & mask

    lanewise(_BITWISE, name=name, doc=doc, masking=Masking.SELECT, flow=Flow.ALL, cpp=CALL)(
        combined
    )


_bitwise("pand", "Combine two masks with and, where a third is set.", "and")
_bitwise("por", "Combine two masks with or, where a third is set.", "or")
_bitwise("pxor", "Combine two masks with exclusive or, where a third is set.", "xor")


@lanewise("a:B mask:B -> dst:B", masking=Masking.SELECT, flow=Flow.ALL, cpp=CALL)
def pnot(a: Expr, mask: Expr) -> Expr:
    """Complement a mask, where another is set."""
    return ~a & mask


@lanewise("a:B b:B sel:B -> dst:B", flow=Flow.ALL, cpp=CALL)
def psel(a: Expr, b: Expr, sel: Expr) -> Expr:
    """Take the bits of one mask where a third is set, those of another elsewhere."""
    return select(sel, a, b)


@micro("a:B -> dst:B", words=[_HALF], flow=Flow.ALL, cpp="{name}({all}, {part})")
def ppack(a: Array, part: str) -> Array:
    """Put every second bit of a mask into one half of another; the rest is 0."""
    found = np.zeros(REGISTER_BYTES, np.bool_)
    half = REGISTER_BYTES // 2
    found[slice(0, half) if part == "LOWER" else slice(half, None)] = a[::2]
    return found


@micro("a:B -> dst:B", words=[_HALF], flow=Flow.ALL, cpp="{name}({all}, {part})")
def punpack(a: Array, part: str) -> Array:
    """Spread one half of a mask to every second bit of another; the bits between are 0."""
    found = np.zeros(REGISTER_BYTES, np.bool_)
    half = REGISTER_BYTES // 2
    found[::2] = a[:half] if part == "LOWER" else a[half:]
    return found


@micro("a:B -> dst:B", flow=Flow.ALL, cpp="&{a}")
def pbitcast(a: Array) -> Array:
    """Look at the same bits as a mask for lanes of another width."""
    return a
