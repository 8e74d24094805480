"""Unit flags hold under every schedule: cube unit and fix pipe hand the accumulator over."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
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
