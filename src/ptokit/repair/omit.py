"""A program without some of its statements, to see whether anything needs them."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ptokit.base.location import Location


def without_statements(text: str, file: str, lines: Collection[Location]) -> str | None:
    """The text without the statements on some lines of its file.

    None where a line is another file's, or holds more or less than one whole statement.
    """
    rows = text.splitlines()
    for at in lines:
        if at.file != file or not 0 < at.line <= len(rows):
            return None
        row = rows[at.line - 1]
        left = _left(row.strip())
        if left is None:
            return None
        rows[at.line - 1] = row[: len(row) - len(row.lstrip())] + left
    return "\n".join(rows) + "\n"


def _left(statement: str) -> str | None:
    """What stands in place of a statement: one of Python leaves a block that must not be empty."""
    if statement.startswith("pto."):
        is_whole = statement.count("{") == statement.count("}") and "=" not in statement
        return "" if is_whole else None
    try:
        body = ast.parse(statement).body
    except SyntaxError:
        return None
    is_call = len(body) == 1 and isinstance(body[0], ast.Expr)
    return "pass" if is_call else None


__all__ = ["without_statements"]
