"""`loc(...)` behind an operation: the line it was made from, with the calls that lead there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptokit.base.location import Location
from ptokit.base.patterns import regex

_PLACE = r'"([^"]*)":(\d+):(\d+)'
_CALLED = regex(rf"loc\((?:callsite\()*{_PLACE}(?:at(?:callsite\()*{_PLACE})*\)+")


def written(at: Location) -> str:
    """A line and its callers, as a text has them."""
    *inner, text = (f'"{each.file}":{each.line}:{each.col}' for each in (at, *at.callers))
    for each in reversed(inner):
        text = f"callsite({each} at {text})"
    return f"loc({text})"


def apart(line: str) -> tuple[str, Location | None]:
    """A line of a text, and the line that the words behind it name."""
    text, found, behind = line.rpartition("loc(")
    at = read([found, behind.replace(" at ", "at")]) if found else None
    return (line, None) if at is None else (text.rstrip().removesuffix("//").rstrip(), at)


def read(tokens: Sequence[str]) -> Location | None:
    """The line that the words of a `loc(...)` name; None where they name none."""
    text = "".join(tokens)
    if _CALLED.fullmatch(text) is None:
        return None
    first, *callers = (
        Location(file, int(line), int(col)) for file, line, col in re.findall(_PLACE, text)
    )
    return Location(first.file, first.line, first.col, callers=tuple(callers))
