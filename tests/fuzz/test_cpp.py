"""Random kernels as C++, compiled against our header, and back as text: the bytes stay the same."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ptokit import Kernel, loads
from ptokit.base.diagnostics import NotSupported, ProgramError
from ptokit.base.layout import Array
from tests.fuzz.doors import TARGETS, imported, judged
from tests.fuzz.programs import Program, random_program
from tests.native.support import compiled, needs_compiler


def written(seeds: range, folder: Path) -> Iterator[tuple[Program, Kernel, str]]:
    """The legal kernels of some seeds as C++, each under a name of its own."""
    for program in map(random_program, seeds):
        if program.mistake:
            continue
        kernel = imported(program, folder)
        try:
            text = kernel.cpp(*program.arguments(), target=TARGETS[program.seed % 2])
        except (NotSupported, ProgramError):
            continue  # refused, which the other tests look at
        yield program, kernel, re.sub(r"\b(launch_)?k(?=\(|<<<)", rf"\1k{program.seed}", text)


def agree(seeds: range, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = list(written(seeds, folder))
    assert len(made) > len(seeds) // 4
    for target in TARGETS:
        of_target = [each for each in made if TARGETS[each[0].seed % 2] == target]
        library = compiled([text for _, _, text in of_target], folder, target)
        for program, kernel, _ in of_target:
            wanted = judged(lambda *a, k=kernel, on=target: k[1](*a, target=on), program)
            if wanted.accepted:
                entry = library[f"k{program.seed}"]
                # Before those of the kernel: the base of its signals, where it has any.
                more = [None] * (len(entry.source.signature) - len(program.arguments()))
                got = judged(lambda *a, k=entry, more=more: k[1](*more, *a), program)
                assert got.left == wanted.left, (str(got), program.source)
                again = as_text(entry, more, program)
                if again is not None:
                    rerun = judged(lambda *a, k=again, more=more: k[1](*_bytes(more), *a), program)
                    assert rerun.left == wanted.left, (str(rerun), program.source)


def as_text(kernel: Kernel, more: list[None], program: Program) -> Kernel | None:
    """The kernel back as a text; None where what it does has none."""
    try:
        with warnings.catch_warnings(action="ignore"):
            text = kernel.text(*more, *program.arguments())
    except ProgramError as error:
        if not all(code.startswith("lower.") for code in error.codes):
            raise
        return None
    again = loads(text)
    assert str(again) == text
    return again.entry()


def _bytes(more: list[None]) -> list[Array]:
    """What a text takes in the place of a pointer to nothing."""
    return [np.zeros(8, np.uint8) for _ in more]


@needs_compiler
def test_compiled_kernels_leave_the_same_bytes(tmp_path: Path) -> None:
    agree(range(40), tmp_path)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("first", range(40, 1040, 100))
def test_compiled_kernels_for_long(first: int, tmp_path: Path) -> None:
    agree(range(first, first + 100), tmp_path)
