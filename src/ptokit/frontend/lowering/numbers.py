"""Numbers that are known only when the kernel runs.

A symbol behaves like the Python value it stands for; using it writes operations. Sums of a symbol
and known numbers remember both, so the size of `g[i * 16 : i * 16 + 16, :]` is known to be 16.

Run-time numbers are of four types. Integers are `index` (64 bits), truth values `i1`. A float that
comes from memory or from the caller is an f32, and stays one, as a NumPy float32 does; one that
Python computes of integers and literals is an f64. So both paths round alike.
"""

from __future__ import annotations

from typing import Any

from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.heap import Symbol
from ptokit.frontend.trees import Opened
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Value
from ptokit.ir.dialects.arith import CMPF, CMPI, predicates
from ptokit.ir.types import F32, F64, I1, I64, INDEX, ScalarType, Type

_INT_OPS = {
    "+": "addi",
    "-": "subi",
    "*": "muli",
    "&": "andi",
    "|": "ori",
    "^": "xori",
    "<<": "shli",
    ">>": "shrsi",
}
_FLOAT_OPS = {"+": "addf", "-": "subf", "*": "mulf", "/": "divf"}
_ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Number(Symbol):
    """A run-time scalar: an index, an i1 or a float."""

    operand_kind = "scalar"

    def __init__(
        self,
        emitter: Emitter,
        value: Value,
        *,
        nonnegative: bool = False,
        base: Value | None = None,
        delta: int = 0,
    ) -> None:
        self.emitter = emitter
        self.value = value
        self.nonnegative = nonnegative
        self.base = base or value  # value == base + delta
        self.delta = delta

    @property
    def type(self) -> ScalarType:
        assert isinstance(self.value.type, ScalarType)
        return self.value.type

    @property
    def is_float(self) -> bool:
        return self.type.is_float

    def __bool__(self) -> bool:
        raise self.emitter.fail(
            "run-time-value",
            "this value is known only at run time, so Python cannot branch on it here",
            "use it in `if`, `while`, `for ... in range(...)` or as an operand",
        )

    def __index__(self) -> int:
        raise NeedsConstant(
            self.emitter.fail(
                "needs-constant",
                "this place needs a value known at compile time, but it is known only at run time",
                "pass it as a keyword-only (const) parameter, or loop with static_range",
            )
        )

    __int__ = __index__

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int) and self.type == INDEX:
            if other == 0:
                return self
            total = self.delta + other
            if total == 0:
                return Number(self.emitter, self.base, nonnegative=self.nonnegative)
            value = _arith(self.emitter, "+", self, other).value
            return Number(
                self.emitter,
                value,
                nonnegative=self.nonnegative and other >= 0,
                base=self.base,
                delta=total,
            )
        return _arith(self.emitter, "+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self + other if isinstance(other, int) else _arith(self.emitter, "+", other, self)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, int) and self.type == INDEX:
            return self + -other
        if isinstance(other, Number) and other.base is self.base and self.type == INDEX:
            return self.delta - other.delta
        return _arith(self.emitter, "-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _arith(self.emitter, "-", other, self)

    def __mul__(self, other: Any) -> Any:
        return _arith(self.emitter, "*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _arith(self.emitter, "*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _arith(self.emitter, "/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _arith(self.emitter, "/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _floor_divide(self.emitter, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _floor_divide(self.emitter, other, self)

    def __mod__(self, other: Any) -> Any:
        return _modulo(self.emitter, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _modulo(self.emitter, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return _power(self.emitter, self, other, modulus)

    def __rpow__(self, other: Any) -> Any:
        return _power(self.emitter, other, self, None)

    def __and__(self, other: Any) -> Any:
        return _arith(self.emitter, "&", self, other)

    def __or__(self, other: Any) -> Any:
        return _arith(self.emitter, "|", self, other)

    def __xor__(self, other: Any) -> Any:
        return _arith(self.emitter, "^", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> Any:
        return _arith(self.emitter, "<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _arith(self.emitter, "<<", other, self)

    def __rshift__(self, other: Any) -> Any:
        return _arith(self.emitter, ">>", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _arith(self.emitter, ">>", other, self)

    def __neg__(self) -> Any:
        if self.is_float:
            op = self.emitter.emit("arith.negf", [("operand", self.value)], [("result", self.type)])
            return Number(self.emitter, op.result)
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return -1 - self

    def __abs__(self) -> Any:
        return select(self.emitter, self < 0, -self, self)

    def __lt__(self, other: Any) -> Any:
        return compare(self.emitter, "<", self, other)

    def __le__(self, other: Any) -> Any:
        return compare(self.emitter, "<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return compare(self.emitter, ">", self, other)

    def __ge__(self, other: Any) -> Any:
        return compare(self.emitter, ">=", self, other)

    def __eq__(self, other: object) -> Any:  # type: ignore[override]
        return compare(self.emitter, "==", self, other)

    def __ne__(self, other: object) -> Any:  # type: ignore[override]
        return compare(self.emitter, "!=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<run-time {self.type}>"


class NeedsConstant(Exception):  # noqa: N818 - a request, answered by unrolling the loop
    """A loop variable was used where only a compile-time value will do."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


# ---- arithmetic --------------------------------------------------------------------------------


def as_value(emitter: Emitter, given: Any, type_: Type | None = None) -> Value:
    """The IR value of a number, converted to a type where one is wanted."""
    if isinstance(given, Number):
        return given.value if type_ is None else cast(emitter, given, type_).value
    if isinstance(given, bool):
        return emitter.constant(given, type_ or I1)
    if isinstance(given, int):
        return emitter.constant(given, type_ or INDEX)
    if isinstance(given, float):
        return emitter.constant(given, type_ or F64)
    raise emitter.fail("not-a-number", f"a number is needed here, not {type(given).__name__}")


def cast(emitter: Emitter, number: Number, type_: Type) -> Number:
    """Convert between index, integer and float."""
    have = number.type
    if have == type_:
        return number
    assert isinstance(type_, ScalarType)
    value = number.value
    if type_ == I1:
        return truth(emitter, number)
    if have == I1:
        value, have = _one(emitter, "arith.extui", value, I64), I64
    if have == type_:
        return Number(emitter, value, nonnegative=True)
    if not have.is_float and type_.is_float:
        if have == INDEX:
            value = _one(emitter, "arith.index_cast", value, I64)
        value = _one(emitter, "arith.sitofp", value, type_)
    elif have.is_float and not type_.is_float:
        value = _one(emitter, "arith.fptosi", value, I64 if type_ == INDEX else type_)
        if type_ == INDEX:
            value = _one(emitter, "arith.index_cast", value, INDEX)
    elif have.is_float:
        name = "arith.extf" if type_.bits > have.bits else "arith.truncf"
        value = _one(emitter, name, value, type_)
    elif INDEX in (have, type_):
        value = _one(emitter, "arith.index_cast", value, type_)
    else:
        name = "arith.extsi" if type_.bits > have.bits else "arith.trunci"
        value = _one(emitter, name, value, type_)
    return Number(emitter, value, nonnegative=number.nonnegative)


def _one(emitter: Emitter, name: str, value: Value, type_: Type) -> Value:
    return emitter.emit(name, [("in", value)], [("out", type_)]).result


def _is_float(given: Any) -> bool:
    return given.is_float if isinstance(given, Number) else isinstance(given, float)


def _is_truth(given: Any) -> bool:
    return given.type == I1 if isinstance(given, Number) else isinstance(given, bool)


def _float_type(*given: Any) -> Type:
    """The type in which floats meet: an f32 draws the others to itself."""
    return F32 if any(isinstance(g, Number) and g.type == F32 for g in given) else F64


def _common(emitter: Emitter, left: Any, right: Any, type_: Type) -> tuple[Value, Value]:
    return as_value(emitter, left, type_), as_value(emitter, right, type_)


def truth(emitter: Emitter, given: Any) -> Any:
    """What Python takes a value for where it asks for a truth value."""
    if not isinstance(given, Number):
        return bool(given)
    return given if given.type == I1 else compare(emitter, "!=", given, 0)


def inverted(emitter: Emitter, condition: Number) -> Number:
    """`not condition`, of a truth value."""
    return _arith(emitter, "^", condition, True)


def _nonnegative(given: Any) -> bool:
    return given.nonnegative if isinstance(given, Number) else given >= 0


def _arith(emitter: Emitter, symbol: str, left: Any, right: Any) -> Any:
    if isinstance(left, Opened) or isinstance(right, Opened):
        return NotImplemented  # of values, which know what to do with a number
    floats = symbol == "/" or _is_float(left) or _is_float(right)
    names = _FLOAT_OPS if floats else _INT_OPS
    if symbol not in names:
        raise emitter.fail("operator", f"{symbol!r} is not defined for floats in a kernel")
    is_logic = symbol in "&|^" and _is_truth(left) and _is_truth(right)
    type_ = _float_type(left, right) if floats else I1 if is_logic else INDEX
    a, b = _common(emitter, left, right, type_)
    op = emitter.emit(f"arith.{names[symbol]}", [("lhs", a), ("rhs", b)], [("result", type_)])
    keeps = symbol in "+*>><<&" and _nonnegative(left) and _nonnegative(right)
    return Number(emitter, op.result, nonnegative=keeps and not floats)


def _whole(emitter: Emitter, symbol: str, left: Any, right: Any, name: str) -> Number:
    """An operation of whole numbers."""
    if _is_float(left) or _is_float(right):
        advice = "use '/'" if symbol == "//" else "int(x) makes a whole number"
        raise emitter.fail("operator", f"{symbol!r} is not defined for floats in a kernel", advice)
    if isinstance(right, int) and right == 0:
        raise emitter.fail("operator", f"{symbol!r} by zero")
    a, b = _common(emitter, left, right, INDEX)
    op = emitter.emit(f"arith.{name}", [("lhs", a), ("rhs", b)], [("result", INDEX)])
    return Number(emitter, op.result, nonnegative=_nonnegative(left) and _nonnegative(right))


def _floor_divide(emitter: Emitter, left: Any, right: Any) -> Number:
    plain = _nonnegative(left) and _nonnegative(right)
    return _whole(emitter, "//", left, right, "divsi" if plain else "floordivsi")


def _modulo(emitter: Emitter, left: Any, right: Any) -> Any:
    if isinstance(right, Opened):
        return NotImplemented
    if _is_float(left) or _is_float(right) or (_nonnegative(left) and _nonnegative(right)):
        return _whole(emitter, "%", left, right, "remsi")
    rest = left - _floor_divide(emitter, left, right) * right  # Python rounds down, hardware to 0
    is_positive = not isinstance(right, Number) and right > 0
    return Number(emitter, rest.value, nonnegative=True) if is_positive else rest


def _power(emitter: Emitter, left: Any, right: Any, modulus: Any) -> Any:
    """A power with a known whole exponent, as products; of two, with a run-time one, as a shift."""
    if isinstance(left, int) and left == 2 and _nonnegative(right) and not _is_float(right):
        return 1 << right
    is_known = isinstance(right, int) and right >= 0 and modulus is None
    if not is_known or (_is_float(left) and right > 2):
        raise emitter.fail(
            "operator",
            "'**' of run-time values needs an exponent that is a whole number known at compile "
            "time; of a float, at most 2",
            "write the product, or 1 << n for powers of two",
        )
    result: Any = 1.0 if _is_float(left) else 1
    while right:
        if right & 1:
            result = left if isinstance(result, int | float) else result * left
        left, right = left * left if right > 1 else left, right >> 1
    return result


def compare(emitter: Emitter, symbol: str, left: Any, right: Any) -> Any:
    """A comparison, as an i1."""
    if isinstance(left, Opened) or isinstance(right, Opened):
        return NotImplemented  # of values, which know what to do with a number
    for given in (left, right):
        if not isinstance(given, Number | bool | int | float):
            raise emitter.fail(
                "compare", f"a run-time number is compared with {type(given).__name__}"
            )
    floats = _is_float(left) or _is_float(right)
    is_equality = symbol in ("==", "!=")
    is_logic = is_equality and _is_truth(left) and _is_truth(right)
    type_ = _float_type(left, right) if floats else I1 if is_logic else INDEX
    a, b = _common(emitter, left, right, type_)
    word = {"==": "eq", "!=": "ne"}.get(symbol) or _ORDER[symbol]
    if floats:
        record, word = CMPF, ("une" if symbol == "!=" else f"o{word}")
    else:
        record, word = CMPI, word if is_equality else f"s{word}"
    attrs = {"predicate": IntAttr(predicates(record).index(word), I64)}
    op = emitter.emit(record.name, [("lhs", a), ("rhs", b)], [("result", I1)], dict(attrs))
    return Number(emitter, op.result)


def select(emitter: Emitter, condition: Number, yes: Any, no: Any) -> Number:
    """`yes if condition else no`, of numbers that do no harm when they are computed in vain."""
    floats = _is_float(yes) or _is_float(no)
    is_logic = _is_truth(yes) and _is_truth(no)
    type_ = _float_type(yes, no) if floats else I1 if is_logic else INDEX
    a, b = _common(emitter, yes, no, type_)
    value = select_value(emitter, condition, a, b)
    return Number(emitter, value, nonnegative=_nonnegative(yes) and _nonnegative(no))


def select_value(emitter: Emitter, condition: Number, yes: Value, no: Value) -> Value:
    """One of two values of one type."""
    operands = [("condition", condition.value), ("true_value", yes), ("false_value", no)]
    return emitter.emit("arith.select", operands, [("result", yes.type)]).result


def extreme(emitter: Emitter, which: str, left: Any, right: Any) -> Number:
    """`min` or `max` of two numbers."""
    floats = _is_float(left) or _is_float(right)
    type_ = _float_type(left, right) if floats else INDEX
    a, b = _common(emitter, left, right, type_)
    name = f"arith.{which}{'imumf' if floats else 'si'}"
    op = emitter.emit(name, [("lhs", a), ("rhs", b)], [("result", type_)])
    either = any if which == "max" else all
    return Number(emitter, op.result, nonnegative=either([_nonnegative(left), _nonnegative(right)]))
