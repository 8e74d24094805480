"""NumPy code made of expressions: a Python function per instruction and combination of types.

The code is what one would write by hand: one call per operator, the last of which writes into the
destination where it can; what an expression uses twice is computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ptokit.base.convert import convert, element, from_float
from ptokit.base.dtypes import DType, f32
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.base.generated import define
from ptokit.base.layout import Array
from ptokit.isa.expr import BOOL, F64, Apply, Arg, Const, Convert, Expr

# ---- what the code calls -----------------------------------------------------------------------


def _truncated_quotient(a: Array, b: Array) -> Array:
    """Integers divided toward zero; x / 0 is 0."""
    return np.floor_divide(a - np.fmod(a, b), b)


def rounded(
    values: Array,
    kind: DType,
    rounding: RoundMode = RoundMode.CAST_RINT,
    saturation: SaturationMode = SaturationMode.OFF,
    out: Array | None = None,
) -> Array:
    """Doubles in another type, rounded once."""
    result = np.empty(values.shape, kind.np) if out is None else out
    if kind is f32 and rounding == RoundMode.CAST_RINT and saturation == SaturationMode.OFF:
        # A cast rounds right; only its infinities and NaNs need a second look.
        np.copyto(result, values, casting="same_kind")
        if np.count_nonzero(np.isfinite(result)) == result.size:
            return result
    result[...] = from_float(values, kind, rounding, saturation)
    return result


def pack_mask(bits: Array, mask: Array) -> None:
    """Write a boolean matrix into the rows of a mask, as bytes; what is left of it becomes 0.

    Rows that lie too close overwrite one another, the later ones the earlier.
    """
    packed = np.packbits(bits, axis=1, bitorder="little")
    mask[...] = 0
    for row, stored in zip(mask, packed, strict=False):
        row[: len(stored)] = stored


def unpack_mask(mask: Array, cols: int) -> Array:
    """Read the first `cols` bits of every row of a mask, given as bytes, as a boolean matrix."""
    return np.unpackbits(mask, axis=1, count=cols, bitorder="little").view(np.bool_)


def repeated(values: Array, columns: int) -> Array:
    """Repeat what a row holds along it; a single value broadcasts by itself."""
    width = values.shape[1]
    return values if width in (1, columns) else values[:, np.arange(columns) % width]


UFUNCS: Mapping[str, str] = {  # by the name that NumPy has for them
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "rem": "fmod",
    "mod": "remainder",
    "pow": "power",
    "neg": "negative",
    "abs": "absolute",
    "copysign": "copysign",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "invert",
    "shl": "left_shift",
    "shr": "right_shift",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
    "isnan": "isnan",
    "isfinite": "isfinite",
    "floor": "floor",
    "trunc": "trunc",
    "rint": "rint",
    "sqrt": "sqrt",
    "exp": "exp",
    "log": "log",
    "scale": "ldexp",
}


def ufunc(name: str) -> np.ufunc:
    """NumPy's function for an operation of expressions."""
    return getattr(np, UFUNCS[name])


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "quo": _truncated_quotient,
    "select": lambda *given: np.where(*given),
    "fraction": lambda x: np.frexp(x)[0],
    "exponent": lambda x: np.frexp(x)[1],
}


# ---- the code ----------------------------------------------------------------------------------


class Code:
    """A function under construction: its lines, and the objects they name."""

    def __init__(self, name: str, parameters: Sequence[str]) -> None:
        self._name = name
        self._parameters = list(parameters)
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {}
        self._known: dict[Expr, str] = {}
        self._uses: Counter[Expr] = Counter()

    def number(self, arg: Arg) -> None:
        """Take a parameter that is a number into its type."""
        self.line(f"{arg.name} = {self._object(element)}({arg.name}, {self._object(arg.kind)})")

    def line(self, text: str, **objects: Any) -> None:
        """Add a line; names in it that are not parameters are given with their objects."""
        self._objects.update(objects)
        self._lines.append(text)

    def counting(self, *exprs: Expr) -> None:
        """Announce what will be computed, so that nothing is computed twice."""
        for expr in exprs:
            self._uses[expr] += 1
            if self._uses[expr] == 1:
                self.counting(*expr.parts)

    def value(self, expr: Expr) -> str:
        """Code for a value: a name, or a call."""
        if expr in self._known:
            return self._known[expr]
        text = self._call(expr)
        if self._uses[expr] > 1 and expr.parts:
            self._known[expr] = name = f"t{len(self._known)}"
            self.line(f"{name} = {text}")
            return name
        return text

    def store(self, target: str, expr: Expr) -> None:
        """Compute a value into an array; the last step writes there itself where it can."""
        if expr in self._known or not self._writes(expr):
            self.line(f"{target}[...] = {self.value(expr)}")
        else:
            self.line(self._call(expr, f", out={target}"))

    def function(self, result: str = "") -> Callable[..., Any]:
        """The finished function."""
        lines = [*self._lines, f"return {result}" if result else ""]
        body = "\n    ".join(filter(None, lines)) or "pass"
        source = f"def {self._name}({', '.join(self._parameters)}):\n    {body}\n"
        define(source, self._name, self._objects, self._objects)
        return self._objects[self._name]

    @staticmethod
    def _writes(expr: Expr) -> bool:
        """Whether the last step takes `out=`."""
        if isinstance(expr, Convert):
            return expr.value.kind is F64
        return isinstance(expr, Apply) and expr.name in UFUNCS and expr.kind is not BOOL

    def _call(self, expr: Expr, out: str = "") -> str:
        match expr:
            case Arg(_, name):
                return name
            case Const(kind, value):
                plain = kind is F64 or kind is BOOL
                return self._object(kind.np.type(value) if plain else element(value, kind))
            case Apply(_, name, operands):
                function = ufunc(name) if name in UFUNCS else _FUNCTIONS[name]
                return f"{self._object(function)}({', '.join(map(self.value, operands))}{out})"
            case Convert():
                return self._conversion(expr, out)
            case _:
                raise AssertionError(f"{expr} is still open")

    def _conversion(self, expr: Convert, out: str) -> str:
        value, kind = self.value(expr.value), self._object(expr.kind)
        if expr.rounding is None:
            return f"{value}.view({kind}.np)"
        if expr.kind is F64:
            return f"{value}.astype({kind}.np)"
        manner = f"{self._object(expr.rounding)}, {self._object(expr.saturation)}"
        if expr.value.kind is F64:
            return f"{self._object(rounded)}({value}, {kind}, {manner}{out})"
        source = self._object(expr.value.kind)
        return f"{self._object(convert)}({value}, {source}, {kind}, {manner})"

    def _object(self, thing: Any) -> str:
        """A name for an object of ours."""
        name = next((n for n, other in self._objects.items() if other is thing), None)
        if name is None:
            name = f"c{len(self._objects)}"
            self._objects[name] = thing
        return name


def function_of(name: str, parameters: Sequence[str], *results: Expr) -> Callable[..., Any]:
    """A function of arrays that returns the value of an expression, or of several."""
    code = Code(name, parameters)
    code.counting(*results)
    return code.function(", ".join(code.value(result) for result in results))
