"""Random kernels as C++, compiled against our header: the bytes are those of the simulator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptokit import Kernel
from ptokit.base.diagnostics import NotSupported, ProgramError
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
        yield program, kernel, text.replace("void k(", f"void k{program.seed}(")


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


@needs_compiler
def test_compiled_kernels_leave_the_same_bytes(tmp_path: Path) -> None:
    agree(range(40), tmp_path)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("first", range(40, 1040, 100))
def test_compiled_kernels_for_long(first: int, tmp_path: Path) -> None:
    agree(range(first, first + 100), tmp_path)
