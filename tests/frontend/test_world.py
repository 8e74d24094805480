"""Worlds of ranks: windows, turns, signals across ranks, and a ring all-reduce over all of it."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.comm import *
from ptokit.comm import TGATHER, TSCATTER  # the collectives, not the tile instructions
from ptokit.frontend.launch import launch
from ptokit.machine.faults import WouldBlock
from tests.hazards.support import at

ROWS, COLS = 8, 16
VEC = Tile[TileType.Vec, float32, ROWS, COLS]
CHUNK = Tile[TileType.Vec, float32, 4, COLS]


def told(event: RecordEvent, signal: Any, value: int = 1) -> None:
    """Notify a signal after the stores of a copy."""
    Event[Op.TSTORE_VEC, Op.SCALAR](event).Wait()
    TNOTIFY(signal, value, NotifyOp.AtomicAdd)


# ---- a ring all-reduce ---------------------------------------------------------------------------


def ring_all_reduce(
    rank: int, data: SymmetricWindow, inbox: SymmetricWindow, arrived: SymmetricWindow
) -> None:
    """Sum `data` over all ranks, slice by slice around the ring, in place on every rank."""
    ranks = get_rank_num()
    right = (rank + 1) % ranks
    mine, other, stage = at(VEC(), 0x0), at(VEC(), 0x400), at(CHUNK(), 0x800)
    for step in range(2 * ranks - 2):
        # First every slice collects its sum on the way round, then the sums go round.
        outgoing, incoming = (rank - step) % ranks, (rank - step - 1) % ranks
        there = data.world.remote(GlobalTensor(inbox.local[step]), right)
        event = TPUT(there, GlobalTensor(data.local[outgoing]), stage)
        told(event, arrived.signal(right))
        TWAIT(arrived.signal(), step + 1, WaitCmp.GE)
        slot, target = GlobalTensor(inbox.local[step]), GlobalTensor(data.local[incoming])
        TLOAD(mine, slot)
        if step < ranks - 1:
            TLOAD(other, target)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            TADD(mine, mine, other)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        else:
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3](5, 5)
        TSTORE(target, mine)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2](5, 5)


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ring_all_reduce(ranks: int, seed: int | None) -> None:
    """Whatever the turns: every rank ends with the sum of all."""
    world = World(ranks)
    data = world.window((ranks, ROWS, COLS))
    inbox, arrived = world.window((max(2 * ranks - 2, 1), ROWS, COLS)), world.signals()
    rng = np.random.default_rng(ranks)
    for array in data:
        array[...] = rng.integers(-99, 99, array.shape)
    total = sum(array.copy() for array in data)
    world.run(ring_all_reduce, data, inbox, arrived, seed=seed)
    for array in data:
        np.testing.assert_array_equal(array, total)


@pytest.mark.parametrize("seed", [None, 4])
def test_ring_inside_launches(seed: int | None) -> None:
    """The same program as a checked launch on each rank: hazard-free, and ranks still alternate."""
    world = World(3)
    data = world.window((3, ROWS, COLS))
    inbox, arrived = world.window((4, ROWS, COLS)), world.signals()
    for rank, array in enumerate(data):
        array[...] = rank + 1

    def program(rank: int) -> None:
        launch({"vector": lambda: ring_all_reduce(rank, data, inbox, arrived)}, seed=seed)

    world.run(program, seed=seed)
    assert all((array == 6).all() for array in data)


# ---- collectives from a root ---------------------------------------------------------------------


def test_scatter_reduce_broadcast_from_the_root() -> None:
    """The root acts, the others wait to be told."""
    world = World(3, mode="auto")
    part, result = world.window((4, COLS)), world.window((4, COLS))
    told_all, finished = world.signals(), world.signals()
    source = np.arange(12 * COLS, dtype=np.float32).reshape(12, COLS)

    def program(rank: int) -> None:
        if rank == 1:
            TSCATTER(part.group(root=1), GlobalTensor(source), CHUNK())
            for other in range(get_rank_num()):
                TNOTIFY(told_all.signal(other), 1, NotifyOp.Set)
        TWAIT(told_all.signal(), 1, WaitCmp.EQ)
        part.local[...] *= 2
        TNOTIFY(finished.signal(1), 1, NotifyOp.AtomicAdd)
        if rank == 1:
            TWAIT(finished.signal(), 3, WaitCmp.GE)
            TREDUCE(part.group(1), result.tensor(), CHUNK(), CHUNK(), ReduceOp.Max)
            TBROADCAST(result.group(1), result.tensor(), CHUNK())

    world.run(program)
    assert all((array == 2 * source[8:]).all() for array in result)


def test_only_the_root_executes_a_collective() -> None:
    world = World(2, mode="auto")
    part = world.window((4, COLS))
    whole = GlobalTensor(np.zeros((8, COLS), np.float32))
    with world.rank(0), pytest.raises(ProgramError) as error:
        TGATHER(part.group(root=1), whole, CHUNK())
    assert error.value.codes == ("comm.TGATHER.TGA-R",)
    with world.rank(1):
        TGATHER(part.group(root=1), whole, CHUNK())


# ---- ranks and windows ---------------------------------------------------------------------------


def test_ranks_know_who_they_are() -> None:
    world = World(5)
    assert (get_rank_id(), get_rank_num(), len(world)) == (0, 1, 5)
    assert world.run(lambda rank: (rank, get_rank_id(), get_rank_num())) == [
        (r, r, 5) for r in range(5)
    ]


def test_each_rank_has_a_machine_of_its_own() -> None:
    world = World(2)
    tile = VEC
    for rank in range(2):
        with world.rank(rank):
            at(tile(), 0).fill(rank + 1)
    with world.rank(0):
        assert (at(tile(), 0).numpy() == 1).all()


def test_remote_views_keep_their_place() -> None:
    world = World(3)
    data = world.window((6, 10))
    with world.rank(1):
        near = GlobalTensor(data.local)[2:4, 3:7]
        far = world.remote(near, 2)
        assert type(far) is type(near)
        far.numpy()[...] = 1
        assert near.numpy().sum() == 0
        assert world.remote(far, 1).data().offset == near.data().offset
        pointer = world.remote(ptr(data.local, 12), 0)
    expected = np.zeros((6, 10))
    expected[2:4, 3:7] = 1
    assert (data[2] == expected).all()
    assert not data[1].any()
    assert pointer.offset == 48
    with pytest.raises(ProgramError, match="in a window"):
        world.remote(GlobalTensor(np.zeros((2, 2), np.float32)), 1)
    with pytest.raises(ProgramError, match=r"lies in 0\.\.2"):
        world.remote(near, 3)


def test_windows_of_types_numpy_cannot_name() -> None:
    world = World(2, target="a5", mode="auto")
    codes = world.window((4, 32), hif8)
    codes[0][...] = 0x11
    T = Tile[TileType.Vec, hif8, 4, 32]
    with world.rank(0):
        TPUT(codes.tensor(1), codes.tensor(), T())
    assert (codes[1] == 0x11).all()


def test_worlds_have_a_size() -> None:
    for size in (0, 65):
        with pytest.raises(PtoError, match="1 to 64 ranks"):
            World(size)
    world = World(2)
    with pytest.raises(ProgramError, match=r"0\.\.1"), world.rank(2):
        pass
    with pytest.raises(ProgramError, match=r"0\.\.1"):
        world.signals().signal(2)


# ---- waiting -------------------------------------------------------------------------------------


def test_by_hand_one_rank_after_the_other() -> None:
    """Without `run` a signal must come before the wait for it."""
    world = World(2)
    word = world.signals()
    with world.rank(1), pytest.raises(WouldBlock) as error:
        TWAIT(word.signal(), 1, WaitCmp.EQ)
    assert "on rank 1 for a signal == 1" in str(error.value)
    assert "signal[0, 0] = 0" in str(error.value)
    with world.rank(0):
        TNOTIFY(word.signal(1), 1, NotifyOp.Set)
    with world.rank(1):
        TWAIT(word.signal(), 1, WaitCmp.EQ)


def test_a_deadlock_says_what_every_rank_waits_for() -> None:
    world = World(3)
    word = world.signals(2, 4)

    def program(rank: int) -> None:
        if rank == 2:
            return
        TWAIT(Signal2D[2, 4](word.local), 7 + rank, WaitCmp.GE)

    with pytest.raises(WouldBlock) as error:
        world.run(program)
    messages = [d.message for d in error.value.diagnostics]
    assert [m.partition(" would")[0] for m in messages] == [
        "TWAIT on rank 0 for a signal >= 7",
        "TWAIT on rank 1 for a signal >= 8",
    ]
    assert world.run(lambda rank: rank) == [0, 1, 2], "the world can run again"


def test_a_deadlock_inside_launches() -> None:
    world = World(2)
    word = world.signals()

    def program(rank: int) -> None:
        launch({"vector": lambda: TWAIT(word.signal(), 1, WaitCmp.EQ)})

    with pytest.raises(WouldBlock) as error:
        world.run(program)
    assert [d.code for d in error.value.diagnostics] == ["E1", "E1"]


def test_a_loop_of_tests_lets_others_go_on() -> None:
    world = World(2)
    word = world.signals()

    def program(rank: int) -> int:
        if rank == 1:
            TNOTIFY(word.signal(0), 1, NotifyOp.Set)
            return 0
        looks = 1
        while not TTEST(word.signal(), 1, WaitCmp.EQ):
            looks += 1
        return looks

    assert world.run(program) == [2, 0]


def test_a_loop_of_tests_that_nobody_ends() -> None:
    world = World(2)
    word = world.signals()

    def program(rank: int) -> None:
        while not TTEST(word.signal(), 1, WaitCmp.EQ):
            pass

    with pytest.raises(WouldBlock, match="a loop around TTEST on rank"):
        world.run(program)


def test_a_kernel_that_tests_lets_other_ranks_go_on_at_once() -> None:
    """Two blocks look, each once, before the other rank has its turn."""
    world = World(2)
    word, looks = world.signals(), []

    def looking() -> None:
        while not TTEST(word.signal(), 1, WaitCmp.EQ):
            looks.append(get_block_idx())

    def program(rank: int) -> None:
        if rank:
            TNOTIFY(word.signal(0), 1, NotifyOp.Set)
        else:
            launch({"vector": looking}, grid=2)

    world.run(program)
    assert looks == [0, 1]


def test_a_kernel_that_tests_for_what_no_rank_brings() -> None:
    world = World(2)
    word = world.signals()

    def looking() -> None:
        while not TTEST(word.signal(), 1, WaitCmp.EQ):
            pass

    with pytest.raises(PtoError) as error:
        world.run(lambda rank: None if rank else launch({"vector": looking}))
    assert error.value.codes == ("E1",)
    with world.rank(0):  # where nobody takes turns
        with pytest.raises(PtoError) as error:
            launch({"vector": looking})
        assert error.value.codes == ("E1",)
        with pytest.raises(WouldBlock, match="a loop around TTEST on rank 0"):
            looking()


def test_signals_are_watched_at_home() -> None:
    world = World(2)
    word = world.signals()
    with world.rank(0), pytest.raises(ProgramError) as error:
        TTEST(word.signal(1), 0, WaitCmp.EQ)
    assert error.value.codes == ("comm.TTEST.TW-2",)


def test_an_error_names_its_rank() -> None:
    world = World(3)

    def program(rank: int) -> None:
        if rank == 1:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken") as error:
        world.run(program)
    assert error.value.__notes__ == ["on rank 1"]


def test_a_running_world_cannot_run() -> None:
    world = World(2)
    with pytest.raises(PtoError, match="are running"):
        world.run(lambda rank: world.run(lambda inner: inner))


def test_seeds_choose_the_turns() -> None:
    """The same seed gives the same run; some seeds give another."""

    def order(seed: int | None) -> list[int]:
        world, seen = World(4), list[int]()
        word = world.signals()

        def program(rank: int) -> None:
            for _ in range(3):
                seen.append(rank)
                TNOTIFY(word.signal(rank), 1, NotifyOp.AtomicAdd)

        world.run(program, seed=seed)
        return seen

    assert order(None) == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert order(5) == order(5)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


# ---- asynchronous transfers ----------------------------------------------------------------------


def test_async_put_to_the_neighbour() -> None:
    world = World(4)
    inbox, word = world.window(32), world.signals()

    def program(rank: int) -> float:
        right = (rank + 1) % get_rank_num()
        session = async_session()
        mine = np.full(32, rank, np.float32)
        event = TPUT_ASYNC(inbox.tensor(right), GlobalTensor(mine), session)
        assert event.valid()
        assert event.Wait(session)
        TNOTIFY(word.signal(right), 1, NotifyOp.Set)
        TWAIT(word.signal(), 1, WaitCmp.EQ)
        return float(inbox.local.mean())

    assert world.run(program) == [3, 0, 1, 2]


def test_urma_peers_are_ranks() -> None:
    world = World(2, target="a5")
    inbox = world.window(32)
    with world.rank(0):
        session = async_session(DmaEngine.URMA)
        mine = GlobalTensor(np.zeros(32, np.float32))
        with pytest.raises(ProgramError) as error:
            TPUT_ASYNC[DmaEngine.URMA](inbox.tensor(1), mine, session, 2)
    assert error.value.codes == ("comm.TPUT_ASYNC.AS-11",)


Words = GlobalTensor[i32, Shape[1, 1, 1, 1, 2], Stride[2, 2, 2, 2, 1]]


@kernel
def meets(words, found):
    """Block 1 waits for block 0, then block 0 for block 1; the second time by asking."""
    mine, its = comm.Signal(ptr(words, get_block_idx())), comm.Signal(ptr(words, 1))
    if get_block_idx() == 0:
        comm.TNOTIFY(its, 3, comm.NotifyOp.AtomicAdd)
        comm.TWAIT(comm.Signal(words), 5, comm.WaitCmp.EQ)
    else:
        comm.TWAIT(mine, 3, comm.WaitCmp.GE)
        comm.TNOTIFY(comm.Signal(words), 5, comm.NotifyOp.Set)
    if comm.TTEST(Words(words), 3, comm.WaitCmp.GE):
        comm.TNOTIFY(comm.Signal(ptr(found, get_block_idx())), 1, comm.NotifyOp.Set)
    if comm.TTEST(Words(words), 9, comm.WaitCmp.GE):
        comm.TNOTIFY(comm.Signal(found), 9, comm.NotifyOp.Set)


def test_signals_are_effects_and_the_stream_shows_them_on_every_path() -> None:
    from ptokit.isa.effects import Word

    told: dict[str, Any] = {}
    arrays = np.zeros(2, np.int32), np.zeros(2, np.int32)
    text = loads(meets.text(*arrays, target="a2a3", form="l3")).entry()
    for name, made, options in (
        ("eager", meets, {}),
        ("lowered", meets, {"path": "lowered"}),
        ("reference", meets, {"path": "lowered", "engine": "reference"}),
        ("text", text, {}),
    ):
        words, found = np.zeros(2, np.int32), np.zeros(2, np.int32)
        run = made[2](words, found, target="a2a3", events=True, **options)
        assert (words.tolist(), found.tolist()) == ([5, 3], [1, 1])
        told[name] = [
            (e.name, e.operation, e.pipe, e.accesses, e.signals, e.waits)
            for e in run.events
            if e.operation != "pipe_barrier"  # of a text without tiles, by whoever orders it
        ]
        assert told[name] == told["eager"], name
    events = [e for e in run.events if e.operation != "pipe_barrier"]
    of_block = {block: [e for e in events if e.block == block] for block in (0, 1)}
    notify, wait, yes, *_ = of_block[0]
    assert notify.signals == (Word("dstSignalData", 3, comm.NotifyOp.AtomicAdd),)
    assert [(t.writes, t.memory, t.ranges) for t in notify.accesses] == [
        (False, "GM0", ((4, 8),)),
        (True, "GM0", ((4, 8),)),
    ]
    answer = of_block[1][1]
    assert wait.waits == ((Word("signalData", 5, comm.WaitCmp.EQ), answer.name),)
    assert of_block[1][0].waits == ((Word("signalData", 3, comm.WaitCmp.GE), notify.name),)
    assert {giver for _, giver in yes.waits} == {notify.name, answer.name}
    assert not of_block[0][-1].waits, "a test that fails has learnt nothing"


def test_printing_orders_every_pipe_by_its_effect() -> None:
    """The tile is loaded when it is printed, whatever the schedule of the pipes."""

    def body(x):
        tile = Tile[TileType.Vec, f32, 8, 8]()
        TASSIGN[0](tile)
        TLOAD(tile, GlobalTensor(x))
        TPRINT(tile)

    x = np.full((8, 8), 7, np.float32)
    for path in ("eager", "lowered"):
        out = io.StringIO()
        with redirect_stdout(out):
            kernel(body)[1](x, target="a2a3", path=path, seed=1)
        assert out.getvalue().count("7.0000") == 64
        assert "?" not in out.getvalue()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_auto_mode_orders_copies_between_devices(target: str) -> None:
    """They work on several pipes, with event ids of their own."""

    def body(dst, src):
        stage, tile = Tile[TileType.Vec, f32, 8, 64](), Tile[TileType.Vec, f32, 8, 64]()
        for _ in range(2):
            TLOAD(tile, GlobalTensor(src))
            TADDS(tile, tile, 1.0)
            TPUT(GlobalTensor(dst), GlobalTensor(src), stage)
            TSTORE(GlobalTensor(dst), tile)

    x, y = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
    kernel(mode="auto")(body)[1](y, x, target=target, path="lowered", rules="strict")
    assert (y == 2).all()
