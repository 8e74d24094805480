"""Arithmetic on single numbers, as code of the processor: what `ir/arithmetic.py` says in Python.

A number is a word: an integer in two's complement of its width, extended to 64 bits, a float the
bits of a double that was rounded to its type. Operations that have no result for some operands, or
whose result needs care, have tests: where these do not hold, Python computes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from ptokit.base.dataclass import dataclass
from ptokit.engines.compiled.text import Function, Value
from ptokit.ir import arithmetic
from ptokit.ir.arithmetic import Arithmetic, bits_of
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op
from ptokit.ir.dialects.arith import arithmetic_of
from ptokit.ir.types import INDEX, ScalarType, Type

_Numbers = Sequence[Value]
_SMALL = str(1 << 31)  # products and sums of such numbers are exact
_WIDEST = 64


@dataclass(frozen=True)
class Scalar:
    """How an operation is computed, where all its tests hold."""

    word: Callable[[Function, _Numbers], Value]
    tests: Callable[[Function, _Numbers], list[Value]] | None = None


def scalar_of(op: Op) -> Scalar | None:
    """What computes an operation of `arith`; None: Python does."""
    record = arithmetic_of(op)
    if record is None or len(op.results) != 1:
        return None
    if record is arithmetic.CONSTANT:
        return _constant(op, record)
    if record is arithmetic.SELECT:
        return Scalar(_select)
    if record in _CASTS:
        return _CASTS[record](op)
    of_floats = _is_float(op.operands[0].type)
    if record.predicates:
        return _comparison(op, record, of_floats)
    return _float(op, record) if of_floats else _integer(op, record)


def _is_float(kind: Type) -> bool:
    return isinstance(kind, ScalarType) and kind.is_float


def _constant(op: Op, record: Arithmetic) -> Scalar | None:
    meaning = record.of(op)
    if meaning is None:
        return None
    (number,) = meaning(())
    if isinstance(number, float):
        (number,) = struct.unpack("q", struct.pack("d", number))
    return Scalar(lambda code, args: str(number))


def _select(code: Function, args: _Numbers) -> Value:
    test = code.compare("ne", args[0], "0")
    return code.do(f"select i1 {test}, i64 {args[1]}, i64 {args[2]}")


def _wrapped(code: Function, word: Value, bits: int) -> Value:
    """A word in two's complement of a width."""
    if bits >= _WIDEST:
        return word
    if bits == 1:
        return code.number("and", word, "1")
    shift = str(_WIDEST - bits)
    return code.number("ashr", code.number("shl", word, shift), shift)


def _masked(code: Function, word: Value, bits: int) -> Value:
    """A word as an integer without sign."""
    return word if bits >= _WIDEST else code.number("and", word, str((1 << bits) - 1))


# ---- integers ------------------------------------------------------------------------------------

_PLAIN = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_QUOTIENTS = {"/": "div", "%": "rem", "ceildiv": "div", "floordiv": "div"}


def _integer(op: Op, record: Arithmetic) -> Scalar | None:
    bits, sign = bits_of(op.result.type), record.operator
    is_unsigned, is_index = record.is_unsigned, op.result.type == INDEX
    if sign in _PLAIN:
        checked = _small if record.grows and is_index else None
        return Scalar(
            lambda code, args: _wrapped(code, code.number(_PLAIN[sign], *args), bits), checked
        )
    if sign in ("max", "min"):
        test = f"{'u' if is_unsigned else 's'}{'gt' if sign == 'max' else 'lt'}"

        def chosen(code: Function, args: _Numbers) -> Value:
            first = code.compare(test, *args)
            return code.do(f"select i1 {first}, i64 {args[0]}, i64 {args[1]}")

        return Scalar(chosen)
    if sign in _QUOTIENTS:
        return Scalar(lambda code, args: _quotient(code, sign, args), _natural)
    if sign in ("<<", ">>"):
        shift = {"<<": "shl", ">>": "lshr"}[sign]
        return Scalar(
            lambda code, args: _wrapped(code, code.number(shift, *args), bits),
            lambda code, args: _shifted(code, args, min(bits, 32)),
        )
    return None


def _quotient(code: Function, sign: str, args: _Numbers) -> Value:
    left, right = args
    if sign == "ceildiv":
        left = code.number("add", left, code.number("sub", right, "1"))
    return code.number(f"u{_QUOTIENTS[sign]}", left, right)


