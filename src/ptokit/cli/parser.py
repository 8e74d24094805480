"""The parser of command lines: Typer, told what the commands declare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Annotated, Any, get_args

import typer

from ptokit.cli import COMMANDS, prepared, shows_bugs
from ptokit.cli.declared import Argument, Option


class _Commands(typer.Typer):
    """Takes functions whose parameters are declared in our terms."""

    def command(self, name: str | None = None, **more: Any) -> Callable[..., Any]:
        take = super().command(name, **more)
        return lambda function: take(in_typers_terms(function))


def in_typers_terms(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same command with declarations that Typer knows."""

    @wraps(command)
    def run(**given: Any) -> Any:
        return command(**given)

    own = signature(command, eval_str=True)
    told = [each.replace(annotation=_told(each.annotation)) for each in own.parameters.values()]
    run.__signature__ = own.replace(parameters=told)  # type: ignore[attr-defined]
    return run


def _told(annotation: Any) -> Any:
    kind, *declared = get_args(annotation)
    match declared:
        case [Option() as option]:
            return Annotated[kind, typer.Option(*option.words, **option.facts)]
        case [Argument() as argument]:
            return Annotated[kind, typer.Argument(*argument.words, **argument.facts)]
        case _:
            return annotation


app = _Commands(
    name="ptokit",
    help="Tile programming for NPUs: check, run and study PTO kernels without the hardware.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


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
    shows_bugs[0] = debug


def register(names: Sequence[str]) -> None:
    """Take in commands, each of them once."""
    known = {each.name for each in app.registered_commands}
    for name in names:
        if name not in known:
            app.command(name)(prepared(name))


def run(words: Sequence[str]) -> None:
    """Read a line and do what it says; without a command, all of them are shown."""
    named = next((word for word in words if not word.startswith("-")), "")
    register((named,) if named in COMMANDS else tuple(COMMANDS))
    app(words, prog_name="ptokit")
