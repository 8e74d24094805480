"""Flags, events, barriers and buffers: each fault is named, and the repaired program is silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import *


def pair(a: int = 0x0, b: int = 0x400):
    return at(F32(), a), at(F32(), b)


def test_e1_wait_without_set() -> None:
    """E1: a wait that no set precedes hangs its pipe."""

    def fault() -> None:
        x, y = pair()
        TLOAD(x, G32(array()))
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)  # wait
        TADDS(y, x, 1.0)

    (found,) = check(fault)
    assert found.code == "E1"
    assert "wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)" in found.message
    assert marked(fault, "wait") in lines_of(found)
    assert "set_flag" in found.fix

    def repaired() -> None:
        x, y = pair()
        TLOAD(x, G32(array()))
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        TADDS(y, x, 1.0)

    assert codes(repaired) == []


def test_a_set_that_comes_later_in_the_program_still_ends_the_wait() -> None:
    """The scalar unit goes on issuing behind a waiting pipe; only that pipe stands still."""

    def program() -> None:
        x, y = pair()
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        TLOAD(x, G32(array()))
        TEXPANDS(y, 1.0)
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)

    assert codes(program) == []


@kernel(mode="manual")
def behind_a_pipe_that_waits(y):
    """The flag is raised and taken in one go, while its first pipe still waits."""
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()  # from now on its core knows the flag
    tile = at(F32(), 0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1)
    TEXPANDS(tile, 1.0)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y), tile)
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1)


@kernel(mode="manual")
def too_late_for_a_pipe_that_waits(y):
    """The store that its second pipe was given before is not behind the flag."""
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()  # from now on its core knows the flag
    tile = at(F32(), 0)
    TEXPANDS(tile, 1.0)
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1)
    TSTORE(GlobalTensor(y), tile)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1)


@kernel(mode="manual")
def raised_already(y):
    """The flag is up when it is raised and taken in one go."""
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()  # from now on its core knows the flag
    tile = at(F32(), 0)
    TEXPANDS(tile, 1.0)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(y), tile)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (behind_a_pipe_that_waits, []),
        (too_late_for_a_pipe_that_waits, ["E6"]),
        (raised_already, ["E2", "E6"]),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_flag_that_is_raised_and_taken_at_once(program: Any, expected: list[str]) -> None:
    """It is one step of the lowered path only where nothing stands in its way."""
    y, found = array(0.0), list[str]()
    try:
        program[1](y, target="a2a3", path="lowered", engine="stepwise")
    except ProgramError as error:
        found = sorted(each.code for each in error.diagnostics)
    else:
        assert (y == 1.0).all()
    assert found == expected


def test_e1_cores_that_wait_for_each_other() -> None:
    """E1: each core waits for a signal the other gives only afterwards."""

    def cube_core(repaired: bool = False) -> None:
        if repaired:
            set_intra_block(PIPE_S, 0)
            set_intra_block(PIPE_S, 16)
        wait_intra_block(PIPE_S, 1)  # cube waits
        wait_intra_block(PIPE_S, 17)
        if not repaired:
            set_intra_block(PIPE_S, 0)
            set_intra_block(PIPE_S, 16)

    def vector_core() -> None:
        wait_intra_block(PIPE_S, 0)  # vector waits
        set_intra_block(PIPE_S, 1)

    found = check({"cube": cube_core, "vector": vector_core}, "a5")
    assert {d.code for d in found} == {"E1"}
    assert len(found) == 3
    graph = next(d for d in found if "cube core" in d.message.split(":")[0])
    assert marked(cube_core, "cube waits") in lines_of(graph)
    assert marked(vector_core, "vector waits") in lines_of(graph), "the wait-for graph shows both"
    assert codes({"cube": lambda: cube_core(True), "vector": vector_core}, "a5") == []


def test_e2_set_twice() -> None:
    def fault() -> None:
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID3)  # first
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID3)  # second
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID3)

    (found,) = check(fault)
    assert found.code == "E2"
    assert lines_of(found) == {marked(fault, "first"), marked(fault, "second")}

    def repaired() -> None:
        for _ in range(3):
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID3)
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID3)

    assert codes(repaired) == []


def test_e2_event_ids_run_out() -> None:
    """More than eight outstanding events of one pair of pipes share ids."""

    def program(count: int) -> None:
        events = []
        for _ in range(count):
            tile = at(F32(), 0)
            pipe_barrier(PIPE_ALL)
            events.append(Event[Op.TLOAD, Op.TADD](TLOAD(tile, G32(array()))))
        TSYNC(*events)

    assert codes(lambda: program(8)) == []
    assert "E2" in codes(lambda: program(9))


def test_e3_set_never_waited_for() -> None:
    def fault() -> None:
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)  # left over

    (found,) = check(fault)
    assert found.code == "E3"
    assert lines_of(found) == {marked(fault, "left over")}
    assert "wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)" in found.fix

    def repaired() -> None:
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)

    assert codes(repaired) == []


@pytest.mark.parametrize("id", [-1, 8])
def test_e4_event_id_out_of_range(id: int) -> None:
    assert codes(lambda: set_flag(PIPE_V, PIPE_MTE3, id)) == ["E4"]


def test_e4_cross_core_flag_out_of_range() -> None:
    def program(id: int) -> None:
        set_ffts_base_addr(0)
        wait_flag_dev(id)

    assert codes(lambda: program(16)) == ["E4"]


def test_e5_pipe_the_core_does_not_have() -> None:
    assert codes(lambda: set_flag(PIPE_M, PIPE_V, 0)) == ["E5"]

    def fault() -> None:
        TADDS(at(F32(), 0), at(F32(), 0), 1.0)

    (found,) = check({"cube": fault, "vector": lambda: None})
    assert found.code == "E5"
    assert "PIPE_V" in found.message

    def repaired() -> None:
        set_flag(PIPE_MTE2, PIPE_V, 0)
        wait_flag(PIPE_MTE2, PIPE_V, 0)

    assert codes(repaired) == []


def test_barrier_of_all_pipes_replaces_every_flag() -> None:
    def program() -> None:
        x, y = pair()
        z = array()
        TLOAD(x, G32(array()))
        pipe_barrier(PIPE_ALL)
        TADDS(y, x, 1.0)
        pipe_barrier(PIPE_ALL)
        TSTORE(G32(z), y)

    assert codes(program) == []


def test_buffer_tokens_order_pipes_without_flags() -> None:
    z = array(0)

    def program(forget: bool = False) -> None:
        x, y = pair()
        for _ in range(3):
            get_buf(PIPE_MTE2, 0)
            TLOAD(x, G32(array()))
            rls_buf(PIPE_MTE2, 0)
            get_buf(PIPE_V, 0)
            get_buf(PIPE_V, 1)
            TADDS(y, x, 1.0)
            rls_buf(PIPE_V, 0)
            rls_buf(PIPE_V, 1)
            if not forget:
                get_buf(PIPE_MTE3, 1)
            TSTORE(G32(z), y)
            if not forget:
                rls_buf(PIPE_MTE3, 1)
            pipe_barrier(PIPE_MTE3)

    assert codes(program, "a5") == []
    assert (z == 2).all()
    assert "E6" in codes(lambda: program(True), "a5")


def test_buffer_never_released() -> None:
    def fault() -> None:
        get_buf(PIPE_V, 4)

    assert codes(fault, "a5") == ["E3"]

    def twice() -> None:
        get_buf(PIPE_V, 4)
        get_buf(PIPE_V, 4)

    assert codes(twice, "a5") == ["get-buf-twice"]


def test_e11_counter_overflow() -> None:
    """E11: cross-core counters have four bits."""

    def cube_core(count: int) -> None:
        for _ in range(count):
            set_intra_block(PIPE_S, 0)
            set_intra_block(PIPE_S, 16)
        set_intra_block(PIPE_S, 1)
        set_intra_block(PIPE_S, 17)

    def vector_core(count: int) -> None:
        wait_intra_block(PIPE_S, 1)
        for _ in range(count):
            wait_intra_block(PIPE_S, 0)

    def run(given: int, taken: int) -> list[str]:
        programs = {"cube": lambda: cube_core(given), "vector": lambda: vector_core(taken)}
        return codes(programs, "a5")

    assert run(15, 15) == []
    assert run(16, 15)[0] == "E11"


def test_e12_signals_without_a_base_address() -> None:
    def vector_core(repaired: bool) -> None:
        if repaired:
            set_ffts_base_addr(0x1000)
        ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(2, 3))

    def cube_core() -> None:
        set_ffts_base_addr(0x1000)
        wait_flag_dev(3)

    assert codes({"cube": cube_core, "vector": lambda: vector_core(False)}) == ["E12"]
    assert codes({"cube": cube_core, "vector": lambda: vector_core(True)}) == []


def test_mode_2_reaches_both_and_needs_both() -> None:
    """A2/A3: the cube core's signal reaches both vector cores; its wait needs both of theirs."""

    def cube_core() -> None:
        set_ffts_base_addr(0)
        ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(2, 0))
        wait_flag_dev(1)

    def vector_core(alone: bool) -> None:
        set_ffts_base_addr(0)
        wait_flag_dev(0)
        if get_subblockid() == 0 or not alone:
            ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(2, 1))

    assert codes({"cube": cube_core, "vector": lambda: vector_core(False)}) == []
    assert "E1" in codes({"cube": cube_core, "vector": lambda: vector_core(True)})


