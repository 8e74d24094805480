"""Arithmetic on single numbers, compiled: what Python says, wherever its tests hold."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
import pytest

from ptokit.engines.compiled.library import NAME, library
from ptokit.engines.compiled.scalars import scalar_of
from ptokit.engines.compiled.text import Function
from ptokit.ir.arithmetic import CASTS, FLOATS, INTEGERS, Number, Undefined
from ptokit.ir.attributes import Attribute, IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import arith
from ptokit.ir.evaluate import meaning
from ptokit.ir.types import F32, I1, I64, INDEX, ScalarType

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

WHOLE = (INDEX, I64, ScalarType("i32"), ScalarType("i8"), I1)
REAL = (ScalarType("f64"), F32, ScalarType("f16"))
EDGES = (0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 100, 127, 128, 1 << 31, (1 << 31) + 1, (1 << 63) - 1)
REALS = (0.0, -0.0, 1.0, -1.5, 0.1, 1e-45, 3e38, 1e300, float("inf"), -float("inf"), float("nan"))


def made(name: str, args: Sequence[ScalarType], result: ScalarType, predicate: int = 0) -> Op:
    values = [Value("a", kind) for kind in args]
    attrs: dict[str, Attribute] = {"predicate": IntAttr(predicate, I64)}
    return Op(f"arith.{name}", values, results=[Value("r", result)], attrs=attrs)


def operations() -> Iterator[Op]:
    """Every operation with every type."""
    for kinds, names, compare in ((WHOLE, INTEGERS, arith.CMPI), (REAL, FLOATS, arith.CMPF)):
        for kind in kinds:
            yield from (made(name, (kind, kind), kind) for name in names)
            yield made("select", (I1, kind, kind), kind)
            for number in range(len(arith.predicates(compare))):
                yield made(compare.name.removeprefix("arith."), (kind, kind), I1, number)
    for name, of, to in product(CASTS, WHOLE + REAL, WHOLE + REAL):
        if name != "bitcast" or of.bits == to.bits:
            yield made(name, (of,), to)


def word(number: Number) -> int:
    if isinstance(number, float):
        return struct.unpack("q", struct.pack("d", number))[0]
    return number


def compiled(op: Op) -> Callable[[Sequence[Number]], int | None] | None:
    """An operation as a function; it comes to nothing where its tests do not hold."""
    scalar, built = scalar_of(op), library()
    if scalar is None or built is None:
        return None
    code = Function(NAME, "define i64 @{}(ptr %args, ptr %found) nounwind", "ret i64 0")
    args = [code.load("%args", place) for place in range(len(op.operands))]
    good, bad = code.fresh("good"), code.fresh("bad")
    code.branch(code.both(scalar.tests(code, args) if scalar.tests else []), good, bad)
    code.label(good)
    code.store(scalar.word(code, args), "%found")
    code.act("ret i64 1")
    code.label(bad)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    function, found = kind(built.function(code.text())), np.zeros(1, np.int64)

    def call(numbers: Sequence[Number]) -> int | None:
        given = np.array([word(number) for number in numbers], np.int64)
        holds = function(given.ctypes.data, found.ctypes.data)
        return int(found[0]) if holds else None

    return call


def numbers_of(kind: ScalarType) -> Sequence[Number]:
    if kind.is_float:
        storage = {"f64": np.float64, "f32": np.float32, "f16": np.float16}[str(kind)]
        with np.errstate(over="ignore"):
            return [float(storage(number)) for number in REALS]
    low, high = (0, 1) if kind == I1 else (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1)
    return [n for edge in EDGES for n in (edge, -edge) if low <= n <= high] + [low]


def is_same(found: int, wanted: Number) -> bool:
    is_nan = wanted != wanted
    return found == word(wanted) or (
        is_nan and np.isnan(struct.unpack("d", struct.pack("q", found))[0])
    )


def test_numbers_come_to_what_python_says() -> None:
    done, names = 0, set[str]()
    for op in operations():
        of_floats = [value.type.is_float for value in op.operands]  # type: ignore[union-attr]
        if op.name.removeprefix("arith.") in CASTS and not _casts(op, of_floats[0]):
            continue
        call, compute = compiled(op), meaning(op)
        if call is None or compute is None:
            continue
        for numbers in product(*(numbers_of(value.type) for value in op.operands)):  # type: ignore[arg-type]
            found = call(numbers)
            try:
                wanted = compute(numbers)[0]
            except Undefined:
                assert found is None, (op, numbers)
                continue
            assert found is None or is_same(found, wanted), (
                op,
                op.result.type,
                numbers,
                found,
                wanted,
            )
            done += found is not None
            names.add(op.name)
    assert done > 10_000
    assert {f"arith.{name}" for name in INTEGERS} <= names


def _casts(op: Op, from_float: bool) -> bool:
    """Whether a cast is one between these types."""
    to_float = op.result.type.is_float  # type: ignore[union-attr]
    name, (of,), to = op.name, op.operands, op.result.type
    if name.endswith(("extf", "truncf")):
        return from_float and to_float
    if name.endswith("tofp"):
        return to_float and not from_float
    if "fpto" in name or "bitcast" in name:
        return False  # left to Python
    wider = to.bits > of.type.bits  # type: ignore[union-attr]
    if name.endswith(("extsi", "extui")):
        return wider and not from_float and not to_float
    return not from_float and not to_float
