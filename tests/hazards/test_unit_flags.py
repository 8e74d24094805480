"""Unit flags hold under every schedule: cube unit and fix pipe hand the accumulator over."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import ProgramError
from ptokit.frontend.launch import Schedule
from ptokit.isa.spec import Pipe

L1 = Tile[TileType.Mat, half, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]


@kernel(mode="manual")
def products(a, b, c, n):
    """The same product n times, each stored without a flag between M and FIX."""
    a_l1, b_l1 = L1(), L1()
    left, right, acc = (
        TileLeft[half, 32, 32](),
        TileRight[half, 32, 32](),
        TileAcc[float32, 32, 32](),
    )
    TASSIGN[0x0000](a_l1)
    TASSIGN[0x1000](b_l1)
    TASSIGN[0x0000](left)
    TASSIGN[0x0000](right)
    TASSIGN[0x0000](acc)
    loaded_a = Event[Op.TLOAD, Op.TMOV_M2L](TLOAD(a_l1, GlobalTensor(a)))
    loaded_b = Event[Op.TLOAD, Op.TMOV_M2R](TLOAD(b_l1, GlobalTensor(b)))
    TMOV(left, a_l1, loaded_a)
    moved = Event[Op.TMOV_M2R, Op.TMATMUL](TMOV(right, b_l1, loaded_b))
    moved.wait()
    for i in range(n):
        TMATMUL[AccPhase.Partial](acc, left, right)
        TMATMUL_ACC[AccPhase.Final](acc, acc, left, right)
        TSTORE[STPhase.Final](GlobalTensor(c)[i * 32 : i * 32 + 32, :], acc)


ORDERS = [
    Schedule(),
    Schedule(late=(Pipe.M,)),
    Schedule(late=(Pipe.FIX,)),
    *map(Schedule, range(12)),
]


@pytest.mark.parametrize("schedule", ORDERS, ids=str)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_handshake_orders_products_and_stores(schedule: Schedule, target: str) -> None:
    a, b = np.random.default_rng(0).integers(-2, 3, (2, 32, 32)).astype(np.float16)
    c = np.zeros((96, 32), np.float32)
    products[1](a, b, c, 3, target=target, schedule=schedule)
    assert np.array_equal(c, np.tile(2 * (a.astype("f4") @ b.astype("f4")), (3, 1)))


@kernel
def by_phases(a, c, *, steps):
    """Products and stores of one accumulator, in an order given by their phases."""
    a_l1 = L1()
    left, right, acc = (
        TileLeft[half, 32, 32](),
        TileRight[half, 32, 32](),
        TileAcc[float32, 32, 32](),
    )
    for tile in (a_l1, left, right, acc):
        TASSIGN(tile, 0)
    TLOAD(a_l1, GlobalTensor(a))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
    TMOV(left, a_l1)
    TMOV(right, a_l1)
    PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
    stored = 0
    for phase in steps:
        if isinstance(phase, AccPhase):
            TMATMUL[phase](acc, left, right)
        else:
            TSTORE[phase](GlobalTensor(c)[stored * 32 : stored * 32 + 32, :], acc)
            stored += 1


def phased(*steps: AccPhase | STPhase, **options) -> np.ndarray:
    c = np.zeros((64, 32), np.float32)
    by_phases[1](np.ones((32, 32), np.float16), c, steps=steps, **options)
    return c


FULL, FREE = AccPhase.Final, STPhase.Final


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_product_waits_for_a_store_that_is_written_behind_it(path: str) -> None:
    assert (phased(FULL, FULL, FREE, FREE, path=path) == 32).all()
    assert (phased(FULL, STPhase.Partial, FREE, path=path) == 32).all()


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    "steps",
    [
        (AccPhase.Partial, FREE),
        (AccPhase.Unspecified, FREE),
        (FREE,),
        (FULL, FULL),
    ],
    ids=str,
)
def test_a_wait_that_never_ends_is_a_handshake_out_of_step(steps, check: bool) -> None:
    with pytest.raises(ProgramError) as caught:
        phased(*steps, check=check)
    assert "E9" in caught.value.codes
    assert "STPhase.Final" in str(caught.value)


@pytest.mark.parametrize(
    "steps",
    [(FULL,), (FULL, STPhase.Partial), (AccPhase.Partial,), (FULL, FULL, FREE)],
    ids=str,
)
def test_a_handshake_left_open(steps) -> None:
    with pytest.raises(ProgramError) as caught:
        phased(*steps)
    assert caught.value.codes == ("E9",)
    assert "open" in str(caught.value)


# ---- flash attention's way: products go to the vector cores, no flag between M and FIX -----------

SLOTS, ROUNDS = 2, 7
Part = Tile[TileType.Vec, float32, 16, 32]


def at(tile, address):
    TASSIGN(tile, address)
    return tile


@kernel(core="mix")
def attention(a, b, ring, out, *, way, in_hand):
    """One accumulator for all products; the ring is shorter than the number of rounds."""
    pipe = TPipe[2, way, 4096, SLOTS, SLOTS, False, True](ring, 0, 0)
    with cube_section():
        a_l1, b_l1 = at(L1(), 0), at(L1(), 0x1000)
        left = [at(TileLeft[half, 32, 32](), i * 0x800) for i in range(2)]
        right = at(TileRight[half, 32, 32](), 0)
        acc = at(TileAcc[float32, 32, 32](), 0)
        TLOAD(b_l1, GlobalTensor(b))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
        TMOV(right, b_l1)
        for i in range(ROUNDS):
            TLOAD(a_l1, GlobalTensor(a)[i * 32 : i * 32 + 32, :])
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
            TMOV(left[i % 2], a_l1)
            PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
            PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
            TMATMUL[AccPhase.Partial](acc, left[i % 2], right)
            TMATMUL_ACC[AccPhase.Final](acc, acc, left[i % 2], right)
            PtoSetWaitFlag[PIPE_M, PIPE_MTE1]()
            if in_hand:
                slot = GlobalTensor[float32, Shape[1, 1, 1, 32, 32], Stride[1, 1, 1, 32, 1]]()
                TALLOC[TileSplitAxis.TILE_UP_DOWN](pipe, slot)
                TSTORE[STPhase.Final](slot, acc)
                TPUSH[TileSplitAxis.TILE_UP_DOWN](pipe, slot)
            else:
                TPUSH[TileSplitAxis.TILE_UP_DOWN](pipe, acc)
    with vector_section():
        part = Part()
        for i in range(ROUNDS):
            TPOP[TileSplitAxis.TILE_UP_DOWN](pipe, part)
            first = i * 32 + get_subblockid() * 16
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(GlobalTensor(out)[first : first + 16, :], part)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()


WAYS = [("a2a3", Direction.DIR_C2V), ("a5", Direction.DIR_C2V_GM)]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("schedule", [Schedule(), *map(Schedule, range(3))], ids=str)
@pytest.mark.parametrize("in_hand", [False, True])
@pytest.mark.parametrize(("target", "way"), WAYS)
def test_products_wait_for_a_fix_pipe_that_is_held_up(
    target: str, way: Direction, in_hand: bool, schedule: Schedule, check: bool
) -> None:
    """The ring is full long before the last round: M may not run ahead of FIX then."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (ROUNDS * 32, 32)).astype(np.float16)
    b = rng.integers(-2, 3, (32, 32)).astype(np.float16)
    wanted = 2 * (a.astype("f4") @ b.astype("f4"))
    for path in ("eager", "lowered"):
        ring, out = np.zeros((SLOTS * 32, 32), np.float32), np.zeros_like(wanted)
        options = {"target": target, "schedule": schedule, "check": check, "path": path}
        attention[1](a, b, ring, out, way=way, in_hand=in_hand, **options)
        assert np.array_equal(out, wanted), path


