"""Copies, collectives, signals and asynchronous transfers against plain definitions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.base.layout import Array
from ptokit.base.tensors import GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.comm import *
from ptokit.comm import TGATHER, TSCATTER  # the collectives, not the tile instructions
from ptokit.frontend.tensor_types import global_class
from ptokit.machine.faults import OutOfBounds, Unbound, WouldBlock
from tests.hazards.support import at, codes
from tests.operands import bits, noise

EXTENTS = st.tuples(*([st.integers(1, 3)] * 3), st.integers(1, 9), st.integers(1, 20))
KINDS = st.sampled_from([f32, f16, i8, i32, u16])
TARGETS = st.sampled_from(["a2a3", "a5", "cpu"])


def view(kind: Any, shape: tuple[int, ...], room: tuple[int, ...] = (0,) * 5) -> Any:
    """A tensor of noise whose dimensions lie `room` elements further apart than they must."""
    stride = [1]
    for extent, more in zip(reversed(shape[1:]), reversed(room[1:]), strict=True):
        stride.insert(0, stride[0] * (extent + more))
    size = stride[0] * shape[0]
    return global_class(GlobalSpec.of(kind, shape, tuple(stride)))(noise(kind, (size,)))


def stage(kind: Any, rows: int, cols: int, address: int = 0, dynamic: bool = True) -> Any:
    """A staging tile with this valid region."""
    wide = -(-cols * kind.itemsize // 32) * 32 // kind.itemsize
    valid = (DYNAMIC, DYNAMIC) if dynamic else (rows, cols)
    tile = Tile.of(TileSpec.of(TileType.Vec, kind, rows, wide, BLayout.RowMajor, *valid))
    tile.SetValidShape(rows, cols)
    return at(tile, address)


def same(a: Any, b: Array) -> bool:
    return bool((bits(a.numpy()) == bits(b)).all())


# ---- copies --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    EXTENTS, st.tuples(st.just(0), *([st.integers(0, 3)] * 4)), st.integers(1, 10),
    st.integers(1, 24), KINDS, TARGETS, st.booleans(), st.sampled_from([TPUT, TGET]),
)  # fmt: skip
def test_copy_moves_every_element(shape, room, rows, cols, kind, target, double, copy) -> None:
    """Whatever the extents, strides and chunk size: the view arrives, its surroundings stay."""
    with device(target):
        src, dst = view(kind, shape, room), view(kind, shape, room[::-1][:1] + room[1:])
        before = dst.data().buffer.data.copy()
        expected = before.copy()
        at_dst = dst.numpy()
        np.ndarray(at_dst.shape, at_dst.dtype, expected, 0, at_dst.strides)[...] = src.numpy()
        tiles = [stage(kind, rows, cols, 0x1000 * n) for n in range(1 + double)]
        copy(dst, src, *tiles)
        assert (dst.data().buffer.data == expected).all()


def test_the_tile_keeps_the_size_of_the_last_chunk() -> None:
    """DYNAMIC valid sizes change when a window slides over the tensor, and only then."""
    with device("a2a3"):
        src, dst, tile = (
            view(f32, (1, 1, 1, 10, 20)),
            view(f32, (1, 1, 1, 10, 20)),
            stage(f32, 4, 8),
        )
        TPUT(dst, src, tile)
        assert (tile.GetValidRow(), tile.GetValidCol()) == (2, 4)
        small = view(f32, (1, 1, 1, 1, 3))
        TPUT(view(f32, (1, 1, 1, 1, 3)), small, tile)
        assert (tile.GetValidRow(), tile.GetValidCol()) == (2, 4)


def test_staging_tiles_are_garbage_afterwards() -> None:
    with device("a2a3"):
        tile = stage(f32, 4, 8)
        TGET(view(f32, (1, 1, 1, 4, 8)), view(f32, (1, 1, 1, 4, 8)), tile)
        with pytest.raises(ProgramError, match="never written"):
            tile.numpy()


@pytest.mark.parametrize("layout", [Layout.DN, Layout.NZ])
def test_other_layouts(layout: Layout) -> None:
    """Column-major and boxed tensors go through a tile of the same arrangement."""
    kind = float16
    T, S = TileShape2D[kind, 32, 64, layout], BaseShape2D[kind, 32, 64, layout]
    G = GlobalTensor[kind, T, S, layout]
    slayout = SLayout.RowMajor if layout == Layout.NZ else SLayout.NoneBox
    with device("a5"):
        tile = at(
            Tile[TileType.Vec, kind, 16, 16, BLayout.ColMajor, DYNAMIC, DYNAMIC, slayout](16, 16), 0
        )
        src, dst = G(noise(kind, (2048,))), G(np.zeros(2048, np.float16))
        TPUT(dst, src, tile)
        assert same(dst, src.numpy())


def test_atomic_add() -> None:
    """AtomicAdd adds in the element type, given in brackets or behind the tile."""
    with device("a2a3"):
        src, dst = view(i16, (1, 1, 1, 5, 16)), view(i16, (1, 1, 1, 5, 16))
        expected = dst.numpy() + 2 * src.numpy()
        TPUT[AtomicType.AtomicAdd](dst, src, stage(i16, 2, 16))
        TPUT(dst, src, stage(i16, 2, 16), AtomicType.AtomicAdd)
        assert same(dst, expected)


def test_copies_name_what_is_wrong() -> None:
    square = (1, 1, 1, 8, 16)
    with device("a2a3"):
        a, b, tile = view(f32, square), view(f32, square), stage(f32, 4, 8)
        for code, call in {
            "comm.TPUT.TPUT-1": lambda: TPUT(a, b, stage(f16, 4, 16)),
            "comm.TGET.TGET-1": lambda: TGET(view(i32, square), b, tile),
            "comm.TPUT.CH-1": lambda: TPUT(a, b, empty()),
            "comm.TPUT.CH-2": lambda: TPUT(a, b, stage(f32, 3, 16, dynamic=False)),
            "comm.TPUT.CH-3": lambda: TPUT(a, b, stage(f32, 8, 12, dynamic=False)),
            "comm.TPUT.TPUT-4": lambda: TPUT(view(f32, (1, 1, 1, 8, 15)), b, tile),
            "comm.TPUT.PP-1": lambda: TPUT(a, b, tile, stage(f32, 4, 16, 0x1000)),
            "comm.TPUT.PP-2": lambda: TPUT(a, b, tile, stage(f32, 4, 8, 64)),
            "comm.TPUT.overlap": lambda: TPUT(a, a, tile),
        }.items():
            with pytest.raises(ProgramError) as error:
                call()
            assert code in error.value.codes, code
        with pytest.raises(Unbound):
            TPUT(a, b, Tile[TileType.Vec, float32, 8, 16]())
        short = GlobalTensor[float32, Shape[1, 1, 1, 8, 16], Stride[1, 1, 1, 16, 1]]
        with pytest.raises(OutOfBounds):
            TPUT(short(np.zeros(100, np.float32)), b, tile)


def empty() -> Any:
    tile = stage(f32, 4, 8)
    tile.SetValidShape(0, 8)
    return tile


def test_views_that_interleave_do_not_overlap() -> None:
    """The left and the right half of a matrix share rows, but no element."""
    matrix = np.arange(64, dtype=np.float32).reshape(4, 16)
    whole = GlobalTensor(matrix)
    with device("a2a3"):
        TPUT(whole[:, 8:], whole[:, :8], stage(f32, 2, 8))
    assert (matrix[:, 8:] == matrix[:, :8]).all()


# ---- collectives ---------------------------------------------------------------------------------


@st.composite
def groups(draw: Any) -> tuple[Any, ...]:
    shape, count = draw(EXTENTS), draw(st.integers(1, 4))
    chunk = draw(st.integers(1, 10)), draw(st.integers(1, 24))
    return shape, count, draw(st.integers(0, count - 1)), chunk, draw(st.booleans()), draw(TARGETS)


def members(kind: Any, shape: tuple[int, ...], count: int, root: int) -> ParallelGroup:
    return ParallelGroup([view(kind, shape, (0, 0, 1, 0, 2)) for _ in range(count)], root)


@settings(max_examples=40, deadline=None)
@given(groups(), KINDS)
def test_broadcast_gather_scatter(case, kind) -> None:
    shape, count, root, chunk, double, target = case
    tall = (*shape[:3], shape[3] * count, shape[4])
    with device(target):
        tiles = [stage(kind, *chunk, 0x1000 * n) for n in range(1 + double)]

        def ready() -> list[Any]:
            for tile in tiles:
                tile.SetValidShape(*chunk)
            return tiles

        group, src = members(kind, shape, count, root), view(kind, shape)
        TBROADCAST(group, src, *ready())
        assert all(same(member, src.numpy()) for member in group)
        group, dst = members(kind, shape, count, root), view(kind, tall)
        TGATHER(group, dst, *ready())
        assert same(dst, np.concatenate([m.numpy() for m in group], axis=3))
        group, src = members(kind, shape, count, root), view(kind, tall)
        TSCATTER(group, src, *ready())
        parts = np.split(src.numpy(), count, axis=3)
        assert all(same(member, part) for member, part in zip(group, parts, strict=True))


@settings(max_examples=40, deadline=None)
@given(groups(), st.sampled_from([f32, i32]), st.sampled_from(list(ReduceOp)))
def test_reduce_folds_in_order(case, kind, op) -> None:
    """The root first, the others ascending, in the element type: bit for bit."""
    shape, count, root, chunk, double, target = case
    combine = {ReduceOp.Sum: np.add, ReduceOp.Max: np.maximum, ReduceOp.Min: np.minimum}[op]
    rng = np.random.default_rng(count)
    with device(target):
        group = members(kind, shape, count, root)
        for member in group:
            member.numpy()[...] = rng.normal(0, 1000, shape).astype(kind.np)
        expected = group[root].numpy().copy()
        for index, member in enumerate(group):
            if index != root:
                expected = combine(expected, member.numpy())
        dst = view(kind, shape)
        tiles = [stage(kind, *chunk, 0x1000 * n) for n in range(2 + double)]
        TREDUCE(group, dst, *tiles, op)
        assert same(dst, expected)


def test_reduce_into_the_buffer_of_the_root() -> None:
    with device("a2a3"):
        group = members(i32, (1, 1, 1, 6, 8), 3, 1)
        expected = sum(m.numpy() for m in group)
        TREDUCE(group, group[1], stage(i32, 2, 8), stage(i32, 2, 8, 0x1000), ReduceOp.Sum)
        assert same(group[1], expected)
        with pytest.raises(ProgramError) as error:
            TREDUCE(group, group[0], stage(i32, 2, 8), stage(i32, 2, 8, 0x1000), ReduceOp.Sum)
        assert error.value.codes == ("comm.TREDUCE.overlap",)


def test_collectives_name_what_is_wrong() -> None:
    square = (1, 1, 1, 4, 8)
    with device("a2a3"):
        tile, other, src = stage(f32, 4, 8), stage(f32, 4, 8, 0x1000), view(f32, square)
        group = members(f32, square, 3, 0)
        uneven = ParallelGroup([src, view(f32, (1, 1, 1, 5, 8))], 0)
        for code, call in {
            "comm.TBROADCAST.PG-1": lambda: TBROADCAST(ParallelGroup([], 0), src, tile),
            "comm.TBROADCAST.PG-2": lambda: TBROADCAST(members(f32, square, 2, 2), src, tile),
            "comm.TGATHER.PG-4": lambda: TGATHER(uneven, view(f32, (1, 1, 1, 9, 8)), tile),
            "comm.TGATHER.TGA-3": lambda: TGATHER(group, view(f32, (1, 1, 1, 11, 8)), tile),
            "comm.TSCATTER.TSC-3": lambda: TSCATTER(group, view(f32, (1, 1, 1, 11, 8)), tile),
            "comm.TREDUCE.TR-5": lambda: TREDUCE(group, src, tile, tile, ReduceOp.Sum),
            "comm.TREDUCE.TR-4": lambda: TREDUCE(group, src, tile, other),
            "comm.TREDUCE.ccu-target": lambda: TREDUCE[CollEngine.CCU](
                group, src, tile, other, ReduceOp.Sum, CcuTriggerContext()
            ),
        }.items():
            with pytest.raises(ProgramError) as error:
                call()
            assert code in error.value.codes, code
        with pytest.raises(ProgramError, match="group-type"):
            ParallelGroup([src, view(i32, square)], 0)
        with pytest.raises(ProgramError, match="group-index"):
            group[3]


def test_group_as_in_cpp() -> None:
    tensors = [view(f32, (1, 1, 1, 2, 8)) for _ in range(4)]
    group = ParallelGroup.Create(tensors, 3, 2)
    assert (group.GetSize(), group.GetRootIdx(), group.empty()) == (3, 2, False)
    assert ParallelGroup(tensors).GetRootIdx() == -1


# ---- the collective unit -------------------------------------------------------------------------


def test_collective_unit_fires_when_all_have_rung() -> None:
    """Every member rings; the data moves with the last of them."""
    with device("a5", mode="auto"):
        group = members(i32, (1, 1, 1, 4, 8), 3, 1)
        dst = view(i32, (1, 1, 1, 4, 8))
        before, expected = dst.numpy().copy(), sum(m.numpy() for m in group)
        T = Tile[TileType.Vec, int32, 4, 8]
        for member in (2, 0, 1):
            assert same(dst, before)
            ring = CcuTriggerContext(selfIdx=member)
            TREDUCE[CollEngine.CCU](group, dst, T(), T(), ReduceOp.Sum, ring)
        assert same(dst, expected)


def test_collective_unit_with_input_from_the_kernel() -> None:
    with device("a5", mode="auto"):
        group = members(i32, (1, 1, 1, 4, 8), 2, 0)
        dst = view(i32, (1, 1, 1, 8, 8))
        for member in range(2):
            tile = Tile[TileType.Vec, int32, 4, 8]()
            tile.fill(member + 5)
            ring = CcuTriggerContext(selfIdx=member, inputSource=CcuInputSource.AivStored)
            TGATHER[CollEngine.CCU](group, dst, tile, ring)
        assert dst.numpy().reshape(8, 8)[:, 0].tolist() == [5] * 4 + [6] * 4
        ring = CcuTriggerContext(selfIdx=0)
        TGATHER[CollEngine.CCU](group, dst, Tile[TileType.Vec, int32, 4, 8](), ring)
        with pytest.raises(ProgramError, match="rings once"):
            TGATHER[CollEngine.CCU](group, dst, Tile[TileType.Vec, int32, 4, 8](), ring)


# ---- signals -------------------------------------------------------------------------------------


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), TARGETS)
@settings(max_examples=40, deadline=None)
def test_notify_wraps(start: int, value: int, target: str) -> None:
    words = np.array([start, 7], np.int32)
    with device(target):
        TNOTIFY(Signal(words), value, NotifyOp.AtomicAdd)
        assert words[0] == (start + value + 2**31) % 2**32 - 2**31
        TNOTIFY(Signal(words), value, NotifyOp.Set)
        assert words[0] == (value + 2**31) % 2**32 - 2**31
    assert words[1] == 7


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 1.0, float("nan")])
def test_signals_are_numbers_of_32_bits(value: float) -> None:
    signal = Signal(np.zeros(1, np.int32))
    with device("a2a3"):
        for call in (partial(TNOTIFY[NotifyOp.Set], signal), partial(TWAIT[WaitCmp.EQ], signal)):
            with pytest.raises(ProgramError, match=r"is an integer of 32 bits"):
                call(value)


@given(st.lists(st.integers(-3, 3), min_size=6, max_size=6), st.integers(-3, 3),
       st.sampled_from(list(WaitCmp)))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_wait_and_test_look_at_every_element(values, wanted, cmp) -> None:
    compare = {"EQ": "==", "NE": "!=", "GT": ">", "GE": ">=", "LT": "<", "LE": "<="}[cmp.name]
    grid = np.full((2, 5), 100, np.int32)
    grid[:, :3] = np.reshape(values, (2, 3))
    holds = all(eval(f"{v} {compare} {wanted}") for v in values)
    with device("a2a3"):
        region = Signal2D[2, 3](grid, 5)
        assert TTEST(region, wanted, cmp) is holds
        if holds:
            TWAIT(region, wanted, cmp)
        else:
            with pytest.raises(WouldBlock, match=f"TWAIT for a signal {compare} {wanted}"):
                TWAIT(region, wanted, cmp)


def test_an_empty_region_is_satisfied() -> None:
    nothing = GlobalTensor[int32, Shape[1, 1, 1, 0, 4], Stride[1, 1, 1, 4, 1]](
        np.zeros(4, np.int32)
    )
    with device("a2a3"):
        TWAIT(nothing, 5, WaitCmp.EQ)
        assert TTEST(nothing, 5, WaitCmp.EQ)


def test_signals_name_what_is_wrong() -> None:
    with device("a2a3"):
        odd = np.zeros(9, np.uint8)[1:5].view(np.int32)
        for code, call in {
            "comm.TNOTIFY.TN-1": lambda: TNOTIFY(view(f32, (1,) * 5), 1, NotifyOp.Set),
            "gm-array": lambda: TNOTIFY(Signal(odd), 1, NotifyOp.Set),
            "comm.TWAIT.TW-1": lambda: TWAIT(view(u32, (1,) * 5), 1, WaitCmp.EQ),
            "comm.TTEST.TW-6": lambda: TTEST(view(i32, (1,) * 5), 1),
        }.items():
            with pytest.raises(ProgramError) as error:
                call()
            assert code in error.value.codes, code


# ---- asynchronous transfers ----------------------------------------------------------------------


def flat(kind: Any, count: int) -> Any:
    return view(kind, (1, 1, 1, 1, count))


@pytest.mark.parametrize("transfer", [TPUT_ASYNC, TGET_ASYNC])
@pytest.mark.parametrize("target", ["a2a3", "a5", "cpu"])
def test_async_copies_a_flat_range(transfer: Any, target: str) -> None:
    with device(target):
        session = async_session(address=0x1000)
        src, dst = flat(f32, 50), flat(f32, 64)
        rest = dst.numpy()[..., 50:].copy()
        event = transfer(dst, src, session)
        assert event.Wait(session)
        assert event.Test(session)
        got = dst.numpy()
        assert (bits(got[..., :50]) == bits(src.numpy())).all()
        assert (bits(got[..., 50:]) == bits(rest)).all()
        by_engine = target == "a2a3" or (target == "a5" and transfer is TGET_ASYNC)
        assert event.handle == ((1 << 58 | 1) if by_engine else 0)


def test_handles_count_posts_and_queues() -> None:
    with device("a2a3"):
        scratch, session = at(Tile[TileType.Vec, uint8, 1, 256](), 0), AsyncSession()
        config = SdmaBaseConfig(block_bytes=64, queue_num=4)
        assert BuildAsyncSession(scratch, np.zeros(40960, np.uint8), session, 0, config)
        handles = [TPUT_ASYNC(flat(i8, n), flat(i8, n), session).handle for n in (64, 200, 1, 0)]
        assert handles == [1 << 58 | 1, 4 << 58 | 2, 4 << 58 | 3, 0]
        assert not AsyncEvent(1 << 58 | 9).Wait(session), "no such post"


def test_an_offset_moves_both_ends() -> None:
    with device("a2a3"):
        scratch, session = at(Tile[TileType.Vec, uint8, 1, 256](), 0), AsyncSession()
        config = SdmaBaseConfig(comm_block_offset=8)
        BuildAsyncSession(scratch, np.zeros(8, np.uint8), session, 0, config)
        src, dst = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
        G = GlobalTensor[float32, Shape[1, 1, 1, 1, 4], Stride[4, 4, 4, 4, 1]]
        TGET_ASYNC(G(dst), G(src), session)
        assert dst.tolist() == [0, 0, 2, 3, 4, 5, 0, 0]


def test_urma_counts_per_peer() -> None:
    with device("a5"):
        session = async_session(DmaEngine.URMA)
        put = TPUT_ASYNC[DmaEngine.URMA]
        peers = [3, 3, 5]
        handles = [put(flat(i8, 8), flat(i8, 8), session, p).handle for p in peers]
        assert handles == [3 << 32 | 1, 3 << 32 | 2, 5 << 32 | 1]


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ("no workspace", {"workspace": None}),
        ("tiny scratch", {"scratch": (1, 4)}),
        ("sync id", {"syncId": 8}),
        ("no queues", {"config": SdmaBaseConfig(queue_num=0)}),
        ("many queues", {"config": SdmaBaseConfig(queue_num=49)}),
        ("group", {"config": SdmaBaseConfig(queue_num=24), "group": 2}),
    ],
)
def test_sessions_that_cannot_be_built(change: str, argument: dict[str, Any]) -> None:
    with device("a2a3", mode="auto"):
        rows, cols = argument.get("scratch", (1, 256))
        scratch = Tile.of(TileSpec.of(TileType.Vec, u8, rows, cols))
        session = AsyncSession()
        built = BuildAsyncSession(
            scratch,
            argument.get("workspace", np.zeros(8, np.uint8)),
            session,
            argument.get("syncId", 0),
            argument.get("config"),
            argument.get("group", 0),
        )
        assert not built
        assert not session.valid
        with pytest.raises(ProgramError, match="session-valid"):
            TPUT_ASYNC(flat(f32, 8), flat(f32, 8), session)


def test_async_names_what_is_wrong() -> None:
    with device("a2a3", mode="auto"):
        session = async_session()
        a, b = flat(f32, 8), flat(f32, 8)
        for code, call in {
            "AS-1": lambda: TPUT_ASYNC(flat(i32, 8), b, session),
            "AS-3": lambda: TPUT_ASYNC(view(f32, (1, 1, 1, 2, 4)), b, session),
            "AS-4": lambda: TPUT_ASYNC(flat(f32, 7), b, session),
            "AS-A": lambda: TPUT_ASYNC[DmaEngine.URMA](a, b, session),
            "peer": lambda: TPUT_ASYNC(a, b, session, 1),
            "overlap": lambda: TPUT_ASYNC(a, a, session),
            "session": lambda: TPUT_ASYNC(a, b, object_with_key()),
        }.items():
            with pytest.raises(ProgramError) as error:
                call()
            assert f"comm.TPUT_ASYNC.{code}" in error.value.codes, code
    with device("a5", mode="auto"):
        session = async_session()
        with pytest.raises(ProgramError, match="AS-6"):
            TGET_ASYNC[DmaEngine.URMA](flat(f32, 8), flat(f32, 8), session)
        with pytest.raises(ProgramError, match="AS-C"):
            TGET_ASYNC[DmaEngine.RDMA](flat(f32, 8), flat(f32, 8), session)


def object_with_key() -> Any:
    return CcuTriggerContext()


def test_scratch_of_a_session_is_garbage() -> None:
    with device("a2a3"):
        tile = at(Tile[TileType.Vec, uint8, 1, 256](), 0)
        tile.fill(1)
        TPUT_ASYNC(flat(f32, 8), flat(f32, 8), async_session(address=0))
        with pytest.raises(ProgramError, match="never written"):
            tile.numpy()


# ---- among the pipes of a core -------------------------------------------------------------------

SQUARE = (1, 1, 1, 16, 16)
SCHEDULES = [{}, {"seed": 3}, {"seed": 11}]


@pytest.mark.parametrize("more", SCHEDULES)
def test_copies_keep_their_pipes_in_order(more: dict[str, Any]) -> None:
    """No hazard inside a copy or a collective, whatever the pipes' pace; no flag is left over."""
    src, dst, last = (view(f32, SQUARE) for _ in range(3))
    group = members(f32, SQUARE, 4, 0)
    total = view(f32, SQUARE)
    for member in group:
        member.numpy()[...] = 1

    def program() -> None:
        tiles = [stage(f32, 3, 16, 0x400 * n) for n in range(3)]
        TPUT(dst, src, tiles[0])
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID7)
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID7)
        tiles[0].SetValidShape(3, 16)
        TPUT(last, dst, *tiles[:2])
        for tile in tiles:
            tile.SetValidShape(3, 16)
        TREDUCE(group, total, *tiles, ReduceOp.Sum)

    assert codes(program, **more) == []
    assert same(last, src.numpy())
    assert (total.numpy() == 4).all()


