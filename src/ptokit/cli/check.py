"""`ptokit check FILE... --target a2a3,a5`: every rule of every target, on text.

With `--run` the program also runs, with every checker on, and each kind of fault gets a verdict.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import typer

from ptokit.base.diagnostics import Diagnostic, PtoError, unrepeated, usage_error
from ptokit.cli import Allow, Defines, Release, Strict, counted, profile
from ptokit.cli.run import arguments
from ptokit.from_text import load
from ptokit.isa.targets import target
from ptokit.isa.targets.defines import parse_defines
from ptokit.machine.codes import CODES


class Rules(TypedDict):
    """Which broken rules are errors, as every door takes it."""

    rules: str | None
    allow: tuple[str, ...]


def command(
    files: Annotated[list[Path], typer.Argument(help="PTO text files; with --run also examples.")],
    targets: Annotated[
        str,
        typer.Option("--target", help="Targets, with commas; default: what each file asks for."),
    ] = "",
    level: Annotated[
        int, typer.Option("--level", min=0, max=3, help="3: every tile needs an address.")
    ] = 0,
    run: Annotated[
        bool, typer.Option("--run", help="Run with all checkers on; a verdict per kind of fault.")
    ] = False,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", help="With --run FILE.pto: a number or .npy file per parameter."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print diagnostics as JSON.")] = False,
    define: Defines = None,
    strict: Strict = False,
    release: Release = False,
    allow: Allow = None,
) -> None:
    """Check programs against the rules; exit 1 when one breaks a rule."""
    names = [target(name).name for name in targets.split(",") if name]
    overrides = parse_defines(define)
    rules = Rules(rules=profile(strict, release), allow=tuple(allow or ()))
    found: list[Diagnostic] = []
    for path in files:
        if path.suffix != ".py":
            found += _check(path, names, level, overrides, rules)
        if run and not any(d.severity == "error" for d in found):
            found += _run(path, names, arg or [], overrides, rules)
    found = unrepeated(found)
    errors = sum(d.severity == "error" for d in found)
    if as_json:
        typer.echo(json.dumps([d.to_json() for d in found], indent=1))
    else:
        for diagnostic in found:
            typer.echo(diagnostic.render())
        if run:
            _verdicts(found)
        typer.echo(f"{len(files)} files, {counted(found)}")
    raise typer.Exit(1 if errors else 0)


def _verdicts(found: list[Diagnostic]) -> None:
    """One line per kind of fault: silent, or how often it was found."""
    counts = {code: sum(d.code == code for d in found) for code in CODES}
    for code, (meaning, _) in CODES.items():
        verdict = "ok" if not counts[code] else f"{counts[code]} found"
        typer.echo(f"{code:<4} {verdict:<9} {meaning.split('. ')[0].split(': ')[0].rstrip('.')}")


def _check(
    path: Path, names: list[str], level: int, overrides: dict[str, int], rules: Rules
) -> list[Diagnostic]:
    try:
        program = load(path)
    except PtoError as error:
        return list(error.diagnostics)
    merged: dict[Diagnostic, list[str]] = {}
    for name in names or [program.target().name]:
        for found in program.check(name, level, defines=overrides, **rules):
            merged.setdefault(replace(found, target=""), []).append(name)
    # The same complaint on several targets is shown once, with all of them.
    return [replace(d, target=", ".join(on)) for d, on in merged.items()]


def _run(
    path: Path, targets: list[str], words: list[str], overrides: dict[str, int], rules: Rules
) -> list[Diagnostic]:
    """Run a text, or an example with its cases, with all checkers on; every complaint."""
    if path.suffix == ".py":
        return _run_example(path, targets, overrides, rules)
    program = load(path)
    kernel = program.entry()
    found: list[Diagnostic] = []
    for name in targets or [program.target().name]:
        chosen = target(name, overrides)
        try:
            found += kernel[1](*arguments(kernel, words), target=chosen, **rules).warnings
        except PtoError as error:
            found += error.diagnostics
    return found


def _run_example(
    path: Path, targets: list[str], overrides: dict[str, int], rules: Rules
) -> list[Diagnostic]:
    """Run the kernels of a Python file that lists them as `CASES`."""
    found: list[Diagnostic] = []
    for case in _cases(path):
        for name in targets or case.targets:
            if name not in case.targets:
                continue
            values = list(case.inputs(np.random.default_rng(7)))
            chosen = target(name, overrides)
            try:
                run = case.kernel[case.blocks](*values, target=chosen, **rules, **case.consts)
                found += run.warnings
            except PtoError as error:
                found += error.diagnostics
    return found


def _cases(path: Path) -> list[Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.exists():
        raise usage_error("check.file", f"cannot read {path}")
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    cases = getattr(module, "CASES", None)
    if cases is None:
        raise usage_error(
            "check.cases",
            f"{path} has no list CASES",
            fix="see examples/harness.py for what a case is",
        )
    return list(cases)
