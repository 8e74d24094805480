"""`ptokit check FILE... --target a2a3,a5`: one verdict per file, of Python or of PTO text.

The kernels of a Python file are checked for the arguments they declare and run with every checker
on. A text is checked against every rule; with `--run` and its arguments it runs as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from ptokit.base.diagnostics import Diagnostic, PtoError, UsageError, rendered, unrepeated
from ptokit.cli import Allow, Defines, Release, Strict, amount, counted, profile
from ptokit.cli.answer import AsJson, Exit, answer
from ptokit.cli.files import write_text
from ptokit.cli.python_file import Checked, Job, Rules, check_python, no_kernel
from ptokit.cli.run import arguments
from ptokit.cli.sources import read_text, shown_name
from ptokit.from_text import Program, loads
from ptokit.isa.devices import TARGETS as DEVICES
from ptokit.isa.targets import target
from ptokit.isa.targets.defines import parse_defines
from ptokit.machine.codes import CODES
from ptokit.report.sarif import sarif

_IMPORT = re.compile(r"^\s*(import|from)\s+\w", re.MULTILINE)


def command(
    files: Annotated[
        list[Path], typer.Argument(help="Files of Python or PTO text; - is standard input.")
    ],
    targets: Annotated[
        str,
        typer.Option("--target", help="Targets, with commas, or all; default: what a file is for."),
    ] = "",
    level: Annotated[
        int, typer.Option("--level", min=0, max=3, help="3: every tile needs an address.")
    ] = 0,
    run: Annotated[
        bool, typer.Option("--run", help="Run a text too, and say a verdict per kind of fault.")
    ] = False,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", help="With --run FILE.pto: a number or .npy file per parameter."),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, help="Time for each file that runs.")
    ] = 60.0,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
    sarif_file: Annotated[
        Path | None, typer.Option("--sarif", help="Write the findings here as SARIF, for reviews.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check programs against the rules; exit 1 when one breaks a rule or cannot be checked."""
    names = targets_of(targets)
    overrides = parse_defines(define)
    rules = Rules(rules=profile(strict, release), allow=tuple(allow or ()))
    found: list[Diagnostic] = []
    checked: list[tuple[str, Checked]] = []
    runs = 0
    for path in files:
        name, text = shown_name(path), read_text(path)
        if is_python(path, text):
            verdict = check_python(Job(name, text, tuple(names), overrides, rules), seconds)
            complaints, kernels = verdict.found, verdict.checked
            runs += len(kernels)
        else:
            complaints, kernels = _check_text(path, text, names, level, overrides, rules)
            if run and not _errors(complaints):
                program = loads(text, name)
                complaints += _run_text(program, names, arg or [], overrides, rules, seconds)
                runs += 1
        found += unrepeated(_merged(complaints))
        checked += [(name, each) for each in kernels]
    if sarif_file is not None:
        report = json.dumps(sarif(found, version("ptokit")), indent=1)
        write_text(sarif_file, report + "\n")
    lines = [rendered(found)] if found else []
    lines += _table(checked)
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
    if words == "all":
        return list(DEVICES)
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
    counts = {code: sum(d.code == code for d in found) for code in CODES}
    lines: list[str] = []
    for code, (meaning, _) in CODES.items():
        verdict = "ok" if not counts[code] else f"{counts[code]} found"
        said = re.split(r"[.:;] | \(|, where", meaning)[0].rstrip(".")
        lines.append(f"{code:<4} {verdict:<9} {said}")
    return lines


def _check_text(
    path: Path, text: str, names: list[str], level: int, overrides: dict[str, int], rules: Rules
) -> tuple[list[Diagnostic], list[Checked]]:
    try:
        program = loads(text, shown_name(path))
    except PtoError as error:
        return list(error.diagnostics), []
    if not program.module.functions:
        return [no_kernel(shown_name(path), "a program consists of functions: func.func @name")], []
    found: list[Diagnostic] = []
    checked: list[Checked] = []
    for name in names or [program.target().name]:
        complaints = program.check(name, level, defines=overrides, **rules)
        found += complaints
        for kernel in program.kernels:
            checked.append(Checked(kernel, name, _errors(complaints)))
    return found, checked


def _run_text(
    program: Program,
    names: list[str],
    words: list[str],
    overrides: dict[str, int],
    rules: Rules,
    seconds: float,
) -> list[Diagnostic]:
    """Run a text with all checkers on; every complaint."""
    kernel = program.entry()
    found: list[Diagnostic] = []
    for name in names or [program.target().name]:
        values = arguments(kernel, words, "--arg ")
        try:
            on = target(name, overrides)
            found += kernel[1](*values, target=on, max_seconds=seconds or None, **rules).warnings
        except UsageError:
            raise
        except PtoError as error:
            found += error.diagnostics
    return found
