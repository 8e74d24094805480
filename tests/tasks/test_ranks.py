"""Ranks as actors of a cluster: the bytes, findings and hangs of ranks in one process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.comm import *
from ptokit.tasks import Executor
from tests.hazards.support import at
from tests.hazards.test_ranks import Block
from tests.tasks.rank_programs import CLEAN, PROGRAMS, Worlds, outcome

ray: Any = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def there() -> Iterator[Executor]:
    """A cluster of two nodes."""
    args = {"num_cpus": 4, "object_store_memory": 80 << 20}
    cluster = Cluster(True, head_node_args=args)
    cluster.add_node(**args)
    ray.init(cluster.address, logging_level="ERROR", log_to_driver=False)
    yield Executor(address=cluster.address, seconds=120)
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def worlds(there: Executor) -> Worlds:
    """Worlds on the cluster: one of each size, to which programs add their windows."""
    return cache(lambda size: World(size, jobs=there))


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_do_on_a_cluster_what_they_do_in_one_process(worlds: Worlds, name: str) -> None:
    here, afar = outcome(PROGRAMS[name], cache(World)), outcome(PROGRAMS[name], worlds)
    told = here[0]
    assert isinstance(told, list) == (name in CLEAN), told
    assert afar[0] == told
    if isinstance(told, list):  # what a program that races leaves depends on who was faster
        assert afar[1] == here[1]


def test_seeds_choose_the_order_in_which_ranks_are_judged(worlds: Worlds) -> None:
    make = PROGRAMS["put while it is read"]
    here, afar = (
        [outcome(make, where, seed)[0] for seed in range(4)] for where in (cache(World), worlds)
    )
    assert here == afar
    assert len(set(map(str, here))) > 1


def test_a_machine_stays_from_one_run_to_the_next(worlds: Worlds) -> None:
    world = worlds(2)

    def first(rank: int) -> None:
        at(Block(), 0).fill(rank + 1)

    def then(rank: int) -> float:
        return float(at(Block(), 0).numpy()[0, 0])

    world.run(first)
    assert world.run(then) == [1.0, 2.0]


def test_what_would_be_lost_is_refused(worlds: Worlds) -> None:
    """An array that is no window belongs to whoever runs the program: nobody would see it."""
    world, mine = worlds(2), np.zeros((16, 16), np.float32)
    window = world.window((16, 16))

    def stores(rank: int) -> None:
        tile = at(Block(), 0)
        tile.fill(1.0)
        TSTORE(GlobalTensor(mine), tile)

    with pytest.raises(PtoError, match="read-only"):
        world.run(stores)

    def through_a_part(rank: int, part: Any) -> None:
        if rank == 0:
            part[...] = 5

    world.run(through_a_part, window[1][4:8])  # a part of a window is one of the window there
    assert (window[1][4:8] == 5).all()
    assert window[1].sum() == 5 * 4 * 16
    with pytest.raises(PtoError, match="actors of a cluster"), world.rank(0):
        pass


def test_the_collective_unit_is_refused_by_name(there: Executor) -> None:
    world = World(2, "a5", jobs=there)
    parts, whole = world.window((16, 16)), world.window((32, 16))

    def program(rank: int) -> None:
        group = ParallelGroup([parts.tensor(0), parts.tensor(1)], 0)
        trigger = CcuTriggerContext(0, 1, rank, CcuInputSource.HostManaged)
        comm.TGATHER[CollEngine.CCU](group, whole.tensor(0), at(Block(), 0), trigger)

    with pytest.raises(PtoError, match="no collective unit"):
        world.run(program)


def test_a_rank_that_is_lost_is_told(there: Executor) -> None:
    world = World(2, jobs=there)
    data, word = world.window(16), world.signals()

    def ends(rank: int) -> None:
        import os

        if rank:
            os._exit(3)
        data.local[...] = 1
        TWAIT(word.signal(), 1, WaitCmp.EQ)

    with pytest.raises(PtoError, match="a rank was lost"):
        world.run(ends)
    assert not data[0].any()
    assert world.run(lambda rank: rank) == [0, 1], "it can run again"


def test_ranks_are_here_or_on_a_cluster() -> None:
    with pytest.raises(PtoError, match="actors of a cluster, one each"):
        World(2, jobs=2)
