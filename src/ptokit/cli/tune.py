"""`ptokit tune FILE`: try the constants that kernels declare, and rank them by predicted time.

Constants of a kernel are tried launch by launch. One at the top of the file is part of all of them:
the file is run anew for each of its values, and what is ranked is the time of all its launches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from ptokit.base.diagnostics import usage_error
from ptokit.base.files import write_text
from ptokit.cli import Allow, OnTarget
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.check import is_python
from ptokit.cli.declared import Argument, Option
from ptokit.cli.launches import Asked, Call
from ptokit.cli.module_constants import constants_of, declared_choices
from ptokit.cli.sources import read_text
from ptokit.cli.spreading import Cluster, HowMany, Resume, TaskSeconds, executor
from ptokit.kernels.launch import unheard
from ptokit.kernels.sending import Sent, timed
from ptokit.tasks import Executor, Work, progress
from ptokit.timing.params import load
from ptokit.timing.tuning import Trial, Tries, Tuned, settings, sweep, trial


def command(
    file: Annotated[Path, Argument(help="A Python file that launches its kernels.")],
    entry: Annotated[str, Option("--entry", "--kernel", help="The kernel.")] = "",
    choices: Annotated[
        list[str] | None,
        Option("--set", help="NAME=VALUE,VALUE: values of a constant; else as declared."),
    ] = None,
    output: Annotated[
        Path | None, Option("-o", "--output", help="Where the result is kept.")
    ] = None,
    jobs: HowMany = "1",
    cluster: Cluster = "",
    task_seconds: TaskSeconds = None,
    resume: Resume = False,
    check: Annotated[
        bool, Option("--check/--no-check", help="Run each setting, and discard races.")
    ] = True,
    target: OnTarget = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Try the constants of the kernels of a Python file; what is kept is not tried again."""
    text = read_text(file)
    if not is_python(file, text):
        raise usage_error("tune", "tune takes Python files: a text has no constants to choose")
    over = dict(choice(word, "--set") for word in choices or ())
    spread = executor(jobs, cluster, task_seconds)
    place = output or file.with_suffix(".tune.json")
    found: list[Tuned] = []
    seen: set[Any] = set()
    asked = Asked(file, entry=entry, target=target, past_errors=True)
    calls = asked.calls()
    at_the_top = _constants_of_the_file(text, over, calls)
    if at_the_top:
        known = Tuned.read(place) if place.exists() else None
        how: dict[str, Any] = {"check": check, "jobs": spread, "known": known, "resume": resume}
        found.append(_swept(asked, calls, at_the_top, over, allow=tuple(allow or ()), **how))
    for call in () if at_the_top else calls:
        swept = {**call.kernel.choices, **over}
        key = call.kernel.name, call.blocks, tuple(str(getattr(a, "shape", a)) for a in call.args)
        if key in seen or (not entry and not call.kernel.choices and not over):
            continue
        seen.add(key)
        fixed = {name: value for name, value in call.options.items() if name not in swept}
        known = Tuned.read(place) if place.exists() and not found else None
        how = {"over": over, "jobs": spread, "check": check, "known": known, "resume": resume}
        allowed = tuple(allow or ())
        found.append(call.kernel.tune(call.blocks, call.args, **how, allow=allowed, **fixed))
    if not found:
        raise usage_error(
            "tune",
            f"{file} launches no kernel with constants to choose",
            fix="declare values after *: def k(x, *, tile: Literal[64, 128] = 64), or at the top: "
            "TILE: Literal[64, 128] = 64; or give some: --set TILE=64,128",
        )
    paths = [place, *(place.with_name(f"{each.kernel}.{place.name}") for each in found[1:])]
    for path, each in zip(paths, found, strict=True):
        write_text(path, each.text)
    lines = [str(each) for each in found]
    kept = f"kept in {', '.join(map(str, paths))}"
    answer("\n\n".join([*lines, kept]), tuned=[each.as_dict() for each in found])


def _constants_of_the_file(
    text: str, over: Mapping[str, Sequence[Any]], calls: Sequence[Call]
) -> dict[str, Sequence[Any]]:
    """Constants at the top of the file that are to be tried, with their values."""
    given = {name: over[name] for name in over if name in constants_of(text)}
    found: dict[str, Sequence[Any]] = {**declared_choices(text), **given}
    of_kernels = {name for call in calls for name in (*call.kernel.choices, *call.options)}
    return {name: values for name, values in found.items() if name not in of_kernels}


def _swept(
    asked: Asked,
    calls: Sequence[Call],
    at_the_top: Mapping[str, Sequence[Any]],
    over: Mapping[str, Sequence[Any]],
    *,
    check: bool,
    jobs: Executor,
    allow: tuple[str, ...],
    known: Tuned | None,
    resume: bool,
) -> Tuned:
    """Every setting of the file's constants, together with those of its kernels."""
    of_kernels = {name: v for call in calls for name, v in call.kernel.choices.items()}
    of_kernels |= {name: v for name, v in over.items() if name not in at_the_top}
    wanted = list(settings({**at_the_top, **of_kernels}))

    def launched(setting: Mapping[str, Any]) -> Iterator[Call]:
        constants = {name: setting[name] for name in at_the_top}
        own = {name: setting[name] for name in of_kernels}
        for call in replace(asked, constants=constants, past_errors=False).calls():
            yield replace(call, options={**call.options, **own, "allow": allow})

    def attempt(setting: Mapping[str, Any]) -> Trial:
        return trial(
            setting,
            lambda: sum(
                call.kernel.checked_us(call.blocks, call.args, check, **call.options)
                for call in launched(setting)
            ),
        )

    def sent(setting: Mapping[str, Any]) -> list[Sent]:
        return [
            call.kernel[call.blocks].sent(tuple(call.args), call.options)
            for call in launched(setting)
        ]

    names = sorted({call.kernel.name for call in calls})
    targets = {call.kernel.programs.target(asked.target).name for call in calls}
    numbers = sorted((name, load(name).digest) for name in targets)
    about = repr((read_text(asked.file), asked.entry, numbers, check, allow))
    digest = sha256(about.encode()).hexdigest()[:16]
    with progress(len(wanted), "settings", 2) as done:
        told = done or unheard
        tries = Tries(attempt, sent, Work(timed, (check,)))
        how: dict[str, Any] = {"executor": jobs, "known": known, "resume": resume, "done": told}
        return sweep(", ".join(names), digest, wanted, tries, **how)


def choice(word: str, option: str) -> tuple[str, Sequence[Any]]:
    """A constant and its values, from a word of the command line."""
    name, is_given, values = word.partition("=")
    if not is_given or not name.isidentifier() or not values:
        raise usage_error(
            "arguments",
            f"{option} takes NAME=VALUE,VALUE, not {word!r}",
            fix=f"{option} tile=64,128",
        )
    return name, [_value(each) for each in values.split(",")]


def _value(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word
