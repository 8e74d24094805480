"""The exponential of floats: every float comes out as the nearest to the exact result.

Done in doubles to their last bits, that takes a polynomial of degree 10. Far fewer bits tell which
float is the nearest, except where the result lies between two of them. AVX-512 finds powers of two
in a table that fits into two registers; there the result is a sum of two floats, right to 2 ** -36.
Both ends of that doubt are rounded: where they are the same float, it is the result. Only vectors
in which they differ - one in a hundred -, or a result that is no normal float, are done at length.
Other processors do all of them at length.

Code is written before anybody knows the processor; it calls this as a function, whose definition is
added when it is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import log

import numpy as np

from ptokit.base.patterns import regex
from ptokit.engines.compiled.conversions import quiet
from ptokit.engines.compiled.functions import FLOAT_EXPONENTIAL, short_exponential
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.text import Function, Value

_DECLARED = regex(rf"^declare <(\d+) x float> @{re.escape(FLOAT_EXPONENTIAL)}\d+\(.*\)$", re.M)

_WIDE = 16  # floats of a register
_REGISTER = f"<{_WIDE} x float>"
_PARTS = 2 * _WIDE  # of a power of two, each an entry of the table
# In a float as large as this the last bit is one part: the power is rounded to whole parts, and its
# last bits are the number of the entry.
_LARGE = 1.5 * 2**23 / _PARTS
# The logarithm of two as a float, and what that lacks. What is left of x behind a power of two is
# at most 2 ** -6.5 and, like all that it is made of, a multiple of 2 ** -30: it is exact.
_LOG2 = float(np.float32(log(2)))
_LOG2_LACKS = log(2) - _LOG2
# exp(r) = 1 + r + r * r * (...), right to 2 ** -42 for |r| <= log(2) / 64. What is not 1 + r is
# below 2 ** -14, so that rounding it to floats a few times adds errors of 2 ** -37.
_FACTORS = (0.5, 0.16666752099990845, 0.0416669137775898)
_DOUBT = 2.0**-36  # of an entry; they are below 2
_LOWEST = -104.0  # the result is zero from here on
# The classes of vfpclass that results do not have: subnormal ones were rounded twice, and negative
# ones come of numbers so large that nothing is known of what is left behind their power of two.
_ODD = 0x20 | 0x10 | 0x40


def completed(text: str, features: str) -> str:
    """A module with the functions that it calls, for a processor."""
    wanted = {int(found[1]) for found in _DECLARED.finditer(text)}
    if not wanted:
        return text
    made = [_definition(count, "+avx512dq" in features) for count in sorted(wanted)]
    known = set(text.splitlines())
    declared = dict.fromkeys(line for each in made for line in each.declared())
    lines = [line for line in declared if line not in known]
    return "\n".join([_DECLARED.sub("", text), *lines, *(x for m in made for x in m.definition())])


def _definition(count: int, has_table: bool) -> Function:
    kind = f"<{count} x float>"
    head = f"define internal {kind} @{{}}({kind} %x) alwaysinline nounwind"
    code = Function(f"{FLOAT_EXPONENTIAL}{count}", head, f"ret {kind} %result")
    lanes = Lanes(code, count, {})
    if has_table and count == _WIDE:
        _by_table(lanes)
    else:
        code.act(f"%result = freeze {kind} {_at_length(lanes)}")
    return code


def _at_length(lanes: Lanes) -> Value:
    code, single, double = lanes.code, lanes.vector("float"), lanes.vector("double")
    found = short_exponential(lanes, code.do(f"fpext {single} %x to {double}"))
    return quiet(lanes, code.do(f"fptrunc {double} {found} to {single}"))


def _by_table(lanes: Lanes) -> None:
    """Those of one register, in short; at length where a lane is in doubt."""
    code = lanes.code
    short, in_doubt = _in_short(lanes)
    is_sure = code.do(f"icmp eq i{_WIDE} {in_doubt}, 0")
    usual = code.call("i1", "llvm.expect.i1", ("i1", is_sure), ("i1", "true"))
    code.branch(usual, "done", "long")
    code.label("long")
    long = _at_length(lanes)
    code.jump("done")
    code.label("done")
    code.act(f"%result = phi {_REGISTER} [{short}, %entry], [{long}, %long]")


def _in_short(lanes: Lanes) -> tuple[Value, Value]:
    """The result, and a bit for every lane that is in doubt."""
    code, single, tests = lanes.code, lanes.vector("float"), lanes.vector("i1")

    def real(number: float) -> Value:
        return lanes.real(number, "float")

    def fused(a: Value, b: Value, c: Value) -> Value:
        name = f"llvm.fma.v{_WIDE}f32"
        return code.call(single, name, (single, a), (single, b), (single, c))

    def plus(a: Value, b: Value) -> Value:
        return code.do(f"fadd {single} {a}, {b}")

    is_below = code.do(f"fcmp olt {single} %x, {real(_LOWEST)}")
    x = code.do(f"select {tests} {is_below}, {single} {real(_LOWEST)}, {single} %x")
    counted = fused(x, real(1 / log(2)), real(_LARGE))
    power = plus(counted, real(-_LARGE))
    rest = fused(power, real(-_LOG2), x)
    entries, logarithms = _tables()
    entry = _looked_up(lanes, counted, entries)
    # What the entry and the logarithm of two lack: so little that exp of it is one more than it is.
    lacks = fused(power, real(-_LOG2_LACKS), _looked_up(lanes, counted, logarithms))
    sum_ = real(_FACTORS[-1])
    for factor in reversed(_FACTORS[:-1]):
        sum_ = fused(sum_, rest, real(factor))
    small = fused(rest, fused(rest, sum_, lacks), lacks)  # beside 1 + rest
    main = fused(entry, rest, entry)
    error = fused(entry, rest, code.do(f"fsub {single} {entry}, {main}"))
    low = fused(entry, small, error)
    found, other = plus(main, low), plus(main, plus(low, real(4 * _DOUBT)))
    is_torn = code.do(f"fcmp une {single} {found}, {other}")  # so are those that are no numbers
    result = code.call(
        single,
        f"llvm.x86.avx512.mask.scalef.ps.{32 * _WIDE}",
        (single, found),
        (single, power),
        (single, "zeroinitializer"),
        (f"i{_WIDE}", "-1"),
        ("i32", "4"),  # rounding as it is set
    )
    name = f"llvm.x86.avx512.fpclass.ps.{32 * _WIDE}"
    is_odd = code.call(tests, name, (single, result), ("i32", str(_ODD)))
    either = code.do(f"or {tests} {is_torn}, {is_odd}")
    return result, code.do(f"bitcast {tests} {either} to i{_WIDE}")


def _tables() -> tuple[Sequence[float], Sequence[float]]:
    """Powers of two as floats; the logarithms of what they lack, at the lower end of the doubt."""
    logarithms = np.arange(_PARTS) * (log(2) / _PARTS)
    entries = np.exp(logarithms).astype(np.float32)
    lacking = logarithms - np.log(entries.astype(np.float64))
    return entries.tolist(), (lacking - _DOUBT).tolist()


def _looked_up(lanes: Lanes, counted: Value, table: Sequence[float]) -> Value:
    """Entries of a table by the last bits of floats."""
    code, words = lanes.code, lanes.vector("i32")
    index = code.do(f"bitcast {_REGISTER} {counted} to {words}")
    low, high = (lanes.floats(half) for half in (table[:_WIDE], table[_WIDE:]))
    name = f"llvm.x86.avx512.vpermi2var.ps.{32 * _WIDE}"
    return code.call(_REGISTER, name, (_REGISTER, low), (words, index), (_REGISTER, high))
