"""What operations on single numbers compute: one record each, for all who reckon with them.

Integers are Python ints in two's complement of their width (i1 is 0 or 1), floats are Python
floats rounded to their type after every operation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import bf16, f16, f32
from ptokit.ir.attributes import BoolAttr, DenseAttr, FloatAttr, IntAttr
from ptokit.ir.core import Op
from ptokit.ir.types import INDEX, ScalarType, Type

Number = int | float
Meaning = Callable[[Sequence[Number]], tuple[Number, ...]]


class Undefined(ArithmeticError):  # noqa: N818 - the result is, not the caller
    """The operation has no result for these operands; the text says why."""


@dataclass(frozen=True)
class Arithmetic:
    """An operation on numbers, as compilers, engines and writers of C++ want to know it."""

    operator: str  # as C++ writes it, else a word such as "max"; the same for numbers of all types
    of: Callable[[Op], Meaning | None]  # what an operation computes, found once for all its runs
    is_unsigned: bool = False  # takes its operands for integers without sign
    is_partial: bool = False  # undefined for some operands
    grows: bool = False  # an index that would need more than its bits is no result
    keeps: bool = False  # hands on the integer that it is given
    predicates: tuple[str, ...] = ()  # of a comparison, in the order of their numbers

    def is_total(self, op: Op) -> bool:
        """Whether an operation computes a number of any operands: it can be evaluated in vain."""
        return not self.is_partial and not (self.grows and op.results[0].type == INDEX)


def _constant(op: Op) -> Meaning | None:
    value, found = op.attrs["value"], None
    if isinstance(value, FloatAttr):
        found = round_to(value.value, value.type)
    elif isinstance(value, BoolAttr):
        found = int(value.value)
    elif isinstance(value, IntAttr):
        found = wrap(value.value, bits_of(value.type))
    else:
        assert isinstance(value, DenseAttr)
    return None if found is None else lambda args: (found,)


def _select(op: Op) -> Meaning:
    return lambda args: (args[1] if args[0] else args[2],)


CONSTANT = Arithmetic("constant", _constant)
SELECT = Arithmetic("select", _select)


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


Whole = Callable[[int, int, int], int]


def _integer(sign: str, compute: Whole, **more: Any) -> Arithmetic:
    """An operation on two integers and the number of their bits."""
    made = Arithmetic(sign, lambda op: _of_integers(op, compute, made), **more)
    return made


def _of_integers(op: Op, compute: Whole, record: Arithmetic) -> Meaning:
    bits, kind = bits_of(op.operands[0].type), op.results[0].type
    if record.is_unsigned:

        def plain(args: Sequence[Number]) -> tuple[Number, ...]:
            a, b = (unsigned(int(arg), bits) for arg in args)
            return (wrap(compute(a, b, bits), bits),)

        return plain
    if record.grows and kind == INDEX:
        return lambda args: (_counted(compute(int(args[0]), int(args[1]), bits), bits),)
    return lambda args: (wrap(compute(int(args[0]), int(args[1]), bits), bits),)


def _both(stem: str, sign: str, compute: Whole, **more: Any) -> dict[str, Arithmetic]:
    """An operation on integers with sign, and the same on integers without."""
    return {
        f"{stem}si": _integer(sign, compute, **more),
        f"{stem}ui": _integer(sign, compute, is_unsigned=True, **more),
    }


INTEGERS = {
    "addi": _integer("+", lambda a, b, n: a + b),  # sums may wrap: so far no counter comes
    "subi": _integer("-", lambda a, b, n: a - b),
    "muli": _integer("*", lambda a, b, n: a * b, grows=True),
    **_both("div", "/", lambda a, b, n: _truncated(a, b), is_partial=True),
    **_both("rem", "%", lambda a, b, n: a - b * _truncated(a, b), is_partial=True),
    **_both("ceildiv", "ceildiv", lambda a, b, n: -(-a // _divisor(b)), is_partial=True),
    "floordivsi": _integer("floordiv", lambda a, b, n: a // _divisor(b), is_partial=True),
    "andi": _integer("&", lambda a, b, n: a & b),
    "ori": _integer("|", lambda a, b, n: a | b),
    "xori": _integer("^", lambda a, b, n: a ^ b),
    "shli": _integer("<<", lambda a, b, n: a << _amount(b, n), grows=True, is_partial=True),
    **_both("shr", ">>", lambda a, b, n: a >> _amount(b, n), is_partial=True),
    **_both("max", "max", lambda a, b, n: max(a, b)),
    **_both("min", "min", lambda a, b, n: min(a, b)),
}


def _wide(compute: Callable[[int, int], int], has_sign: bool) -> Arithmetic:
    """A result and what of it is beyond its bits."""

    def of(op: Op) -> Meaning:
        bits, over = bits_of(op.operands[0].type), bits_of(op.results[1].type)

        def both(args: Sequence[Number]) -> tuple[Number, ...]:
            a, b = (int(arg) if has_sign else unsigned(int(arg), bits) for arg in args)
            return wrap(compute(a, b), bits), wrap(compute(a, b) >> bits, over)

        return both

    return Arithmetic("extended", of)


SUM_AND_CARRY = _wide(operator.add, has_sign=False)
PRODUCTS = {
    "mulsi_extended": _wide(operator.mul, has_sign=True),
    "mului_extended": _wide(operator.mul, has_sign=False),
}

_ORDER: dict[str, Callable[[Number, Number], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _comparison(
    predicates: tuple[str, ...], holds: Callable[[str, Number, Number, int], bool]
) -> Arithmetic:
    def of(op: Op) -> Meaning:
        number = op.attrs["predicate"]
        assert isinstance(number, IntAttr)
        predicate, bits = predicates[number.value], bits_of(op.operands[0].type)
        return lambda args: (int(holds(predicate, args[0], args[1], bits)),)

    return Arithmetic("compare", of, predicates=predicates)


def _whole_holds(predicate: str, a: Number, b: Number, bits: int) -> bool:
    if predicate[0] == "u":
        a, b = unsigned(int(a), bits), unsigned(int(b), bits)
    return _ORDER[predicate if predicate in _ORDER else predicate[1:]](a, b)


def _real_holds(predicate: str, a: Number, b: Number, bits: int) -> bool:
    if predicate in ("true", "false"):
        return predicate == "true"
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("ord", "uno"):
        return unordered == (predicate == "uno")
    if unordered:
        return predicate[0] == "u"
    return _ORDER[predicate[1:]](a, b)


COMPARE_INTEGERS = _comparison(
    ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"), _whole_holds
)
COMPARE_FLOATS = _comparison(
    (
        *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
        *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
    ),
    _real_holds,
)


# ---- floats ------------------------------------------------------------------------------------

_STORAGE = {each.mlir: each for each in (f16, bf16, f32)}


def round_to(value: float, type_: Type) -> float:
    """The value rounded to a float type."""
    storage = _STORAGE.get(str(type_))
    if storage is None:
        return float(value)
    with np.errstate(all="ignore"):
        return float(storage.np.type(value))


def _silent(compute: Callable[[Any, Any], Any]) -> Callable[[float, float], float]:
    """Infinities and what is no number come out of it without a warning."""

    def apply(a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            return float(compute(np.float64(a), np.float64(b)))

    return apply


def _quiet(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """A NaN operand loses (maxnumf); without this wrapper it wins (maximumf)."""

    def pick(a: float, b: float) -> float:
        if math.isnan(a) or math.isnan(b):
            return b if math.isnan(a) else a
        return choose(a, b)

    return pick


def _real(sign: str, compute: Callable[[float, float], float]) -> Arithmetic:
    def of(op: Op) -> Meaning:
        kind = op.results[0].type
        return lambda args: (round_to(compute(float(args[0]), float(args[1])), kind),)

    return Arithmetic(sign, of)


def _negated(op: Op) -> Meaning:
    kind = op.results[0].type
    return lambda args: (round_to(-args[0], kind),)


NEGATE = Arithmetic("neg", _negated)
FLOATS = {
    "addf": _real("+", operator.add),
    "subf": _real("-", operator.sub),
    "mulf": _real("*", operator.mul),
    "divf": _real("/", _silent(operator.truediv)),
    "remf": _real("fmod", _silent(lambda a, b: np.fmod(a, b))),
    "maximumf": _real("max", lambda a, b: float(np.maximum(a, b))),
    "minimumf": _real("min", lambda a, b: float(np.minimum(a, b))),
    "maxnumf": _real("maxnum", _quiet(max)),
    "minnumf": _real("minnum", _quiet(min)),
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
    storage = _STORAGE.get(str(to))
    kind = np.dtype(np.float64) if storage is None else storage.np
    return float(np.array(unsigned(int(value), bits), integer).view(kind))


def _cast(
    compute: Callable[[Number, int, Type], Number], sign: str = "cast", **more: Any
) -> Arithmetic:
    def of(op: Op) -> Meaning:
        bits, kind = bits_of(op.operands[0].type), op.results[0].type
        return lambda args: (compute(args[0], bits, kind),)

    return Arithmetic(sign, of, **more)


# Other signedness, same bits: what conversions between dialects leave of integers.
SAME_BITS = _cast(lambda v, n, to: wrap(int(v), bits_of(to)))
CASTS = {
    "index_cast": _cast(lambda v, n, to: wrap(int(v), bits_of(to)), keeps=True),
    "index_castui": _cast(lambda v, n, to: wrap(unsigned(int(v), n), bits_of(to)), keeps=True),
    "bitcast": _cast(_bitcast, "bitcast"),
    "extf": _cast(lambda v, n, to: round_to(v, to)),
    "truncf": _cast(lambda v, n, to: round_to(v, to)),
    "extsi": _cast(lambda v, n, to: wrap(-int(v) if n == 1 else int(v), bits_of(to)), keeps=True),
    "extui": _cast(lambda v, n, to: wrap(unsigned(int(v), n), bits_of(to)), keeps=True),
    "trunci": _cast(lambda v, n, to: wrap(int(v), bits_of(to))),
    "sitofp": _cast(lambda v, n, to: round_to(float(v), to)),
    "uitofp": _cast(lambda v, n, to: round_to(float(unsigned(int(v), n)), to)),
    "fptosi": _cast(lambda v, n, to: _to_integer(v, to, True), is_partial=True),
    "fptoui": _cast(lambda v, n, to: _to_integer(v, to, False), is_partial=True),
}
