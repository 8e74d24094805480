"""Tables in global memory: what an index list leads to is touched, and nothing else of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import ProgramError
from ptokit.machine.hazards import HazardLog
from tests.hazards.support import at

ROWS, COLS = 16, 16
Values = Tile[TileType.Vec, float32, ROWS, COLS]
Indexes = Tile[TileType.Vec, int32, 1, ROWS]
Single = Tile[TileType.Vec, int32, ROWS, COLS]
PATHS = ["eager", "lowered"]


@kernel(core="vector")
def scattered(table: Any, index: Any) -> None:
    """Every block puts ones into the rows that its indices name."""
    values, indexes, mine = at(Values(), 0), at(Indexes(), 0x1000), get_block_idx()
    TEXPANDS(values, 1.0)
    TLOAD(indexes, GlobalTensor(index)[mine : mine + 1, :])
    pipe_barrier(PIPE_ALL)
    MSCATTER[Coalesce.Row](GlobalTensor(table), values, indexes)


@kernel(core="vector")
def gathered(table: Any, index: Any) -> None:
    """Block 0 stores to the first rows of a table, the others gather rows of it."""
    values, indexes, mine = at(Values(), 0), at(Indexes(), 0x1000), get_block_idx()
    TEXPANDS(values, 1.0)
    TLOAD(indexes, GlobalTensor(index)[mine : mine + 1, :])
    pipe_barrier(PIPE_ALL)
    if mine == 0:
        TSTORE(GlobalTensor(table)[0:ROWS, :], values)
    else:
        MGATHER[Coalesce.Row](values, GlobalTensor(table), indexes)


@kernel(core="vector")
def single(table: Any, index: Any) -> None:
    """Every block puts ones into the elements that its indices name."""
    values, indexes, first = at(Values(), 0), at(Single(), 0x1000), get_block_idx() * ROWS
    TEXPANDS(values, 1.0)
    TLOAD(indexes, GlobalTensor(index)[first : first + ROWS, :])
    pipe_barrier(PIPE_ALL)
    MSCATTER[Coalesce.Elem](GlobalTensor(table), values, indexes)


def launched(program: Any, index: np.ndarray, path: str = "lowered", **more: Any) -> list[str]:
    """The complaints of two blocks about a table of 64 rows."""
    program.programs.memory.forget_verdicts()
    return again(program, index, path, **more)


def again(program: Any, index: np.ndarray, path: str = "lowered", **more: Any) -> list[str]:
    table = np.zeros((64, COLS), np.float32)
    try:
        program[2](table, index.astype(np.int32), target="a5", path=path, **more)
    except ProgramError as error:
        return sorted({d.code for d in error.diagnostics})
    return []


APART = np.arange(2 * ROWS).reshape(2, ROWS) * 2
MEETING = np.vstack([APART[0], np.arange(ROWS)])


@pytest.mark.parametrize("path", PATHS)
def test_rows_that_are_apart(path: str, engine: str) -> None:
    assert launched(scattered, APART, path, engine=engine) == []
    assert launched(scattered, MEETING, path, engine=engine) == ["E7"]


@pytest.mark.parametrize("path", PATHS)
def test_rows_that_are_gathered(path: str) -> None:
    behind = np.arange(2 * ROWS).reshape(2, ROWS) + ROWS
    assert launched(gathered, behind, path) == []
    assert launched(gathered, behind - ROWS - 1, path) == ["E7"], "the last is a row of block 0"


def test_elements_that_are_apart(engine: str) -> None:
    """Even ones and odd ones: between any two of a block lies one of the other."""
    many = np.arange(2 * ROWS * COLS).reshape(-1, 2).T.reshape(2 * ROWS, COLS)
    assert launched(single, many, engine=engine) == []
    many[-1, -1] = many[0, 0]
    assert launched(single, many, engine=engine) == ["E7"]


@pytest.mark.parametrize("path", PATHS)
def test_a_verdict_holds_for_its_indices_alone(path: str) -> None:
    assert launched(scattered, APART, path) == []
    assert again(scattered, MEETING, path) == ["E7"], "the next launch is looked at again"
    assert again(scattered, APART, path) == []


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many accesses the checker has looked at."""
    count, see = [0], HazardLog.see

    def counted(self: HazardLog, event: Any) -> None:
        count[0] += 1
        see(self, event)

    monkeypatch.setattr(HazardLog, "see", counted)
    return count


def test_what_no_other_index_could_break_is_remembered(looks: list[int]) -> None:
    @kernel(core="vector")
    def alone(table: Any, index: Any) -> None:
        values, indexes = at(Values(), 0), at(Indexes(), 0x1000)
        TEXPANDS(values, 1.0)
        TLOAD(indexes, GlobalTensor(index)[0:1, :])
        pipe_barrier(PIPE_ALL)
        MSCATTER[Coalesce.Row](GlobalTensor(table), values, indexes)

    table, index = np.zeros((64, COLS), np.float32), APART.astype(np.int32)
    for expected in (True, False):
        looks[0] = 0
        alone[1](table, index, target="a5", path="lowered")
        assert bool(looks[0]) is expected


def test_a_loop_over_a_table() -> None:
    """Each round has other rows: round by round against the other block."""

    @kernel(core="vector")
    def rounds(table: Any, index: Any) -> None:
        values, indexes, mine = at(Values(), 0), at(Indexes(), 0x1000), get_block_idx()
        TEXPANDS(values, 1.0)
        for i in range(40):
            row = mine * 40 + i
            TLOAD(indexes, GlobalTensor(index)[row : row + 1, :])
            pipe_barrier(PIPE_ALL)
            MSCATTER[Coalesce.Row](GlobalTensor(table), values, indexes)
            pipe_barrier(PIPE_ALL)

    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 32, (40, ROWS)), rng.integers(32, 64, (40, ROWS))
    assert launched(rounds, np.vstack([first, second])) == []
    second[37, 5] = first[11, 2]
    assert launched(rounds, np.vstack([first, second])) == ["E7"]


@pytest.mark.parametrize("path", PATHS)
def test_a_result_may_lie_over_the_indices(path: str) -> None:
    """What they led to is known before they are gone."""

    @kernel(core="vector")
    def over(table: Any, index: Any, out: Any) -> None:
        indexes, values = at(Single(), 0), at(Values(), 0)
        TLOAD(indexes, GlobalTensor(index))
        pipe_barrier(PIPE_ALL)
        MGATHER[Coalesce.Elem](values, GlobalTensor(table), indexes)
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(out), values)

    table = np.linspace(1, 2, 256, dtype="f4").reshape(1, 256)
    index = np.random.default_rng(0).permutation(256).astype("i4").reshape(ROWS, COLS)
    out = np.zeros((ROWS, COLS), "f4")
    over[1](table, index, out, target="a2a3", rules="release", path=path)
    assert np.array_equal(out, table[0][index])
