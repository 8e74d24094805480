"""Random kernels as C++, compiled for the host: the bytes are those of the simulator."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ptokit import Kernel
from ptokit.base.diagnostics import NotSupported, ProgramError
from tests.emit.host import COMPILER, compiled
from tests.fuzz.doors import TARGETS, imported, judged
from tests.fuzz.programs import Program, random_program

CUBE = ("Mat()", "TPipe")  # what the stand-in for the instruction set does not have


def written(seeds: range, folder: Path) -> Iterator[tuple[Program, Kernel, str]]:
    """The legal kernels of some seeds as C++, each under a name of its own."""
    for program in map(random_program, seeds):
        if program.mistake or any(word in program.source.partition("@kernel")[2] for word in CUBE):
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
    library = compiled([text for _, _, text in made], folder)
    assert library is not None
    for program, kernel, _ in made:
        target = TARGETS[program.seed % 2]
        wanted = judged(lambda *a, k=kernel, on=target: k[1](*a, target=on), program)
        if not wanted.accepted:
            continue
        x, y, number, ring = program.arguments()
        arrays = [ctypes.c_void_p(each.ctypes.data) for each in (x, y, ring)]
        entry = getattr(library, f"k{program.seed}")
        entry(arrays[0], arrays[1], ctypes.c_int64(number), arrays[2])
        assert b"".join(np.asarray(a).tobytes() for a in (x, y)) == wanted.left, program.source


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler at hand")
def test_compiled_kernels_leave_the_same_bytes(tmp_path: Path) -> None:
    agree(range(80), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler at hand")
@pytest.mark.parametrize("first", range(80, 1080, 100))
def test_compiled_kernels_for_long(first: int, tmp_path: Path) -> None:
    agree(range(first, first + 100), tmp_path)
