"""`ptokit asm FILE --to LEVEL`: convert a program between the text forms."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ptokit.cli import Allow, Defines, OnTarget, Release, Strict, pass_or_refuse, profile
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.files import write_text
from ptokit.cli.sources import load_program
from ptokit.cli.steps import Asked, finishing
from ptokit.ir.printer import print_module
from ptokit.passes.finish import INSERT, KEEP, OPEN, Steps


class Level(StrEnum):
    """The text forms."""

    sync = "sync"
    l1 = "l1"
    l2 = "l2"
    l3 = "l3"


@finishing
def command(
    file: Annotated[Path, typer.Argument(help="A PTO text file, in any form; - is stdin.")],
    to: Annotated[Level | None, typer.Option("--to", help="The form to convert to.")] = None,
    target: OnTarget = None,
    output: Annotated[Path | None, typer.Option("-o", help="Write here.")] = None,
    generic: Annotated[
        bool, typer.Option("--generic", help="Print the generic form of MLIR.")
    ] = False,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    as_json: AsJson = False,
    *,
    asked: Asked,
) -> None:
    """Print a program in another form: assembly lines, Level 1, 2 or 3.

    Level 3 is placed and ordered as far as the program leaves that open. Without `--to`, only what
    is asked for is done: `--place`, `--sync=insert`, or both.
    """
    program = load_program(file)
    chosen = asked.on(program.target(target, define))
    rules = profile(strict, release)
    complaints = program.check(chosen, asked.level, rules=rules, allow=allow or ())
    found = pass_or_refuse(complaints, strict)
    steps = asked.steps
    if to is None and asked.prints_text:
        to = Level.l3
    elif to is None and steps != OPEN:
        to, steps = Level.l3, steps.over(Steps(None if steps.sync == INSERT else False, KEEP))
    if to is not None:
        program = program.convert(
            to.value,
            chosen,
            rules=rules,
            allow=allow or (),
            place=steps.place,
            sync=steps.sync,
        )
    if generic:
        text = print_module(program.executable(chosen), generic=True)
    else:
        text = str(program)
    if output is None:
        answer(text, found=found, text=text)
    write_text(output, text)
    answer(found=found, file=str(output))
