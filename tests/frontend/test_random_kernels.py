"""Random kernels leave the same bytes as they stand, lowered, from their text and in C++."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptokit import Kernel, loads
from tests.frontend.random_kernels import ROWS, module_of
from tests.native.support import compiled, has_compiler

X = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16) / 8
NUMBERS = (0, 1, 2, 5)


def outcome(program: Kernel, n: int, **options: object) -> np.ndarray:
    y = np.full_like(X, -7)
    program[1](X.copy(), y, n, **options)
    return y


def check(seeds: range, folder: Path) -> None:
    made = module_of(seeds, folder)
    kernels: list[Kernel] = [getattr(made, f"k{seed}") for seed in seeds]
    texts = [each.cpp(X, X, 1) for each in kernels]
    library = compiled(texts, folder) if has_compiler() else None
    for each in kernels:
        text = loads(each.text(X, X, 1)).entry()
        for n in NUMBERS:
            wanted = outcome(each, n)
            assert np.array_equal(wanted, outcome(each, n, path="lowered")), (each.name, n)
            assert np.array_equal(wanted, outcome(text, n)), (each.name, n)
            if library is not None and n in NUMBERS[::3]:  # every launch is a process
                y = np.full_like(X, -7)
                library[each.name][1](X.copy(), y, n)
                assert np.array_equal(wanted, y), (each.name, n)


@pytest.mark.parametrize("start", range(0, 24, 8))
def test_random_kernels_give_the_same_bytes_everywhere(start: int, tmp_path: Path) -> None:
    check(range(start, start + 8), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(24, 1024, 20))
def test_many_random_kernels(start: int, tmp_path: Path) -> None:
    check(range(start, start + 20), tmp_path)
