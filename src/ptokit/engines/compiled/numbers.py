"""Numbers of a scope that change from round to round: integers in LLVM, as `ir/arithmetic.py` has
them.

All of them are words of 64 bits that hold the number; a pointer is the byte it points to. Numbers
that are the same in every round are none of these: they are worked out beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.text import Function, Value
from ptokit.ir import arithmetic
from ptokit.ir.arithmetic import Arithmetic, bits_of
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op
from ptokit.ir.dialects.arith import arithmetic_of
from ptokit.ir.types import INDEX, ScalarType, Type

_PLAIN = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "shl"}
_BY_SIGN = {"/": ("sdiv", "udiv"), "%": ("srem", "urem"), ">>": ("ashr", "lshr")}


def is_whole(type_: Type) -> bool:
    """Whether numbers of a type are integers."""
    return type_ == INDEX or (isinstance(type_, ScalarType) and not type_.is_float)


def computed(code: Function, op: Op, args: Sequence[Value]) -> Value:
    """The result of an operation on integers."""
    record = arithmetic_of(op)
    if record is None or len(op.results) != 1:
        raise Unsupported(op.name)
    if not all(is_whole(value.type) for value in (*op.operands, *op.results)):
        raise Unsupported(f"{op.name} of numbers that change")
    bits, result = bits_of(op.operands[0].type), bits_of(op.results[0].type)
    way = _CASTS.get(record)
    if way is not None:
        return wrapped(code, way(code, args[0], bits), result)
    if record is arithmetic.COMPARE_INTEGERS:
        return _compared(code, op, record, args, bits)
    if record is arithmetic.SELECT:
        test = code.do(f"icmp ne i64 {args[0]}, 0")
        return code.do(f"select i1 {test}, i64 {args[1]}, i64 {args[2]}")
    if record.is_unsigned:
        args = [unsigned(code, each, bits) for each in args]
    if record.operator in ("max", "min"):
        name = f"llvm.{'u' if record.is_unsigned else 's'}{record.operator}.i64"
        found = code.call("i64", name, *(("i64", each) for each in args))
    elif record.operator in _PLAIN:
        found = code.number(_PLAIN[record.operator], *args)
    elif record.operator in _BY_SIGN:
        found = code.number(_BY_SIGN[record.operator][record.is_unsigned], *args)
    else:
        raise Unsupported(op.name)
    return wrapped(code, found, bits)


def _compared(
    code: Function, op: Op, record: Arithmetic, args: Sequence[Value], bits: int
) -> Value:
    number = op.attrs["predicate"]
    assert isinstance(number, IntAttr)
    predicate = record.predicates[number.value]
    if predicate[0] == "u":
        args = [unsigned(code, each, bits) for each in args]
    test = code.do(f"icmp {predicate} i64 {args[0]}, {args[1]}")
    return code.do(f"zext i1 {test} to i64")


def wrapped(code: Function, value: Value, bits: int) -> Value:
    """The number in two's complement of so many bits; a single bit has no sign."""
    if bits >= 64:
        return value
    if bits == 1:
        return code.number("and", value, "1")
    left = code.number("shl", value, str(64 - bits))
    return code.number("ashr", left, str(64 - bits))


def unsigned(code: Function, value: Value, bits: int) -> Value:
    """The number without a sign."""
    return value if bits >= 64 else code.number("and", value, str((1 << bits) - 1))


def _kept(code: Function, value: Value, bits: int) -> Value:
    return value


def _signed(code: Function, value: Value, bits: int) -> Value:
    return code.number("sub", "0", value) if bits == 1 else value


_CASTS: dict[Arithmetic, Callable[[Function, Value, int], Value]] = {
    arithmetic.SAME_BITS: _kept,
    arithmetic.CASTS["index_cast"]: _kept,
    arithmetic.CASTS["index_castui"]: unsigned,
    arithmetic.CASTS["extsi"]: _signed,
    arithmetic.CASTS["extui"]: unsigned,
    arithmetic.CASTS["trunci"]: _kept,
}
