"""`ptokit asm FILE --to LEVEL`: convert a program between the text forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from ptokit.base.files import write_text
from ptokit.cli import Allow, Defines, OnTarget, Release, Strict, pass_or_refuse, profile
from ptokit.cli.answer import AsJson, answer, echo
from ptokit.cli.cpp_file import Blocks, CppCall, OneKernel, Recording, program_of
from ptokit.cli.declared import Argument, Option
from ptokit.cli.sources import is_cpp
from ptokit.cli.steps import Asked, finishing
from ptokit.frontend.policies import policy_for
from ptokit.ir.core import Module
from ptokit.ir.printer import print_module
from ptokit.passes.reduce_sync import count
from ptokit.passes.steps import KEEP, OPEN, Steps


class Level(StrEnum):
    """The text forms."""

    sync = "sync"
    l1 = "l1"
    l2 = "l2"
    l3 = "l3"


@finishing
def command(
    file: Annotated[Path, Argument(help="A PTO text file, in any form, or C++; - is stdin.")],
    args: Recording = None,
    entry: OneKernel = "",
    grid: Blocks = 1,
    to: Annotated[Level | None, Option("--to", help="The form to convert to.")] = None,
    target: OnTarget = None,
    output: Annotated[Path | None, Option("-o", help="Write here.")] = None,
    generic: Annotated[bool, Option("--generic", help="Print the generic form of MLIR.")] = False,
    verbose: Annotated[
        bool, Option("-v", help="Count the waits and barriers of each function (stderr).")
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
    is asked for is done: `--place`, `--sync=insert`, or both. A C++ kernel is run with its
    arguments, and printed as what it did.
    """
    is_text = not is_cpp(file)
    program = program_of(CppCall(file, entry, args or (), define or ()), target, grid)
    chosen = asked.on(program.target(target, define if is_text else None))
    rules = profile(strict, release)
    complaints = program.check(chosen, asked.level, rules=rules, allow=allow or ())
    found = pass_or_refuse(complaints, strict)
    steps = asked.steps
    if to is None and asked.prints_text:
        to = Level.l3
    elif to is None and steps != OPEN:
        to, steps = Level.l3, steps.over(Steps(False if steps.sync in (None, KEEP) else None, KEEP))
    written = program
    if to is not None:
        program = program.convert(
            to.value,
            chosen,
            rules=rules,
            allow=allow or (),
            place=steps.place,
            sync=steps.sync,
        )
    if verbose:
        policy = policy_for(program.module.location.file, rules, allow or ())
        every = written.finished(chosen, replace(steps, is_reduced=False), policy)
        for line in _counted(program.module, every):
            echo(line, err=True)
    if generic:
        text = print_module(program.executable(chosen), generic=True)
    else:
        text = str(program) if is_text else print_module(program.module, origins=True)
    if output is None:
        answer(text, found=found, text=text)
    write_text(output, text)
    answer(found=found, file=str(output))


def _counted(module: Module, every: Module) -> Iterator[str]:
    """What orders each function, and how much less that is than where nothing was left out."""
    for function in module.functions:
        whole = every.function(function.name)
        if function.body is not None and whole is not None:
            found = count(function)
            fewer = sum(count(whole)) - sum(found)
            more = f"; {fewer} more {'was' if fewer == 1 else 'were'} implied" if fewer > 0 else ""
            yield f"@{function.name}: {found}{more}"
