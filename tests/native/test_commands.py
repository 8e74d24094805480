"""Every command that takes a kernel file, on C++: it does its work, or is refused by name."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from ptokit import cpp, loads
from ptokit.base.diagnostics import UsageError
from ptokit.cli import COMMANDS
from ptokit.cli.answer import Exit
from ptokit.cli.parser import app
from tests.native.support import line_of, needs_compiler, source

pytestmark = needs_compiler

KERNELS = """
template <pipe_t A, pipe_t B> AICORE void Sync()
{
    set_flag(A, B, EVENT_ID0);
    wait_flag(A, B, EVENT_ID0);
}
extern "C" __global__ AICORE void add(__gm__ float* out, __gm__ float* a, float s)
{
    T x, z;
    TASSIGN(x, 0x0); TASSIGN(z, 0x4000);
    G ga(a + get_block_idx() * 1024), gz(out + get_block_idx() * 1024);
    TLOAD(x, ga);
    Sync<PIPE_MTE2, PIPE_V>();  // loaded
    TADDS(z, x, s);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(gz, z);
}
extern "C" __global__ AICORE void racy(__gm__ float* out, __gm__ float* a)
{
    T x;
    TASSIGN(x, 0x0);
    G ga(a), gz(out);
    TLOAD(x, ga);
    TSTORE(gz, x);  // too early
}
"""
ADD = ["--kernel", "add"]
SIZES = ["f32[32,64]", "f32[32,64]", "1.5"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source(tmp_path_factory.mktemp("cpp"), KERNELS).path


@pytest.fixture(scope="module")
def ran(file: Path) -> Any:
    for name, module in COMMANDS.items():
        app.command(name)(import_module(module).command)

    def run(command: str, *words: str) -> Result:
        return CliRunner().invoke(app, [command, str(file), *words])

    return run


def _args(*words: str) -> list[str]:
    return [each for word in words for each in ("--arg", word)]


def test_check_is_silent_about_a_clean_kernel(ran: Any) -> None:
    done = ran("check", *ADD, "--grid", "2", *_args(*SIZES))
    assert done.exit_code == Exit.OK
    assert "add: a2a3 ok" in done.stdout


def test_check_finds_what_a_run_finds_and_a_schedule_in_which_it_shows(ran: Any) -> None:
    done = ran("check", "--kernel", "racy", *_args(*SIZES[:2]))
    assert done.exit_code == Exit.FOUND
    assert "error[E6]" in done.stdout
    assert "// too early" in done.stdout
    assert "shows with" in done.stdout


def test_check_on_two_targets(ran: Any) -> None:
    done = ran("check", "--kernel", "racy", "--target", "a2a3,a5", *_args(*SIZES[:2]))
    assert "error[E6] [a2a3, a5]" in done.stdout


def test_arrays_that_are_too_small_are_told_at_the_line(ran: Any) -> None:
    done = ran("check", *ADD, "--grid", "2", *_args("f32[16,64]", *SIZES[1:]))
    assert done.exit_code == Exit.FOUND
    assert "error[gm-bounds]" in done.stdout
    assert "TSTORE(gz, z);" in done.stdout


def test_asm_writes_what_a_run_did(ran: Any, file: Path, tmp_path: Path) -> None:
    done = ran("asm", *SIZES, *ADD, "--grid", "2", "-o", str(tmp_path / "add.pto"))
    assert done.exit_code == Exit.OK, done.output
    text = (tmp_path / "add.pto").read_text()
    assert "pto.get_block_idx" in text
    outs = [np.zeros((32, 64), np.float32) for _ in range(2)]
    x = np.ones_like(outs[0])
    for out, kernel in zip(outs, (cpp(file).add, loads(text)["add"]), strict=True):
        kernel[2](out, x, 1.5)
    assert np.array_equal(*outs)


def test_emit_writes_what_a_run_did(ran: Any) -> None:
    done = ran("emit", *SIZES, *ADD)
    assert done.exit_code == Exit.OK, done.output
    assert "TADDS(" in done.stdout


def test_explore_tries_schedules(ran: Any) -> None:
    assert "its work has one order only" in ran("explore", *ADD, *SIZES).stdout
    done = ran("explore", "--kernel", "racy", *SIZES[:2])
    assert done.exit_code == Exit.FOUND
    assert "the result depends on the schedule" in done.stdout


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        ("check", [], "2 kernels: say which"),
        ("check", ADD, "--arg 'f32[16,64]' --arg 'f32[16,64]' --arg 1.0"),
        ("check", [*ADD, *_args("f33[16,64]", *SIZES[1:])], "'f33' is not a PTO element type"),
        ("run", [*ADD, "x.npy", *SIZES[1:]], "or a type and shape"),
        ("run", [*ADD, *SIZES[:2], "many"], "s is a number, not 'many'"),
        ("explore", ADD, "'f32[16,64]' 'f32[16,64]' 1.0"),
        ("asm", ADD, "'f32[16,64]' 'f32[16,64]' 1.0"),
        ("emit", [], "2 kernels: say which"),
        ("fix", [], "`ptokit fix` rewrites Python and PTO text, not C++"),
        ("fmt", [], "`ptokit fmt` rewrites Python and PTO text, not C++"),
    ],
)
def test_what_is_missing_or_refused_is_said(
    ran: Any, command: str, words: list[str], said: str
) -> None:
    done = ran(command, *words)
    assert isinstance(done.exception, UsageError)
    assert said in done.exception.diagnostics[0].render()


@pytest.mark.parametrize("command", ["run", "asm", "explore", "check", "time"])
def test_arguments_can_be_named_at_every_door(file: Path, command: str) -> None:
    """A number below zero looks like an option elsewhere."""
    words = [command, str(file), *ADD, *_args(*SIZES[:2], "-1.5"), "--grid", "2"]
    asked = [sys.executable, "-m", "ptokit", *words]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == Exit.OK, done.stderr
    if command == "time":  # a wait in a helper is told with the call
        lines = [line_of(KERNELS, words) for words in ("wait_flag(A", "Sync<PIPE_MTE2")]
        assert (
            "kernel.cpp:{} called at kernel.cpp:{}, set after TLOAD".format(*lines) in done.stdout
        )
