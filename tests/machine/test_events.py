"""Events, operation classes and flags, driven from one instruction stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.opcodes import op_codes
from ptokit.isa.spec import Pipe
from ptokit.machine.faults import WouldBlock

F32 = Tile[TileType.Vec, float32, 16, 16]
G32 = GlobalTensor[float32, Shape[1, 1, 1, 16, 16], Stride[1, 1, 1, 16, 1]]


def tiles(count: int) -> list[Any]:
    made = [F32() for _ in range(count)]
    for number, tile in enumerate(made):
        TASSIGN(tile, number * 0x400)
    return made


# ---- operation classes ---------------------------------------------------------------------------


def test_operation_classes_come_from_the_table() -> None:
    """An instruction's own name, or the names its record gives its paths."""
    assert Op.TADD.pipe is Pipe.V
    assert Op.TLOAD.pipe is Pipe.MTE2
    assert Op.TSTORE_VEC.pipe is Op.TSTORE_MAT.pipe is Pipe.MTE3
    assert Op.TSTORE_ACC.pipe is Pipe.FIX
    assert Op.TMOV_M2L.pipe is Pipe.MTE1
    assert Op.TMATMUL.pipe is Pipe.M
    assert (Op.SCALAR.pipe, Op.VECTOR.pipe) == (Pipe.S, Pipe.V)
    for record in INSTRUCTIONS.values():
        for name, pipe in record.ops.items():
            if "." not in record.name:
                assert op_codes()[name].pipe is pipe
    with pytest.raises(AttributeError, match=r"no operation class Op\.TNOSUCH"):
        Op.TNOSUCH  # noqa: B018


def test_binding_and_fifo_instructions_have_no_class() -> None:
    """They have no pipe of their own, so they cannot be the end of an event."""
    for name in ("TASSIGN", "TALLOC", "TPUSH", "TPOP", "TFREE", "TSYNC"):
        assert name not in op_codes()


# ---- events --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("SA-0116", lambda: Event[Op.OP_COUNT, Op.TADD]),
        ("SA-0116", lambda: Event["TLOAD", Op.TADD]),
        ("SA-0037", lambda: Event[Op.TLOAD, Op.OP_COUNT]),
        ("SA-0037", lambda: Event[Op.TLOAD, 3]),
        ("E4", lambda: Event[Op.TLOAD, Op.TADD, False, 8]),
        ("Event.arguments", lambda: Event[Op.TLOAD]),
    ],
)
def test_static_checks(code: str, make: Any) -> None:
    with pytest.raises(ProgramError) as caught:
        make()
    assert caught.value.codes == (code,)


def test_events_take_ids_round_robin_per_pair_of_pipes() -> None:
    with device("a2a3"):
        Load = Event[Op.TLOAD, Op.TADD]
        assert [Load().token for _ in range(10)] == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]
        assert Event[Op.TLOAD, Op.TEXP]().token == 2, "the same pair of pipes"
        assert Event[Op.TADD, Op.TSTORE_VEC]().token == 0, "another pair"
        assert Event[Op.TLOAD, Op.TADD, False, EVENT_ID5]().token == 5


def test_record_and_wait_alternate() -> None:
    with device("a2a3"):
        e = Event[Op.TLOAD, Op.TADD]()
        with pytest.raises(WouldBlock, match=r"wait_flag\(PIPE_MTE2, PIPE_V, EVENT_ID0\)"):
            e.Wait()
        e.Record()
        with pytest.raises(ProgramError, match="set twice") as caught:
            e.Init()
        assert caught.value.codes == ("E2",)
        e.Wait()
        a, b = tiles(2)
        e.Record(TLOAD(a, G32(np.ones((16, 16), np.float32))))
        TADDS(b, a, 1.0, e)
        with pytest.raises(WouldBlock):
            TSYNC(e)


def test_the_page_example() -> None:
    x, y = np.random.default_rng(0).random((2, 16, 16), np.float32)
    z = np.zeros_like(x)
    with device("a2a3"):
        a, b, c = tiles(3)
        e0 = Event[Op.TLOAD, Op.TADD](TLOAD(a, G32(x)))
        e1 = Event[Op.TLOAD, Op.TADD](TLOAD(b, G32(y)))
        e2 = Event[Op.TADD, Op.TSTORE_VEC](TADD(c, a, b, e0, e1))
        TSTORE(G32(z), c, e2)
    assert np.array_equal(z, x + y)


def test_a_bare_result_cannot_be_waited_for() -> None:
    with device("a2a3"):
        a, b = tiles(2)
        loaded = TLOAD(a, G32(np.ones((16, 16), np.float32)))
        with pytest.raises(ProgramError) as caught:
            TADDS(b, a, 1.0, loaded)
        assert "Event[Op.TLOAD, Op.TADDS]" in caught.value.diagnostics[0].fix


