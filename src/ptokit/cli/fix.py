"""`ptokit fix FILE`: the order that a program lacks, as a diff or written into the file.

The kernels of a Python file run with the arguments that they declare, are called with or list in
CASES; a text with those on the command line, or with arrays of ones. Every change is tried with all
checkers on, and kept only where it helps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ptokit.base.diagnostics import ProgramError, usage_error
from ptokit.base.files import write_text
from ptokit.cli import Allow, Defines, OnTarget, Release, Strict, amount, profile
from ptokit.cli.answer import AsJson, Exit, answer, echo, wants_json
from ptokit.cli.check import is_python, targets_of
from ptokit.cli.cpp_file import not_rewritten
from ptokit.cli.declared import Argument, Option, RunAsScript
from ptokit.cli.python_file import Job, check_python
from ptokit.cli.run import arguments
from ptokit.cli.sources import ARGUMENTS, is_cpp, read_own_text, shown_name
from ptokit.cli.verdicts import Rules
from ptokit.from_text import loads
from ptokit.isa.targets.defines import parse_defines
from ptokit.repair.search import Repair


def command(
    file: Annotated[Path, Argument(help="Python or PTO text; - is standard input.")],
    args: Annotated[
        list[str] | None,
        Argument(help=ARGUMENTS),
    ] = None,
    write: Annotated[
        bool, Option("--write", help="Change the file instead of printing a diff.")
    ] = False,
    entry: Annotated[str, Option("--entry", help="Of a text: the function to run.")] = "",
    grid: Annotated[int, Option("--grid", min=1, help="Of a text: number of blocks.")] = 1,
    run: RunAsScript = False,
    target: OnTarget = None,
    seconds: Annotated[float, Option("--seconds", min=0, help="Time for a Python file.")] = 120.0,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Repair races and flags without a partner; exit 1 when something remains."""
    if is_cpp(file):
        raise not_rewritten(file, "fix")
    name, text = shown_name(file), read_own_text(file)
    rules = Rules(rules=profile(strict, release), allow=tuple(allow or ()))
    overrides = parse_defines(define)
    if is_python(file, text):
        targets = tuple(targets_of(target or ""))
        job = Job(name, text, targets, overrides, rules, "fix", is_script=run)
        verdict = check_python(job, seconds)
        if verdict.repair is None:
            raise ProgramError(verdict.found)
        repair = verdict.repair
    else:
        program = loads(text, name)
        kernel = program[entry] if entry else program.entry()
        values = arguments(kernel, args) if args else []
        repair = kernel.fix(*values, grid=grid, target=target, defines=overrides, **rules)
    if write and repair.diff:
        if name != str(file):
            raise usage_error(
                "file", "standard input cannot be written to", fix="leave out --write"
            )
        write_text(file, repair.after)
    if not wants_json():  # beside the answer: a diff that is piped on stays one
        for line in (*(each.render() for each in repair.remaining), _summary(repair)):
            echo(line, err=True)
    answer(
        "" if write else repair.diff,
        found=repair.remaining,
        code=Exit.FOUND if repair.remaining else Exit.OK,
        diff=repair.diff,
        text=repair.after,
        remedies=[str(each) for each in repair.remedies],
    )


def _summary(repair: Repair) -> str:
    if not repair.found:
        return "nothing to repair"
    what = f"{amount(len(repair.found), 'finding')}, {amount(len(repair.remedies), 'repair')}"
    left = f"{len(repair.remaining)} left" if repair.remaining else "the check is silent now"
    return f"{what}: {left}"
