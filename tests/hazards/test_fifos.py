"""FIFOs between running cores: silent when right, under any schedule; named when wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import *

R, C = 32, 64
BYTES = R * C * 4


def vec_tile(rows: int, cols: int) -> Any:
    width = -(-cols // 8) * 8
    return Tile[TileType.Vec, float32, R, width, BLayout.RowMajor, rows, cols]()


def share(split: TileSplitAxis, sub: int, shape: tuple[int, int]) -> tuple[slice, slice]:
    """Rows and columns of a vector core."""
    rows, cols = shape
    if split in (UP, UP_ODD):
        cut = -(-rows // 2)
        return (slice(0, cut) if sub == 0 else slice(cut, rows)), slice(0, cols)
    if split in (LEFT, LEFT_ODD):
        cut = -(-cols // 2)
        return slice(0, rows), (slice(0, cut) if sub == 0 else slice(cut, cols))
    return slice(0, rows), slice(0, cols)


def view(matrix: Any, part: tuple[slice, slice]) -> Any:
    """A part of a matrix as a GlobalTensor."""
    rows, cols = (p.stop - p.start for p in part)
    start = part[0].start * matrix.shape[1] + part[1].start
    kind = GlobalTensor[float32, Shape[1, 1, 1, rows, cols], Stride[1, 1, 1, matrix.shape[1], 1]]
    return kind(ptr(matrix, start))


class Relay:
    """A kernel that sends entries from one side to the other through a FIFO."""

    def __init__(
        self,
        target: str,
        way: int,
        split: TileSplitAxis,
        slots: int,
        entries: int,
        *,
        skip: str = "",
        odd: bool = False,
    ) -> None:
        self.target, self.way, self.split, self.slots = target, Direction(way), split, slots
        self.entries, self.skip = entries, skip
        self.direct = target == "a5" and way < 5
        self.shape = (R - odd, C - odd)
        rng = np.random.default_rng(0)
        self.source = rng.standard_normal((entries, *self.shape)).astype(np.float32)
        self.result, self.spare = np.zeros_like(self.source), np.zeros_like(self.source)
        self.memory = None if self.direct else np.zeros(slots * R * C, np.float32)

    def pipe(self) -> Any:
        return TPipe[0, self.way, BYTES, self.slots](self.memory, 0x0, 0x0)

    def takes_part(self) -> bool:
        """Without a split, vector core 1 of A5 stands aside."""
        return not (self.target == "a5" and self.split == NO and get_subblockid() == 1)

    # ---- cube to vector

    def acc_producer(self) -> None:
        pipe = self.pipe()
        acc = [at(TileAcc[float32, R, C, *self.shape](), i * 0x4000) for i in (0, 1)]
        for i in range(self.entries):
            tile = acc[i % 2]
            pipe_barrier(PIPE_ALL)
            tile.fill(self.source[i])  # stands for a matmul, complete before the push
            if not (self.skip == "push" and i == self.entries - 1):
                TPUSH[NO if self.split > LEFT else self.split](pipe, tile)  # push

    def vec_consumer(self) -> None:
        if not self.takes_part():
            return
        pipe = self.pipe()
        part = share(self.split, get_subblockid(), self.shape)
        tile = vec_tile(*(p.stop - p.start for p in part))
        depth = 1 if self.direct else 2
        for i in range(self.entries):
            if i >= depth and not self.direct and self.skip != "war":
                wait_flag(PIPE_MTE3, PIPE_MTE2, i % 2)
            TPOP[self.split](pipe, tile)  # pop
            if self.direct:
                PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            elif self.skip != "raw":
                PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            aside = self.split == NO and get_subblockid() == 1  # both hold the whole entry
            TSTORE(view((self.spare if aside else self.result)[i], part), tile)  # use
            if self.direct:
                PtoSetWaitFlag[PIPE_MTE3, PIPE_V]()
                if self.skip != "free":
                    TFREE[self.split](pipe)
            elif self.skip != "war":
                set_flag(PIPE_MTE3, PIPE_MTE2, i % 2)
        if not self.direct and self.skip != "war":
            for i in range(max(0, self.entries - depth), self.entries):
                wait_flag(PIPE_MTE3, PIPE_MTE2, i % 2)

    # ---- vector to cube

    def vec_producer(self) -> None:
        if not self.takes_part():
            return
        pipe = self.pipe()
        part = share(self.split, get_subblockid(), self.shape)
        tile = at(Tile[TileType.Vec, float32, *(p.stop - p.start for p in part)](), 0x10000)
        for i in range(self.entries):
            TLOAD(tile, view(self.source[i], part))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TPUSH[self.split](pipe, tile)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()

    def mat_consumer(self) -> None:
        pipe = self.pipe()
        Mat = Tile[TileType.Mat, float32, R, C, BLayout.ColMajor, R, C, SLayout.RowMajor, 512]
        mat = Mat()
        for i in range(self.entries):
            TPOP[self.split](pipe, mat)
            pipe_barrier(PIPE_ALL)
            self.result[i] = mat.numpy()  # stands for the matmul that uses it
            if self.direct:
                TFREE[self.split](pipe)

    def programs(self) -> Any:
        if self.way in (Direction.DIR_C2V, Direction.DIR_C2V_GM):
            return {"cube": self.acc_producer, "vector": self.vec_consumer}
        return {"cube": self.mat_consumer, "vector": self.vec_producer}

    def codes(self, **more: Any) -> list[str]:
        return codes(self.programs(), self.target, **more)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("slots", [1, 2, 3, 8])
@pytest.mark.parametrize(
    ("target", "way", "split"),
    [
        (target, way, split)
        for target, way in (("a2a3", 1), ("a5", 1), ("a5", 5))
        for split in TileSplitAxis
        if target == "a2a3" or split <= LEFT  # A5 has no odd splits
    ],
)
def test_cube_to_vector(
    target: str, way: int, split: TileSplitAxis, slots: int, seed: int | None
) -> None:
    odd = split > LEFT
    relay = Relay(target, way, split, slots, 2 * slots + 3, odd=odd)
    assert relay.codes(seed=seed) == []
    assert np.array_equal(relay.result, relay.source)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("slots", [1, 2, 3, 8])
@pytest.mark.parametrize("split", [NO, UP, LEFT])
@pytest.mark.parametrize(("target", "way"), [("a2a3", 2), ("a5", 2), ("a5", 6)])
def test_vector_to_cube(
    target: str, way: int, split: TileSplitAxis, slots: int, seed: int | None
) -> None:
    relay = Relay(target, way, split, slots, 2 * slots + 3)
    assert relay.codes(seed=seed) == []
    assert np.array_equal(relay.result, relay.source)


# ---- faults --------------------------------------------------------------------------------------


def test_e10_missing_tfree_hangs_the_producer() -> None:
    """A5: the slot stays held; the report names the FIFO, both sides and the missing TFREE."""
    relay = Relay("a5", 1, UP, 2, 5, skip="free")
    found = check(relay.programs(), "a5")
    (hang,) = [d for d in found if "waits for free space" in d.message]
    assert hang.code == "E1"
    assert "TFREE" in hang.fix
    assert any("TPUSH by the cube core" in n.text for n in hang.notes), "the state of the FIFO"


def test_e10_missing_tfree_is_reported_even_when_nothing_hangs() -> None:
    found = check(Relay("a5", 1, UP, 8, 3, skip="free").programs(), "a5")
    assert {d.code for d in found} == {"E10"}
    assert "TFREE gives back 0" in found[0].message


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_e1_missing_push_hangs_the_consumer(target: str) -> None:
    relay = Relay(target, 1, UP, 2, 3, skip="push")
    found = check(relay.programs(), target)
    assert "E1" in {d.code for d in found}
    assert any(marked(relay.vec_consumer, "pop") in lines_of(d) for d in found)


def test_e10_local_ring_comes_round() -> None:
    """The load of pop t overwrites the tile of pop t - 2, which may still be in use."""
    relay = Relay("a2a3", 1, UP, 4, 4, skip="war")
    found = check(relay.programs())
    assert {d.code for d in found} == {"E10"}
    assert lines_of(found[0]) == {
        marked(relay.vec_consumer, "pop"),
        marked(relay.vec_consumer, "use"),
    }
    assert "local ring" in found[0].message


def test_e6_use_of_a_popped_tile_before_its_load_is_complete() -> None:
    relay = Relay("a2a3", 1, UP, 2, 2, skip="raw")
    found = check(relay.programs())
    assert found[0].code == "E6"
    assert lines_of(found[0]) == {
        marked(relay.vec_consumer, "pop"),
        marked(relay.vec_consumer, "use"),
    }


def test_e10_both_vector_cores_take_part_on_a2a3() -> None:
    """One vector core alone: the cube core waits for the other's free space at the end."""
    memory = np.zeros(2 * R * C, np.float32)

    def producer() -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 2](memory, 0, 0)
        acc = at(TileAcc[float32, R, C](), 0)
        acc.fill(1)
        for _ in range(2):
            TPUSH[NO](pipe, acc)

    def consumer(both: bool) -> None:
        if get_subblockid() == 0 or both:
            pipe = TPipe[0, Direction.DIR_C2V, BYTES, 2](memory, 0, 0)
            for _ in range(2):
                TPOP[NO](pipe, Tile[TileType.Vec, float32, R, C]())

    assert codes({"cube": producer, "vector": lambda: consumer(True)}) == []
    found = check({"cube": producer, "vector": lambda: consumer(False)})
    assert [d.code for d in found] == ["E1"]
    assert "by vector core 1" in str(found[0].got)


