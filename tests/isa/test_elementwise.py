"""Elementwise, bitwise, transcendental and fused instructions against plain definitions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import device
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.base.precision import (
    DivAlgorithm,
    FmodAlgorithm,
    PowAlgorithm,
    RecipAlgorithm,
    RemAlgorithm,
)
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.devices import TARGETS
from tests.isa.tiles import blank, call, defined, same_bits, tile

INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.5, -2.5, 3e4, -3e4, 1e-7, 65504.0]


def draw(
    kind: DType, shape: tuple[int, int], seed: int, low: float = -100, high: float = 100
) -> Array:
    """Random values, with the extremes (integers) or special values (floats) mixed in."""
    rng = np.random.default_rng(seed)
    if kind.is_integer:
        values = rng.integers(
            int(kind.min_value), int(kind.max_value), shape, kind.np, endpoint=True
        )
        edges = np.array([kind.min_value, kind.max_value, 0, 1], kind.np)
    else:
        values = rng.uniform(low, high, shape).astype(kind.np)
        edges = np.array(SPECIAL, kind.np)
    mixed = rng.random(shape) < 0.2
    values[mixed] = rng.choice(edges, int(mixed.sum()))
    return values


# ---- meaning -----------------------------------------------------------------------------------


def wrapped(kind: DType, number: int) -> int:
    low = number & ((1 << kind.bits) - 1)
    return low - (1 << kind.bits) if kind.is_signed and low >> (kind.bits - 1) else low


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


# Integers, one element at a time, exactly. x / 0 is 0, and so is its remainder.
INTEGER: dict[str, Callable[..., Any]] = {
    "TADD": operator.add,
    "TSUB": operator.sub,
    "TMUL": operator.mul,
    "TDIV": truncated,
    "TFMOD": lambda a, b: 0 if b == 0 else a - truncated(a, b) * b,
    "TMAX": max,
    "TMIN": min,
    "TABS": abs,
    "TNEG": operator.neg,
    "TRELU": lambda a: max(a, 0),
    "TNOT": operator.invert,
    "TAND": operator.and_,
    "TOR": operator.or_,
    "TADDC": lambda a, b, c: a + b + c,
    "TSUBC": lambda a, b, c: a - b + c,
}

# Floats, in the element type or rounded to it from an exact double.
FLOAT: dict[str, Callable[..., Any]] = {
    "TADD": lambda a, b: a + b,
    "TSUB": lambda a, b: a - b,
    "TMUL": lambda a, b: a * b,
    "TDIV": lambda a, b: a / b,
    "TMAX": lambda a, b: b if a < b else a,
    "TMIN": lambda a, b: b if b < a else a,
    "TABS": abs,
    "TNEG": lambda a: -a,
    "TRELU": lambda a: type(a)(0) if a < 0 else a,
    "TSQRT": np.sqrt,
    "TRECIP": lambda a: type(a)(1) / a,
    "TRSQRT": lambda a: type(a)(1) / np.sqrt(a),
    "TADDC": lambda a, b, c: (a + b) + c,
    "TSUBC": lambda a, b, c: (a - b) + c,
    "TSUBRELU": lambda a, b: a - b if a - b > 0 else type(a)(0),
}


def expected(function: Callable[..., Any], kind: DType, sources: list[Array]) -> Array:
    """The definition, applied element by element."""
    result = np.empty(sources[0].shape, kind.np)
    for index in np.ndindex(result.shape):
        elements = [s[index] for s in sources]
        if kind.is_integer:
            result[index] = wrapped(kind, function(*(int(e) for e in elements)))
        else:
            result[index] = function(*elements)
    return result


def element_types(name: str, target: str) -> list[DType]:
    groups = INSTRUCTIONS[name].types
    found = {combo[0] for group in groups for combo in group.allowed.get(target, ())}
    return [k for k in sorted(found, key=str) if name in (INTEGER if k.is_integer else FLOAT)]


CASES = [
    pytest.param(name, target, kind, id=f"{name}-{target}-{kind}")
    for name in sorted(INTEGER.keys() | FLOAT.keys())
    for target in TARGETS
    for kind in element_types(name, target)
]


@pytest.mark.parametrize(("name", "target", "kind"), CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_element_type_on_every_target(name: str, target: str, kind: DType) -> None:
    sources = [o.name for o in INSTRUCTIONS[name].operands if o.reads]
    values = [draw(kind, (3, 38), seed) for seed in range(len(sources))]
    with device(target, mode="auto"):
        dst = blank(kind, (3, 38))
        call(name, dst, *(tile(kind, v) for v in values))
        table = INTEGER if kind.is_integer else FLOAT
        assert same_bits(dst.numpy(), expected(table[name], kind, values))
        written = np.zeros((dst.spec.rows, dst.spec.cols), bool)
        written[:3, :38] = True
        assert (defined(dst) == written).all(), "elements outside the valid region are untouched"


@given(
    name=st.sampled_from(["TADD", "TMUL", "TMAX", "TSUB"]),
    kind=st.sampled_from(["i8", "u16", "i32", "u64", "f16", "bf16", "f32", "f8e4m3"]),
    layouts=st.tuples(*[st.sampled_from(["ND", "DN", "NZ", "ZN", "ZZ", "NN"])] * 3),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_layouts_may_differ_on_the_permissive_profile(
    name: str, kind: str, layouts: tuple[str, ...], shape: tuple[int, int], seed: int
) -> None:
    element = dtype(kind)
    a, b = draw(element, shape, seed), draw(element, shape, seed + 1)
    function = {"TADD": np.add, "TSUB": np.subtract, "TMUL": np.multiply}.get(name)
    with device("cpu", mode="auto"), np.errstate(all="ignore"):
        dst = blank(element, shape, layouts[0])
        call(name, dst, tile(element, a, layouts[1]), tile(element, b, layouts[2]))
        want = np.where(a < b, b, a) if function is None else function(a, b)
        assert same_bits(dst.numpy(), want)


@pytest.mark.parametrize("name", ["TADD", "TDIV", "TMAX", "TREM", "TPRELU"])
def test_a_source_may_be_the_destination_on_a5(name: str) -> None:
    a, b = np.array([[6.5, -7.25, 2.0, -0.5]], "f4"), np.array([[2.0, 2.0, -3.0, 4.0]], "f4")
    with device("a5", mode="auto"):
        apart, first, second = blank("f32", (1, 4)), tile("f32", a), tile("f32", b)
        extra = [blank("f32", (1, 4))] if len(INSTRUCTIONS[name].operands) == 4 else []
        call(name, apart, tile("f32", a), tile("f32", b), *extra)
        call(name, first, first, tile("f32", b), *extra)
        call(name, second, tile("f32", a), second, *extra)
        assert same_bits(first.numpy(), apart.numpy())
        assert same_bits(second.numpy(), apart.numpy())


def result(target: str, name: str, kind: str, *sources: Any, extra: Any = (), **more: Any) -> Array:
    """Run an instruction on rows of numbers and return its result."""
    with device(target, mode="auto"):
        tiles = [tile(kind, s) for s in sources]
        dst = blank(more.pop("to", kind), (tiles[0].vr, tiles[0].vc))
        call(name, dst, *tiles, *(e() for e in extra), **more)
        return dst.numpy()[0]


# ---- division, remainders, powers --------------------------------------------------------------


def test_high_precision_division_of_halves_flushes_the_smallest() -> None:
    step = 2.0**-24  # the smallest f16
    a, b = [step, 3 * step, 3 * step, 1.0, 1.0, 0.0], [2.0, 2.0, 4.0, 3.0, 0.0, 0.0]
    nearest = result("a5", "TDIV", "f16", a, b)
    high = result("a5", "TDIV", "f16", a, b, template=(DivAlgorithm.HIGH_PRECISION,))
    assert nearest[:3].tolist() == [0.0, 2 * step, step]
    assert high[:3].tolist() == [0.0, step, 0.0]
    assert same_bits(nearest[3:], high[3:])
    ignored = result("a2a3", "TDIV", "f16", a, b, template=(DivAlgorithm.HIGH_PRECISION,))
    assert same_bits(ignored, nearest)


def rem(target: str, kind: str, a: Any, b: Any, **more: Any) -> list[float]:
    scratch = lambda: tile(kind, np.zeros((1, 127)))  # noqa: E731
    return result(target, "TREM", kind, a, b, extra=[scratch], **more).tolist()


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "cpu"])
def test_remainder_takes_the_sign_of_the_divisor(target: str) -> None:
    a, b = [7.5, -7.5, 7.5, -7.5, 6.0], [2.0, 2.0, -2.0, -2.0, 3.0]
    assert rem(target, "f32", a, b) == [1.5, 0.5, -0.5, -1.5, 0.0]
    assert math.isnan(rem(target, "f32", [1.0], [0.0])[0])
    assert rem(target, "i32", [7, -7, 7, -7], [3, 3, -3, -3]) == [1, 2, -2, -1]


def test_remainder_of_long_integers_takes_the_sign_of_the_dividend_on_a5() -> None:
    low = -(2**63)
    assert rem("a5", "i64", [7, -7, 7, low, 5], [3, 3, -3, -1, 0]) == [1, -1, 1, 0, 0]
    assert rem("cpu", "i64", [7, -7, 7], [3, 3, -3]) == [1, 2, -2]


def test_remainder_by_integer_zero() -> None:
    assert rem("a5", "i32", [5], [0]) == [0]
    assert rem("kirin9030", "u16", [5], [0]) == [0xFFFF]


def test_remainder_rounds_its_quotient_unless_asked_for_precision() -> None:
    a, b = [float(2**26 + 8)], [3.0]
    exact = float((2**26 + 8) % 3)
    assert rem("a5", "f32", a, b, template=(RemAlgorithm.HIGH_PRECISION,)) == [exact]
    assert rem("a5", "f32", [1e30], [7.0]) != [float(int(np.float32(1e30)) % 7)]
    high = rem("a5", "f32", [1e30, -1e30], [7.0, 7.0], template=(RemAlgorithm.HIGH_PRECISION,))
    assert high == [float(int(np.float32(x)) % 7) for x in (1e30, -1e30)]


def test_a2a3_computes_integer_remainders_in_single_precision() -> None:
    large = 2**24 + 1  # not a float32
    assert rem("a2a3", "i32", [large], [2]) == [0]
    assert rem("a5", "i32", [large], [2]) == [1]
    rng = np.random.default_rng(5)
    a, b = rng.integers(-(2**24), 2**24, (2, 90))
    b[b == 0] = 1
    assert rem("a2a3", "i32", a, b) == (a % b).tolist()


def test_half_remainders_are_narrowed_toward_zero() -> None:
    a, b = np.float16(1000.0), np.float16(0.3)
    wide = np.float32(a) - np.trunc(np.float32(a) / np.float32(b)) * np.float32(b)
    got = result("a5", "TFMOD", "f16", [a], [b])[0]
    assert abs(got) <= abs(wide) < abs(np.nextafter(got, np.float16(INF)))


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirinx90", "cpu"])
def test_fmod_takes_the_sign_of_the_dividend(target: str) -> None:
    got = result(target, "TFMOD", "f32", [7.5, -7.5, 7.5, -7.5], [2.0, 2.0, -2.0, -2.0])
    assert got.tolist() == [1.5, -1.5, 1.5, -1.5]
    assert np.isnan(result(target, "TFMOD", "f32", [1.0], [0.0]))


def test_high_precision_fmod_is_exact() -> None:
    rng = np.random.default_rng(3)
    a = np.ldexp(rng.uniform(-1, 1, 300), rng.integers(-120, 120, 300)).astype("f4")
    b = np.ldexp(rng.uniform(-1, 1, 300), rng.integers(-120, 120, 300)).astype("f4")
    high = result("a5", "TFMOD", "f32", a, b, template=(FmodAlgorithm.HIGH_PRECISION,))
    for x, y, r in zip(a, b, high, strict=True):
        remainder = abs(Fraction(float(x))) % abs(Fraction(float(y)))
        assert Fraction(float(r)) == (remainder if x > 0 else -remainder)


def power(target: str, kind: str, base: Any, exponent: Any, **more: Any) -> Array:
    scratch = lambda: blank(kind, np.atleast_2d(base).shape)  # noqa: E731
    return result(target, "TPOW", kind, base, exponent, extra=[scratch], **more)


@pytest.mark.parametrize("target", [*TARGETS, "cpu"])
def test_integer_powers(target: str) -> None:
    base, exponent = [3, -2, 0, 0, 1, -1, -1, 5, 10], [4, 5, 0, -3, -9, -3, -4, -1, 10]
    exact = [81, -32, 1, 0, 1, -1, 1, 0, 10**10]
    wide = power(target, "i32", base, exponent)
    assert wide.tolist() == [wrapped(dtype("i32"), x) for x in exact]
    narrow = power(target, "i8", base, exponent)
    assert narrow.tolist() == [wrapped(dtype("i8"), x) for x in exact]


CORNERS = [  # base, exponent, C's pow, A2/A3
    (2.0, 10.0, 1024.0, 1024.0),
    (-2.0, 3.0, -8.0, -8.0),
    (-2.0, 0.5, NAN, NAN),
    (NAN, 0.0, 1.0, 1.0),
    (-0.0, -3.0, -INF, INF),
    (-0.0, 3.0, -0.0, 0.0),
    (1.0, NAN, 1.0, NAN),
    (0.0, NAN, NAN, INF),
    (-1.0, INF, 1.0, 1.0),
    (-INF, 0.5, INF, NAN),
    (-INF, 3.0, -INF, -INF),
    (0.5, INF, 0.0, 0.0),
]


@pytest.mark.parametrize("target", [*TARGETS, "cpu"])
def test_float_powers_in_the_corners(target: str) -> None:
    base, exponent, c, a2a3 = (np.array(column, "f4") for column in zip(*CORNERS, strict=True))
    assert same_bits(power(target, "f32", base, exponent), a2a3 if target == "a2a3" else c)


def test_powers_of_f16_are_rounded_to_f32_first() -> None:
    """A number just below the middle between two of f16 is taken for the middle."""
    base = np.linspace(0.1, 5, 512, dtype=np.float16)
    exponent = np.full_like(base, 1.987)
    got = power("a5", "f16", base, exponent)
    exact = base.astype(np.float64) ** exponent.astype(np.float64)
    assert same_bits(got, exact.astype(np.float32).astype(np.float16))
    assert float(power("a5", "f16", np.float16([0.57]), exponent[:1]).item()) == 0.3271484375


def test_power_takes_bf16_only_with_high_precision() -> None:
    with pytest.raises(ProgramError, match="HIGH_PRECISION"):
        power("a5", "bf16", [2.0], [3.0])
    assert power("a5", "bf16", [2.0], [3.0], template=(PowAlgorithm.HIGH_PRECISION,)) == 8
    with pytest.raises(ProgramError, match="HIGH_PRECISION"):
        power("a5", "i32", [2], [3], template=(PowAlgorithm.HIGH_PRECISION,))


@pytest.mark.parametrize(("name", "function"), [("TEXP", math.exp), ("TLOG", math.log)])
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_transcendentals_are_rounded_once(
    name: str, function: Callable[[float], float], kind: str
) -> None:
    values = np.random.default_rng(1).uniform(0.01, 9, 200).astype(dtype(kind).np)
    want = np.array([function(float(v)) for v in values]).astype(dtype(kind).np)
    assert same_bits(result("a5", name, kind, values), want)
    corners = result("a5", name, kind, [INF, -INF, NAN, 0.0])
    assert same_bits(
        corners,
        np.array([INF, 0, NAN, 1] if name == "TEXP" else [INF, NAN, NAN, -INF], dtype(kind).np),
    )


# ---- bits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "i32", "u32"])
@pytest.mark.parametrize("target", TARGETS)
def test_xor_and_shifts(target: str, kind: str) -> None:
    element = dtype(kind)
    a, b = draw(element, (2, 20), 1), draw(element, (2, 20), 2)
    counts = np.random.default_rng(0).integers(0, element.bits, (2, 20)).astype(element.np)
    with device(target, mode="auto"):
        dst = blank(kind, (2, 20))
        call("TXOR", dst, tile(kind, a), tile(kind, b), blank(kind, (2, 20)))
        assert same_bits(dst.numpy(), a ^ b)
        for name, function in (("TSHL", operator.lshift), ("TSHR", operator.rshift)):
            call(name, dst, tile(kind, a), tile(kind, counts))
            assert same_bits(dst.numpy(), expected(function, element, [a, counts]))


def test_counts_out_of_range_leave_their_elements_undefined() -> None:
    values, counts = [[1, 2, 3, 4]], [[0, -1, 31, 32]]
    with device("a2a3", mode="auto"):
        dst = blank("i16", (1, 4))
        call("TSHL", dst, tile("i16", values), tile("i16", counts))
        assert defined(dst)[0, :4].tolist() == [True, False, True, False]
    assert result("cpu", "TSHR", "i16", [-8, -8], [1, 16]).tolist() == [-4, -1]


def test_long_integers_shift_modulo_64() -> None:
    assert result("a5", "TSHL", "u64", [1, 3], [65, 63]).tolist() == [2, 1 << 63]
    assert result("a5", "TSHR", "i64", [-8, -8], [1, 66]).tolist() == [-4, -2]


@pytest.mark.parametrize("name", ["TAND", "TOR", "TXOR"])
def test_a2a3_spills_a_byte_behind_odd_rows(name: str) -> None:
    for target, spilled in (("a2a3", True), ("a5", False)):
        with device(target, mode="auto"):
            dst, one = blank("u8", (2, 7)), tile("u8", np.ones((2, 7)))
            window = defined(dst)
            assert not window.any()
            wide = Tile.of(TileSpec.of(TileType.Vec, dtype("u8"), dst.spec.rows, dst.spec.cols))
            wide.share(dst)
            wide.fill(9)
            tmp = [blank("u8", (2, 7))] if name == "TXOR" else []
            call(name, dst, one, tile("u8", np.ones((2, 7))), *tmp)
            assert defined(dst)[0, 7] == (not spilled)
            assert defined(dst)[0, 8]


# ---- fused -------------------------------------------------------------------------------------


def test_multiply_and_add_work_on_the_destination() -> None:
    a, b, old = [[2.0, 3.0]], [[5.0, -7.0]], [[1.0, 2.0]]
    wanted = {"TMULADDDST": [11, -19], "TFUSEDMULADD": [7, -1], "TFUSEDMULADDRELU": [7, 0]}
    for name, want in wanted.items():
        with device("a2a3", mode="auto"):
            dst = tile("f32", old)
            call(name, dst, tile("f32", a), tile("f32", b))
            assert dst.numpy()[0].tolist() == want


def test_the_product_is_not_rounded_before_the_addition() -> None:
    x = np.float32(1 + 2**-12)
    with device("a5", mode="auto"):
        dst = tile("f32", [[-(x * x)]])
        call("TMULADDDST", dst, tile("f32", [[x]]), tile("f32", [[x]]))
        assert dst.numpy()[0, 0] == np.float32(2.0**-24)


def test_narrowing_saturates_and_rounds_to_even() -> None:
    f16 = result("a2a3", "TADDRELUCONV", "f32", [7e4, 1.0, -3.0], [0.0, 2**-11, 1.0], to="f16")
    assert f16.tolist() == [65504.0, 1.0, 0.0]
    i8 = result("a5", "TSUBRELUCONV", "f16", [200.0, 2.5, 3.5, 1.0], [0.0, 0.0, 0.0, 9.0], to="i8")
    assert i8.tolist() == [127, 2, 4, 0]


def test_sums_of_i16_wrap_on_a5_only() -> None:
    a, b = [30000, 100], [30000, 100]
    assert result("a2a3", "TADDRELUCONV", "i16", a, b, to="i8").tolist() == [127, 127]
    assert result("a5", "TADDRELUCONV", "i16", a, b, to="i8").tolist() == [0, 127]


def test_dequantised_sums() -> None:
    big, a, b = 2**31 - 1, [100, -5, 2**30, 0], [3, 2, 0, 7]
    with device("a2a3", mode="auto"):
        dst, src0, src1 = blank("f16", (1, 4)), tile("i32", [a]), tile("i32", [b])
        call("TADDDEQRELU", dst, src0, src1, 0.5, blank("i32", (1, 4)))
        assert dst.numpy()[0].tolist() == [51.5, 0.0, 65504.0, 3.5]
        assert not (defined(src0) | defined(src1)).any(), "A2/A3 destroys its sources"
    with device("a5", mode="auto"):
        dst, src0, src1 = blank("f16", (1, 1)), tile("i32", [[big]]), tile("i32", [[1]])
        call("TADDDEQRELU", dst, src0, src1, -1e-5, blank("i32", (1, 1)))
        assert dst.numpy()[0, 0] == np.float16(2.0**31 * 1e-5), "the sum wraps to a negative one"
        assert defined(src0)[0, 0]


# ---- scratch and overlap -----------------------------------------------------------------------


def test_scratch_is_lost_only_where_it_is_used() -> None:
    for target, survives in (("a2a3", False), ("a5", True)):
        with device(target, mode="auto"):
            scratch = tile("i32", [[1, 2]])
            call(
                "TXOR", blank("i32", (1, 2)), tile("i32", [[1, 2]]), tile("i32", [[3, 4]]), scratch
            )
            assert defined(scratch)[0, 0] == survives


def test_a2a3_destroys_the_sources_of_an_integer_remainder() -> None:
    for kind, survives in (("i32", False), ("f32", True)):
        with device("a2a3", mode="auto"):
            src0, src1 = tile(kind, [[7, 8]]), tile(kind, [[3, 3]])
            call("TREM", blank(kind, (1, 2)), src0, src1, tile(kind, np.zeros((1, 127))))
            assert defined(src0)[0, 0] == survives
            assert defined(src1)[0, 0] == survives


@pytest.mark.parametrize("high", [0, 1])
def test_a_reciprocal_is_one_divided_by_the_tile(high: int) -> None:
    """Bit for bit, also in the sequence of A5 that flushes tiny quotients of f16."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(64, 1024)
    with device("a5", mode="auto"), np.errstate(all="ignore"):
        src, one, two = tile("f16", every), blank("f16", every.shape), blank("f16", every.shape)
        call("TDIVS", two, 1.0, src, template=(DivAlgorithm(high),))
        for algorithm in (RecipAlgorithm, DivAlgorithm):
            call("TRECIP", one, src, template=(algorithm(high),))
            assert same_bits(one.numpy(), two.numpy())


