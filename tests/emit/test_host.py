"""The C++ of every construct, compiled for the host and run: the bytes are those of the kernel."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ptokit.base.diagnostics import NotSupported
from tests.emit.host import compiled
from tests.frontend.constructs import COLS, CONSTRUCTS, ROWS, Construct

X = ((np.arange(ROWS * COLS).reshape(ROWS, COLS) * 7 % 23) / 3.7).astype(np.float32)
RUNS = {name: each for name, each in CONSTRUCTS.items() if not each.refused}
# Tiles that change places and have run-time sizes, or no address until they are bound.
UNWRITTEN = {"swapped_valid_sizes", "assigned_in_loop"}
WRITTEN = {name: each for name, each in RUNS.items() if name not in UNWRITTEN}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """All kernels in one shared library."""
    texts = [each.kernel.cpp(X, X, 1) for each in WRITTEN.values()]
    found = compiled(texts, tmp_path_factory.mktemp("host"))
    if found is None:
        pytest.skip("no C++ compiler at hand")
    return found


@pytest.mark.parametrize("made", WRITTEN.values(), ids=WRITTEN)
def test_the_compiled_kernel_leaves_the_same_bytes(library: ctypes.CDLL, made: Construct) -> None:
    entry = getattr(library, made.kernel.name)
    for n in made.numbers:
        wanted, got = (np.full((ROWS, COLS), -1, np.float32) for _ in range(2))
        made.kernel[1](X.copy(), wanted, n)
        x = X.copy()
        entry(*(ctypes.c_void_p(a.ctypes.data) for a in (x, got)), ctypes.c_int64(n))
        assert np.array_equal(wanted, got), n


@pytest.mark.parametrize("name", sorted(UNWRITTEN))
def test_what_has_no_cpp_is_refused(name: str) -> None:
    with pytest.raises(NotSupported):
        RUNS[name].kernel.cpp(X, X, 1)
