"""TMPipe, the older FIFO: lock step, tile types that decide the direction, caller-set offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.frontend.launch import launch
from ptokit.machine.faults import WouldBlock

R, C = 32, 64
Acc = TileAcc[float32, R, C]
Half = Tile[TileType.Vec, float32, R // 2, C]
Whole = Tile[TileType.Mat, float32, R, C, BLayout.ColMajor, R, C, SLayout.RowMajor, 512]
rng = np.random.default_rng(3)


def accumulator(values: Any) -> Any:
    tile = Acc()
    TASSIGN(tile, 0)
    tile.fill(values)
    return tile


def test_cube_to_vector_through_global_memory() -> None:
    """The caller shifts vector core 1 to its half of the entry."""
    with device("a2a3"):
        memory = np.zeros(2 * R * C, np.float32)
        pipe = TMPipe[0, FIFOType.GM_FIFO, 2, Acc, Half](memory, 0x4000)
        for _ in range(5):
            values = rng.standard_normal((R, C)).astype(np.float32)
            TPUSH(accumulator(values), pipe)
            for sub in (0, 1):
                with subblock(sub):
                    pipe.cons.setEntryOffset(sub * R // 2 * C * 4)
                    tile = Half()
                    TPOP(tile, pipe)
                    assert np.array_equal(tile.numpy(), values[sub * R // 2 :][: R // 2])
                    TFREE(pipe)  # without effect: TPOP has given the slot back


def test_lock_step() -> None:
    """One credit from the constructor: the second push waits for a pop, whatever the depth."""
    with device("a2a3"):
        pipe = TMPipe[0, FIFOType.GM_FIFO, 8, Acc, Half](np.zeros(8 * R * C, np.float32), 0)
        tile = accumulator(np.ones((R, C), np.float32))
        TPUSH(tile, pipe)
        with pytest.raises(WouldBlock):
            TPUSH(tile, pipe)
        pipe.prod.setAllocateStatus(False)
        TPUSH(tile, pipe)
        assert pipe.prod.getTileId() == 2


def test_vector_to_cube_in_panels() -> None:
    """A vector tile wider than the consumer's is stored panel by panel."""
    Wide = Tile[TileType.Vec, float32, R, 2 * C]
    with device("a2a3"):
        memory = np.zeros(2 * R * C, np.float32)
        pipe = TMPipe[2, FIFOType.GM_FIFO, 1, Wide, Whole](memory, 0)
        values = rng.standard_normal((R, 2 * C)).astype(np.float32)
        for sub in (0, 1):  # both go through the same calls
            with subblock(sub):
                tile = Wide()
                TASSIGN(tile, 0)
                tile.fill(values)
                TPUSH(tile, pipe)
        got = Whole()
        TPOP(got, pipe)
        assert np.array_equal(got.numpy(), values[:, :C])
        assert np.array_equal(memory[R * C :].reshape(R, C), values[:, C:])


