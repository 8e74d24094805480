"""Generators, histograms, printing and scalar access."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import TADDS, TASSIGN, TLOAD, TPRINT, GlobalTensor, device, kernel
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import dtype
from ptokit.base.enums import BLayout, HistByte, PrintFormat, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import TileSpec
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Pipe
from tests.isa.tiles import blank, call, defined, tile
from tests.support import listen


def made(kind: str, rows: int, cols: int, *valid: int, layout: BLayout = BLayout.RowMajor) -> Tile:
    """A tile of exactly this size."""
    tile = Tile.of(TileSpec.of(TileType.Vec, dtype(kind), rows, cols, layout, *valid))
    current().place(tile)
    return tile


# ---- sequences and triangles -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "start", "descending", "want"),
    [
        ("i16", -2, 0, [-2, -1, 0, 1]),
        ("i32", 2, 1, [2, 1, 0, -1]),
        ("u16", 65534, 0, [65534, 65535, 0, 1]),
        ("u32", 1, True, [1, 0, 2**32 - 1, 2**32 - 2]),
    ],
)
@pytest.mark.parametrize("scratch", [False, True])
def test_sequence(kind: str, start: int, descending: Any, want: list[int], scratch: bool) -> None:
    with device("a2a3", mode="auto"):
        dst = made(kind, 1, 64, 1, 4)
        call("TCI", dst, start, *[made("i32", 1, 512)] * scratch, template=(descending,))
        assert dst.numpy()[0].tolist() == want
        assert defined(dst)[0].tolist() == [True] * 4 + [False] * 60


def test_a_sequence_says_its_type_or_keeps_quiet() -> None:
    with device("a5", mode="auto"):
        dst = made("i16", 1, 64)
        call("TCI", dst, 0, template=(dtype("i16"), 0))
        with pytest.raises(ProgramError, match="SA-0139"):
            call("TCI", dst, 0, template=(dtype("i32"), 0))
        with pytest.raises(ProgramError, match="SA-0140"):
            call("TCI", made("i16", 2, 64), 0)


def test_a_sequence_runs_where_its_target_runs_it() -> None:
    def pipe(target: str, *scratch: str) -> Pipe:
        with device(target, mode="auto") as machine:
            events = listen(machine)
            call("TCI", made("i32", 1, 64), 0, *(made(kind, 1, 512) for kind in scratch))
            return events[-1].pipe

    assert (pipe("a2a3"), pipe("a2a3", "i32"), pipe("a5")) == (Pipe.S, Pipe.V, Pipe.V)


@given(
    upper=st.booleans(),
    diagonal=st.integers(-25, 25),
    kind=st.sampled_from(["i8", "u16", "i32", "i64", "f16", "bf16", "f32"]),
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
)
@settings(max_examples=40, deadline=None)
def test_triangle(upper: bool, diagonal: int, kind: str, shape: tuple[int, int]) -> None:
    ones = np.ones(shape, dtype(kind).np)
    with device("a5", mode="auto"):
        dst = blank(kind, shape)
        call("TTRI", dst, diagonal, template=(int(upper),))
        want = np.triu(ones, diagonal) if upper else np.tril(ones, diagonal)
        assert (dst.numpy() == want).all()


# ---- random numbers ----------------------------------------------------------------------------


def philox(counter: int, key: tuple[int, int], rounds: int) -> list[int]:
    """The published generator, one block at a time."""
    c = [counter >> 32 * i & 0xFFFFFFFF for i in range(4)]
    k0, k1 = key
    for _ in range(rounds):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def random_tile(shape: tuple[int, int], key: Any, counter: Any, rounds: int = 10) -> Array:
    with device("a5", mode="auto"):
        dst = blank("u32", shape)
        call("TRANDOM", dst, key, counter, template=(rounds,))
        return dst.numpy()


def test_random_numbers_have_the_published_values() -> None:
    zeros = random_tile((1, 4), [0, 0], [0, 0, 0, 0])[0]
    assert zeros.tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    top = 0xFFFFFFFF
    ones = random_tile((1, 4), [top, top], np.full(4, top, np.uint32))[0]
    assert ones.tolist() == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("rounds", [7, 10])
@pytest.mark.parametrize("shape", [(3, 5), (2, 256), (2, 300), (2, 520)])
def test_random_numbers_follow_the_counter(shape: tuple[int, int], rounds: int) -> None:
    rows, cols = shape
    base, key = (1 << 128) - 70, (3, 4)  # wraps on the way
    got = random_tile(shape, key, [base >> 32 * i & 0xFFFFFFFF for i in range(4)], rounds)
    chunks = -(-cols // 256)
    for i in range(rows):
        for chunk in range(chunks):
            for lane in range(64):
                at = 256 * chunk + 4 * lane
                words = philox((base + lane) % (1 << 128), key, rounds)
                assert got[i, at : at + 4].tolist() == words[: max(cols - at, 0)]
            base += 64 if chunk < chunks - 1 else (cols - 1) % 64 + 1


def test_random_numbers_take_seven_or_ten_rounds() -> None:
    with pytest.raises(ProgramError, match=r"TRANDOM\.rounds"):
        random_tile((1, 4), [0, 0], [0, 0, 0, 0], 8)


# ---- histogram ---------------------------------------------------------------------------------


def cumulative(values: Array) -> Array:
    return np.cumsum(np.bincount(values, minlength=256))


@pytest.mark.parametrize("byte", [HistByte.BYTE_0, HistByte.BYTE_1])
def test_histogram_of_short_words_filters_row_by_row(byte: HistByte) -> None:
    rng = np.random.default_rng(1)
    values = (rng.integers(0, 3, (4, 60)) << 8 | rng.integers(0, 256, (4, 60))).astype("u2")
    wanted = np.array([0, 1, 2, 200], "u1")
    with device("a5", mode="auto"):
        dst, src = made("u32", 4, 256), made("u16", 4, 64, 4, 60)
        idx = made("u8", 32, 1, 4, 1, layout=BLayout.ColMajor)
        src.fill(values)
        if byte == HistByte.BYTE_0:
            idx.fill(wanted[:, None])  # otherwise it is not looked at
        call("THISTOGRAM", dst, src, idx, template=(byte,))
        for r, row in enumerate(values):
            kept = row[row >> 8 == wanted[r]] & 255 if byte == HistByte.BYTE_0 else row >> 8
            assert (dst.numpy()[r] == cumulative(kept)).all()


@pytest.mark.parametrize("byte", HistByte)
def test_histogram_of_words_filters_all_rows_alike(byte: HistByte) -> None:
    rng = np.random.default_rng(2)
    parts = [rng.integers(0, 2, (2, 90)) for _ in range(3)] + [rng.integers(0, 256, (2, 90))]
    values = sum(part << 8 * (3 - i) for i, part in enumerate(parts)).astype("u4")
    filters = 3 - byte
    with device("a5", mode="auto"):
        dst, src = made("u32", 2, 256), made("u32", 2, 96, 2, 90)
        idx = made("u8", max(filters, 1), 96)
        src.fill(values)
        if filters:
            idx.fill(1)
        call("THISTOGRAM", dst, src, idx, template=(byte,))
        for r, row in enumerate(values):
            for above in range(byte + 1, 4):
                row = row[row >> 8 * above & 255 == 1]
            assert (dst.numpy()[r] == cumulative(row >> 8 * byte & 255)).all()


# ---- scalar access -----------------------------------------------------------------------------


def test_one_element_is_written_and_read_by_its_place_in_memory() -> None:
    with device("a2a3", mode="auto"):
        tall = made("f32", 32, 4, layout=BLayout.ColMajor)
        tall.SetValue(33, 12.34)
        assert tall.GetValue(33) == np.float32(12.34)
        assert np.argwhere(defined(tall)).tolist() == [[1, 1]]
        with pytest.raises(ProgramError, match="nothing has written"):
            tall.GetValue(32)
        for offset in (-1, 128):
            with pytest.raises(ProgramError, match=r"GETVAL\.offset"):
                tall.GetValue(offset)


@pytest.mark.parametrize(
    ("kind", "given", "stored"),
    [("i8", 200, -56), ("u8", 3.7, 3), ("f16", 0.1, float(np.float16(0.1))), ("hif8", 3.0, 3.0)],
)
def test_a_written_element_is_converted(kind: str, given: float, stored: float) -> None:
    with device("cpu", mode="auto"):
        one = made(kind, 1, 32)
        one.SetValue(5, given)
        assert one.GetValue(5) == stored


def test_four_bit_elements_have_their_own_offsets() -> None:
    with device("cpu", mode="auto"):
        one = made("f4e2m1x2", 1, 64)
        one.SetValue(4, -1.5)
        one.SetValue(5, 6.0)
        assert (one.GetValue(4), one.GetValue(5)) == (-1.5, 6.0)


# ---- printing ----------------------------------------------------------------------------------


def test_print_a_tile(capsys: pytest.CaptureFixture[str]) -> None:
    with device("a2a3", mode="auto"):
        small = made("f32", 4, 8, 3, 2)
        small.fill([[1.5, -2.25], [float("nan"), float("-inf")], [1e6, 0.00004]])
        call("TPRINT", small, template=(PrintFormat.Width8_Precision2,))
    unset = " " + " ".join(["       ?"] * 6)
    assert capsys.readouterr().out.splitlines() == [
        "=== [TPRINT Tile] Data Type: float32, Layout: ND, TileType: Vec ===",
        "  Shape: [4, 8], Valid Shape: [3, 2]",
        "    1.50    -2.25|" + unset,
        "     nan     -inf|" + unset,
        "1000000.00     0.00|" + unset,
        "-------- --------|" + " --------" * 6,
        "       ?        ?|" + unset,
    ]


def test_print_on_the_permissive_profile(capsys: pytest.CaptureFixture[str]) -> None:
    with device("cpu", mode="auto"):
        small = made("i8", 2, 32, 2, 3, layout=BLayout.RowMajor)
        small.fill([[1, -2, 3], [100, -128, 0]])
        call("TPRINT", small)
    assert capsys.readouterr().out == (
        "TPRINT 2x3\n       1       -2        3\n     100     -128        0\n"
    )


def test_print_a_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    with device("a5", mode="auto"):
        values = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
        call("TPRINT", GlobalTensor(values), template=(PrintFormat.Width10_Precision6,))
    assert capsys.readouterr().out.splitlines() == [
        "=== [TPRINT GlobalTensor] Data Type: int32, Layout: ND ===",
        "  Shape: [1, 1, 2, 2, 2]",
        "  Batch [0, 0, 0]:",
        "         0          1",
        "         2          3",
        "  Batch [0, 0, 1]:",
        "         4          5",
        "         6          7",
    ]


def test_cube_tiles_are_printed_through_global_memory(capsys: pytest.CaptureFixture[str]) -> None:
    room = np.zeros((16, 16), np.float32)
    with device("a5", mode="auto"):
        acc = Tile.of(
            TileSpec.of(
                TileType.Acc, dtype("f32"), 16, 16, BLayout.ColMajor, slayout=1, fractal=1024
            )
        )
        acc.fill(np.arange(256).reshape(16, 16))
        with pytest.raises(ProgramError, match=r"TPRINT\.source"):
            call("TPRINT", acc)
        call("TPRINT", acc, GlobalTensor(room))
    assert (room == np.arange(256).reshape(16, 16)).all()
    assert capsys.readouterr().out.splitlines()[3] == " ".join(f"{n:8.4f}" for n in range(16, 32))


def test_printing_orders_all_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    kind = Tile.of(TileSpec.of(TileType.Vec, dtype("f32"), 2, 8)).__class__

    @kernel(mode="manual")
    def show(x: Any) -> None:
        loaded = kind()
        TASSIGN(loaded, 0)
        TLOAD(loaded, GlobalTensor(x))
        TPRINT(loaded)  # no event between the load and the two that follow
        TADDS(loaded, loaded, 1.0)

    show[1](np.full((2, 8), 7, np.float32), target="a2a3")
    assert capsys.readouterr().out.count("7.0000") == 16


def test_the_scalar_instructions_return_what_they_say() -> None:
    with device("a2a3", mode="auto"):
        three = tile("i32", [[3]])
        assert Instruction(INSTRUCTIONS["GETVAL"])(three, 0) == 3
        event = Instruction(INSTRUCTIONS["SETVAL"])(three, 0, 4)
        assert repr(event) == "<event of SETVAL>"
