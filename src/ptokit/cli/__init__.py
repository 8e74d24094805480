"""The command line: argument parsing and exit codes (`answer.Exit`), one file per subcommand."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

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
from ptokit.cli.answer import Exit, failed, wants_json
from ptokit.cli.plain_words import plainly

# Subcommand -> module with a function `command`. Modules load when their command runs or is
# asked for help, so that `ptokit --version` stays quick.
_NAMES = (
    "asm", "check", "conform", "demo", "emit", "exec", "explore", "fix", "fmt", "isa", "lsp",
    "report", "run", "sweep", "targets", "time", "tune",
)  # fmt: skip
COMMANDS = {name: f"ptokit.cli.{name}" for name in _NAMES}

app = typer.Typer(
    name="ptokit",
    help="Tile programming for NPUs: check, run and study PTO kernels without the hardware.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


_debug = [False]


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"ptokit {version('ptokit')}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an internal error."),
) -> None:
    """Tile programming for NPUs."""
    _debug[0] = debug


def main() -> None:
    """Entry point of the `ptokit` command."""
    warnings.simplefilter("ignore", PtoWarning)  # commands print what they find themselves
    warnings.simplefilter("default", ToolWarning)
    try:
        try:
            register(sys.argv[1:])
            words = [*import_module("ptokit.cli.steps").switches(sys.argv[1:])]
            gc.freeze()
            gc.enable()
            if not _ran_plainly(words):
                app(words, prog_name="ptokit")
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


def _ran_plainly(words: Sequence[str]) -> bool:
    """Run a command whose line needs no parser; False: it does."""
    commands = {each.name: each.callback for each in app.registered_commands}
    command = commands.get(words[0]) if words else None
    options = None if command is None else plainly(command, words[1:])
    if command is None or options is None:
        return False
    try:
        command(**options)
    except typer.Exit as end:
        sys.exit(end.exit_code)
    sys.exit(0)


def register(words: Sequence[str]) -> None:
    """Import the command that is asked for, or all of them where none is; each of them once."""
    named = next((word for word in words if not word.startswith("-")), "")
    known = {each.name for each in app.registered_commands}
    for name in (named,) if named in COMMANDS else COMMANDS:
        if name not in known:
            command = import_module(COMMANDS[name]).command
            app.command(name)(_stoppable(_taking_arguments(command)))


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
        annotation=Annotated[list[str] | None, typer.Option("--arg", help="The next ARG.")],
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
            found = error.diagnostics
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
            if _debug[0]:
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
    typer.Option("-D", help="Override a size or alignment: -D PTO_UBUF_SIZE_BYTES=262144."),
]


def offered_targets(incomplete: str) -> list[str]:
    """The targets that a shell may complete a list to, names with commas."""
    known = import_module("ptokit.isa.targets").TARGETS
    done, comma, begun = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in known if name.startswith(begun)]


OnTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        "--pto-arch",
        help="Default: what the module asks for, or a2a3.",
        autocompletion=offered_targets,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Every broken rule is an error.")]
Release = Annotated[
    bool,
    typer.Option("--release", help="What the device does: only what it enforces is an error."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", help="Silence a finding: an id, or one place, E8@softmax.py:41."),
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
            typer.echo(each.render(), err=True)
        typer.echo(counted(found), err=True)
    return found