@kernel(core="mix", target="a5")
def moved(a, out, *, rounds):
    """Products go straight into the memory of vector core 0; the last one is stored from there."""
    with cube_section():
        l1, result = at(L1(), 0), at(Tile[TileType.Vec, float32, 32, 32](), 0)
        left, right = at(TileLeft[half, 32, 32](), 0), at(TileRight[half, 32, 32](), 0)
        acc = at(TileAcc[float32, 32, 32](), 0)
        TLOAD(l1, GlobalTensor(a))
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
        TMOV(left, l1)
        TMOV(right, l1)
        PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
        for _ in range(rounds):
            TMATMUL[AccPhase.Final](acc, left, right)
            TMOV(result, acc, stPhase=STPhase.Final)
        set_intra_block(PIPE_FIX, 3)
        set_intra_block(PIPE_FIX, 19)
    with vector_section():
        wait_intra_block(PIPE_MTE3, 3)
        result = at(Tile[TileType.Vec, float32, 32, 32](), 0)
        if get_subblockid() == 0:
            TSTORE(GlobalTensor(out), result)


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("schedule", ORDERS, ids=str)
def test_moves_of_an_accumulator_take_part(schedule: Schedule, path: str) -> None:
    a = np.random.default_rng(0).integers(-2, 3, (32, 32)).astype(np.float16)
    out = np.zeros((32, 32), np.float32)
    moved[1](a, out, rounds=3, schedule=schedule, path=path)
    assert np.array_equal(out, a.astype("f4") @ a.astype("f4"))
