"""A read that overtakes its writer names both, though to the reader the bytes are only poison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import *

HELD = Schedule(late=(PIPE_MTE2,))


def program(ordered: bool) -> Any:
    x, z = array(), array(0)

    def load_and_add() -> None:
        a, b = at(F32(), 0x0), at(F32(), 0x400)
        TLOAD(a, G32(x))  # load
        if ordered:
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        TADDS(b, a, 1.0)  # add
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(z), b)

    return load_and_add


def test_a_read_before_the_load_has_run() -> None:
    body = program(ordered=False)
    (found,) = check(body, schedule=HELD)
    assert found.code == "E6"
    assert lines_of(found) == {marked(body, "load"), marked(body, "add")}
    assert "TADDS on PIPE_V reads" in found.message
    assert "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)" in found.fix
    assert check(program(ordered=True), schedule=HELD) == ()


def test_a_read_of_what_nobody_writes_stays_a_read_of_poison() -> None:
    def body() -> None:
        TLOAD(at(F32(), 0x800), G32(array()))
        TADDS(at(F32(), 0x400), at(F32(), 0x0), 1.0)

    assert codes(body, schedule=HELD) == ["poison-read"]


@pytest.mark.parametrize("missing", ["MTE2->MTE1", "MTE1->M", "M->FIX", ""])
def test_behind_a_pipe_that_waits_for_another_core(missing: str) -> None:
    """A5: the load waits in PIPE_MTE2 for an entry while the other pipes of the cube run ahead."""
    ring, result = np.zeros((2, 32 * 32), np.float16), np.zeros((32, 32), np.float32)
    entry = np.eye(32, dtype=np.float16)
    Pipe = TPipe[0, Direction.DIR_V2C_GM, 2048, 2]

    def edge(src: Any, dst: Any) -> None:
        if missing != f"{src.name}->{dst.name}":
            PtoSetWaitFlag[src, dst]()

    def vector() -> None:
        pipe, tile = Pipe(ring, 0, 0), at(Tile[TileType.Vec, half, 16, 32](), 0)
        first = 16 * get_subblockid()
        TLOAD(tile, GlobalTensor(entry)[first : first + 16, :])
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TPUSH[UP](pipe, tile)

    def cube() -> None:
        pipe = Pipe(ring, 0, 0)
        l1 = Tile[TileType.Mat, half, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]()
        left, right = at(TileLeft[half, 32, 32](), 0), at(TileRight[half, 32, 32](), 0)
        acc = at(TileAcc[float32, 32, 32](), 0)
        TPOP[UP](pipe, l1)
        edge(PIPE_MTE2, PIPE_MTE1)
        TMOV(left, l1)
        TMOV(right, l1)
        edge(PIPE_MTE1, PIPE_M)
        TMATMUL(acc, left, right)
        edge(PIPE_M, PIPE_FIX)
        TSTORE(GlobalTensor(result), acc)

    found = check({"cube": cube, "vector": vector}, "a5")
    if missing:
        src, dst = missing.split("->")
        assert [d.code for d in found] == ["E6"]
        assert f"set_flag(PIPE_{src}, PIPE_{dst}, EVENT_ID0)" in found[0].fix
    else:
        assert found == ()
        assert np.array_equal(result, np.eye(32))
