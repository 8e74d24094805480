"""Launches of a library that come again: noted once, repeated on the arrays that they are given."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.base.layout import Array
from ptokit.compat.device import libraries, memory, options
from ptokit.compat.device.libraries import DynamicLibrary
from ptokit.engines.compiled.library import library
from ptokit.native import host
from tests.native.support import HEAD, needs_compiler

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(library() is None, reason="llvmlite is not installed"),
]
READY = "PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();"
KERNEL = """
__global__ AICORE void NAME(__gm__ float* out, __gm__ float* a, TAKES, int64_t skip)
{
    T x, z;
    TASSIGN(x, 0x0); TASSIGN(z, 0x4000);
    G ga(a + skip + get_block_idx() * 1024), gz(out + get_block_idx() * 1024);
    TLOAD(x, ga);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    BODY
    TSTORE(gz, z);
}
extern "C" void call_NAME(uint32_t blocks, float *out, float *a, float s, int64_t skip)
{
    BEFORE
    NAME<<<blocks, nullptr, nullptr>>>(out, a, GIVEN, skip);
}
"""


def kernel(
    name: str,
    body: str = f"TADDS(z, x, s); {READY}",
    takes: str = "float s",
    given: str = "s",
    before: str = "",
) -> str:
    words = {"NAME": name, "BODY": body, "TAKES": takes, "GIVEN": given, "BEFORE": before}
    text = KERNEL
    for word, written in words.items():
        text = text.replace(word, written)
    return text


TEXT = "".join(
    (
        "static float twice(float s) { return 2 * s; }\n",
        kernel("plain"),
        kernel("scaling", f"TMULS(z, x, s); {READY}"),
        kernel("reading", f"TADDS(z, x, a[0]); {READY}"),
        kernel("racing", "TADDS(z, x, s);"),
        kernel(
            "printing", f"PtoSetWaitFlag<PIPE_MTE2, PIPE_S>(); TPRINT(x); TADDS(z, x, s); {READY}"
        ),
        kernel("computing", given="twice(s)"),
        kernel(
            "adding",
            "G gb(b + get_block_idx() * 1024); TLOAD(z, gb); PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();"
            f"TADD(z, z, x); {READY}",
            "__gm__ float* b",
            "s > 2 ? a : out",
        ),
        kernel("handed", f"TADDS(z, x, *host); {READY}", "const float* host", "&s"),
    )
)
KEEPING = "static float kept = 0;\n" + kernel(
    "keeping", f"TADDS(z, x, kept); {READY}", before="kept = kept + 1;"
)
Call = Callable[..., None]


def made(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.cpp"
    file.write_text(HEAD + text, "utf-8")
    libraries.make(
        ["-DMEMORY_BASE", "--npu-arch=dav-c220-vec", str(file), "-o", str(folder / f"{name}.so")]
    )
    return folder / f"{name}.so"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("repeating"), "all", TEXT)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of every launch that is executed step by step: whether it is checked."""
    found: list[bool] = []
    ours = host.run

    def run(programs: Any, target: Any, mode: str, options: Any) -> Any:
        found.append(options.hazards)
        return ours(programs, target, mode, options)

    monkeypatch.setattr(host, "run", run)
    return found


def arrays(seed: int, blocks: int = 2) -> tuple[Array, Array]:
    a = np.random.default_rng(seed).standard_normal((blocks, 16, 64)).astype(np.float32)
    return np.zeros_like(a), a


def shown(array: Array) -> Any:
    memory.note(array.ctypes.data, array.nbytes, lambda: False)
    return ctypes.c_void_p(array.ctypes.data)


def call(of: Path | DynamicLibrary, name: str) -> Call:
    found = (DynamicLibrary(str(of)) if isinstance(of, Path) else of)[f"call_{name}"]
    found.argtypes = [
        ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float, ctypes.c_int64,
    ]  # fmt: skip

    def launch(out: Array, a: Array, s: float = 1.5, skip: int = 0, blocks: int = 0) -> None:
        found(blocks or len(out), shown(out), shown(a), s, skip)

    return launch


def test_a_launch_that_comes_again_is_repeated_on_the_arrays_it_is_given(
    file: Path, ran: list[bool]
) -> None:
    launch = call(file, "plain")
    kept = [arrays(seed) for seed in range(4)]  # at addresses of their own
    for out, a in kept:
        launch(out, a)
        np.testing.assert_array_equal(out, a + np.float32(1.5))
    assert ran == [True]


