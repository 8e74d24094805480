"""Races: unordered conflicting accesses are named with both lines; ordered ones are not."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import *

EDGES = {
    "MTE2->V": (PIPE_MTE2, PIPE_V),
    "V->MTE3": (PIPE_V, PIPE_MTE3),
    "V->MTE2": (PIPE_V, PIPE_MTE2),
    "MTE3->V": (PIPE_MTE3, PIPE_V),
}


def loop_kernel(without: str = "", times: int = 3) -> Any:
    """Load, compute, store in one buffer each, with every edge but one."""
    x, z = array(), array(0)

    def edge(name: str, id: int, signal: bool) -> None:
        if name != without:
            (set_flag if signal else wait_flag)(*EDGES[name], id)

    def program() -> None:
        a, b = at(F32(), 0x0), at(F32(), 0x400)
        edge("V->MTE2", 0, True)
        edge("MTE3->V", 0, True)
        for _ in range(times):
            edge("V->MTE2", 0, False)
            TLOAD(a, G32(x))  # load
            edge("MTE2->V", 0, True)
            edge("MTE2->V", 0, False)
            edge("MTE3->V", 0, False)
            TADDS(b, a, 1.0)  # compute
            edge("V->MTE2", 0, True)
            edge("V->MTE3", 0, True)
            edge("V->MTE3", 0, False)
            TSTORE(G32(z), b)  # store
            edge("MTE3->V", 0, True)
            pipe_barrier(PIPE_MTE3)
        edge("V->MTE2", 0, False)
        edge("MTE3->V", 0, False)

    return program


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030"])
def test_complete_loop_is_silent(target: str) -> None:
    assert codes(loop_kernel(), target) == []


@pytest.mark.parametrize("seed", range(10))
def test_complete_loop_is_silent_under_random_schedules(seed: int) -> None:
    assert codes(loop_kernel(), seed=seed) == []


@pytest.mark.parametrize(
    ("edge", "kind", "marks"),
    [
        ("MTE2->V", "RAW", ("load", "compute")),
        ("V->MTE3", "RAW", ("compute", "store")),
        ("V->MTE2", "WAR", ("compute", "load")),
        ("MTE3->V", "WAR", ("store", "compute")),
    ],
)
def test_e6_each_missing_edge_is_found_at_its_lines(
    edge: str, kind: str, marks: tuple[str, str]
) -> None:
    program = loop_kernel(edge)
    found = check(program)
    assert {d.code for d in found} == {"E6"}
    first = found[0]
    assert f"({kind})" in first.message
    assert lines_of(first) == {marked(program, m) for m in marks}
    assert f"set_flag(PIPE_{EDGES[edge][0].name}, PIPE_{EDGES[edge][1].name}" in first.fix
    assert first.got[0][1].startswith("UB 0x")


def test_e6_write_after_write() -> None:
    def program(wait: bool) -> None:
        a = at(F32(), 0)
        TLOAD(a, G32(array()))
        if wait:
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        TEXPANDS(a, 0.0)

    (found,) = check(lambda: program(False))
    assert found.code == "E6"
    assert "(WAW)" in found.message
    assert codes(lambda: program(True)) == []


def test_only_common_bytes_conflict() -> None:
    """Two tiles side by side do not conflict; two that share a single row do."""

    def program(second: int) -> None:
        TLOAD(at(F32(), 0), G32(array()))
        TEXPANDS(at(F32(), second), 0.0)

    assert codes(lambda: program(0x400)) == []
    assert codes(lambda: program(0x3E0)) == ["E6"]


def test_columns_of_one_tile_do_not_conflict() -> None:
    """Valid regions that interleave in memory without sharing a byte are independent."""
    Left = Tile[TileType.Vec, float32, 16, 16, BLayout.RowMajor, 16, 8]

    def program(offset: int) -> None:
        view = GlobalTensor[float32, Shape[1, 1, 1, 16, 8], Stride[1, 1, 1, 8, 1]]
        TLOAD(at(Left(), 0), view(np.ones((16, 8), np.float32)))
        TEXPANDS(at(Left(), offset), 0.0)

    assert codes(lambda: program(32)) == []
    assert codes(lambda: program(0)) == ["E6"]


def test_e7_store_then_load_of_the_same_memory() -> None:
    shared = array(0)

    def program(edge: bool) -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(shared), a)  # store
        if edge:
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
        TLOAD(b, G32(shared))  # load

    (found,) = check(lambda: program(False))
    assert found.code == "E7"
    assert lines_of(found) == {marked(program, "store"), marked(program, "load")}
    assert codes(lambda: program(True)) == []


def test_e7_between_blocks() -> None:
    shared = array(0)

    def program(apart: bool) -> None:
        a = at(F32(), 0)
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(shared if not apart else array(0)), a)

    (found,) = check(lambda: program(False), grid=3)
    assert found.code == "E7"
    assert "a part of its own" in (found.fix or ""), "one line, which all of them execute"
    assert codes(lambda: program(True), grid=3) == []


def test_atomic_additions_do_not_race_with_each_other() -> None:
    total = array(0)

    def program(plain: bool) -> None:
        a = at(F32(), 0)
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        if plain and get_block_idx() == 2:
            TSTORE(G32(total), a)
        else:
            TSTORE[AtomicType.AtomicAdd](G32(total), a)

    assert codes(lambda: program(False), grid=4) == []
    assert (total == 4).all()
    assert "E7" in codes(lambda: program(True), grid=4)


def test_an_addition_races_with_everybody_who_reads_the_sum() -> None:
    """That the first reader was told of it does not order the second, at whatever time it was."""
    total = array(0.0)

    def program() -> None:
        tile = at(F32(), 0)
        if get_block_idx() == 0:
            TEXPANDS(tile, 1.0)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TSTORE[AtomicType.AtomicAdd](G32(total), tile)  # the first of its pipe
        elif get_block_idx() == 1:
            TLOAD(tile, G32(total))  # one
        else:
            TLOAD(tile, G32(total))  # two

    found = check(program, grid=3)
    assert [d.code for d in found] == ["E7", "E7"]
    lines = {marked(program, mark) for mark in ("one", "two")}
    assert {d.location.line for d in found if d.location is not None} == lines


@pytest.mark.parametrize("ways", list(product(list(ScatterAtomicOp), repeat=2)))
def test_atomic_writes_of_one_kind_commute(ways: tuple[ScatterAtomicOp, ...]) -> None:
    """Sums, maxima and minima come out the same in any order, a sum and a maximum do not."""
    table, rows = np.zeros((64, 16), np.float32), np.arange(16, dtype=np.int32)[None, :]

    def program() -> None:
        a, indexes = at(F32(), 0), at(Tile[TileType.Vec, int32, 1, 16](), 0x1000)
        TEXPANDS(a, 1.0)
        TLOAD(indexes, GlobalTensor(rows))
        pipe_barrier(PIPE_ALL)
        MSCATTER[Coalesce.Row, ways[get_block_idx()]](GlobalTensor(table), a, indexes)

    commutes = ways[0] is ways[1] is not ScatterAtomicOp.None_
    assert codes(program, "a5", grid=2) == ([] if commutes else ["E7"])


def test_blocks_that_share_no_byte_are_independent() -> None:
    big = np.zeros((16, 64), np.float32)
    Part = GlobalTensor[float32, Shape[1, 1, 1, 16, 16], Stride[1, 1, 1, 64, 1]]

    def program(step: int) -> None:
        a = at(F32(), 0)
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(Part(ptr(big, get_block_idx() * step)), a)

    assert codes(lambda: program(16), grid=4) == []
    assert "E7" in codes(lambda: program(15), grid=4)


# ---- one pipe ----


def reduction(barrier: bool) -> Any:
    def program() -> None:
        Column = Tile[TileType.Vec, float32, 16, 8, BLayout.RowMajor, 16, 1]
        x, tmp, total = at(F32(), 0), at(F32(), 0x400), at(Column(), 0x800)
        TEXPANDS(x, 1.0)  # produce
        if barrier:
            pipe_barrier(PIPE_V)
        TROWSUM(total, x, tmp)  # reduce

    return program


def test_e8_dependent_vector_instructions_need_a_barrier_on_a2a3() -> None:
    program = reduction(False)
    (found,) = check(program)
    assert found.code == "E8"
    assert lines_of(found) == {marked(program, "produce"), marked(program, "reduce")}
    assert "pipe_barrier(PIPE_V)" in found.fix
    assert codes(reduction(True)) == []
    assert codes(reduction(False), "a5") == [], "the vector pipe of A5 keeps its order"


def test_elementwise_chains_in_place_are_a_warning() -> None:
    def program() -> None:
        x = at(F32(), 0)
        TEXPANDS(x, 1.0)
        TMULS(x, x, 2.0)
        TADDS(x, x, 1.0)
        TEXP(x, x)

    found = check(program)
    assert [(d.code, d.severity) for d in found] == [("E8", "warning")] * 3  # once per pair
    assert "pipe_barrier(PIPE_V)" in found[0].fix
    assert {d.severity for d in check(program, rules="strict")} == {"error"}
    assert codes(program, "a5") == []


def test_elementwise_instructions_at_shifted_addresses_need_one() -> None:
    def program() -> None:
        TEXPANDS(at(F32(), 0), 1.0)
        TEXPANDS(at(F32(), 0x200), 1.0)

    assert codes(program) == ["E8"]


def test_e8_stores_may_complete_in_any_order() -> None:
    z = array(0)

    def program(barrier: bool) -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(a, 1.0)
        TEXPANDS(b, 2.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(z), a)
        if barrier:
            pipe_barrier(PIPE_MTE3)
        TSTORE(G32(z), b)

    (found,) = check(lambda: program(False), "a5")
    assert (found.code, found.severity) == ("E8", "warning")  # they begin in order
    assert codes(lambda: program(True), "a5") == []


def test_events_of_one_pipe_are_barriers_where_the_target_needs_them() -> None:
    def program() -> None:
        Column = Tile[TileType.Vec, float32, 16, 8, BLayout.RowMajor, 16, 1]
        x, tmp, total = at(F32(), 0), at(F32(), 0x400), at(Column(), 0x800)
        e = Event[Op.TEXPANDS, Op.TROWSUM](TEXPANDS(x, 1.0))
        TROWSUM(total, x, tmp, e)

    assert codes(program) == []


# ---- ping-pong and order that comes from afar ----


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_ping_pong_buffers_are_silent(seed: int | None) -> None:
    x, z = array(), array(0)

    def program() -> None:
        a = [at(F32(), 0x0), at(F32(), 0x400)]
        b = [at(F32(), 0x800), at(F32(), 0xC00)]
        for i in (0, 1):
            set_flag(PIPE_V, PIPE_MTE2, i)
            set_flag(PIPE_MTE3, PIPE_V, i)
        for step in range(5):
            i = step % 2
            wait_flag(PIPE_V, PIPE_MTE2, i)
            TLOAD(a[i], G32(x))
            set_flag(PIPE_MTE2, PIPE_V, i)
            wait_flag(PIPE_MTE2, PIPE_V, i)
            wait_flag(PIPE_MTE3, PIPE_V, i)
            TADDS(b[i], a[i], float(step))
            set_flag(PIPE_V, PIPE_MTE2, i)
            set_flag(PIPE_V, PIPE_MTE3, i)
            wait_flag(PIPE_V, PIPE_MTE3, i)
            pipe_barrier(PIPE_MTE3)
            TSTORE(G32(z), b[i])
            set_flag(PIPE_MTE3, PIPE_V, i)
        for i in (0, 1):
            wait_flag(PIPE_V, PIPE_MTE2, i)
            wait_flag(PIPE_MTE3, PIPE_V, i)

    assert codes(program, seed=seed) == []
    assert (z == 5).all()


def test_order_is_transitive() -> None:
    """MTE2 -> V -> MTE3: the store is after the load through the vector pipe."""
    z = array(0)

    def program() -> None:
        a = at(F32(), 0)
        TLOAD(a, G32(array()))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(z), a)

    assert codes(program) == []


# ---- the cube side ----


def matmul(phases: tuple[AccPhase, STPhase], flags: bool) -> Any:
    z = np.zeros((16, 16), np.float32)
    h = np.ones((16, 16), np.float16)
    GH = GlobalTensor[half, Shape[1, 1, 1, 16, 16], Stride[1, 1, 1, 16, 1]]
    Mat = Tile[TileType.Mat, half, 16, 16, BLayout.ColMajor, 16, 16, SLayout.RowMajor, 512]

    def program() -> None:
        m, n = at(Mat(), 0), at(Mat(), 0x1000)
        left, right = at(TileLeft[half, 16, 16](), 0), at(TileRight[half, 16, 16](), 0)
        acc = at(TileAcc[float32, 16, 16](), 0)
        TLOAD(m, GH(h))
        TLOAD(n, GH(h))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
        TMOV(left, m)
        TMOV(right, n)
        PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
        TMATMUL[phases[0]](acc, left, right)  # matmul
        if flags:
            PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
        TSTORE[phases[1]](G32(z), acc)  # store

    return program, z


OFF = (AccPhase.Unspecified, STPhase.Unspecified)
ON = (AccPhase.Final, STPhase.Final)


def run_cube(program: Any, **more: Any) -> Any:
    return check({"cube": program, "vector": lambda: None}, **more)


def test_accumulator_needs_an_edge_or_a_unit_flag() -> None:
    program, z = matmul(OFF, True)
    assert not run_cube(program)
    assert (z == 16).all()
    program, _ = matmul(OFF, False)
    (found,) = run_cube(program)
    assert found.code == "E6"
    assert lines_of(found) == {marked(program, "matmul"), marked(program, "store")}
    program, _ = matmul(ON, False)
    assert not run_cube(program), "the unit flag orders cube unit and fix pipe"


@pytest.mark.parametrize(
    "phases",
    [(AccPhase.Partial, STPhase.Final), (AccPhase.Final, STPhase.Partial)],
    ids=["stored too early", "left open"],
)
def test_e9_unit_flag_out_of_step(phases: Any) -> None:
    program, _ = matmul(phases, True)
    assert {d.code for d in run_cube(program)} == {"E9"}


# ---- scalar accesses ----


def test_e14_scalar_store_stays_in_the_cache() -> None:
    word = np.zeros(32, np.int32)

    def program(clean: bool, fence: bool = True) -> None:
        if get_block_idx() == 0:
            store_scalar(ptr(word), 0, 7)  # store
            if clean:
                dcci(ptr(word), SINGLE_CACHE_LINE)
                if fence:
                    dsb(DSB_DDR)
        SYNCALL()
        if get_block_idx() == 1:
            dcci(ptr(word), SINGLE_CACHE_LINE)
            load_scalar(ptr(word), 0)

    assert codes(lambda: program(True), grid=2) == []
    (found,) = check(lambda: program(False), grid=2)
    assert found.code == "E14"
    assert "dcci" in found.fix
    assert marked(program, "store") in lines_of(found)
    assert codes(lambda: program(True, False), grid=2) == ["E14"]


def test_e14_scalar_load_of_a_line_held_too_long() -> None:
    word = np.zeros(32, np.int32)

    def program(clean: bool) -> None:
        me = get_block_idx()
        if me == 1:
            load_scalar(ptr(word), 1)
        SYNCALL()
        if me == 0:
            store_scalar(ptr(word), 0, 7)
            dcci(ptr(word), SINGLE_CACHE_LINE)
            dsb(DSB_DDR)
        SYNCALL()
        if me == 1:
            if clean:
                dcci(ptr(word), SINGLE_CACHE_LINE)
            assert load_scalar(ptr(word), 0) == 7

    assert codes(lambda: program(True), grid=2) == []
    assert codes(lambda: program(False), grid=2) == ["E14"]


def test_e14_two_cores_in_one_line() -> None:
    word = np.zeros(64, np.int32)

    def program(step: int) -> None:
        at_word = ptr(word, get_block_idx() * step)
        store_scalar(at_word, 0, 7)
        SYNCALL()
        dcci(at_word, SINGLE_CACHE_LINE)
        dsb(DSB_DDR)

    line = 16 + (-word.ctypes.data // 4) % 16  # far enough for any alignment of the array
    assert codes(lambda: program(line), grid=2) == []
    word = np.zeros(64, np.int32)
    base = (-word.ctypes.data // 4) % 16

    def shared() -> None:
        at_word = ptr(word, base + get_block_idx())
        store_scalar(at_word, 0, 7)
        SYNCALL()
        dcci(at_word, SINGLE_CACHE_LINE)
        dsb(DSB_DDR)

    assert "E14" in codes(shared, grid=2)


def test_poison_and_errors_carry_the_hazards_that_explain_them() -> None:
    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TLOAD(a, G32(array()))
        TADDS(b, a, 1.0)
        TADDS(at(F32(), 0x800), at(F32(), 0xC00), 1.0)  # never written

    assert codes(program) == ["E6", "poison-read"]


# ---- blocks of code on one device ----


def abs_of(x: Any, z: Any, *, ordered: bool) -> None:
    t = at(F32(), 0)
    TLOAD(t, G32(x))
    if ordered:
        PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
    TABS(t, t)  # the other line
    if ordered:
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(G32(z), t)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_block_on_a_device_is_checked_at_its_end(target: str) -> None:
    x, z = array() - 5, array()
    with device(target):
        abs_of(x, z, ordered=True)
    assert np.array_equal(z, abs(x))
    with pytest.raises(ProgramError) as caught, device(target):
        abs_of(x, z, ordered=False)
    assert set(caught.value.codes) == {"E6"}
    assert len(caught.value.diagnostics) == 2
    assert marked(abs_of, "the other line") in lines_of(caught.value.diagnostics[0])


def test_a_block_that_is_not_to_be_checked() -> None:
    x, z = array() - 5, array()
    with device("a2a3", check=False):
        abs_of(x, z, ordered=False)
    with device("a2a3", mode="auto"):
        t = F32()
        TLOAD(t, G32(x))
        TSTORE(G32(z), t)
    with device("cpu"):
        abs_of(x, z, ordered=False)
    assert np.array_equal(z, abs(x))


def test_a_block_orders_by_barriers_events_and_unit_flags() -> None:
    x, z = array() - 5, array()
    with device("a2a3"):
        t = at(F32(), 0)
        TLOAD(t, G32(x))
        pipe_barrier(PIPE_ALL)
        done = Event[Op.TABS, Op.TSTORE_VEC](TABS(t, t))
        TSTORE(G32(z), t, done)
    assert np.array_equal(z, abs(x))
    for phases, flags in ((OFF, True), (ON, False)):
        program, _ = matmul(phases, flags)
        with device("a2a3"):
            program()
    program, _ = matmul(OFF, False)
    with pytest.raises(ProgramError) as caught, device("a2a3"):
        program()
    assert caught.value.codes == ("E6",)


def test_flags_left_over_at_the_end_of_a_block() -> None:
    with pytest.warns(match="E3"), device("a2a3"):
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)


def test_an_error_inside_a_block_is_not_hidden_by_what_else_is_wrong() -> None:
    def stumbles() -> None:
        with device("a2a3"):
            abs_of(array(), array(), ordered=False)
            raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        stumbles()


# ---- arrays that are only read -------------------------------------------------------------------


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("written", [0, 2])
def test_arrays_that_share_a_row(written: int, apart: bool) -> None:
    """Two arrays of 16 rows in one memory, one before the other: one is written, one read."""
    rows = np.zeros((33, 16), np.float32)
    first, second = rows[:16], rows[16:32] if apart else rows[15:31]
    source, sink = (second, first) if written == 0 else (first, second)

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(b, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TLOAD(a, G32(source))
        TSTORE(G32(sink), b)

    assert codes(program) == ([] if apart else ["E7"])


def test_arrays_that_begin_together() -> None:
    """The longer one is written later, where the shorter one does not reach."""
    rows = np.zeros((32, 16), np.float32)

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(b, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TLOAD(a, G32(rows[16:]))
        TSTORE(GlobalTensor(rows[:16]), b)
        TSTORE(GlobalTensor(rows)[16:, :], b)

    assert codes(program) == ["E7"]


def test_an_array_is_written_behind_a_finding() -> None:
    """What was noted before is read with the finding: the array was only read until then."""
    x, y = array(), array()

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(b, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TLOAD(a, G32(x))
        set_flag(PIPE_V, PIPE_S, EVENT_ID7)
        set_flag(PIPE_V, PIPE_S, EVENT_ID7)  # a raised flag is raised again: told at once
        wait_flag(PIPE_V, PIPE_S, EVENT_ID7)
        TSTORE(G32(y), b)
        TSTORE(G32(x), b)

    assert set(codes(program)) == {"E2", "E7"}


def test_an_array_is_written_by_another_block() -> None:
    """The lines are the same; only the last of the blocks comes to the array that others read."""
    x = np.zeros((16 * 4, 16), np.float32)

    def program() -> None:
        mine = get_block_idx() * 16
        a, b = at(F32(), 0), at(F32(), 0x400)
        TEXPANDS(b, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TLOAD(a, G32(x[0:16]))
        sink = x[0:16] if mine == 48 else np.zeros((16, 16), np.float32)
        TSTORE(G32(sink), b)

    assert set(codes(program, grid=4)) == {"E7"}
