"""What a command answers: lines for people, or with `--json` one object for tools.

The object always has `exit` (the exit code) and `diagnostics`; a command adds what it found out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from enum import IntEnum
from typing import Annotated, Any, NoReturn

from ptokit.base.diagnostics import Diagnostic
from ptokit.cli.declared import Option


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FOUND = 1  # the program under examination is wrong, or not what was asked for
    USAGE = 2  # the command was called wrongly
    BUG = 3  # of ptokit
    STOPPED = 130  # by Ctrl-C, or because nobody reads the answer any more


class _Wanted:
    """Whether the command that runs was asked for JSON; set by the option itself."""

    json = False


def choose_json(chosen: bool) -> bool:
    _Wanted.json = chosen
    return chosen


AsJson = Annotated[
    bool,
    Option("--json", callback=choose_json, help="Print one JSON object instead of text."),
]


def wants_json() -> bool:
    """Whether the command that runs was asked for JSON."""
    return _Wanted.json


def answer(
    text: str = "",
    /,
    *,
    found: Iterable[Diagnostic] = (),
    code: int | None = None,
    **data: Any,
) -> NoReturn:
    """End a command: the text for people, or `data` as JSON beside what was found.

    Without a code, the exit code says whether an error was found.
    """
    found = list(found)
    if code is None:
        code = Exit.FOUND if any(d.severity == "error" for d in found) else Exit.OK
    if _Wanted.json:
        report = {"exit": int(code), "diagnostics": [d.to_json() for d in found], **data}
        echo(json.dumps(report, indent=1))
    elif text:
        echo(text.removesuffix("\n"))
    sys.exit(int(code))


def failed(message: str, code: int, found: Iterable[Diagnostic] = ()) -> int:
    """Say why a command could not do its work: on stderr, or as JSON; gives back the exit code."""
    if _Wanted.json:
        report = {
            "exit": int(code),
            "diagnostics": [d.to_json() for d in found],
            "message": message,
        }
        echo(json.dumps(report, indent=1))
    else:
        echo(message, err=True)
    return code


def echo(text: str, *, err: bool = False) -> None:
    """Say something to people, at once."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)
