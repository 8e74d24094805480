"""TCVT: which pairs exist, how each rounds and saturates, and what it does to memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import device
from ptokit.base.convert import convert, round_integral
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import ALL, dtype, f32
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.base.layout import Array
from ptokit.isa.conversion import PAIRS
from ptokit.isa.devices import TARGETS
from tests.isa.tiles import blank, call, defined, same_bits, tile, whole
from tests.operands import make

NONE, RINT, ROUND, FLOOR, CEIL, TRUNC, ODD = RoundMode
ON, OFF = SaturationMode.ON, SaturationMode.OFF
INF, NAN = np.inf, np.nan


def converted(
    target: str, src: str, dst: str, values: Any, *modes: Any, tmp: bool = False
) -> Array:
    """Convert a row of numbers (codes, for the types that hold codes)."""
    with device(target, mode="auto"):
        source = tile(src, values)
        out = blank(dst, (source.vr, source.vc))
        scratch = [blank("u8", (15, 255))] if tmp else []
        call("TCVT", out, source, *scratch, *modes)
        return out.numpy()[0]


def test_number_of_pairs() -> None:
    count = {t: sum(t in pair.targets for pair in PAIRS.values()) for t in TARGETS}
    assert count == {"a2a3": 25, "a5": 45, "kirin9030": 26, "kirinx90": 30}


@pytest.mark.parametrize("target", TARGETS)
def test_every_pair_with_every_mode(target: str) -> None:
    """The effective rounding is the mode or what CAST_NONE means; values are those of convert()."""
    rng = np.random.default_rng(7)
    for (src, dst), pair in PAIRS.items():
        if target not in pair.targets:
            continue
        raw = rng.integers(0, 256, (1, 16 * src.itemsize), np.uint8)
        values = raw & 0xF if src.is_packed else raw.view(src.np)
        for mode in RoundMode:
            if mode == ODD and target.startswith("kirin") and ODD not in pair.modes:
                continue  # illegal there
            rounding = mode if mode in pair.modes else pair.none
            saturation = pair.saturation
            if target.startswith("kirin") and src.is_integer and dst.is_integer:
                saturation = ON
            want = convert(values, src, dst, rounding, saturation)
            if src is dst is f32:
                want = round_integral(values, rounding)
            got = converted(target, src.name, dst.name, values, mode)
            assert same_bits(got, want[0]), (src, dst, mode)


SPOTS = [  # target, source, destination, values, modes, results
    ("a2a3", "f32", "i32", [2.5, -2.5, 3.5], (RINT,), [2, -2, 4]),
    ("a2a3", "f32", "i32", [2.5, -2.5, 3.5], (ROUND,), [3, -3, 4]),
    ("a2a3", "f32", "i32", [2.9, -2.9, 3e9], (NONE,), [2, -2, 2**31 - 1]),
    ("a5", "f32", "f32", [2.5, -2.5, 0.2], (NONE,), [2, -2, 0]),
    ("a5", "f32", "f32", [2.5, -2.5, 0.2], (CEIL,), [3, -2, 1]),
    ("a5", "f32", "f16", [1 + 2**-12, 1 + 2**-10 + 2**-12], (ODD,), [1 + 2**-10, 1 + 2**-10]),
    ("a5", "f32", "f16", [1e6, -INF], (RINT,), [65504, -65504]),
    ("a5", "f32", "f16", [1e6, -INF], (RINT, OFF), [INF, -INF]),
    # Off by default: low bits, and the values the devices give for what has none.
    ("a2a3", "f32", "i16", [70000.0, INF, -INF, NAN], (TRUNC,), [4464, -1, 0, 0]),
    ("a2a3", "f32", "i16", [70000.0, INF, -INF, NAN], (TRUNC, ON), [32767, 32767, -32768, 0]),
    ("a5", "f16", "u8", [300.0, -1.0, INF], (RINT,), [44, 255, 255]),
    ("a5", "f16", "u8", [300.0, -1.0, INF], (RINT, ON), [255, 0, 255]),
    ("a2a3", "i32", "i16", [70000, -70000], (NONE,), [4464, -4464]),
    ("kirin9030", "i32", "i16", [70000, -70000], (NONE, OFF), [32767, -32768]),
    ("a5", "i64", "i32", [2**40 + 5], (NONE,), [5]),
    ("a5", "i16", "u32", [-3, 3], (NONE,), [0, 3]),
    ("a5", "i16", "u32", [-3, 3], (NONE, OFF), [2**32 - 3, 3]),
    # A2/A3 without tmp listens to satMode only where saturation is off by default.
    ("a2a3", "f32", "i32", [3e9], (TRUNC, OFF), [2**31 - 1]),
    ("a5", "f32", "i32", [2.0**32 + 512], (TRUNC, OFF), [512]),
    ("a2a3", "i32", "f16", [100000], (NONE,), [65504]),
    # The narrow formats ignore the mode, and always saturate.
    ("a5", "f32", "f8e4m3", [1.0625, 1e9], (CEIL, OFF), [1.0, 448.0]),
    ("a5", "f32", "f8e5m2", [1.125], (FLOOR,), [1.0]),
    ("a5", "i32", "f32", [2**24 + 1], (CEIL,), [2**24 + 2]),
    ("a5", "i32", "f32", [2**24 + 1], (NONE,), [2**24]),
    # The permissive profile: every pair, and no saturation unless asked for.
    ("cpu", "f32", "u8", [300.7, 2.5], (NONE,), [44, 2]),
    ("cpu", "f32", "u8", [300.7, 2.5], (RINT, ON), [255, 2]),
]


@pytest.mark.parametrize(("target", "src", "dst", "values", "modes", "want"), SPOTS)
def test_spots(
    target: str, src: str, dst: str, values: list[float], modes: tuple[Any, ...], want: list[float]
) -> None:
    got = converted(target, src, dst, values, *modes)
    assert got.astype(np.float64).tolist() == [float(w) for w in want]


def test_ties_go_away_from_zero_in_hif8() -> None:
    codes = converted("a5", "f32", "hif8", [1.0625, -1.0625, 1.0], RINT)
    assert converted("a5", "hif8", "f32", codes, NONE).tolist() == [1.125, -1.125, 1.0]


def test_tmp_makes_a2a3_listen_and_go_through_i32() -> None:
    assert converted("a2a3", "f32", "i32", [3e9], TRUNC, OFF, tmp=True) == [3000000000 - 2**32]
    huge = [2.0**33 + 2**18 + 7 * 2**10]  # i32 ends before it, its low bits do not
    assert converted("a2a3", "f32", "i16", huge, TRUNC, OFF) == [7 * 2**10]
    assert converted("a2a3", "f32", "i16", huge, TRUNC, OFF, tmp=True) == [-1]
    assert converted("a2a3", "f16", "i8", [300.0], TRUNC, OFF, tmp=True) == [44]


def test_tmp_is_lost_only_when_used() -> None:
    for saturation, survives in ((ON, True), (OFF, False)):
        with device("a2a3", mode="auto"):
            scratch = tile("u8", np.ones((15, 255)))
            call("TCVT", blank("i16", (1, 4)), tile("f32", [1, 2, 3, 4]), scratch, RINT, saturation)
            assert defined(scratch)[0, 0] == survives


def test_tmp_is_large_enough() -> None:
    with device("a2a3", mode="auto"):
        source, small = tile("f32", np.ones((8, 40))), blank("u8", (1, 31))
        call("TCVT", blank("i16", (8, 40)), source, small, RINT, ON)
        with pytest.raises(ProgramError, match=r"TCVT.tmp-size"):
            call("TCVT", blank("i16", (8, 40)), source, small, RINT, OFF)


def test_the_caller_may_set_the_control_register() -> None:
    def run(control: int) -> int:
        with device("a2a3", mode="auto") as machine:
            machine.core.registers["CTRL"] = control
            out = blank("i16", (1, 1))
            call("TCVT", out, tile("f32", [70000.0]), TRUNC, ON, template=(False,))
            return int(out.numpy()[0, 0])

    assert run(0) == 32767
    assert run(1 << 59) == 4464


def test_four_bit_floats_fill_whole_rows_on_a5() -> None:
    with device("a5", mode="auto"):
        out = blank("f4e2m1x2", (2, 6))
        call("TCVT", out, tile("bf16", [[0.5, -1.5, 6, 100, 2.4, 0]] * 2), RINT)
        assert out.numpy()[0].tolist() == [0x1, 0xB, 0x7, 0x7, 0x4, 0x0]
        assert defined(out)[:2].all()
        assert not whole(out).read()[:2, 6:].any()
        assert not defined(out)[2:].any()
        odd = blank("f4e2m1x2", (2, 5))
        call("TCVT", odd, tile("bf16", np.ones((2, 5))), RINT)
        assert odd.numpy().tolist() == [[2, 2, 2, 2, 0]] * 2
    with (
        device("a5", mode="auto", rules="strict"),
        pytest.raises(ProgramError, match=r"TCVT.even-columns"),
    ):
        call("TCVT", blank("f4e2m1x2", (2, 5)), tile("bf16", np.ones((2, 5))), RINT)
    back = converted("a5", "f4e2m1x2", "bf16", [0x1, 0xB, 0x7], NONE)
    assert back.astype("f4").tolist() == [0.5, -1.5, 6.0]


def test_pairs_of_nibbles() -> None:
    codes = converted("a2a3", "f16", "i4", [1.0, -8.0, 7.4, 99.0, -3.0], RINT)
    assert codes.tolist() == [1, 8, 7, 7, 13]
    assert converted("a2a3", "i4", "f16", codes, NONE).tolist() == [1, -8, 7, 7, -3]


def test_rows_of_nibbles_are_as_far_apart_as_those_of_bytes() -> None:
    """A tile of bytes at the same address has the pairs in the front of its rows."""
    values = np.arange(3 * 64).reshape(3, 64) % 16 - 8
    with device("a2a3"):
        source, packed, as_bytes, back = (
            make(text, at)
            for text, at in (
                ("Vec f16 3x64", 0),
                ("Vec i4 3x64", 4096),
                ("Vec u8 3x64 valid 3x32", 4096),
                ("Vec f16 3x64", 8192),
            )
        )
        source.fill(values)
        call("TCVT", packed, source, RINT)
        low, high = values[:, ::2] & 15, values[:, 1::2] & 15
        assert (as_bytes.numpy() == (low | high << 4)).all()
        call("TCVT", back, packed, NONE)
        assert (back.numpy() == values).all()


@pytest.mark.parametrize("target", TARGETS)
def test_other_pairs_are_refused(target: str) -> None:
    legal = {(s, d) for (s, d), pair in PAIRS.items() if target in pair.targets}
    for src in ALL:
        for dst in (dtype("f16"), dtype("u8"), dtype("f8e5m2")):
            if (src, dst) not in legal:
                with (
                    device(target, mode="auto", rules="strict"),
                    pytest.raises(ProgramError, match=r"TCVT.dtype"),
                ):
                    call("TCVT", blank(dst, (1, 2)), blank(src, (1, 2)), RINT)


def test_rounding_to_odd_exists_for_one_pair_on_kirin() -> None:
    assert converted("kirin9030", "f32", "f16", [1.5], ODD) == [1.5]
    with device("kirin9030", mode="auto"):
        out = tile("i32", [7])
        call("TCVT", out, tile("f32", [1.5]), ODD)
        assert out.numpy() == [[7]]
    with (
        device("kirin9030", mode="auto", rules="strict"),
        pytest.raises(ProgramError, match=r"TCVT.odd-rounding"),
    ):
        call("TCVT", blank("i32", (1, 1)), tile("f32", [1.5]), ODD)


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030"])
@pytest.mark.parametrize(
    ("src", "dst", "rows", "cols"),
    [("f32", "i32", 3, 70), ("f32", "f16", 3, 64), ("f32", "f16", 1, 70), ("f16", "i8", 4, 20)],
)
def test_in_place(target: str, src: str, dst: str, rows: int, cols: int) -> None:
    """Elements that do not become wider are converted where they lie."""
    values = np.random.default_rng(5).uniform(-90, 90, (rows, cols)).astype(dtype(src).np)
    with device(target, rules="strict") as machine:
        source, out = blank(src, (rows, cols)), blank(dst, (rows, cols))
        memory = machine.core.memory(source.spec.loc)
        source.bind(memory, 0)
        out.bind(memory, 0)
        source.fill(values)
        call("TCVT", out, source, FLOOR)
        expected = convert(values, dtype(src), dtype(dst), FLOOR, SaturationMode.ON)
        assert same_bits(out.numpy(), expected)
        wider = blank("f32", (rows, cols))
        wider.bind(memory, 0)
        if dst in ("f16",):
            with pytest.raises(ProgramError, match=r"TCVT.partial-overlap"):
                call("TCVT", wider, out, RINT)


@pytest.mark.parametrize(("src", "dst", "cols"), [("f32", "f16", 70), ("f16", "i8", 150)])
def test_late_remainders_on_a2a3(src: str, dst: str, cols: int) -> None:
    """Whole repeats of all rows run first; the rest is made of what they left in memory."""
    wide, narrow, rows = dtype(src), dtype(dst), 5
    saturation = PAIRS[wide, narrow].saturation
    values = np.random.default_rng(6).uniform(-90, 90, (rows, cols)).astype(wide.np)
    with device("a2a3") as machine:
        source, out = blank(wide, (rows, cols)), blank(narrow, (rows, cols))
        memory = machine.core.memory(source.spec.loc)
        source.bind(memory, 0)
        out.bind(memory, 0)
        source.fill(values)
        before = memory.data.copy()
        call("TCVT", out, source, FLOOR)
        assert any(w.code == "TCVT.late-tails" for w in machine.warnings)
        got = out.numpy()
    head = cols - cols % (256 // wide.itemsize)
    for columns in (range(head), range(head, cols)):
        for row in range(rows):
            start = (row * source.spec.cols + columns[0]) * wide.itemsize
            read = before[start : start + len(columns) * wide.itemsize].view(wide.np)
            made = convert(read.copy(), wide, narrow, FLOOR, saturation)
            start = (row * out.spec.cols + columns[0]) * narrow.itemsize
            before[start : start + made.nbytes] = made.view(np.uint8)
    size = rows * out.spec.cols * narrow.itemsize
    expected = before[:size].view(narrow.np).reshape(rows, -1)[:, :cols]
    assert same_bits(got, expected)
    plain = convert(values, wide, narrow, FLOOR, saturation)
    assert not same_bits(got, plain)


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
def test_nan_becomes_zero_where_fp8_clamps(kind: str) -> None:
    """On devices; the permissive profile keeps it."""
    values = np.array([[np.nan, -np.nan, 1.0, 1e10, -1e10, np.inf]], np.float32)
    for on, first in (("a5", 0.0), ("cpu", np.nan)):
        with device(on, mode="auto"):
            dst = blank(kind, values.shape)
            call("TCVT", dst, tile("f32", values), template=())
            found = dst.numpy().astype(np.float32)[0]
        assert np.array_equal(found[:2], [first, first], equal_nan=True)
        assert found[2] == 1
        if on == "a5":
            assert found[3] == -found[4] == found[5] == dtype(kind).max_value
