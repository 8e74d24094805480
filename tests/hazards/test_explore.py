"""Exploration finds by trying what the hazard log finds by reasoning."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.frontend.launch import explore
from ptokit.machine.explore import Explorer, schedules
from ptokit.machine.scheduler import Pace
from tests.command import command
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


# ---- all orders, or a sample ---------------------------------------------------------------------


Block = Tile[TileType.Vec, float32, 16, 16]


@ptokit.kernel(mode="manual", target="a5")
def two_streams(x: Any, y: Any, *, rounds: int, waits: bool = True) -> None:
    """Blocks that pass through one of two tiles, with a flag around the loop for each."""
    tiles = [at(Block(), 0), at(Block(), 0x400)]
    for turn in static_range(2):
        set_flag(PIPE_MTE3, PIPE_MTE2, turn)
    for i in static_range(rounds):
        wait_flag(PIPE_MTE3, PIPE_MTE2, i % 2)
        TLOAD(tiles[i % 2], GlobalTensor(x)[i * 16 : i * 16 + 16, :])
        set_flag(PIPE_MTE2, PIPE_MTE3, i % 2)
        if waits:
            wait_flag(PIPE_MTE2, PIPE_MTE3, i % 2)
        TSTORE(GlobalTensor(y)[i * 16 : i * 16 + 16, :], tiles[i % 2])
        set_flag(PIPE_MTE3, PIPE_MTE2, i % 2)
    for turn in static_range(2):
        wait_flag(PIPE_MTE3, PIPE_MTE2, turn)


def blocks(rounds: int) -> Any:
    x = np.arange(rounds * 256, dtype=np.float32).reshape(rounds * 16, 16)
    return x, np.zeros_like(x)


def test_few_orders_are_all_tried() -> None:
    """The second load comes before the first store or behind it; each pipe keeps its order."""
    one = two_streams[1].explore(*blocks(1), rounds=1)
    assert (one.count, one.is_complete, str(one)) == (1, True, "its work has one order only")
    x, y = blocks(2)
    two = two_streams[1].explore(x, y, rounds=2)
    assert (two.count, two.is_complete, str(two)) == (2, True, "all 2 schedules agree")
    assert np.array_equal(x, y)


@pytest.mark.parametrize("jobs", [1, 2])
def test_of_many_orders_a_sample_is_tried(jobs: int) -> None:
    x, y = blocks(8)
    many = two_streams[1].explore(x, y, rounds=8, schedules=30, jobs=jobs)
    assert (many.count, many.is_complete) == (30, False)
    assert str(many) == "sampled 30 schedules: they agree"
    assert np.array_equal(x, y)


@pytest.mark.parametrize(("rounds", "jobs"), [(1, 1), (8, 2)])
def test_an_order_that_changes_the_result_can_be_run_again(rounds: int, jobs: int) -> None:
    x, y = blocks(rounds)
    how = {"rounds": rounds, "waits": False, "allow": ["E2"]}
    seen = two_streams[1].explore(x, y, schedules=60, jobs=jobs, **how)
    (found,) = seen.found
    assert found.code == "schedule-dependent"
    assert str(seen).startswith("the result depends on the schedule: found after ")
    told = dict(found.got)["schedule"]
    again = [*schedules(60), Schedule(choices=()), Schedule(choices=(1,)), Schedule(choices=(2,))]
    schedule = next((s for s in again if str(s) == told), None)
    if schedule is not None and "difference" in dict(found.got):
        other = np.zeros_like(y)
        two_streams[1](x, other, schedule=schedule, check=False, path="lowered", **how)
        assert not np.array_equal(other, y)


def test_every_order_is_another_one() -> None:
    """No list of choices is tried twice, and the last one is the last."""
    seen: list[tuple[int, ...]] = []
    x, y = blocks(4)

    def run(schedule: Schedule) -> Any:
        ran = two_streams[1](x, y, rounds=4, schedule=schedule, check=False, path="lowered")
        if schedule.choices is not None:
            seen.append(tuple(number for number, _ in ran.chosen))
        return ran

    assert Explorer(run, [x, y]).search(100).is_complete
    assert len(seen) == len(set(seen)) == 8, "never more than two loads ahead"


def test_a_race_comes_with_its_witness() -> None:
    x, y = blocks(2)
    how = {"rounds": 2, "waits": False}
    with pytest.raises(ProgramError) as caught:
        two_streams[1](x, y, **how)
    race, *_ = two_streams[1].witnessed(caught.value.diagnostics, x, y, **how)
    assert race.evidence is not None
    assert race.evidence.schedule.startswith("PIPE_MTE2 late")
    assert race.evidence.changes
    assert dict(race.got)["changes"] == race.evidence.changes
    assert dict(race.got)["missing"] == "MTE2->MTE3"
    assert dict(race.got)["later"] == "TSTORE reads src[0:16, 0:16]"


SOURCE = """
from ptokit import *

T = Tile[TileType.Vec, float32, 16, 16]


@kernel(target="a5")
def k(x: float32[16, 16], y: float32[16, 16]):
    a = T()
    TASSIGN(a, 0)
    TLOAD(a, GlobalTensor(x))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
    TSTORE(GlobalTensor(y), a)
"""


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(SOURCE)
    told = command("explore", str(file))
    assert (told.returncode, told.stdout) == (0, "k on a5: its work has one order only\n")
    file.write_text(SOURCE.replace("    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()\n", ""))
    told = command("explore", str(file), "--json")
    answer = json.loads(told.stdout)
    assert (told.returncode, answer["diagnostics"][0]["code"]) == (1, "schedule-dependent")
    assert answer["explored"][0]["kernel"] == "k"


# ---- what a device would show first --------------------------------------------------------------


@ptokit.kernel(target="a2a3", mode="manual")
def long_and_short(x: Any, y: Any, *, waits: bool) -> None:
    """The load takes longer than the addition that uses what it brings."""
    tile, sum_ = Tile[TileType.Vec, float32, 64, 128](), Tile[TileType.Vec, float32, 64, 128]()
    TASSIGN(tile, 0)
    TASSIGN(sum_, 0x8000)
    TEXPANDS(tile, 5.0)
    pipe_barrier(PIPE_ALL)
    TLOAD(tile, GlobalTensor(x))
    if waits:
        PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
    TADDS(sum_, tile, 1.0)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y), sum_)


def test_exploration_begins_with_what_the_model_of_time_predicts() -> None:
    x, y = np.ones((64, 128), np.float32), np.zeros((64, 128), np.float32)
    seen = long_and_short[1].explore(x, y, waits=False)
    assert seen.count == 2, "what begins first, then what ends first: the addition"
    (found,) = seen.found
    assert "each piece of work when it ends, as timed" in found.message
    assert (y == 2).all(), "the result of a run in order"
    clean = long_and_short[1].explore(x, y, waits=True)
    assert clean.found == ()


@pytest.mark.parametrize("moments", list(permutations((1.0, 2.0, 3.0))))
def test_work_is_done_when_it_is_predicted(moments: tuple[float, ...]) -> None:
    """Of three blocks that store to one place the last one stays."""
    shared = array(-1)

    def program() -> None:
        tile = at(F32(), 0)
        TEXPANDS(tile, moments[get_block_idx()])
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(G32(shared), tile)

    fills = {(block, "vector 0", int(PIPE_V)): [0.0] for block in range(3)}
    stores = {(block, "vector 0", int(PIPE_MTE3)): [m] for block, m in enumerate(moments)}
    launch(
        {"vector": program},
        grid=3,
        schedule=Schedule(pace=Pace("begins", fills | stores)),
        hazards=False,
    )
    assert (shared == 3).all()
