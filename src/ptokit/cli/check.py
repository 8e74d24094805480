"""`ptokit check FILE... --target a2a3,a5`: one verdict per file, of Python, PTO text or C++.

The kernels of a Python file are checked for the arguments they declare and run with every checker
on. A text is checked against every rule; with `--run` and its arguments it runs as well. A C++
kernel always runs, with the arguments that it is given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from ptokit.base.diagnostics import (
    Diagnostic,
    PtoError,
    UsageError,
    rendered,
    unrepeated,
    usage_error,
)
from ptokit.base.files import write_text
from ptokit.base.patterns import regex
from ptokit.base.starting import uncollected
from ptokit.cli import (
    Allow,
    Defines,
    Release,
    Strict,
    amount,
    counted,
    offered_targets,
    profile,
)
from ptokit.cli.answer import AsJson, Exit, answer
from ptokit.cli.declared import Argument, Option
from ptokit.cli.sources import ARGUMENTS, is_cpp, read_text, shown_name
from ptokit.cli.steps import Asked, finishing
from ptokit.cli.verdicts import Checked, Rules, no_kernel
from ptokit.ir.retired import DIALECTS
from ptokit.ir.sections import sections

_IMPORT = regex(r"^\s*(import|from)\s+\w", re.MULTILINE)


@finishing
def command(
    files: Annotated[
        list[Path], Argument(help="Files of Python, PTO text or C++; - is standard input.")
    ],
    targets: Annotated[
        str,
        Option(
            "--target",
            "--pto-arch",
            help="Targets, with commas, or all; default: what a file is for.",
            autocompletion=offered_targets,
        ),
    ] = "",
    level: Annotated[
        int, Option("--level", min=0, max=3, help="3: every tile needs an address.")
    ] = 0,
    run: Annotated[
        bool, Option("--run", help="Run a text too, or a Python file as a script.")
    ] = False,
    arg: Annotated[
        list[str] | None,
        Option("--arg", help=f"With --run FILE.pto, or FILE.cpp: {ARGUMENTS.lower()}"),
    ] = None,
    entry: Annotated[str, Option("--entry", "--kernel", help="Of C++: the kernel to check.")] = "",
    grid: Annotated[int, Option("--grid", min=1, help="Of C++: number of blocks.")] = 1,
    seconds: Annotated[
        float, Option("--seconds", min=0, help="Time for each file that runs.")
    ] = 60.0,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    sarif_file: Annotated[
        Path | None, Option("--sarif", help="Write the findings here as SARIF, for reviews.")
    ] = None,
    dialect: Annotated[
        str, Option("--dialect", help=f"The language of texts: {' or '.join(DIALECTS)}.")
    ] = "",
    verbose: Annotated[
        bool, Option("-v", help="Say what each text is taken for: dialect, level, target.")
    ] = False,
    as_json: AsJson = False,
    *,
    asked: Asked,
) -> None:
    """Check programs against the rules; exit 1 when one breaks a rule or cannot be checked."""
    names = targets_of(targets)
    if asked.only_a5 and names:
        from ptokit.isa.targets import target

        for name in names:
            asked.on(target(name))
    if dialect and dialect not in DIALECTS:
        raise usage_error("dialect", f"there is no dialect {dialect!r}", fix=" or ".join(DIALECTS))
    overrides: dict[str, int] = {}
    if define and not any(map(is_cpp, files)):
        from ptokit.isa.targets.defines import parse_defines

        overrides = parse_defines(define)
    rules = Rules(rules=profile(strict, release), allow=tuple(allow or ()))
    options: dict[str, Any] = {
        "level": asked.level or level,
        "defines": overrides,
        "sync": asked.steps.sync,
        "dialect": dialect,
        **rules,
    }
    found: list[Diagnostic] = []
    said: list[str] = []
    checked: list[tuple[str, Checked]] = []
    runs = 0
    for path in files:
        name, text = shown_name(path), read_text(path)
        if is_python(path, text):  # what a text does not need is loaded here
            from ptokit.cli.python_file import Job, check_python

            if len(files) > 1:  # each of them runs in a copy of this process: once for all
                with uncollected(for_good=True):
                    import_module("ptokit.cli.examining")
            job = Job(name, text, tuple(names), overrides, rules, is_script=run)
            verdict = check_python(job, seconds)
            complaints, kernels = verdict.found, verdict.checked
            runs += len(kernels)
        elif is_cpp(path):
            from ptokit.cli.cpp_file import CppCall, check_cpp

            call = CppCall(path, entry, arg or (), define or (), "--arg ")
            complaints, kernels = check_cpp(call, names, grid, rules, seconds)
            runs += len(kernels)
        else:
            complaints, kernels = [], []
            for part in sections(text).values():
                wrong, seen, taken_for = _check_text(path, part, names, asked, options)
                said += [f"{name}: {taken_for}"] if verbose and taken_for else []
                if run and not _errors(wrong):
                    wrong += _run_text(part, name, names, arg or [], overrides, rules, seconds)
                    runs += 1
                complaints += wrong
                kernels += seen
        found += unrepeated(_merged(complaints))
        checked += [(name, each) for each in kernels]
    if sarif_file is not None:
        from importlib.metadata import version

        from ptokit.report.sarif import sarif

        report = json.dumps(sarif(found, version("ptokit")), indent=1)
        write_text(sarif_file, report + "\n")
    lines = [rendered(found)] if found else []
    lines += said + _table(checked)
    if run and runs:
        lines += _verdicts(found)
    lines.append(f"{amount(len(files), 'file')}, {counted(found)}")
    answer(
        "\n".join(lines),
        found=found,
        code=Exit.FOUND if strict and found else None,
        checked=[{"file": name, **vars(each)} for name, each in checked],
    )


def targets_of(words: str) -> list[str]:
    """Names of targets with commas between them; `all` stands for every device."""
    if not words:  # then nothing of devices is loaded here
        return []
    from ptokit.isa.devices import TARGETS
    from ptokit.isa.targets import target

    if words == "all":
        return list(TARGETS)
    return [target(name).name for name in words.split(",") if name]


def is_python(path: Path, text: str) -> bool:
    """By its name; from standard input a text that imports something is Python."""
    return path.suffix == ".py" or (str(path) == "-" and _IMPORT.search(text) is not None)


def _errors(found: Iterable[Diagnostic]) -> int:
    return sum(d.severity == "error" for d in found)


def _merged(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The same complaint on several targets is shown once, with all of them."""
    merged: dict[Diagnostic, list[str]] = {}
    for each in found:
        merged.setdefault(replace(each, target=""), []).append(each.target)
    return [
        replace(d, target=", ".join(dict.fromkeys(filter(None, on)))) for d, on in merged.items()
    ]


