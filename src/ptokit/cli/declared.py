"""How a command declares what it takes: in the terms of Typer, without Typer.

Typer loads a library of validators before it reads a word, which takes longer than checking a file.
Plain lines are read without it (plain_words.py); all others are its own (parser.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any


class Parameter:
    """What stands behind the type of a parameter: words, help, limits."""

    def __init__(
        self,
        *words: str,
        callback: Callable[[Any], Any] | None = None,
        min: float | None = None,
        max: float | None = None,
        **more: Any,
    ) -> None:
        self.words, self.callback, self.min, self.max, self.more = words, callback, min, max, more

    @property
    def facts(self) -> dict[str, Any]:
        """All but the words."""
        return {"callback": self.callback, "min": self.min, "max": self.max, **self.more}


class Option(Parameter):
    """One that is given behind a word."""


class Argument(Parameter):
    """One that is given by its place."""


RunAsScript = Annotated[
    bool, Option("--run", help="Run a Python file as a script, its main part included.")
]
