"""`ptokit explore FILE`: run the kernels of a file under many schedules and compare the results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ptokit.base.diagnostics import Diagnostic, rendered
from ptokit.cli import Allow, Defines, OnTarget, Release, Strict, profile
from ptokit.cli.answer import AsJson, Exit, answer
from ptokit.cli.check import is_python, targets_of
from ptokit.cli.cpp_file import CppCall
from ptokit.cli.declared import Argument, Option, RunAsScript
from ptokit.cli.python_file import Explored, Job, check_python
from ptokit.cli.run import arguments
from ptokit.cli.sources import ARGUMENTS, is_cpp, read_text, refuse_words, shown_name
from ptokit.cli.spreading import Cluster, HowMany, Resume, TaskSeconds, executor
from ptokit.cli.verdicts import Rules
from ptokit.from_text import loads
from ptokit.isa.targets.defines import parse_defines


def command(
    file: Annotated[Path, Argument(help="Python, PTO text or C++; - is standard input.")],
    args: Annotated[
        list[str] | None,
        Argument(help=ARGUMENTS),
    ] = None,
    schedules: Annotated[
        int, Option("--schedules", min=1, help="How many are tried at most.")
    ] = 500,
    jobs: HowMany = "1",
    cluster: Cluster = "",
    task_seconds: TaskSeconds = None,
    resume: Resume = False,
    entry: Annotated[str, Option("--entry", "--kernel", help="The function to run.")] = "",
    grid: Annotated[int, Option("--grid", min=1, help="Number of blocks.")] = 1,
    run: RunAsScript = False,
    target: OnTarget = None,
    seconds: Annotated[float, Option("--seconds", min=0, help="Time for a Python file.")] = 600.0,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Look for schedules that change the result; exit 1 when there is one."""
    name, text = shown_name(file), read_text(file)
    rules = Rules(rules=profile(strict, release), allow=tuple(allow or ()))
    overrides = parse_defines([] if is_cpp(file) else define)
    spread = executor(jobs, cluster, task_seconds)
    if is_python(file, text):
        refuse_words(file, args or ())
        targets = tuple(targets_of(target or ""))
        how = "explore", schedules, spread, resume, run
        job = Job(name, text, targets, overrides, rules, *how)
        verdict = check_python(job, seconds)
        found, explored = verdict.found, verdict.explored
    else:
        if is_cpp(file):
            call = CppCall(file, entry, args or (), define or ())
            kernel = call.kernel(target)
            on, values = kernel.source.target, call.values(kernel)
        else:
            program = loads(text, name)
            kernel = program[entry] if entry else program.entry()
            on = program.target(target, overrides)
            values = arguments(kernel, args) if args else kernel.source.sampled()[0]
        seen = kernel[grid].explore(
            *values, schedules=schedules, jobs=spread, resume=resume, target=on, **rules
        )
        found: list[Diagnostic] = list(seen.found)
        said = Explored(kernel.name, on.name, str(seen), seen.count, seen.is_complete)
        explored = [said]
    lines = [rendered(found)] if found else []
    lines += [f"{each.kernel} on {each.target}: {each.verdict}" for each in explored]
    answer(
        "\n".join(lines),
        found=found,
        code=Exit.FOUND if found else Exit.OK,
        explored=[vars(each) for each in explored],
    )
