"""What an instruction computes, as data: typed expressions over single elements.

Whoever runs or compiles an instruction reads its meaning from here; the NumPy bodies are made of it
(`arrays.py`), and any other code can be. An expression is a tree of five kinds of nodes:

* `Const`, a number of a type, and `Arg`, an element of an operand (or a number given as one);
* `Apply`, one of the OPERATORS below. Operands have one type, which is the type of the result
  except where the table says otherwise. Integers wrap around; a float operation gives the exact
  result rounded once, to nearest even, in that very type, as IEEE 754 has it;
* `Convert`, the only place where types change: rounding and saturation are part of the node;
* `Given`, a choice that is made before anything runs: by target, by the addresses of the operands.

So what is computed in a wider type says so: f16 through f32 is `x.to(f32)`, a function that is
rounded only once is computed in F64 and converted. NaN, zeros and overflow do what the operators
do: `select(a < b, b, a)` keeps an `a` that is NaN.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import cast

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, i32
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.isa.facts import Ops

_MAX = sys.float_info.max
# Types that no operand has: what is rounded once goes through doubles, comparisons give booleans.
F64 = DType("f64", "double", "f64", 64, 8, "float", "float64", -_MAX, _MAX)
BOOL = DType("bool", "bool", "i1", 1, 1, "uint", "bool_", 0, 1)

Number = int | float


@dataclass(frozen=True)
class Operator:
    """An operation on elements: how it is written, and what it does where that is not plain."""

    text: str  # with a place for every operand
    note: str = ""
    result: DType | None = None  # when not the type of the last operand


OPERATORS: Mapping[str, Operator] = {
    "add": Operator("{} + {}"),
    "sub": Operator("{} - {}"),
    "mul": Operator("{} * {}"),
    "div": Operator("{} / {}", "floats"),
    "quo": Operator("{} // {}", "integers, toward zero; x // 0 = 0, the least one by -1 wraps"),
    "rem": Operator("{} rem {}", "the sign of the dividend, exact; integers: x rem 0 = 0"),
    "mod": Operator("{} mod {}", "integers, the sign of the divisor; x mod 0 = 0"),
    "pow": Operator("{} ** {}", "floats: C's pow; integers: for exponents that are not negative"),
    "neg": Operator("-{}", "floats: the sign bit is flipped, of NaN too"),
    "abs": Operator("abs({})", "floats: the sign bit is cleared; the least integer stays"),
    "copysign": Operator("copysign({}, {})", "the first with the sign bit of the second"),
    "and": Operator("{} & {}"),
    "or": Operator("{} | {}"),
    "xor": Operator("{} ^ {}"),
    "not": Operator("~{}"),
    "shl": Operator("{} << {}", "a count outside 0 .. width - 1 shifts everything out"),
    "shr": Operator("{} >> {}", "keeps the sign; counts as for a shift to the left"),
    "lt": Operator("{} < {}", "false with NaN, as the three below and eq", BOOL),
    "le": Operator("{} <= {}", "", BOOL),
    "gt": Operator("{} > {}", "", BOOL),
    "ge": Operator("{} >= {}", "", BOOL),
    "eq": Operator("{} == {}", "", BOOL),
    "ne": Operator("{} != {}", "true with NaN", BOOL),
    "isnan": Operator("isnan({})", "", BOOL),
    "isfinite": Operator("isfinite({})", "", BOOL),
    "select": Operator("({1} if {0} else {2})", "bit for bit one of the two"),
    "floor": Operator("floor({})"),
    "trunc": Operator("trunc({})"),
    "rint": Operator("rint({})", "halves to even"),
    "sqrt": Operator("sqrt({})"),
    "exp": Operator("exp({})", "as good as a double is"),
    "log": Operator("log({})", "as good as a double is"),
    "fraction": Operator("fraction({})", "of frexp: in [0.5, 1), x = fraction * 2 ** exponent"),
    "exponent": Operator("exponent({})", "of frexp", i32),
    "scale": Operator("scale({}, {})", "the first times two to the second"),
    "undefined": Operator("{1} (undefined where {0})", "only around a whole expression"),
}


# ---- nodes -------------------------------------------------------------------------------------


def _binary(name: str) -> Callable[[Expr, Expr | Number], Expr]:
    return lambda self, other: apply(name, self, other)


def _unary(name: str) -> Callable[[Expr], Expr]:
    return lambda self: apply(name, self)


@dataclass(frozen=True)
class Expr:
    """A value of a type. The operators of Python make larger expressions; `==` compares trees."""

    kind: DType

    __add__ = _binary("add")
    __sub__ = _binary("sub")
    __mul__ = _binary("mul")
    __truediv__ = _binary("div")
    __floordiv__ = _binary("quo")
    __pow__ = _binary("pow")
    __and__ = _binary("and")
    __or__ = _binary("or")
    __xor__ = _binary("xor")
    __lshift__ = _binary("shl")
    __rshift__ = _binary("shr")
    __lt__ = _binary("lt")
    __le__ = _binary("le")
    __gt__ = _binary("gt")
    __ge__ = _binary("ge")
    eq = _binary("eq")
    ne = _binary("ne")
    __neg__ = _unary("neg")
    __abs__ = _unary("abs")
    __invert__ = _unary("not")

    def to(
        self,
        kind: DType,
        rounding: RoundMode = RoundMode.CAST_RINT,
        saturation: SaturationMode = SaturationMode.OFF,
    ) -> Expr:
        """The value in another type; what `base/convert.py` says holds of rounding and range."""
        return self if kind is self.kind else Convert(kind, self, rounding, saturation)

    def bits(self, kind: DType) -> Expr:
        """The same bits, read as another type of the same width."""
        assert kind.bits == self.kind.bits
        return Convert(kind, self, None)

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The nodes directly below."""
        return ()


