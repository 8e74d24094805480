"""C++ kernels as PTO text: what a run has called, with its loops; it runs, and does the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import loads
from ptokit.base.diagnostics import PtoError
from tests.native.support import line_of, needs_compiler, source

pytestmark = needs_compiler
WIDE = 64
X = np.random.default_rng(5).standard_normal((48, WIDE)).astype(np.float32)

KERNELS = """
AICORE void load(T& to, G& from) { TLOAD(to, from); }
extern "C" __global__ AICORE void double_buffered(__gm__ float* out, __gm__ float* a, int32_t n)
{
    T x[2];
    TASSIGN(x[0], 0x0); TASSIGN(x[1], 0x4000);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    for (int i = 0; i < n; i++) {
        event_t id = (event_t)(i % 2);
        G ga(a + i * 1024), gz(out + i * 1024);
        wait_flag(PIPE_MTE3, PIPE_MTE2, id);
        load(x[i % 2], ga);
        set_flag(PIPE_MTE2, PIPE_V, id);
        wait_flag(PIPE_MTE2, PIPE_V, id);
        TADDS(x[i % 2], x[i % 2], 1.0f);
        set_flag(PIPE_V, PIPE_MTE3, id);
        wait_flag(PIPE_V, PIPE_MTE3, id);
        TSTORE(gz, x[i % 2]);
        set_flag(PIPE_MTE3, PIPE_MTE2, id);
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
}
extern "C" __global__ AICORE void nested(__gm__ float* out, __gm__ float* a, int32_t n)
{
    using V = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 64, 1>>;
    Tile<TileType::Vec, float, 16, 16> x;
    TASSIGN(x, 0x0);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 4; j++) {
            V ga(a + i * 1024 + j * 16), gz(out + i * 1024 + j * 16);
            TLOAD(x, ga);
            PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
            TMULS(x, x, 2.0f);
            PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
            TSTORE(gz, x);
            PtoSetWaitFlag<PIPE_MTE3, PIPE_MTE2>();
        }
}
extern "C" __global__ AICORE void with_a_tail(__gm__ float* out, __gm__ float* a, int32_t rows)
{
    using V = GlobalTensor<float, Shape<1, 1, 1, -1, 64>, Stride<1, 1, 1, 64, 1>>;
    int first = get_block_idx() * 16, mine = rows - first < 16 ? rows - first : 16;
    if (mine <= 0) return;
    Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, 64> x(mine);
    TASSIGN(x, 0x0);
    Shape<1, 1, 1, -1, 64> size(mine);
    V ga(a + first * 64, size), gz(out + first * 64, size);
    TLOAD(x, ga);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    TEXP(x, x);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(gz, x);
}
extern "C" __global__ AICORE void bytes(__gm__ uint8_t* out, __gm__ uint8_t* a)
{
    T x; TASSIGN(x, 0x0);
    G ga((__gm__ float*)a + 1024), gz((__gm__ float*)out);
    TLOAD(x, ga);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE3>();
    TSTORE(gz, x);
}
extern "C" __global__ AICORE void events(__gm__ float* out, __gm__ float* a)
{
    for (int i = 0; i < 3; i++) {
        T x; TASSIGN(x, 0x4000 * i);
        G ga(a + i * 1024), gz(out + i * 1024);
        Event<Op::TLOAD, Op::TADDS> loaded = TLOAD(x, ga);
        Event<Op::TADDS, Op::TSTORE_VEC> added = TADDS(x, x, 3.0f, loaded);
        TSTORE(gz, x, added);
    }
}
extern "C" __global__ AICORE void decides(__gm__ float* out, __gm__ float* a)
{
    T x; TASSIGN(x, 0x0);
    G ga(a), gz(out);
    TLOAD(x, ga);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_S>();
    float first = x.GetValue(0);  // decides
    PtoSetWaitFlag<PIPE_S, PIPE_V>();
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    if (first > 0) TADDS(x, x, 1.0f);
    else TMULS(x, x, 2.0f);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(gz, x);
}
extern "C" __global__ AICORE void racy(__gm__ float* out, __gm__ float* a)
{
    T x; TASSIGN(x, 0x0);
    for (int i = 0; i < 3; i++) {
        G ga(a + i * 1024), gz(out + i * 1024);
        load(x, ga);  // too early
        PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE3>();
        TSTORE(gz, x);  // still reads
    }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return source(tmp_path_factory.mktemp("cpp"), KERNELS)


def both_ways(kernel: Any, blocks: int, *rest: Any, given: Any = X) -> str:
    """Run C++ and its text: they leave the same bytes, and find the same. Returns the text."""
    text = kernel.text(np.zeros_like(given), given, *rest, grid=blocks)
    again = loads(text)
    assert str(again) == text
    found: list[tuple[bytes, list[str]]] = []
    for each in (kernel, again[kernel.name]):
        out = np.zeros_like(given)
        run = each[blocks](out, given.copy(), *rest)
        found.append((out.tobytes(), [warning.code for warning in run.warnings]))
    assert found[0] == found[1]
    return text


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_double_buffer_turns_around(program: Any, rounds: int) -> None:
    text = both_ways(program.double_buffered, 1, rounds)
    assert text.count("scf.for") == (rounds > 1)
    assert text.count("pto.tload") == 1


def test_nested_loops_are_found_again(program: Any) -> None:
    text = both_ways(program.nested, 1, 3)
    assert (text.count("scf.for"), text.count("pto.tload")) == (2, 1)


def test_blocks_are_one_program_where_they_are_alike(program: Any) -> None:
    text = both_ways(program.with_a_tail, 3, 48)
    assert (text.count("get_block_idx"), text.count("scf.if"), text.count("texp ")) == (1, 0, 1)


def test_blocks_that_differ_are_told_apart(program: Any) -> None:
    text = both_ways(program.with_a_tail, 4, 41)
    assert (text.count("scf.if"), text.count("texp ")) == (2, 2)


def test_bytes_have_the_type_that_they_are_used_as(program: Any) -> None:
    given, outs = X.view(np.uint8), [np.zeros_like(X) for _ in range(2)]
    program.bytes[1](outs[0].view(np.uint8), given)
    loads(program.bytes.text(given.copy(), given))["bytes"][1](outs[1], X)
    assert np.array_equal(*outs)
    assert outs[0].any()


def test_events_become_flags(program: Any) -> None:
    text = both_ways(program.events, 1)
    assert (text.count("scf.for"), text.count("pto.tadds")) == (1, 1)


def test_what_data_decided_is_said_and_written_as_it_went(program: Any) -> None:
    text, other = np.abs(X) + 1, -np.abs(X) - 1
    for given, said in ((text, "pto.tadds"), (other, "pto.tmuls")):
        with pytest.warns(match="the kernel reads data here") as told:
            written = program.decides.text(np.zeros_like(X), given)
        assert said in written
        assert told[0].lineno == line_of(KERNELS, "// decides")


def test_a_race_of_the_text_is_told_at_the_lines_of_the_cpp(program: Any) -> None:
    found: list[list[tuple[Any, ...]]] = []
    text = program.racy.text(np.zeros_like(X), X)
    for kernel in (program.racy, loads(text)["racy"]):
        with pytest.raises(PtoError) as raised:
            kernel[1](np.zeros_like(X), X)
        found.append([])
        for each in raised.value.diagnostics:
            places = [each.location, *(note.location for note in each.notes)]
            lines = [at.origin or at for at in places if at is not None]
            found[-1].append((each.code, [(at.line, at.callers) for at in lines]))
    assert found[0] == found[1]
    ((code, lines),) = found[0]
    assert code == "E6"
    assert lines[1][0] == line_of(KERNELS, "TSTORE(gz, x);  // still reads")
    assert [at.line for at in lines[0][1]] == [line_of(KERNELS, "load(x, ga);  // too early")]
    assert "made from" in raised.value.diagnostics[0].render()


def test_arrays_are_left_alone(program: Any) -> None:
    out = np.zeros_like(X)
    program.nested.text(out, X, 3)
    assert not out.any()


def test_every_schedule_runs_on_a_machine_of_its_own(program: Any) -> None:
    """What a host has found out of one run is not taken for true in the next."""
    out = np.zeros_like(X)
    program.nested[1](out, X, 3, check="explore")
    assert np.array_equal(out, X * 2)
    with pytest.raises(PtoError, match=r"E6|schedule-dependent"):
        program.racy[1](np.zeros_like(X), X, check="explore")
