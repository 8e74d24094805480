"""The machine itself: byte memories, poison, windows, plans and access records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.enums import TileType
from ptokit.isa.spec import Pipe
from ptokit.machine.access import Access, AccessPattern
from ptokit.machine.faults import OutOfBounds, PoisonRead, Unbound, WouldBlock
from ptokit.machine.memory import Storage
from tests.operands import make, whole
from tests.support import listen

V = TileType.Vec
Block = Tile[V, float32, 16, 16]  # 1024 bytes


def placed(kind: Any, address: int, value: float | None = None, *valid: int) -> Any:
    tile = kind(*valid)
    TASSIGN(tile, address)
    if value is not None:
        tile.fill(value)
    return tile


# ---- memories ----------------------------------------------------------------------------------


def test_each_space_is_a_memory_of_the_size_of_the_target() -> None:
    with device("a2a3") as machine:
        sizes = {loc.name: machine.core.memory(loc).nbytes // 1024 for loc in list(TileType)[:7]}
    assert sizes == {
        "Vec": 192, "Mat": 512, "Left": 64, "Right": 64, "Acc": 128, "Bias": 1, "Scaling": 2
    }  # fmt: skip


def test_the_same_address_of_two_spaces_is_two_places() -> None:
    with device("a2a3"):
        vec = placed(Block, 0, 1)
        mat = placed(Tile[TileType.Mat, float32, 16, 16], 0, 2)
        assert (vec.numpy() == 1).all()
        assert (mat.numpy() == 2).all()


def test_a_tile_is_its_bytes() -> None:
    with device("a2a3") as machine:
        placed(Tile[V, int16, 1, 16], 0x40, 0x0102)
        data = machine.core.memory(V).data
    assert data[0x40:0x60].tolist() == [2, 1] * 16
    assert not data[:0x40].any()
    assert not data[0x60:].any()


def test_every_session_has_memories_of_its_own() -> None:
    with device("a2a3"):
        placed(Block, 0, 1)
    with device("a2a3"), pytest.raises(PoisonRead):
        placed(Block, 0).numpy()


def test_an_inner_session_does_not_disturb_the_outer_one() -> None:
    with device("a2a3") as outer:
        tile = placed(Block, 0, 1)
        with device("a5") as inner:
            placed(Block, 0, 2)
            assert inner is not outer
        assert (tile.numpy() == 1).all()


# ---- poison ------------------------------------------------------------------------------------


def test_poison_is_kept_per_byte() -> None:
    """One byte that nothing wrote spoils the element it belongs to, and no other."""
    with device("a2a3") as machine:
        tile = placed(Tile[V, float32, 1, 8], 0, 1)
        machine.core.memory(V).shadow[4 * 5 + 2] = 0
        assert whole(tile).defined().tolist() == [[True] * 5 + [False] + [True] * 2]
        other = placed(Tile[V, uint8, 1, 32], 0)
        assert whole(other).defined().sum() == 31


@pytest.mark.parametrize("layout", ["ND", "DN", "NZ", "ZN", "ZZ", "NN"])
def test_poison_follows_the_layout(layout: str) -> None:
    with device("cpu", mode="auto"):
        tile = make(f"Mat f16 32x32 {layout} valid 20x18")
        tile.storage.poison()
        tile.fill(1)
        defined = whole(tile).defined()
    assert defined[:20, :18].all()
    assert defined.sum() == 20 * 18


def test_only_the_valid_region_becomes_defined() -> None:
    with device("a2a3"):
        dst = placed(Tile[V, float32, 16, 16, BLayout.RowMajor, 5, 7], 0)
        TEXPANDS(dst, 1.0)
        assert whole(dst).defined().sum() == 35


def test_scratch_is_lost_even_if_it_was_defined() -> None:
    with device("a2a3"):
        dst, src, tmp = (placed(Block, at, 1) for at in (0, 0x400, 0x800))
        TTRANS(dst, src, tmp)
        with pytest.raises(PoisonRead) as caught:
            TADD(dst, dst, tmp)
    assert caught.value.codes == ("poison-read",)


def test_a_window_that_was_defined_is_checked_again_after_it_was_poisoned() -> None:
    """The check is skipped only while nothing has become undefined."""
    with device("a2a3") as machine:
        a, b = placed(Block, 0, 1), placed(Block, 0x400, 1)
        for _ in range(3):
            TADD(b, a, b)
        machine.core.memory(V).poison()
        with pytest.raises(PoisonRead, match=r"reads src0\[0, 0\]"):
            TADD(b, a, b)


def test_storage_of_a_tile_that_is_gone_comes_back_undefined() -> None:
    with device("a2a3", mode="auto"):
        first = Block()
        first.fill(3)
        storage = first.storage
        del first
        second = Block()
        with pytest.raises(PoisonRead):
            second.numpy()
        assert second.storage is storage  # reused, so that loops find their calls again


# ---- accesses -----------------------------------------------------------------------------------


def access(spec: str, rows: slice, cols: slice) -> Access:
    with device("cpu", mode="auto"):
        tile = make(spec)
        axis_map = tile.spec.axis_map(tile.vr, tile.vc)
        storage = Storage("test", tile.spec.nbytes + 64)
        return AccessPattern("tile", tile.spec.dtype, axis_map, rows, cols).at(storage, 64)


@pytest.mark.parametrize("layout", ["ND", "DN", "NZ", "ZN", "ZZ", "NN"])
@pytest.mark.parametrize("kind", ["u8", "bf16", "f32", "f4e2m1x2"])
def test_what_is_written_is_read_and_nothing_else_changes(kind: str, layout: str) -> None:
    part = access(f"Mat {kind} 64x64 {layout}", slice(3, 20), slice(5, 23))
    values = np.arange(17 * 18).reshape(17, 18) % 13
    part.write(values.astype(part.dtype.np))
    assert (part.read().astype(np.float64) == values).all()
    assert not part.memory.data[:64].any()
    rest = access(f"Mat {kind} 64x64 {layout}", slice(0, 64), slice(0, 64)).pattern
    everything = rest.at(part.memory, 64).read().astype(np.float64)
    everything[3:20, 5:23] = 0
    assert not everything.any()


def test_ranges_are_the_bytes_that_are_touched() -> None:
    rows = access("Vec f32 16x16", slice(2, 4), slice(0, 8))
    assert list(rows.ranges()) == [(64 + 128, 64 + 160), (64 + 192, 64 + 224)]
    assert list(access("Vec f32 16x16", slice(0, 16), slice(0, 16)).ranges()) == [(64, 64 + 1024)]
    assert list(access("Mat f16 32x32 NZ", slice(0, 16), slice(0, 16)).ranges()) == [(64, 576)]
    assert list(access("Mat f4e2m1x2 64x64", slice(0, 1), slice(0, 3)).ranges()) == [(64, 66)]
    assert list(access("Vec f32 16x16", slice(0, 0), slice(0, 8)).ranges()) == []


# ---- calls -------------------------------------------------------------------------------------


def call_of(machine: Any, instruction: Any, *operands: Any) -> Any:
    events = listen(machine)
    instruction(*operands)
    return events[-1].call


def test_a_repeated_instruction_finds_its_call() -> None:
    with device("a2a3") as machine:
        a, b = placed(Block, 0, 1), placed(Block, 0x400, 1)
        assert call_of(machine, TADD, b, a, b) is call_of(machine, TADD, b, a, b)


def test_a_change_of_address_or_valid_region_needs_another_call() -> None:
    with device("a2a3", check=False) as machine:
        moving = Tile[V, float32, 16, 16, BLayout.RowMajor, DYNAMIC, DYNAMIC]
        tile = placed(moving, 0, 1, 16, 16)
        first = call_of(machine, TADD, tile, tile, tile)
        tile.SetValidRow(8)
        second = call_of(machine, TADD, tile, tile, tile)
        TASSIGN(tile, 0x40)
        third = call_of(machine, TADD, tile, tile, tile)
        assert len({first, second, third}) == 3
        assert tile.numpy().shape == (8, 16)


def test_the_array_behind_a_tensor_may_change_under_one_call() -> None:
    with device("a2a3"):
        tile = placed(Block, 0)
        for value in (1, 2):
            TLOAD(tile, GlobalTensor(np.full((16, 16), value, np.float32)))
            assert (tile.numpy() == value).all()


# ---- events -----------------------------------------------------------------------------------


def accesses(events: list[Any]) -> set[tuple[str, str, bool, tuple[tuple[int, int], ...]]]:
    """Who touched what in the last instruction."""
    return {(a.operand, a.memory, a.writes, a.ranges) for a in events[-1].accesses}


def test_a_record_names_instruction_pipe_and_source_line() -> None:
    with device("a2a3") as machine:
        events = listen(machine)
        tile = placed(Block, 0, 1)
        TADD(tile, tile, tile)  # this line
        last = events[-1]
    assert (last.insn.name, last.pipe) == ("TADD", Pipe.V)
    assert last.site.location.file == __file__
    assert last.site.location.text.strip() == "TADD(tile, tile, tile)  # this line"


def test_a_record_lists_reads_and_writes_with_their_bytes() -> None:
    with device("a2a3") as machine:
        events = listen(machine)
        a, b, c = (placed(Block, at, 1) for at in (0, 0x400, 0x800))
        TADD(c, a, b)
        assert accesses(events) == {
            ("src0", "UB", False, ((0, 0x400),)),
            ("src1", "UB", False, ((0x400, 0x800),)),
            ("dst", "UB", True, ((0x800, 0xC00),)),
        }


def test_a_record_of_a_valid_region_lists_its_rows_only() -> None:
    with device("a2a3") as machine:
        events = listen(machine)
        tile = placed(Tile[V, float32, 16, 16, BLayout.RowMajor, 2, 8], 0x100)
        TEXPANDS(tile, 1.0)
        rows = ((0x100, 0x120), (0x140, 0x160))
        assert accesses(events) == {("dst", "UB", True, rows)}


def test_a_record_of_a_transfer_lists_global_memory_at_its_address() -> None:
    x = np.ones((16, 32), np.float32)
    with device("a2a3", check=False) as machine:
        events = listen(machine)
        tile = placed(Block, 0)
        TLOAD(tile, GlobalTensor(x)[:, 16:])
        assert events[-1].pipe == Pipe.MTE2
        start = x.ctypes.data + 64
        rows = tuple((start + 128 * r, start + 128 * r + 64) for r in range(16))
        assert accesses(events) == {("src", "GM", False, rows), ("dst", "UB", True, ((0, 1024),))}
        TSTORE(GlobalTensor(x)[:, :16], tile)
        assert events[-1].pipe == Pipe.MTE3
        assert {(o, m, w) for o, m, w, _ in accesses(events)} == {
            ("dst", "GM", True),
            ("src", "UB", False),
        }


def test_scratch_counts_as_written() -> None:
    with device("a2a3") as machine:
        events = listen(machine)
        dst, src, tmp = (placed(Block, at, 1) for at in (0, 0x400, 0x800))
        TTRANS(dst, src, tmp)
        assert ("tmp", "UB", True, ((0x800, 0xC00),)) in accesses(events)


def test_whoever_watches_is_told_of_every_record() -> None:
    with device("a2a3") as machine:
        seen: list[str] = []
        machine.subscribe(lambda event: seen.append(event.insn.name))
        tile = placed(Block, 0, 1)
        TADD(tile, tile, tile)
        TEXPANDS(tile, 0.0)
    assert seen == ["TADD", "TEXPANDS"]  # giving a tile its address is no work


def test_a_refused_instruction_leaves_neither_record_nor_change() -> None:
    with device("a2a3", rules="strict") as machine:
        events = listen(machine)
        a, b = placed(Block, 0, 1), placed(Tile[V, float32, 16, 32], 0x400, 1)
        count = len(events)
        with pytest.raises(ProgramError):
            TADD(a, a, b)
        assert len(events) == count
        assert (a.numpy() == 1).all()


# ---- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "mistake"),
    [
        (Unbound, lambda: TEXPANDS(Block(), 0.0)),
        (OutOfBounds, lambda: TEXPANDS(placed(Block, 192 * 1024), 0.0)),
        (OutOfBounds, lambda: TLOAD(placed(Block, 0), beyond())),
        (PoisonRead, lambda: TADD(*[placed(Block, 0)] * 3)),
        (WouldBlock, lambda: TPOP[TileSplitAxis.TILE_NO_SPLIT](*empty_pipe())),
    ],
    ids=["unbound", "memory", "array", "poison", "blocked"],
)
def test_faults_have_types(kind: type[ProgramError], mistake: Any) -> None:
    with device("a2a3"), pytest.raises(ProgramError) as caught:
        mistake()
    assert type(caught.value) is kind


View = GlobalTensor[float32, Shape[1, 1, 1, 16, 16], Stride[256, 256, 256, 16, 1]]


def beyond() -> Any:
    return View(np.zeros(255, np.float32))


def empty_pipe() -> tuple[Any, Any]:
    return TPipe[0, Direction.DIR_C2V, 1024, 2](np.zeros(512, np.float32), 0, 0), View()