def test_mode_0_and_1_are_meetings() -> None:
    order: list[str] = []

    def vector_core(mode: int) -> None:
        set_ffts_base_addr(0)
        order.append("before")
        ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(mode, 5))
        wait_flag_dev(5)
        order.append("after")

    assert codes(lambda: vector_core(0), grid=3) == []
    assert order == ["before"] * 3 + ["after"] * 3
    order.clear()
    programs = {"cube": lambda: None, "vector": lambda: vector_core(1)}
    assert codes(programs, grid=2) == []
    assert order == (["before"] * 2 + ["after"] * 2) * 2


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("kinds", SyncCoreType)
def test_e13_syncall(target: str, kinds: SyncCoreType) -> None:
    """E13: every participant must enter SYNCALL, equally often."""
    taking = {
        SyncCoreType.AIVOnly: ("vector",),
        SyncCoreType.AICOnly: ("cube",),
        SyncCoreType.Mix: ("cube", "vector"),
    }[kinds]

    def program(kind: str, lazy: bool) -> None:
        if kind in taking:
            SYNCALL[kinds]()
            if not (lazy and get_block_idx() == 1):
                SYNCALL[kinds]()

    def run(lazy: bool) -> list[str]:
        programs = {k: (lambda k=k: program(k, lazy)) for k in ("cube", "vector")}
        return codes(programs, target, grid=2)

    assert run(False) == []
    assert "E13" in run(True)


