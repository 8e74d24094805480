"""A kernel is one thing, wherever it comes from: the same class, launch, run and questions."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import UsageError
from ptokit.kernels import Kernel, Launch, Run

GT = GlobalTensor[f32, Shape[1, 1, 1, 16, 16], BaseShape2D[f32, 16, 16, Layout.ND], Layout.ND]


@kernel(mode="auto")
def double(x, y):
    a, b = [Tile[TileType.Vec, f32, 16, 16]() for _ in range(2)]
    TLOAD(a, GT(x))
    TADD(b, a, a)
    TSTORE(GT(y), b)


X = np.arange(256, dtype="f4").reshape(16, 16)


def kernels() -> list[Kernel]:
    written = double.text(X, X)
    return [double, loads(written).entry()]


@pytest.mark.parametrize("made", kernels(), ids=["python", "text"])
def test_a_kernel_from_anywhere_answers_alike(made: Kernel) -> None:
    y = np.zeros_like(X)
    assert type(made) is Kernel
    assert type(made[1]) is Launch
    run = made[1](X, y, path="lowered")
    assert type(run) is Run
    assert (run.kernel, run.path, run.blocks) == ("double", "lowered", 1)
    assert np.array_equal(y, X + X)
    assert made.check("a2a3,a5", X, y)
    assert "TADD(" in made.cpp(X, y)
    assert len(made.memory_map(X, y).tiles) == 2
    assert "pto.tadd" in made.text(X, y, form="l2")
    assert made.lower(X, y).functions[0].name == "double"


def test_text_says_what_it_cannot_be_asked() -> None:
    _, made = kernels()
    with pytest.raises(UsageError, match="no option n"):
        made[1](X, X, n=3)
    with pytest.raises(UsageError, match="path is one of"):
        made[1](X, X, path="eager")
    with pytest.raises(UsageError, match="launch it"):
        made(X, X)
