"""Launches of C++ kernels that come again: repeated by the process of the first one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.replay import ReplayElsewhere
from ptokit.machine import jobs, resident
from tests.native.support import needs_compiler, source

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(library() is None, reason="llvmlite is not installed"),
]
BODY = """
    T x, z;
    TASSIGN(x, 0x0); TASSIGN(z, 0x4000);
    G ga(a + get_block_idx() * 1024), gz(out + get_block_idx() * 1024);
    TLOAD(x, ga);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    %s
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(gz, z);
}
"""
HEADER = 'extern "C" __global__ AICORE void %s(__gm__ float* out, __gm__ float* a)\n{'
TALKING = (
    "#include <cstdio>\n" + HEADER % "talking" + 'printf("here\\n"); fflush(stdout);'
    + BODY % "TADDS(z, x, 1.5f);"
)  # fmt: skip
KERNELS = "".join(
    HEADER % name + before + BODY % instruction
    for name, before, instruction in (
        ("plain", "", "TADDS(z, x, 1.5f);"),
        ("sorting", "", "TROWEXPAND(z, x);"),
        ("reading", "float s = a[0];", "TADDS(z, x, s);"),
        ("racing", "", "TADDS(z, x, 1.5f); TADDS(x, z, 1.0f); TLOAD(x, ga);"),
    )
)
STARTS = {"apart": jobs, "resident": resident}  # what starts processes


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return source(tmp_path_factory.mktemp("replay"), KERNELS, core="vector")


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The processes that are started from now on."""
    started: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        ours = getattr(STARTS[name], name)

        def start(*args: Any) -> Any:
            started.append(name)
            return ours(*args)

        return start

    for name, module in STARTS.items():
        monkeypatch.setattr(module, name, noting(name))
    return started


def arrays(seed: int, blocks: int = 2) -> tuple[Any, Any]:
    a = np.random.default_rng(seed).standard_normal((blocks, 16, 64)).astype(np.float32)
    return np.zeros_like(a), a


@pytest.mark.parametrize("name", ["plain", "sorting"])
def test_a_launch_that_comes_again_is_repeated_on_what_its_arrays_hold(
    program: Any, starts: list[str], name: str
) -> None:
    kernel = program[name]
    for seed in range(4):
        out, a = arrays(seed)
        kernel[2](out, a)
        wanted = a + np.float32(1.5) if name == "plain" else np.broadcast_to(a[..., :1], a.shape)
        assert np.array_equal(out, wanted)
    assert starts == ["resident"]
    with_others, _ = arrays(1, blocks=3)
    kernel[3](with_others, arrays(1, blocks=3)[1])
    assert starts == ["resident"] * 2


def test_what_reads_data_runs_each_time(program: Any, starts: list[str]) -> None:
    kernel = program.reading
    for seed in range(3):
        out, a = arrays(seed, blocks=1)
        kernel[1](out, a)
        assert np.array_equal(out, a + a.ravel()[0])
    assert starts == ["resident", "apart", "apart"]


def test_what_is_printed_is_printed_each_time(
    tmp_path: Path, starts: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = source(tmp_path, TALKING, core="vector").talking
    for seed in range(2):
        kernel[1](*arrays(seed, blocks=1))
    assert capfd.readouterr().out == "here\n" * 2
    assert starts == ["apart"] * 2


def test_errors_come_again(program: Any, starts: list[str]) -> None:
    kernel = program.racing
    for seed in range(2):
        with pytest.raises(PtoError) as raised:
            kernel[1](*arrays(seed, blocks=1))
        assert {each.code for each in raised.value.diagnostics} == {"E6"}
    assert len(starts) == 2


def test_warnings_come_again(program: Any, starts: list[str]) -> None:
    kernel = program.racing
    found = [kernel[1](*arrays(n, 1), allow={"E6"}).warnings for n in range(3)]
    assert found[0] == found[1] == found[2] != ()
    assert starts == ["resident"]


def test_arrays_that_share_bytes_run_each_time(program: Any, starts: list[str]) -> None:
    kernel, (_, a) = program.plain, arrays(5, blocks=1)
    before = a.copy()
    for _ in range(3):
        kernel[1](a, a)
    assert np.array_equal(a, before + np.float32(1.5) + np.float32(1.5) + np.float32(1.5))
    assert starts == ["apart"] * 3


def test_a_process_that_was_ended_is_started_anew(program: Any, starts: list[str]) -> None:
    kernel, (out, a) = program.plain, arrays(6, blocks=1)
    kernel[1](out, a)
    (kept,) = kernel.programs.memory.replays
    assert isinstance(kept, ReplayElsewhere)
    kept._process._worker.kill()  # pyright: ignore[reportPrivateUsage]
    kept._process._worker.join()  # pyright: ignore[reportPrivateUsage]
    for _ in range(3):
        out[...] = 0
        kernel[1](out, a)
        assert np.array_equal(out, a + np.float32(1.5))
    assert starts == ["resident", "apart", "resident"]
