"""Operators of expressions on vectors: what each is on floats, on integers and on booleans."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from ptokit.base import dtypes as dt
from ptokit.base.dtypes import DType
from ptokit.engines.compiled import functions
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.text import Value
from ptokit.isa.expr import F64

if TYPE_CHECKING:
    from ptokit.engines.compiled.lanes import Lanes

Way = Callable[..., Value]


def _plain(name: str) -> Way:
    return lambda lanes, kind, *values: lanes.code.do(
        f"{name} {lanes.kind(kind)} {', '.join(values)}"
    )


def _intrinsic(name: str) -> Way:
    def way(lanes: Lanes, kind: DType, *values: Value) -> Value:
        vector = lanes.kind(kind)
        short = {"float": "f32", "half": "f16", "double": "f64"}.get(
            vector.split()[-1][:-1], vector.split()[-1][:-1]
        )
        args = [(vector, value) for value in values]
        return lanes.code.call(vector, f"llvm.{name}.v{lanes.count}{short}", *args)

    return way


def _compared(signed: str, unsigned: str) -> Way:
    return lambda lanes, kind, a, b: lanes.code.do(
        f"icmp {signed if kind.min_value < 0 else unsigned} {lanes.kind(kind)} {a}, {b}"
    )


def _divided(name: str) -> Way:
    """Towards zero; by 0 it is 0, and the least integer by -1 wraps."""

    def way(lanes: Lanes, kind: DType, value: Value, by: Value) -> Value:
        code, vector, tests = lanes.code, lanes.kind(kind), lanes.vector("i1")
        zero, one = "zeroinitializer", lanes.integer(kind.bits, 1)
        is_zero = code.do(f"icmp eq {vector} {by}, {zero}")
        safe = code.do(f"select {tests} {is_zero}, {vector} {one}, {vector} {by}")
        signed = kind.min_value < 0
        minus = code.do(f"icmp eq {vector} {by}, {lanes.integer(kind.bits, -1)}")
        if signed:
            safe = code.do(f"select {tests} {minus}, {vector} {one}, {vector} {safe}")
        found = code.do(f"{'s' if signed else 'u'}{name} {vector} {value}, {safe}")
        if signed and name == "div":
            other = _negated(lanes, kind, value)
            found = code.do(f"select {tests} {minus}, {vector} {other}, {vector} {found}")
        return code.do(f"select {tests} {is_zero}, {vector} {zero}, {vector} {found}")

    return way


def _modulo(lanes: Lanes, kind: DType, value: Value, by: Value) -> Value:
    """The remainder that has the sign of the divisor; by 0 it is 0."""
    code, vector, tests = lanes.code, lanes.kind(kind), lanes.vector("i1")
    rest = _divided("rem")(lanes, kind, value, by)
    if kind.min_value >= 0:
        return rest
    mixed = code.do(f"xor {vector} {rest}, {by}")
    across = code.do(f"icmp slt {vector} {mixed}, zeroinitializer")
    some = code.do(f"icmp ne {vector} {rest}, zeroinitializer")
    more = code.do(f"add {vector} {rest}, {by}")
    wrong = code.do(f"and {tests} {across}, {some}")
    return code.do(f"select {tests} {wrong}, {vector} {more}, {vector} {rest}")


def _raised(lanes: Lanes, kind: DType, base: Value, exponent: Value) -> Value:
    """Powers whose exponents are not negative, from their squares."""
    code, vector, tests = lanes.code, lanes.kind(kind), lanes.vector("i1")
    one = lanes.integer(kind.bits, 1)

    def bit(_: Value, found: Value, square: Value, left: Value) -> list[Value]:
        is_odd = code.do(f"trunc {vector} {left} to {tests}")
        more = code.do(f"mul {vector} {found}, {square}")
        return [
            code.do(f"select {tests} {is_odd}, {vector} {more}, {vector} {found}"),
            code.do(f"mul {vector} {square}, {square}"),
            code.do(f"lshr {vector} {left}, {one}"),
        ]

    begin = [(vector, one), (vector, base), (vector, exponent)]
    return code.loop("0", str(kind.bits), "1", bit, begin)[0]


@cache
def _has_remainders() -> bool:
    """Whether the function that processors lack is part of this process: compiled code calls it."""
    try:
        return hasattr(ctypes.CDLL(None), "fmod")
    except (OSError, TypeError):  # not on Windows
        return False


def _remainder(lanes: Lanes, kind: DType, value: Value, by: Value) -> Value:
    if kind is not F64 or not _has_remainders():
        raise Unsupported(f"rem of {kind.name}")
    return lanes.code.do(f"frem {lanes.kind(kind)} {value}, {by}")


def _parted(lanes: Lanes, kind: DType, value: Value) -> tuple[Value, Value, Value]:
    """The bits of a float that is not subnormal, the power of two in them, and whether there is
    one: zeros, infinities and NaN have none."""
    if kind is not dt.f32:
        raise Unsupported(f"the power of two of {kind.name}")
    code, real, whole = lanes.code, lanes.kind(kind), lanes.vector("i32")
    bits = code.do(f"bitcast {real} {value} to {whole}")
    power = code.do(f"lshr {whole} {bits}, {lanes.integer(32, 23)}")
    power = code.do(f"and {whole} {power}, {lanes.integer(32, 255)}")
    # From 1 to 254, as an unsigned number.
    less = code.do(f"sub {whole} {power}, {lanes.integer(32, 1)}")
    return bits, power, code.do(f"icmp ult {whole} {less}, {lanes.integer(32, 254)}")


def _normal(lanes: Lanes, kind: DType, value: Value) -> tuple[Value, Value]:
    """A float, subnormal ones times two to the 24, and the power that this takes."""
    code, real, whole = lanes.code, lanes.kind(kind), lanes.vector("i32")
    size = code.call(real, f"llvm.fabs.v{lanes.count}f32", (real, value))
    is_tiny = code.do(f"fcmp olt {real} {size}, {lanes.real(2.0**-126, 'float')}")
    larger = code.do(f"fmul {real} {value}, {lanes.real(2.0**24, 'float')}")
    tests = lanes.vector("i1")
    less = f"{whole} {lanes.integer(32, 24)}, {whole} zeroinitializer"
    return (
        code.do(f"select {tests} {is_tiny}, {real} {larger}, {real} {value}"),
        code.do(f"select {tests} {is_tiny}, {less}"),
    )


def _fraction(lanes: Lanes, kind: DType, value: Value) -> Value:
    code, whole, tests = lanes.code, lanes.vector("i32"), lanes.vector("i1")
    bits, _, is_there = _parted(lanes, kind, _normal(lanes, kind, value)[0])
    digits = code.do(f"and {whole} {bits}, {lanes.integer(32, -(0xFF << 23) - 1)}")
    digits = code.do(f"or {whole} {digits}, {lanes.integer(32, 126 << 23)}")
    found = code.do(f"select {tests} {is_there}, {whole} {digits}, {whole} {bits}")
    return code.do(f"bitcast {whole} {found} to {lanes.kind(kind)}")


def _exponent(lanes: Lanes, kind: DType, value: Value) -> Value:
    code, whole, tests = lanes.code, lanes.vector("i32"), lanes.vector("i1")
    normal, taken = _normal(lanes, kind, value)
    _, power, is_there = _parted(lanes, kind, normal)
    found = code.do(f"sub {whole} {power}, {lanes.integer(32, 126)}")
    found = code.do(f"sub {whole} {found}, {taken}")
    return code.do(f"select {tests} {is_there}, {whole} {found}, {whole} zeroinitializer")


def scaled(lanes: Lanes, kind: DType, value: Value, power: Value) -> Value:
    """Floats times a power of two: a double holds the product, which is rounded once."""
    if kind is not dt.f32:
        raise Unsupported(f"scale of {kind.name}")
    code, real, double = lanes.code, lanes.kind(kind), lanes.vector("double")
    whole, wide, count = lanes.vector("i32"), lanes.vector("i64"), f"v{lanes.count}i32"
    for name, limit in (("smax", -300), ("smin", 300)):  # beyond it is zero or infinite anyway
        end = (whole, lanes.integer(32, limit))
        power = code.call(whole, f"llvm.{name}.{count}", (whole, power), end)
    power = code.do(f"sext {whole} {power} to {wide}")
    power = code.do(f"add {wide} {power}, {lanes.integer(64, 1023)}")
    power = code.do(f"shl {wide} {power}, {lanes.integer(64, 52)}")
    factor = code.do(f"bitcast {wide} {power} to {double}")
    product = code.do(f"fmul {double} {code.do(f'fpext {real} {value} to {double}')}, {factor}")
    return code.do(f"fptrunc {double} {product} to {real}")


def _negated(lanes: Lanes, kind: DType, value: Value) -> Value:
    return lanes.code.do(f"sub {lanes.kind(kind)} zeroinitializer, {value}")


def _absolute(lanes: Lanes, kind: DType, value: Value) -> Value:
    if kind.min_value >= 0:
        return value
    vector = lanes.kind(kind)
    name = f"llvm.abs.v{lanes.count}i{kind.bits}"
    return lanes.code.call(vector, name, (vector, value), ("i1", "false"))


def _inverted(lanes: Lanes, kind: DType, value: Value) -> Value:
    return lanes.code.do(f"xor {lanes.kind(kind)} {value}, {lanes.integer(kind.bits, -1)}")


def _shifted(left: bool) -> Way:
    def way(lanes: Lanes, kind: DType, value: Value, count: Value) -> Value:
        code, vector = lanes.code, lanes.kind(kind)
        width = lanes.integer(kind.bits, kind.bits)
        inside = code.do(f"icmp ult {vector} {count}, {width}")
        tests = lanes.vector("i1")
        zero = "zeroinitializer"
        most = lanes.integer(kind.bits, kind.bits - 1)
        if not left and kind.min_value < 0:
            amount = code.do(f"select {tests} {inside}, {vector} {count}, {vector} {most}")
            return code.do(f"ashr {vector} {value}, {amount}")
        amount = code.do(f"select {tests} {inside}, {vector} {count}, {vector} {zero}")
        found = code.do(f"{'shl' if left else 'lshr'} {vector} {value}, {amount}")
        return code.do(f"select {tests} {inside}, {vector} {found}, {vector} {zero}")

    return way


def _log(lanes: Lanes, kind: DType, value: Value) -> Value:
    if kind is not F64:
        raise Unsupported("log of what is no double")
    return functions.logarithm(lanes, value)


def _exp(lanes: Lanes, kind: DType, value: Value) -> Value:
    if kind is not F64:
        raise Unsupported("exp of what is no double")
    return functions.exponential(lanes, value)


def _finite(lanes: Lanes, kind: DType, value: Value) -> Value:
    code, vector = lanes.code, lanes.kind(kind)
    zero = code.do(f"fsub {vector} {value}, {value}")  # NaN for infinities and NaN
    return code.do(f"fcmp ord {vector} {zero}, {zero}")


ON_FLOATS: dict[str, Way] = {
    "add": _plain("fadd"),
    "sub": _plain("fsub"),
    "mul": _plain("fmul"),
    "div": _plain("fdiv"),
    "neg": _plain("fneg"),
    "abs": _intrinsic("fabs"),
    "copysign": _intrinsic("copysign"),
    "lt": _plain("fcmp olt"),
    "le": _plain("fcmp ole"),
    "gt": _plain("fcmp ogt"),
    "ge": _plain("fcmp oge"),
    "eq": _plain("fcmp oeq"),
    "ne": _plain("fcmp une"),
    "isnan": lambda lanes, kind, a: lanes.code.do(f"fcmp uno {lanes.kind(kind)} {a}, {a}"),
    "isfinite": _finite,
    "floor": _intrinsic("floor"),
    "trunc": _intrinsic("trunc"),
    "rint": _intrinsic("rint"),
    "sqrt": _intrinsic("sqrt"),
    "rem": _remainder,
    "fraction": _fraction,
    "exponent": _exponent,
    "exp": _exp,
    "log": _log,
}
ON_INTEGERS: dict[str, Way] = {
    "add": _plain("add"),
    "sub": _plain("sub"),
    "mul": _plain("mul"),
    "quo": _divided("div"),
    "rem": _divided("rem"),
    "mod": _modulo,
    "pow": _raised,
    "and": _plain("and"),
    "or": _plain("or"),
    "xor": _plain("xor"),
    "not": _inverted,
    "neg": _negated,
    "abs": _absolute,
    "shl": _shifted(True),
    "shr": _shifted(False),
    "lt": _compared("slt", "ult"),
    "le": _compared("sle", "ule"),
    "gt": _compared("sgt", "ugt"),
    "ge": _compared("sge", "uge"),
    "eq": _plain("icmp eq"),
    "ne": _plain("icmp ne"),
}
ON_BOOLEANS: dict[str, Way] = {
    "and": _plain("and"),
    "or": _plain("or"),
    "xor": _plain("xor"),
    "not": lambda lanes, kind, a: lanes.code.do(
        f"xor {lanes.kind(kind)} {a}, {lanes.integer(1, 1)}"
    ),
}
