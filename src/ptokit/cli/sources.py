"""Where a command reads a program from: a file, or standard input as `-`."""

from __future__ import annotations

import sys
from pathlib import Path

from ptokit.from_text import Program, loads
from ptokit.ir.limits import TextLimits, decoded, read_source


def read_text(path: Path) -> str:
    """The contents of a file, or of standard input."""
    limits = TextLimits.in_force()
    if str(path) == "-":
        return decoded(sys.stdin.buffer.read(limits.size + 1), shown_name(path), limits)
    return read_source(path, limits)


def shown_name(path: Path) -> str:
    """How diagnostics call it."""
    return "<stdin>" if str(path) == "-" else str(path)


def load_program(path: Path) -> Program:
    """The program in a file, or from standard input."""
    return loads(read_text(path), shown_name(path))
