"""The C++ of every construct, compiled against our header and run: the bytes of the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import cpp
from ptokit.base.diagnostics import NotSupported
from tests.frontend.constructs import COLS, CONSTRUCTS, ROWS, Construct
from tests.native.support import needs_compiler

X = ((np.arange(ROWS * COLS).reshape(ROWS, COLS) * 7 % 23) / 3.7).astype(np.float32)
RUNS = {name: each for name, each in CONSTRUCTS.items() if not each.refused}
# Tiles that change places and have run-time sizes, or no address until they are bound.
UNWRITTEN = {"swapped_valid_sizes", "assigned_in_loop"}
WRITTEN = {name: each for name, each in RUNS.items() if name not in UNWRITTEN}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All kernels in one source."""
    path = tmp_path_factory.mktemp("host") / "all.cpp"
    path.write_text("\n".join(each.kernel.cpp(X, X, 1) for each in WRITTEN.values()))
    return cpp(path)


@needs_compiler
@pytest.mark.parametrize("made", WRITTEN.values(), ids=WRITTEN)
def test_the_compiled_kernel_leaves_the_same_bytes(program: Any, made: Construct) -> None:
    for n in {made.numbers[0], made.numbers[-1]}:  # every launch is a process
        wanted, got = (np.full((ROWS, COLS), -1, np.float32) for _ in range(2))
        made.kernel[1](X.copy(), wanted, n)
        run = program[made.kernel.name][1](X.copy(), got, n)
        assert np.array_equal(wanted, got), n
        assert not run.warnings


@pytest.mark.parametrize("name", sorted(UNWRITTEN))
def test_what_has_no_cpp_is_refused(name: str) -> None:
    with pytest.raises(NotSupported):
        RUNS[name].kernel.cpp(X, X, 1)
