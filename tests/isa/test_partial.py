"""Operations on tiles that do not cover the same region, against plain definitions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import device
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.devices import TARGETS
from tests.isa.tiles import blank, call, defined, same_bits, tile, whole
from tests.operands import codes, flood, make

OPS: dict[str, Callable[[Any, Any], Any]] = {
    "TPARTADD": operator.add,
    "TPARTMUL": operator.mul,
    "TPARTMAX": lambda a, b: b if b > a else a,
    "TPARTMIN": lambda a, b: b if b < a else a,
}


def draw(kind: DType, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    if kind.is_integer:
        low, high = int(kind.min_value), int(kind.max_value)
        return rng.integers(low, high, shape, kind.np, endpoint=True)
    return rng.uniform(-9, 9, shape).astype(kind.np)


def combined(op: Any, a: Array, b: Array, shape: tuple[int, int]) -> Array:
    """The definition, element by element."""
    out = np.zeros(shape, a.dtype)
    for i, j in np.ndindex(shape):
        in_a, in_b = (i < s.shape[0] and j < s.shape[1] for s in (a, b))
        if in_a and in_b:
            with np.errstate(over="ignore"):
                out[i, j] = op(a[i, j], b[i, j])
        elif in_a or in_b:
            out[i, j] = a[i, j] if in_a else b[i, j]
    return out


sizes = st.tuples(st.integers(1, 9), st.integers(1, 20))


@given(data=st.data(), shape=sizes, smaller=sizes, first=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
@pytest.mark.parametrize("name", OPS)
def test_arithmetic(
    name: str, data: st.DataObject, shape: Any, smaller: Any, first: bool, seed: int
) -> None:
    target = data.draw(st.sampled_from(TARGETS))
    (group,) = INSTRUCTIONS[name].types
    (kind,) = data.draw(st.sampled_from(sorted(group.allowed[target], key=str)))
    smaller = tuple(min(a, b) for a, b in zip(shape, smaller, strict=True))
    rng = np.random.default_rng(seed)
    a, b = (draw(kind, s, rng) for s in ((smaller, shape) if first else (shape, smaller)))
    with device(target, mode="auto"):
        src0, src1 = tile(kind, a), tile(kind, b)
        in_place = data.draw(st.booleans())
        dst = (src1 if first else src0) if in_place else blank(kind, shape)
        call(name, dst, src0, src1)
        assert same_bits(dst.numpy(), combined(OPS[name], a, b, shape))


@given(a=sizes, b=sizes)
@settings(max_examples=40, deadline=None)
def test_permissive_profile_fills_holes_with_zero(a: Any, b: Any) -> None:
    rng = np.random.default_rng(0)
    values = [rng.uniform(1, 2, s).astype("f4") for s in (a, b)]
    with device("cpu", mode="auto"):
        dst = blank("f32", (8, 15))
        call("TPARTADD", dst, *(tile("f32", v) for v in values))
        assert same_bits(dst.numpy(), combined(operator.add, *values, (8, 15)))


def test_an_empty_source_is_no_source() -> None:
    with device("a2a3", mode="auto"):
        src0, src1 = make("Vec f32 8x16 valid 8x16"), make("Vec f32 8x16 valid ?x16")
        src0.fill(3)
        src1.SetValidRow(0)
        dst = make("Vec f32 8x16")
        call("TPARTMUL", dst, src0, src1)
        assert (dst.numpy() == 3).all()


@pytest.mark.parametrize(
    ("full", "lost"), [("Vec f32 4x32 valid 4x10", 32), ("Vec f32 4x64 valid 4x10", 16)]
)
def test_a2a3_copies_padding_along(full: str, lost: int) -> None:
    """Whole rows when their lengths agree, else whole blocks; nothing when nothing is copied."""
    for target in ("a2a3", "a5"):
        with device(target, mode="auto"):
            dst, src0 = make("Vec f32 4x32 valid 4x10"), make(full)
            small = make("Vec f32 4x32 valid 2x10")
            for each in (dst, src0, small):
                flood(each)
            call("TPARTADD", dst, src0, small)
            expected = np.ones((4, 32), bool)
            expected[:, 10:lost] = target != "a2a3"
            assert (defined(dst) == expected).all()
            flood(dst)
            call("TPARTADD", dst, src0, src0)
            assert defined(dst).all()


# ---- values with indices -------------------------------------------------------------------------


def keeps_first(target: str, x: Any, y: Any, name: str) -> bool:
    ahead, beyond = (operator.ge, operator.gt) if "MAX" in name else (operator.le, operator.lt)
    if target == "a2a3":
        return ahead(x, y)
    return beyond(x, y) if target == "cpu" else not beyond(y, x)


@given(shape=sizes, smaller=sizes, first=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "cpu"])
@pytest.mark.parametrize("name", ["TPARTARGMAX", "TPARTARGMIN"])
def test_indices_follow_values(
    name: str, target: str, shape: Any, smaller: Any, first: bool, seed: int
) -> None:
    """Ties and NaN included: devices keep src0 for equal values, the permissive profile src1."""
    smaller = tuple(min(a, b) for a, b in zip(shape, smaller, strict=True))
    regions = (smaller, shape) if first else (shape, smaller)
    rng = np.random.default_rng(seed)
    a, b = (rng.choice(np.array([0, 1, 2, np.nan], "f2"), s) for s in regions)
    ia, ib = (rng.integers(0, 9999, s).astype("u2") for s in regions)
    pairs = [{(i, j): (v[i, j], k[i, j]) for i, j in np.ndindex(v.shape)} for v, k in
             ((a, ia), (b, ib))]  # fmt: skip
    with device(target, mode="auto"):
        value, index = blank("f16", shape), blank("u16", shape)
        operands = [tile("f16", v) for v in (a, b)], [tile("u16", k) for k in (ia, ib)]
        call(name, value, *operands[0], index, *operands[1])
        got = value.numpy(), index.numpy()
    for place in np.ndindex(shape):
        x, y = (p.get(place) for p in pairs)
        if x is not None and y is not None:
            chosen = x if keeps_first(target, x[0], y[0], name) else y
        else:
            chosen = x or y
        assert chosen is not None
        assert np.array_equal(got[0][place], chosen[0], equal_nan=True)
        assert got[1][place] == chosen[1]


# ---- legality ------------------------------------------------------------------------------------

TILE = "Vec f32 16x64"


@pytest.mark.parametrize(
    ("name", "cover"),
    [
        ("TPARTADD", "PA-0051"),
        ("TPARTMUL", "PA-0054"),
        ("TPARTMAX", "PA-0052"),
        ("TPARTMIN", "PA-0053"),
    ],
)
def test_regions(name: str, cover: str) -> None:
    small = "Vec f32 16x64 valid 8x64"
    assert codes(name, "a5", TILE, small, TILE) == set()
    assert codes(name, "a5", TILE, small, small) == {cover}
    assert codes(name, "cpu", TILE, small, small) == set()
    assert codes(name, "a2a3", "Vec f32 16x64 valid 8x64", TILE, small) == {"PA-0054"}


def test_f16_with_wide_indices_on_a2a3() -> None:
    def broken(index: str, cols: int) -> set[str]:
        value, number = f"Vec f16 4x{cols}", f"Vec {index} 4x{cols}"
        return codes("TPARTARGMAX", "a2a3", value, value, value, number, number, number)

    assert broken("i32", 64) == set()
    assert broken("i16", 128) == set()
    assert broken("i32", 128) == {"TPARTARGMAX.index-columns"}


def test_in_place_on_the_smaller_source_is_refused() -> None:
    with device("a2a3"):
        dst, full = make("Vec f32 8x8"), make("Vec f32 8x8", 256)
        small = make("Vec f32 8x8 valid 4x8")
        full.fill(1)
        small.fill(1)
        with pytest.raises(ProgramError) as error:
            call("TPARTADD", dst, full, small)
        assert [d.code for d in error.value.diagnostics] == ["TPARTADD.in-place"]
        whole(small).mark_defined()
        call("TPARTADD", dst, dst, full)  # both are full: any may be the destination
        assert (dst.numpy()[:4] == 2).all()
