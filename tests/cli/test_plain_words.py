"""What reads plain command lines reads them as Typer does, from the same declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from ptokit.cli import COMMANDS, prepared
from ptokit.cli.answer import choose_json
from ptokit.cli.declared import Option
from ptokit.cli.parser import in_typers_terms
from ptokit.cli.plain_words import plainly

CALLBACKS = {name: prepared(name) for name in COMMANDS}


def typers(command: Callable[..., Any], words: list[str]) -> dict[str, Any] | None:
    """What Typer calls a command with; None where it complains."""
    seen: list[dict[str, Any]] = []

    @wraps(command)
    def note(**given: Any) -> None:
        seen.append(given)

    alone = typer.Typer()
    alone.command()(in_typers_terms(note))
    CliRunner().invoke(alone, words)
    choose_json(False)
    return seen[0] if seen else None


def lines(name: str) -> Iterator[list[str]]:
    """Uses of a command: each option alone, twice, and behind the arguments; some are mistakes."""
    command = CALLBACKS[name]
    arguments = ["a.pto"]
    yield from ([], arguments, ["a.pto", "b.pto"], ["a.pto", "1", "2"], ["--no-such-option"], ["-"])
    yield from (["--help"], [*arguments, "--", "-x"])
    for each in signature(command, eval_str=True).parameters.values():
        kind, info = get_args(each.annotation)
        if not isinstance(info, Option):
            continue
        for word in (part for said in info.words for part in said.split("/")):
            values = [[]] if kind is bool else [["3"], ["word"], ["-1"], []]
            if isinstance(kind, type) and issubclass(kind, Enum):
                values.append([next(iter(kind)).value])
            for value in values:
                yield [*arguments, word, *value]
                yield [word, *value, *arguments, word, *value]
            yield [f"{word}=3", *arguments]


@pytest.mark.parametrize("name", COMMANDS)
def test_as_typer_reads_them(name: str) -> None:
    command = CALLBACKS[name]
    read = 0
    for words in lines(name):
        plain = plainly(command, words)
        choose_json(False)
        if plain is not None:
            assert plain == typers(command, words), words
            read += 1
    assert read or name in ("lsp",)


def test_check_is_read_plainly() -> None:
    """What is used again and again, by editors and hooks, does not load the parser."""
    command = CALLBACKS["check"]
    found = plainly(command, ["k.pto", "--target", "a2a3,a5", "-D", "A=1", "-D", "B=2", "--strict"])
    assert found is not None
    assert (found["files"], found["targets"]) == ([Path("k.pto")], "a2a3,a5")
    assert (found["define"], found["strict"], found["release"]) == (["A=1", "B=2"], True, False)
