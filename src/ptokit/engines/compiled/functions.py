"""Functions of doubles in vector code: a power of two, and a polynomial of what is left.

The exponential of floats is what most of the time of a softmax goes to, and it has a function of
its own, written for the processor it is compiled for (`exponentials.py`).
"""

from __future__ import annotations

from math import factorial, log
from typing import TYPE_CHECKING

import numpy as np

from ptokit.engines.compiled.text import Value

if TYPE_CHECKING:
    from ptokit.engines.compiled.lanes import Lanes


def float_exponential(lanes: Lanes, value: Value) -> Value:
    """e to the power of floats as doubles have it, rounded to a float."""
    real = lanes.vector("float")
    return lanes.code.call(real, f"{FLOAT_EXPONENTIAL}{lanes.count}", (real, value))


FLOAT_EXPONENTIAL = "ptokit.exp.v"  # and the number of lanes


def logarithm(lanes: Lanes, value: Value) -> Value:
    """The natural logarithm of normal doubles: that of a number near 1, by its power of 2."""
    code, real, whole = lanes.code, lanes.vector("double"), lanes.vector("i64")
    tests, suffix = lanes.vector("i1"), f"v{lanes.count}f64"

    def fused(a: Value, b: Value, c: Value) -> Value:
        return code.call(real, f"llvm.fma.{suffix}", (real, a), (real, b), (real, c))

    bits = code.do(f"bitcast {real} {value} to {whole}")
    power = code.do(f"lshr {whole} {bits}, {lanes.integer(64, 52)}")
    digits = code.do(f"and {whole} {bits}, {lanes.integer(64, (1 << 52) - 1)}")
    digits = code.do(f"or {whole} {digits}, {lanes.integer(64, 1023 << 52)}")
    near = code.do(f"bitcast {whole} {digits} to {real}")
    is_large = code.do(f"fcmp ogt {real} {near}, {lanes.real(2**0.5)}")
    half = code.do(f"fmul {real} {near}, {lanes.real(0.5)}")
    near = code.do(f"select {tests} {is_large}, {real} {half}, {real} {near}")
    more = code.do(f"zext {tests} {is_large} to {whole}")
    power = code.do(f"add {whole} {power}, {more}")
    power = code.do(f"sub {whole} {power}, {lanes.integer(64, 1023)}")
    count = code.do(f"sitofp {whole} {power} to {real}")
    # log m = 2 atanh s, s = (m - 1) / (m + 1), at most 0.172 in size.
    less = code.do(f"fsub {real} {near}, {lanes.real(1.0)}")
    ratio = code.do(f"fdiv {real} {less}, {code.do(f'fadd {real} {near}, {lanes.real(1.0)}')}")
    square = code.do(f"fmul {real} {ratio}, {ratio}")
    sum_ = lanes.real(2 / 23)
    for odd in range(21, 1, -2):
        sum_ = fused(sum_, square, lanes.real(2 / odd))
    cube = code.do(f"fmul {real} {code.do(f'fmul {real} {sum_}, {square}')}, {ratio}")
    low = fused(count, lanes.real(1.90821492927058770002e-10), cube)
    rest = fused(ratio, lanes.real(2.0), low)
    found = fused(count, lanes.real(0.693147180369123816490), rest)
    for test, result in (
        (f"fcmp oeq {real} {value}, {lanes.real(0.0)}", -np.inf),
        (f"fcmp oeq {real} {value}, {lanes.real(np.inf)}", np.inf),
        (f"fcmp ult {real} {value}, {lanes.real(0.0)}", np.nan),
    ):
        there = code.do(test)
        found = code.do(
            f"select {tests} {there}, {real} {lanes.real(float(result))}, {real} {found}"
        )
    return found


