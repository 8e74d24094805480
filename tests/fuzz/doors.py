"""What each door says of a kernel: the bytes it leaves, or the codes it is refused with."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ptokit
from ptokit import Kernel
from ptokit.base.diagnostics import PtoError
from ptokit.isa.targets import target as find_target
from ptokit.passes.verify import Verify
from tests.fuzz.programs import Program, random_program


@dataclass(frozen=True)
class Verdict:
    """The contents of the arrays after a run, or the first complaint."""

    left: bytes = b""
    codes: frozenset[str] = frozenset()
    first: str = ""
    line: int = 0  # of the first complaint in the user's file; 0: in another one
    message: str = ""
    warned: frozenset[str] = frozenset()  # codes of the warnings of a run

    @property
    def accepted(self) -> bool:
        return not self.codes

    def __str__(self) -> str:
        return "runs" if self.accepted else f"refused, {self.message}"


def imported(program: Program, folder: Path) -> Kernel:
    """The kernel of a program, from a file: errors point to its lines."""
    path = folder / f"fuzz_{program.seed}.py"
    path.write_text(program.source, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[path.stem]
    return module.k


def judged(run: Callable[..., Any], program: Program) -> Verdict:
    """Run it on fresh arrays. Only errors about the program are verdicts; others are raised."""
    arguments = program.arguments()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = run(*arguments)
    except PtoError as error:
        first = error.diagnostics[0]
        where = first.location
        line = where.line if where and f"fuzz_{program.seed}" in where.file else 0
        return Verdict(b"", frozenset(error.codes), first.code, line, first.render())
    left = b"".join(np.asarray(a).tobytes() for a in arguments[:2])
    return Verdict(left, warned=frozenset(each.code for each in done.warnings))


FORMS = ("l1", "l2", "l3", "sync")
PYTHON = frozenset({"E15", "Event.pipe"})  # of flags and events, of which text has the rest only
NO_FORM = "convert-level"  # a form of the text cannot say it: no verdict on the kernel
TARGETS = ("a2a3", "a5")


def said_of_texts(text: str, target: str) -> frozenset[str]:
    """The errors that only the verifier of texts makes of a program.

    Its rules are those of the language; Python and C++ have no such ones (isa/language.py).
    """
    on = find_target(target)
    module = ptokit.loads(text).executable(on)
    errors = (
        {d.code for d in Verify(in_text=is_text).check(module, on) if d.severity == "error"}
        for is_text in (True, False)
    )
    return frozenset(next(errors) - next(errors))


def doors(kernel: Kernel, program: Program, target: str) -> Iterator[tuple[str, Verdict]]:
    """Every way in, eager first."""
    eager = judged(lambda *a: kernel[1](*a, target=target), program)
    yield "eager", eager
    yield "lowered", judged(lambda *a: kernel[1](*a, target=target, path="lowered"), program)
    forms = FORMS
    if program.mode == "manual" and (eager.warned or not eager.accepted):
        forms = ("l3",)  # in the others a compiler places and orders, which may mend the mistake
    for form in forms:
        texts: list[str] = []

        def through_text(*args: Any, form: str = form, texts: list[str] = texts) -> Any:
            texts.append(kernel.text(*args, target=target, form=form))
            loaded = ptokit.loads(texts[0])["k"]
            return loaded[1](*args, target=target, engine="stepwise")  # nothing is repeated

        verdict = judged(through_text, program)
        if texts and not verdict.accepted and verdict.codes <= said_of_texts(texts[0], target):
            continue  # no verdict on the kernel either
        # The addresses of a manual kernel are gone in these forms, and not all can be found again.
        unplaced = program.mode == "manual" and verdict.first.startswith("place.")
        if verdict.first != NO_FORM and not unplaced:
            yield form, verdict


@dataclass(frozen=True)
class Outcome:
    """What the doors said of the kernel of a seed."""

    program: Program
    target: str
    accepted: bool
    differences: tuple[str, ...]


def outcome(seed: int, folder: Path) -> Outcome:
    """What the doors say of a random kernel."""
    return compared(random_program(seed), folder)


def compared(program: Program, folder: Path) -> Outcome:
    """All doors must accept or refuse, with equal codes and warnings, and leave equal bytes."""
    target = TARGETS[program.seed % len(TARGETS)]
    found: list[str] = []
    said = dict(doors(imported(program, folder), program, target))
    eager = said.pop("eager")
    for door, verdict in said.items():
        if verdict.accepted and eager.accepted:
            if verdict.left != eager.left:
                found.append(f"{door}: other bytes than eager")
            said_of = PYTHON if door in FORMS else frozenset[str]()
            if verdict.warned != eager.warned - said_of:
                warned = [", ".join(sorted(v.warned)) or "nothing" for v in (verdict, eager)]
                found.append(f"{door}: warns of {warned[0]}; eager: of {warned[1]}")
        elif eager.first not in verdict.codes:
            found.append(f"{door}: {verdict}; eager: {eager}")
        elif door == "lowered" and not verdict.line:
            found.append(f"{door}: not at a line of the kernel: {verdict}")
    return Outcome(program, target, eager.accepted, tuple(found))
