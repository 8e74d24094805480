"""Correct programs stay silent when pipes lag behind the program and blocks run side by side."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import *

SEEDS = [None, *range(12)]


@pytest.mark.parametrize("seed", SEEDS)
def test_buffers_are_held_as_the_program_is_written(seed: int | None) -> None:
    """A release that still waits in its pipe does not make the next get_buf a second one."""
    x, z = np.arange(4 * 256, dtype=np.float32), np.zeros(4 * 256, np.float32)

    def program() -> None:
        a, b = at(F32(), 0x0), at(F32(), 0x400)
        for i in range(4):
            get_buf(PIPE_MTE2, 0)
            TLOAD(a, G32(ptr(x, 256 * i)))
            rls_buf(PIPE_MTE2, 0)
            get_buf(PIPE_V, 0)
            get_buf(PIPE_V, 1)
            TADDS(b, a, 1.0)
            rls_buf(PIPE_V, 0)
            rls_buf(PIPE_V, 1)
            get_buf(PIPE_MTE3, 1)
            TSTORE(G32(ptr(z, 256 * i)), b)
            rls_buf(PIPE_MTE3, 1)

    assert codes(program, "a5", seed=seed) == []
    assert np.array_equal(z, x + 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_end_of_a_block_leaves_the_others_alone(target: str, seed: int | None) -> None:
    """Vector cores alone: the cube core of a cluster has no program, and nothing to clear away."""
    x, y = np.random.default_rng(0).random((2, 3, 16, 16), np.float32)
    w = np.zeros_like(x)

    def program() -> None:
        block, tile = get_block_idx(), at(F32(), 0)
        TLOAD(tile, G32(ptr(x, 256 * block)))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TSTORE(G32(ptr(w, 256 * block)), tile)
        SYNCALL()
        TLOAD(tile, G32(ptr(w, 256 * ((block + 1) % 3))))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TSTORE(G32(ptr(y, 256 * block)), tile)

    assert codes(program, target, grid=3, seed=seed) == []
    assert np.array_equal(y, np.roll(x, -1, axis=0))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_accumulation_is_one_step_of_a_unit_flag(target: str) -> None:
    """TMATMUL_ACC reads and writes one accumulator: Partial, Final, store."""
    Mat = Tile[TileType.Mat, half, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]
    eye, result = np.eye(32, dtype=np.float16), np.zeros((32, 32), np.float32)

    def program() -> None:
        l1, acc = at(Mat(), 0), at(TileAcc[float32, 32, 32](), 0)
        left, right = at(TileLeft[half, 32, 32](), 0), at(TileRight[half, 32, 32](), 0)
        TLOAD(l1, GlobalTensor(eye))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
        TMOV(left, l1)
        TMOV(right, l1)
        PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
        for _ in range(2):
            TMATMUL[AccPhase.Partial](acc, left, right)
            TMATMUL_ACC[AccPhase.Final](acc, left, right)
            TSTORE[STPhase.Final](GlobalTensor(result), acc)
            pipe_barrier(PIPE_FIX)

    assert codes({"cube": program}, target) == []
    assert np.array_equal(result, 2 * np.eye(32))


LATE = [Schedule(late=(PIPE_MTE2,)), Schedule(late=(PIPE_MTE3,)), *map(Schedule, range(4))]


@pytest.mark.parametrize("schedule", LATE, ids=str)
def test_operands_are_those_of_the_moment_at_which_work_is_issued(schedule: Schedule) -> None:
    """A view is pointed elsewhere, and sizes are changed, before a late pipe gets there."""
    first, second, out = array(1.0), array(2.0), array(0.0)
    Dynamic = Tile[TileType.Vec, float32, 16, 16, BLayout.RowMajor, -1, -1]

    def program() -> None:
        a, b = at(F32(), 0), at(Dynamic(16, 16), 0x400)
        view = G32(first)
        TLOAD(a, view)
        TASSIGN(view, ptr(second))
        TLOAD(b, view)
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        target = G32(out)
        TSTORE(target, b)
        TASSIGN(target, ptr(first))
        b.SetValidShape(8, 16)
        pipe_barrier(PIPE_MTE3)
        TSTORE(target, a)

    launch({"vector": program}, schedule=schedule, hazards=False)
    assert (out == 2).all()
    assert (first == 1).all()
