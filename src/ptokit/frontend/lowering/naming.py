"""Noting what the author calls tile types and known numbers, for whoever shows the program."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any

from ptokit.frontend.session import current
from ptokit.ir.sourcenames import Line, SourceNames


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
    defined = _definitions(where[0]).get(name) if kind is not None else None
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


@lru_cache(maxsize=64)
def _definitions(file: str) -> dict[str, tuple[Line, ast.Subscript]]:
    """The names that a module gives to `Something[...]`, with where it does."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a cell of a notebook with commands of its own
        return {}
    found: dict[str, tuple[Line, ast.Subscript]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = (file, node.lineno), node.value
    return found
