"""Transfers of one pipe may overtake each other: schedules show it, and a barrier forbids it."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import *

SEEDS = range(24)


def outcomes(target: str, with_barrier: bool, to_memory: bool) -> set[float]:
    """What is left when two transfers go to one place, over many schedules, unchecked."""
    found: set[float] = set()
    for seed in SEEDS:
        x, y, z = array(1), array(2), array(0)

        def program(x: object = x, y: object = y, z: object = z) -> None:
            a, b = at(F32(), 0x0), at(F32(), 0x400)
            TLOAD(a, G32(x))
            if not to_memory:
                if with_barrier:
                    pipe_barrier(PIPE_MTE2)
                TLOAD(a, G32(y))
                PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
                TSTORE(G32(z), a)
                return
            TLOAD(b, G32(y))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(G32(z), a)
            if with_barrier:
                pipe_barrier(PIPE_MTE3)
            TSTORE(G32(z), b)

        launch({"vector": program}, target, seed=seed, hazards=False)
        found |= set(np.unique(z).tolist())
    return found


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_stores_overtake_each_other_and_loads_land_in_order(target: str) -> None:
    assert outcomes(target, with_barrier=False, to_memory=True) == {1.0, 2.0}
    assert outcomes(target, with_barrier=False, to_memory=False) == {2.0}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("to_memory", [False, True], ids=["loads", "stores"])
def test_a_barrier_keeps_them_in_order(target: str, to_memory: bool) -> None:
    assert outcomes(target, with_barrier=True, to_memory=to_memory) == {2.0}