def _table(checked: list[tuple[str, Checked]]) -> list[str]:
    """A line per kernel: where it was checked, and where something is wrong."""
    kernels: dict[tuple[str, str], dict[str, int]] = {}
    for name, each in checked:
        on = kernels.setdefault((name, each.kernel), {})
        on[each.target] = on.get(each.target, 0) + each.errors
    return [
        f"{name}: {kernel}: "
        + ", ".join(f"{on} {amount(n, 'error') if n else 'ok'}" for on, n in targets.items())
        for (name, kernel), targets in kernels.items()
    ]


def _verdicts(found: list[Diagnostic]) -> list[str]:
    """One line per kind of fault: silent, or how often it was found."""
    from ptokit.machine.codes import CODES

    counts = {code: sum(d.code == code for d in found) for code in CODES}
    lines: list[str] = []
    for code, (meaning, _) in CODES.items():
        verdict = "ok" if not counts[code] else f"{counts[code]} found"
        said = re.split(r"[.:;] | \(|, where", meaning)[0].rstrip(".")
        lines.append(f"{code:<4} {verdict:<9} {said}")
    return lines


def _check_text(
    path: Path,
    text: str,
    names: list[str],
    asked: Asked,
    options: Mapping[str, Any],
) -> tuple[list[Diagnostic], list[Checked], str]:
    """What is wrong with a text, its kernels, and what it is taken for."""
    with uncollected(for_good=True):
        from ptokit.from_text import loads  # which a file of Python does not need

    name = shown_name(path)
    try:
        program = loads(text, name)
    except PtoError as error:
        return list(error.diagnostics), [], ""
    if not program.module.functions:
        return [no_kernel(name, "a program consists of functions: func.func @name")], [], ""
    found: list[Diagnostic] = []
    checked: list[Checked] = []
    targets = names or [asked.on(program.target()).name]
    for on in targets:
        complaints = program.check(on, **options)
        found += complaints
        for kernel in program.kernels:
            checked.append(Checked(kernel, on, _errors(complaints)))
    level = f"{asked.level}" if asked.level else program.level
    return found, checked, f"dialect {program.dialect}, level {level}, for {', '.join(targets)}"


def _run_text(
    text: str,
    name: str,
    names: list[str],
    words: list[str],
    overrides: dict[str, int],
    rules: Rules,
    seconds: float,
) -> list[Diagnostic]:
    """Run a text with all checkers on; every complaint."""
    from ptokit.cli.run import arguments
    from ptokit.from_text import loads
    from ptokit.isa.targets import target

    program = loads(text, name)
    kernel = program.entry()
    found: list[Diagnostic] = []
    for each in names or [program.target().name]:
        values = arguments(kernel, words, "--arg ")
        try:
            on = target(each, overrides)
            found += kernel[1](*values, target=on, max_seconds=seconds or None, **rules).warnings
        except UsageError:
            raise
        except PtoError as error:
            found += error.diagnostics
    return found