def test_soft_syncall_counts_in_global_memory() -> None:
    counter = np.zeros(16, np.int32)
    Work = GlobalTensor[int32, Shape[1, 1, 1, 1, 16], Stride[16, 16, 16, 16, 1]]
    order: list[int] = []

    def program(missing: int = -1) -> None:
        for turn in range(2):
            order.append(turn)
            if get_block_idx() != missing:
                SYNCALL[SyncAllMode.Soft](Work(counter), 4)

    assert codes(program, grid=4) == []
    assert counter[0] == 8
    assert order == [0] * 4 + [1] * 4
    counter[:] = 0
    assert "E13" in codes(lambda: program(2), grid=4)


def test_syncall_orders_blocks() -> None:
    """What one block stored before SYNCALL, another may load after it."""
    shared, out = array(0), [array(0) for _ in range(2)]

    def program(meet: bool) -> None:
        me = get_block_idx()
        x, y = pair()
        if me == 0:
            TEXPANDS(x, 5.0)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TSTORE(G32(shared), x)
        if meet:
            SYNCALL()
        if me == 1:
            TLOAD(y, G32(shared))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(G32(out[1]), y)

    assert codes(lambda: program(True), grid=2) == []
    assert (out[1] == 5).all()
    (found,) = check(lambda: program(False), grid=2)
    assert found.code == "E7"
    assert "SYNCALL" in found.fix


def test_e4_flags_of_syncall() -> None:
    def program(flag: int) -> None:
        set_ffts_base_addr(0)
        ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(2, flag))
        SYNCALL[SyncCoreType.Mix]()

    def cube_core(flag: int) -> None:
        set_ffts_base_addr(0)
        wait_flag_dev(flag)
        SYNCALL[SyncCoreType.Mix]()

    def run(flag: int) -> list[str]:
        return codes({"cube": lambda: cube_core(flag), "vector": lambda: program(flag)})

    assert run(3) == []
    assert run(13) == ["E4"]


def test_e15_flags_in_auto_mode() -> None:
    """E15: in auto mode flags are no-ops; a program that relies on them is told so."""

    def program(flags: bool) -> None:
        x = F32()
        TEXPANDS(x, 1.0)
        if flags:
            set_flag(PIPE_V, PIPE_MTE3, 0)

    (found,) = check(lambda: program(True), mode="auto")
    assert (found.code, found.severity) == ("E15", "warning")
    assert codes(lambda: program(False), mode="auto") == []


def test_e1_a_flag_that_was_not_primed() -> None:
    """In a ring of waits the one that came before its first set is blamed."""

    def program(primed: bool) -> None:
        a, b = pair()
        z = array()
        if primed:
            set_flag(PIPE_V, PIPE_MTE2, 0)
        for _ in range(3):
            wait_flag(PIPE_V, PIPE_MTE2, 0)  # not primed
            TLOAD(a, G32(array()))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            TADDS(b, a, 1.0)
            set_flag(PIPE_V, PIPE_MTE2, 0)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TSTORE(G32(z), b)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_V]()
        wait_flag(PIPE_V, PIPE_MTE2, 0)

    assert codes(lambda: program(True)) == []
    (found,) = check(lambda: program(False))
    assert found.code == "E1"
    assert marked(program, "not primed") in lines_of(found)


def test_consequences_of_a_hang_are_notes() -> None:
    """One missing set stops three pipes; the report is about the first."""

    def program() -> None:
        a, b = pair()
        wait_flag(PIPE_S, PIPE_MTE2, 0)  # never set
        TLOAD(a, G32(array()))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        TADDS(b, a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(array()), b)

    (found,) = check(program)
    assert found.location is not None
    assert found.location.line == marked(program, "never set")
    assert sum("meanwhile" in n.text for n in found.notes) == 2
