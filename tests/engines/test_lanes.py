"""Vector code computes what NumPy code of the same expression computes, all bits but of NaNs."""

from __future__ import annotations

import sys
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

from ptokit.base.dtypes import DType, bf16, f16, f32, i8, i16, i32, i64, u8, u16, u32, u64
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.engines.compiled import library as library_
from ptokit.engines.compiled.exponentials import completed
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.library import Library, library
from ptokit.engines.compiled.loops import Lines, pieces, pointwise
from ptokit.isa.arrays import function_of
from ptokit.isa.expr import BOOL, F64, OPERATORS, Arg, Expr, apply, select
from ptokit.isa.numerics import exact

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

KINDS = (f32, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64)
COUNT = 999  # whole vectors, and a rest
ODD = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e-45, 6e-8, 65504, 65519.9, 65520, 3e38, 127.5, 128]
ODD += [255.5, 32767.5, 65535.5, 2**24 + 1, 2**31, -(2**31), 2**32, 2**63, -(2**63), 1e19]
ODD += [np.inf, -np.inf]


def values(kind: DType, seed: int) -> np.ndarray:
    """Bits of every sort, and numbers at which something happens."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, COUNT * kind.itemsize, np.uint8).view(kind.np)[:COUNT].copy()
    if kind.is_float:
        with np.errstate(all="ignore"):
            made[: len(ODD)] = np.array(ODD).astype(kind.np)
            made[-300:] = (rng.standard_normal(300) * 1000).astype(kind.np)
    else:
        ends = [0, 1, 2, 3, int(kind.max_value), int(kind.min_value), int(kind.max_value) - 1]
        made[: len(ends)] = np.array(ends, kind.np)
        made[-300:] = rng.integers(0, 100, 300).astype(kind.np)
    return made


def computed(expr: Expr, given: dict[str, np.ndarray]) -> np.ndarray:
    """The value of an expression through the library."""
    found = library()
    assert found is not None
    names = [*given]
    count = min(each.size for each in given.values())
    out = np.zeros(count, expr.kind.np)
    arrays = [out, *given.values()]
    kinds = [expr.kind, *(kind_of(expr, name) for name in names)]
    lines = [
        Lines(np.zeros(1, np.int64), np.arange(count, dtype=np.int64) * a.itemsize) for a in arrays
    ]
    (piece,) = pieces(lines)
    kernel = pointwise(expr, ["out", *names], kinds, piece, [])
    words = [found.address(kernel), 0, *piece.extents]
    for number in range(len(arrays)):
        words += [number, 0]
    words[1] = len(words)
    stream = np.array(words, np.int64)
    bases = np.array([a.ctypes.data for a in arrays], np.int64)
    found.run(stream.ctypes.data, stream.ctypes.data + stream.nbytes, bases.ctypes.data)
    return out


def kind_of(expr: Expr, name: str) -> DType:
    if isinstance(expr, Arg):
        return expr.kind
    return next(kind for part in expr.parts if (kind := _kind(part, name)) is not None)


def _kind(expr: Expr, name: str) -> DType | None:
    if isinstance(expr, Arg):
        return expr.kind if expr.name == name else None
    return next((k for part in expr.parts if (k := _kind(part, name)) is not None), None)


def difference(expr: Expr, given: dict[str, np.ndarray]) -> str | None:
    """Where the two differ; "" where they do not, None where there is no vector code."""
    try:
        ours = computed(expr, given)
    except Unsupported:
        return None
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        wanted: Any = function_of("f", tuple(given), expr)(*given.values())
        equal = ours.view(expr.kind.uint) == np.asarray(wanted).view(expr.kind.uint)
        if expr.kind.is_float:
            equal |= np.isnan(ours) & np.isnan(wanted)
    where = np.flatnonzero(~equal)
    if not where.size:
        return ""
    at = where[0]
    return f"{expr}: {[a[at] for a in given.values()]} gives {ours[at]!r}, not {wanted[at]!r}"


@pytest.mark.parametrize("source", KINDS, ids=lambda kind: kind.name)
def test_conversions(source: DType) -> None:
    given = {"a": values(source, 1)}
    compiled = 0
    for kind, rounding, saturation in product(KINDS, RoundMode, SaturationMode):
        if kind is not source:
            found = difference(Arg(source, "a").to(kind, rounding, saturation), given)
            assert not found, found
            compiled += found is not None
    assert compiled >= 8  # bf16 has the fewest


# What programs ask for beside the nearest number.
ASKED = [(f32, f16, mode) for mode in RoundMode if mode is not RoundMode.CAST_ODD]
ASKED += [(f32, i64, RoundMode.CAST_RINT), (i64, f32, RoundMode.CAST_RINT)]


@pytest.mark.parametrize(("source", "kind", "rounding"), ASKED)
def test_other_roundings_have_code(source: DType, kind: DType, rounding: RoundMode) -> None:
    expr = Arg(source, "a").to(kind, rounding, SaturationMode.ON)
    assert difference(expr, {"a": values(source, 2)}) == ""


def test_operators() -> None:
    compiled: set[str] = set()
    for kind, (name, operator) in product(KINDS, OPERATORS.items()):
        count = operator.text.count("{")
        if name in ("select", "undefined", "scale") or count > 2:
            continue
        given = {label: values(kind, n) for n, label in enumerate("ab"[:count])}
        if name == "pow" and not kind.is_float:
            given["b"] &= kind.np.type(kind.max_value)  # negative exponents are no powers
        expr = apply(name, *(Arg(kind, label) for label in given))
        if expr.kind is BOOL:
            expr = select(expr, Arg(kind, "a"), -Arg(kind, "a") if kind.is_float else 0)
        found = difference(expr, given)
        assert not found, found
        compiled |= set() if found is None else {name}
    assert {*OPERATORS} - compiled == {"exp", "log", "select", "undefined", "scale"}


def test_powers_of_two() -> None:
    """What is left of a float when its power of two is another one, rounded once."""
    powers = np.random.default_rng(0).integers(-400, 400, COUNT).astype(np.int32)
    given = {"a": values(f32, 0), "b": powers}
    assert difference(apply("scale", Arg(f32, "a"), Arg(i32, "b")), given) == ""


def test_remainders_of_doubles_are_exact() -> None:
    a, b = (Arg(f32, name).to(F64) for name in "ab")
    given = {"a": values(f32, 0), "b": values(f32, 1)}
    assert difference(apply("rem", a, b).to(f32), given) == ""


@pytest.mark.parametrize("name", ["exp", "log"])
@pytest.mark.parametrize("kind", [f32, f16, bf16], ids=lambda kind: kind.name)
def test_functions_are_rounded_once(name: str, kind: DType) -> None:
    """Computed in doubles: the last bit of the result is that of NumPy's doubles."""
    for seed in range(3):
        given = {"a": values(kind, seed)}
        if seed == 2:
            given["a"][:] = np.linspace(0, 2, COUNT).astype(kind.np)  # where logarithms vanish
        found = difference(exact(name, Arg(kind, "a")), given)
        assert found == "", found


