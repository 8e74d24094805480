"""`ptokit exec main.cpp kernel.cpp -- ARGS`: run a whole C++ program, with `main` and all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from ptokit.base.diagnostics import Diagnostic, rendered, usage_error
from ptokit.cli import Allow, OnTarget, Release, Strict, counted, profile
from ptokit.cli.answer import AsJson, Exit, answer, echo, wants_json
from ptokit.cli.declared import Argument, Option
from ptokit.cli.sources import is_cpp
from ptokit.from_python import CORES
from ptokit.frontend.launch import Options, Schedule
from ptokit.frontend.policies import policy_for
from ptokit.isa.targets import target as find_target
from ptokit.native.keeper import TIME_LIMIT
from ptokit.native.program import Program, Source, execute


def command(
    words: Annotated[
        list[str],
        Argument(metavar="SOURCE... [-- ARG...]", help="C++ files; its arguments after --."),
    ],
    include: Annotated[
        list[Path] | None, Option("-I", help="A folder of headers.", file_okay=False)
    ] = None,
    define: Annotated[list[str] | None, Option("-D", help="A macro: -D N=4.")] = None,
    core: Annotated[
        str,
        Option("--core", help="What runs the kernels: vector, cube, mix, single."),
    ] = "",
    target: OnTarget = None,
    schedule: Annotated[
        int | None,
        Option("--schedule", help="Seed of a random, repeatable order of cores and pipes."),
    ] = None,
    time_limit: Annotated[
        float,
        Option(
            "--time-limit", min=0.001, help="Seconds that a kernel may run without an instruction."
        ),
    ] = TIME_LIMIT,
    without_kernels: Annotated[
        bool,
        Option("--without-kernels", help="Launch nothing: a control of its own checks."),
    ] = False,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Compile and run a C++ program as it is; kernels it launches run on the simulator.

    The exit code is that of the program, or 1 where a launch has an error.
    """
    given = len(sys.argv) - sys.argv.index("--") - 1 if "--" in sys.argv else 0
    sources, args = words[: len(words) - given], words[len(words) - given :]
    for each in sources or ["nothing"]:
        if not is_cpp(Path(each)):
            raise usage_error(
                "program",
                f"{each} is no C++ source",
                fix="ptokit exec main.cpp kernel.cpp -- arguments of the program",
            )
    if core and core not in CORES:
        raise usage_error("kernel", f"core is one of {', '.join(CORES)}, not {core!r}")
    paths = [Path(each).resolve() for each in sources]
    program = Program(
        tuple(Source(path, "" if number == 0 else core) for number, path in enumerate(paths)),
        find_target(target or "a2a3"),
        tuple(define or ()),
        tuple(each.resolve() for each in include or ()),
    )
    policy = policy_for(str(paths[0]), profile(strict, release), allow or ())
    ran = execute(
        program,
        args,
        options=Options(schedule=Schedule(schedule), policy=policy),
        without_kernels=without_kernels,
        time_limit=time_limit,
        output=2 if wants_json() else None,  # the object is all that standard output has
        told=_say,
    )
    found = [each for _, each in ran.found]
    if found and not wants_json():
        echo(counted(found), err=True)
    failed = bool(ran.errors) or (strict and bool(found))
    answer(code=Exit.FOUND if failed else ran.code, found=found, program=ran.code, cases=ran.cases)


def _say(found: Diagnostic) -> None:
    if not wants_json():
        echo(rendered([found]), err=True)
