"""The TALLOC page, point by point: each test quotes what it proves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.machine.faults import WouldBlock

NO = TileSplitAxis.TILE_NO_SPLIT
UP_DOWN = TileSplitAxis.TILE_UP_DOWN
LEFT_RIGHT = TileSplitAxis.TILE_LEFT_RIGHT
GM_DIRECTION = {  # the GlobalTensor flavour, per target
    "a2a3": (Direction.DIR_C2V, Direction.DIR_V2C),
    "a5": (Direction.DIR_C2V_GM, Direction.DIR_V2C_GM),
}
M, N = 16, 32
SLOT = M * N * 4
Slot = GlobalTensor[float32, Shape[1, 1, 1, M, N], Stride[1, 1, 1, N, 1]]
VecTile = Tile[TileType.Vec, float32, M, N, BLayout.RowMajor, M, N]


@pytest.fixture(params=["a2a3", "a5"])
def target(request: pytest.FixtureRequest) -> Any:
    with device(request.param):
        yield request.param


def c2v(target: str, slots: int, flag: int = 0) -> Any:
    memory = np.full(slots * M * N, -1, np.float32)
    return memory, TPipe[flag, GM_DIRECTION[target][0], SLOT, slots](memory, 0x0, 0x0)


def offset_of(slot: Any, memory: Any) -> int:
    """Where the tensor points, in bytes from the start of the slots."""
    at = slot.data()
    return at.buffer.base + at.offset - memory.__array_interface__["data"][0]


def consume(pipe: Any, count: int = 1) -> None:
    """Both vector cores take and give back entries."""
    for sub in (0, 1):
        with subblock(sub):
            for _ in range(count):
                view = Slot()
                TPOP[UP_DOWN](pipe, view)
                TFREE[UP_DOWN](pipe, view)


# ---- summary ------------------------------------------------------------------------------------


def test_allocates_a_producer_slot_and_exposes_it_as_a_global_tensor(target: str) -> None:
    """'Allocate a producer FIFO slot of a TPipe and expose it as a GlobalTensor view.'"""
    memory, pipe = c2v(target, 2)
    slot = Slot()
    TALLOC[NO](pipe, slot)
    assert offset_of(slot, memory) == 0
    slot.numpy()[...] = 7
    assert (memory[: M * N] == 7).all(), "the view is the slot itself"
    assert (memory[M * N :] == -1).all()


def test_ordinary_store_into_the_slot_then_commit(target: str) -> None:
    """'The producer gets the slot address, writes with ordinary memory instructions such as
    TSTORE, then commits the slot with TPUSH(Pipe&, GlobalData&).'"""
    memory, pipe = c2v(target, 2)
    tile, slot = VecTile(), Slot()
    TASSIGN(tile, 0x0)
    tile.fill(np.arange(M * N).reshape(M, N))
    TALLOC[NO](pipe, slot)
    TSTORE(slot, tile)
    TPUSH[NO](pipe, slot)
    assert np.array_equal(memory[: M * N], np.arange(M * N))
    view = Slot()
    TPOP[NO](pipe, view)
    assert np.array_equal(view.numpy().reshape(M, N), np.arange(M * N).reshape(M, N))


# ---- the three steps ----------------------------------------------------------------------------


def test_step_1_waits_only_when_status_and_should_wait_free_are_both_true(target: str) -> None:
    """'When pipe.prod.getAllocateStatus() and Pipe::shouldWaitFree(pipe.prod.tileIndex) are both
    true, wait for free FIFO space.'"""
    _, pipe = c2v(target, 2)
    Pipe = type(pipe)
    slot = Slot()
    assert pipe.prod.getAllocateStatus() is True
    for index in range(2):
        assert not Pipe.shouldWaitFree(index)
        TALLOC[NO](pipe, slot)
        TPUSH[NO](pipe, slot)
    assert Pipe.shouldWaitFree(pipe.prod.tileIndex)
    with pytest.raises(WouldBlock, match="waits for free space"):
        TALLOC[NO](pipe, slot)
    assert pipe.prod.tileIndex == 2, "a blocked call changes nothing"
    pipe.prod.setAllocateStatus(False)
    TALLOC[NO](pipe, slot)  # status false: no wait, whatever the index
    assert pipe.prod.tileIndex == 3


def test_step_2_the_address_follows_from_the_tile_index(target: str) -> None:
    """'Compute the address of the current FIFO slot from pipe.prod.tileIndex.'"""
    memory, pipe = c2v(target, 3)
    slot = Slot()
    pipe.prod.setAllocateStatus(False)
    for index in range(7):
        assert pipe.prod.tileIndex == index
        TALLOC[NO](pipe, slot)
        assert offset_of(slot, memory) == index % 3 * SLOT
    pipe.prod.setTileId(1, 0)
    TALLOC[NO](pipe, slot)
    assert offset_of(slot, memory) == SLOT


