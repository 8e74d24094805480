"""Products of few rows or columns: the order of their sums is that of all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.replay import Replay

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

M, N, K = 16, 32, 128


def boxed(rows: int, cols: int, valid: tuple[int, int]) -> Any:
    return Tile[TileType.Mat, float32, rows, cols, BLayout.ColMajor, *valid, SLayout.RowMajor]


@kernel(mode="auto")
def product(a: Any, b: Any, c: Any, *, m: int, n: int) -> None:
    a_l1, b_l1 = boxed(M, K, (m, K))(), boxed(K, N, (K, n))()
    left, right = TileLeft[float32, M, K, m, K](), TileRight[float32, K, N, K, n]()
    acc = TileAcc[float32, M, N, m, n]()
    TLOAD(a_l1, GlobalTensor(a))
    TLOAD(b_l1, GlobalTensor(b))
    TMOV(left, a_l1)
    TMOV(right, b_l1)
    TMATMUL(acc, left, right)
    TSTORE(GlobalTensor(c), acc)


SIZES = [(16, 16), (16, 4), (16, 20), (5, 1), (2, 24), (1, 16), (1, 3)]


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_few_rows_and_columns_are_summed_as_many_are(m: int, n: int) -> None:
    """A library that multiplies matrices has ways of its own for vectors and for tails."""
    rng = np.random.default_rng(m * 100 + n)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, K), (K, n)))

    def launched(engine: str) -> bytes:
        c = np.zeros((m, n), np.float32)
        product[1](a, b, c, engine=engine, m=m, n=n)
        return c.tobytes()

    found = [launched("fast") for _ in range(2)]
    (known,) = product.programs.memory.replays
    assert isinstance(known, Replay)
    assert not known.bodies
    product.programs.memory.replays.clear()
    assert found == [launched("stepwise")] * 2
    np.testing.assert_allclose(np.frombuffer(found[0], "f4").reshape(m, n), a @ b, atol=1e-4)
