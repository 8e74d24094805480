"""Tile FIFOs: what goes in comes out, in every direction, split and depth, and blocks in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.machine.faults import PoisonRead, WouldBlock

NO, UP, LEFT, UP_ODD, LEFT_ODD = TileSplitAxis
R, C = 32, 64
rng = np.random.default_rng(1)


def vec(rows: int, cols: int, kind: Any = float32, cap: tuple[int, int] | None = None) -> Any:
    height, width = cap or (rows, -(-cols // 8) * 8)
    return Tile[TileType.Vec, kind, height, width, BLayout.RowMajor, rows, cols]()


def mat(rows: int, cols: int, kind: Any = float32) -> Any:
    return Tile[
        TileType.Mat, kind, rows, cols, BLayout.ColMajor, rows, cols, SLayout.RowMajor, 512
    ]()


def part(split: TileSplitAxis, sub: int, whole: Any) -> Any:
    """The share of a vector core."""
    rows, cols = whole.shape
    if split in (UP, UP_ODD):
        cut = -(-rows // 2)
        return whole[:cut] if sub == 0 else whole[cut:]
    if split in (LEFT, LEFT_ODD):
        cut = -(-cols // 2)
        return whole[:, :cut] if sub == 0 else whole[:, cut:]
    return whole


def accumulator(values: Any, address: int = 0) -> Any:
    tile = TileAcc[float32, R, C, *values.shape]()
    TASSIGN(tile, address)
    tile.fill(values)
    return tile


def gm(slots: int, rings: int = 1) -> Any:
    return np.zeros(rings * slots * R * C, np.float32)


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
@pytest.mark.parametrize(
    ("target", "way", "split"),
    [
        (target, way, split)
        for target, way in (("a2a3", 1), ("a5", 5), ("a5", 1))
        for split in TileSplitAxis
        if target == "a2a3" or split <= LEFT  # A5 has no odd splits
    ],
)
def test_cube_to_vector(target: str, way: int, split: TileSplitAxis, slots: int) -> None:
    """An accumulator reaches both vector cores, each its part, and slots are reused in turn."""
    odd = split in (UP_ODD, LEFT_ODD)
    shape = (R - odd, C - odd)
    direct = way == 1 and target == "a5"
    with device(target):
        memory = None if direct else gm(slots)
        pipe = TPipe[0, Direction(way), R * C * 4, slots](memory, 0x1000, 0x0)
        for index in range(2 * slots + 1):
            whole = rng.standard_normal(shape).astype(np.float32)
            TPUSH[NO if odd else split](pipe, accumulator(whole))
            for sub in (0, 1):
                if target == "a5" and split == NO and sub == 1:
                    continue  # vector core 0 alone takes part
                with subblock(sub):
                    want = part(split, sub, whole)
                    tile = vec(*want.shape, cap=(R, want.shape[1] if direct else C))
                    TPOP[split](pipe, tile)
                    assert np.array_equal(tile.numpy(), want)
                    step = R * C * 4 if target == "a2a3" or direct else tile.spec.nbytes
                    depth = slots if direct else 2
                    assert tile.address == 0x1000 + index % depth * step
                    if direct:
                        TFREE[split](pipe)


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
@pytest.mark.parametrize("split", [NO, UP, LEFT])
@pytest.mark.parametrize(("target", "way"), [("a2a3", 2), ("a5", 6), ("a5", 2)])
def test_vector_to_cube(target: str, way: int, split: TileSplitAxis, slots: int) -> None:
    """Both vector cores write their part of one entry, which the cube core takes as a whole."""
    direct = way == 2 and target == "a5"
    with device(target):
        memory = None if direct else gm(slots)
        pipe = TPipe[4, Direction(way), R * C * 4, slots](memory, 0x0, 0x800)
        for index in range(2 * slots + 1):
            whole = rng.standard_normal((R, C)).astype(np.float32)
            for sub in (0, 1):
                if target == "a5" and split == NO and sub == 1:
                    continue
                with subblock(sub):
                    tile = vec(*part(split, sub, whole).shape)
                    TASSIGN(tile, 0)
                    tile.fill(part(split, sub, whole))
                    TPUSH[split](pipe, tile)
            got = mat(R, C)
            TPOP[split](pipe, got)
            assert np.array_equal(got.numpy(), whole)
            assert got.address == 0x800 + index % (slots if direct else 2) * R * C * 4
            if direct:
                TFREE[split](pipe)


@pytest.mark.parametrize(("target", "way"), [("a2a3", 3), ("a5", 3), ("cpu", 3)])
def test_both_directions_on_one_pipe(target: str, way: int) -> None:
    """Two rings with four flags: entries of one direction do not disturb the other."""
    with device(target):
        memory = None if target == "a5" else gm(2, rings=2)
        pipe = TPipe[0, Direction(way), R * C * 4, 2](memory, 0x8000, 0x0)
        for _ in range(5):
            down, up = rng.standard_normal((2, R, C)).astype(np.float32)
            TPUSH[UP](pipe, accumulator(down))
            for sub in (0, 1):
                with subblock(sub):
                    tile = vec(R // 2, C)
                    TASSIGN(tile, 0)
                    tile.fill(part(UP, sub, up))
                    TPUSH[UP](pipe, tile)
            got = mat(R, C)
            TPOP[UP](pipe, got)
            assert np.array_equal(got.numpy(), up)
            if target != "a2a3":
                with cube():
                    TFREE[UP](pipe)
            for sub in (0, 1):
                with subblock(sub):
                    tile = vec(R // 2, C)
                    TPOP[UP](pipe, tile)
                    assert np.array_equal(tile.numpy(), part(UP, sub, down))
                    if target != "a2a3":
                        TFREE[UP](pipe)


def test_push_blocks_when_the_ring_is_full() -> None:
    with device("a2a3"):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 2](gm(2), 0, 0)
        tile = accumulator(np.zeros((R, C), np.float32))
        TPUSH[UP](pipe, tile)
        TPUSH[UP](pipe, tile)
        with pytest.raises(WouldBlock, match=r"TPUSH on entry 2 .* waits for free space") as caught:
            TPUSH[UP](pipe, tile)
        assert "TPOP" in caught.value.diagnostics[0].fix
        assert pipe.prod.tileIndex == 2


def test_pop_of_an_empty_ring_blocks() -> None:
    with device("a5"), subblock(1):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 2](None, 0, 0)
        with pytest.raises(WouldBlock, match=r"TPOP on entry 0 .* waits for an entry"):
            TPOP[UP](pipe, vec(R // 2, C))


def test_direct_slots_are_held_until_tfree() -> None:
    """On A5 the popped tile is the slot itself; without TFREE the producer runs out of space."""
    with device("a5"):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 1](None, 0, 0)
        tile = accumulator(np.ones((R, C), np.float32))
        TPUSH[NO](pipe, tile)
        TPOP[NO](pipe, vec(R, C))
        with pytest.raises(WouldBlock, match="TFREE"):
            TPUSH[NO](pipe, tile)
        TFREE[NO](pipe)
        TPUSH[NO](pipe, tile)


def test_permissive_profile_tracks_every_slot() -> None:
    """No sparse waits there: entry 4 of a ring of four needs slot 0 back, and a pop keeps it."""
    with device("cpu", mode="auto"):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 4](None)
        tile = TileAcc[float32, R, C]()
        tile.fill(1)
        for _ in range(4):
            TPUSH[NO](pipe, tile)
        got = vec(R, C)
        TPOP[NO](pipe, got)
        with pytest.raises(WouldBlock):
            TPUSH[NO](pipe, tile)
        TFREE[NO](pipe)
        TPUSH[NO](pipe, tile)


def test_second_lane_gets_zeros_when_nothing_is_split_on_the_permissive_profile() -> None:
    with device("cpu", mode="auto"):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 2](None)
        tile = TileAcc[float32, R, C]()
        tile.fill(1)
        TPUSH[NO](pipe, tile)
        with subblock(1):
            got = vec(R, C)
            TPOP[NO](pipe, got)
            assert not got.numpy().any()


def test_status_switches() -> None:
    """Without recording the consumer hears nothing; without freeing the producer hears nothing."""
    with device("a2a3", check=False):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 1](gm(1), 0, 0)
        tile = accumulator(np.ones((R, C), np.float32))
        pipe.prod.setRecordStatus(False)
        TPUSH[UP](pipe, tile)
        with pytest.raises(WouldBlock):
            TPOP[UP](pipe, vec(R // 2, C))
        pipe.cons.setWaitStatus(False)
        pipe.cons.setFreeStatus(False)
        for sub in (0, 1):
            with subblock(sub):
                pipe.cons.setWaitStatus(False)
                pipe.cons.setFreeStatus(False)
                TPOP[UP](pipe, vec(R // 2, C))
        with pytest.raises(WouldBlock):
            TPUSH[UP](pipe, tile)


def test_explicit_sub_block_replaces_the_current_one() -> None:
    with device("a2a3"):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 1](gm(1), 0, 0)
        whole = rng.standard_normal((R, C)).astype(np.float32)
        TPUSH[UP](pipe, accumulator(whole))
        tile = vec(R // 2, C)
        TPOP[UP](pipe, tile, 1)
        assert np.array_equal(tile.numpy(), whole[R // 2 :])


def test_pushing_an_unwritten_tile_is_named() -> None:
    with device("a2a3"):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 1](gm(1), 0, 0)
        tile = TileAcc[float32, R, C]()
        TASSIGN(tile, 0)
        with pytest.raises(PoisonRead, match=r"TPUSH reads tile\[0, 0\]"):
            TPUSH(pipe, tile)


def test_entry_larger_than_its_slot() -> None:
    with device("a2a3"):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 2, 2](gm(1), 0, 0)
        with pytest.raises(ProgramError) as caught:
            TPUSH(pipe, accumulator(np.ones((R, C), np.float32)))
        assert caught.value.codes == ("TPUSH.slot-size",)


def test_a_slot_beside_the_consumer_holds_what_that_one_gets() -> None:
    """A pipe for both directions: a vector core that pops takes its half, and pushes a half."""
    with device("a5"):
        pipe = TPipe[0, Direction.DIR_BOTH, R * C * 2, 2](None, 0x8000, 0x0)
        whole = rng.standard_normal((R, C)).astype(np.float32)
        TPUSH[UP](pipe, accumulator(whole))
        for sub in (0, 1):
            with subblock(sub):
                tile = vec(R // 2, C)
                TPOP[UP](pipe, tile)
                assert np.array_equal(tile.numpy(), part(UP, sub, whole))
                with pytest.raises(ProgramError) as caught:
                    TPUSH[UP](pipe, tile)
                assert caught.value.codes == ("TPUSH.slot-size",)


def test_a_converted_entry_has_the_size_of_its_result() -> None:
    """A slot of half the size holds an f32 accumulator that arrives as f16."""
    with device("a2a3"):
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 2, 2](gm(1), 0, 0)
        values = np.arange(R * C, dtype=np.float32).reshape(R, C) % 100
        TPUSH[FixpipeParams(QuantPre=QuantMode_t.F322F16)](pipe, accumulator(values))
        tile = Tile[TileType.Vec, half, R, C]()
        TASSIGN(tile, 0)
        TPOP(pipe, tile)
        assert np.array_equal(tile.numpy(), values)


def test_slot_memory_too_small() -> None:
    with device("a2a3"):
        with pytest.raises(ProgramError, match="holds all slots") as caught:
            TPipe[0, Direction.DIR_BOTH, R * C * 4, 2](gm(2), 0, 0)
        assert caught.value.codes == ("E10",)
        with pytest.raises(ProgramError, match="lie in global memory on a2a3"):
            TPipe[0, Direction.DIR_C2V, 512, 2](None)


@pytest.mark.parametrize(("flag", "way"), [(15, 1), (13, 3)])
def test_flags_out_of_range(flag: int, way: int) -> None:
    TPipe[flag - 1, Direction(way), 512, 1]
    with pytest.raises(ProgramError, match="the flags of a pipe lie below 16"):
        TPipe[flag, Direction(way), 512, 1]


def test_conversion_on_the_way() -> None:
    """The TConfig form: f32 accumulator to f16, ReLU applied, through global memory."""
    with device("a2a3"):
        values = rng.standard_normal((R, C)).astype(np.float32)
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 2](gm(2), 0, 0)
        config = FixpipeParams(QuantPre=QuantMode_t.F322F16, ReluMode=ReluPreMode.NormalRelu)
        TPUSH[config](pipe, accumulator(values))
        tile = Tile[TileType.Vec, float16, R, C]()
        TPOP[NO](pipe, tile)
        assert np.array_equal(tile.numpy(), np.maximum(values.astype(np.float16), 0))


def test_conversion_with_a_scale_register() -> None:
    with device("a5"):
        values = rng.integers(-100, 100, (R, C)).astype(np.float32)
        SET_QUANT_SCALAR[int8](0.5)
        pipe = TPipe[0, Direction.DIR_C2V, R * C * 4, 2](None, 0, 0)
        config = FixpipeParams(QuantPre=QuantMode_t.QF322B8_PRE, SubBlockId=1)
        TPUSH[config](pipe, accumulator(values))
        tile = Tile[TileType.Vec, int8, R, C]()
        with subblock(1):
            TASSIGN(tile, 0)
            assert np.array_equal(tile.numpy(), np.rint(values * 0.5).astype(np.int8))


def test_conversion_takes_an_accumulator() -> None:
    with device("a2a3"), subblock(0):
        pipe = TPipe[0, Direction.DIR_V2C, R * C * 4, 2](gm(2), 0, 0)
        tile = vec(R, C)
        TASSIGN(tile, 0)
        tile.fill(1)
        with pytest.raises(ProgramError, match="takes an Acc tile"):
            TPUSH[FixpipeParams()](pipe, tile)
