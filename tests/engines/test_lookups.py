"""Sorts, gathers and scatters of a repeated launch: values decide, and odd ones are told."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import Kernel
from ptokit.base.diagnostics import ProgramError
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.lookups import Looked
from ptokit.engines.compiled.replay import Replay, Tape
from ptokit.engines.compiled.sorts import Merged, SortedRuns
from ptokit.frontend.session import running
from ptokit.isa.targets import TARGETS
from ptokit.machine.machine import Machine
from ptokit.machine.scheduler import Outcome

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

ROWS, COLS = 8, 64
Data = Tile[TileType.Vec, float32, ROWS, COLS]
Indices = Tile[TileType.Vec, int32, ROWS, COLS]
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 1.0, 1.0], np.float32)


@kernel(mode="auto")
def gathered(x: Any, numbers: Any, y: Any) -> None:
    source, index, scratch, found = Data(), Indices(), Indices(), Data()
    TLOAD(source, GlobalTensor(x))
    TLOAD(index, GlobalTensor(numbers))
    TGATHER(found, source, index, scratch)
    TSTORE(GlobalTensor(y), found)


@kernel(mode="auto")
def scattered(x: Any, numbers: Any, y: Any) -> None:
    source, index, found = Data(), Indices(), Data()
    TLOAD(source, GlobalTensor(x))
    TLOAD(index, GlobalTensor(numbers))
    TSCATTER(found, source, index)
    TSTORE(GlobalTensor(y), found)


def replay_of(kernel: Kernel) -> Replay:
    (found,) = [each for each in kernel.programs.memory.replays if each is not None]
    assert isinstance(found, Replay)
    return found


def launch(kernel: Kernel, numbers: Any, engine: str = "fast") -> Any:
    x = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS)
    y = np.full_like(x, -1)
    kernel[1](x, numbers, y, target="a5", engine=engine)
    return y


@pytest.mark.parametrize("source", [gathered, scattered], ids=lambda k: k.name)
def test_indices_of_the_second_launch_count(source: Kernel) -> None:
    fresh, rng = Kernel(source.source), np.random.default_rng(3)
    for _ in range(3):
        numbers = rng.integers(0, ROWS * COLS, (ROWS, COLS)).astype(np.int32)
        assert np.array_equal(launch(fresh, numbers), launch(fresh, numbers, "stepwise"))
    assert any(isinstance(each, Looked) for each in replay_of(fresh).kernels)
    assert not replay_of(fresh).bodies


@pytest.mark.parametrize("wrong", [-1, ROWS * COLS, 2**31 - 1])
@pytest.mark.parametrize("source", [gathered, scattered], ids=lambda k: k.name)
def test_an_index_out_of_range_is_told_in_a_later_launch_too(source: Kernel, wrong: int) -> None:
    fresh, numbers = Kernel(source.source), np.zeros((ROWS, COLS), np.int32)
    for _ in range(2):
        launch(fresh, numbers)
    numbers[3, 5] = wrong
    with pytest.raises(ProgramError, match="index"):
        launch(fresh, numbers)
    numbers[3, 5] = 7
    assert np.array_equal(launch(fresh, numbers), launch(fresh, numbers, "stepwise"))


@kernel(mode="manual")
def half_filled(x: Any, numbers: Any, y: Any) -> None:
    """The table is written down to its middle."""
    top, source = Tile[TileType.Vec, float32, ROWS // 2, COLS](), Data()
    index, scratch, found = Indices(), Indices(), Data()
    for place, tile in enumerate((source, index, scratch, found)):
        TASSIGN(tile, place * 0x1000)
    TASSIGN(top, 0x0)
    TLOAD(top, GlobalTensor(x)[: ROWS // 2, :])
    TLOAD(index, GlobalTensor(numbers))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
    TGATHER(found, source, index, scratch)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y), found)


def test_an_index_to_what_nobody_wrote_is_told_in_a_later_launch_too() -> None:
    fresh, numbers = Kernel(half_filled.source), np.zeros((ROWS, COLS), np.int32)
    for _ in range(3):
        assert np.array_equal(launch(fresh, numbers), launch(fresh, numbers, "stepwise"))
    numbers[3, 5] = ROWS * COLS // 2
    with pytest.raises(ProgramError, match=rf"src0\[{ROWS // 2}, 0\], which nothing has written"):
        launch(fresh, numbers)


@kernel(mode="auto")
def ordered(x: Any, y: Any, *, kind: Any) -> None:
    """Runs, and groups of four of them."""
    size = 8 // kind.np.itemsize  # elements of a record
    Records = Tile[TileType.Vec, kind, 1, size * 256]
    row, columns = Tile[TileType.Vec, kind, 1, 256](), Tile[TileType.Vec, uint32, 1, 256]()
    runs, merged = Records(), Records()
    TCI(columns, 0)
    TLOAD(row, GlobalTensor(x))
    TSORT32(runs, row, columns)
    TMRGSORT(merged, runs, size * 32)
    TSTORE(GlobalTensor(y), merged)


def odd_row(kind: Any, seed: int, size: int) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, (1, size)).astype(kind.np)
    where = rng.random(size) < 0.3
    x[0, where] = rng.choice(ODD, where.sum()).astype(kind.np)
    return x


@pytest.mark.parametrize("kind", [float32, half], ids=lambda kind: kind.name)
def test_odd_values_are_sorted_alike(kind: Any) -> None:
    fresh = Kernel(ordered.source)
    left: list[bytes] = []
    for seed, engine in ((0, "fast"), (1, "fast"), (1, "stepwise")):
        y = np.zeros((1, 2048 // kind.np.itemsize), kind.np)
        fresh[1](odd_row(kind, seed, 256), y, target="a5", engine=engine, kind=kind)
        left.append(y.tobytes())
    assert left[1] == left[2]
    found = replay_of(fresh)
    assert not found.bodies
    assert {SortedRuns, Merged} <= {type(each) for each in found.kernels}


@pytest.mark.parametrize("lengths", [(64, 64), (64, 32, 128), (32, 64, 64, 96)])
@pytest.mark.parametrize("kept", [32, 128])
def test_the_front_of_merged_lists_is_compiled(lengths: tuple[int, ...], kept: int) -> None:
    """Lists that are not sorted, too: they are merged by their heads."""
    machine = Machine(TARGETS["a5"], "auto")
    arrays = [odd_row(float32, seed, length) for seed, length in enumerate(lengths)]
    result = np.zeros((1, kept), np.float32)

    def tile(columns: int) -> Any:
        return Tile[TileType.Vec, float32, 1, columns]()

    with running(machine):
        lists, best, scratch = [tile(n) for n in lengths], tile(kept), tile(sum(lengths))
        tape = Tape([*arrays, result])
        tape.follow(machine)
        for each, array in zip(lists, arrays, strict=True):
            TLOAD(each, GlobalTensor(array))
        TMRGSORT[False](best, MrgSortExecutedNumList(), scratch, *lists)
        TSTORE(GlobalTensor(result), best)
        wanted = result.tobytes()
        result[:] = 0
        played = Replay(tape, Outcome(machine, ()), threading.Lock())
        assert played.play([*arrays, result])
    assert not played.bodies
    assert result.tobytes() == wanted
