"""Where a command reads a program from: a file, or standard input as `-`."""

from __future__ import annotations

import sys
from pathlib import Path

from ptokit.base.diagnostics import usage_error
from ptokit.base.location import Location
from ptokit.from_text import Program, loads, one_part
from ptokit.ir.bytecode import MAGIC, is_bytecode
from ptokit.ir.limits import TextLimits, decoded, first_bytes, read_source


def read_own_text(path: Path) -> str:
    """As `read_text`, of a file that is written again afterwards: of bytecode there is no text."""
    if path.is_file() and is_bytecode(first_bytes(path, len(MAGIC))):
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
    return one_part(text, str(file), part) if part else text


def _part_of(path: Path) -> tuple[Path, str]:
    file, mark, part = str(path).rpartition("#")
    return (Path(file), part) if mark and not path.exists() else (path, "")


def shown_name(path: Path) -> str:
    """How diagnostics call it."""
    return "<stdin>" if str(path) == "-" else str(_part_of(path)[0])


def load_program(path: Path) -> Program:
    """The program in a file, or from standard input."""
    return loads(read_text(path), shown_name(path))
