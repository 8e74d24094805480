"""`ptokit emit FILE --cpp`: a program in another language."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from ptokit.base.diagnostics import usage_error
from ptokit.base.files import write_text
from ptokit.cli import Allow, Defines, OnTarget, Release, Strict, pass_or_refuse, profile
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.cpp_file import Blocks, CppCall, OneKernel, Recording, program_of
from ptokit.cli.declared import Argument, Option
from ptokit.cli.sources import is_cpp
from ptokit.cli.steps import Asked, BackEnd, finishing


@finishing
def command(
    file: Annotated[Path, Argument(help="A PTO text file, or C++; - is standard input.")],
    args: Recording = None,
    entry: OneKernel = "",
    grid: Blocks = 1,
    cpp: Annotated[bool, Option("--cpp", help="PTO C++ (the only output so far).")] = True,
    target: OnTarget = None,
    out: Annotated[Path | None, Option("-o", help="Write here instead of printing.")] = None,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    guard_sync: Annotated[
        bool,
        Option("--guard-sync", help="Put what orders the pipes under #ifndef __PTO_AUTO__."),
    ] = False,
    as_json: AsJson = False,
    *,
    asked: Asked,
) -> None:
    """Write a program as PTO C++ for the real tool chain; of C++, what a run of it did."""
    is_text = not is_cpp(file)
    program = program_of(CppCall(file, entry, args or (), define or ()), target, grid)
    chosen = asked.on(program.target(target, define if is_text else None))
    rules = profile(strict, release)
    if asked.backend != BackEnd.emitc and not asked.prints_text:
        raise usage_error("steps", "there is no --pto-backend=vpto here: C++ is what is emitted")
    complaints = program.check(chosen, asked.level, rules=rules, allow=allow or ())
    found = pass_or_refuse(complaints, strict)
    write = partial(program.cpp, guard_sync=guard_sync)
    if asked.prints_text:
        write = partial(program.convert, "l3")
    source = str(
        write(
            chosen,
            rules=rules,
            allow=allow or (),
            place=asked.steps.place,
            sync=asked.steps.sync,
        )
    )
    if out is None:
        answer(source, found=found, text=source)
    write_text(out, source)
    answer(f"{out}: {len(source.splitlines())} lines", found=found, file=str(out))