def test_e10_unpopped_entries() -> None:
    memory = np.zeros(8 * R * C, np.float32)

    def producer() -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 8](memory, 0, 0)
        acc = at(TileAcc[float32, R, C](), 0)
        acc.fill(1)
        for _ in range(3):
            TPUSH[UP](pipe, acc)

    def consumer(count: int) -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 8](memory, 0, 0)
        for _ in range(count):
            TPOP[UP](pipe, Tile[TileType.Vec, float32, R // 2, C]())
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            PtoSetWaitFlag[PIPE_V, PIPE_MTE2]()
            pipe_barrier(PIPE_MTE2)

    assert codes({"cube": producer, "vector": lambda: consumer(3)}) == []
    found = check({"cube": producer, "vector": lambda: consumer(2)})
    assert {d.code for d in found} == {"E10"}
    assert "leaves 1 entries" in found[0].message


def test_e10_allocated_and_never_pushed() -> None:
    memory = np.zeros(4 * R * C, np.float32)
    Slot = GlobalTensor[float32, Shape[1, 1, 1, R, C], Stride[1, 1, 1, C, 1]]

    def producer(push: bool) -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 4](memory, 0, 0)
        slot = Slot()
        TALLOC[NO](pipe, slot)
        if push:
            TPUSH[NO](pipe, slot)

    def consumer() -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 4](memory, 0, 0)
        slot = Slot()
        TPOP[NO](pipe, slot)
        TFREE[NO](pipe, slot)

    assert codes({"cube": lambda: producer(True), "vector": consumer}) == []
    found = codes({"cube": lambda: producer(False), "vector": lambda: None})
    assert found == ["E10"]


