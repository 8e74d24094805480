"""Expressions in vector code: what one lane computes, for many lanes at a time.

A value of a type is kept as the type that computes it: bf16 travels as f32 and is rounded after
every step, floats of 8 bits, which are only read, as f32, all others as they are stored. What has
no code here is told by `Unsupported`; the instruction then runs as NumPy has it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import element, to_float32
from ptokit.base.dtypes import DType
from ptokit.engines.compiled import functions
from ptokit.engines.compiled.conversions import converted, rounded
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import FLOATS, stored, travels
from ptokit.engines.compiled.operators import ON_BOOLEANS, ON_FLOATS, ON_INTEGERS, scaled
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import BOOL, F64, Apply, Arg, Const, Convert, Expr

_NARROW = (dt.f32, dt.f16, dt.bf16)


def _written(value: float, kind: str) -> str:
    """A number as LLVM reads it: its bits; those of a float are of the same number as a double."""
    if kind == "half":
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    number = float(np.float32(value)) if kind == "float" else value
    return f"0x{struct.unpack('>Q', struct.pack('>d', number))[0]:016X}"


def _listed(element_type: str, values: Sequence[str]) -> Value:
    return "<" + ", ".join([f"{element_type} {value}" for value in values]) + ">"


class Lanes:
    """Code for `count` lanes of an expression."""

    def __init__(self, function: Function, count: int, values: Mapping[str, Value]) -> None:
        self.code = function
        self.count = count
        self._args = values  # of the operands, in computing types
        self._known: dict[Expr, Value] = {}

    # ---- types -------------------------------------------------------------------------------

    def vector(self, element_type: str) -> str:
        return f"<{self.count} x {element_type}>"

    def kind(self, kind: DType) -> str:
        """The vector type that computes elements of a type."""
        if kind is BOOL:
            return self.vector("i1")
        return self.vector("float" if travels(kind) else stored(kind))

    def same(self, element_type: str, value: str) -> Value:
        """A constant in all lanes."""
        return _listed(element_type, [value] * self.count)

    def floats(self, values: Sequence[float]) -> Value:
        """Constants, one for each lane."""
        return _listed("float", [_written(value, "float") for value in values])

    def integer(self, bits: int, value: int) -> Value:
        return self.same(f"i{bits}", str(value))

    def real(self, value: float, kind: str = "double") -> Value:
        return self.same(kind, _written(value, kind))

    # ---- in and out of memory ----------------------------------------------------------------

    def taken(self, kind: DType, value: Value) -> Value:
        """An element as loaded, in the type that computes it."""
        if not travels(kind):
            return value
        code, wide = self.code, self.vector("i32")
        if kind is not dt.bf16:
            return code.do(f"bitcast {wide} {self._decoded(kind, value)} to {self.vector('float')}")
        longer = code.do(f"zext {self.vector('i16')} {value} to {wide}")
        bits = code.do(f"shl {wide} {longer}, {self.integer(32, 16)}")
        return code.do(f"bitcast {wide} {bits} to {self.vector('float')}")

    def given(self, kind: DType, value: Value) -> Value:
        """An element as it is stored."""
        if not travels(kind):
            return value
        if kind is not dt.bf16:
            raise Unsupported(f"elements of {kind.name} that are made")
        code, wide = self.code, self.vector("i32")
        bits = code.do(f"bitcast {self.vector('float')} {value} to {wide}")
        upper = code.do(f"lshr {wide} {bits}, {self.integer(32, 16)}")
        return code.do(f"trunc {wide} {upper} to {self.vector('i16')}")

    def _decoded(self, kind: DType, value: Value) -> Value:
        """The bits of bytes as floats: there are few enough for a table."""
        code, wide = self.code, self.vector("i32")
        every = to_float32(np.arange(256, dtype=np.uint8).view(kind.np), kind)
        table = code.constant("i32", every.view(np.int32).tolist())
        index = code.do(f"zext {self.vector('i8')} {value} to {self.vector('i64')}")
        places = code.do(f"getelementptr i32, ptr {table}, {self.vector('i64')} {index}")
        return code.call(
            wide,
            f"llvm.masked.gather.v{self.count}i32.v{self.count}p0",
            (self.vector("ptr"), places),
            ("i32", "4"),
            (self.vector("i1"), self.integer(1, 1)),
            (wide, "poison"),
        )

    # ---- expressions -------------------------------------------------------------------------

    def value(self, expr: Expr) -> Value:
        found = self._known.get(expr)
        if found is None:
            found = self._known[expr] = self._compute(expr)
        return found

    def _compute(self, expr: Expr) -> Value:
        match expr:
            case Arg(_, name):
                return self._args[name]
            case Const(kind, number):
                return self.constant(kind, number)
            case Convert():
                return self._convert(expr)
            case Apply(kind, name, operands):
                return self._apply(kind, name, operands)
            case _:
                raise Unsupported(type(expr).__name__)

    def constant(self, kind: DType, number: int | float) -> Value:
        if kind is BOOL:
            return self.integer(1, int(bool(number)))
        if kind is F64:
            return self.real(float(number))
        code = element(number, kind)
        if kind is dt.bf16:
            return self.real(float(code), "float")
        if kind in FLOATS:
            return self.real(float(code), FLOATS[kind])
        if kind.is_float:
            raise Unsupported(f"a constant of {kind.name}")
        stored(kind)
        return self.integer(kind.bits, int(code))

    def _apply(self, kind: DType, name: str, operands: tuple[Expr, ...]) -> Value:
        values = [self.value(part) for part in operands]
        of = operands[-1].kind
        if name == "select":
            vector = self.kind(kind)
            test = f"{self.vector('i1')} {values[0]}"
            return self.code.do(f"select {test}, {vector} {values[1]}, {vector} {values[2]}")
        if name == "scale":
            return scaled(self, kind, *values)
        way = (ON_FLOATS if of.is_float or of is F64 else ON_INTEGERS).get(name)
        if of is BOOL:
            way = ON_BOOLEANS.get(name)
        if way is None:
            raise Unsupported(f"{name} of {of.name}")
        found = way(self, of, *values)
        if kind.bits == 8 and travels(kind):
            raise Unsupported(f"{name} of {kind.name}")
        return rounded(self, found) if kind is dt.bf16 else found

    def _convert(self, expr: Convert) -> Value:
        source, kind = expr.value.kind, expr.kind
        match expr.value:
            case Apply(_, "exp", (Convert(_, Expr(dt.f32) as of),)) if kind is dt.f32:
                return functions.float_exponential(self, self.value(of))
            case Apply(_, "exp", (of,)) if source is F64 and kind in _NARROW:
                value = functions.short_exponential(self, self.value(of))
            case _:
                value = self.value(expr.value)
        if expr.rounding is None:
            return self._same_bits(value, source, kind)
        return converted(self, value, source, kind, expr.rounding, expr.saturation)

    def _same_bits(self, value: Value, source: DType, kind: DType) -> Value:
        value = self.given(source, value)
        before, after = self.vector(stored(source)), self.vector(stored(kind))
        found = value if before == after else self.code.do(f"bitcast {before} {value} to {after}")
        return self.taken(kind, found)