def test_step_3_assigns_the_tensor_and_advances_the_index(target: str) -> None:
    """'Assign the FIFO slot address to gmTensor and increment the producer tile index.'"""
    memory, pipe = c2v(target, 2)
    slot = Slot(np.zeros(M * N, np.float32))  # pointed elsewhere before
    TALLOC[NO](pipe, slot)
    assert offset_of(slot, memory) == 0
    assert pipe.prod.tileIndex == pipe.prod.getTileId() == 1


def test_writes_no_data(target: str) -> None:
    """'TALLOC writes no data ...'"""
    memory, pipe = c2v(target, 2)
    before = memory.copy()
    TALLOC[NO](pipe, Slot())
    assert np.array_equal(memory, before)


def test_does_not_notify_the_consumer(target: str) -> None:
    """'... and does not notify the consumer': only TPUSH does."""
    _, pipe = c2v(target, 2)
    slot = Slot()
    TALLOC[NO](pipe, slot)
    with pytest.raises(WouldBlock, match="waits for an entry"):
        TPOP[NO](pipe, Slot())
    TPUSH[NO](pipe, slot)
    TPOP[NO](pipe, Slot())


# ---- intrinsic ----------------------------------------------------------------------------------


def test_type_arguments_wait_events_and_record_event(target: str) -> None:
    """'template <Pipe, GlobalData, Split, WaitEvents...> RecordEvent TALLOC(pipe, gmTensor,
    events...)'"""
    _, pipe = c2v(target, 2)
    slot = Slot()
    event = TALLOC[type(pipe), Slot, NO](pipe, slot)
    assert event is not None
    with pytest.raises(ProgramError, match="type argument"):
        TALLOC[VecTile, NO](pipe, slot)


def test_template_parameters_of_tpipe(target: str) -> None:
    """'template <FlagID, DirType, SlotSize, SlotNum, LocalSlotNum = 2, IsNoSplit = false,
    EN_UNIT_FLAG = false> struct TPipe'"""
    Pipe = TPipe[3, Direction.DIR_C2V, 512, 4]
    assert (Pipe.FlagID, Pipe.DirType, Pipe.SlotSize, Pipe.SlotNum) == (
        3,
        Direction.DIR_C2V,
        512,
        4,
    )
    assert (Pipe.LocalSlotNum, Pipe.IsNoSplit, Pipe.EN_UNIT_FLAG) == (2, False, False)
    Pipe = TPipe[3, Direction.DIR_C2V, 512, 4, 3, True, True]
    assert (Pipe.LocalSlotNum, Pipe.IsNoSplit, Pipe.EN_UNIT_FLAG) == (3, True, True)
    assert Pipe is TPipe[3, Direction.DIR_C2V, 512, 4, 3, True, True]


# ---- constraints --------------------------------------------------------------------------------


def test_only_a_global_tensor_satisfies_the_constraint(target: str) -> None:
    """'GlobalData must satisfy is_global_data_v<GlobalData>.'"""
    _, pipe = c2v(target, 2)
    tile = VecTile()
    TASSIGN(tile, 0)
    with pytest.raises(ProgramError, match="no form of TALLOC takes these operands"):
        TALLOC[NO](pipe, tile)


@pytest.mark.parametrize("split", [NO, UP_DOWN, LEFT_RIGHT])
@pytest.mark.parametrize("sub", [0, 1])
def test_c2v_producer_sees_the_whole_slot(target: str, split: TileSplitAxis, sub: int) -> None:
    """'Direction::DIR_C2V: the producer can see the whole FIFO slot': no offset, ever."""
    memory, pipe = c2v(target, 2)
    slot = Slot()
    with subblock(sub):
        TALLOC[split](pipe, slot)
    assert offset_of(slot, memory) == 0


