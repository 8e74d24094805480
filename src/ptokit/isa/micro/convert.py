"""Conversions of the element type."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ptokit.base.convert import convert, pack4, unpack4
from ptokit.base.dtypes import DType, f16, f32, hif8
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.base.layout import Array
from ptokit.isa.arrays import function_of
from ptokit.isa.expr import F64, Arg, Const, Expr, apply, select
from ptokit.isa.freedom import ulp, unspecified
from ptokit.isa.micro.arithmetic import ZEROING
from ptokit.isa.micro.spec import Law, Vector, Word, lanewise, micro
from ptokit.isa.numerics import once

ROUNDINGS = {
    "R": RoundMode.CAST_RINT,
    "A": RoundMode.CAST_ROUND,
    "F": RoundMode.CAST_FLOOR,
    "C": RoundMode.CAST_CEIL,
    "Z": RoundMode.CAST_TRUNC,
    "O": RoundMode.CAST_ODD,
}
PARTS = {"EVEN": 0, "ODD": 1, "P0": 0, "P1": 1, "P2": 2, "P3": 3}
_PAIRS = (
    "u8>u16 u8>u32 u8>f16 i8>i16 i8>i32 i8>f16 u16>u8 u16>u32 i16>u8 i16>u32 i16>i32 i16>f16 "
    "i16>f32 u32>u8 u32>u16 u32>i16 i32>u8 i32>u16 i32>i16 i32>i64 i32>f32 i64>f32 f16>u8 f16>i8 "
    "f16>i16 f16>i32 f16>f32 f32>i16 f32>i32 f32>i64 f32>f16 f32>bf16 bf16>i32 bf16>f16 bf16>f32 "
    "f32>f8e4m3 f32>f8e5m2 f32>hif8 f8e4m3>f32 f8e5m2>f32 hif8>f32 bf16>f4e1m2x2 bf16>f4e2m1x2 "
    "f4e1m2x2>bf16 f4e2m1x2>bf16"
)
_ROUND = Word("rnd", tuple(ROUNDINGS), "R", "how it rounds")
_SATURATE = Word("sat", ("SAT", "NOSAT"), "", "what becomes of values beyond the range")
_PART = Word("part", tuple(PARTS), "", "which of the lanes that share the place of a wider one")


def lanes_of(values: Array, r: int, part: int, kind: Any) -> Array:
    """Lanes of a narrower register: each at the chosen place of those that share its width."""
    found = np.zeros((values.size, r), kind)
    found[:, part] = values
    return found.reshape(-1)


def lost(lanes: Array, part: str, T: DType, U: DType) -> Array:
    """Which lanes of a converted register are undefined, of those of the source."""
    place = PARTS.get(part, 0)
    if T.is_packed:
        return np.repeat(lanes.reshape(-1, 4)[:, place], 2)
    if U.is_packed:
        return lanes_of(lanes[::2] | lanes[1::2], 4, place, np.bool_)
    if U.itemsize < T.itemsize:
        return lanes_of(lanes, T.itemsize // U.itemsize, place, np.bool_)
    return lanes if U.itemsize == T.itemsize else lanes[place :: U.itemsize // T.itemsize]


def converted(a: Expr, rnd: str, sat: str, U: DType) -> Expr:
    """A value in another type. Where it saturates, NaN becomes 0 in what is narrower than f32.

    Nothing said, integers keep their low bits, floats go to infinity, and what becomes an integer
    saturates.
    """
    saturates = sat == "SAT" or (not sat and a.kind.is_float and U.is_integer)
    if sat == "SAT" and a.kind.is_float and U.is_float and U is not f32:
        wide = a.to(f32)
        a = select(apply("isnan", wide), 0, wide)
    mode = RoundMode.CAST_ROUND if U is hif8 else ROUNDINGS[rnd]
    return a.to(U, mode, SaturationMode.ON if saturates else SaturationMode.OFF)


@cache
def _converting(kind: DType, U: DType, rnd: str, sat: str) -> Callable[[Array], Array]:
    return function_of("converted", ["a"], converted(Arg(kind, "a"), rnd, sat, U))


def changed(values: Array, kind: DType, U: DType, rnd: str, sat: str) -> Array:
    """Values in another type (`converted`)."""
    return _converting(kind, U, rnd, sat)(values)


def _is_part(a: Vector, dst: Vector, part: str) -> bool:
    """Whether a part is one of those that share a place: four of bytes in words and of 4 bits."""
    ratio = max(a.bits, dst.bits) // min(a.bits, dst.bits)
    four = ratio == 4 or a.is_packed or dst.is_packed
    return not part or (part[0] == "P" if four else ratio == 2 and part[0] != "P")


@micro(
    "a:V mask:M -> dst:W",
    types=_PAIRS,
    laws=[
        Law(
            "part is P0 to P3 where four lanes share a place, EVEN or ODD where two do",
            _is_part,
            "leave it out where lanes are as wide",
        )
    ],
    words=[_ROUND, _SATURATE, _PART],
    cpp="{name}({all}{rnd:?, ROUND_}{sat:?SAT=, RS_ENABLE;NOSAT=, RS_DISABLE}{part:?, PART_})",
    lost=lost,
    element=converted,
    freedom=(
        ZEROING,
        unspecified("NOSAT from float to integer", "The low bits here; no recorded run decides."),
        unspecified("ties of hif8", "Away from zero here; no recorded run decides."),
    ),
)
def vcvt(a: Array, mask: Array, rnd: str, sat: str, part: str, T: DType, U: DType) -> Array:
    """Convert the element type; the mask counts the lanes of the source.

    Lanes of the same width stay in place. A narrower lane takes the chosen part of the place of a
    wider one, the other parts are 0; a wider lane is made of the chosen part of its place.
    """
    place = PARTS.get(part, 0)
    if T.is_packed:  # a byte holds two values
        codes = unpack4(a.reshape(-1, 4)[:, place])
        active = np.repeat(mask.reshape(-1, 4)[:, place], 2)
        return np.where(active, convert(codes, T, U), np.zeros((), U.np))
    if U.is_packed:
        codes = np.where(mask, changed(a, T, U, rnd, sat), np.uint8(0))
        return lanes_of(pack4(codes), 4, place, np.uint8)
    zero = np.zeros((), U.np)
    if U.itemsize <= T.itemsize:
        found = np.where(mask, changed(a, T, U, rnd, sat), zero)
        r = T.itemsize // U.itemsize
        return found if r == 1 else lanes_of(found, r, place, U.np)
    r = U.itemsize // T.itemsize
    return np.where(mask[place::r], changed(a[place::r].copy(), T, U, rnd, sat), zero)


_WHOLE = 2.0**51  # doubles of this size or more have no digits behind the point to lose


def _whole(value: Expr, rnd: str) -> Expr:
    """A double rounded to a whole number. Minus zero, infinities and NaN stay what they are."""
    if rnd == "F":
        return apply("floor", value)
    if rnd == "C":
        return -apply("floor", -value)
    truncated = apply("trunc", value)
    if rnd == "A":
        away = select(abs(value - truncated) >= 0.5, apply("copysign", Const(F64, 1), value), 0)
        return apply("copysign", truncated + away, value)
    if rnd == "R":  # digits that do not fit are rounded off, to even
        near = (abs(value) + 3 * _WHOLE) - 3 * _WHOLE
        return select(abs(value) < _WHOLE, apply("copysign", near, value), value)
    return truncated


@lanewise(
    "a:V mask:M -> dst:V",
    types="f16 bf16 f32",
    words=[Word("rnd", ("R", "A", "F", "C", "Z"))],
    freedom=ZEROING,
)
def vtrc(a: Expr, rnd: str) -> Expr:
    """Round to floats that are whole numbers."""
    return once(_whole(a.to(F64), rnd), a.kind)


_EXACT = ulp(None, "The exact result, rounded once to the element type.")


def exp_of_difference(a: Expr, b: Expr) -> Expr:
    """e to the difference of two floats, in f32, rounded once."""
    return once(apply("exp", a.to(F64) - b.to(F64)), f32)


@cache
def _exp_of_difference(kind: DType) -> Callable[[Array, Array], Array]:
    found = exp_of_difference(Arg(kind, "a"), Arg(kind, "b"))
    return function_of("exp_of_difference", ["a", "b"], found)


@micro(
    "a:V b:V mask:M -> dst:W",
    types="f16>f32 f32>f32",
    words=[Word("part", ("EVEN", "ODD"))],
    lost=lost,
    element=exp_of_difference,
    freedom=(ZEROING, _EXACT),
)
def vexpdif(a: Array, b: Array, mask: Array, part: str, T: DType) -> Array:
    """Raise e to the difference of two registers, in f32; of f16 the even or the odd lanes."""
    if T is f16:
        chosen = slice(PARTS[part], None, 2)
        a, b, mask = a[chosen], b[chosen], mask[chosen]
    return np.where(mask, _exp_of_difference(T)(a, b), np.float32(0))


def scaled(a: Expr, s: Expr, rnd: str) -> Expr:
    """A product, narrowed to f16."""
    return (a * s).to(f16, ROUNDINGS[rnd])


@cache
def _scaled(rnd: str) -> Callable[..., Array]:
    return function_of("scaled", ["a", "s"], scaled(Arg(f32, "a"), Arg(f32, "s"), rnd))


@micro(
    "a:V s:S mask:M -> dst:W",
    types="f32>f16",
    words=[Word("rnd", ("A",)), Word("part", ("EVEN", "ODD"))],
    lost=lost,
    element=scaled,
    freedom=(ZEROING, unspecified("every lane", "No recorded run shows this operation.")),
)
def vmulscvt(a: Array, s: Any, mask: Array, rnd: str, part: str) -> Array:
    """Multiply by a number and narrow to f16, into the even or the odd lanes; others are 0."""
    found = np.where(mask, _scaled(rnd)(a, s), np.float16(0))
    return lanes_of(found, 2, PARTS[part], np.float16)
