"""What looks ordered and is not, and what looks unordered and does no harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.comm import *
from ptokit.machine.faults import WouldBlock
from tests.hazards.support import *

R, C = 16, 16
BYTES = R * C * 4
Mat = Tile[TileType.Mat, float32, R, C, BLayout.ColMajor, R, C, SLayout.RowMajor, 512]


def kinds(programs: Any, target: str = "a2a3", **more: Any) -> set[str]:
    return {f"{d.code} {d.severity}" for d in check(programs, target, **more)}


# ---- two vector cores ----------------------------------------------------------------------------


def twins(differ: bool) -> Any:
    """Both vector cores push an undivided entry, as A2/A3 wants it."""
    memory = np.zeros(2 * R * C, np.float32)

    def producer() -> None:
        pipe = TPipe[0, Direction.DIR_V2C, BYTES, 2](memory, 0, 0)
        tile = at(Tile[TileType.Vec, float32, R, C](), 0x1000)
        TEXPANDS(tile, float(get_subblockid() * differ))
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TPUSH[NO](pipe, tile)  # push

    def consumer() -> None:
        pipe = TPipe[0, Direction.DIR_V2C, BYTES, 2](memory, 0, 0)
        TPOP[NO](pipe, Mat())
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()

    return {"vector": producer, "cube": consumer}


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_twins_push_the_same_values(seed: int | None) -> None:
    assert kinds(twins(False), seed=seed) == set()
    assert kinds(twins(True), seed=seed) == {"E10 error"}


def test_twins_that_differ_are_named() -> None:
    programs = twins(True)
    (found,) = check(programs)
    assert lines_of(found) == {marked(programs["vector"], "push")}
    assert "TILE_UP_DOWN" in found.fix


# ---- FIFOs ---------------------------------------------------------------------------------------


def test_two_fifos_of_one_type_share_their_flags() -> None:
    first, second = np.zeros(2 * R * C, np.float32), np.zeros(2 * R * C, np.float32)
    kind = TPipe[0, Direction.DIR_C2V, BYTES, 2]

    def program(twice: bool) -> None:
        kind(first, 0, 0)
        if twice:
            kind(second, 0x2000, 0x2000)

    assert codes({"cube": lambda: program(True), "vector": lambda: None}) == ["E4"]
    assert codes({"cube": lambda: program(False), "vector": lambda: None}) == []


# ---- numbers that the scalar unit reads ----------------------------------------------------------

LATE = [
    None,
    Schedule(0),
    Schedule(1),
    Schedule(late=(PIPE_V,)),
    Schedule(late=(PIPE_MTE2, PIPE_V)),
]


def reads(taken: bool, then: Any) -> Any:
    """Read an element, use it in the vector pipe or not, then overwrite the tile."""
    x = np.full((16, 16), 3, np.float32)

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TLOAD(a, G32(x))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_S]()
        number = a.GetValue(0)  # read
        TEXPANDS(b, number if taken else 2.0)
        then(a, x)  # overwrite

    return program


def filled(a: Any, x: Any) -> None:
    TEXPANDS(a, 7.0)


def loaded(a: Any, x: Any) -> None:
    TLOAD(a, G32(x))


@pytest.mark.parametrize("then", [filled, loaded])
@pytest.mark.parametrize("schedule", LATE, ids=str)
def test_a_number_that_was_taken_has_been_read(schedule: Schedule | None, then: Any) -> None:
    """The scalar unit cannot issue an instruction before it has the number that goes with it."""
    how = {} if schedule is None else {"schedule": schedule}
    assert "E6" not in codes(reads(True, then), **how)
    program = reads(False, then)
    (found,) = (d for d in check(program, **how) if d.code == "E6")
    assert "GETVAL on PIPE_S may still be reading" in found.message
    assert marked(reads, "read") in lines_of(found)


def test_a_number_taken_does_not_complete_a_store() -> None:
    """What the scalar unit wrote itself needs its flag all the same."""

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        a.SetValue(0, 5.0)
        number = a.GetValue(0)
        TEXPANDS(b, number)
        TEXPANDS(a, 1.0)

    (found,) = check(program, "a5")
    assert (found.code, "(WAW)" in found.message) == ("E6", True)


# ---- loops that look for something ---------------------------------------------------------------


def spinning(writes: bool, clean: bool = True) -> Any:
    """Block 0 looks for a word that block 1 writes."""
    word = np.zeros(16, np.int32)

    def program() -> None:
        if get_block_idx() == 0:
            while load_scalar(ptr(word), 0) == 0:  # look
                if clean:
                    dcci(ptr(word), SINGLE_CACHE_LINE)
        elif writes:
            store_scalar(ptr(word), 0, 1)
            dcci(ptr(word), SINGLE_CACHE_LINE)
            dsb(DSB_DDR)

    return program


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_a_core_that_spins_lets_others_go_on(seed: int | None) -> None:
    assert "E1" not in codes(spinning(writes=True), grid=2, seed=seed)


def test_e1_a_core_that_spins_for_ever() -> None:
    program = spinning(writes=False)
    (found,) = check(program, grid=2)
    assert found.code == "E1"
    assert "a loop around load_scalar" in found.message
    assert lines_of(found) == {marked(program, "look")}


@pytest.mark.parametrize("cleans", [False, True])
def test_a_loop_around_a_word_outside_of_a_launch_ends(cleans: bool) -> None:
    word = np.zeros(16, np.int32)

    def session() -> None:
        while load_scalar(ptr(word), 0) == 0:  # alone
            if cleans:
                dcci(ptr(word), SINGLE_CACHE_LINE)

    with pytest.raises(WouldBlock, match="a loop around load_scalar would go on forever") as found:
        session()
    assert lines_of(found.value.diagnostics[0]) == {marked(session, "alone")}


def test_a_word_that_changes_outside_of_a_launch_is_waited_for() -> None:
    word, turns = np.zeros(16, np.int32), 0
    while load_scalar(ptr(word), 0) < 300:
        turns += 1
        word[0] = turns // 100  # which brings nothing new for a while
    assert turns == 30_000


def test_reading_a_word_often_is_no_spin() -> None:
    word, total = np.ones(16, np.int32), []

    def program() -> None:
        total.append(sum(load_scalar(ptr(word), 0) for _ in range(2000)))

    assert codes(program) == []
    assert total == [2000]


@pytest.mark.parametrize("notifies", [True, False])
def test_a_loop_around_a_test_lets_others_go_on(notifies: bool) -> None:
    word = np.zeros(1, np.int32)
    View = GlobalTensor[int32, Shape[1, 1, 1, 1, 1], Stride[1, 1, 1, 1, 1]]

    def program() -> None:
        if get_block_idx() == 0:
            while not TTEST(View(word), 1, WaitCmp.EQ):
                pass
        elif notifies:
            TNOTIFY(View(word), 1, NotifyOp.Set)

    assert codes(program, grid=2) == ([] if notifies else ["E1"])


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_core_spins_while_one_of_its_pipes_waits(seed: int | None) -> None:
    """What ends the wait comes after the loop."""
    word = np.zeros(1, np.int32)
    View = GlobalTensor[int32, Shape[1, 1, 1, 1, 1], Stride[1, 1, 1, 1, 1]]

    def program() -> None:
        if get_block_idx() == 0:
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
            while not TTEST(View(word), 1, WaitCmp.EQ):
                pass
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        else:
            TNOTIFY(View(word), 1, NotifyOp.Set)

    assert codes(program, grid=2, seed=seed) == []