@pytest.mark.parametrize(
    ("split", "half"),
    [(NO, 0), (UP_DOWN, M * N * 4), (LEFT_RIGHT, N * 4)],
    ids=["no split", "up-down", "left-right"],
)
def test_v2c_vector_sub_blocks_get_split_offsets(
    target: str, split: TileSplitAxis, half: int
) -> None:
    """'Direction::DIR_V2C: for vector sub-blocks a split offset may apply according to Split';
    TILE_NO_SPLIT: no offset; TILE_UP_DOWN: upper and lower half of the rows; TILE_LEFT_RIGHT: left
    and right half of the columns."""
    memory = np.zeros(2 * 2 * M * N, np.float32)
    pipe = TPipe[0, GM_DIRECTION[target][1], 2 * SLOT, 2](memory, 0, 0)
    pitch = 2 * N if split == LEFT_RIGHT else N
    Half = GlobalTensor[float32, Shape[1, 1, 1, M, N], Stride[1, 1, 1, pitch, 1]]
    for index in range(2):
        for sub in (0, 1):
            slot = Half()
            with subblock(sub):
                assert pipe.prod.tileIndex == index, "each vector core counts by itself"
                TALLOC[split](pipe, slot)
            assert offset_of(slot, memory) == index * 2 * SLOT + sub * half


def test_slot_size_holds_one_logical_entry(target: str) -> None:
    """'SlotSize must be large enough to hold one logical FIFO entry.'"""
    c2v_way, v2c_way = GM_DIRECTION[target]
    memory = np.zeros(4 * M * N, np.float32)
    small = TPipe[0, c2v_way, SLOT - 32, 2](memory, 0, 0)
    with pytest.raises(ProgramError) as caught:
        TALLOC[NO](small, Slot())
    assert caught.value.codes == ("TALLOC.slot-size",)
    half = TPipe[2, v2c_way, SLOT, 2](memory, 0, 0)
    TALLOC[NO](half, Slot())
    with pytest.raises(ProgramError, match="both halves together"):
        TALLOC[UP_DOWN](half, Slot())  # two halves of M x N do not fit


def test_slot_num_is_at_least_one() -> None:
    """'SlotNum >= 1.'"""
    assert TPipe[0, Direction.DIR_C2V, 512, 1].SlotNum == 1
    with pytest.raises(ProgramError, match="SlotNum >= 1"):
        TPipe[0, Direction.DIR_C2V, 512, 0]


@pytest.mark.parametrize("slots", range(1, 17))
def test_sync_period_is_derived_from_slot_num(slots: int) -> None:
    """'Pipe::SyncPeriod is derived from SlotNum: (SlotNum <= 2) ? SlotNum : SlotNum / 2.'"""
    Pipe = TPipe[0, Direction.DIR_C2V, 512, slots]
    assert Pipe.SyncPeriod == (slots if slots <= 2 else slots // 2)


def test_no_split_applies_no_offset_on_either_sub_block(target: str) -> None:
    """'TILE_NO_SPLIT: no sub-vector offset is applied.'"""
    memory = np.zeros(2 * M * N, np.float32)
    pipe = TPipe[0, GM_DIRECTION[target][1], SLOT, 2](memory, 0, 0)
    for sub in (0, 1):
        slot = Slot()
        with subblock(sub):
            TALLOC[NO](pipe, slot)
        assert offset_of(slot, memory) == 0


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 6, 8])
def test_free_space_waits_are_sparse(target: str, slots: int) -> None:
    """'The wait for free space is sparse and governed by Pipe::SyncPeriod': one notification of
    the consumer covers a whole period of allocations."""
    _, pipe = c2v(target, slots)
    Pipe = type(pipe)
    slot = Slot()
    for index in range(3 * slots):
        if Pipe.shouldWaitFree(index):
            assert index % Pipe.SyncPeriod == 0
            with pytest.raises(WouldBlock):
                TALLOC[UP_DOWN](pipe, slot)
            if Pipe.SyncPeriod > 1:
                consume(pipe, Pipe.SyncPeriod - 1)
                with pytest.raises(WouldBlock):  # the period is not complete
                    TALLOC[UP_DOWN](pipe, slot)
            consume(pipe)
        TALLOC[UP_DOWN](pipe, slot)
        TPUSH[UP_DOWN](pipe, slot)
    waits = [i for i in range(3 * slots) if Pipe.shouldWaitFree(i)]
    assert len(waits) == len([i for i in range(slots, 3 * slots) if i % Pipe.SyncPeriod == 0])


def test_both_vector_cores_must_have_freed() -> None:
    """On A2/A3 the cube core's wait passes only when both vector cores have signalled."""
    with device("a2a3"):
        _, pipe = c2v("a2a3", 1)
        slot = Slot()
        TALLOC[UP_DOWN](pipe, slot)
        TPUSH[UP_DOWN](pipe, slot)
        with subblock(0):
            TPOP[UP_DOWN](pipe, Slot())
            TFREE[UP_DOWN](pipe, slot)
        with pytest.raises(WouldBlock, match="by vector core 1"):
            TALLOC[UP_DOWN](pipe, slot)