def test_other_numbers_blocks_sizes_and_places_are_other_launches(
    file: Path, ran: list[bool]
) -> None:
    launch, (out, a) = call(file, "plain"), arrays(1, 4)
    launch(out, a)
    launch(out, a, 2.5)
    np.testing.assert_array_equal(out, a + np.float32(2.5))
    launch(out[:2], a[:2])
    launch(out[2:], a, 3.5, 1024)
    np.testing.assert_array_equal(out[2:], a[1:3] + np.float32(3.5))
    launch(out[2:], a, 3.5, 2048)
    np.testing.assert_array_equal(out[2:], a[2:] + np.float32(3.5))
    launch(out[2:], a[2:], 3.5)
    assert ran == [True] * 6
    out, a = arrays(2, 4)
    launch(out, a)  # as the first
    assert ran == [True] * 6
    out[...] = 0
    launch(out, a, blocks=3)
    assert not out[3].any()


def test_kernels_of_a_library_are_told_apart(file: Path) -> None:
    loaded, (out, a) = DynamicLibrary(str(file)), arrays(1)
    for _ in range(2):
        call(loaded, "plain")(out, a)
        np.testing.assert_array_equal(out, a + np.float32(1.5))
        call(loaded, "scaling")(out, a)
        np.testing.assert_array_equal(out, a * np.float32(1.5))


def test_the_same_array_twice_is_not_two_arrays(file: Path, ran: list[bool]) -> None:
    launch, (out, a) = call(file, "plain"), arrays(2)
    launch(out, a)
    before = a.copy()
    for _ in range(3):
        launch(a, a)
        before = before + np.float32(1.5)
        np.testing.assert_array_equal(a, before)
    assert len(ran) == 2


def test_which_arguments_are_one_array_makes_a_difference(file: Path) -> None:
    launch, (out, a) = call(file, "adding"), arrays(2)
    for s in (1.0, 1.0, 3.0, 3.0, 1.0):  # to what lies there, or to itself
        wanted = a + (out if s < 2 else a)
        launch(out, a, s)
        np.testing.assert_array_equal(out, wanted)


def test_an_array_that_is_too_short_is_found_each_time(file: Path) -> None:
    launch, (out, a) = call(file, "plain"), arrays(2)
    launch(out, a)
    short = a[:1].copy()
    for _ in range(2):
        with pytest.raises(PtoError, match="gm-bounds"):
            launch(out, short)


@pytest.mark.parametrize("name", ["reading", "computing", "handed"])
def test_what_may_do_something_else_runs_each_time(file: Path, ran: list[bool], name: str) -> None:
    """It reads data, its arguments are not known, or it reads memory of the host."""
    launch = call(file, name)
    for seed in range(3):
        out, a = arrays(seed)
        s = np.float32(seed + 1)
        launch(out, a, float(s))
        added = {"reading": a[0, 0, 0], "computing": 2 * s, "handed": s}[name]
        np.testing.assert_array_equal(out, a + added)
    assert ran == [True] * 3


def test_variables_of_the_host_are_seen_each_time(tmp_path: Path, ran: list[bool]) -> None:
    launch = call(made(tmp_path, "keeping", KEEPING), "keeping")
    for seed in range(2):
        out, a = arrays(seed)
        launch(out, a)
        np.testing.assert_array_equal(out, a + np.float32(seed + 1))
    assert ran == [True] * 2


def test_a_launch_that_leaves_its_array_for_another_runs_each_time(
    file: Path, ran: list[bool]
) -> None:
    launch = call(file, "plain")
    room = np.random.default_rng(3).standard_normal(4 * 1024).astype(np.float32)
    out, a, stray = np.zeros((1, 1024), np.float32), room[:1024], room[2048:3072]
    shown(stray)
    for rounds in range(3):
        stray += rounds
        launch(out, a, 0.5, 2048)
        np.testing.assert_array_equal(out[0], stray + np.float32(0.5))
    assert ran == [True] * 3


def test_findings_come_again(file: Path, ran: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    launch = call(file, "racing")
    for seed in range(2):
        with pytest.raises(PtoError, match="E6"):
            launch(*arrays(seed))
    assert ran == [True] * 2
    monkeypatch.setenv(options.ALLOW, "E6")
    launch = call(file, "racing")
    for seed in range(3):
        out, a = arrays(seed)
        launch(out, a)
        np.testing.assert_array_equal(out, a + np.float32(1.5))
    assert ran == [True] * 3


def test_what_is_printed_is_printed_each_time(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = call(file, "printing")
    for seed in range(3):
        out, a = arrays(seed, 1)
        launch(out, a)
        said = capsys.readouterr().out
        assert "TPRINT" in said
        assert f"{a[0, 0, 0]:.2f}" in said
        np.testing.assert_array_equal(out, a + np.float32(1.5))
