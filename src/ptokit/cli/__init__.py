"""The command line: argument parsing and exit codes, one file per subcommand.

Exit codes: 0 clean, 1 the program under examination is wrong, 2 wrong usage, 3 a bug of ptokit.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from typing import Annotated

import typer

from ptokit.base.diagnostics import PtoError, UsageError

# Subcommand -> module with a function `command`. Modules load when their command runs or is
# asked for help, so that `ptokit --version` stays quick.
_NAMES = ("asm", "check", "conform", "demo", "emit", "fmt", "isa", "run", "targets")
COMMANDS = {name: f"ptokit.cli.{name}" for name in _NAMES}

app = typer.Typer(
    name="ptokit",
    help="Tile programming for NPUs: check, run and study PTO kernels without the hardware.",
    no_args_is_help=True,
    add_completion=False,
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
    for name, module in COMMANDS.items():
        app.command(name)(import_module(module).command)
    try:
        app()
    except UsageError as error:
        for found in error.diagnostics:  # the fault is on the command line, not in a file
            typer.echo(replace(found, location=None).render(), err=True)
        sys.exit(error.exit_code)
    except PtoError as error:
        typer.echo(str(error).strip(), err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if _debug[0]:
            raise
        typer.echo(
            f"internal error: {type(error).__name__}: {error}\n"
            "  This is a bug of ptokit. Run again with `ptokit --debug ...` and report it.",
            err=True,
        )
        sys.exit(3)


Defines = Annotated[
    list[str] | None,
    typer.Option("-D", help="Override a size or alignment: -D PTO_UBUF_SIZE_BYTES=262144."),
]
OnTarget = Annotated[
    str | None, typer.Option("--target", help="Default: what the module asks for, or a2a3.")
]
