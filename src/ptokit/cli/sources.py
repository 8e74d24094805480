"""Where a command reads a program from: a file, or standard input as `-`."""

from __future__ import annotations

import sys
from pathlib import Path

from ptokit.base.diagnostics import usage_error
from ptokit.from_text import Program, loads


def read_text(path: Path) -> str:
    """The contents of a file, or of standard input."""
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text("utf-8")
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise usage_error("file", f"cannot read {path}: {reason}")


def shown_name(path: Path) -> str:
    """How diagnostics call it."""
    return "<stdin>" if str(path) == "-" else str(path)


def load_program(path: Path) -> Program:
    """The program in a file, or from standard input."""
    return loads(read_text(path), shown_name(path))
