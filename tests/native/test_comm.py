"""C++ kernels of several devices: signals, copies, collectives and asynchronous transfers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import comm
from ptokit.base.diagnostics import PtoError
from tests.native.support import line_of, needs_compiler, source

pytestmark = needs_compiler
RANKS = 3
KERNELS = """
AICORE inline void pass_on(__gm__ int32_t* told, __gm__ int32_t* here)
{
    comm::Signal theirs(told), ours(here);
    comm::TNOTIFY(theirs, 1, comm::NotifyOp::Set);
    comm::TWAIT(ours, 1, comm::WaitCmp::EQ);  // for the neighbour
}
extern "C" __global__ AICORE void ring(
    __gm__ float* right, __gm__ float* mine, __gm__ int32_t* told, __gm__ int32_t* here)
{
    T stage; TASSIGN(stage, 0);
    G to(right), from(mine);
    comm::TPUT(to, from, stage);
    pass_on(told, here);
}
extern "C" __global__ AICORE void counted(
    __gm__ int32_t* told, __gm__ int32_t* here, __gm__ int32_t* out)
{
    static int calls = 0;  // each device has its own
    comm::Signal theirs(told);
    comm::Signal2D<2, 2> ours(here, 4);
    comm::TNOTIFY(theirs, 1, comm::NotifyOp::AtomicAdd);
    while (!comm::TTEST(ours, 0, comm::WaitCmp::GE)) {}
    out[0] = ++calls;
}
struct Context { uint64_t rank, ranks, windows[8]; };
template <typename F> AICORE void with_group(__gm__ Context* all, int root, F&& run)
{
    G members[8];
    for (int i = 0; i < (int)all->ranks; i++) members[i] = G((__gm__ float*)all->windows[i]);
    auto group = comm::ParallelGroup<G>::Create(members, all->ranks, root);
    if ((int)all->rank == group.GetRootIdx()) run(group);
}
extern "C" __global__ AICORE void gathered(__gm__ float* out, __gm__ Context* all, int root)
{
    T stage; TASSIGN(stage, 0);
    using Rows = Shape<1, 1, 1, DYNAMIC, 64>;
    GlobalTensor<float, Rows, Stride<1, 1, 1, 64, 1>> dst(out, Rows(16 * (int)all->ranks));
    with_group(all, root, [&](auto& group) { comm::TGATHER(group, dst, stage); });
}
extern "C" __global__ AICORE void reduced(__gm__ float* out, __gm__ Context* all, int root)
{
    T sum, part; TASSIGN(sum, 0); TASSIGN(part, 0x1000);
    G dst(out);
    with_group(all, root, [&](auto& group) {
        comm::TREDUCE(group, dst, sum, part, comm::ReduceOp::Max);
    });
}
extern "C" __global__ AICORE void posted(
    __gm__ float* right, __gm__ float* mine, __gm__ uint8_t* work, __gm__ int32_t* told,
    __gm__ int32_t* here, int waits)
{
    using Flat = GlobalTensor<float, Shape<1, 1, 1, 1, 1024>, Stride<1024, 1024, 1024, 1024, 1>>;
    Tile<TileType::Vec, uint8_t, 1, comm::sdma::UB_ALIGN_SIZE> scratch; TASSIGN(scratch, 0);
    comm::AsyncSession session;
    if (!comm::BuildAsyncSession(scratch, work, session)) trap();
    Flat to(right), from(mine);
    comm::AsyncEvent event = comm::TGET_ASYNC(from, to, session);
    if (!event.valid() || event.engine != comm::DmaEngine::SDMA) trap();
    if (waits) event.Wait(session);
    T tile; TASSIGN(tile, 0x1000);
    G got(mine);
    TLOAD(tile, got);  // what was fetched
    pass_on(told, here);
}
extern "C" __global__ AICORE void fetched(__gm__ float* out, __gm__ float* x, __gm__ uint8_t* work)
{
    comm::AsyncSession shared;
    PrefetchAsyncContext own(work), other(work, &shared);
    TASSIGN(other.scratchTile, 0);
    if (!comm::BuildAsyncSession(other.scratchTile, work, shared)) trap();
    G g(x), h(out);
    if (!TPREFETCH_ASYNC(g, own).Wait(own.GetSession())) trap();
    if (!TPREFETCH_ASYNC(g, other).Wait(other.GetSession())) trap();
    T tile; TASSIGN(tile, 0x1000);
    TLOAD(tile, g);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE3>();
    TSTORE(h, tile);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return source(tmp_path_factory.mktemp("comm"), KERNELS)


def right_of(rank: int) -> int:
    return (rank + 1) % RANKS


def filled(world: Any) -> Any:
    data = world.window((16, 64))
    for rank, array in enumerate(data):
        array[...] = np.random.default_rng(rank).standard_normal((16, 64))
    return data


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_devices_pass_their_data_round(program: Any, seed: int | None) -> None:
    world = comm.World(RANKS)
    sent, got, told = filled(world), world.window((16, 64)), world.signals()

    def run(rank: int) -> Any:
        right = right_of(rank)
        return program.ring[1](got[right], sent[rank], told[right], told[rank]).warnings

    assert world.run(run, seed=seed) == [()] * RANKS
    for rank in range(RANKS):
        assert np.array_equal(got[right_of(rank)], sent[rank])


def test_every_device_has_its_own_variables(program: Any) -> None:
    world = comm.World(RANKS)
    told, out = world.signals(2, 4), world.window((16,), np.int32)
    for _ in range(2):
        world.run(lambda r: program.counted[1](told[right_of(r)], told[r], out[r]))
        assert [int(each[0]) for each in out] == [1] * RANKS


@pytest.mark.parametrize("name", ["gathered", "reduced"])
def test_a_root_collects_through_addresses_that_it_reads(program: Any, name: str) -> None:
    world, root = comm.World(RANKS), 1
    data = filled(world)
    wanted = np.concatenate(list(data)) if name == "gathered" else np.max(list(data), axis=0)
    out = [np.zeros_like(wanted) for _ in range(RANKS)]

    def run(rank: int) -> None:
        places = [each.ctypes.data for each in data]
        context = np.array([rank, RANKS, *places, *[0] * (8 - RANKS)], np.uint64)
        program[name][1](out[rank], context.view(np.uint8), root)

    world.run(run)
    assert np.array_equal(out[root], wanted)
    assert not out[0].any()


@pytest.mark.parametrize("waits", [1, 0])
def test_a_transfer_is_over_when_it_was_waited_for(program: Any, waits: int) -> None:
    world = comm.World(RANKS)
    there, mine, told = filled(world), world.window((16, 64)), world.signals()

    def run(rank: int) -> None:
        right, work = right_of(rank), np.zeros(1 << 16, np.uint8)
        program.posted[1](there[right], mine[rank], work, told[right], told[rank], waits)

    if waits:
        world.run(run)
        assert all(np.array_equal(mine[rank], there[right_of(rank)]) for rank in range(RANKS))
        return
    with pytest.raises(PtoError) as raised:
        world.run(run)
    found = raised.value.diagnostics[0]
    assert found.location is not None
    assert found.location.line == line_of(KERNELS, "TLOAD(tile, got);")


def test_a_device_that_waits_in_vain_is_told_at_its_line(program: Any) -> None:
    world = comm.World(2)
    data, told = world.window((16, 64)), world.signals(2)

    def run(rank: int) -> None:  # each tells itself elsewhere
        program.ring[1](data[rank], data[1 - rank], told[rank][1:], told[rank])

    with pytest.raises(PtoError) as raised:
        world.run(run)
    found = raised.value.diagnostics[0]
    assert found.location is not None
    assert found.location.line == line_of(KERNELS, "comm::TWAIT(ours, 1")
    assert found.location.callers[0].line == line_of(KERNELS, "    pass_on(told, here);\n}")


def test_prefetches_have_sessions(program: Any) -> None:
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    out = np.zeros_like(x)
    program.fetched[1](out, x, np.zeros(1 << 16, np.uint8))
    assert np.array_equal(out, x)


def test_a_kernel_alone_that_waits_for_others_hangs(program: Any) -> None:
    x, signal = np.zeros((16, 64), np.float32), np.zeros(1, np.int32)
    with pytest.raises(PtoError):
        program.ring[1](np.zeros_like(x), x, np.zeros(1, np.int32), signal)
