"""The command line: argument parsing and exit codes (`answer.Exit`), one file per subcommand."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import Annotated, Any

from ptokit.base.diagnostics import (
    Diagnostic,
    ProgramError,
    PtoError,
    PtoWarning,
    ToolWarning,
    UsageError,
    rendered,
)
from ptokit.base.diagnostics import usage_error as _usage_error
from ptokit.base.patterns import regex
from ptokit.cli.answer import Exit, echo, failed, wants_json
from ptokit.cli.declared import Option
from ptokit.cli.plain_words import plainly

# Subcommand -> module with a function `command`. Modules load when their command runs or is
# asked for help, so that `ptokit --version` stays quick.
_NAMES = (
    "asm", "check", "conform", "demo", "emit", "exec", "explore", "fix", "fmt", "isa", "lsp",
    "report", "run", "sweep", "targets", "time", "tune",
)  # fmt: skip
COMMANDS = {name: f"ptokit.cli.{name}" for name in _NAMES}

shows_bugs = [False]  # with their tracebacks


def main() -> None:
    """Entry point of the `ptokit` command."""
    warnings.simplefilter("ignore", PtoWarning)  # commands print what they find themselves
    warnings.simplefilter("default", ToolWarning)
    try:
        try:
            words = [*switches(sys.argv[1:])]
            command = prepared(words[0]) if words and words[0] in COMMANDS else None
            gc.freeze()
            gc.enable()
            options = None if command is None else plainly(command, words[1:])
            if command is not None and options is not None:
                command(**options)
                sys.exit(0)
            import_module("ptokit.cli.parser").run(words)
        finally:
            if not sys.stdout.closed:  # as the server of editors leaves it
                sys.stdout.flush()  # a disk that is full says so here
    except (Exception, KeyboardInterrupt, _Stopped) as error:
        code = _told(error)
        with suppress(
            OSError, ValueError
        ):  # what cannot be written stays unwritten, also at the very end
            answers = sys.stdout.fileno()
            os.dup2(os.open(os.devnull, os.O_WRONLY), answers)
        sys.exit(code)


_SWITCH = regex(r"--?((?:enable|emit|plan|disable)-[\w-]+)(?:=(true|false))?")


def switches(words: Iterable[str]) -> Iterator[str]:
    """The words of a command line; switches may be given a value, or one dash: `-x-y=true`."""
    for word in words:
        found = _SWITCH.fullmatch(word)
        if found is None:
            yield word
        elif found[2] != "false":
            yield f"--{found[1]}"


def prepared(name: str) -> Callable[..., None]:
    """A command, which is imported here."""
    return _stoppable(_taking_arguments(import_module(COMMANDS[name]).command))


class _Stopped(BaseException):
    """Ctrl-C, under a name that the parser of the command line leaves alone."""


def _taking_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose ARG... can be said as `--arg` as well, as where several files are named."""
    own = signature(command, eval_str=True)
    if "args" not in own.parameters:
        return command

    @wraps(command)
    def run(*, args: list[str] | None, arg: list[str] | None, **given: Any) -> None:
        command(args=[*(args or ()), *(arg or ())] or None, **given)

    named = Parameter(
        "arg",
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[list[str] | None, Option("--arg", help="The next ARG.")],
    )
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), named])  # type: ignore[attr-defined]
    return run


def _stoppable(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def run(**options: Any) -> None:
        try:
            command(**options)
        except (KeyboardInterrupt, BrokenPipeError):
            raise _Stopped from None

    return run


def _told(error: BaseException) -> int:
    """Say why a command ends; gives back its exit code."""
    match error:
        case PtoError():
            found = (*error.diagnostics, *error.warnings)
            if isinstance(error, UsageError):  # the fault is on the command line, not in a file
                found = tuple(replace(each, location=None) for each in found)
            text, code = rendered(found), error.exit_code
        case KeyboardInterrupt() | _Stopped():
            found, text, code = (), "stopped", Exit.STOPPED
        case OSError():
            reason = error.strerror or str(error)
            found, text, code = (), f"error[file]: cannot write the answer: {reason}", Exit.USAGE
        case MemoryError():
            found, text, code = (), "error[memory]: there is not enough memory", Exit.USAGE
        case _:
            if shows_bugs[0]:
                raise error
            found, code = (), Exit.BUG
            text = (
                f"internal error: {type(error).__name__}: {error}\n"
                "  This is a bug of ptokit. Run again with `ptokit --debug ...` and report it."
            )
    with suppress(OSError):
        failed(text, code, found)
    return code


Defines = Annotated[
    list[str] | None,
    Option("-D", help="Override a size or alignment: -D PTO_UBUF_SIZE_BYTES=262144."),
]


def offered_targets(incomplete: str) -> list[str]:
    """The targets that a shell may complete a list to, names with commas."""
    known = import_module("ptokit.isa.targets").TARGETS
    done, comma, begun = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in known if name.startswith(begun)]


OnTarget = Annotated[
    str | None,
    Option(
        "--target",
        "--pto-arch",
        help="Default: what the module asks for, or a2a3.",
        autocompletion=offered_targets,
    ),
]
Strict = Annotated[bool, Option("--strict", help="Every broken rule is an error.")]
Release = Annotated[
    bool,
    Option("--release", help="What the device does: only what it enforces is an error."),
]
Allow = Annotated[
    list[str] | None,
    Option("--allow", help="Silence a finding: an id, or one place, E8@softmax.py:41."),
]


def profile(strict: bool, release: bool) -> str | None:
    """The profile of rules that the command line asks for; None: what the project says."""
    if strict and release:
        raise _usage_error("rules", "--strict and --release contradict each other")
    return "strict" if strict else "release" if release else None


def counted(found: Sequence[Diagnostic]) -> str:
    """How many errors and warnings there are, for a closing line."""
    errors = sum(d.severity == "error" for d in found)
    return f"{amount(errors, 'error')}, {amount(len(found) - errors, 'warning')}"


def amount(number: int, thing: str) -> str:
    """A number of things: 1 error, 2 errors."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def pass_or_refuse(found: Sequence[Diagnostic], strict: bool = False) -> Sequence[Diagnostic]:
    """Print warnings on standard error and pass them on for the answer; raise errors instead.

    `strict` takes every warning for an error, also those that are no rules of an instruction.
    """
    if any(d.severity == "error" for d in found) or (strict and found):
        raise ProgramError(found)
    if found and not wants_json():
        for each in found:
            echo(each.render(), err=True)
        echo(counted(found), err=True)
    return found
