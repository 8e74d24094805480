"""The exponential of floats: every float comes out as the nearest to the exact result.

Done in doubles to their last bits, that takes a polynomial of degree 10. Far fewer bits tell which
float is the nearest, except where the result lies between two of them: so a table of sixteen powers
of two, which fits into two registers of AVX-512, and a polynomial of degree 4 make a result that is
right to 2 ** -38, and only vectors in which that leaves a doubt - one in 250 -, or a result that is
no normal float, are done at length. Other processors do all of them at length.

Code is written before anybody knows the processor; it calls this as a function, whose definition is
added when it is compiled.
"""

from __future__ import annotations

import re
import struct
from math import log

from ptokit.base.patterns import regex
from ptokit.engines.compiled.conversions import quiet
from ptokit.engines.compiled.functions import FLOAT_EXPONENTIAL, short_exponential
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.text import Function, Value

_DECLARED = regex(rf"^declare <(\d+) x float> @{re.escape(FLOAT_EXPONENTIAL)}\d+\(.*\)$", re.M)

_PARTS = 16  # of a power of two, each an entry of the table
_STEP = log(2) / _PARTS
# The polynomial that comes nearest to exp for |x| <= _STEP / 2 relative to it, to 2 ** -38.5.
_FACTORS = (1.0, 0.9999999994180956, 0.4999999995150991, 0.16667159067845352, 0.04166912866804207)
# From a double to a float 29 bits are left out. Errors are below 2 ** 15 units of the last of them;
# where what is left out comes that close to a half, the float is in doubt.
_LEFT_OUT, _DOUBT = 29, 16
_LEAST, _LOWEST = -87.3, -104.0  # below the results are subnormal, then zero


def completed(text: str, features: str) -> str:
    """A module with the functions that it calls, for a processor."""
    wanted = {int(found[1]) for found in _DECLARED.finditer(text)}
    if not wanted:
        return text
    made = [_definition(count, "+avx512f" in features) for count in sorted(wanted)]
    declared = dict.fromkeys(line for each in made for line in each.declared())
    known = set(text.splitlines())
    lines = [line for line in declared if line not in known]
    return "\n".join([_DECLARED.sub("", text), *lines, *(x for m in made for x in m.definition())])


def _definition(count: int, is_wide: bool) -> Function:
    kind = f"<{count} x float>"
    head = f"define internal {kind} @{{}}({kind} %x) alwaysinline nounwind"
    code = Function(f"{FLOAT_EXPONENTIAL}{count}", head, f"ret {kind} %result")
    lanes, ways = Lanes(code, count, {}), list[str]()
    if is_wide and count % 8 == 0:
        found, is_sure = _in_short(lanes, "%x")
        ways.append(f"[{found}, %entry]")
        usual = code.call("i1", "llvm.expect.i1", ("i1", is_sure), ("i1", "true"))
        code.branch(usual, "done", "long")
    else:
        code.jump("long")
    code.label("long")
    ways.append(f"[{_at_length(lanes, '%x')}, %long]")
    code.jump("done")
    code.label("done")
    code.act(f"%result = phi {kind} {', '.join(ways)}")
    return code


def _at_length(lanes: Lanes, value: Value) -> Value:
    code, single, double = lanes.code, lanes.vector("float"), lanes.vector("double")
    found = short_exponential(lanes, code.do(f"fpext {single} {value} to {double}"))
    return quiet(lanes, code.do(f"fptrunc {double} {found} to {single}"))


