"""Inside a pipe: who may follow without a barrier, and who may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import *

Column = Tile[TileType.Vec, float32, 16, 8]  # a value per row, as often as fits into 32 bytes
Sums = Tile[TileType.Vec, float32, 16, 8, BLayout.RowMajor, 16, 1]


def in_step(a: Any, b: Any, column: Any) -> None:
    TADDS(b, a, 1.0)
    TADD(a, b, b)


def spread(a: Any, b: Any, column: Any) -> None:
    """Each element of the column is needed for a whole row."""
    TADDS(column, column, 1.0)
    TROWEXPANDADD(b, a, column)


def summed(a: Any, b: Any, column: Any) -> None:
    TADDS(b, a, 1.0)
    TROWSUM(at(Sums(), 0xC00), b, a)


@pytest.mark.parametrize(
    ("work", "severity"), [(in_step, "warning"), (spread, "error"), (summed, "error")]
)
def test_without_a_barrier_only_walks_in_step_are_merely_doubtful(work: Any, severity: str) -> None:
    def program() -> None:
        a, b, column = at(F32(), 0), at(F32(), 0x400), at(Column(), 0x800)
        TEXPANDS(a, 1.0)
        TEXPANDS(column, 2.0)
        pipe_barrier(PIPE_ALL)
        work(a, b, column)

    assert {(d.code, d.severity) for d in check(program, "a2a3")} == {("E8", severity)}
    assert codes(program, "a5") == []  # its vector pipe keeps its order


def severities(program: Any, target: str = "a2a3", **more: Any) -> list[str]:
    return [f"{d.code} {d.severity}" for d in check(program, target, **more)]


def test_reads_of_both_kinds_are_remembered() -> None:
    """TTRANS reads its source in another order than TADDS, which comes between it and a write."""

    def program(between: bool) -> None:
        a, b, t, tmp = (at(F32(), 0x400 * i) for i in range(4))
        TEXPANDS(a, 1.0)
        pipe_barrier(PIPE_V)
        TTRANS(t, a, tmp)
        if between:
            TADDS(b, a, 1.0)
        TEXPANDS(a, 2.0)

    assert "E8 error" in severities(lambda: program(False))
    assert "E8 error" in severities(lambda: program(True))


# ---- what instructions order by themselves -------------------------------------------------------


def test_a_reduction_ends_with_a_barrier() -> None:
    """Its scratch and its result can be used at once."""

    def program() -> None:
        x, tmp, more, sums = at(F32(), 0), at(F32(), 0x400), at(Sums(), 0xC00), at(Sums(), 0x800)
        TEXPANDS(x, 1.0)
        pipe_barrier(PIPE_V)
        TROWSUM(sums, x, tmp)
        TROWMAX(more, x, tmp)
        TEXPANDS(tmp, 0.0)

    assert codes(program) == []


def test_a_conversion_behind_an_exponential_is_a_warning() -> None:
    """Through a view of another shape over the same bytes, as flash attention does it."""
    Line = Tile[TileType.Vec, float32, 1, 256]
    Half = Tile[TileType.Vec, half, 1, 256]

    def program() -> None:
        x = at(F32(), 0)
        TEXPANDS(x, 1.0)
        pipe_barrier(PIPE_V)
        TEXP(x, x)
        TCVT(at(Half(), 0x400), at(Line(), 0), RoundMode.CAST_RINT)

    assert severities(program) == ["E8 warning"]


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_a_drain_inside_an_instruction_orders_all_that_is_issued_behind_it(
    seed: int | None,
) -> None:
    """TSHL is computed by the scalar unit, which waits for the vector pipe first."""
    Ints = Tile[TileType.Vec, int32, 16, 16]

    def program(drains: bool) -> None:
        a, b = at(Ints(), 0), at(Ints(), 0x400)
        TEXPANDS(a, 1)
        TEXPANDS(b, 1)
        pipe_barrier(PIPE_V)
        TADDS(b, a, 2)
        if drains:
            TSHL(at(Ints(), 0x800), a, a)
        view = GlobalTensor[int32, Shape[1, 1, 1, 16, 16], Stride[1, 1, 1, 16, 1]]
        TLOAD(b, view(np.ones((16, 16), np.int32)))

    assert "E6" in codes(lambda: program(False), seed=seed)
    assert codes(lambda: program(True), seed=seed) == []


def test_flags_inside_an_instruction_must_not_meet_pending_ones() -> None:
    Ints = Tile[TileType.Vec, int32, 16, 16]

    def program(pending: bool) -> None:
        a = at(Ints(), 0)
        TEXPANDS(a, 1)
        pipe_barrier(PIPE_V)
        if pending:
            set_flag(PIPE_V, PIPE_S, EVENT_ID0)
        TSHL(at(Ints(), 0x400), a, a)
        if pending:
            wait_flag(PIPE_V, PIPE_S, EVENT_ID0)

    assert codes(lambda: program(True)) == ["E2"]
    assert codes(lambda: program(False)) == []
