"""Exploration finds by trying what the hazard log finds by reasoning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.frontend.launch import explore
from ptokit.machine.explore import schedules
from tests.hazards.support import *


def kernel(x: Any, z: Any, without: str = "") -> Any:
    def edge(name: str, src: Any, dst: Any, id: int = 0) -> None:
        if name != without:
            PtoSetWaitFlag[src, dst](id, id)

    def program() -> None:
        a, b = at(F32(), 0), at(F32(), 0x400)
        for i in range(3):
            TLOAD(a, G32(ptr(x, 256 * i)))
            edge("MTE2->V", PIPE_MTE2, PIPE_V)
            TADDS(b, a, 1.0)
            edge("V->MTE2", PIPE_V, PIPE_MTE2)
            edge("V->MTE3", PIPE_V, PIPE_MTE3)
            TSTORE(G32(ptr(z, 256 * i)), b)
            edge("MTE3->V", PIPE_MTE3, PIPE_V)

    return program


def data() -> Any:
    return np.arange(768, dtype=np.float32), np.zeros(768, np.float32)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_ordered_program_gives_one_result(target: str) -> None:
    x, z = data()
    assert explore({"vector": kernel(x, z)}, [x, z], target) == []
    assert np.array_equal(z, x + 1), "the result of the run in order stays"


@pytest.mark.parametrize("edge", ["MTE2->V", "V->MTE2", "V->MTE3", "MTE3->V"])
def test_each_missing_edge_changes_some_result(edge: str) -> None:
    x, z = data()
    (found,) = explore({"vector": kernel(x, z, edge)}, [x, z])
    assert found.code == "schedule-dependent"
    assert np.array_equal(z, x + 1)


def test_the_reported_schedule_reproduces_the_difference() -> None:
    x, z = data()
    program = kernel(x, z, "V->MTE3")
    (found,) = explore({"vector": program}, [x, z], hazards=False)
    told = dict(found.got)["schedule"]
    schedule = next(s for s in schedules(40) if str(s) == told)
    z[:] = 0
    outcome = check({"vector": program}, schedule=schedule, hazards=False)
    if outcome:
        assert found.message.endswith(outcome[0].message)
    else:
        assert not np.array_equal(z, x + 1)


def test_same_seed_same_run() -> None:
    """The order in which blocks and pipes move follows from the seed alone."""

    def order(seed: int) -> list[tuple[str, Any]]:
        seen: list[tuple[str, Any]] = []
        told = [lambda event: seen.append((event.insn.name, event.pipe))]
        launch({"vector": kernel(*data())}, grid=1, seed=seed, subscribers=told)
        return seen

    assert order(7) == order(7)
    assert order(8) != order(7)