def short_exponential(lanes: Lanes, value: Value) -> Value:
    """e to the power of doubles, of what is rounded to a float: beyond its range any huge or
    tiny number will do, so that the power of two is a double in all cases."""
    code, real, whole = lanes.code, lanes.vector("double"), lanes.vector("i64")
    suffix, tests = f"v{lanes.count}f64", lanes.vector("i1")

    def fused(a: Value, b: Value, c: Value) -> Value:
        return code.call(real, f"llvm.fma.{suffix}", (real, a), (real, b), (real, c))

    for limit, beyond in ((-104.0, "olt"), (89.0, "ogt")):  # NaN stays
        end = lanes.real(limit)
        test = code.do(f"fcmp {beyond} {real} {value}, {end}")
        value = code.do(f"select {tests} {test}, {real} {end}, {real} {value}")
    # In a double as large as this the units are the last bits: the count is rounded, and lies
    # there as an integer.
    large = lanes.real(1.5 * 2**52)
    counted = fused(value, lanes.real(1.4426950408889634), large)
    count = code.do(f"fsub {real} {counted}, {large}")
    negative = code.do(f"fneg {real} {count}")
    rest = fused(negative, lanes.real(0.693147180369123816490), value)
    rest = fused(negative, lanes.real(1.90821492927058770002e-10), rest)
    sum_ = lanes.real(_NEAR_EXP[-1])
    for factor in reversed(_NEAR_EXP[:-1]):
        sum_ = fused(sum_, rest, lanes.real(factor))
    bits = code.do(f"bitcast {real} {counted} to {whole}")
    biased = code.do(f"add {whole} {bits}, {lanes.integer(64, 1023)}")
    shifted = code.do(f"shl {whole} {biased}, {lanes.integer(64, 52)}")
    power = code.do(f"bitcast {whole} {shifted} to {real}")
    return code.do(f"fmul {real} {sum_}, {power}")


def exponential(lanes: Lanes, value: Value) -> Value:
    """e to the power of doubles: a power of two times a polynomial, to about 2 ** -50."""
    code, real, whole = lanes.code, lanes.vector("double"), lanes.vector("i64")
    low, high = lanes.real(-745.2), lanes.real(709.8)
    suffix = f"v{lanes.count}f64"
    x = code.call(real, f"llvm.maxnum.{suffix}", (real, value), (real, low))
    x = code.call(real, f"llvm.minnum.{suffix}", (real, x), (real, lanes.real(710.0)))
    scaled = code.do(f"fmul {real} {x}, {lanes.real(1.4426950408889634)}")
    count = code.call(real, f"llvm.rint.{suffix}", (real, scaled))
    negative = code.do(f"fneg {real} {count}")

    def fused(a: Value, b: Value, c: Value) -> Value:
        return code.call(real, f"llvm.fma.{suffix}", (real, a), (real, b), (real, c))

    rest = fused(negative, lanes.real(0.693147180369123816490), x)
    rest = fused(negative, lanes.real(1.90821492927058770002e-10), rest)
    sum_ = lanes.real(_EXP[-1])
    for factor in reversed(_EXP[:-1]):
        sum_ = fused(sum_, rest, lanes.real(factor))
    # In two halves, so that results in the subnormal range are rounded as they should be.
    power = code.do(f"fptosi {real} {count} to {whole}")
    first = code.do(f"ashr {whole} {power}, {lanes.integer(64, 1)}")
    second = code.do(f"sub {whole} {power}, {first}")
    for half in (first, second):
        biased = code.do(f"add {whole} {half}, {lanes.integer(64, 1023)}")
        shifted = code.do(f"shl {whole} {biased}, {lanes.integer(64, 52)}")
        factor = code.do(f"bitcast {whole} {shifted} to {real}")
        sum_ = code.do(f"fmul {real} {sum_}, {factor}")
    tests = lanes.vector("i1")
    infinite = code.do(f"fcmp ogt {real} {value}, {high}")
    sum_ = code.do(f"select {tests} {infinite}, {real} {lanes.real(np.inf)}, {real} {sum_}")
    nothing = code.do(f"fcmp olt {real} {value}, {low}")
    sum_ = code.do(f"select {tests} {nothing}, {real} {lanes.real(0.0)}, {real} {sum_}")
    odd = code.do(f"fcmp uno {real} {value}, {value}")
    return code.do(f"select {tests} {odd}, {real} {value}, {real} {sum_}")


def _factorials() -> list[float]:
    factors, value = [1.0], 1.0
    for n in range(1, 13):
        value /= n
        factors.append(value)
    return factors


# The polynomial that comes nearest to exp for |x| <= ln 2 / 2, to 2 ** -51: the Taylor series
# without its higher Chebyshev polynomials.
_NEAR_EXP = (
    1.0,
    1.0000000000000067,
    0.5000000000000019,
    0.16666666666554375,
    0.04166666666648806,
    0.008333333385677127,
    0.0013888888952325088,
    0.00019841170259145055,
    2.4801485471677305e-05,
    2.764018531660295e-06,
    2.7632643465014625e-07,
)
_EXP = _factorials()  # |rest| <= ln 2 / 2: the first term left out is below 2 ** -52
assert (log(2) / 2) ** len(_EXP) / factorial(len(_EXP)) < 2**-52
