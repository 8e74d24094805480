"""Advice: the predicted gain is that of the changed program, and no advice breaks one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import (
    EVENT_ID0,
    EVENT_ID1,
    PIPE_MTE2,
    PIPE_MTE3,
    PIPE_V,
    TADD,
    TASSIGN,
    TLOAD,
    TMUL,
    TSTORE,
    GlobalTensor,
    Tile,
    TileType,
    float32,
    kernel,
    pipe_barrier,
    set_flag,
    static_range,
    wait_flag,
)
from ptokit.from_text import loads
from ptokit.repair.omit import without_statements
from ptokit.timing.advice import Advice
from ptokit.timing.report import Timing
from tests.native.support import needs_compiler, source

ROWS = Tile[TileType.Vec, float32, 16, 64]
LINES = Path(__file__).read_text().splitlines()


def at(tile: Any, address: int) -> Any:
    TASSIGN(tile, address)
    return tile


@kernel(mode="manual")
def doubles(x, y, *, buffers):
    """With one buffer or two: a buffer has an event id."""
    tiles = [at(ROWS(), 0x1000 * i) for i in static_range(buffers)]
    for turn in static_range(buffers):
        set_flag(PIPE_MTE3, PIPE_MTE2, turn)
    for i in static_range(x.shape[0] // 16):
        turn = i % buffers
        tile = tiles[turn]
        wait_flag(PIPE_MTE3, PIPE_MTE2, turn)
        TLOAD(tile, GlobalTensor(x)[16 * i : 16 * i + 16, :])
        set_flag(PIPE_MTE2, PIPE_V, turn)
        wait_flag(PIPE_MTE2, PIPE_V, turn)
        TADD(tile, tile, tile)
        set_flag(PIPE_V, PIPE_MTE3, turn)
        wait_flag(PIPE_V, PIPE_MTE3, turn)
        TSTORE(GlobalTensor(y)[16 * i : 16 * i + 16, :], tile)
        set_flag(PIPE_MTE3, PIPE_MTE2, turn)
    for turn in static_range(buffers):
        wait_flag(PIPE_MTE3, PIPE_MTE2, turn)


@kernel(mode="manual")
def scales(x, w, y, *, hoisted):
    """w is the same in every round."""
    a, b = at(ROWS(), 0), at(ROWS(), 0x1000)
    if hoisted:
        TLOAD(b, GlobalTensor(w))
    for i in static_range(x.shape[0] // 16):
        TLOAD(a, GlobalTensor(x)[16 * i : 16 * i + 16, :])
        if not hoisted:
            TLOAD(b, GlobalTensor(w))
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        TMUL(a, a, b)
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(y)[16 * i : 16 * i + 16, :], a)
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)


@kernel(mode="manual")
def too_careful(x, y):
    """The barrier orders what is apart; the flag of id 1 says what that of id 0 has said."""
    a, b = at(ROWS(), 0), at(ROWS(), 0x1000)
    c, d = at(ROWS(), 0x2000), at(ROWS(), 0x3000)
    TLOAD(a, GlobalTensor(x)[0:16, :])
    TLOAD(c, GlobalTensor(x)[16:32, :])
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    for _ in range(64):
        TADD(b, a, a)
        pipe_barrier(PIPE_V)
        TADD(d, c, c)
        pipe_barrier(PIPE_V)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)
    TSTORE(GlobalTensor(y)[0:16, :], b)
    TSTORE(GlobalTensor(y)[16:32, :], d)


def array(rows: int) -> Any:
    return np.ones((rows, 64), np.float32)


def timed(k: Any, *args: Any, **consts: Any) -> Timing:
    return k.time(1, args, target="a2a3", **consts)


def of_kind(found: Timing, word: str) -> list[Advice]:
    return [each for each in found.advice if each.text.startswith(word)]


def test_a_second_buffer_saves_what_is_predicted() -> None:
    single = timed(doubles, array(256), array(256), buffers=1)
    (advice,) = of_kind(single, "double-buffer")
    assert "TLOAD(tile" in LINES[advice.line.line - 1]
    assert "TSTORE" in advice.text
    double = timed(doubles, array(256), array(256), buffers=2)
    assert double.us < single.us
    assert advice.after.us == pytest.approx(double.us, rel=0.02)
    assert advice.us == pytest.approx(single.us - double.us, rel=0.1)
    assert str(advice) in str(single)


def test_what_has_its_buffers_is_not_advised_again() -> None:
    assert not of_kind(timed(doubles, array(256), array(256), buffers=2), "double-buffer")


def test_no_buffer_is_advised_that_does_not_fit() -> None:
    found = timed(doubles, array(256), array(256), buffers=1)
    full = doubles.time(
        1, (array(256), array(256)), target="a2a3", buffers=1,
        defines={"PTO_UBUF_SIZE_BYTES": 0x1000},
    )  # fmt: skip
    assert of_kind(found, "double-buffer")
    assert not of_kind(full, "double-buffer")


def test_a_load_that_is_hoisted_saves_what_is_predicted() -> None:
    inside = timed(scales, array(256), array(16), array(256), hoisted=False)
    (advice,) = of_kind(inside, "hoist")
    assert "TLOAD(b" in LINES[advice.line.line - 1]
    assert "15 times" in advice.text
    outside = timed(scales, array(256), array(16), array(256), hoisted=True)
    assert advice.after.us == pytest.approx(outside.us, rel=0.01)
    assert not of_kind(outside, "hoist")


def test_a_load_of_what_the_launch_writes_is_not_hoisted() -> None:
    x = array(256)
    assert not of_kind(timed(scales, x, x[:16], x, hoisted=False), "hoist")


def test_order_is_left_out_only_where_nothing_needs_it() -> None:
    found = timed(too_careful, array(32), array(32))
    lines = {LINES[each.line.line - 1].strip() for each in of_kind(found, "leave out")}
    assert lines == {"pipe_barrier(PIPE_V)"}
    for each in of_kind(found, "leave out"):
        assert each.after.us < found.us
    # The flags of a kernel that needs them all stay.
    assert not of_kind(timed(doubles, array(64), array(64), buffers=1), "leave out")


@kernel(mode="manual")
def races(x, y):
    """The store does not wait for the sum: what else it could do without, nobody can say."""
    a = at(ROWS(), 0)
    TLOAD(a, GlobalTensor(x)[0:16, :])
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TADD(a, a, a)
    TSTORE(GlobalTensor(y)[0:16, :], a)


def test_of_a_program_that_is_wrong_no_order_is_left_out() -> None:
    assert not of_kind(timed(races, array(16), array(16)), "leave out")


@needs_compiler
def test_of_cpp_no_order_is_left_out(tmp_path: Path) -> None:
    program = source(
        tmp_path,
        'extern "C" __global__ AICORE void k(__gm__ float *x)\n{\n'
        "GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>> g(x);\n"
        "Tile<TileType::Vec, float, 16, 64> t;\nTASSIGN(t, 0);\nTLOAD(t, g);\n"
        "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\nwait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        "TADD(t, t, t);\n}\n",
    )
    assert not of_kind(program.k.time(1, (array(16),)), "leave out")


def test_of_a_text_as_well() -> None:
    text = too_careful.text(array(32), array(32), target="a2a3")
    found = loads(text, "k.pto").entry().time(1, (array(32), array(32)), target="a2a3")
    barriers = of_kind(found, "leave out")
    assert barriers
    assert all("pto.barrier" in text.splitlines()[each.line.line - 1] for each in barriers)


def test_statements_are_left_out_whole_or_not_at_all() -> None:
    class Line:
        file, line = "k", 2

    def left(row: str) -> str | None:
        return without_statements(f"if x:\n    {row}\n", "k", [Line])  # type: ignore[list-item]

    assert left("pipe_barrier(PIPE_V)") == "if x:\n    pass\n"
    assert left("pto.barrier <PIPE_V>") == "if x:\n    \n"
    assert left("y = pipe_barrier(PIPE_V)") is None
    assert left("pipe_barrier(") is None
    assert left("for i in x:") is None
