"""`run`, `asm` and `emit` finish a program by the same two steps, in two sets of words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from ptokit.base.diagnostics import ProgramError, UsageError
from ptokit.cli import COMMANDS
from ptokit.cli.parser import app
from tests.passes.test_finish import program

Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    from importlib import import_module

    for name in ("run", "emit", "asm"):
        if name not in {c.name for c in app.registered_commands}:
            app.command(name)(import_module(COMMANDS[name]).command)
    return lambda *words: CliRunner().invoke(app, [str(w) for w in words])


def text(folder: Path, *, placed: bool, ordered: bool) -> Path:
    path = folder / "k.pto"
    path.write_text(str(program(placed=placed, ordered=ordered)))
    return path


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_emit_finishes_a_program(
    invoke: Invoke, tmp_path: Path, placed: bool, ordered: bool
) -> None:
    done = invoke("emit", text(tmp_path, placed=placed, ordered=ordered))
    assert done.exit_code == 0, done.output
    for words in ("TASSIGN(", "set_flag(PIPE_MTE2, PIPE_V", "wait_flag(PIPE_V, PIPE_MTE3"):
        assert done.output.count(words) == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [(("--no-place",), "unbound-tile"), (("--pto-level", "level3"), "level3-addr")],
)
@pytest.mark.parametrize("command", ["emit", "asm"])
def test_or_refuses(
    invoke: Invoke, tmp_path: Path, command: str, words: tuple[str, ...], code: str
) -> None:
    done = invoke(command, text(tmp_path, placed=False, ordered=False), *words)
    assert isinstance(done.exception, ProgramError)
    assert done.exception.codes == (code,)


@pytest.mark.parametrize(
    ("words", "addresses", "flags"),
    [
        (("--place",), 1, 0),
        (("--pto-level=level2",), 1, 0),
        (("--sync=insert",), 1, 4),
        (("--enable-insert-sync", "--pto-arch", "a3"), 1, 4),
        (("--to", "l3", "--sync=keep"), 1, 0),
        (("--to", "l3"), 1, 4),
        (("--to", "l2"), 0, 0),
        ((), 0, 0),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else str(v),
)
def test_asm_does_what_is_asked(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], addresses: int, flags: int
) -> None:
    done = invoke("asm", text(tmp_path, placed=False, ordered=False), *words)
    assert done.exit_code == 0, done.output
    assert done.output.count("addr = ") == addresses
    assert done.output.count("_flag[") == flags


@pytest.mark.parametrize("words", [("--to", "l3"), ("--sync=keep",), ("--pto-level=level3",)])
def test_asm_leaves_the_authors_flags_alone(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = invoke("asm", text(tmp_path, placed=True, ordered=True), *words)
    assert done.exit_code == 0, done.output
    assert done.output.count("_flag[") == 4
    assert done.output.count("EVENT_ID0") == 4


def test_run_inserts_keeps_and_places(invoke: Invoke, tmp_path: Path) -> None:
    arrays = [tmp_path / "x.npy", tmp_path / "z.npy"]
    for path in arrays:
        np.save(path, -np.ones((16, 64), "f4"))
    loose = text(tmp_path, placed=False, ordered=False)
    for words in ((), ("--enable-insert-sync", "--pto-arch=a5"), ("--place", "--sync=insert")):
        done = invoke("run", loose, *arrays, "--in-place", *words)
        assert done.exit_code == 0, done.output
        assert (np.load(arrays[1]) == 1).all()
    done = invoke("run", loose, *arrays, "--sync=keep")
    assert isinstance(done.exception, ProgramError)
    assert set(done.exception.codes) == {"E6"}


@pytest.mark.parametrize(
    "words",
    [("--enable-insert-sync", "--sync=keep"), ("--pto-level=level3", "--place")],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else str(v),
)
def test_words_that_contradict_each_other(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = invoke("asm", text(tmp_path, placed=True, ordered=False), *words)
    assert isinstance(done.exception, UsageError)
    assert "contradict" in str(done.exception)


def test_waits_are_counted(invoke: Invoke, tmp_path: Path) -> None:
    """`asm -v`: what orders each function."""
    path = text(tmp_path, placed=True, ordered=False)
    done = invoke("asm", path, "-v", "--sync=insert")
    assert done.exit_code == 0, done.output
    assert "@f: 2 waits, 0 barriers, 1 of all pipes" in done.stderr
    done = invoke("asm", path, "-v", "--sync=barrier-all")
    assert "@f: 0 waits, 0 barriers, 4 of all pipes" in done.stderr
