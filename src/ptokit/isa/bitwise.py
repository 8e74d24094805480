"""Bitwise operations and shifts, by a tile and by one number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ptokit.base.dtypes import dtype
from ptokit.isa.devices import DEVICES
from ptokit.isa.effects import IN_STEPS, ON_SCALAR_UNIT, SCRATCH_IN_USE
from ptokit.isa.expr import ON_DEVICE, Condition, Expr, apply, given, undefined
from ptokit.isa.freedom import Freedom, unspecified
from ptokit.isa.language import apart
from ptokit.isa.meaning import Each
from ptokit.isa.pointwise import (
    BINARY,
    IN_STEPS_OF_UNKNOWN_ORDER,
    UNARY,
    on_a2a3,
    one_vector,
    one_vector_of_i64,
    plain,
    pointwise,
    with_scalar,
)
from ptokit.isa.regions import Extent, View
from ptokit.isa.rules import must, or_else, same_dtype, same_place, same_valid, whole_overlap
from ptokit.isa.scalars import element_of
from ptokit.isa.spec import Rule, family, insn, out, scalar, src, tmp, types

NARROW = "i8 u8 i16 u16 i32 u32"
INTEGERS = NARROW + " i64 u64"
_BITS = types(a2a3=NARROW, a5=NARROW, kirin=NARROW, cpu=INTEGERS)


def _on_bits(combine: Callable[..., Expr]) -> Callable[[Expr, Expr], Expr]:
    """An operation on the bits of elements, whatever they stand for."""

    def combined(a: Expr, b: Expr) -> Expr:
        if a.kind.is_integer:
            return combine(a, b)
        bits = dtype(f"u{a.kind.bits}")
        return combine(a.bits(bits), b.bits(bits)).bits(a.kind)

    return combined


def _spilled_byte(o: Any) -> tuple[slice, slice] | None:
    """The byte that A2/A3, working on 16-bit units, writes behind an odd number of bytes."""
    odd = on_a2a3(o) and o.dst.itemsize == 1 and o.dst.vc % 2 == 1
    return (slice(0, o.dst.vr), slice(o.dst.vc, o.dst.vc + 1)) if odd else None


_WHATEVER = "bits are combined whatever the type of the elements"
_WHOLE_BYTES = must("element-size", "a2a3")(
    "elements have 1, 2 or 4 bytes", lambda o: o.dst.itemsize in (1, 2, 4)
)
_DST = out("dst", unspecified=_spilled_byte)
_SCALAR = scalar("scalar", element_of("dst"))
_bits = partial(insn, means=Each(), types=_BITS)


# ---- one tile under two names ------------------------------------------------------------------

# A2/A3 goes over whole tiles step by step. Where one of them is given twice the steps still run;
# what is left of the operation then, the conditions below say.


def _is(a: str, b: str) -> Condition:
    def one_tile(o: Any) -> bool:
        return on_a2a3(o) and same_place(o[a], o[b])

    return Condition(f"{a} being {b} on a2a3", one_tile)


def _separate(outcome: str, *pairs: str) -> list[Rule]:
    """No tile is given twice; "dst src0" is a pair. Otherwise is as stated, unless all are one."""
    asked = [tuple(pair.split()) for pair in pairs]
    shared = [_is(a, b) for a, b in asked]

    def known(o: Any) -> str:
        return "" if len(asked) > 1 and all(each.holds(o) for each in shared) else outcome

    text = " and ".join(f"{a} is not {b}" for a, b in asked)
    return [
        must("separate", "a2a3")(
            text,
            lambda o: not any(each.holds(o) for each in shared),
            "bind the tiles to addresses that do not overlap",
            known,
        )
    ]


def _behind_tmp(o: Any) -> list[Extent]:
    """What of dst is made of old contents of a tmp with a smaller valid region."""
    spilled = _spilled_byte(o)
    found: list[Extent] = [] if spilled is None else [spilled]
    if on_a2a3(o) and o.tmp.vr < o.dst.vr:
        found.append((slice(o.tmp.vr, o.dst.vr), slice(0, o.dst.vc)))
    if on_a2a3(o) and o.tmp.vc < o.dst.vc:
        found.append((slice(0, o.dst.vr), slice(o.tmp.vc, o.dst.vc)))
    return found


_IN_FOUR_STEPS = out("dst", unspecified=_behind_tmp)
_TMP = tmp(
    view=View.VALID,
    lost=lambda o: on_a2a3(o) and not _is("tmp", "dst").holds(o),
    note="scratch on A2/A3; others only ask for the operand",
)


def _scratch(*tiles: str) -> list[Rule]:
    """What A2/A3 asks of a scratch tile beside these."""
    return [
        *pointwise(*tiles),
        same_dtype("dst", "tmp", id="tmp-type", on="a2a3"),
        *or_else(
            "every step takes the valid region of its own destination; where that of tmp is "
            "smaller, its old contents make the result undefined",
            same_valid("dst", "tmp", id="tmp-valid", on="a2a3"),
        ),
        plain("tmp", id="tmp-layout", on="a2a3"),
        *or_else(
            IN_STEPS_OF_UNKNOWN_ORDER,
            whole_overlap("tmp", *tiles, id="tmp-overlap", on="a2a3"),
            voids=True,
        ),
    ]


# ---- bits --------------------------------------------------------------------------------------


@insn(
    *UNARY,
    means=Each(),
    types=replace(_BITS, otherwise=_WHATEVER),
    rules=[
        *pointwise("dst", "src"),
        _WHOLE_BYTES,
        must("even-columns", "a2a3")(
            "8-bit tiles have an even number of valid columns",
            lambda o: o.dst.itemsize > 1 or o.dst.vc % 2 == 0,
            "make the valid columns even: A2/A3 complements bytes in pairs",
        ),
    ],
)
def TNOT(src: Expr) -> Expr:
    """Complement every bit."""
    return _on_bits(lambda bits, _: ~bits)(src, src)


_WITH_F16 = NARROW + " f16"
family(
    partial(
        _bits,
        _DST,
        *BINARY[1:],
        types=replace(_BITS, otherwise=_WHATEVER),
        rules=[*pointwise("dst", "src0", "src1"), _WHOLE_BYTES],
    ),
    """Combine two tiles with bitwise [AND|OR].

    A2/A3 processes bytes in pairs: with an odd number of valid columns it also overwrites the byte
    past each row of an 8-bit tile, with unspecified contents.[ f16 is combined bit by bit.|]
    """,
    TAND=(
        _on_bits(operator.and_),
        {
            "types": types(
                a2a3=_WITH_F16, a5=_WITH_F16, kirin=_WITH_F16, cpu=INTEGERS, otherwise=_WHATEVER
            )
        },
    ),
    TOR=_on_bits(operator.or_),
)


@_bits(
    _IN_FOUR_STEPS,
    *BINARY[1:],
    _TMP,
    rules=[
        *_scratch("dst", "src0", "src1"),
        *_separate(
            "the four steps run: dst may be a source, tmp as dst gives ~(src0 & src1), tmp as one "
            "source gives that source without the bits of the other",
            *("dst src0", "dst src1", "dst tmp", "tmp src0", "tmp src1"),
        ),
    ],
    steps=[SCRATCH_IN_USE],
)
def TXOR(src0: Expr, src1: Expr) -> Expr:
    """Combine two tiles with bitwise XOR.

    A2/A3 composes it from OR, AND and NOT: it needs `tmp`, shaped like the destination, and all
    tiles apart but the sources; with an odd number of valid columns it also overwrites the byte
    past each row of an 8-bit tile. Other targets do not touch `tmp` and work in place.
    """
    over_source = given(_is("tmp", "src1"), src1 & ~src0, src0 ^ src1)
    over_source = given(_is("tmp", "src0"), src0 & ~src1, over_source)
    return given(_is("tmp", "dst"), ~(src0 & src1), over_source)


family(
    partial(
        _bits,
        _DST,
        src("src"),
        _SCALAR,
        rules=[
            *pointwise("dst", "src"),
            *_separate("every element becomes the scalar", "dst src"),
            apart("dst", "src"),
        ],
        steps=[IN_STEPS],
    ),
    """Combine every element with a scalar by bitwise [AND|OR].

    A2/A3 puts the scalar into dst first, so dst must not be src there; with an odd number of valid
    columns it also overwrites the byte past each row of an 8-bit tile.
    """,
    TANDS=lambda src, scalar: given(_is("dst", "src"), scalar, src & scalar),
    TORS=lambda src, scalar: given(_is("dst", "src"), scalar, src | scalar),
)


@_bits(
    _IN_FOUR_STEPS,
    src("src0"),
    _SCALAR,
    _TMP,
    rules=[
        *_scratch("dst", "src0"),
        *_separate(
            "the steps run: dst as source gives src0 & ~scalar, dst as tmp ~(src0 & scalar), the "
            "source as tmp 0",
            *("dst src0", "dst tmp", "src0 tmp"),
        ),
    ],
    steps=[SCRATCH_IN_USE],
)
def TXORS(src0: Expr, scalar: Expr) -> Expr:
    """Combine every element with a scalar by bitwise XOR.

    A2/A3 needs `tmp`, shaped like the destination, and all three tiles apart; with an odd number of
    valid columns it also overwrites the byte past each row of an 8-bit tile. Other targets do not
    touch `tmp` and work in place.
    """
    over_source = given(_is("src0", "tmp"), src0 & 0, src0 ^ scalar)
    over_source = given(_is("dst", "src0"), src0 & ~scalar, over_source)
    return given(_is("dst", "tmp"), ~(src0 & scalar), over_source)


# ---- shifts ------------------------------------------------------------------------------------


def _stray(count: str, range: str) -> Freedom:
    text = f"The permissive profile shifts everything out when {count} exceeds the width."
    return unspecified(f"counts outside {range}", text)


def _shifted(name: str) -> Callable[[Expr, Expr], Expr]:
    """A shift; 64-bit elements take their counts modulo 64."""

    def shift(src: Expr, count: Expr) -> Expr:
        return apply(name, src, count & 63 if count.kind.bits == 64 else count)

    return shift


def _undefined_if_stray(name: str) -> Callable[[Expr, Expr], Expr]:
    """A shift; on a device the element is undefined where the count is out of range."""

    def shift(src: Expr, count: Expr) -> Expr:
        shifted = _shifted(name)(src, count)
        if count.kind.bits == 64:
            return shifted
        return given(ON_DEVICE, undefined((count < 0) | (count >= 32), shifted), shifted)

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
        freedom=_stray("a count", "0 .. 31"),
        steps=[ON_SCALAR_UNIT],
    ),
    """Shift [left|right] by the counts in the second tile; \