def test_cross_core_events_name_their_flag() -> None:
    with device("a5"):
        with pytest.raises(ProgramError, match="AutoToken is false"):
            Event[Op.TMOV_A2V, Op.TADD]()
        e = Event[Op.TMOV_A2V, Op.TADD, False]()
        with pytest.raises(ProgramError, match="names its flag at record and wait"):
            e.Record()
        with cube():
            e.Record[3]()
        for sub in (0, 1):
            with subblock(sub):
                e.Wait[3]()
                with pytest.raises(WouldBlock):
                    e.Wait[3]()
    with device("a2a3"):
        assert not Event[Op.TMOV_A2V, Op.TMATMUL]().crosses
        e = Event[Op.TMOV_A2V, Op.TADD, False]()
        e.InitAddr(0x1000)
        with cube():
            e.Record[2]()
        with subblock(0):
            e.Wait[2]()


def test_auto_mode_makes_all_of_it_nothing() -> None:
    """Events, flags and barriers compile to nothing; FIFOs keep their meaning."""
    with device("a2a3", mode="auto"):
        e = Event[Op.TLOAD, Op.TADD]()
        e.Wait()
        e.Record()
        e.Record()
        set_flag(PIPE_V, PIPE_MTE3, 0)
        set_flag(PIPE_V, PIPE_MTE3, 0)
        wait_flag(PIPE_MTE3, PIPE_V, 0)
        pipe_barrier(PIPE_ALL)
        TSYNC[Op.TADD]()
        PtoSetWaitFlag[PIPE_V, PIPE_S]()
        SYNCALL()


# ---- TSYNC, flags, queries ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("a2a3", {"TADD", "TLOAD", "TMATMUL", "TSTORE_VEC", "SCALAR", "TMOV_M2L", "TSTORE_ACC"}),
        ("a5", {"TLOAD", "TSTORE_VEC"}),
        ("kirin9030", {"TLOAD", "TMATMUL", "TSTORE_VEC", "TMOV_M2L", "TSTORE_ACC"}),
    ],
)
def test_sa_0096_tsync_drains_what_the_target_can_drain(target: str, allowed: set[str]) -> None:
    with device(target):
        for name in ("TADD", "TLOAD", "TMATMUL", "TSTORE_VEC", "SCALAR", "TMOV_M2L", "TSTORE_ACC"):
            if name in allowed:
                TSYNC[getattr(Op, name)]()
            else:
                with pytest.raises(ProgramError) as caught:
                    TSYNC[getattr(Op, name)]()
                assert caught.value.codes == ("SA-0096",)


def test_tsync_without_anything_does_nothing() -> None:
    with device("a5"):
        TSYNC()


def test_flags_are_per_ordered_pair_and_id() -> None:
    with device("a2a3"):
        set_flag(PIPE_MTE2, PIPE_V, 0)
        for wrong in ((PIPE_V, PIPE_MTE2, 0), (PIPE_MTE2, PIPE_V, 1), (PIPE_MTE2, PIPE_MTE3, 0)):
            with pytest.raises(WouldBlock):
                wait_flag(*wrong)
        wait_flag(PIPE_MTE2, PIPE_V, 0)
        with pytest.raises(ProgramError, match="from one pipe to another"):
            set_flag(PIPE_V, PIPE_V, 0)
        with pytest.raises(ProgramError, match="src_pipe is a pipe"):
            set_flag(PIPE_ALL, PIPE_V, 0)


def test_messages_of_cross_core_signals() -> None:
    """Bits 3..0 are 1, bits 5..4 the mode, bits 11..8 the flag."""
    assert getFFTSMsg(0, 14) == 0x0E01
    assert getFFTSMsg(0, 11) == 0x0B01
    assert getFFTSMsg(2, 13) == 0x0D21
    assert getFFTSMsg(2, 12) == 0x0C21


def test_queries_outside_a_launch() -> None:
    with device("a2a3"):
        assert (get_block_idx(), get_block_num(), get_subblockid()) == (0, 1, 0)
        with subblock(1):
            assert get_subblockid() == 1
        assert get_subblockid() == 0


def test_scalar_accesses() -> None:
    words = np.arange(8, dtype=np.int32)
    with device("a2a3"):
        assert load_scalar(ptr(words), 3) == 3
        store_scalar(ptr(words, 2), 1, 42)
        dcci(ptr(words), SINGLE_CACHE_LINE)
        dsb(DSB_DDR)
        with pytest.raises(ProgramError, match="lies inside its array"):
            load_scalar(ptr(words), 8)
    assert words[3] == 42