def test_e10_odd_rings() -> None:
    def program(slots: int) -> None:
        TPipe[0, Direction.DIR_C2V, 512, slots](np.zeros(16 * 512, np.uint8), 0, 0)

    def run(slots: int) -> list[str]:
        return codes({"cube": lambda: program(slots), "vector": lambda: None})

    assert run(4) == run(3) == []
    assert run(5) == run(7) == ["E10"]
    assert run(16) == ["E10"]


def test_e10_both_directions_with_global_tensors() -> None:
    memory = np.zeros(4 * R * C, np.float32)
    Slot = GlobalTensor[float32, Shape[1, 1, 1, R, C], Stride[1, 1, 1, C, 1]]

    def producer() -> None:
        pipe, slot = TPipe[0, Direction.DIR_BOTH, BYTES, 2](memory, 0, 0), Slot()
        TALLOC[NO](pipe, slot)
        TPUSH[NO](pipe, slot)

    def consumer() -> None:
        pipe, slot = TPipe[0, Direction.DIR_BOTH, BYTES, 2](memory, 0, 0), Slot()
        TPOP[NO](pipe, slot)
        TFREE[NO](pipe, slot)

    assert set(codes({"cube": producer, "vector": consumer})) == {"E10"}


def test_e4_pipes_that_share_flags() -> None:
    memory = np.zeros(4096, np.uint8)

    def program(second: int) -> None:
        TPipe[0, Direction.DIR_C2V, 512, 2](memory, 0, 0)
        TPipe[second, Direction.DIR_C2V, 1024, 2](memory, 0, 0)

    assert codes({"cube": lambda: program(2), "vector": lambda: None}) == []
    assert codes({"cube": lambda: program(1), "vector": lambda: None}) == ["E4"]


