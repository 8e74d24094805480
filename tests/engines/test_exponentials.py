"""In short, with a table, every float has the exponential that it has at length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ptokit.base.dtypes import f32
from ptokit.engines.compiled import library as library_
from ptokit.engines.compiled.exponentials import completed
from ptokit.engines.compiled.host import host
from ptokit.engines.compiled.library import Library
from ptokit.engines.compiled.loops import Lines, pieces, pointwise
from ptokit.isa.expr import Arg
from ptokit.isa.numerics import exact

COUNT = 1 << 18  # floats at a time: what they and their results take stays in the caches


def exponentials(given: np.ndarray, found: np.ndarray) -> Callable[[], None]:
    """What computes the exponentials of one array into another, compiled as things are now."""
    library, arrays = Library(), (found, given)
    lines = Lines(np.zeros(1, np.int64), np.arange(COUNT, dtype=np.int64) * 4)
    (piece,) = pieces([lines, lines])
    kernel = pointwise(exact("exp", Arg(f32, "a")), ["out", "a"], [f32, f32], piece, [])
    words = [library.address(kernel), 0, *piece.extents, 0, 0, 1, 0]
    words[1] = len(words)
    stream = np.array(words, np.int64)
    bases = np.array([each.ctypes.data for each in arrays], np.int64)

    def compute() -> None:
        first = stream.ctypes.data
        library.run(first, first + stream.nbytes, bases.ctypes.data)

    return compute


@pytest.mark.skipif(
    (found := host()) is None or "+avx512dq" not in found.features,
    reason="without AVX-512 all exponentials are done at length",
)
def test_every_float_has_one_exponential(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is wrongly held to be sure is one of some thousand million: a bound of the
    error that was too small by half let two of them pass."""
    given, short, long = np.zeros((3, COUNT), np.float32)
    in_short = exponentials(given, short)
    monkeypatch.setattr(library_, "completed", lambda text, _: completed(text, ""))
    at_length = exponentials(given, long)
    bits, following = given.view(np.uint32), np.arange(COUNT, dtype=np.uint32)
    for first in range(0, 1 << 32, COUNT):
        np.add(following, np.uint32(first), out=bits)
        in_short()
        at_length()
        if not np.array_equal(short.view(np.uint32), long.view(np.uint32)):
            same = (short == long) | (np.isnan(short) & np.isnan(long))
            assert same.all(), (given[~same], short[~same], long[~same])