@pytest.mark.parametrize("name", ["kirin9030", "kirinx90"])
def test_other_targets_have_no_pipes(name: str) -> None:
    with device(name), pytest.raises(ProgramError, match=f"TPipe does not exist on {name}"):
        TPipe[0, Direction.DIR_C2V, 512, 1](np.zeros(512, np.uint8))


def test_direct_rings_of_a5_have_no_global_flavour() -> None:
    with device("a5"):
        pipe = TPipe[0, Direction.DIR_C2V, SLOT, 2](None, 0x0, 0x0)
        with pytest.raises(ProgramError, match=r"DIR_C2V_GM, DIR_V2C_GM or DIR_BOTH_GM"):
            TALLOC[NO](pipe, Slot())


def test_odd_splits_have_no_allocation(target: str) -> None:
    _, pipe = c2v(target, 2)
    with pytest.raises(ProgramError, match="Split of an allocation"):
        TALLOC[TileSplitAxis.TILE_UP_DOWN_ODD](pipe, Slot())


# ---- the two examples ---------------------------------------------------------------------------


def example_talloc(fifoMem: Any, value: Any) -> Any:
    T, M, N = float32, 128, 128
    FlagID, FifoDepth = 0, 2
    Pipe = TPipe[FlagID, Direction.DIR_C2V, M * N * 4, FifoDepth]
    SlotGlobal = GlobalTensor[T, Shape[1, 1, 1, M, N], Stride[1, 1, 1, N, 1]]
    VecTile = Tile[TileType.Vec, T, M, N, BLayout.RowMajor, M, N]
    pipe = Pipe(fifoMem, 0x0, 0x0)
    slot = SlotGlobal()
    tile = VecTile()
    TASSIGN(tile, 0x0)
    tile.fill(value)
    TALLOC[Pipe, SlotGlobal, TileSplitAxis.TILE_NO_SPLIT](pipe, slot)
    TSTORE(slot, tile)
    TPUSH[Pipe, SlotGlobal, TileSplitAxis.TILE_NO_SPLIT](pipe, slot)
    return pipe


def test_example_allocate_store_commit() -> None:
    """Example 'allocate, store, commit'."""
    fifo = np.zeros(2 * 128 * 128, np.float32)
    value = np.arange(128 * 128).reshape(128, 128)
    with device("a2a3"):
        pipe = example_talloc(fifo, value)
        assert pipe.prod.tileIndex == 1
        assert np.array_equal(fifo[: 128 * 128].reshape(128, 128), value)
        assert not fifo[128 * 128 :].any()
        view = GlobalTensor[float32, Shape[1, 1, 1, 128, 128], Stride[1, 1, 1, 128, 1]]()
        TPOP[NO](pipe, view)
        assert np.array_equal(view.numpy()[0, 0, 0], value)


def test_example_v2c_split_allocation() -> None:
    """Example 'V2C split allocation': each vector core fills its half of a 128 x 128 entry."""
    T, M, N = float32, 64, 128
    FullM = M * 2
    fifo = np.zeros(2 * FullM * N, np.float32)
    Pipe = TPipe[0, Direction.DIR_V2C, FullM * N * 4, 2]
    SlotGlobal = GlobalTensor[T, Shape[1, 1, 1, M, N], Stride[1, 1, 1, N, 1]]
    VecTile = Tile[TileType.Vec, T, M, N, BLayout.RowMajor, M, N]
    with device("a2a3"):
        pipe = Pipe(fifo, 0x0, 0x0)
        for sub in (0, 1):
            with subblock(sub):
                assert get_subblockid() == sub
                slot, tile = SlotGlobal(), VecTile()
                TASSIGN(tile, 0x0)
                tile.fill(sub + 1)
                TALLOC[Pipe, SlotGlobal, TileSplitAxis.TILE_UP_DOWN](pipe, slot)
                TSTORE(slot, tile)
                TPUSH[Pipe, SlotGlobal, TileSplitAxis.TILE_UP_DOWN](pipe, slot)
        entry = fifo[: FullM * N].reshape(FullM, N)
        assert (entry[:M] == 1).all()
        assert (entry[M:] == 2).all()
        assert not fifo[FullM * N :].any()


def test_no_stable_assembly_spelling() -> None:
    """'The public assembly reference defines no stable PTO-AS spelling for TALLOC yet.'"""
    from ptokit.isa import INSTRUCTIONS
    from ptokit.report.pages import markdown

    insn = INSTRUCTIONS["TALLOC"]
    assert insn.asm is None or not insn.asm.is_stable
    assert "no stable spelling yet" in markdown(insn)