def placed(kind: str, address: int, rows: int = 4, cols: int = 32) -> Tile:
    made = Tile.of(TileSpec.of(TileType.Vec, dtype(kind), rows, cols))
    made.bind(current().core.memory(TileType.Vec), address)
    made.fill(1)
    return made


def test_overlap_is_all_or_nothing() -> None:
    with device("a2a3"):
        a, same, apart = placed("f32", 0), placed("f32", 0), placed("f32", 512)
        call("TADD", same, a, a)
        call("TADD", apart, a, same)
    with device("a2a3", rules="strict"):
        a, same, shifted = placed("f32", 0), placed("f32", 0), placed("f32", 128)
        with pytest.raises(ProgramError, match="partial-overlap"):
            call("TADD", shifted, a, a)
        apart = placed("f32", 512)
        for name in ("TFMOD", "TRECIP"):
            with pytest.raises(ProgramError, match=f"{name}.separate"):
                call(name, same, a, *([apart] if name == "TFMOD" else []))
    with device("a5"):
        a, same, b = placed("f32", 0), placed("f32", 0), placed("f32", 512)
        call("TFMOD", same, a, b)


def test_interleaved_tiles_do_not_overlap() -> None:
    """The left and the right half of one buffer share an address range but no byte."""
    half = TileSpec.of(TileType.Vec, dtype("f32"), 4, 32, valid_row=4, valid_col=16)
    with device("a2a3"):
        memory = current().core.memory(TileType.Vec)
        left, right, other = (Tile.of(half) for _ in range(3))
        for each, address in ((left, 0), (right, 64), (other, 4096)):
            each.bind(memory, address)
            each.fill(2)
        call("TMUL", left, right, other)
        assert (left.numpy() == 4).all()
        assert (right.numpy() == 2).all()
