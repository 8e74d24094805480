"""Tiles made in a loop and used in later rounds: a buffer for every round they live."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptokit import Kernel
from ptokit.base.diagnostics import ProgramError
from tests.passes import carried_kernels as k

X = np.random.default_rng(2).integers(-9, 9, (12, 8, 32)).astype(np.float32)


def neighbours(n: int) -> list[np.ndarray]:
    return [X[i] + X[i + 1] for i in range(n)]


def fibonacci(n: int) -> list[np.ndarray]:
    found = [X[0], X[1]]
    for _ in range(n):
        found.append(found[-2] + found[-1])
    return found[2:]


def nested(n: int) -> list[np.ndarray]:
    found = [X[0]]
    for j in range(n):
        found.append(X[j] + 2 * found[-1])
    return found[:-1]


def no_round(n: int) -> list[np.ndarray]:
    return [X[2] + (X[1] + X[:n].sum(0) if n else X[0])]


def loaded_once(n: int) -> list[np.ndarray]:
    return [*X[:n], X[9] + 1] if n else []


def run(kernel: Kernel, n: int, target: str, path: str) -> np.ndarray:
    y = np.zeros_like(X)
    check = {"check": "explore"} if path == "lowered" else {}
    kernel[1](X, y, n, target=target, path=path, **check)
    return y


@pytest.mark.parametrize("means", [neighbours, fibonacci, nested, no_round, loaded_once])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_every_round_has_its_own_tile(means: object, target: str, path: str, n: int) -> None:
    assert callable(means)
    wanted = means(n)
    got = run(getattr(k, means.__name__), n, target, path)
    for each, block in zip(wanted, got, strict=False):
        np.testing.assert_array_equal(block, each)


@pytest.mark.parametrize(("kernel", "buffers"), [(k.neighbours, 2), (k.fibonacci, 3)])
def test_there_are_as_many_buffers_as_rounds_it_lives(kernel: Kernel, buffers: int) -> None:
    """Besides those before the loop, and the sum of a round that no other one looks at."""
    text = kernel.text(X, X, 3)
    outside = {k.neighbours: 1, k.fibonacci: 2}[kernel]
    inside = {k.neighbours: 1, k.fibonacci: 0}[kernel]
    assert text.count("pto.alloc_tile") == outside + inside + buffers


@pytest.mark.parametrize(
    ("kernel", "why"),
    [(k.kept, "is kept for any number of rounds"), (k.sized, "has sizes or parameters of its own")],
)
def test_what_no_number_of_buffers_holds_is_refused(kernel: Kernel, why: str) -> None:
    with pytest.raises(ProgramError, match=why) as caught:
        kernel.lower(X, X, 3)
    (found,) = caught.value.diagnostics
    assert found.code == "place.carried"
    assert found.location is not None
    assert "here =" in Path(k.__file__).read_text().splitlines()[found.location.line - 1]
