"""Scalar arithmetic as C++ expressions, with no more brackets than they need."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ptokit.base.namedtuple import NamedTuple
from ptokit.ir.arithmetic import Arithmetic
from ptokit.ir.attributes import Attribute, BoolAttr, FloatAttr
from ptokit.ir.types import F64, OpaqueType, ScalarType, Type

# How tightly operators bind.
CHOICE, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUAL, ORDER, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(
    13
)


class Expr(NamedTuple):
    """A text, the operator that binds least in it, and the whole number it is known to be."""

    text: str
    level: int = ATOM
    number: int | None = None

    def within(self, level: int) -> str:
        """The text where an operator of this level takes it."""
        return self.text if self.level >= level else f"({self.text})"


TRUE, FALSE = Expr("true"), Expr("false")

_INFIX = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "&": BIT_AND, "|": BIT_OR,
    "^": BIT_XOR, "<<": SHIFT, ">>": SHIFT,
}  # fmt: skip
_LOGIC = {"&": ("&&", AND), "|": ("||", OR), "^": ("!=", EQUAL)}  # of truth values
_ORDERED = {"max": ">", "min": "<"}
_COMPARE = {
    "eq": ("==", EQUAL), "ne": ("!=", EQUAL), "lt": ("<", ORDER), "le": ("<=", ORDER),
    "gt": (">", ORDER), "ge": (">=", ORDER),
}  # fmt: skip
_INNER = {BIT_OR: ATOM, BIT_XOR: ATOM, BIT_AND: ATOM, SHIFT: ATOM, EQUAL: SUM, ORDER: SUM}
_INVERSE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def scalar_type(kind: ScalarType) -> str:
    """The C++ type of a number; an index is 64 bits wide."""
    if kind.name == "index":
        return "int64_t"
    if kind.name == "i1":
        return "bool"
    if kind.name == "f64":
        return "double"
    return kind.dtype.cpp if kind.dtype is not None else "int64_t"


def value_type(kind: Type) -> str:
    """The C++ type of what a variable can hold: a number or an event; else nothing."""
    if isinstance(kind, ScalarType):
        return scalar_type(kind)
    return "comm::AsyncEvent" if kind == OpaqueType("async_event") else ""


def keeps_type(kind: Type) -> bool:
    """Whether arithmetic of C++ on this type is of this type: smaller ones become `int`."""
    return isinstance(kind, ScalarType) and kind.name in (
        *("index", "i1", "i32", "i64", "ui32", "ui64", "f32", "f64"),
    )


def arithmetic(record: Arithmetic, args: Sequence[Expr], given: Type, made: Type) -> Expr | None:
    """An operation on expressions; None where C++ has none."""
    sign = record.operator
    taken = [_cast(_unsigned(given), a) for a in args] if record.is_unsigned else args
    if sign in _INFIX:
        if made == ScalarType("i1") and sign in _LOGIC:
            return _logic(sign, *args)
        left, right = taken
        if left.text.isdigit() and (sign == "<<" or right.text.isdigit()):
            left = _cast(value_type(made), left)  # a literal is an int
        return _infix(sign, _INFIX[sign], left, right)
    if sign in _ORDERED:
        return choice(_infix(_ORDERED[sign], ORDER, *taken), *args)
    if sign in ("floordiv", "ceildiv") and not record.is_unsigned:
        return _divided(sign == "floordiv", *args)
    if sign == "neg":
        return Expr(f"-{args[0].within(ATOM)}", UNARY)
    if sign == "select":
        return choice(*args)
    if sign == "cast":
        same = value_type(given) == value_type(made)
        return args[0] if same else _cast(value_type(made), args[0])
    return None


def comparison(word: str, left: Expr, right: Expr, kind: Type) -> Expr:
    """A comparison by its predicate."""
    is_float = isinstance(kind, ScalarType) and kind.is_float
    if word in ("true", "false"):
        return Expr(word)
    if word in ("ord", "uno"):  # neither, or one of them, is no number
        test = "==" if word == "ord" else "!="
        pairs = [_infix(test, EQUAL, each, each) for each in (left, right)]
        return _infix(*(("&&", AND) if word == "ord" else ("||", OR)), *pairs)
    if word[0] == "u" and not is_float:
        left, right = (_cast(_unsigned(kind), each) for each in (left, right))
    elif word == "one":
        both = [_infix(*_COMPARE[each], left, right) for each in ("lt", "gt")]
        return _infix("||", OR, *both)
    elif word[0] == "u" and word != "une":
        return negated(_infix(*_COMPARE[_INVERSE[word[-2:]]], left, right))
    return _infix(*_COMPARE[word[-2:]], left, right)


def choice(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """One of two values; of truth values as `and` and `or`."""
    if no == FALSE:
        return condition if yes == TRUE else _infix("&&", AND, condition, yes)
    if yes == TRUE:
        return _infix("||", OR, condition, no)
    if yes == FALSE or no == TRUE:
        return choice(negated(condition), no, yes)
    text = f"{condition.within(OR)} ? {yes.within(OR)} : {no.within(OR)}"
    return Expr(text, CHOICE)


def negated(condition: Expr) -> Expr:
    """What holds where a condition does not."""
    if condition in (TRUE, FALSE):
        return FALSE if condition == TRUE else TRUE
    return Expr(f"!{condition.within(ATOM)}", UNARY)


def whole(number: int) -> Expr:
    """A literal."""
    return Expr(str(number), UNARY if number < 0 else ATOM, number)


def plus(*terms: Expr) -> Expr:
    """A sum without its zeros."""
    first, *rest = [each for each in terms if each.number != 0] or [whole(0)]
    for each in rest:
        first = _infix("+", SUM, first, each)
    return first


def times(left: Expr, right: Expr) -> Expr:
    """A product, computed where both numbers are literals."""
    if left.text.isdigit() and right.text.isdigit():
        return whole(int(left.text) * int(right.text))
    if 1 in (left.number, right.number):
        return right if left.number == 1 else left
    return _infix("*", PRODUCT, left, right)


def smaller(left: Expr, right: Expr) -> Expr:
    return choice(_infix("<", ORDER, left, right), left, right)


def larger(left: Expr, right: Expr) -> Expr:
    return choice(_infix(">", ORDER, left, right), left, right)


def literal(value: Attribute) -> Expr:
    """A constant that is not an integer."""
    if isinstance(value, BoolAttr):
        return TRUE if value.value else FALSE
    assert isinstance(value, FloatAttr)
    number = value.value
    if math.isnan(number):
        return Expr('__builtin_nanf("")')
    if math.isinf(number):
        return Expr("__builtin_inff()") if number > 0 else Expr("-__builtin_inff()", UNARY)
    text = f"{number!r}" if value.type == F64 else f"{number!r}f"
    return Expr(text, UNARY if number < 0 else ATOM)


def _infix(mark: str, level: int, left: Expr, right: Expr) -> Expr:
    if mark == "+" and right.level == UNARY and right.text[0] == "-":
        return Expr(f"{left.within(level)} - {right.text[1:]}", level)
    # Bits and comparisons in one expression have brackets: few know by heart which binds more.
    inner = _INNER.get(level, level)
    return Expr(f"{left.within(inner)} {mark} {right.within(max(inner, level + 1))}", level)


def _logic(sign: str, left: Expr, right: Expr) -> Expr:
    if sign == "^" and TRUE in (left, right):
        return negated(left if right == TRUE else right)
    return _infix(*_LOGIC[sign], left, right)


def _divided(is_down: bool, left: Expr, right: Expr) -> Expr:
    """A quotient rounded down or up, where C++ rounds to zero."""
    a, b = left.within(ATOM), right.within(ATOM)
    sign, side = ("-", "!=") if is_down else ("+", "==")
    if b.isdigit() and int(b):
        below = f"{a} {'<' if is_down else '>'} 0"
    else:
        below = f"({a} < 0) {side} ({b} < 0)"
    return Expr(f"{a} / {b} {sign} ({a} % {b} != 0 && {below})", SUM)


def _cast(kind: str, value: Expr) -> Expr:
    return Expr(f"static_cast<{kind}>({value.text})")


def _unsigned(kind: Type) -> str:
    signed = value_type(kind)
    return signed if signed.startswith("u") else f"u{signed}"
