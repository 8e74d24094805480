"""Arguments in brackets and parentheses, and what to say when they are not what they should be."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

from ptokit.base.diagnostics import fail
from ptokit.isa.verify import shown

E = TypeVar("E", bound=IntEnum)


def arguments(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else (given,)


class template:  # noqa: N801 - reads as a word in a with statement
    """Turns a wrong number or kind of arguments into a sentence with the pattern.

    `kind` is what they are: template arguments, in brackets, unless it says otherwise.
    """

    def __init__(
        self, what: str, pattern: str, given: Any, kind: str = "template arguments"
    ) -> None:
        self._what = what
        self._pattern = pattern
        self._given = arguments(given)
        self._kind = kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, TypeError | ValueError | AttributeError):
            return
        reason = str(error)
        if "unpack" in reason or "positional argument" in reason:
            reason = "their number is wrong"
        raise fail(
            f"{self._what}.arguments",
            f"{self._what} does not take these {self._kind}: {reason}",
            got=[("arguments", ", ".join(map(shown, self._given)))],
            fix=self._pattern,
        ) from None


def choice(kind: type[E], value: Any) -> E:
    """The member of an enumeration; another enumeration's member is never meant."""
    if isinstance(value, IntEnum) and not isinstance(value, kind):
        raise ValueError(f"{shown(value)} is not a {kind.__name__}")
    if isinstance(value, str) and value in kind.__members__:
        raise ValueError(f"write {kind.__name__}.{value}, not {value!r}")
    return kind(value)
