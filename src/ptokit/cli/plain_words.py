"""Command lines that leave nothing to explain, read without the parser of the command line.

What is read here is read as Typer would (`tests/cli/test_plain_words.py`), from the same
declarations. Whatever is no plain use of them - help, a mistake, an abbreviation - is Typer's.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from ptokit.cli import declared

_READ: Mapping[Any, Callable[[str], Any]] = {str: str, int: int, float: float, Path: Path}


# What a declaration may ask for, and none of ours does: then Typer knows what is meant.
_SPECIAL = (
    *("is_eager", "envvar", "default_factory", "parser", "clamp", "exists", "resolve_path"),
    *("writable", "path_type", "formats"),
)


class _UnclearError(Exception):
    """The line is not for us."""


class _Declared:
    """A parameter of a command, as its signature declares it."""

    def __init__(self, parameter: Parameter) -> None:
        self.name, self.default = parameter.name, parameter.default
        kind, *more = get_args(parameter.annotation)
        if len(more) != 1 or not isinstance(more[0], declared.Parameter):
            raise _UnclearError
        self.info: declared.Parameter = more[0]
        if any(self.info.more.get(name) for name in _SPECIAL):
            raise _UnclearError
        if get_origin(kind) in (Union, types.UnionType):
            kind = next(each for each in get_args(kind) if each is not type(None))
        self.is_list = get_origin(kind) is list
        self.type: Any = get_args(kind)[0] if self.is_list else kind
        self.words = {} if self.is_argument else _words(self.info, self.name)

    @property
    def is_argument(self) -> bool:
        return isinstance(self.info, declared.Argument)

    def read(self, word: str) -> Any:
        """The value of a word; a path, a number or a text."""
        try:
            value = _READ[self.type](word)
        except (KeyError, ValueError):
            raise _UnclearError from None
        low, high = self.info.min, self.info.max
        if (low is not None and value < low) or (high is not None and value > high):
            raise _UnclearError
        return value

    def left_out(self) -> Any:
        """What it is where nobody says it."""
        if self.default is Parameter.empty:
            raise _UnclearError
        return self.default


def _words(info: declared.Parameter, name: str) -> dict[str, bool]:
    """The words of an option; of one that is yes or no, what each of them says."""
    listed = info.words or (f"--{name.replace('_', '-')}",)
    pairs = [word.partition("/") for word in listed]
    said = {word: True for word, _, _ in pairs} | {word: False for _, _, word in pairs if word}
    if not all(word.startswith("-") for word in said):
        raise _UnclearError
    return said


def plainly(command: Callable[..., Any], words: Sequence[str]) -> dict[str, Any] | None:
    """What a command is called with by these words; None: somebody else must read them."""
    try:
        return _read(command, words)
    except _UnclearError:
        return None


def _read(command: Callable[..., Any], words: Sequence[str]) -> dict[str, Any]:
    every = [_Declared(each) for each in signature(command, eval_str=True).parameters.values()]
    options = {word: each for each in every for word in each.words}
    given: dict[str, Any] = {}
    loose: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            loose.append(word)
            continue
        name, has_value, value = word.partition("=")
        option = options.get(name)
        if option is None or (not option.is_list and option.name in given):
            raise _UnclearError
        if option.type is bool:
            if has_value:
                raise _UnclearError
            given[option.name] = option.words[name]
            continue
        value = value if has_value and name.startswith("--") else next(rest, "-")
        if (has_value and not name.startswith("--")) or value.startswith("-"):
            raise _UnclearError
        read = option.read(value)
        given[option.name] = [*given.get(option.name, ()), read] if option.is_list else read
    for each in every:
        if each.is_argument and loose:
            taken = loose if each.is_list else loose[:1]
            loose = loose[len(taken) :]
            values = [each.read(word) for word in taken]
            given[each.name] = values if each.is_list else values[0]
    if loose:
        raise _UnclearError
    found = {e.name: given[e.name] if e.name in given else e.left_out() for e in every}
    for each in every:
        if each.info.callback is not None:
            found[each.name] = each.info.callback(found[each.name])
    return found
