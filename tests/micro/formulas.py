"""What every operation on registers computes, lane by lane, in plain Python.

Nothing here is shared with the definitions: a lane is a Python number, a register a list of them.
A formula is given the lanes of the registers, the bits of the masks, the numbers and the words, by
the names of the operands, and returns the lanes of the results (bits for masks).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptokit.base.dtypes import DType

Lanes = list[Any]
Formula = Callable[..., Any]


class Given:
    """The operands of one operation by name; `T` and `U` are its element types."""

    def __init__(self, T: DType, U: DType, **operands: Any) -> None:
        self.T, self.U = T, U
        self.__dict__.update(operands)


def wrapped(value: int, kind: DType) -> int:
    """An integer in a type of so many bits."""
    low = value & ((1 << kind.bits) - 1)
    return low - (1 << kind.bits) if kind.is_signed and low >> (kind.bits - 1) else low


def fitted(value: Any, kind: DType) -> Any:
    """A number as a lane holds it."""
    if kind.is_integer:
        return wrapped(int(value), kind)
    with np.errstate(all="ignore"):
        return float(np.float64(value).astype(np.float32).astype(kind.np))


def lanewise(function: Callable[..., Any], *names: str) -> Formula:
    def formula(g: Any) -> Lanes:
        columns = [getattr(g, n) for n in names]
        count = len(g.mask)
        rows = [[c[i] if isinstance(c, list) else c for c in columns] for i in range(count)]
        return [
            fitted(function(g, *row), g.T) if on else fitted(0, g.T)
            for row, on in zip(rows, g.mask, strict=True)
        ]

    return formula


def compared(second: str) -> Formula:
    tests = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }

    def formula(g: Any) -> Lanes:
        other = getattr(g, second)
        others = other if isinstance(other, list) else [other] * len(g.a)
        return [
            bool(on and tests[g.op](a, b)) for a, b, on in zip(g.a, others, g.mask, strict=True)
        ]

    return formula


def _divided(g: Any, a: Any, b: Any) -> Any:
    if g.T.is_float:
        return np.float64(a) / np.float64(b)
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _bits(value: Any, kind: DType) -> int:
    if kind.is_integer:
        return int(value) & ((1 << kind.bits) - 1)
    return int(np.array([value], np.float32).astype(kind.np).view(f"u{kind.itemsize}")[0])


def on_bits(combine: Callable[[int, int], int]) -> Formula:
    def formula(g: Any) -> Lanes:
        found: Lanes = []
        for a, b, on in zip(g.a, g.b, g.mask, strict=True):
            code = combine(_bits(a, g.T), _bits(b, g.T)) if on else 0
            if g.T.is_integer:
                found.append(wrapped(code, g.T))
            else:
                found.append(float(np.array([code], f"u{g.T.itemsize}").view(g.T.np)[0]))
        return found

    return formula


def _pairs(a: Sequence[Any], b: Sequence[Any]) -> Lanes:
    return [each for pair in zip(a, b, strict=True) for each in pair]


def interleaved(g: Any) -> tuple[Lanes, Lanes]:
    both = _pairs(g.a, g.b)
    return both[: len(g.a)], both[len(g.a) :]


def apart(g: Any) -> tuple[Lanes, Lanes]:
    both = [*g.a, *g.b]
    return both[::2], both[1::2]


def squeezed(g: Any) -> Lanes:
    kept = [a for a, on in zip(g.a, g.mask, strict=True) if on]
    return kept + [fitted(0, g.T)] * (len(g.a) - len(kept))


def packed(g: Any) -> Lanes:
    low = [wrapped(int(a), g.U) for a in g.a]
    rest = [0] * len(low)
    return low + rest if g.part == "LOWER" else rest + low


def unpacked(is_signed: bool) -> Formula:
    def formula(g: Any) -> Lanes:
        half = len(g.a) // 2
        chosen = g.a[g.part * half : (g.part + 1) * half]
        raw = [int(a) & ((1 << g.T.bits) - 1) for a in chosen]
        top = 1 << (g.T.bits - 1)
        return [wrapped(r - 2 * top if is_signed and r & top else r, g.U) for r in raw]

    return formula


def _active(g: Any) -> Lanes:
    return [a for a, on in zip(g.a, g.mask, strict=True) if on]


def _least(kind: DType, is_max: bool) -> Any:
    if kind.is_float:
        return -math.inf if is_max else math.inf
    return kind.min_value if is_max else kind.max_value


def summed(g: Any) -> Lanes:
    total = fitted(math.fsum(_active(g)), g.U) if g.T.is_float else wrapped(sum(_active(g)), g.U)
    return [total] + [fitted(0, g.U)] * (256 // g.U.itemsize - 1)


def extreme(is_max: bool) -> Formula:
    def formula(g: Any) -> Lanes:
        best = max(_active(g)) if is_max else min(_active(g))
        place = next(
            i for i, (a, on) in enumerate(zip(g.a, g.mask, strict=True)) if on and a == best
        )
        if g.T.is_float:
            code = np.array([place], f"u{g.T.itemsize}").view(g.T.np)[0]
            return [best, float(code)] + [0.0] * (len(g.a) - 2)
        return [best, wrapped(place, g.T)] + [0] * (len(g.a) - 2)

    return formula


def grouped(is_sum: bool, is_max: bool = False) -> Formula:
    def formula(g: Any) -> Lanes:
        per, found = 32 // g.T.itemsize, []
        for start in range(0, len(g.a), per):
            some = [a for a, on in zip(g.a[start : start + per], g.mask[start : start + per],
                                       strict=True) if on]  # fmt: skip
            if is_sum:
                found.append(fitted(math.fsum(some) if g.T.is_float else sum(some), g.T))
            else:
                best = max(some, default=None) if is_max else min(some, default=None)
                found.append(_least(g.T, is_max) if best is None else best)
        return found + [fitted(0, g.T)] * (len(g.a) - len(found))

    return formula


def with_places(is_max: bool) -> Formula:
    def formula(g: Any) -> tuple[Lanes, Lanes]:
        best = max(_active(g)) if is_max else min(_active(g))
        where = [bool(on and a == best) for a, on in zip(g.a, g.mask, strict=True)]
        return [best] + [fitted(0, g.T)] * (len(g.a) - 1), where

    return formula


def neighbours(g: Any) -> Lanes:
    lanes = [a if on else 0 for a, on in zip(g.a, g.mask, strict=True)]
    sums = [fitted(a + b, g.T) for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
    return sums + [fitted(0, g.T)] * len(sums)


def _rounded(value: float, rnd: str) -> float:
    match rnd:
        case "F":
            return math.floor(value)
        case "C":
            return math.ceil(value)
        case "Z":
            return math.trunc(value)
        case "A":
            return math.copysign(math.floor(abs(value) + 0.5), value)
        case _:
            return float(np.rint(value))


def carried(g: Any, subtracts: bool, has_carry: bool) -> tuple[Lanes, Lanes]:
    top, found, bits = 1 << 32, list[int](), list[bool]()
    ins = g.cin if has_carry else [subtracts] * len(g.a)
    for a, b, c, on in zip(g.a, g.b, ins, g.mask, strict=True):
        x, y = int(a) % top, int(b) % top
        total = x + (top - 1 - y) + int(c) if subtracts else x + y + int(c)
        found.append(wrapped(total, g.T) if on else 0)
        bits.append(bool(on and total >= top))
    return found, bits


def doubled(g: Any) -> tuple[Lanes, Lanes]:
    products = [int(a) * int(b) if on else 0 for a, b, on in zip(g.a, g.b, g.mask, strict=True)]
    return [wrapped(p, g.T) for p in products], [wrapped(p >> 32, g.T) for p in products]


def differences(g: Any) -> Lanes:
    step = 2 if g.T.itemsize == 2 else 1
    start = 1 if step == 2 and g.part == "ODD" else 0
    rows = zip(g.a[start::step], g.b[start::step], g.mask[start::step], strict=True)
    return [fitted(math.exp(a - b), g.U) if on else 0.0 for a, b, on in rows]


def scaled(g: Any) -> Lanes:
    half = [fitted(np.float32(a) * np.float32(g.s), g.U) if on else 0.0
            for a, on in zip(g.a, g.mask, strict=True)]  # fmt: skip
    rest = [0.0] * len(half)
    return _pairs(half, rest) if g.part == "EVEN" else _pairs(rest, half)


def _shifted(g: Any, a: Any, count: Any, is_left: bool) -> int:
    return int(a) << int(count) if is_left else int(a) >> int(count)


def ordered(is_max: bool) -> Callable[..., Any]:
    def choice(g: Any, a: Any, b: Any) -> Any:
        return max(a, b) if is_max else min(a, b)

    return choice


FORMULAS: dict[str, Formula] = {
    "vabs": lanewise(lambda g, a: abs(a), "a"),
    "vneg": lanewise(lambda g, a: -a, "a"),
    "vexp": lanewise(lambda g, a: math.exp(a), "a"),
    "vln": lanewise(lambda g, a: math.log(a) if a > 0 else math.nan, "a"),
    "vsqrt": lanewise(lambda g, a: math.sqrt(a) if a >= 0 else math.nan, "a"),
    "vrec": lanewise(lambda g, a: 1 / a, "a"),
    "vrelu": lanewise(lambda g, a: a if a > 0 else 0, "a"),
    "vnot": lanewise(lambda g, a: -1 - int(a), "a"),
    "vadd": lanewise(lambda g, a, b: a + b, "a", "b"),
    "vsub": lanewise(lambda g, a, b: a - b, "a", "b"),
    "vmul": lanewise(lambda g, a, b: a * b, "a", "b"),
    "vdiv": lanewise(_divided, "a", "b"),
    "vmax": lanewise(ordered(True), "a", "b"),
    "vmin": lanewise(ordered(False), "a", "b"),
    "vand": on_bits(lambda a, b: a & b),
    "vor": on_bits(lambda a, b: a | b),
    "vxor": on_bits(lambda a, b: a ^ b),
    "vshl": lanewise(lambda g, a, b: _shifted(g, a, b, True), "a", "b"),
    "vshr": lanewise(lambda g, a, b: _shifted(g, a, b, False), "a", "b"),
    "vshls": lanewise(lambda g, a, b: _shifted(g, a, b, True), "a", "b"),
    "vshrs": lanewise(lambda g, a, b: _shifted(g, a, b, False), "a", "b"),
    "vadds": lanewise(lambda g, a, b: a + b, "a", "b"),
    "vmuls": lanewise(lambda g, a, b: a * b, "a", "b"),
    "vmaxs": lanewise(ordered(True), "a", "b"),
    "vmins": lanewise(ordered(False), "a", "b"),
    "vlrelu": lanewise(lambda g, a, b: a if a >= 0 else a * b, "a", "b"),
    "vprelu": lanewise(lambda g, a, b: a if a >= 0 else a * b, "a", "b"),
    "vmula": lanewise(lambda g, acc, a, b: acc + a * b, "acc", "a", "b"),
    "vmadd": lanewise(lambda g, acc, a, b: a * acc + b, "acc", "a", "b"),
    "vaxpy": lanewise(lambda g, a, b, s: s * a + b, "a", "b", "s"),
    "vmull": doubled,
    "vaddc": lambda g: carried(g, False, False),
    "vaddcs": lambda g: carried(g, False, True),
    "vsubc": lambda g: carried(g, True, False),
    "vsubcs": lambda g: carried(g, True, True),
    "vcmp": compared("b"),
    "vcmps": compared("s"),
    "vsel": lambda g: [a if on else b for a, b, on in zip(g.a, g.b, g.mask, strict=True)],
    "vselr": lambda g: [g.a[int(i) % len(g.a)] for i in g.index],
    "vbr": lambda g: [fitted(g.s, g.T)] * (256 // g.T.itemsize),
    "vdup": lambda g: [g.a[0] if on else fitted(0, g.T) for on in g.mask],
    "vci": lambda g: [fitted(g.s + i, g.T) for i in range(256 // g.T.itemsize)],
    "vtrc": lanewise(lambda g, a: _rounded(a, g.rnd), "a"),
    "vexpdif": differences,
    "vmulscvt": scaled,
    "vintlv": interleaved,
    "vdintlv": apart,
    "vsqz": squeezed,
    "vusqz": lambda g: [wrapped(sum(g.mask[:i]), g.T) for i in range(len(g.mask))],
    "vpack": packed,
    "vsunpack": unpacked(True),
    "vzunpack": unpacked(False),
    "vbitcast": lambda g: g.a,
    "vcadd": summed,
    "vcmax": extreme(True),
    "vcmin": extreme(False),
    "vcgadd": grouped(True),
    "vcgmax": grouped(False, True),
    "vcgmin": grouped(False, False),
    "vcbmax": with_places(True),
    "vcbmin": with_places(False),
    "vcpadd": neighbours,
}
