"""Bitwise operations and shifts, by a tile and by one number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from ptokit.isa.devices import DEVICES
from ptokit.isa.effects import IN_STEPS, ON_SCALAR_UNIT, SCRATCH_IN_USE
from ptokit.isa.expr import ON_DEVICE, Expr, apply, given, undefined
from ptokit.isa.freedom import Freedom, unspecified
from ptokit.isa.meaning import Each
from ptokit.isa.pointwise import (
    BINARY,
    UNARY,
    on_a2a3,
    one_vector_of_i64,
    plain,
    pointwise,
    with_scalar,
)
from ptokit.isa.rules import disjoint, must, same_dtype, same_valid, separate
from ptokit.isa.spec import Rule, family, insn, out, scalar, src, tmp, types

NARROW = "i8 u8 i16 u16 i32 u32"
INTEGERS = NARROW + " i64 u64"
_BITS = types(a2a3=NARROW, a5=NARROW, kirin=NARROW, cpu=INTEGERS)


def _spilled_byte(o: Any) -> tuple[slice, slice] | None:
    """The byte that A2/A3, working on 16-bit units, writes behind an odd number of bytes."""
    odd = on_a2a3(o) and o.dst.itemsize == 1 and o.dst.vc % 2 == 1
    return (slice(0, o.dst.vr), slice(o.dst.vc, o.dst.vc + 1)) if odd else None


_DST = out("dst", unspecified=_spilled_byte)
_SCALAR = scalar(note="converted to the element type of dst")
_TMP = tmp(lost=on_a2a3, note="scratch on A2/A3; others only ask for the operand")
_bits = partial(insn, means=Each(), types=_BITS)


def _scratch(*tiles: str) -> list[Rule]:
    """What A2/A3 asks of a scratch tile beside these."""
    return [
        *pointwise(*tiles),
        same_dtype("dst", "tmp", id="tmp-type", on="a2a3"),
        same_valid("dst", "tmp", id="tmp-valid", on="a2a3"),
        plain("tmp", id="tmp-layout", on="a2a3"),
        disjoint(*tiles, "tmp", on="a2a3"),
    ]


# ---- bits --------------------------------------------------------------------------------------


@_bits(
    *UNARY,
    rules=[
        *pointwise("dst", "src"),
        must("even-columns", "a2a3")(
            "8-bit tiles have an even number of valid columns",
            lambda o: o.dst.itemsize > 1 or o.dst.vc % 2 == 0,
            "make the valid columns even: A2/A3 complements bytes in pairs",
        ),
    ],
)
def TNOT(src: Expr) -> Expr:
    """Complement every bit."""
    return ~src


family(
    partial(_bits, _DST, *BINARY[1:], rules=pointwise("dst", "src0", "src1")),
    """Combine two tiles with bitwise [AND|OR].

    A2/A3 processes bytes in pairs: with an odd number of valid columns it also overwrites the byte
    behind each row of an 8-bit tile, with unspecified contents.
    """,
    TAND=operator.and_,
    TOR=operator.or_,
)


@_bits(_DST, *BINARY[1:], _TMP, rules=_scratch("dst", "src0", "src1"), steps=[SCRATCH_IN_USE])
def TXOR(src0: Expr, src1: Expr) -> Expr:
    """Combine two tiles with bitwise XOR.

    A2/A3 composes it from OR, AND and NOT: it needs `tmp`, shaped like the destination, and all
    four tiles apart; with an odd number of valid columns it also overwrites the byte behind each
    row of an 8-bit tile. Other targets do not touch `tmp` and work in place.
    """
    return src0 ^ src1


family(
    partial(
        _bits,
        _DST,
        src("src"),
        _SCALAR,
        rules=[*pointwise("dst", "src"), separate("dst", "src", on="a2a3")],
        steps=[IN_STEPS],
    ),
    """Combine every element with a scalar by bitwise [AND|OR].

    A2/A3 puts the scalar into dst first, so dst must not be src there; with an odd number of valid
    columns it also overwrites the byte behind each row of an 8-bit tile.
    """,
    TANDS=operator.and_,
    TORS=operator.or_,
)


@_bits(_DST, src("src0"), _SCALAR, _TMP, rules=_scratch("dst", "src0"), steps=[SCRATCH_IN_USE])
def TXORS(src0: Expr, scalar: Expr) -> Expr:
    """Combine every element with a scalar by bitwise XOR.

    A2/A3 needs `tmp`, shaped like the destination, and all three tiles apart; with an odd number of
    valid columns it also overwrites the byte behind each row of an 8-bit tile. Other targets do not
    touch `tmp` and work in place.
    """
    return src0 ^ scalar


# ---- shifts ------------------------------------------------------------------------------------


def _stray(count: str) -> Freedom:
    text = f"The permissive profile shifts everything out when {count} exceeds the width."
    return unspecified("counts outside 0 .. width - 1", text)


def _shifted(name: str) -> Callable[[Expr, Expr], Expr]:
    """A shift; 64-bit elements take their counts modulo 64."""

    def shift(src: Expr, count: Expr) -> Expr:
        return apply(name, src, count & 63 if count.kind.bits == 64 else count)

    return shift


def _undefined_if_stray(name: str) -> Callable[[Expr, Expr], Expr]:
    """A shift; on a device the element is undefined where the count is out of range."""

    def shift(src: Expr, count: Expr) -> Expr:
        shifted, width = _shifted(name)(src, count), count.kind.bits
        if width == 64:
            return shifted
        return given(ON_DEVICE, undefined((count < 0) | (count >= width), shifted), shifted)

    return shift


family(
    partial(
        insn,
        out("dst"),
        src("src0"),
        src("src1", note="counts"),
        means=Each(leaves_open=True),
        types=types(a2a3=NARROW, a5=INTEGERS, kirin=NARROW, cpu=INTEGERS),
        rules=pointwise("dst", "src0", "src1"),
        freedom=_stray("a count"),
        steps=[ON_SCALAR_UNIT],
    ),
    """Shift [left|right] by the counts in the second tile; \
[zeros come in from the right|signed elements keep their sign].

    Counts lie in 0 .. width - 1; any other count leaves its element undefined. Only 64-bit elements
    take their counts modulo 64.
    """,
    TSHL=_undefined_if_stray("shl"),
    TSHR=_undefined_if_stray("shr"),
)
family(
    partial(
        insn,
        out("dst"),
        src("src"),
        scalar(note="the count"),
        means=Each(),
        types=types(a2a3="i16 u16 i32 u32", a5=INTEGERS, kirin=NARROW, cpu=INTEGERS),
        rules=[
            *with_scalar(),
            must("shift-count", DEVICES)(
                "the count lies in 0 .. width - 1 (any count for 64-bit elements)",
                lambda o: o.dst.itemsize == 8 or 0 <= o.scalar.value < 8 * o.dst.itemsize,
            ),
            one_vector_of_i64(),
        ],
        freedom=_stray("the count"),
    ),
    """Shift every element [left|right] by a scalar count; \
[zeros come in from the right|signed elements keep their sign].
    """,
    TSHLS=_shifted("shl"),
    TSHRS=_shifted("shr"),
)