def _small(code: Function, args: _Numbers) -> list[Value]:
    """Both have few bits, whatever their sign."""
    shifted = (code.number("add", each, _SMALL) for each in args)
    return [code.compare("ult", each, str(1 << 32)) for each in shifted]


def _natural(code: Function, args: _Numbers) -> list[Value]:
    """All readings of the operands agree: neither is negative, and the second is not zero."""
    left, right = args
    less = code.number("sub", right, "1")
    return [code.compare("ult", left, _SMALL), code.compare("ult", less, str((1 << 31) - 1))]


def _shifted(code: Function, args: _Numbers, most: int) -> list[Value]:
    """No bit is lost of 64, neither to the left nor to the sign."""
    return [code.compare("ult", args[0], _SMALL), code.compare("ult", args[1], str(most))]


def _comparison(op: Op, record: Arithmetic, of_floats: bool) -> Scalar:
    number = op.attrs["predicate"]
    assert isinstance(number, IntAttr)
    predicate = record.predicates[number.value]

    def word(code: Function, args: _Numbers) -> Value:
        if of_floats:
            left, right = (_real(code, each) for each in args)
            holds = code.do(f"fcmp {predicate} double {left}, {right}")
        else:
            holds = code.compare(predicate, *args)
        return code.do(f"zext i1 {holds} to i64")

    return Scalar(word)


# ---- floats --------------------------------------------------------------------------------------

_REALS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_ROUNDED = {"f32": "float"}  # types that the processor rounds to


def _real(code: Function, word: Value) -> Value:
    return code.do(f"bitcast i64 {word} to double")


def _bits(code: Function, value: Value, kind: Type) -> Value:
    """A double, rounded to its type, as a word."""
    if (narrow := _ROUNDED.get(str(kind))) is not None:
        less = code.do(f"fptrunc double {value} to {narrow}")
        value = code.do(f"fpext {narrow} {less} to double")
    return code.do(f"bitcast double {value} to i64")


def _is_rounded(kind: Type) -> bool:
    return str(kind) == "f64" or str(kind) in _ROUNDED


def _float(op: Op, record: Arithmetic) -> Scalar | None:
    kind, name = op.result.type, _REALS.get(record.operator)
    if name is None or not _is_rounded(kind):
        return None

    def word(code: Function, args: _Numbers) -> Value:
        left, right = (_real(code, each) for each in args)
        return _bits(code, code.do(f"{name} double {left}, {right}"), kind)

    return Scalar(word)


# ---- casts ---------------------------------------------------------------------------------------


def _to(op: Op) -> Scalar:
    bits = bits_of(op.result.type)
    return Scalar(lambda code, args: _wrapped(code, args[0], bits))


def _without_sign(op: Op) -> Scalar:
    of, bits = bits_of(op.operands[0].type), bits_of(op.result.type)
    return Scalar(lambda code, args: _wrapped(code, _masked(code, args[0], of), bits))


def _with_sign(op: Op) -> Scalar | None:
    return None if bits_of(op.operands[0].type) == 1 else _to(op)


def _to_float(op: Op) -> Scalar | None:
    kind = op.result.type
    if not _is_rounded(kind):
        return None

    def word(code: Function, args: _Numbers) -> Value:
        return _bits(code, code.do(f"sitofp i64 {args[0]} to double"), kind)

    return Scalar(word)


def _rounded(op: Op) -> Scalar | None:
    kind = op.result.type
    if not _is_rounded(kind):
        return None
    return Scalar(lambda code, args: _bits(code, _real(code, args[0]), kind))


_CASTS: dict[Arithmetic, Callable[[Op], Scalar | None]] = {
    arithmetic.SAME_BITS: _to,
    arithmetic.CASTS["index_cast"]: _to,
    arithmetic.CASTS["index_castui"]: _without_sign,
    arithmetic.CASTS["trunci"]: _to,
    arithmetic.CASTS["extsi"]: _with_sign,
    arithmetic.CASTS["extui"]: _without_sign,
    arithmetic.CASTS["sitofp"]: _to_float,
    arithmetic.CASTS["extf"]: _rounded,
    arithmetic.CASTS["truncf"]: _rounded,
    **dict.fromkeys(
        (arithmetic.CASTS[each] for each in ("bitcast", "uitofp", "fptosi", "fptoui")),
        lambda op: None,
    ),
}
