"""Bitwise operations and shifts by a tile of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.isa.pointwise import BINARY, UNARY, on_a2a3, plain, pointwise
from ptokit.isa.rules import disjoint, same_dtype, same_valid
from ptokit.isa.spec import insn, out, rule, src, tmp, types

NARROW = "i8 u8 i16 u16 i32 u32"
INTEGERS = NARROW + " i64 u64"


def spilled_byte(o: Any) -> tuple[slice, slice] | None:
    """The byte that A2/A3, working on 16-bit units, writes behind an odd number of bytes."""
    odd = o.target.name == "a2a3" and o.dst.itemsize == 1 and o.dst.vc % 2 == 1
    return (slice(0, o.dst.vr), slice(o.dst.vc, o.dst.vc + 1)) if odd else None


DST = out("dst", unspecified=spilled_byte)


@insn(
    *UNARY,
    types=types(a2a3=NARROW, a5=NARROW, kirin=NARROW, cpu=INTEGERS),
    rules=[
        *pointwise("dst", "src"),
        rule(
            "even-columns",
            "8-bit tiles have an even number of valid columns",
            lambda o: o.dst.itemsize > 1 or o.dst.vc % 2 == 0,
            "a2a3",
            "make the valid columns even: A2/A3 complements bytes in pairs",
        ),
    ],
    streams=True,
)
def TNOT(dst: Array, src: Array) -> None:
    """Complement every bit."""
    np.invert(src, out=dst)


@insn(
    DST,
    *BINARY[1:],
    types=types(a2a3=NARROW, a5=NARROW, kirin=NARROW, cpu=INTEGERS),
    rules=pointwise("dst", "src0", "src1"),
    streams=True,
)
def TAND(dst: Array, src0: Array, src1: Array) -> None:
    """Combine two tiles with bitwise AND.

    A2/A3 processes bytes in pairs: with an odd number of valid columns it also overwrites the byte
    behind each row of an 8-bit tile, with unspecified contents.
    """
    np.bitwise_and(src0, src1, out=dst)


@insn(
    DST,
    *BINARY[1:],
    types=types(a2a3=NARROW, a5=NARROW, kirin=NARROW, cpu=INTEGERS),
    rules=pointwise("dst", "src0", "src1"),
    streams=True,
)
def TOR(dst: Array, src0: Array, src1: Array) -> None:
    """Combine two tiles with bitwise OR.

    A2/A3 processes bytes in pairs: with an odd number of valid columns it also overwrites the byte
    behind each row of an 8-bit tile, with unspecified contents.
    """
    np.bitwise_or(src0, src1, out=dst)


@insn(
    DST,
    *BINARY[1:],
    tmp(lost=on_a2a3, note="scratch on A2/A3; others only ask for the operand"),
    types=types(a2a3=NARROW, a5=NARROW, kirin=NARROW, cpu=INTEGERS),
    rules=[
        *pointwise("dst", "src0", "src1"),
        same_dtype("dst", "tmp", id="tmp-type", on="a2a3"),
        same_valid("dst", "tmp", id="tmp-valid", on="a2a3"),
        plain("tmp", id="tmp-layout", on="a2a3"),
        disjoint("dst", "src0", "src1", "tmp", on="a2a3"),
    ],
    streams=True,
)
def TXOR(dst: Array, src0: Array, src1: Array, tmp: Array) -> None:
    """Combine two tiles with bitwise XOR.

    A2/A3 composes it from OR, AND and NOT: it needs `tmp`, shaped like the destination, and all
    four tiles apart; with an odd number of valid columns it also overwrites the byte behind each
    row of an 8-bit tile. Other targets do not touch `tmp` and work in place.
    """
    np.bitwise_xor(src0, src1, out=dst)


# ---- shifts ------------------------------------------------------------------------------------


@insn(
    out("dst"),
    src("src0"),
    src("src1", note="counts"),
    types=types(a2a3=NARROW, a5=INTEGERS, kirin=NARROW, cpu=INTEGERS),
    rules=pointwise("dst", "src0", "src1"),
    freedom="The permissive profile shifts everything out when a count exceeds the width.",
    streams=True,
)
def TSHL(dst: Array, src0: Array, src1: Array, ctx: Any) -> None:
    """Shift left by the counts in the second tile; zeros come in from the right.

    Counts lie in 0 .. width - 1; any other count leaves its element undefined. Only 64-bit elements
    take their counts modulo 64.
    """
    shift(np.left_shift, dst, src0, src1, ctx)


@insn(
    out("dst"),
    src("src0"),
    src("src1", note="counts"),
    types=types(a2a3=NARROW, a5=INTEGERS, kirin=NARROW, cpu=INTEGERS),
    rules=pointwise("dst", "src0", "src1"),
    freedom="The permissive profile shifts everything out when a count exceeds the width.",
    streams=True,
)
def TSHR(dst: Array, src0: Array, src1: Array, ctx: Any) -> None:
    """Shift right by the counts in the second tile; signed elements keep their sign.

    Counts lie in 0 .. width - 1; any other count leaves its element undefined. Only 64-bit elements
    take their counts modulo 64.
    """
    shift(np.right_shift, dst, src0, src1, ctx)


def shift(operation: np.ufunc, dst: Array, values: Array, counts: Array, ctx: Any) -> None:
    """Shift, and declare what a count out of range makes of its element undefined."""
    width = 8 * dst.itemsize
    if width == 64:
        operation(values, counts & 63, out=dst)
        return
    stray = np.argwhere((counts < 0) | (counts >= width)) if ctx.target.is_device else ()
    operation(values, counts, out=dst)
    for row, col in stray:
        ctx.poison("dst", slice(row, row + 1), slice(col, col + 1))
