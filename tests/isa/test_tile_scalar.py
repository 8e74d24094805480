"""Tile-scalar instructions against plain definitions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import device
from ptokit.base.convert import element
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import CmpMode, TileType
from ptokit.base.layout import Array
from ptokit.base.precision import FmodSAlgorithm, RemSAlgorithm
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.arrays import pack_mask, unpack_mask
from ptokit.isa.devices import TARGETS
from tests.isa.tiles import blank, call, defined, same_bits, tile, whole

NAN, INF = math.nan, math.inf
SPECIAL = [0.0, -0.0, INF, -INF, NAN, 1.0, -2.5, 3e4, 1e-7]


def draw(kind: DType, shape: tuple[int, int], seed: int) -> Array:
    """Random values, with extremes and special values mixed in."""
    rng = np.random.default_rng(seed)
    if kind.is_integer:
        low, high = int(kind.min_value), int(kind.max_value)
        values = rng.integers(low, high, shape, kind.np, endpoint=True)
        edges = np.array([low, high, 0, 1], kind.np)
    else:
        values = rng.uniform(-100, 100, shape).astype(kind.np)
        edges = np.array(SPECIAL, kind.np)
    mixed = rng.random(shape) < 0.2
    values[mixed] = rng.choice(edges, int(mixed.sum()))
    return values


def wrapped(kind: DType, number: int) -> int:
    low = number & ((1 << kind.bits) - 1)
    return low - (1 << kind.bits) if kind.is_signed and low >> (kind.bits - 1) else low


def truncated(a: int, b: int) -> int:
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


# Integers one by one, exactly; floats in the element type.
INTEGER: dict[str, Callable[[int, int], int]] = {
    "TADDS": operator.add,
    "TSUBS": operator.sub,
    "TMULS": operator.mul,
    "TMAXS": max,
    "TMINS": min,
    "TDIVS": truncated,
    "TFMODS": lambda a, b: a - truncated(a, b) * b,
    "TPOWS": lambda a, b: a**b,
    "TANDS": operator.and_,
    "TORS": operator.or_,
    "TXORS": operator.xor,
    "TSHLS": operator.lshift,
    "TSHRS": operator.rshift,
}
FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "TADDS": operator.add,
    "TSUBS": operator.sub,
    "TMULS": operator.mul,
    "TMAXS": lambda a, b: b if a < b else a,
    "TMINS": lambda a, b: b if b < a else a,
    "TDIVS": operator.truediv,
    "TLRELU": lambda a, b: a if a > 0 else a * b,
}
CASES = [
    pytest.param(name, target, kind, id=f"{name}-{target}-{kind}")
    for name in sorted(INTEGER.keys() | FLOAT.keys())
    for target in (*TARGETS, "cpu")
    for kind in sorted(
        {c[0] for g in INSTRUCTIONS[name].types for c in g.allowed.get(target, ())}, key=str
    )
    if name in (INTEGER if kind.is_integer else FLOAT)
]


def scratch(name: str, kind: DType, shape: tuple[int, int]) -> list[Tile]:
    return [blank(kind, shape)] if any(o.name == "tmp" for o in INSTRUCTIONS[name].operands) else []


@pytest.mark.parametrize(("name", "target", "kind"), CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_element_type_on_every_target(name: str, target: str, kind: DType) -> None:
    values = draw(kind, (3, 38), 1)
    number = 3 if kind.is_integer else 1.7
    operate = (INTEGER if kind.is_integer else FLOAT)[name]
    want = np.empty(values.shape, kind.np)
    for at in np.ndindex(values.shape):
        if kind.is_integer:
            want[at] = wrapped(kind, operate(int(values[at]), int(number)))
        else:
            want[at] = operate(values[at], element(number, kind))
    with device(target, mode="auto"):
        dst = blank(kind, (3, 38))
        call(name, dst, tile(kind, values), number, *scratch(name, kind, (3, 38)))
        assert same_bits(dst.numpy(), want)
        written = np.zeros((dst.spec.rows, dst.spec.cols), bool)
        written[:3, :38] = True
        assert (defined(dst) == written).all(), "elements outside the valid region are untouched"


@given(
    name=st.sampled_from(["TADDS", "TMULS", "TMINS", "TSUBS"]),
    kind=st.sampled_from(["i8", "u16", "i32", "u64", "f16", "bf16", "f32", "f8e4m3"]),
    layouts=st.tuples(*[st.sampled_from(["ND", "DN", "NZ", "ZN", "ZZ", "NN"])] * 2),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    number=st.integers(-200, 200),
)
@settings(max_examples=50, deadline=None)
def test_any_layout_on_the_permissive_profile(
    name: str, kind: str, layouts: tuple[str, str], shape: tuple[int, int], number: int
) -> None:
    values, scalar = draw(dtype(kind), shape, number + 200), element(number, dtype(kind))
    operate = {"TADDS": np.add, "TSUBS": np.subtract, "TMULS": np.multiply}.get(name)
    with device("cpu", mode="auto"), np.errstate(all="ignore"):
        dst = blank(kind, shape, layouts[0])
        call(name, dst, tile(kind, values, layouts[1]), number)
        want = operate(values, scalar) if operate else np.where(scalar < values, scalar, values)
        assert same_bits(dst.numpy(), want)


def test_scalars_are_converted_as_cpp_does() -> None:
    def added(kind: str, scalar: float) -> float:
        with device("cpu", mode="auto"):
            dst = blank(kind, (1, 1))
            call("TADDS", dst, tile(kind, [[0]]), scalar)
            return dst.numpy()[0, 0]

    assert added("i8", 300) == 44
    assert added("u16", -1) == 0xFFFF
    assert added("i32", -2.9) == -2
    assert added("f16", 0.1) == np.float16(0.1)
    assert added("f16", 70000) == INF
    assert float(added("bf16", 1 + 2**-8 + 2**-20)) == 1 + 2**-7  # rounded once, not by way of f32


def test_extremes_keep_a_nan_element_and_drop_a_nan_scalar() -> None:
    with device("a5", mode="auto"):
        dst = blank("f32", (1, 3))
        call("TMAXS", dst, tile("f32", [[NAN, 1.0, -0.0]]), 0.0)
        assert same_bits(dst.numpy(), np.array([[NAN, 1.0, -0.0]], "f4"))
        call("TMINS", dst, tile("f32", [[NAN, 1.0, -1.0]]), NAN)
        assert same_bits(dst.numpy(), np.array([[NAN, 1.0, -1.0]], "f4"))


# ---- division and remainders -------------------------------------------------------------------


def divided(target: str, kind: str, *operands: Any) -> Array:
    with device(target, mode="auto"):
        sources = [tile(kind, [o]) if isinstance(o, list) else o for o in operands]
        dst = blank(kind, (1, next(len(o) for o in operands if isinstance(o, list))))
        call("TDIVS", dst, *sources)
        return dst.numpy()[0]


def test_the_order_of_the_operands_says_what_is_divided() -> None:
    assert divided("a2a3", "f32", [1.0, -6.0, 0.0], 4.0).tolist() == [0.25, -1.5, 0.0]
    assert divided("a2a3", "f32", 3.0, [4.0, -2.0, 0.0]).tolist() == [0.75, -1.5, INF]
    assert divided("a5", "i32", [7, -7, -(2**31)], -1).tolist() == [-7, 7, -(2**31)]
    assert divided("a5", "i16", 100, [7, -7, 200]).tolist() == [14, -14, 0]
    assert divided("a5", "i64", 100, [7, 0]).tolist() == [14, 0]
    assert divided("a5", "u64", [100, 7], 0).tolist() == [0, 0]


def test_an_integer_divided_by_zero_has_no_value() -> None:
    with device("a2a3", mode="auto"):
        dst = blank("i32", (1, 3))
        call("TDIVS", dst, 10, tile("i32", [[5, 0, 2]]))
        assert defined(dst)[0, :3].tolist() == [True, False, True]
        with pytest.raises(ProgramError, match=r"TDIVS\.zero-divisor"):
            call("TDIVS", dst, tile("i32", [[5, 0, 2]]), 0)


def test_a2a3_divides_in_place_by_the_rounded_reciprocal() -> None:
    values = np.arange(1, 60, dtype="f4")[None]
    for target, want in (
        ("a2a3", values * (np.float32(1) / np.float32(7))),
        ("a5", values / np.float32(7)),
    ):
        with device(target):
            made = Tile.of(TileSpec.of(TileType.Vec, dtype("f32"), 1, 64, valid_col=59))
            call("TASSIGN", made, 0)
            made.fill(values)
            call("TDIVS", made, made, 7.0)
            assert same_bits(made.numpy(), want.astype("f4"))
    assert not np.array_equal(values * (np.float32(1) / np.float32(7)), values / np.float32(7))


@pytest.mark.parametrize("operands", ["tile tile", "scalar scalar"])
def test_division_takes_one_tile_and_one_scalar(operands: str) -> None:
    with device("a5", mode="auto"):
        sources = [tile("f32", [[1.0]]) if o == "tile" else 1.0 for o in operands.split()]
        with pytest.raises(ProgramError, match=r"TDIVS\.sources"):
            call("TDIVS", blank("f32", (1, 1)), *sources)


def remainder(name: str, target: str, kind: str, a: Any, b: float, **more: Any) -> list[float]:
    with device(target, mode="auto"):
        dst = blank(kind, (1, len(a)))
        call(name, dst, tile(kind, [a]), b, *scratch(name, dtype(kind), (1, len(a))), **more)
        return dst.numpy()[0].tolist()


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "cpu"])
def test_remainders_follow_scalar_or_dividend(target: str) -> None:
    a = [7.5, -7.5, 6.0]
    assert remainder("TREMS", target, "f32", a, 2.0) == [1.5, 0.5, 0.0]
    assert remainder("TREMS", target, "f32", a, -2.0) == [-0.5, -1.5, 0.0]
    assert remainder("TFMODS", target, "f32", a, -2.0) == [1.5, -1.5, 0.0]
    assert remainder("TREMS", target, "i32", [7, -7], -3) == [-2, -1]
    assert math.isnan(remainder("TREMS", target, "f32", [1.0], 0.0)[0])
    assert math.isnan(remainder("TFMODS", target, "f32", [1.0], 0.0)[0])


def test_long_integers_keep_the_sign_of_the_dividend_on_a5() -> None:
    assert remainder("TREMS", "a5", "i64", [7, -7], 3) == [1, -1]
    assert remainder("TREMS", "a5", "i64", [7, -7], 0) == [0, 0]
    assert remainder("TREMS", "cpu", "i64", [7, -7], 3) == [1, 2]


def test_a5_does_not_mend_a_remainder_whose_quotient_was_rounded_up() -> None:
    rng = np.random.default_rng(0)
    a = (rng.integers(1, 10**6, 1000) * np.float64(0.1)).astype("f4").tolist()
    plain = np.array(remainder("TREMS", "a5", "f32", a, 0.1))
    mended = np.array(remainder("TREMS", "kirin9030", "f32", a, 0.1))
    wrong = plain < 0
    assert wrong.any()
    assert (mended >= 0).all()
    assert (plain[~wrong] == mended[~wrong]).all()
    high = remainder("TREMS", "a5", "f32", a, 0.1, template=(RemSAlgorithm.HIGH_PRECISION,))
    b = float(np.float32(0.1))
    assert high == [math.fmod(x, b) for x in a]
    exact = remainder("TFMODS", "a5", "f32", a, 0.1, template=(FmodSAlgorithm.HIGH_PRECISION,))
    assert exact == high


def test_a2a3_destroys_an_integer_dividend() -> None:
    with device("a2a3", mode="auto"):
        src, dst, tmp = tile("i32", [[7, 8]]), blank("i32", (1, 2)), blank("i32", (1, 2))
        call("TREMS", dst, src, 3, tmp)
        assert not defined(src).any()
        assert not defined(tmp).any()


@pytest.mark.parametrize("target", ["a2a3", "a5", "cpu"])
def test_powers(target: str) -> None:
    def raised(kind: str, values: list[float], exponent: float) -> list[float]:
        with device(target, mode="auto"):
            dst, tmp = blank(kind, (1, len(values))), blank(kind, (1, len(values)))
            call("TPOWS", dst, tile(kind, [values]), exponent, tmp)
            return dst.numpy()[0].tolist()

    assert raised("i32", [3, -2, 0, 1], 3) == [27, -8, 0, 1]
    assert raised("i32", [3, -1, 1], -3) == [0, -1, 1]
    assert raised("i8", [4], 4) == [0]
    assert raised("f32", [2.0, -2.0, 0.0], 3.0) == [8.0, -8.0, 0.0]
    assert raised("f32", [NAN, 5.0], 0.0) == [1.0, 1.0]
    assert math.isnan(raised("f32", [-2.0], 0.5)[0])


# ---- combinations ------------------------------------------------------------------------------


def test_leaky_relu_sends_zero_and_nan_through_the_product() -> None:
    with device("a2a3", mode="auto"):
        dst = blank("f16", (1, 5))
        call("TLRELU", dst, tile("f16", [[2.0, -2.0, 0.0, -0.0, NAN]]), -0.5)
        assert same_bits(dst.numpy(), np.array([[2.0, 1.0, -0.0, 0.0, NAN]], "f2"))


@pytest.mark.parametrize(("into", "of"), [("f16", "f16"), ("f32", "f32"), ("f32", "f16")])
def test_axpy_accumulates(into: str, of: str) -> None:
    y, x = draw(dtype(into), (3, 20), 1), draw(dtype(of), (3, 20), 2)
    kind = dtype(into).np
    with device("a5", mode="auto"), np.errstate(all="ignore"):
        dst = tile(into, y)
        call("TAXPY", dst, tile(of, x), 0.3)
        want = y + x.astype(kind) * kind.type(dtype(of).np.type(0.3))
        assert same_bits(dst.numpy(), want.astype(kind))


def test_three_operand_sums_go_from_left_to_right() -> None:
    a, b = np.array([[1e4]], "f2"), np.array([[-1e4]], "f2")
    for target in ("cpu", "a2a3", "a5"):
        with device(target, mode="auto"):
            dst, x, y = blank("f16", (1, 1)), tile("f16", a), tile("f16", b)
            call("TADDSC", dst, x, 3.0, y)
            assert dst.numpy()[0, 0] == (a + np.float16(3) + b)[0, 0] == 0.0
            call("TSUBSC", dst, x, 8.0, y)
            assert dst.numpy()[0, 0] == -8.0
    with device("kirin9030", mode="auto"), pytest.raises(ProgramError, match="does not exist on"):
        call("TADDSC", *(tile("f16", a) for _ in range(2)), 3.0, tile("f16", b))


# ---- bits --------------------------------------------------------------------------------------


def test_counts_outside_the_width_are_refused_but_wrap_for_long_integers() -> None:
    with device("a5", mode="auto", rules="strict"):
        src, dst = tile("i16", [[-8]]), blank("i16", (1, 1))
        for count in (16, -1):
            with pytest.raises(ProgramError, match=r"TSHLS\.shift-count"):
                call("TSHLS", dst, src, count)
        call("TSHRS", dst, src, 1)
        assert dst.numpy() == -4
        long, wide = tile("i64", [[-8]]), blank("i64", (1, 1))
        call("TSHRS", wide, long, 65)
        assert wide.numpy() == -4


def test_a2a3_spills_a_byte_behind_an_odd_row() -> None:
    with device("a2a3", mode="auto"):
        dst = blank("u8", (2, 5))
        whole(dst).mark_defined()
        call("TANDS", dst, tile("u8", np.full((2, 5), 0xF0)), 0x3C)
        assert (dst.numpy() == 0x30).all()
        assert not defined(dst)[:2, 5].any()
        assert defined(dst)[:2, 6].all()


@pytest.mark.parametrize("name", ["TANDS", "TORS", "TFMODS"])
def test_a2a3_needs_a_destination_of_its_own(name: str) -> None:
    kind = "f32" if name == "TFMODS" else "i32"
    for target in ("a2a3", "a5"):
        with device(target, rules="strict"):
            made = Tile.of(TileSpec.of(TileType.Vec, dtype(kind), 1, 16))
            call("TASSIGN", made, 0)
            made.fill(6)
            if target == "a2a3":
                with pytest.raises(ProgramError, match=f"{name}.separate"):
                    call(name, made, made, 4)
            else:
                call(name, made, made, 4)
                assert made.numpy()[0, 0] == {"TANDS": 4, "TORS": 6, "TFMODS": 2}[name]


# ---- masks -------------------------------------------------------------------------------------

ANSWER = dict(
    zip(
        CmpMode,
        (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
        strict=True,
    )
)


def mask_tile(kind: str = "u8", rows: int = 3, cols: int = 64) -> Tile:
    made = Tile.of(TileSpec.of(TileType.Vec, dtype(kind), rows, cols))
    current().place(made)
    return made


def bits_of(mask: Tile, cols: int) -> Array:
    return unpack_mask(whole(mask).read().view(np.uint8), cols)


@pytest.mark.parametrize("mode", CmpMode)
@pytest.mark.parametrize(
    ("target", "kind", "mask"),
    [
        ("a2a3", "f32", "u8"),
        ("a5", "f16", "u32"),
        ("a5", "i64", "u8"),
        ("kirin9030", "u8", "u32"),
        ("cpu", "bf16", "u16"),
    ],
)
def test_compare_with_a_scalar(target: str, kind: str, mask: str, mode: CmpMode) -> None:
    pool = [0, 1, 3, 100] if dtype(kind).is_integer else [0.0, -0.0, 1.5, NAN]
    values = np.random.default_rng(4).choice(pool, (3, 45)).astype(dtype(kind).np)
    with device(target, mode="auto"), np.errstate(invalid="ignore"):
        dst = mask_tile(mask)
        number = 1 if dtype(kind).is_integer else 0.0
        call("TCMPS", dst, tile(kind, values), number, mode)
        got = bits_of(dst, 45)
        assert (got == ANSWER[mode](values, dtype(kind).np.type(number))).all()
        # The number may be the first element in memory of a tile.
        call("TCMPS", dst, tile(kind, values), tile(kind, [[number, 99]]), mode)
        assert (bits_of(dst, 45) == got).all()


def test_a2a3_compares_short_integers_as_halves() -> None:
    values = np.array([[1, 2, -1, -2, 0, -32768, 0x7E00]], "i2")
    with device("a2a3", mode="auto"):
        dst = mask_tile(rows=1)
        call("TCMPS", dst, tile("i16", values), 0, CmpMode.EQ)
        assert np.flatnonzero(bits_of(dst, 7)[0]).tolist() == [4, 5]
        call("TCMPS", dst, tile("i16", values), -32767, CmpMode.GT)  # a tiny negative half
        assert np.flatnonzero(bits_of(dst, 7)[0]).tolist() == [0, 1, 4, 5]


def test_a2a3_cannot_order_integers() -> None:
    with device("a2a3", mode="auto", rules="strict"):
        dst, src = mask_tile(rows=1), tile("i32", [[1, 2]])
        call("TCMPS", dst, src, 2, CmpMode.NE)
        with pytest.raises(ProgramError, match=r"TCMPS\.i32-order"):
            call("TCMPS", dst, src, 2, CmpMode.LT)


@given(
    kind=st.sampled_from(["i16", "f16", "f32", "u32"]),
    mask=st.sampled_from(["u8", "u16", "u32"]),
    shape=st.tuples(st.integers(1, 5), st.integers(1, 70)),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_select_between_a_tile_and_a_scalar(
    kind: str, mask: str, shape: tuple[int, int], seed: int
) -> None:
    values = draw(dtype(kind), shape, seed)
    bits = np.random.default_rng(seed).random(shape) < 0.5
    with device("cpu", mode="auto"):
        chooser, dst = mask_tile(mask, shape[0], 32), blank(kind, shape)
        words = np.zeros((shape[0], 32), dtype(mask).np)
        pack_mask(bits, words.view(np.uint8))
        chooser.fill(words)
        call("TSELS", dst, chooser, tile(kind, values), mask_tile(rows=1), 7)
        assert same_bits(dst.numpy(), np.where(bits, values, dtype(kind).np.type(7)))


def test_what_a_comparison_leaves_a_selection_can_use() -> None:
    values = draw(dtype("f32"), (3, 50), 9)
    for target in ("a2a3", "a5", "kirinx90"):
        with device(target, mode="auto"):
            mask, src, dst = mask_tile(), tile("f32", values), blank("f32", (3, 50))
            call("TCMPS", mask, src, 0.0, CmpMode.GT)
            call("TSELS", dst, mask, src, mask_tile(rows=1), 0.0)
            assert same_bits(dst.numpy(), np.where(values > 0, values, np.float32(0)))
