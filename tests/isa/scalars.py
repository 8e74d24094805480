"""A second evaluator of expressions: one element at a time, in Python numbers.

It shares nothing with the NumPy code but the definition of the types and `base/convert.py`, which
is asked only for conversions that saturate or do not round to nearest. Floats of every type are
Python floats; a result is rounded to its type by `nearest`, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ptokit.base.convert import convert, from_float, number
from ptokit.base.dtypes import DType
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.isa.expr import BOOL, F64, Apply, Arg, Const, Convert, Expr

Value = Any  # int, float or bool, by the type
# Bits of the significand, and the exponent of the smallest subnormal.
_FORMATS = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149)}


def nearest(value: float, kind: DType) -> float:
    """Round to a float type: to nearest, ties to even, infinity beyond the range."""
    if kind is F64 or value == 0 or not math.isfinite(value):
        return value
    bits, least = _FORMATS[kind.name]
    spacing = max(math.frexp(value)[1] - bits, least)
    rounded = math.ldexp(round(math.ldexp(value, -spacing)), spacing)
    rounded = math.copysign(rounded, value)
    return math.copysign(math.inf, value) if abs(rounded) > kind.max_value else rounded


def wrapped(value: int, kind: DType) -> int:
    """The low bits, as the type reads them."""
    low = value & ((1 << kind.bits) - 1)
    return low - (1 << kind.bits) if kind.is_signed and low > kind.max_value else low


def taken(value: float, kind: DType) -> Value:
    """A number given by a user, as C++ converts an argument."""
    if kind is BOOL:
        return bool(value)
    if kind.is_integer:
        return wrapped(math.trunc(value), kind)
    return nearest(float(value), kind)


# ---- floats ------------------------------------------------------------------------------------


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _remainder(a: float, b: float) -> float:
    return math.fmod(a, b) if b != 0 and not math.isinf(a) else math.nan


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        if a != 0:
            return math.nan  # a negative base and a broken exponent
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf


def _exponential(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def _logarithm(a: float) -> float:
    return math.nan if a < 0 else -math.inf if a == 0 else math.log(a)


def _scaled(a: float, n: int) -> float:
    try:
        return math.ldexp(a, n)
    except OverflowError:
        return math.copysign(math.inf, a)


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    def rounded(a: float) -> float:
        return math.copysign(float(function(a)), a) if math.isfinite(a) else a

    return rounded


_FLOATS: Mapping[str, Callable[..., float]] = {
    "div": _quotient,
    "rem": _remainder,
    "pow": _power,
    "abs": abs,
    "neg": lambda a: -a,
    "copysign": math.copysign,
    "floor": _whole(math.floor),
    "trunc": _whole(math.trunc),
    "sqrt": lambda a: math.nan if a < 0 else math.sqrt(a),
    "exp": _exponential,
    "log": _logarithm,
    "fraction": lambda a: math.frexp(a)[0],
    "scale": _scaled,
}


# ---- integers ----------------------------------------------------------------------------------


def _divided(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_INTEGERS: Mapping[str, Callable[..., int]] = {
    "quo": _divided,
    "rem": lambda a, b: 0 if b == 0 else a - _divided(a, b) * b,
    "mod": lambda a, b: 0 if b == 0 else a % b,
    "abs": abs,
    "neg": lambda a: -a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "exponent": lambda a: math.frexp(a)[1],
}
_BOTH: Mapping[str, Callable[..., Value]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
_TESTS: Mapping[str, Callable[..., bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "isnan": math.isnan,
    "isfinite": math.isfinite,
}


def _shifted(name: str, value: int, count: int, kind: DType) -> int:
    if not 0 <= count < kind.bits:
        return -1 if name == "shr" and value < 0 else 0
    return value << count if name == "shl" else value >> count


def evaluate(expr: Expr, given: Mapping[str, Value]) -> Value:
    """The value of an expression without choices."""
    match expr:
        case Const(kind, value):
            return taken(value, kind)
        case Arg(_, name):
            return given[name]
        case Convert():
            return _converted(expr, evaluate(expr.value, given))
        case Apply(_, "select", (test, yes, no)):
            return evaluate(yes if evaluate(test, given) else no, given)
        case Apply(kind, name, operands):
            return _applied(kind, name, [evaluate(each, given) for each in operands])
        case _:
            raise AssertionError(expr)


def _applied(kind: DType, name: str, values: list[Value]) -> Value:
    if kind is BOOL:
        return _TESTS[name](*values)
    if kind.is_float:
        return nearest((_FLOATS.get(name) or _BOTH[name])(*values), kind)
    if name in ("shl", "shr"):
        return wrapped(_shifted(name, values[0], values[1], kind), kind)
    if name == "pow":
        return wrapped(pow(values[0], values[1], 1 << kind.bits), kind)
    return wrapped((_INTEGERS.get(name) or _BOTH[name])(*values), kind)


def _converted(expr: Convert, value: Value) -> Value:
    kind, source = expr.kind, expr.value.kind
    if expr.rounding is None:
        return number(np.array([value], source.np).view(kind.np)[0], kind)
    if kind is F64:
        return float(value)
    ieee = expr.rounding == RoundMode.CAST_RINT and expr.saturation == SaturationMode.OFF
    if ieee and kind.is_float:
        return nearest(float(value), kind)
    if source is F64:
        made = from_float(np.array([value]), kind, expr.rounding, expr.saturation)
    else:
        with np.errstate(all="ignore"):
            array = np.array([value]).astype(source.np)
        made = convert(array, source, kind, expr.rounding, expr.saturation)
    return number(made[0], kind)
