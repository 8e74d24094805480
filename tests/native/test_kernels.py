"""C++ kernels as their authors write them: right bytes, and findings at C++ lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import NotSupported, PtoError
from tests.command import command
from tests.native.support import line_of, needs_compiler, source

pytestmark = needs_compiler
X = np.random.default_rng(3).standard_normal((16, 64)).astype(np.float32)

KERNELS = """
template <typename D> AICORE void put(G& g, D& t)
{
    TSTORE(g, t);  // in a helper
}
extern "C" __global__ AICORE void add(__gm__ float* out, __gm__ float* a, float s, int32_t n)
{
    T x, z;
    TASSIGN<0x0>(x);
    TASSIGN(z, 0x4000);
    G ga(a), gz(out);
    Event<Op::TLOAD, Op::TADDS> loaded;
    Event<Op::TADDS, Op::TSTORE_VEC> added;
    loaded = TLOAD(x, ga);
    added = TADDS(z, x, s, loaded);
    added.Wait();
    for (int i = 0; i < n; i++) put(gz, z);
}
extern "C" __global__ AICORE void racy(__gm__ float* out, __gm__ float* a)
{
    T x, z;
    TASSIGN(x, 0x0); TASSIGN(z, 0x4000);
    G ga(a), gz(out);
    TLOAD(x, ga);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    TADDS(z, x, 1.5f);  // nobody waits for it
    put(gz, z);  // the caller
}
extern "C" __global__ AICORE void elements(__gm__ float* out)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, 2.5f);
    PtoSetWaitFlag<PIPE_V, PIPE_S>();
    float v = x.GetValue(3) + *x.data();
    x.SetValue(5, v);
    x.data()[6] = x.data()[5];
    PtoSetWaitFlag<PIPE_S, PIPE_MTE3>();
    G g(out);
    TSTORE(g, x);
}
extern "C" __global__ AICORE void merge(__gm__ float* out, __gm__ float* a)
{
    using List = Tile<TileType::Vec, float, 1, 64>;
    using Both = Tile<TileType::Vec, float, 1, 128>;
    using V = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>>;
    using W = GlobalTensor<float, Shape<1, 1, 1, 1, 128>, Stride<1, 1, 1, 128, 1>>;
    List x, y; Both z, tmp;
    TASSIGN(x, 0); TASSIGN(y, 0x400); TASSIGN(z, 0x800); TASSIGN(tmp, 0x1000);
    V gx(a), gy(a + 64); W gz(out);
    TLOAD(x, gx); TLOAD(y, gy);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    MrgSortExecutedNumList counts;
    TMRGSORT<Both, Both, List, List, false>(z, counts, tmp, x, y);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(gz, z);
}
extern "C" __global__ AICORE void crash(__gm__ float* out, uint64_t n)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, 1.0f);  // the last call
    *(int*)n = 3;
}
extern "C" __global__ AICORE void misaligned(__gm__ float* out)
{
    T x; TASSIGN(x, 31);
    TEXPANDS(x, 1.0f);  // misaligned
}
template <typename E, int R> __global__ AICORE void general(__gm__ E* out)
{
    using View = GlobalTensor<E, Shape<1, 1, 1, -1, -1>, Stride<-1, -1, -1, -1, 1>>;
    Tile<TileType::Vec, E, R, 64, BLayout::RowMajor, -1, -1> x(R, 64);
    TASSIGN(x, 0);
    TEXPANDS(x, E(7));
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    Shape<1, 1, 1, -1, -1> shape(R, 64);
    View g(out + get_block_idx() * R * 64, shape, Stride<-1, -1, -1, -1, 1>(1, 1, 1, 64));
    TSTORE(g, x);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return source(tmp_path_factory.mktemp("cpp"), KERNELS)


def test_a_kernel_runs(program: Any) -> None:
    out = np.zeros_like(X)
    run = program.add[1](out, X, 1.5, 1)
    assert np.array_equal(out, X + np.float32(1.5))
    assert not run.warnings


def test_a_race_is_told_at_both_lines_with_the_caller(program: Any) -> None:
    with pytest.raises(PtoError) as raised:
        program.racy[1](np.zeros_like(X), X)
    (found,) = raised.value.diagnostics
    assert found.code == "E6"
    assert found.location is not None
    assert Path(found.location.file) == program.path
    assert found.location.line == line_of(KERNELS, "TSTORE(g, t);")
    assert [c.line for c in found.location.callers] == [line_of(KERNELS, "put(gz, z);  // the")]
    assert found.notes[0].location is not None
    assert found.notes[0].location.line == line_of(KERNELS, "TADDS(z, x, 1.5f)")
    assert "called from" in found.render()


def test_elements_are_read_and_written(program: Any) -> None:
    out = np.zeros_like(X)
    program.elements[1](out)
    assert out[0, :8].tolist() == [2.5] * 5 + [5, 5, 2.5]


def test_counts_that_a_merge_does_not_give_are_left_alone(program: Any) -> None:
    """Records are a value and an index; nothing is exhausted, so nothing is counted."""
    lists = np.zeros((2, 32, 2), np.float32)
    lists[0, :, 0], lists[1, :, 0] = np.arange(64, 0, -2), np.arange(63, 0, -2)
    out = np.zeros((64, 2), np.float32)
    program.merge[1](out, lists)
    assert out[:, 0].tolist() == list(range(64, 0, -1))


def test_a_crash_is_reported_and_survived(program: Any) -> None:
    with pytest.raises(PtoError, match="SIGSEGV") as raised:
        program.crash[1](np.zeros_like(X), 8)
    location = raised.value.diagnostics[0].location
    assert location is not None
    assert location.line == line_of(KERNELS, "TEXPANDS(x, 1.0f);  // the last call")


def test_rules_hold_at_cpp_lines(program: Any) -> None:
    with pytest.raises(PtoError) as raised:
        program.misaligned[1](np.zeros_like(X))
    assert raised.value.codes == ("SA-0354",)
    location = raised.value.diagnostics[0].location
    assert location is not None
    assert location.line == line_of(KERNELS, "TEXPANDS(x, 1.0f);  // misaligned")


@pytest.mark.parametrize(("name", "kind"), [("float", np.float32), ("int16_t", np.int16)])
def test_an_instance_of_a_template(program: Any, name: str, kind: Any) -> None:
    out = np.zeros((32, 64), kind)
    program[f"general<{name}, 16>"][2](out)
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: p.add[1](X, X, 1.0), "takes 4 arguments"),
        (lambda p: p.add[1](X, X, X, 1), "argument 3 is a number"),
        (lambda p: p.add[1](X, 3, 1.0, 1), "argument 2 is an array"),
        (lambda p: p.add[1](X, X.astype(np.int32), 1.0, 1), "argument 2 points to f32"),
        (lambda p: p.add[1](X, X, 1.0, 1.5), "argument 4 is a whole number"),
        (lambda p: p.add[1](X, X, s=1.0), "in order"),
        (lambda p: p.nothing, "has no kernel nothing"),
        (lambda p: p.general, "is a template"),
        (lambda p: p.add[1](X, X, 1.0, 1, target="a5"), "is compiled for a2a3"),
    ],
)
def test_a_call_that_does_not_fit(program: Any, call: Any, words: str) -> None:
    with pytest.raises(PtoError, match=words) as raised:
        call(program)
    location = raised.value.diagnostics[0].location
    assert location is not None
    assert location.file == __file__


def test_a_repair_is_refused_by_name(program: Any) -> None:
    with pytest.raises(NotSupported, match="C\\+\\+ is not repaired yet"):
        program.racy.fix(np.zeros_like(X), X)


def test_what_does_not_compile_is_told_at_its_line(tmp_path: Path) -> None:
    text = 'extern "C" __global__ AICORE void bad(__gm__ float* x)\n{\n    TNOSUCH(x);\n}\n'
    program = source(tmp_path, text)
    with pytest.raises(PtoError, match="TNOSUCH") as raised:
        program.bad[1](X)
    location = raised.value.diagnostics[0].location
    assert location is not None
    assert (Path(location.file), location.line) == (program.path, line_of(text, "TNOSUCH"))


def test_the_command_runs_it(program: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "out.npy", np.zeros_like(X))
    np.save(tmp_path / "x.npy", X)
    words = [
        str(program.path),
        "--kernel",
        "add",
        str(tmp_path / "out.npy"),
        str(tmp_path / "x.npy"),
    ]
    ran = command("run", *words, "1.5", "1", "--in-place")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert np.array_equal(np.load(tmp_path / "out.npy"), X + np.float32(1.5))