@pytest.mark.parametrize("split", ["rows", "columns", "none"])
def test_direct_slots_of_a5(split: str) -> None:
    """The consumer's tile says how the accumulator is divided; the caller moves the index.

    It also binds the tile to the slot: an offset of the consumer, which shifts it in a ring in
    global memory, moves nothing here.
    """
    shape = {"rows": (R // 2, C), "columns": (R, C // 2), "none": (R, C)}[split]
    Part = Tile[TileType.Vec, float32, *shape]
    with device("a5"):
        pipe = TMPipe[0, FIFOType.VEC_FIFO, 2, Acc, Part](0x800)
        for index in range(3):
            values = rng.standard_normal((R, C)).astype(np.float32)
            pipe.prod.setTileId(index, 0)
            TPUSH(accumulator(values), pipe)
            for sub in (0, 1):
                with subblock(sub):
                    pipe.cons.setTileId(index, 0)
                    pipe.cons.setEntryOffset(sub * 64)
                    tile = Part()
                    TASSIGN(tile, 0x800 + index % 2 * Part.spec_for("a5").nbytes)
                    TPOP(tile, pipe)
                    assert tile.address == 0x800 + index % 2 * Part.spec_for("a5").nbytes
                    rows = slice(sub * R // 2, (sub + 1) * R // 2) if split == "rows" else slice(R)
                    cols = (
                        slice(sub * C // 2, (sub + 1) * C // 2) if split == "columns" else slice(C)
                    )
                    if split != "none" or sub == 0:
                        assert np.array_equal(tile.numpy(), values[rows, cols])
                    TFREE(pipe)


def test_vector_to_cube_in_l1_of_a5() -> None:
    """The cube's tile says how entries lie: a row that a part has beside it is none of theirs."""
    Boxes = Tile[TileType.Mat, float16, R, C, BLayout.ColMajor, R, C, SLayout.RowMajor, 512]
    Part = Tile[
        TileType.Vec, float16, R // 2 + 1, C, BLayout.ColMajor, R // 2, C,
        SLayout.RowMajor, 512, PadValue.Null, CompactMode.RowPlusOne,
    ]  # fmt: skip
    with device("a5"):
        pipe = TMPipe[0, FIFOType.MAT_FIFO, 2, Part, Boxes](0x1000)
        for index in range(3):
            values = rng.standard_normal((R, C)).astype(np.float16)
            for sub in (0, 1):
                with subblock(sub):
                    tile = Part()
                    TASSIGN(tile, 0)
                    tile.fill(values[sub * R // 2 :][: R // 2])
                    pipe.prod.setTileId(index, 0)
                    TPUSH(tile, pipe)
            pipe.cons.setTileId(index, 0)
            got = Boxes()
            TASSIGN(got, 0x1000 + index % 2 * R * C * 2)
            TPOP(got, pipe)
            assert np.array_equal(got.numpy(), values)
            TFREE(pipe)


def test_without_local_slots_a_popped_tile_stays_where_it_is() -> None:
    with device("a5"):
        memory = np.zeros(2 * R * C, np.float32)
        pipe = TMPipe[0, FIFOType.GM_FIFO, 1, Acc, Half, False, 0](memory, 0)
        values = rng.standard_normal((R, C)).astype(np.float32)
        TPUSH(accumulator(values), pipe)
        with subblock(0):
            tile = Half()
            TASSIGN(tile, 0x4000)
            TPOP(tile, pipe)
            assert tile.address == 0x4000
            assert np.array_equal(tile.numpy(), values[: R // 2])


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_running_cores(target: str) -> None:
    """A pop out of global memory gives its slot back: the last credit is there at the end."""
    memory = np.zeros(2 * R * C, np.float32)
    values = rng.standard_normal((4, R, C)).astype(np.float32)
    result = np.zeros_like(values)
    Pipe = TMPipe[0, FIFOType.GM_FIFO, 2, Acc, Half]

    def producer() -> None:
        pipe = Pipe(memory, 0)
        for value in values:
            pipe_barrier(PIPE_ALL)
            TPUSH(accumulator(value), pipe)

    def consumer() -> None:
        pipe, sub = Pipe(memory, 0), get_subblockid()
        pipe.cons.setEntryOffset(sub * R // 2 * C * 4)
        for value in result:
            tile = Half()
            TPOP(tile, pipe)
            pipe_barrier(PIPE_ALL)
            value[sub * R // 2 :][: R // 2] = tile.numpy()

    launch({"cube": producer, "vector": consumer}, target)
    assert np.array_equal(result, values)


def test_types_it_does_not_carry() -> None:
    with device("a2a3"):
        with pytest.raises(ProgramError, match="carries Acc tiles"):
            TMPipe[0, FIFOType.GM_FIFO, 1, Whole, Half](np.zeros(R * C, np.float32))
        with pytest.raises(ProgramError, match="lies in global memory"):
            TMPipe[0, FIFOType.VEC_FIFO, 1, Acc, Half](0)
