"""Noting what the author calls tile types and known numbers, for whoever shows the program."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Hashable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from ptokit.frontend.session import current
from ptokit.ir.sourcenames import Line, SourceNames

_MOST_LINES = 8  # of a type


def note(names: SourceNames, where: Line, name: str, found: Any) -> None:
    """A line of the kernel has read a name."""
    if type(found) in (int, float):
        names.note_number(where, name, found)
    elif (kind := _kind(found)) is not None:
        names.note_type(where, name, kind, where)


def note_global(
    names: SourceNames, where: Line, name: str, found: Any, known: Mapping[str, Any]
) -> None:
    """A line has read a name of its module; a type there was written on a line of its own."""
    kind = _kind(found)
    defined = _definition(where, name) if kind is not None else None
    if kind is None or defined is None:
        note(names, where, name, found)
        return
    line, node = defined
    names.note_type(where, name, kind, line)
    _note_arguments(names, line, node, kind, known)


def note_written(names: SourceNames, where: Line, node: ast.Subscript, found: Any) -> None:
    """A line of the kernel has written a type; its numbers were noted as they were read."""
    if (kind := _kind(found)) is not None:
        _note_arguments(names, where, node, kind, {})


def _note_arguments(
    names: SourceNames, line: Line, node: ast.Subscript, kind: Hashable, known: Mapping[str, Any]
) -> None:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    written = tuple(part.id if isinstance(part, ast.Name) else "" for part in parts)
    for name in filter(None, written):
        if type(known.get(name)) is int:
            names.note_number(line, name, known[name])
    names.arguments.setdefault((line, kind), written)


def _kind(found: Any) -> Hashable | None:
    """What a tile type is on the target in hand; None: it is no tile type."""
    if not isinstance(found, type):
        return None
    of_target = getattr(found, "spec_for", None)
    return of_target(current().target) if of_target else getattr(found, "TYPE", None)


@lru_cache(maxsize=256)
def _definition(where: Line, name: str) -> tuple[Line, ast.Subscript] | None:
    """The line above another one that says `name = Something[...]`, outside of all blocks.

    Lines are looked at one by one: around them may be anything, as in a cell or on a page.
    """
    file, below = where
    lines = linecache.getlines(file)[: below - 1]
    for at in reversed(range(len(lines))):
        if re.match(rf"{name}\s*=", lines[at]) is None:
            continue
        for end in range(at + 1, min(at + _MOST_LINES, len(lines)) + 1):
            with suppress(SyntaxError):
                (node,) = ast.parse("".join(lines[at:end])).body
                value = getattr(node, "value", None)
                return ((file, at + 1), value) if isinstance(value, ast.Subscript) else None
        return None
    return None