def _in_short(lanes: Lanes, value: Value) -> tuple[Value, Value]:
    """The result, and whether no lane of it is in doubt."""
    code, count = lanes.code, lanes.count
    single, double, whole = (lanes.vector(kind) for kind in ("float", "double", "i64"))
    tests = lanes.vector("i1")

    def fused(a: Value, b: Value, c: Value) -> Value:
        name = f"llvm.fma.v{count}f64"
        return code.call(double, name, (double, a), (double, b), (double, c))

    size = code.call(single, f"llvm.fabs.v{count}f32", (single, value))
    is_odd = code.do(f"fcmp ugt {single} {size}, {lanes.real(-_LEAST, 'float')}")
    lowest = lanes.real(_LOWEST, "float")
    is_above = code.do(f"fcmp ugt {single} {value}, {lowest}")
    is_odd = code.do(f"and {tests} {is_odd}, {is_above}")
    short = code.do(f"select {tests} {is_above}, {single} {value}, {single} {lowest}")
    x = code.do(f"fpext {single} {short} to {double}")
    # In a double as large as this the units are the last bits: the number of steps is rounded,
    # and lies there as an integer.
    large = lanes.real(1.5 * 2**52)
    counted = fused(x, lanes.real(1 / _STEP), large)
    steps = code.do(f"fsub {double} {counted}, {large}")
    rest = fused(steps, lanes.real(-_STEP), x)
    sum_ = lanes.real(_FACTORS[-1])
    for factor in reversed(_FACTORS[:-1]):
        sum_ = fused(sum_, rest, lanes.real(factor))
    bits = code.do(f"bitcast {double} {counted} to {whole}")
    # Of the steps the last four bits are an entry of the table, the others an exponent. They are
    # all added where an exponent begins: what the last four add there, the entry lacks.
    exponent = code.do(f"shl {whole} {bits}, {lanes.integer(64, 48)}")
    power = code.do(f"add {whole} {_entries(lanes, bits)}, {exponent}")
    found = code.do(f"fmul {double} {sum_}, {code.do(f'bitcast {whole} {power} to {double}')}")
    offset = (1 << _DOUBT) - (1 << _LEFT_OUT - 1)
    words = lanes.vector("i32")
    moved = code.do(f"add {words} {_low_words(lanes, found)}, {lanes.integer(32, offset)}")
    mask = (1 << _LEFT_OUT) - (1 << _DOUBT + 1)
    near = code.do(f"and {words} {moved}, {lanes.integer(32, mask)}")
    in_doubt = code.do(f"icmp eq {words} {near}, zeroinitializer")
    in_doubt = code.do(f"or {tests} {in_doubt}, {is_odd}")
    any_ = code.do(f"bitcast {tests} {in_doubt} to i{count}")
    result = code.do(f"fptrunc {double} {found} to {single}")
    return result, code.do(f"icmp eq i{count} {any_}, 0")


def _low_words(lanes: Lanes, value: Value) -> Value:
    """The low halves of doubles, of which all that is left out is a part, in some order: that in
    which processors have them at once."""
    code, count, double = lanes.code, lanes.count, lanes.vector("double")
    words = code.do(f"bitcast {double} {value} to <{2 * count} x i32>")
    half = count // 2
    blocks = [(n, n + 2, n + count, n + count + 2) for n in range(0, count, 4)]
    order = [n for block in blocks for n in block] if half % 8 == 0 else range(0, 2 * count, 2)
    mask = ", ".join(f"i32 {n}" for n in order)
    of = f"<{2 * count} x i32>"
    return code.do(f"shufflevector {of} {words}, {of} poison, <{count} x i32> <{mask}>")


def _entries(lanes: Lanes, index: Value) -> Value:
    """Entries of the table by the last four bits of an index."""
    code, part, whole = lanes.code, "<8 x i64>", lanes.vector("i64")
    entries = [
        struct.unpack("<q", struct.pack("<d", 2 ** (n / _PARTS)))[0] - (n << 48)
        for n in range(_PARTS)
    ]
    halves = ["<" + ", ".join(f"i64 {e}" for e in entries[n : n + 8]) + ">" for n in (0, 8)]
    parts: list[Value] = []
    for first in range(0, lanes.count, 8):
        mask = ", ".join(f"i32 {first + n}" for n in range(8))
        eight = code.do(f"shufflevector {whole} {index}, {whole} poison, <8 x i32> <{mask}>")
        name = "llvm.x86.avx512.vpermi2var.q.512"
        parts.append(code.call(part, name, (part, halves[0]), (part, eight), (part, halves[1])))
    length = 8
    while len(parts) > 1:
        mask = ", ".join(f"i32 {n}" for n in range(2 * length))
        kind, shape = f"<{length} x i64>", f"<{2 * length} x i32>"
        parts = [
            code.do(f"shufflevector {kind} {a}, {kind} {b}, {shape} <{mask}>")
            for a, b in zip(parts[0::2], parts[1::2], strict=True)
        ]
        length *= 2
    return parts[0]
