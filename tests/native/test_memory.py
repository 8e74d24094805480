"""What a kernel reads and writes without tile instructions: seen by the checker, at its line."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError, PtoWarning, ToolWarning
from ptokit.native import compiler
from ptokit.native.records import Memory
from tests.native.support import line_of, needs_compiler, source

pytestmark = needs_compiler

KERNELS = """
extern "C" __global__ AICORE void pointers(__gm__ float* out, __gm__ float* a, __gm__ int32_t* n)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, a[3]);  // read as an operand
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    G g(out);
    TSTORE(g, x);
    n[1] = n[0] + 5;
    n[1] += 2;
    *(__gm__ int8_t*)(n + 2) = -1;
    int local[2] = {1, 2};  // memory of the kernel itself
    n[3] = local[n[0] & 1];
}
extern "C" __global__ AICORE void early(__gm__ float* out, __gm__ int32_t* n)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, 2.0f);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    G g(out);
    TSTORE(g, x);
    n[1] = (int)out[5];  // nobody waited
}
extern "C" __global__ AICORE void overwritten(__gm__ float* out, __gm__ float* a)
{
    T x; TASSIGN(x, 0);
    G g(a);
    TLOAD(x, g);  // still reads
    a[7] = 1.0f;  // what is loaded
}
template <typename D> AICORE void put(__ubuf__ D* p, int n) { p[n] = (D)(n + 1); }
extern "C" __global__ AICORE void local(__gm__ int32_t* out)
{
    __ubuf__ int32_t* ub = reinterpret_cast<__ubuf__ int32_t*>(0x100);
    for (int i = 0; i < 16; i++) put(ub, i);
    ub[3] += 100;
    ub[4] = ub[3];
    __ubuf__ int32_t* second = ub + 8;
    *second = -7;
    pipe_barrier(PIPE_ALL);
    copy_ubuf_to_gm((__gm__ void*)out, (__ubuf__ void*)ub, 0, 2, 1, 0, 1);  // one block of two
}
extern "C" __global__ AICORE void unordered(__gm__ int32_t* out)
{
    __ubuf__ int32_t* ub = (__ubuf__ int32_t*)0x100;
    for (int i = 0; i < 8; i++) ub[i] = i;  // stored by the scalar unit
    copy_ubuf_to_gm((__gm__ void*)out, (__ubuf__ void*)ub, 0, 1, 1, 0, 0);  // at once
}
extern "C" __global__ AICORE void refused(__gm__ int32_t* n)
{
    T x; TASSIGN(x, 31);
    TEXPANDS(x, 1.0f);  // misaligned
    n[0] = 1;  // where that is found
    TEXPANDS(x, 2.0f);
}
extern "C" __global__ AICORE void bursts(__gm__ float* out, __gm__ float* in)
{
    __ubuf__ float* ub = 0x0;
    copy_gm_to_ubuf(ub, in, 0, 4, 1, 1, 0);  // every second block
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(out, ub, 0, 1, 4, 0, 0);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return source(tmp_path_factory.mktemp("memory"), KERNELS)


def test_global_memory_is_read_and_written_through_pointers(program: Any) -> None:
    out, a = np.zeros((16, 64), np.float32), np.arange(64, dtype=np.float32)
    n = np.array([7, 0, 0, 0], np.int32)
    program.pointers[1](out, a, n)
    assert (out == 3).all()
    assert n.tolist() == [7, 14, 255, 2]


def test_arrays_on_both_sides_of_the_code(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies between the first array and the last is not watched, the hooks' own included."""
    between = Memory.spans
    end = 1 << 47
    monkeypatch.setattr(Memory, "spans", lambda self: [16, 32, *between(self), end - 32, end - 16])
    n = np.array([7, 0, 0, 0], np.int32)
    program.pointers[1](np.zeros((16, 64), np.float32), np.arange(64, dtype=np.float32), n)
    assert n.tolist() == [7, 14, 255, 2]


@pytest.mark.parametrize(
    ("name", "second", "first"),
    [
        ("early", "n[1] = (int)out[5];", "TSTORE(g, x);\n    n[1] = (int)"),
        ("overwritten", "a[7] = 1.0f;", "TLOAD(x, g);  // still reads"),
    ],
)
def test_a_race_through_a_pointer_is_told_at_its_line(
    program: Any, name: str, second: str, first: str
) -> None:
    other = np.zeros(4, np.int32) if name == "early" else np.zeros((16, 64), np.float32)
    with pytest.raises(PtoError) as raised:
        program[name][1](np.zeros((16, 64), np.float32), other)
    (found,) = raised.value.diagnostics
    places = [found.location, found.notes[0].location]
    assert [p and p.line for p in places] == [line_of(KERNELS, second), line_of(KERNELS, first)]


def test_local_memory_is_read_and_written_through_pointers(program: Any) -> None:
    out = np.zeros(32, np.int32)
    program.local[1](out)
    assert out[:8].tolist() == [1, 2, 3, 104, 104, 6, 7, 8]
    assert out[8:16].tolist() == [0] * 8
    assert out[16:24].tolist() == [-7, 10, 11, 12, 13, 14, 15, 16]


def test_a_race_with_a_store_to_local_memory_is_told(program: Any) -> None:
    with pytest.raises(PtoError) as raised:
        program.unordered[1](np.zeros(8, np.int32))
    found = raised.value.diagnostics[0]
    assert found.location is not None
    assert found.location.line == line_of(KERNELS, "0, 1, 1, 0, 0);  // at once")
    assert found.notes[0].location is not None
    assert found.notes[0].location.line == line_of(KERNELS, "ub[i] = i;")


def test_a_kernel_is_stopped_at_an_access(program: Any) -> None:
    with pytest.raises(PtoError) as raised:
        program.refused[1](np.zeros(8, np.int32))
    assert raised.value.codes == ("SA-0354",)


def test_bursts_have_lengths_and_gaps(program: Any) -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    program.bursts[1](out, x)
    assert np.array_equal(out, x.reshape(4, 2, 8)[:, 0].ravel())


@pytest.mark.parametrize("name", ["vadd", "mad", "load_cbuf_to_ca"])
def test_what_is_not_simulated_is_refused_by_name(tmp_path: Path, name: str) -> None:
    text = f'extern "C" __global__ AICORE void k(__gm__ float* x)\n{{\n    {name}(x, 1);\n}}\n'
    with pytest.raises(PtoError) as raised:
        source(tmp_path, text).k[1](np.zeros(8, np.float32))
    (found, *_), location = raised.value.diagnostics, raised.value.diagnostics[0].location
    assert found.message.startswith(f"{name}: this intrinsic is not simulated")
    assert location is not None
    assert location.line == line_of(text, f"{name}(x")


def test_a_compiler_without_hooks_is_said_to_have_none(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = compiler.compiler("")
    monkeypatch.setattr(compiler, "compiler", lambda _: replace(known, watching=()))
    n = np.array([7, 0, 0, 0], np.int32)
    with pytest.warns(PtoWarning, match="cannot report loads and stores"):
        program.early[1](np.zeros((16, 64), np.float32), n)  # no error: it is not seen


def test_the_first_use_of_zig_is_said_to_be_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message, and none for those who have another compiler."""
    monkeypatch.setenv("PTOKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(compiler.shutil, "which", lambda _: None)
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(compiler, "_watching", lambda *_: ())
    choose = compiler.compiler.__wrapped__
    with pytest.warns(ToolWarning, match="first use takes minutes"):
        assert choose().command[1:] == ("-m", "ziglang", "c++")
    with warnings.catch_warnings(action="error"):
        choose()


def test_no_value_is_taken_for_the_end_of_a_kernel(tmp_path: Path) -> None:
    text = """
    extern "C" __global__ AICORE void copied(__gm__ int64_t* x)
    {
        x[1] = x[0];
        x[2] = load_scalar(x, 0);
        x[3] = 7;
    }
    """
    x = np.array([-(1 << 63), 1, 1, 1], np.int64)
    source(tmp_path, text).copied[1](x)
    assert x.tolist() == [-(1 << 63), -(1 << 63), -(1 << 63), 7]