[zeros come in from the right|signed elements keep their sign].

    A count from the width of the elements up to 31 shifts every bit out; a larger or negative one
    leaves its element undefined. Only 64-bit elements take their counts modulo 64.
    """,
    TSHL=_undefined_if_stray("shl"),
    TSHR=_undefined_if_stray("shr"),
)
family(
    partial(
        insn,
        out("dst"),
        src("src"),
        scalar("scalar", element_of("dst"), note="the count"),
        means=Each(over=one_vector, strided=on_a2a3),
        types=types(a2a3="i16 u16 i32 u32", a5=INTEGERS, kirin=NARROW, cpu=INTEGERS),
        rules=[
            *with_scalar(),
            must("shift-count", DEVICES)(
                "the count lies in 0 .. width - 1 (any count for 64-bit elements)",
                lambda o: o.dst.itemsize == 8 or 0 <= o.scalar.value < 8 * o.dst.itemsize,
                otherwise="the result is undefined",
                voids=True,
            ),
            one_vector_of_i64(),
        ],
        freedom=_stray("the count", "0 .. width - 1"),
    ),
    """Shift every element [left|right] by a scalar count; \
[zeros come in from the right|signed elements keep their sign].
    """,
    TSHLS=_shifted("shl"),
    TSHRS=_shifted("shr"),
)
