"""Both vector cores write an undivided entry of A2/A3: right as long as they write the same."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.replay import Replay
from ptokit.kernels import Kernel
from tests.test_examples import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
import fifo

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

UNDIVIDED = [
    case for case in fifo.CASES if "NO_SPLIT" in case.name and "x2" in case.name
    if "a2a3" in case.targets
]  # fmt: skip


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each launch that was to be repeated was."""
    found: list[bool] = []
    inner = Replay.play

    def noted(self: Replay, *args: Any) -> bool:
        found.append(inner(self, *args))
        return found[-1]

    monkeypatch.setattr(Replay, "play", noted)
    return found


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("case", UNDIVIDED, ids=lambda case: case.name)
def test_entries_that_both_write_are_repeated(case: Any, path: str, played: list[bool]) -> None:
    kernel = Kernel(case.kernel.source)
    left: list[Any] = []
    for engine in ("fast", "fast", "fast", "stepwise"):
        arrays = list(case.inputs(np.random.default_rng(len(left) > 1)))
        kernel[case.blocks](*arrays, target="a2a3", path=path, engine=engine, **case.consts)
        left.append([a.tobytes() for a in arrays if isinstance(a, np.ndarray)])
    assert played == [True, True]
    assert left[2] == left[3]


@fifo.kernel(core="mix")
def of_their_own(x, b, ring, y, *, slots, entries):
    """Each vector core pushes rows of its own, which are the same as long as x says so."""
    gx, gy = fifo.GlobalTensor(x), fifo.GlobalTensor(y)
    pipe = fifo.TPipe[0, fifo.V2C, fifo.BYTES, slots](ring, fifo.RING, fifo.RING)
    rows, cols = fifo.R, fifo.C
    with fifo.vector_section():
        entry = fifo.part(fifo.half, fifo.NO, rows, cols, fifo.TILES)
        for i in range(entries):
            first = (2 * i + fifo.get_subblockid()) * rows
            fifo.TLOAD(entry, gx[first : first + rows, :])
            fifo.PtoSetWaitFlag[fifo.PIPE_MTE2, fifo.PIPE_MTE3]()
            fifo.TPUSH[fifo.NO](pipe, entry)
            fifo.PtoSetWaitFlag[fifo.PIPE_MTE3, fifo.PIPE_MTE2]()
    with fifo.cube_section():
        entry = fifo.boxed(rows, cols, rows, cols)
        left = fifo.at(fifo.TileLeft[fifo.half, rows, cols, rows, cols](), 0)
        acc = fifo.at(fifo.TileAcc[fifo.float32, rows, cols, rows, cols](), 0)
        right = fifo.load_factor(b)
        for i in range(entries):
            fifo.TPOP[fifo.NO](pipe, entry)
            fifo.PtoSetWaitFlag[fifo.PIPE_MTE2, fifo.PIPE_MTE1]()
            fifo.multiply(acc, left, right, entry)
            fifo.TFREE[fifo.NO](pipe)
            fifo.PtoSetWaitFlag[fifo.PIPE_MTE1, fifo.PIPE_MTE2]()
            fifo.TSTORE(gy[i * rows : i * rows + rows, :], acc)
            fifo.PtoSetWaitFlag[fifo.PIPE_FIX, fifo.PIPE_M]()


def _said(kernel: Kernel, x: Any, engine: str) -> tuple[list[str], bytes]:
    """What is said of a launch, and what it leaves."""
    b = np.eye(fifo.C, dtype=np.float16)
    ring = np.zeros(2 * fifo.BYTES, np.uint8)
    y = np.zeros((len(x) // 2, fifo.C), np.float32)
    try:
        run = kernel[1](
            x, b, ring, y, slots=2, entries=len(x) // 2 // fifo.R, target="a2a3", path="lowered",
            engine=engine,
        )  # fmt: skip
    except PtoError as error:
        return list(error.codes), b""
    return [each.code for each in run.warnings], y.tobytes()


def test_other_bytes_are_told_in_a_later_launch_too(played: list[bool]) -> None:
    kernel, rng = Kernel(of_their_own.source), np.random.default_rng(0)
    for _ in range(3):
        rows = rng.integers(-8, 8, (5, 1, fifo.R, fifo.C)).astype(np.float16)
        x = np.repeat(rows, 2, axis=1).reshape(-1, fifo.C)
        told, left = _said(kernel, x, "fast")
        assert not told
        assert left == rows.reshape(-1, fifo.C).astype(np.float32).tobytes()
    assert played == [True, True]
    x[7 * fifo.R + 3, 5] += 1  # what vector core 1 pushes fourth
    told, _ = _said(kernel, x, "fast")
    assert told == _said(kernel, x, "stepwise")[0] != []
    assert not any(played[2:])
