"""What is wrong with a C++ kernel is told at its lines, with the calls that lead there."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import Diagnostic, PtoError
from tests.native.support import line_of, needs_compiler, source

pytestmark = needs_compiler
X = np.random.default_rng(5).standard_normal((48, 64)).astype(np.float32)

KERNELS = """
AICORE void await() { wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID3); }
AICORE void put(G& g, T& t)
{
    TSTORE(g, t);  // puts
}
AICORE void twice(T& z, T& t)
{
    TADD(z, t, t);  // reads
}
extern "C" __global__ AICORE void hangs(__gm__ float* out)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, 1.0f);
    await();  // for nobody
    G g(out);
    put(g, x);
}
extern "C" __global__ AICORE void leaves_a_flag(__gm__ float* out)
{
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID2);  // not taken
}
extern "C" __global__ AICORE void undefined(__gm__ float* out)
{
    T x, z; TASSIGN(x, 0); TASSIGN(z, 0x4000);
    twice(z, x);  // what nobody wrote
}
extern "C" __global__ AICORE void outside(__gm__ float* out)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, 1.0f);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    G g(out + 40 * 64);
    put(g, x);  // beyond the array
}
extern "C" __global__ AICORE void beyond_memory(__gm__ float* out)
{
    T x; TASSIGN(x, 0x2FC00);
    TEXPANDS(x, 1.0f);  // beyond UB
}
extern "C" __global__ AICORE void too_early(__gm__ float* out, __gm__ float* a)
{
    T x[2];
    for (int i = 0; i < 3; i++) {
        TASSIGN(x[i % 2], 0x4000 * (i % 2));
        G ga(a + i * 1024), gz(out + i * 1024);
        TLOAD(x[i % 2], ga);  // over what is stored
        PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE3>((event_t)(i % 2), (event_t)(i % 2));
        put(gz, x[i % 2]);  // still reads
    }
}
extern "C" __global__ AICORE void gives_up(__gm__ float* out)
{
    trap();  // here
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return source(tmp_path_factory.mktemp("cpp"), KERNELS)


def complaint(program: Any, name: str, *more: Any) -> Diagnostic:
    """The first thing that a run finds, an error or a warning."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return program[name][1](np.zeros_like(X), *more).warnings[0]
    except PtoError as error:
        return error.diagnostics[0]


@pytest.mark.parametrize(
    ("name", "code", "line", "caller"),
    [
        ("hangs", "E1", "AICORE void await()", "await();  // for nobody"),
        ("leaves_a_flag", "E3", "// not taken", ""),
        ("undefined", "poison-read", "// reads", "// what nobody wrote"),
        ("outside", "gm-bounds", "// puts", "// beyond the array"),
        ("beyond_memory", "memory-bounds", "// beyond UB", ""),
        ("gives_up", "trap", "// here", ""),
    ],
)
def test_a_finding_has_its_line_and_its_callers(
    program: Any, name: str, code: str, line: str, caller: str
) -> None:
    found = complaint(program, name)
    assert found.code == code
    assert found.location is not None
    assert (Path(found.location.file), found.location.line) == (
        program.path,
        line_of(KERNELS, line),
    )
    wanted = [line_of(KERNELS, caller)] if caller else []
    assert [each.line for each in found.location.callers] == wanted


def test_a_race_across_rounds_names_both_lines(program: Any) -> None:
    found = complaint(program, "too_early", X)
    assert found.code == "E6"
    assert found.location is not None
    assert found.location.line == line_of(KERNELS, "// over what is stored")
    assert found.notes[0].location is not None
    assert found.notes[0].location.line == line_of(KERNELS, "// puts")
    assert found.evidence is not None
    assert found.evidence.edge == "MTE3->MTE2"


def test_random_schedules_show_it(program: Any) -> None:
    seen = program.too_early[1].explore(np.zeros_like(X), X, schedules=40)
    assert [each.code for each in seen.found] == ["schedule-dependent"]
    location = seen.found[0].location
    assert location is None or Path(location.file) == program.path


def test_a_seed_repeats_a_schedule(program: Any) -> None:
    outs = [np.zeros_like(X) for _ in range(2)]
    for out in outs:
        program.too_early[1](out, X, seed=3, check=False)
    assert np.array_equal(*outs)
