"""Elements of one type as elements of another, in vector code: as `base/convert.py` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.dtypes import DType
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import FLOATS, stored, travels
from ptokit.engines.compiled.text import Value
from ptokit.isa.expr import F64

if TYPE_CHECKING:
    from ptokit.engines.compiled.lanes import Lanes

_NEAREST = (RoundMode.CAST_RINT, RoundMode.CAST_NONE)
_ROUNDINGS = {
    RoundMode.CAST_RINT: "rint",
    RoundMode.CAST_NONE: "rint",
    RoundMode.CAST_FLOOR: "floor",
    RoundMode.CAST_CEIL: "ceil",
    RoundMode.CAST_TRUNC: "trunc",
    RoundMode.CAST_ROUND: "round",
}


def converted(
    lanes: Lanes,
    value: Value,
    source: DType,
    kind: DType,
    rounding: RoundMode,
    saturation: SaturationMode,
) -> Value:
    """A value in another type, as `base/convert.py` has it."""
    if source is kind:
        return value
    if source.bits == 8 and travels(source):
        return converted(lanes, value, dt.f32, kind, rounding, saturation)
    before, after = lanes.kind(source), lanes.kind(kind)
    if source.is_integer and kind.is_integer:
        return _between_integers(lanes, value, source, kind, saturation)
    is_real = {source, kind} <= {*FLOATS, dt.bf16}
    if is_real and rounding in _NEAREST:
        return _between_floats(lanes, value, source, kind, saturation)
    if source.is_integer and kind in (dt.f32, F64) and rounding in _NEAREST:
        if source.bits > 32 and kind is F64:  # it would be rounded once more
            raise Unsupported(f"{source.name} to {kind.name}")
        how = "sitofp" if source.min_value < 0 else "uitofp"
        return lanes.code.do(f"{how} {before} {value} to {after}")
    if source.is_integer and kind in (dt.f16, dt.bf16) and rounding in _NEAREST:
        wide = converted(lanes, value, source, F64, rounding, SaturationMode.OFF)  # exact
        return _between_floats(lanes, wide, F64, kind, saturation)
    if source.is_integer and kind is dt.f32 and rounding == RoundMode.CAST_ROUND:
        return _rounded_away(lanes, value, source)
    if (source, kind, rounding) == (dt.f32, dt.bf16, RoundMode.CAST_ROUND):
        return _upper_half(lanes, value, saturation)
    if (source, kind) == (dt.f32, dt.f16) and rounding in _ROUNDINGS:
        whole = _by_spacing(lanes, value, rounding)
        return _between_floats(lanes, whole, source, kind, saturation)
    if kind.is_integer and source is dt.bf16:  # computed as f32
        return converted(lanes, value, dt.f32, kind, rounding, saturation)
    is_wide = kind.bits > 32 and saturation == SaturationMode.OFF
    if kind.is_integer and source in (dt.f32, dt.f16, F64) and not (is_wide or kind.is_packed):
        return _to_integer(lanes, value, source, kind, rounding, saturation)
    raise Unsupported(f"{source.name} to {kind.name}, {rounding.name}, {saturation.name}")


def _between_integers(
    lanes: Lanes, value: Value, source: DType, kind: DType, saturation: SaturationMode
) -> Value:
    code = lanes.code
    for each in (source, kind):
        stored(each)  # packed ones have no code
    signed = source.min_value < 0
    before, after = lanes.vector(f"i{source.bits}"), lanes.vector(f"i{kind.bits}")
    if saturation == SaturationMode.ON:
        letter = "s" if signed else "u"
        low, high = int(kind.min_value), int(kind.max_value)
        if low > source.min_value:
            limit = lanes.integer(source.bits, low)
            name = f"llvm.{letter}max.v{lanes.count}i{source.bits}"
            value = code.call(before, name, (before, value), (before, limit))
        if high < source.max_value:
            limit = lanes.integer(source.bits, high)
            name = f"llvm.{letter}min.v{lanes.count}i{source.bits}"
            value = code.call(before, name, (before, value), (before, limit))
    if kind.bits == source.bits:
        return value
    how = "trunc" if kind.bits < source.bits else "sext" if signed else "zext"
    return code.do(f"{how} {before} {value} to {after}")


def _between_floats(
    lanes: Lanes, value: Value, source: DType, kind: DType, saturation: SaturationMode
) -> Value:
    code = lanes.code
    if source is dt.bf16 and kind is not F64:  # computed as f32; NaNs come out canonical
        value, source = quiet(lanes, value), dt.f32
        if kind is dt.f32:
            return value
    before, after = lanes.kind(source), lanes.kind(kind)
    bits = {F64: 64, dt.f32: 32, dt.bf16: 32, dt.f16: 16}
    if kind is dt.bf16:
        if source is F64:
            value = _to_odd(lanes, value)
        if source is dt.f16:
            value = code.do(f"fpext {before} {value} to {lanes.vector('float')}")
        value = rounded(lanes, value)
        return _within(lanes, value, 0x7F7F0000, saturation)
    if bits[kind] > bits[source]:
        wide = code.do(f"fpext {before} {value} to {after}")
        return wide if kind is F64 else quiet(lanes, wide)
    if source is F64 and kind is dt.f16:
        value, before = _to_odd(lanes, value), lanes.vector("float")
    narrow = code.do(f"fptrunc {before} {value} to {after}")
    if kind is dt.f16:
        return _canonical_half(lanes, narrow, saturation)
    return _within(lanes, quiet(lanes, narrow), 0x7F7FFFFF, saturation)


def _canonical_half(lanes: Lanes, value: Value, saturation: SaturationMode) -> Value:
    """A half with one NaN of each sign, and within its range where the conversion saturates.

    By its bits: few processors compare halves.
    """
    code, real, whole = lanes.code, lanes.vector("half"), lanes.vector("i16")
    bits = code.do(f"bitcast {real} {value} to {whole}")
    size = code.do(f"and {whole} {bits}, {lanes.integer(16, 0x7FFF)}")
    sign = code.do(f"and {whole} {bits}, {lanes.integer(16, -0x8000)}")
    is_nan = code.do(f"icmp ugt {whole} {size}, {lanes.integer(16, 0x7C00)}")
    if saturation == SaturationMode.ON:
        limit = (whole, lanes.integer(16, 0x7BFF))
        size = code.call(whole, f"llvm.umin.v{lanes.count}i16", (whole, size), limit)
    nan = lanes.integer(16, 0x7E00)
    size = code.do(f"select {lanes.vector('i1')} {is_nan}, {whole} {nan}, {whole} {size}")
    return code.do(f"bitcast {whole} {code.do(f'or {whole} {sign}, {size}')} to {real}")


def _within(lanes: Lanes, value: Value, largest: int, saturation: SaturationMode) -> Value:
    """Infinities become the largest finite number where the conversion saturates."""
    if saturation != SaturationMode.ON:
        return value
    code, real, whole = lanes.code, lanes.vector("float"), lanes.vector("i32")
    as_bits = code.do(f"bitcast {real} {value} to {whole}")
    magnitude = code.do(f"and {whole} {as_bits}, {lanes.integer(32, 0x7FFFFFFF)}")
    sign = code.do(f"and {whole} {as_bits}, {lanes.integer(32, -0x80000000)}")
    is_infinite = code.do(f"icmp eq {whole} {magnitude}, {lanes.integer(32, 0x7F800000)}")
    limit = code.do(f"or {whole} {sign}, {lanes.integer(32, largest)}")
    chosen = code.do(
        f"select {lanes.vector('i1')} {is_infinite}, {whole} {limit}, {whole} {as_bits}"
    )
    return code.do(f"bitcast {whole} {chosen} to {real}")


def _to_integer(
    lanes: Lanes,
    value: Value,
    source: DType,
    kind: DType,
    rounding: RoundMode,
    saturation: SaturationMode,
) -> Value:
    code = lanes.code
    name = _ROUNDINGS.get(rounding)
    wraps = saturation == SaturationMode.OFF
    if name is None or (wraps and source is F64):
        raise Unsupported(f"{source.name} to {kind.name}, {rounding.name}, {saturation.name}")
    if source is dt.f16:
        value = code.do(f"fpext {lanes.kind(source)} {value} to {lanes.vector('float')}")
        source = dt.f32
    real, whole = lanes.kind(source), lanes.vector(f"i{kind.bits}")
    short = {dt.f32: "f32", F64: "f64"}[source]
    value = code.call(real, f"llvm.{name}.v{lanes.count}{short}", (real, value))
    if wraps:
        return _low_bits(lanes, value, kind)
    how = "si" if kind.min_value < 0 else "ui"
    return code.call(
        whole, f"llvm.fpto{how}.sat.v{lanes.count}i{kind.bits}.v{lanes.count}{short}",
        (real, value),
    )  # fmt: skip


def _low_bits(lanes: Lanes, value: Value, kind: DType) -> Value:
    """Whole floats modulo a power of two; of what has more than 63 bits the low ones are 0."""
    code, real, tests = lanes.code, lanes.vector("float"), lanes.vector("i1")
    wide, whole = lanes.vector("i64"), lanes.vector(f"i{kind.bits}")
    name = f"llvm.fptosi.sat.v{lanes.count}i64.v{lanes.count}f32"
    low = code.do(f"trunc {wide} {code.call(wide, name, (real, value))} to {whole}")
    huge = code.do(f"fcmp oge {real} {value}, {lanes.real(2.0**63, 'float')}")
    low = code.do(f"select {tests} {huge}, {whole} zeroinitializer, {whole} {low}")
    infinite = code.do(f"fcmp oeq {real} {value}, {lanes.real(np.inf, 'float')}")
    ones = lanes.integer(kind.bits, -1)
    return code.do(f"select {tests} {infinite}, {whole} {ones}, {whole} {low}")


def _rounded_away(lanes: Lanes, value: Value, source: DType) -> Value:
    """Integers of at most 32 bits as floats, halves away from zero."""
    if source.bits > 32:
        raise Unsupported(f"{source.name} to f32, halves away from zero")
    code, wide = lanes.code, lanes.vector("i64")
    how = "sext" if source.min_value < 0 else "zext"
    long = code.do(f"{how} {lanes.kind(source)} {value} to {wide}")
    name = f"v{lanes.count}i64"
    size = code.call(wide, f"llvm.abs.{name}", (wide, long), ("i1", "false"))
    zeros = code.call(wide, f"llvm.ctlz.{name}", (wide, size), ("i1", "false"))
    spare = code.do(f"sub {wide} {lanes.integer(64, 40)}, {zeros}")  # bits beyond the 24 of f32
    none = lanes.integer(64, 0)
    spare = code.call(wide, f"llvm.smax.{name}", (wide, spare), (wide, none))
    unit = code.do(f"shl {wide} {lanes.integer(64, 1)}, {spare}")
    half = code.do(f"lshr {wide} {unit}, {lanes.integer(64, 1)}")
    more = code.do(f"add {wide} {size}, {half}")
    kept = code.do(f"shl {wide} {code.do(f'lshr {wide} {more}, {spare}')}, {spare}")
    real = lanes.vector("float")
    found = code.do(f"uitofp {wide} {kept} to {real}")
    signed = code.do(f"sitofp {wide} {long} to {real}")
    suffix = f"v{lanes.count}f32"
    return code.call(real, f"llvm.copysign.{suffix}", (real, found), (real, signed))


def _by_spacing(lanes: Lanes, value: Value, rounding: RoundMode) -> Value:
    """A float32 that an f16 holds, but for its range: rounded in units of the last place there."""
    code, real, wide = lanes.code, lanes.vector("float"), lanes.vector("i32")
    bits = code.do(f"bitcast {real} {value} to {wide}")
    power = code.do(f"and {wide} {bits}, {lanes.integer(32, 0x7F800000)}")
    least = lanes.integer(32, (127 - 14) << 23)  # below it the units stay the same
    power = code.call(wide, f"llvm.umax.v{lanes.count}i32", (wide, power), (wide, least))
    unit = code.do(f"sub {wide} {power}, {lanes.integer(32, 10 << 23)}")
    inverse = code.do(f"sub {wide} {lanes.integer(32, 254 << 23)}, {unit}")
    unit, inverse = (code.do(f"bitcast {wide} {each} to {real}") for each in (unit, inverse))
    found = code.do(f"fmul {real} {value}, {inverse}")
    name = f"llvm.{_ROUNDINGS[rounding]}.v{lanes.count}f32"
    return code.do(f"fmul {real} {code.call(real, name, (real, found))}, {unit}")


def _upper_half(lanes: Lanes, value: Value, saturation: SaturationMode) -> Value:
    """A float32 that is a bf16, halves away from zero."""
    code, real, wide = lanes.code, lanes.vector("float"), lanes.vector("i32")
    bits = code.do(f"bitcast {real} {value} to {wide}")
    more = code.do(f"add {wide} {bits}, {lanes.integer(32, 0x8000)}")
    kept = code.do(f"and {wide} {more}, {lanes.integer(32, -65536)}")
    found = _nan_of(lanes, value, code.do(f"bitcast {wide} {kept} to {real}"))
    return _within(lanes, found, 0x7F7F0000, saturation)


def rounded(lanes: Lanes, value: Value) -> Value:
    """A float32 that is a bf16: rounded to nearest even; NaN is quiet and keeps its sign."""
    code, wide, real = lanes.code, lanes.vector("i32"), lanes.vector("float")
    bits = code.do(f"bitcast {real} {value} to {wide}")
    upper = code.do(f"lshr {wide} {bits}, {lanes.integer(32, 16)}")
    parity = code.do(f"and {wide} {upper}, {lanes.integer(32, 1)}")
    half = code.do(f"add {wide} {parity}, {lanes.integer(32, 0x7FFF)}")
    sum_ = code.do(f"add {wide} {bits}, {half}")
    kept = code.do(f"and {wide} {sum_}, {lanes.integer(32, -65536)}")
    return _nan_of(lanes, value, code.do(f"bitcast {wide} {kept} to {real}"))


def _nan_of(lanes: Lanes, value: Value, result: Value) -> Value:
    """The result, but a quiet NaN with the sign of the value where that is NaN."""
    code, real = lanes.code, lanes.vector("float")
    is_nan = code.do(f"fcmp uno {real} {value}, {value}")
    nan = quiet(lanes, value)
    return code.do(f"select {lanes.vector('i1')} {is_nan}, {real} {nan}, {real} {result}")


def quiet(lanes: Lanes, value: Value) -> Value:
    """The float32, but of NaN the canonical one with its sign."""
    code, real, whole = lanes.code, lanes.vector("float"), lanes.vector("i32")
    is_nan = code.do(f"fcmp uno {real} {value}, {value}")
    as_bits = code.do(f"bitcast {real} {value} to {whole}")
    sign = code.do(f"and {whole} {as_bits}, {lanes.integer(32, -0x80000000)}")
    quiet = code.do(f"or {whole} {sign}, {lanes.integer(32, 0x7FC00000)}")
    chosen = code.do(f"select {lanes.vector('i1')} {is_nan}, {whole} {quiet}, {whole} {as_bits}")
    return code.do(f"bitcast {whole} {chosen} to {real}")


def _to_odd(lanes: Lanes, value: Value) -> Value:
    """A double as a float that rounds like it to any narrower format (base/convert.py)."""
    code, tests = lanes.code, lanes.vector("i1")
    single, double, whole = lanes.vector("float"), lanes.vector("double"), lanes.vector("i32")
    near = code.do(f"fptrunc {double} {value} to {single}")
    back = code.do(f"fpext {single} {near} to {double}")
    suffix = f"v{lanes.count}f64"
    sizes = [code.call(double, f"llvm.fabs.{suffix}", (double, each)) for each in (back, value)]
    beyond = code.do(f"fcmp ogt {double} {sizes[0]}, {sizes[1]}")
    inexact = code.do(f"fcmp one {double} {back}, {value}")
    bits = code.do(f"bitcast {single} {near} to {whole}")
    less = code.do(f"sub {whole} {bits}, {lanes.integer(32, 1)}")
    towards = code.do(f"select {tests} {beyond}, {whole} {less}, {whole} {bits}")
    odd = code.do(f"or {whole} {towards}, {lanes.integer(32, 1)}")
    chosen = code.do(f"select {tests} {inexact}, {whole} {odd}, {whole} {towards}")
    return code.do(f"bitcast {whole} {chosen} to {single}")
