"""Overrides of a target's sizes and alignments, as a compiler's `-D NAME=VALUE` gives them.

The command line hands over the words behind `-D`, Python a mapping; both are read here, so that
both take the same values and give the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from ptokit.base.diagnostics import PtoError, UsageError, fail

Defines = Mapping[str, int | str] | Sequence[str]


def parse_defines(given: Defines | None) -> dict[str, int]:
    """The numbers by macro name, of a mapping or of words `NAME=VALUE`."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        pairs: list[tuple[Any, Any]] = list(given.items())
    elif isinstance(given, list | tuple):
        pairs = [_split(word) for word in given]
    else:
        raise _wrong(f"{given!r} is not a mapping from macro names to numbers")
    values: dict[str, int] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise _wrong(f"{name!r} is not the name of a macro")
        values[name.strip()] = _number(name.strip(), value)
    return values


def _split(word: Any) -> tuple[str, str]:
    name, equals, value = word.partition("=") if isinstance(word, str) else ("", "", "")
    if not equals:
        raise _wrong(f"{word!r} has no value")
    return name, value


def _number(name: str, value: Any) -> int:
    """An integer, or its text; a prefix gives the base, as in C."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return int(value, 0) if isinstance(value, str) else index(value)
    except (TypeError, ValueError):
        raise _wrong(f"{name}={value} is not a number") from None


def _wrong(message: str) -> PtoError:
    fix = 'write -D PTO_UBUF_SIZE_BYTES=0x40000, or defines={"PTO_UBUF_SIZE_BYTES": 0x40000}'
    return fail("bad-macro", message, fix=fix, kind=UsageError)
