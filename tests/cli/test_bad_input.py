"""Whatever the command line is given: an answer or an error, old files kept, no code executed."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import cli, conform, load
from ptokit.base import files
from ptokit.base.diagnostics import PtoError, UsageError
from ptokit.base.dtypes import dtype
from ptokit.cli import targets
from ptokit.folders.arrays import read_array
from ptokit.tasks import Executor, Task, Work
from tests.command import command as ptokit

COPY = """func.func @copy(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) {
  return
}
"""
LONG = """func.func @long(%n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 1000000000 : index
  scf.for %i = %c0 to %c9 step %c1 {
  }
  return
}
"""


def started(*args: str, **more: Any) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ptokit", *args], text=True, start_new_session=True,
        stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE, **more},
    )  # fmt: skip


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "copy.pto").write_text(COPY)
    return tmp_path / "copy.pto"


# ---- arguments -----------------------------------------------------------------------------------


def header(text: str) -> bytes:
    padded = text.encode() + b" " * 40 + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


def numbers(shape: str, kind: str = "<f4") -> bytes:
    return header(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}")


HOSTILE = {
    "empty": b"",
    "cut": b"\x93NUMPY\x01\x00",
    "long": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100,
    "huge": numbers("(1000000000000,)") + bytes(16),
    "beyond": numbers("(10000000000000000000000000,)"),
    "negative": numbers("(-4,)"),
    "objects": numbers("(4,)", "|O") + bytes(64),
    "nested": numbers("(" * 300 + ")" * 300),
    "text": b"1, 2, 3",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_array_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(HOSTILE[name])
    with pytest.raises(UsageError, match=r"(?s)%x: cannot read .*np\.save"):
        read_array(str(tmp_path / "x.npy"), "x")


@pytest.mark.parametrize("shape", [(16, 64), (0, 4), ()])
def test_an_array_is_read_as_it_was_written(shape: tuple[int, ...], tmp_path: Path) -> None:
    value = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    np.save(tmp_path / "x.npy", value)
    found = read_array(str(tmp_path / "x.npy"), "x")
    assert found.shape == shape
    assert found.flags.writeable
    assert (found == value).all()


def test_an_archive_is_no_argument(program: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros(4, np.float32))
    code, _, err = ptokit("run", str(program), *[str(tmp_path / "x.npz")] * 2)
    assert code == 2
    assert "it is an archive of several arrays" in err


# ---- outputs -------------------------------------------------------------------------------------


def fails(file: Any) -> None:
    file.write(b"half")
    raise OSError(28, "No space left on device")


def stops(file: Any) -> None:
    file.write(b"half")
    raise KeyboardInterrupt


@pytest.mark.parametrize(("fill", "raised"), [(fails, UsageError), (stops, KeyboardInterrupt)])
def test_what_is_not_complete_leaves_the_old_files(fill: Any, raised: Any, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("old")
    with pytest.raises(raised):
        files.write({tmp_path / "a": lambda file: file.write(b"new"), tmp_path / "b": fill})
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "old", "b": "old"}


def test_an_output_keeps_its_link_and_its_rights(tmp_path: Path) -> None:
    place, link = tmp_path / "place", tmp_path / "link"
    place.write_text("old")
    place.chmod(0o640)
    link.symlink_to(place)
    files.write_text(link, "new")
    assert link.is_symlink()
    assert (place.read_text(), place.stat().st_mode & 0o777) == ("new", 0o640)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("where", ["missing/out", "/dev/full", ""])
@pytest.mark.parametrize("words", [("asm", "-o"), ("emit", "-o"), ("check", "--sarif")])
def test_an_output_without_a_place_is_a_usage_error(
    words: tuple[str, str], where: str, program: Path, tmp_path: Path
) -> None:
    command, option = words
    code, _, err = ptokit(command, str(program), option, str(tmp_path / where))
    assert code == 2, err
    assert "error[file]: cannot write" in err
    assert [p.name for p in tmp_path.iterdir()] == ["copy.pto"]


def test_commands_write_only_through_the_one_helper() -> None:
    """Any other way to write a file would leave half of it behind."""
    folder = Path(cli.__file__).parent
    for path in sorted(folder.glob("*.py")):
        for call in (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)):
            name = ast.unparse(call.func)
            plain = name in ("write_text", "write", "os.open")
            assert plain or not re.search(r"(^|\.)(write\w*|save\w*|open|mkdir)$", name), path


def test_a_full_disk_is_no_bug(program: Path) -> None:
    with open("/dev/full", "w") as full:
        process = started("asm", str(program), stdout=full)
        _, err = process.communicate(timeout=60)
    assert err == "error[file]: cannot write the answer: No space left on device\n"
    assert process.returncode == 2


def test_a_folder_that_is_a_file(program: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    arrays = [str(tmp_path / "x.npy")] * 2
    code, _, err = ptokit("run", str(program), *arrays, "--out", str(program))
    assert (code, "cannot make the folder" in err) == (2, True)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "stopped"),
        (BrokenPipeError(), 130, "stopped"),
        (MemoryError(), 2, "not enough memory"),
        (OSError(28, "No space left on device"), 2, "No space left"),
    ],
    ids=repr,
)
def test_what_the_computer_cannot_do_is_no_bug(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command() -> None:
        raise error

    monkeypatch.setattr(targets, "command", command)
    found = ptokit("targets")
    assert (found[0], said in found[2]) == (code, True)


# ---- Ctrl-C --------------------------------------------------------------------------------------


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def stopped(*words: str, workers: int) -> tuple[int, str, str]:
    """Exit code and output of a command that Ctrl-C ends when it has so many processes."""
    # Whoever tests in the background has Ctrl-C ignored, and would hand that on.
    process = started(*words, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        until = time.monotonic() + 60
        while len(children(process.pid)) < workers and time.monotonic() < until:
            time.sleep(0.1)
        seen = children(process.pid)
        assert len(seen) == workers
        if not workers:
            assert process.stdout is not None
            process.stdout.readline()  # it has begun
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert not any(Path(f"/proc/{worker}").exists() for worker in seen)
    return process.returncode, out, err


def test_a_stopped_run_says_so(tmp_path: Path) -> None:
    begins = LONG.replace("  scf.for", '  pto.print ins("n = %d", %n : i32)\n  scf.for')
    (tmp_path / "long.pto").write_text(begins)
    assert stopped("run", str(tmp_path / "long.pto"), "1", workers=0) == (130, "", "stopped\n")


def test_processes_of_a_stopped_folder_say_nothing(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.pto").write_text(LONG)
    code, out, err = stopped("run", str(tmp_path), "--jobs", "2", workers=2)
    assert (code, err) == (130, "")
    assert out.count("left out") >= 3


def test_an_exception_that_cannot_be_sent_is_told() -> None:
    class OddError(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(f"odd {a} {b}")

    def work(number: int) -> None:
        raise OddError(number, 2)

    (result,) = Executor(2).results(Work(work), [Task("odd", 1)])
    with pytest.raises(RuntimeError, match="OddError: odd 1 2"):
        result.get()


# ---- recorded cases ------------------------------------------------------------------------------

TILE = {
    "kind": "tile", "loc": "Vec", "dtype": "i64", "rows": 1, "cols": 16, "valid_row": 1,
    "valid_col": 16, "dynamic_valid": False, "blayout": "RowMajor", "slayout": "NoneBox",
    "fractal": 512, "pad": "Null", "compact": "Null",
}  # fmt: skip


def case(name: str, **changed: Any) -> dict[str, Any]:
    return {
        "instr": "TEXPANDS", "case": name, "file": "arrays.npz",
        "operands": [{"name": "dst", **TILE}],
        "calls": [{"op": "TEXPANDS", "template": [], "args": [{"ref": "dst"}, {"value": 2**62}]}],
        "compare": {"region": "valid", "mode": "exact"}, **changed,
    }  # fmt: skip


class Bomb:
    """What a pickle may hold: reading it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def test_an_odd_case_has_failed_and_the_others_go_on(tmp_path: Path) -> None:
    wanted = np.full((1, 16), 2**62, np.int64)
    np.savez(tmp_path / "arrays.npz", **{"dst.out2d": wanted})
    np.savez(tmp_path / "other.npz", **{"dst.out2d": wanted + 1})
    np.savez(tmp_path / "bomb.npz", **{"dst.out2d": np.array([Bomb(tmp_path / "mark")], object)})
    custom = [{"name": "dst", **TILE, "pad": "PadValueCustom(-1.5f)"}]
    odd = [
        {}, 3, case("no operands", operands=None), case("no file", file="none.npz"),
        case("objects", file="bomb.npz"), case("an archive that is none", file="manifest.json"),
        case("an enumeration that is none", calls=[{"op": "TEXPANDS", "template": [
            {"enum": "load.x"}], "args": []}]), case("another number", file="other.npz"),
    ]  # fmt: skip
    right = [case("first"), case("last"), case("a custom pad", operands=custom)]
    manifest = {"cases": [right[0], *odd, *right[1:]]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    found = [conform.run_case(tmp_path, each) for each in conform.load_cases(tmp_path)]
    assert [v.status for v in found] == ["passed", *["failed"] * len(odd), "passed", "passed"]
    assert found[len(odd)].reason == (
        f"dst: 16 of 16 differ, first at (0, 0): got {2**62}, expected {2**62 + 1}"
    )
    assert not (tmp_path / "mark").exists()
    code, out, _ = ptokit("conform", str(tmp_path))
    assert (code, out.splitlines()[-1]) == (
        1, f"conform: 3 passed, {len(odd)} failed, 0 disputed, 0 unsupported of {len(odd) + 3}",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", "[]", '{"cases": 3}', "[" * 100_000, "\udcff"])
def test_a_manifest_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(UsageError, match=r"cannot read .*manifest"):
        conform.load_cases(tmp_path)


@pytest.mark.parametrize("kind", ["i64", "u64", "i32", "i4", "u8"])
def test_integers_that_differ_are_compared(kind: str) -> None:
    element = dtype(kind)
    got, want = np.array([3, 1], element.np), np.array([1, 1], element.np)
    for exact in (True, False):
        said = conform._difference("x", got, want, element, exact)
        assert said.startswith("x: 1 of 2 differ, first at (0,): got 3")
    assert conform._difference("x", want + element.np.type(1), want, element, False) == ""


# ---- code ----------------------------------------------------------------------------------------

IMPORTS = {"check", "fix"}  # the commands that import a Python file, as their pages say


@pytest.mark.parametrize("command", ["asm", "emit", "fmt", "run", "check", "fix"])
def test_only_commands_that_say_so_import_a_python_file(command: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    file = tmp_path / "kernels.py"
    file.write_text(f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n")
    ptokit(command, str(file))
    assert mark.exists() == (command in IMPORTS)
    page = (Path(__file__).parents[2] / "docs/guide/command-line.md").read_text()
    (said,) = [line for line in page.splitlines() if "| imported;" in line]
    assert (f"`{command}`" in said) == (command in IMPORTS)


@pytest.mark.parametrize("command", ["run", "asm", "emit"])
def test_who_takes_texts_says_what_to_do_with_python(command: str, tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("from ptokit import *\n")
    done = ptokit(command, str(file))
    assert done.returncode == 2
    assert "kernels.py is a file of Python" in done.stderr
    assert f"`python {file}`; `ptokit check {file}`" in done.stderr


def test_loading_a_text_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "copy.py").write_text("raise SystemExit('imported')")
    (tmp_path / "copy.pto").write_text(COPY)
    assert load(tmp_path / "copy.pto")["copy"].name == "copy"
    with pytest.raises(PtoError):
        load(tmp_path / "copy.py")


# ---- the gates -----------------------------------------------------------------------------------

NUMBER = """func.func @number(%n: i32, %b: i8) {
  return
}
"""
BEYOND = {  # the limits are lowered to what these break
    "size": ("size=10", COPY),
    "line": ("line=20", COPY),
    "nesting": ("nesting=1", LONG),
    "digits": ("digits=3", LONG),
    "results": ("results=3", "func.func @f() {\n  %a:9 = func.call @f() : () -> ()\n}\n"),
}
READERS = ("asm", "check", "emit", "explore", "fix", "fmt", "run")


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("broken", BEYOND)
def test_every_command_reads_through_the_gate_of_text(
    command: str, broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, text = BEYOND[broken]
    path = tmp_path / "k.pto"
    path.write_text(text)
    monkeypatch.setenv("PTOKIT_LIMITS", limit)
    status, out, err = ptokit(command, str(path))
    assert status == 1
    assert "text-limit" in out + err
    assert path.read_text() == text
    raised = re.search(r"PTOKIT_LIMITS=(\w+=\d+)", out + err)
    assert raised is not None
    monkeypatch.setenv("PTOKIT_LIMITS", raised[1])
    _, out, err = ptokit(command, str(path), *(["--max-steps", "9"] if command == "run" else []))
    assert "text-limit" not in out + err


@pytest.mark.parametrize(
    "numbers",
    [
        ("99999999999999999999", "1"),
        ("1", "300"),
        ("nan", "1"),
        ("1.5", "1"),
        ("1", "0x"),
        ("", "1"),
    ],
)
def test_numbers_of_the_command_line_pass_the_gate_of_scalars(
    numbers: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "n.pto").write_text(NUMBER)
    assert ptokit("run", str(tmp_path / "n.pto"), "7", "8")[0] == 0
    assert ptokit("run", str(tmp_path / "n.pto"), *numbers)[0] in (1, 2)


@pytest.mark.parametrize("kind", [">f4", "<f8", "<i4", "|S4", "<c8", "?"])
def test_arrays_of_the_command_line_pass_the_gate_of_memory(
    kind: str, program: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "good.npy", np.zeros(64, "<f4"))
    np.save(tmp_path / "bad.npy", np.zeros(64, kind))
    good, bad = str(tmp_path / "good.npy"), str(tmp_path / "bad.npy")
    assert ptokit("run", str(program), good, good)[0] == 0
    status, out, err = ptokit("run", str(program), good, bad)
    assert status in (1, 2), out + err


@pytest.mark.parametrize("words", [["run", "--compat", "no.py"], ["fmt", "k.py"]])
def test_files_that_a_command_cannot_take(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import ptokit\n")
    done = ptokit(*words[:-1], tmp_path / words[-1])
    assert done.returncode == 2
    assert done.stderr.startswith("error[file]: ")
