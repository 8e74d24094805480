"""Where a command reads a program from: a file, or standard input as `-`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from ptokit.base.diagnostics import usage_error
from ptokit.base.location import Location
from ptokit.ir.limits import MAGIC, TextLimits, decoded, first_bytes, read_source

if TYPE_CHECKING:
    from ptokit.from_text import Program

_CPP = (".cpp", ".cc", ".cxx", ".cce")
ARGUMENTS = "A number, an .npy file, or a shape to be drawn, f32[16,64], per parameter, in order."
GIVEN = (
    "launch it on arrays of the size that is meant, k[24](x, y), or declare them: "
    "def k(x: float32[256, 64])"
)


def refuse_words(file: Path, words: Sequence[str]) -> None:
    """A Python file gives its kernels their arguments itself."""
    if words:
        raise usage_error(
            "arguments",
            f"{file} is Python, which calls its kernels itself: ARG is for PTO text and C++",
            got=[("ARG", " ".join(words))],
            fix=GIVEN,
        )


def is_cpp(file: Path) -> bool:
    """Whether a file is C++, by its name."""
    return file.suffix in _CPP


def read_own_text(path: Path) -> str:
    """As `read_text`, of a file that is written again afterwards: of bytecode there is no text."""
    if path.is_file() and first_bytes(path, len(MAGIC)) == MAGIC:
        raise usage_error(
            "file",
            f"{path} is bytecode, which is not rewritten",
            fix=f"write its text to a file: ptokit asm {path} -o k.pto",
            site=Location(str(path), 0),
        )
    return read_text(path)


def read_text(path: Path) -> str:
    """The contents of a file, of a part of it (`FILE#PART`), or of standard input."""
    limits = TextLimits.in_force()
    if str(path) == "-":
        return decoded(sys.stdin.buffer.read(limits.size + 1), shown_name(path), limits)
    file, part = _part_of(path)
    text = read_source(file, limits)
    if part:
        from ptokit.from_text import one_part  # a file of Python needs nothing that reads texts

        return one_part(text, str(file), part)
    return text


def _part_of(path: Path) -> tuple[Path, str]:
    file, mark, part = str(path).rpartition("#")
    return (Path(file), part) if mark and not path.exists() else (path, "")


def shown_name(path: Path) -> str:
    """How diagnostics call it."""
    return "<stdin>" if str(path) == "-" else str(_part_of(path)[0])


def load_program(path: Path) -> Program:
    """The program in a file, or from standard input."""
    if path.suffix == ".py":
        raise usage_error(
            "file",
            f"{path} is a file of Python, which is not executed here: this command takes PTO text",
            fix=f"run it with `python {path}`; `ptokit check {path}` checks its kernels, and "
            "`.text(...)` of a kernel is its PTO text",
            site=Location(str(path), 0),
        )
    from ptokit.from_text import loads

    return loads(read_text(path), shown_name(path))


def built_programs(path: Path, words: Sequence[str] = ()) -> list[Program]:
    """The programs that a Python file for the bindings of MLIR builds; what it prints is no answer.

    The stand-ins replace what is installed: they were asked for. `words` are arguments of the file.
    """
    from ptokit import compat

    compat.install(replace=True)
    with redirect_stdout(sys.stderr):
        return compat.programs_of(path, words)


def run_shell(path: Path, words: Sequence[str]) -> int:
    """Run a script of the shell in which `python` and the tools of a device are ours."""
    import subprocess
    from shutil import which

    from ptokit.compat.device.shell import environment

    shell = which("bash") or "sh"
    asked = [shell, str(path), *words]
    return subprocess.run(asked, env=environment(replace=True), check=False).returncode


def built_program(path: Path, found: Sequence[Program], entry: str) -> Program:
    """The one of them with this function, or the only one."""
    fitting = [each for each in found if not entry or entry in each.kernels]
    if len(fitting) != 1:
        raise usage_error(
            "which-kernel",
            f"{path} builds {len(found)} programs",
            got=[("functions", ", ".join(name for each in found for name in each.kernels))],
            fix="name the function to launch: --entry",
            site=Location(str(path), 0),
        )
    return fitting[0]
