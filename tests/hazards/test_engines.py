"""DMA engines copy when they like: a transfer is complete when its event has been waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.comm import *
from ptokit.frontend.launch import explore
from tests.hazards.support import *

Row = GlobalTensor[float32, Shape[1, 1, 1, 1, 256], Stride[256, 256, 256, 256, 1]]
SCHEDULES = [None, Schedule(0), Schedule(1), Schedule(late=(PIPE_ALL,)), Schedule(late=(PIPE_V,))]


class Memory:
    """Three arrays, and what a program does with them around a transfer from x to y."""

    def __init__(self) -> None:
        self.x, self.y, self.z = array(1), array(2), array(3)

    def load(self, which: str) -> None:
        TLOAD(at(F32(), 0x400), G32(getattr(self, which)))

    def store(self, which: str) -> None:
        tile = at(F32(), 0x800)
        TEXPANDS(tile, 5.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(getattr(self, which)), tile)


def early_load(m: Memory) -> None:
    m.load("y")


def early_store(m: Memory) -> None:
    m.store("y")


def changed_source(m: Memory) -> None:
    m.store("x")


def read_source(m: Memory) -> None:
    m.load("x")


def elsewhere(m: Memory) -> None:
    m.load("z")


# What is done before the wait, and how it conflicts with the transfer.
AROUND: list[tuple[Callable[[Memory], None], str]] = [
    (early_load, "RAW"),
    (early_store, "WAW"),
    (changed_source, "WAR"),
    (read_source, ""),
    (elsewhere, ""),
]


def program(m: Memory, then: Callable[[Memory], None], wait: str, get: bool = True) -> Any:
    transfer = TGET_ASYNC if get else TPUT_ASYNC

    def body() -> None:
        session = async_session()
        event = transfer(Row(m.y), Row(m.x), session)  # transfer
        if wait == "Wait":
            event.Wait(session)
        elif wait == "Test":
            while not event.Test(session):
                pass
        then(m)  # then
        pipe_barrier(PIPE_MTE3)
        event.Wait(session)

    return body


def how(schedule: Schedule | None) -> dict[str, Any]:
    return {} if schedule is None else {"schedule": schedule}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("get", [True, False], ids=["get", "put"])
@pytest.mark.parametrize(("then", "kind"), AROUND, ids=lambda each: getattr(each, "__name__", each))
def test_nothing_is_ordered_before_the_wait(
    then: Callable[[Memory], None], kind: str, get: bool, schedule: Schedule | None
) -> None:
    found = check(program(Memory(), then, "", get), **how(schedule))
    assert [d.code for d in found] == ["E7"] * bool(kind)
    for each in found:
        assert each.evidence is not None
        assert marked(program, "transfer") == each.evidence.earlier.location.line
        assert "SDMA engine" in each.message
        assert f"({kind})" in each.message
        assert "event.Wait(session)" in each.fix
        assert each.evidence.edge == "wait for the event"


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("wait", ["Wait", "Test"])
@pytest.mark.parametrize(("then", "kind"), AROUND, ids=lambda each: getattr(each, "__name__", each))
def test_the_wait_orders_what_the_transfer_did(
    then: Callable[[Memory], None], kind: str, wait: str, schedule: Schedule | None
) -> None:
    m = Memory()
    assert codes(program(m, then, wait), **how(schedule)) == []
    assert (m.y == (5 if then is early_store else 1)).all()


@pytest.mark.parametrize(("ordered", "expected"), [(False, ["E7"]), (True, [])])
def test_a_transfer_begins_behind_what_the_scalar_unit_knows(
    ordered: bool, expected: list[str]
) -> None:
    m = Memory()

    def body() -> None:
        session = async_session()
        m.store("x")
        if ordered:
            PtoSetWaitFlag[PIPE_MTE3, PIPE_S]()
        TPUT_ASYNC(Row(m.y), Row(m.x), session).Wait(session)

    found = check(body)
    assert [d.code for d in found] == expected
    assert all("set_flag(PIPE_MTE3, PIPE_S" in d.fix for d in found)


def test_events_of_a_session_are_complete_in_order() -> None:
    """The wait for the second one is enough; another session is another matter."""

    def body(sessions: int) -> None:
        m = Memory()
        made = [async_session(address=0x1000 + 0x100 * i) for i in range(sessions)]
        TGET_ASYNC(Row(m.y), Row(m.x), made[0])
        last = TGET_ASYNC(Row(m.z), Row(m.x), made[-1])
        last.Wait(made[-1])
        m.load("y")

    assert codes(lambda: body(1)) == []
    assert codes(lambda: body(2)) == ["E7"]


@pytest.mark.parametrize(("shared", "expected"), [(True, []), (False, ["E7"])])
def test_a_prefetch_of_the_same_session_comes_behind(shared: bool, expected: list[str]) -> None:
    def body() -> None:
        m, session = Memory(), async_session(address=0x1000)
        TGET_ASYNC(Row(m.y), Row(m.x), session)
        workspace = np.zeros(1 << 16, np.uint8)
        context = PrefetchAsyncContext(workspace, session if shared else None)
        TPREFETCH_ASYNC(Row(m.z), context).Wait(context.GetSession())
        m.load("y")

    assert codes(body) == expected


def test_a_prefetch_changes_nothing() -> None:
    """Its bytes may be written meanwhile, and scalar accesses do not see it."""

    def body() -> None:
        m = Memory()
        context = PrefetchAsyncContext(np.zeros(1 << 16, np.uint8))
        m.store("z")
        TPREFETCH_ASYNC(Row(m.z), context)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_V]()
        pipe_barrier(PIPE_MTE3)
        m.store("z")

    assert codes(body) == []


def test_urma_keeps_the_order_of_each_peer() -> None:
    def body(peer: int) -> None:
        m = Memory()
        session = async_session(DmaEngine.URMA)
        TGET_ASYNC[DmaEngine.URMA](Row(m.y), Row(m.x), session, 0)
        TGET_ASYNC[DmaEngine.URMA](Row(m.z), Row(m.x), session, peer).Wait(session)
        m.load("y")

    assert codes(lambda: body(0), "a5") == []
    assert codes(lambda: body(1), "a5") == ["E7"]


def test_two_transfers_into_one_place() -> None:
    def body(waits: bool) -> None:
        m, session = Memory(), async_session()
        first = TGET_ASYNC(Row(m.y), Row(m.x), session)
        if waits:
            first.Wait(session)
        TGET_ASYNC(Row(m.y), Row(m.z), session).Wait(session)

    assert codes(lambda: body(True)) == []
    (found,) = check(lambda: body(False))
    assert (found.code, "event.Wait(session)" in found.fix) == ("E7", True)


def test_a_put_of_the_core_itself_has_nothing_to_wait_for() -> None:
    """A5 writes outwards through the scratch: order it like any store."""

    def body(ordered: bool) -> None:
        m, session = Memory(), async_session()
        TPUT_ASYNC(Row(m.y), Row(m.x), session).Wait(session)
        if ordered:
            PtoSetWaitFlag[PIPE_MTE3, PIPE_V]()
            PtoSetWaitFlag[PIPE_V, PIPE_MTE2]()
        m.load("y")

    # The flags inside hold MTE2 back until the store is over.
    assert codes(lambda: body(False), "a5") == []

    def told(ordered: bool) -> None:
        m, session = Memory(), async_session()
        TPUT_ASYNC(Row(m.y), Row(m.x), session)
        if ordered:
            PtoSetWaitFlag[PIPE_MTE3, PIPE_S]()
        load_scalar(ptr(m.y), 0)

    assert codes(lambda: told(True), "a5") == []
    assert codes(lambda: told(False), "a5") == ["E7"]


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("mode", ["manual", "auto"])
@pytest.mark.parametrize("waits", [True, False])
def test_kernels_on_every_path(path: str, mode: str, waits: bool) -> None:
    def body(dst, src, result, ws):
        scratch, tile = Tile[TileType.Vec, u8, 1, 256](), Tile[TileType.Vec, f32, 16, 16]()
        if mode == "manual":
            TASSIGN[0](scratch)
            TASSIGN[0x400](tile)
        session = AsyncSession()
        BuildAsyncSession(scratch, ws, session)
        event = TGET_ASYNC(Row(dst), Row(src), session)
        if waits:
            event.Wait(session)
        TLOAD(tile, GlobalTensor(dst))
        if mode == "manual":
            set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(result), tile)

    made, result = kernel(mode=mode)(body), array(0)
    arrays = array(0), array(7), result, np.zeros(40960, np.uint8)
    if waits:
        made[1](*arrays, target="a2a3", path=path)
        assert (result == 7).all()
    else:
        with pytest.raises(ProgramError) as error:
            made[1](*arrays, target="a2a3", path=path)
        assert set(error.value.codes) == {"E7"}


def test_some_schedule_shows_a_forgotten_wait() -> None:
    def search(wait: str) -> list[Any]:
        m = Memory()

        def body() -> None:
            program(m, early_load, wait)()
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(G32(m.z), at(F32(), 0x400))

        return explore({"vector": body}, [m.x, m.y, m.z])

    assert search("Wait") == []
    (found,) = search("")
    assert found.code == "schedule-dependent"


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
@pytest.mark.parametrize("waits", [True, False])
def test_a_transfer_to_another_rank(waits: bool, seed: int | None) -> None:
    world = World(2)
    data, ready = world.window((16, 16)), world.signals()
    found: list[str] = []

    def on(rank: int) -> None:
        if rank == 0:
            session = async_session()
            event = TPUT_ASYNC(Row(data[1]), Row(array(4)), session)
            if waits:
                event.Wait(session)
            TNOTIFY(ready.signal(1), 1, NotifyOp.Set)
        else:
            TWAIT(ready.signal(), 1, WaitCmp.EQ)
            TLOAD(at(F32(), 0), G32(data.local))

    try:
        world.run(on, seed=seed)
    except ProgramError as error:
        found += error.codes
    assert found == ([] if waits else ["E7"])
