"""Expressions in vector code: what one lane computes, for many lanes at a time.

A value of a type is kept as the type that computes it: bf16 travels as f32 and is rounded after
every step, floats of 8 bits, which are only read, as f32, all others as they are stored. What has
no code here is told by `Unsupported`; the instruction then runs as NumPy has it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import element, to_float32
from ptokit.base.dtypes import DType
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.engines.compiled import functions
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import BOOL, F64, Apply, Arg, Const, Convert, Expr, walk

_FLOATS = {dt.f32: "float", dt.f16: "half", F64: "double"}
_NARROW = (dt.f32, dt.f16, dt.bf16)
_NEAREST = (RoundMode.CAST_RINT, RoundMode.CAST_NONE)


def stored(kind: DType) -> str:
    """The type of an element as it lies in memory."""
    if kind in _FLOATS:
        return _FLOATS[kind]
    if _travels(kind):
        return f"i{kind.bits}"
    if kind.is_integer and not kind.is_packed and kind is not BOOL:
        return f"i{kind.bits}"
    raise Unsupported(f"elements of {kind.name}")


def _travels(kind: DType) -> bool:
    """Whether a type is computed as f32."""
    return kind is dt.bf16 or (kind.is_float and kind.bits == 8 and not kind.is_packed)


def widest(expr: Expr, *kinds: DType) -> int:
    """Bytes of the widest element that an expression works with."""
    sizes = [node.kind.itemsize for node in walk(expr) if node.kind is not BOOL]
    return max([*sizes, *(kind.itemsize for kind in kinds), 2 if not sizes else 0])


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
        return self.vector("float" if _travels(kind) else stored(kind))

    def same(self, element_type: str, value: str) -> Value:
        """A constant in all lanes."""
        return "<" + ", ".join([f"{element_type} {value}"] * self.count) + ">"

    def integer(self, bits: int, value: int) -> Value:
        return self.same(f"i{bits}", str(value))

    def real(self, value: float, kind: str = "double") -> Value:
        if kind == "half":
            return self.same("half", f"0xH{int(np.float16(value).view(np.uint16)):04X}")
        number = float(np.float32(value)) if kind == "float" else value
        return self.same(kind, f"0x{struct.unpack('>Q', struct.pack('>d', number))[0]:016X}")

    # ---- in and out of memory ----------------------------------------------------------------

    def taken(self, kind: DType, value: Value) -> Value:
        """An element as loaded, in the type that computes it."""
        if not _travels(kind):
            return value
        code, wide = self.code, self.vector("i32")
        if kind is not dt.bf16:
            return code.do(f"bitcast {wide} {self._decoded(kind, value)} to {self.vector('float')}")
        longer = code.do(f"zext {self.vector('i16')} {value} to {wide}")
        bits = code.do(f"shl {wide} {longer}, {self.integer(32, 16)}")
        return code.do(f"bitcast {wide} {bits} to {self.vector('float')}")

    def given(self, kind: DType, value: Value) -> Value:
        """An element as it is stored."""
        if not _travels(kind):
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
        if kind in _FLOATS:
            return self.real(float(code), _FLOATS[kind])
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
        way = (_ON_FLOATS if of.is_float or of is F64 else _ON_INTEGERS).get(name)
        if of is BOOL:
            way = _ON_BOOLEANS.get(name)
        if way is None:
            raise Unsupported(f"{name} of {of.name}")
        found = way(self, of, *values)
        if kind.bits == 8 and _travels(kind):
            raise Unsupported(f"{name} of {kind.name}")
        return self.rounded(found) if kind is dt.bf16 else found

    def rounded(self, value: Value) -> Value:
        """A float32 that is a bf16: rounded to nearest even; NaN is quiet and keeps its sign."""
        code, wide, real = self.code, self.vector("i32"), self.vector("float")
        bits = code.do(f"bitcast {real} {value} to {wide}")
        upper = code.do(f"lshr {wide} {bits}, {self.integer(32, 16)}")
        parity = code.do(f"and {wide} {upper}, {self.integer(32, 1)}")
        half = code.do(f"add {wide} {parity}, {self.integer(32, 0x7FFF)}")
        sum_ = code.do(f"add {wide} {bits}, {half}")
        kept = code.do(f"and {wide} {sum_}, {self.integer(32, -65536)}")
        return self._nan_of(value, code.do(f"bitcast {wide} {kept} to {real}"))

    def _nan_of(self, value: Value, result: Value) -> Value:
        """The result, but a quiet NaN with the sign of the value where that is NaN."""
        code, real = self.code, self.vector("float")
        is_nan = code.do(f"fcmp uno {real} {value}, {value}")
        nan = self.quiet(value, "float", 32)
        return code.do(f"select {self.vector('i1')} {is_nan}, {real} {nan}, {real} {result}")

    def quiet(self, value: Value, kind: str, bits: int) -> Value:
        """The value, but of NaN the canonical one with its sign."""
        code, real, whole = self.code, self.vector(kind), self.vector(f"i{bits}")
        nan = {32: 0x7FC00000, 16: 0x7E00}[bits]
        is_nan = code.do(f"fcmp uno {real} {value}, {value}")
        as_bits = code.do(f"bitcast {real} {value} to {whole}")
        sign = code.do(f"and {whole} {as_bits}, {self.integer(bits, -(1 << bits - 1))}")
        quiet = code.do(f"or {whole} {sign}, {self.integer(bits, nan)}")
        chosen = code.do(f"select {self.vector('i1')} {is_nan}, {whole} {quiet}, {whole} {as_bits}")
        return code.do(f"bitcast {whole} {chosen} to {real}")

    def _to_odd(self, value: Value) -> Value:
        """A double as a float that rounds like it to any narrower format (base/convert.py)."""
        code, tests = self.code, self.vector("i1")
        single, double, whole = self.vector("float"), self.vector("double"), self.vector("i32")
        near = code.do(f"fptrunc {double} {value} to {single}")
        back = code.do(f"fpext {single} {near} to {double}")
        suffix = f"v{self.count}f64"
        sizes = [code.call(double, f"llvm.fabs.{suffix}", (double, each)) for each in (back, value)]
        beyond = code.do(f"fcmp ogt {double} {sizes[0]}, {sizes[1]}")
        inexact = code.do(f"fcmp one {double} {back}, {value}")
        bits = code.do(f"bitcast {single} {near} to {whole}")
        less = code.do(f"sub {whole} {bits}, {self.integer(32, 1)}")
        towards = code.do(f"select {tests} {beyond}, {whole} {less}, {whole} {bits}")
        odd = code.do(f"or {whole} {towards}, {self.integer(32, 1)}")
        chosen = code.do(f"select {tests} {inexact}, {whole} {odd}, {whole} {towards}")
        return code.do(f"bitcast {whole} {chosen} to {single}")

    # ---- conversions -------------------------------------------------------------------------

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
        return self.converted(value, source, kind, expr.rounding, expr.saturation)

    def _same_bits(self, value: Value, source: DType, kind: DType) -> Value:
        value = self.given(source, value)
        before, after = self.vector(stored(source)), self.vector(stored(kind))
        found = value if before == after else self.code.do(f"bitcast {before} {value} to {after}")
        return self.taken(kind, found)

    def converted(
        self,
        value: Value,
        source: DType,
        kind: DType,
        rounding: RoundMode,
        saturation: SaturationMode,
    ) -> Value:
        """A value in another type, as `base/convert.py` has it."""
        if source is kind:
            return value
        if source.bits == 8 and _travels(source):
            return self.converted(value, dt.f32, kind, rounding, saturation)
        before, after = self.kind(source), self.kind(kind)
        if source.is_integer and kind.is_integer:
            return self._between_integers(value, source, kind, saturation)
        is_real = {source, kind} <= {*_FLOATS, dt.bf16}
        if is_real and rounding in _NEAREST:
            return self._between_floats(value, source, kind, saturation)
        if source.is_integer and kind in (dt.f32, F64) and rounding in _NEAREST:
            if source.bits > 32 or (kind is F64 and source.bits > 32):
                raise Unsupported(f"{source.name} to {kind.name}")
            how = "sitofp" if source.min_value < 0 else "uitofp"
            return self.code.do(f"{how} {before} {value} to {after}")
        if source.is_integer and kind in (dt.f16, dt.bf16) and rounding in _NEAREST:
            wide = self.converted(value, source, F64, rounding, SaturationMode.OFF)  # exact
            return self._between_floats(wide, F64, kind, saturation)
        if source.is_integer and kind is dt.f32 and rounding == RoundMode.CAST_ROUND:
            return self._rounded_away(value, source)
        if (source, kind, rounding) == (dt.f32, dt.bf16, RoundMode.CAST_ROUND):
            return self._upper_half(value, saturation)
        if kind.is_integer and source is dt.bf16:  # computed as f32
            return self.converted(value, dt.f32, kind, rounding, saturation)
        if kind.is_integer and source in (dt.f32, dt.f16, F64) and kind.bits <= 32:
            return self._to_integer(value, source, kind, rounding, saturation)
        raise Unsupported(f"{source.name} to {kind.name}, {rounding.name}, {saturation.name}")

    def _between_integers(
        self, value: Value, source: DType, kind: DType, saturation: SaturationMode
    ) -> Value:
        code = self.code
        for each in (source, kind):
            stored(each)  # packed ones have no code
        signed = source.min_value < 0
        before, after = self.vector(f"i{source.bits}"), self.vector(f"i{kind.bits}")
        if saturation == SaturationMode.ON:
            letter = "s" if signed else "u"
            low, high = int(kind.min_value), int(kind.max_value)
            if low > source.min_value:
                limit = self.integer(source.bits, low)
                name = f"llvm.{letter}max.v{self.count}i{source.bits}"
                value = code.call(before, name, (before, value), (before, limit))
            if high < source.max_value:
                limit = self.integer(source.bits, high)
                name = f"llvm.{letter}min.v{self.count}i{source.bits}"
                value = code.call(before, name, (before, value), (before, limit))
        if kind.bits == source.bits:
            return value
        how = "trunc" if kind.bits < source.bits else "sext" if signed else "zext"
        return code.do(f"{how} {before} {value} to {after}")

    def _between_floats(
        self, value: Value, source: DType, kind: DType, saturation: SaturationMode
    ) -> Value:
        code = self.code
        if source is dt.bf16 and kind is not F64:  # computed as f32; NaNs come out canonical
            value, source = self.quiet(value, "float", 32), dt.f32
            if kind is dt.f32:
                return value
        before, after = self.kind(source), self.kind(kind)
        bits = {F64: 64, dt.f32: 32, dt.bf16: 32, dt.f16: 16}
        if kind is dt.bf16:
            if source is F64:
                value = self._to_odd(value)
            if source is dt.f16:
                value = code.do(f"fpext {before} {value} to {self.vector('float')}")
            value = self.rounded(value)
            return self._within(value, "float", 32, 0x7F7F0000, saturation)
        if bits[kind] > bits[source]:
            wide = code.do(f"fpext {before} {value} to {after}")
            return wide if kind is F64 else self.quiet(wide, "float", 32)
        if source is F64 and kind is dt.f16:
            value, before = self._to_odd(value), self.vector("float")
        narrow = code.do(f"fptrunc {before} {value} to {after}")
        name = _FLOATS[kind]
        narrow = self.quiet(narrow, name, bits[kind])
        largest = 0x7BFF if kind is dt.f16 else 0x7F7FFFFF
        return self._within(narrow, name, bits[kind], largest, saturation)

    def _within(
        self, value: Value, name: str, bits: int, largest: int, saturation: SaturationMode
    ) -> Value:
        """Infinities become the largest finite number where the conversion saturates."""
        if saturation != SaturationMode.ON:
            return value
        code, real, whole = self.code, self.vector(name), self.vector(f"i{bits}")
        as_bits = code.do(f"bitcast {real} {value} to {whole}")
        magnitude = code.do(f"and {whole} {as_bits}, {self.integer(bits, (1 << bits - 1) - 1)}")
        sign = code.do(f"and {whole} {as_bits}, {self.integer(bits, -(1 << bits - 1))}")
        infinity = {16: 0x7C00, 32: 0x7F800000}[bits]
        is_infinite = code.do(f"icmp eq {whole} {magnitude}, {self.integer(bits, infinity)}")
        limit = code.do(f"or {whole} {sign}, {self.integer(bits, largest)}")
        chosen = code.do(
            f"select {self.vector('i1')} {is_infinite}, {whole} {limit}, {whole} {as_bits}"
        )
        return code.do(f"bitcast {whole} {chosen} to {real}")

    def _to_integer(
        self,
        value: Value,
        source: DType,
        kind: DType,
        rounding: RoundMode,
        saturation: SaturationMode,
    ) -> Value:
        code = self.code
        name = _ROUNDINGS.get(rounding)
        wraps = saturation == SaturationMode.OFF
        if name is None or (wraps and source is F64):
            raise Unsupported(f"{source.name} to {kind.name}, {rounding.name}, {saturation.name}")
        if source is dt.f16:
            value = code.do(f"fpext {self.kind(source)} {value} to {self.vector('float')}")
            source = dt.f32
        real, whole = self.kind(source), self.vector(f"i{kind.bits}")
        short = {dt.f32: "f32", F64: "f64"}[source]
        value = code.call(real, f"llvm.{name}.v{self.count}{short}", (real, value))
        if wraps:
            return self._low_bits(value, kind)
        how = "si" if kind.min_value < 0 else "ui"
        return code.call(
            whole, f"llvm.fpto{how}.sat.v{self.count}i{kind.bits}.v{self.count}{short}",
            (real, value),
        )  # fmt: skip

    def _low_bits(self, value: Value, kind: DType) -> Value:
        """Whole floats modulo a power of two; of what has more than 63 bits the low ones are 0."""
        code, real, tests = self.code, self.vector("float"), self.vector("i1")
        wide, whole = self.vector("i64"), self.vector(f"i{kind.bits}")
        name = f"llvm.fptosi.sat.v{self.count}i64.v{self.count}f32"
        low = code.do(f"trunc {wide} {code.call(wide, name, (real, value))} to {whole}")
        huge = code.do(f"fcmp oge {real} {value}, {self.real(2.0**63, 'float')}")
        low = code.do(f"select {tests} {huge}, {whole} zeroinitializer, {whole} {low}")
        infinite = code.do(f"fcmp oeq {real} {value}, {self.real(np.inf, 'float')}")
        ones = self.integer(kind.bits, -1)
        return code.do(f"select {tests} {infinite}, {whole} {ones}, {whole} {low}")

    def _rounded_away(self, value: Value, source: DType) -> Value:
        """Integers of at most 32 bits as floats, halves away from zero."""
        if source.bits > 32:
            raise Unsupported(f"{source.name} to f32, halves away from zero")
        code, wide = self.code, self.vector("i64")
        how = "sext" if source.min_value < 0 else "zext"
        long = code.do(f"{how} {self.kind(source)} {value} to {wide}")
        name = f"v{self.count}i64"
        size = code.call(wide, f"llvm.abs.{name}", (wide, long), ("i1", "false"))
        zeros = code.call(wide, f"llvm.ctlz.{name}", (wide, size), ("i1", "false"))
        spare = code.do(f"sub {wide} {self.integer(64, 40)}, {zeros}")  # bits beyond the 24 of f32
        none = self.integer(64, 0)
        spare = code.call(wide, f"llvm.smax.{name}", (wide, spare), (wide, none))
        unit = code.do(f"shl {wide} {self.integer(64, 1)}, {spare}")
        half = code.do(f"lshr {wide} {unit}, {self.integer(64, 1)}")
        more = code.do(f"add {wide} {size}, {half}")
        kept = code.do(f"shl {wide} {code.do(f'lshr {wide} {more}, {spare}')}, {spare}")
        real = self.vector("float")
        found = code.do(f"uitofp {wide} {kept} to {real}")
        signed = code.do(f"sitofp {wide} {long} to {real}")
        suffix = f"v{self.count}f32"
        return code.call(real, f"llvm.copysign.{suffix}", (real, found), (real, signed))

    def _upper_half(self, value: Value, saturation: SaturationMode) -> Value:
        """A float32 that is a bf16, halves away from zero."""
        code, real, wide = self.code, self.vector("float"), self.vector("i32")
        bits = code.do(f"bitcast {real} {value} to {wide}")
        more = code.do(f"add {wide} {bits}, {self.integer(32, 0x8000)}")
        kept = code.do(f"and {wide} {more}, {self.integer(32, -65536)}")
        found = self._nan_of(value, code.do(f"bitcast {wide} {kept} to {real}"))
        return self._within(found, "float", 32, 0x7F7F0000, saturation)


_ROUNDINGS = {
    RoundMode.CAST_RINT: "rint",
    RoundMode.CAST_NONE: "rint",
    RoundMode.CAST_FLOOR: "floor",
    RoundMode.CAST_CEIL: "ceil",
    RoundMode.CAST_TRUNC: "trunc",
    RoundMode.CAST_ROUND: "round",
}

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


_ON_FLOATS: dict[str, Way] = {
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
    "sqrt": _intrinsic("sqrt"),
    "exp": _exp,
    "log": _log,
}
_ON_INTEGERS: dict[str, Way] = {
    "add": _plain("add"),
    "sub": _plain("sub"),
    "mul": _plain("mul"),
    "quo": _divided("div"),
    "rem": _divided("rem"),
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
_ON_BOOLEANS: dict[str, Way] = {
    "and": _plain("and"),
    "or": _plain("or"),
    "xor": _plain("xor"),
    "not": lambda lanes, kind, a: lanes.code.do(
        f"xor {lanes.kind(kind)} {a}, {lanes.integer(1, 1)}"
    ),
}
