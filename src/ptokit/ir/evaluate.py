"""What `arith` operations compute: the one meaning that folding and execution share.

Integers are Python ints in two's complement of their width (i1 is 0 or 1), floats are Python
floats rounded to their type after every operation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from ptokit.ir.attributes import BoolAttr, DenseAttr, FloatAttr, IntAttr
from ptokit.ir.core import Op
from ptokit.ir.dialects.arith import CMPI, NAMES, predicates
from ptokit.ir.types import INDEX, ScalarType, Type

Number = int | float
Meaning = Callable[[Sequence[Number]], tuple[Number, ...]]


class Undefined(ArithmeticError):  # noqa: N818 - the result is, not the caller
    """The operation has no result for these operands; the text says why."""


def evaluate(op: Op, args: Sequence[Number]) -> tuple[Number, ...] | None:
    """The results of an `arith` operation; None when it is something else."""
    compute = meaning(op)
    return None if compute is None else compute(args)


def meaning(op: Op) -> Meaning | None:
    """What an `arith` operation computes, found once for all its runs; None: something else."""
    name = op.name.partition(".")[2]
    if name == "constant":
        value = _constant(op)
        return None if value is None else lambda args: value
    kind = op.results[0].type if op.results else None
    if op.name not in NAMES or kind is None:
        return None
    if name in ("cmpi", "cmpf"):
        number = op.attrs["predicate"]
        assert isinstance(number, IntAttr)
        predicate = predicates(op.name)[number.value]
        return lambda args: (int(_compare(op, predicate, args)),)
    if name == "select":
        return lambda args: (args[1] if args[0] else args[2],)
    bits = bits_of(op.operands[0].type)
    if name in _WIDE:
        return lambda args: _wide(name, bits, [int(a) for a in args])
    if name in _CASTS:
        cast = _CASTS[name]
        return lambda args: (cast(args[0], bits, kind),)
    if name in _INTEGER:
        whole = _INTEGER[name]
        if kind == INDEX and name in _GROWING:
            return lambda args: (_counted(whole(int(args[0]), int(args[1]), bits), bits),)
        return lambda args: (wrap(whole(int(args[0]), int(args[1]), bits), bits),)
    if name == "negf":
        return lambda args: (round_to(-args[0], kind),)
    if name in _FLOAT:
        real = _FLOAT[name]
        return lambda args: (round_to(real(float(args[0]), float(args[1])), kind),)
    return None


def is_total(op: Op) -> bool:
    """Whether an operation computes a number of any operands: it can be evaluated in vain."""
    name = op.name.partition(".")[2]
    is_counted = name in _GROWING and op.results[0].type == INDEX
    return op.name in NAMES and name not in _PARTIAL and not is_counted


def _constant(op: Op) -> tuple[Number, ...] | None:
    value = op.attrs["value"]
    if isinstance(value, FloatAttr):
        return (round_to(value.value, value.type),)
    if isinstance(value, BoolAttr):
        return (int(value.value),)
    if isinstance(value, IntAttr):
        return (wrap(value.value, bits_of(value.type)),)
    assert isinstance(value, DenseAttr)
    return None


# ---- integers ----------------------------------------------------------------------------------


def bits_of(type_: Type) -> int:
    return type_.bits if isinstance(type_, ScalarType) else 64


def wrap(value: int, bits: int) -> int:
    """The value in two's complement of this width."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _counted(value: int, bits: int) -> int:
    """A result of type index: it counts and addresses, and nobody means it to wrap around."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Undefined(f"the result has more than {bits} bits")
    return value


def _divisor(value: int) -> int:
    if value == 0:
        raise Undefined("division by zero")
    return value


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(_divisor(b))
    return quotient if (a < 0) == (b < 0) else -quotient


def _amount(value: int, bits: int) -> int:
    amount = unsigned(value, bits)
    if amount >= bits:
        raise Undefined(f"a shift by {amount} of a {bits}-bit integer")
    return amount


_INTEGER: dict[str, Callable[[int, int, int], int]] = {
    "addi": lambda a, b, n: a + b,
    "subi": lambda a, b, n: a - b,
    "muli": lambda a, b, n: a * b,
    "divsi": lambda a, b, n: _truncated(a, b),
    "divui": lambda a, b, n: unsigned(a, n) // _divisor(unsigned(b, n)),
    "remsi": lambda a, b, n: a - b * _truncated(a, b),
    "remui": lambda a, b, n: unsigned(a, n) % _divisor(unsigned(b, n)),
    "ceildivsi": lambda a, b, n: -(-a // _divisor(b)),
    "ceildivui": lambda a, b, n: -(-unsigned(a, n) // _divisor(unsigned(b, n))),
    "floordivsi": lambda a, b, n: a // _divisor(b),
    "andi": lambda a, b, n: a & b,
    "ori": lambda a, b, n: a | b,
    "xori": lambda a, b, n: a ^ b,
    "shli": lambda a, b, n: a << _amount(b, n),
    "shrsi": lambda a, b, n: a >> _amount(b, n),
    "shrui": lambda a, b, n: unsigned(a, n) >> _amount(b, n),
    "maxsi": lambda a, b, n: max(a, b),
    "minsi": lambda a, b, n: min(a, b),
    "maxui": lambda a, b, n: max(unsigned(a, n), unsigned(b, n)),
    "minui": lambda a, b, n: min(unsigned(a, n), unsigned(b, n)),
}

_GROWING = ("muli", "shli")  # sums that leave 64 bits wrap: so far no counter comes
_SHIFTS = ("shli", "shrsi", "shrui")
_DIVISIONS = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
_PARTIAL = (*_SHIFTS, *_DIVISIONS, "fptosi", "fptoui")  # undefined for some operands
_WIDE = ("addui_extended", "mulsi_extended", "mului_extended")


def _wide(name: str, bits: int, args: list[int]) -> tuple[Number, ...]:
    if name == "addui_extended":
        total = unsigned(args[0], bits) + unsigned(args[1], bits)
        return wrap(total, bits), int(total >> bits)
    if name == "mului_extended":
        args = [unsigned(a, bits) for a in args]
    product = args[0] * args[1]
    return wrap(product, bits), wrap(product >> bits, bits)


_ORDER: dict[str, Callable[[Number, Number], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _compare(op: Op, predicate: str, args: Sequence[Number]) -> bool:
    a, b = args
    if CMPI.matches(op):
        if predicate[0] == "u":
            bits = bits_of(op.operands[0].type)
            a, b = unsigned(int(a), bits), unsigned(int(b), bits)
        return _ORDER[predicate if predicate in _ORDER else predicate[1:]](a, b)
    if predicate in ("true", "false"):
        return predicate == "true"
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("ord", "uno"):
        return unordered == (predicate == "uno")
    if unordered:
        return predicate[0] == "u"
    return _ORDER[predicate[1:]](a, b)


# ---- floats ------------------------------------------------------------------------------------

_STORAGE: dict[str, type[np.generic]] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
}


def round_to(value: float, type_: Type) -> float:
    """The value rounded to a float type."""
    storage = _STORAGE.get(str(type_))
    if storage is None:
        return float(value)
    with np.errstate(all="ignore"):
        return float(storage(value))  # type: ignore[call-arg]


def _divide(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def _quiet(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """A NaN operand loses (maxnumf); without this wrapper it wins (maximumf)."""

    def pick(a: float, b: float) -> float:
        if math.isnan(a) or math.isnan(b):
            return b if math.isnan(a) else a
        return choose(a, b)

    return pick


_FLOAT: dict[str, Callable[[float, float], float]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": _divide,
    "remf": lambda a, b: float(np.fmod(a, b)),
    "maximumf": lambda a, b: float(np.maximum(a, b)),
    "minimumf": lambda a, b: float(np.minimum(a, b)),
    "maxnumf": _quiet(max),
    "minnumf": _quiet(min),
}


# ---- casts -------------------------------------------------------------------------------------


def _to_integer(value: Number, to: Type, signed: bool) -> int:
    if not math.isfinite(value):
        raise Undefined(f"{value} has no integer value")
    whole = math.trunc(value)
    bits = bits_of(to)
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if not low <= whole < high:
        raise Undefined(f"{whole} does not fit into {to}")
    return wrap(whole, bits)


def _bitcast(value: Number, bits: int, to: Type) -> Number:
    from_float = isinstance(value, float)
    to_float = isinstance(to, ScalarType) and to.is_float
    if from_float == to_float:
        return wrap(int(value), bits) if not from_float else value
    integer = np.dtype(f"u{bits // 8}")
    if from_float:
        storage = {16: np.float16, 32: np.float32, 64: np.float64}[bits]
        return wrap(int(np.array(value, storage).view(integer)), bits)
    storage = _STORAGE.get(str(to), np.float64)
    return float(np.array(unsigned(int(value), bits), integer).view(storage))


_CASTS: dict[str, Callable[[Number, int, Type], Number]] = {
    "index_cast": lambda v, n, to: wrap(int(v), bits_of(to)),
    "index_castui": lambda v, n, to: wrap(unsigned(int(v), n), bits_of(to)),
    "extsi": lambda v, n, to: wrap(-int(v) if n == 1 else int(v), bits_of(to)),
    "extui": lambda v, n, to: wrap(unsigned(int(v), n), bits_of(to)),
    "trunci": lambda v, n, to: wrap(int(v), bits_of(to)),
    "extf": lambda v, n, to: round_to(v, to),
    "truncf": lambda v, n, to: round_to(v, to),
    "sitofp": lambda v, n, to: round_to(float(v), to),
    "uitofp": lambda v, n, to: round_to(float(unsigned(int(v), n)), to),
    "fptosi": lambda v, n, to: _to_integer(v, to, True),
    "fptoui": lambda v, n, to: _to_integer(v, to, False),
    "bitcast": _bitcast,
    "unrealized_conversion_cast": lambda v, n, to: wrap(int(v), bits_of(to)),
}