STEPS = {"some": 4999, "all": 1}  # from one float to the next
_LARGEST = int(np.float32(np.inf).view(np.uint32)) + 1


@pytest.mark.parametrize("chosen", ["some", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("sign", [0, 1 << 31], ids=["positive", "negative"])
@pytest.mark.parametrize("has_table", [True, False])
def test_exponentials_of_floats(
    chosen: str, sign: int, has_table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short or at length, every float has the exponential that the reference has."""
    found = Library()
    monkeypatch.setattr(sys.modules[__name__], "library", lambda: found)
    if not has_table:
        monkeypatch.setattr(library_, "completed", lambda text, _: completed(text, ""))
    expr, step = exact("exp", Arg(f32, "a")), STEPS[chosen]
    for first in range(0, _LARGEST, step << 20):
        bits = np.arange(first, min(first + (step << 20), _LARGEST), step, dtype=np.uint32)
        wrong = difference(expr, {"a": (bits | np.uint32(sign)).view(np.float32)})
        assert wrong == "", wrong


def test_vectors_of_which_some_are_in_doubt() -> None:
    """Among results that are sure, those that are not, and others that are no normal floats."""
    a = np.linspace(-1, 0, 4096).astype(np.float32)
    for place, value in enumerate((np.nan, -np.inf, np.inf, -1e30, -90, -103.9, 88.8, 0)):
        a[97 * place + place] = value
    assert difference(exact("exp", Arg(f32, "a")), {"a": a}) == ""
