"""Numbers and words at the top of a Python file, and the file with others in their place.

    TILE: Literal[32, 64] = 64      # declares what may be tried
    ROWS, COLS = 16, 128            # takes what the command line gives

Whatever is built from them when the file is run - types of tiles, sizes of arrays - is built anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any


def declared_choices(text: str) -> dict[str, tuple[Any, ...]]:
    """The values of those constants that declare some, `NAME: Literal[...] = value`."""
    found: dict[str, tuple[Any, ...]] = {}
    for statement in ast.parse(text).body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        kind = statement.annotation
        if isinstance(kind, ast.Subscript) and ast.unparse(kind.value).endswith("Literal"):
            values = _value(kind.slice)
            found[statement.target.id] = values if isinstance(values, tuple) else (values,)
    return found


def constants_of(text: str) -> dict[str, ast.expr]:
    """Every name that one statement of the file sets to a literal, with the literal."""
    found: dict[str, ast.expr] = {}
    for name, value in _set(ast.parse(text)):
        if name in found or _value(value) is None:
            found[name] = ast.Constant(None)  # set twice, or to something that is computed
        else:
            found[name] = value
    return {name: value for name, value in found.items() if _value(value) is not None}


def replaced(text: str, values: Mapping[str, Any]) -> str:
    """The file with other values; its lines stay where they are."""
    lines = text.encode().splitlines(keepends=True)
    known = constants_of(text)
    # From the end, so that places in front of a change stay right.
    for value, name in sorted(
        ((known[name], name) for name in values), key=lambda each: -each[0].col_offset
    ):
        assert value.end_col_offset is not None
        row = lines[value.lineno - 1]
        new = repr(values[name]).encode()
        lines[value.lineno - 1] = row[: value.col_offset] + new + row[value.end_col_offset :]
    return b"".join(lines).decode()


def _set(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in tree.body:
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from _pairs(statement.target, statement.value)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from _pairs(target, statement.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for each, part in zip(target.elts, value.elts, strict=False):
            yield from _pairs(each, part)


def _value(node: ast.expr) -> Any:
    """What a literal of one line is; None: it is none."""
    try:
        return ast.literal_eval(node) if node.lineno == node.end_lineno else None
    except (ValueError, AttributeError):
        return None


__all__ = ["constants_of", "declared_choices", "replaced"]