def test_a_raised_flag_of_the_caller_is_in_the_way() -> None:
    def program() -> None:
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        TPUT(view(f32, SQUARE), view(f32, SQUARE), stage(f32, 16, 16))

    assert "E2" in codes(program)


def exchange(ordered: bool) -> Any:
    """One core stores and notifies, the other waits and loads."""
    middle, out, word = view(f32, SQUARE), view(f32, SQUARE), np.zeros(1, np.int32)

    def program() -> None:
        tile = stage(f32, 16, 16)
        if get_block_idx() == 0:
            event = Event[Op.TSTORE_VEC, Op.SCALAR](TPUT(middle, view(f32, SQUARE), tile))
            if ordered:
                event.Wait()
            TNOTIFY(Signal(word), 1, NotifyOp.Set)
            if not ordered:
                event.Wait()
        else:
            TWAIT(Signal(word), 1, WaitCmp.EQ)
            TGET(out, middle, tile)

    return program


@pytest.mark.parametrize("more", SCHEDULES)
def test_a_signal_orders_what_its_writer_knows(more: dict[str, Any]) -> None:
    assert codes(exchange(ordered=True), grid=2, **more) == []


def test_a_signal_that_overtakes_its_data_is_a_race() -> None:
    assert codes(exchange(ordered=False), grid=2) != []


def test_a_wait_that_nobody_ends() -> None:
    def program() -> None:
        TWAIT(Signal(np.zeros(1, np.int32)), 1, WaitCmp.EQ)

    assert codes(program) == ["E1"]


def test_not_on_kirin() -> None:
    with device("kirin9030", mode="auto"), pytest.raises(ProgramError, match="does not exist"):
        TNOTIFY(Signal(np.zeros(1, np.int32)), 1, NotifyOp.Set)