def test_e16_tile_in_the_local_slots() -> None:
    memory = np.zeros(2 * R * C, np.float32)

    def producer() -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 2](memory, 0, 0)
        acc = at(TileAcc[float32, R, C](), 0)
        acc.fill(1)
        TPUSH[UP](pipe, acc)

    def consumer(address: int) -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 2](memory, 0x4000, 0)
        TPOP[UP](pipe, Tile[TileType.Vec, float32, R // 2, C]())
        PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        TEXPANDS(at(F32(), address), 0.0)

    def run(address: int) -> list[str]:
        return codes({"cube": producer, "vector": lambda: consumer(address)})

    assert run(0x0) == []
    assert run(0x4000 + 2 * BYTES) == []
    assert run(0x4000 + BYTES) == ["E16"]

    def beside_an_entry() -> None:
        """One call: of the entry itself, and of a tile that somebody has put there."""
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 2](memory, 0x4000, 0)
        entry = Tile[TileType.Vec, float32, R // 2, C]()
        TPOP[UP](pipe, entry)
        PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        for tile in (entry, at(Tile[TileType.Vec, float32, R // 2, C](), entry.address)):
            TEXPANDS(tile, 0.0)
            pipe_barrier(PIPE_V)

    assert codes({"cube": producer, "vector": beside_an_entry}) == ["E16"]


def test_unit_flag_replaces_the_flags_of_the_accumulator() -> None:
    """EN_UNIT_FLAG: the push drains what the matmul filled, without M -> FIX and FIX -> M flags."""
    memory = np.zeros(2 * R * C, np.float32)
    ones = np.ones((R, 32), np.float16), np.ones((32, C), np.float16)
    Left = Tile[TileType.Mat, half, R, 32, BLayout.ColMajor, R, 32, SLayout.RowMajor, 512]
    Right = Tile[TileType.Mat, half, 32, C, BLayout.ColMajor, 32, C, SLayout.RowMajor, 512]
    result = np.zeros((3, R, C), np.float32)

    def producer(unit: bool) -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 2, 2, False, unit](memory, 0, 0)
        a, b = at(Left(), 0), at(Right(), 0x4000)
        left, right = at(TileLeft[half, R, 32](), 0), at(TileRight[half, 32, C](), 0)
        acc = at(TileAcc[float32, R, C](), 0)
        TLOAD(a, GlobalTensor(ones[0]))
        TLOAD(b, GlobalTensor(ones[1]))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
        TMOV(left, a)
        TMOV(right, b)
        PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
        for _ in range(3):
            TMATMUL[AccPhase.Final if unit else AccPhase.Unspecified](acc, left, right)
            TPUSH[UP](pipe, acc)

    def consumer() -> None:
        pipe = TPipe[0, Direction.DIR_C2V, BYTES, 2](memory, 0, 0)
        part = share(UP, get_subblockid(), (R, C))
        for i in range(3):
            tile = Tile[TileType.Vec, float32, R // 2, C]()
            TPOP[UP](pipe, tile)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(view(result[i], part), tile)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()

    assert codes({"cube": lambda: producer(True), "vector": consumer}) == []
    assert (result == 32).all()
    assert set(codes({"cube": lambda: producer(False), "vector": consumer})) == {"E6"}


@pytest.mark.parametrize("seed", [None, 3])
def test_blocks_take_turns_on_the_same_cores(seed: int | None) -> None:
    """Memories, flags and FIFOs start afresh with every block."""
    relays = [Relay("a2a3", 1, UP, 2, 5) for _ in range(6)]

    def program(kind: str) -> None:
        relays[get_block_idx()].programs()[kind]()

    programs = {k: (lambda k=k: program(k)) for k in ("cube", "vector")}
    assert codes(programs, grid=6, seed=seed) == []
    for relay in relays:
        assert np.array_equal(relay.result, relay.source)


@pytest.mark.parametrize("entries", [3, 4])
def test_the_first_credit_is_no_order(entries: int) -> None:
    """Space that is asked for once in two entries: the first time the constructor has given it.

    The push that comes round to the slot of entry 1 then races with the one that still reads it.
    """
    Acc, Part = TileAcc[float32, R, C], Tile[TileType.Vec, float32, R // 2, C]
    Pipe = TMPipe[0, FIFOType.VEC_FIFO, 2, Acc, Part]
    result = np.zeros((R, C), np.float32)

    def producer() -> None:
        pipe, tile = Pipe(0), at(Acc(), 0)
        tile.fill(np.ones((R, C), np.float32))
        for index in range(1, entries):  # entry 0 goes another way
            pipe.prod.setTileId(index, 0)
            pipe.prod.setAllocateStatus(index == 2)
            TPUSH(tile, pipe)

    def consumer() -> None:
        pipe, total = Pipe(0), at(Part(), 0x8000)
        TEXPANDS(total, 0.0)
        for index in range(1, entries):
            tile = at(Part(), index % 2 * BYTES // 2)
            pipe.cons.setTileId(index, 0)
            pipe.cons.setFreeStatus(index == 1)
            TPOP(tile, pipe)
            TADD(total, total, tile)
            TFREE(pipe)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(view(result, share(UP, get_subblockid(), (R, C))), total)

    found = check({"cube": producer, "vector": consumer}, "a5")
    if entries == 3:  # the ring does not come round
        assert not found
        assert (result == 2).all()
    else:
        assert "E10" in {d.code for d in found if d.severity == "error"}