@dataclass(frozen=True)
class Const(Expr):
    """A number, taken into its type as C++ converts an argument."""

    value: Number


@dataclass(frozen=True)
class Arg(Expr):
    """An element of an operand; `number`: the one that stands for all elements."""

    name: str
    is_number: bool = False


@dataclass(frozen=True)
class Apply(Expr):
    """An operator and what it is applied to."""

    name: str
    operands: tuple[Expr, ...]

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.operands


@dataclass(frozen=True)
class Convert(Expr):
    """A change of type. Without a rounding the bits stay and are read differently."""

    value: Expr
    rounding: RoundMode | None
    saturation: SaturationMode = SaturationMode.OFF

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.value,)


@dataclass(frozen=True)
class Condition:
    """Something that is settled before an instruction runs: words, and a test of the facts."""

    text: str
    holds: Callable[[Ops], bool] = field(repr=False)


@dataclass(frozen=True)
class Given(Expr):
    """One of two expressions, chosen by a condition before anything runs."""

    condition: Condition
    yes: Expr
    no: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.yes, self.no


# ---- making them -------------------------------------------------------------------------------


def apply(name: str, *operands: Expr | Number) -> Expr:
    """Apply an operator; numbers take the type of the expressions beside them."""
    kinds = [each.kind for each in operands if isinstance(each, Expr)]
    kind = kinds[-1]
    parts = tuple(each if isinstance(each, Expr) else Const(kind, each) for each in operands)
    uniform = kinds[1:] if name in ("select", "undefined") else kinds
    assert name == "scale" or all(k is kind for k in uniform), f"{name} of {kinds}"
    if name == "scale":
        kind = kinds[0]
    return Apply(OPERATORS[name].result or kind, name, parts)


def select(test: Expr, yes: Expr | Number, no: Expr | Number) -> Expr:
    """`yes` where the test is true, `no` elsewhere; both are computed."""
    return apply("select", test, yes, no)


def undefined(where: Expr, value: Expr) -> Expr:
    """The value, except that the hardware leaves it open where the test is true."""
    return apply("undefined", where, value)


def given(condition: Condition, yes: Expr, no: Expr) -> Expr:
    """A choice between two meanings."""
    assert yes.kind is no.kind, f"{yes.kind} or {no.kind}"
    return yes if yes == no else Given(yes.kind, condition, yes, no)


@cache
def on(names: str) -> Condition:
    """Whether the target is one of these."""
    listed = frozenset(names.split())
    return Condition(f"on {' or '.join(names.split())}", lambda o: o.target.name in listed)


ON_DEVICE = Condition("on a device", lambda o: o.target.is_device)


# ---- reading them ------------------------------------------------------------------------------


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, from the top."""
    yield expr
    for part in expr.parts:
        yield from walk(part)


def resolved(expr: Expr, holds: Callable[[Condition], bool]) -> Expr:
    """The expression without choices."""
    match expr:
        case Given(condition=condition, yes=yes, no=no):
            return resolved(yes if holds(condition) else no, holds)
        case Apply(kind, name, parts):
            return Apply(kind, name, tuple(resolved(part, holds) for part in parts))
        case Convert(kind, value, rounding, saturation):
            return Convert(kind, resolved(value, holds), rounding, saturation)
        case _:
            return expr


def written(expr: Expr, argument: Callable[[Arg], str], names: Mapping[DType, str]) -> str:
    """The expression as a line of text; `names` are words for types, such as T.

    What is used more than once gets a letter, explained behind "with".
    """
    uses: Counter[Expr] = Counter()
    letters: dict[Expr, str] = {}
    explained: list[str] = []

    def count(node: Expr) -> None:
        uses[node] += 1
        if uses[node] == 1:
            for part in node.parts:
                count(part)

    def text(node: Expr, inside: bool = True) -> str:
        simple = not node.parts or not any(part.parts for part in node.parts)
        if uses[node] == 1 or simple:
            return plain(node, inside)
        if node not in letters:
            made = plain(node, False)
            letters[node] = chr(ord("a") + len(letters))
            explained.append(f"{letters[node]} = {made}")
        return letters[node]

    def plain(node: Expr, inside: bool) -> str:
        match node:
            case Const(_, value):
                return repr(value)
            case Arg():
                return argument(node)
            case Given(_, condition, yes, no):
                return f"({text(yes, False)} {condition.text}, else {text(no, False)})"
            case Convert(kind, value):
                words = [text(value, False), *_manner(node)]
                return f"{names.get(kind, kind.name)}({', '.join(words)})"
            case _:
                shape = OPERATORS[cast("Apply", node).name].text
                encloses = "(" in shape
                made = shape.format(*(text(part, not encloses) for part in node.parts))
                return f"({made})" if inside and not encloses and "{} " in shape else made

    count(expr)
    return ", ".join([text(expr, False), *explained]).replace(", a = ", " with a = ", 1)


_ROUNDINGS = {RoundMode.CAST_TRUNC: "toward zero", RoundMode.CAST_FLOOR: "down"}


def _manner(node: Convert) -> list[str]:
    """What has to be said about a conversion beside the type."""
    if node.rounding is None:
        return ["bits"]
    words = [_ROUNDINGS[node.rounding]] if node.rounding in _ROUNDINGS else []
    narrows = node.value.kind.max_value > node.kind.max_value
    saturates = node.saturation == SaturationMode.ON and narrows
    return words + (["saturating"] if saturates else [])
