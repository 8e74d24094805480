"""`ptokit emit FILE --cpp`: a program in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptokit.cli import Allow, Defines, OnTarget, Release, Strict, pass_or_refuse, profile
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.files import write_text
from ptokit.cli.sources import load_program
from ptokit.cli.steps import EnableInsertSync, Place, PtoLevel, Sync, steps


def command(
    file: Annotated[Path, typer.Argument(help="A PTO text file; - is standard input.")],
    cpp: Annotated[bool, typer.Option("--cpp", help="PTO C++ (the only output so far).")] = True,
    target: OnTarget = None,
    out: Annotated[Path | None, typer.Option("-o", help="Write here instead of printing.")] = None,
    place: Place = None,
    sync: Sync = None,
    enable_insert_sync: EnableInsertSync = False,
    pto_level: PtoLevel = None,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Write a program as PTO C++ for the real tool chain."""
    program = load_program(file)
    chosen = program.target(target, define)
    rules = profile(strict, release)
    found = pass_or_refuse(program.check(chosen, rules=rules, allow=allow or ()), strict)
    asked = steps(place, sync, enable_insert_sync, pto_level)
    source = program.cpp(chosen, rules=rules, allow=allow or (), place=asked.place, sync=asked.sync)
    if out is None:
        answer(source, found=found, text=source)
    write_text(out, source)
    answer(f"{out}: {len(source.splitlines())} lines", found=found, file=str(out))
