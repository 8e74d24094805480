"""Ranks as actors of a cluster: the bytes, findings and hangs of ranks in one process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.comm import *
from ptokit.frontend.rank_actors import share_of
from ptokit.machine.ranks import here
from ptokit.tasks import Executor
from tests.hazards.support import at, marked
from tests.tasks.rank_programs import CLEAN, PROGRAMS, Block, Made, Worlds, outcome

ray: Any = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def there() -> Iterator[Executor]:
    """A cluster of two nodes."""
    args: dict[str, Any] = {"num_cpus": 4, "object_store_memory": 80 << 20}
    cluster: Any = Cluster(True, head_node_args=args)
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


def test_what_a_rank_changes_beside_its_windows_is_told(worlds: Worlds) -> None:
    world, found = worlds(2), list[int]()
    data = world.window(16)

    def program(rank: int) -> None:
        data.local[...] = 1
        if rank:
            found.append(rank)  # lost

    with pytest.raises(PtoError, match="found is changed on rank 1") as told:
        world.run(program)
    (only,) = told.value.diagnostics
    assert only.location is not None
    assert only.location.line == marked(program, "lost")
    assert data[0].all()


def test_what_cannot_be_sent_back_is_told(worlds: Worlds) -> None:
    with pytest.raises(PtoError, match="what a rank returns cannot be sent"):
        worlds(2).run(lambda rank: (each for each in range(rank)))


def test_the_collective_unit_is_refused_by_name(there: Executor) -> None:
    world = World(2, "a5", jobs=there)
    parts, whole = world.window((16, 16)), world.window((32, 16))

    def program(rank: int) -> None:
        group = ParallelGroup([parts.tensor(0), parts.tensor(1)], 0)
        trigger = CcuTriggerContext(0, 1, rank, CcuInputSource.HostManaged)
        comm.TGATHER[CollEngine.CCU](group, whole.tensor(0), at(Block(), 0), trigger)

    with pytest.raises(PtoError, match="no collective unit"):
        world.run(program)


class Dying:
    """The way of a rank to the hub, on which its process ends the first time."""

    def __init__(self, line: Any, mark: Path, left: int) -> None:
        self._line, self._mark, self._left = line, mark, left

    def ask(self, what: Any, entries: Any) -> Any:
        if self._left == 0 and not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1
        return self._line.ask(what, entries)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)


def dying(make: Callable[[Worlds], Made], mark: Path, asks: int) -> Callable[[Worlds], Made]:
    """A program whose rank 1 is killed the first time that it has asked so often."""

    def made(worlds: Worlds) -> Made:
        world, program, args = make(worlds)

        def until_it_dies(rank: int, *args: Any) -> Any:
            if rank == 1:
                there: Any = here()
                there.ranks._line = Dying(there.ranks._line, mark, asks)
            return program(rank, *args)

        return world, until_it_dies, args

    return made


@pytest.mark.parametrize("asks", [0, 1])
@pytest.mark.parametrize("name", ["all-reduce", "handed over", "put while it is read", "deadlock"])
def test_a_rank_that_is_killed_is_started_again(
    there: Executor, tmp_path: Path, name: str, asks: int
) -> None:
    make, mark = PROGRAMS[name], tmp_path / "killed"
    here = outcome(make, cache(World))
    afar = outcome(dying(make, mark, asks), cache(lambda size: World(size, jobs=there)))
    assert mark.exists(), "it was in the middle"
    assert afar[0] == here[0]
    if name in CLEAN:
        assert afar[1] == here[1]


def test_machines_that_are_lost_become_what_they_were(there: Executor, tmp_path: Path) -> None:
    """What earlier runs have left in them, and in the windows that they had then."""
    world, mark = World(2, jobs=there), tmp_path / "killed"
    data = world.window((16, 16), fill=5)

    def keeps(rank: int) -> None:
        TLOAD(at(Block(), 0), data.tensor())

    def ends(rank: int) -> float:
        if rank and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return float(at(Block(), 0).numpy()[0, 0])

    world.run(keeps)
    for each in data:
        each[...] = 7
    world.window(16)
    assert world.run(ends) == [5.0, 5.0]


def test_a_rank_that_is_lost_each_time_is_told(there: Executor, tmp_path: Path) -> None:
    world = World(2, jobs=there)
    data, word = world.window(16), world.signals()

    def ends(rank: int) -> None:
        if rank:
            (tmp_path / str(os.getpid())).touch()
            os._exit(3)
        data.local[...] = 1
        TWAIT(word.signal(), 1, WaitCmp.EQ)

    with pytest.raises(PtoError, match=r"a rank was lost .* 3 times in a row"):
        world.run(ends)
    assert len(list(tmp_path.iterdir())) == 3
    assert not data[0].any()
    assert world.run(lambda rank: rank) == [0, 1], "it can run again"


def test_what_cannot_be_done_again_is_told(
    there: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptokit.frontend.rank_actors._RUNS", 1)
    world = World(2, jobs=there)

    def ends(rank: int) -> None:
        if rank:
            os._exit(3)

    for _ in range(2):
        world.run(lambda rank: None)
    with pytest.raises(PtoError, match="held what 2 earlier runs have left there"):
        world.run(ends)


@pytest.mark.parametrize(
    ("nodes", "size", "share"),
    [
        ([4, 4], 3, 1),
        ([1, 1], 3, 0.5),
        ([1, 1, 1], 3, 1),
        ([0, 8], 64, 0.125),
        ([0, 1, 2], 7, 1 / 3),
    ],
)
def test_ranks_share_the_processors_of_nodes(nodes: list[float], size: int, share: float) -> None:
    """No rank has parts of two nodes."""
    found = share_of(nodes, size)
    assert found == pytest.approx(share, abs=1e-3)
    assert sum(int(each / found) for each in nodes) >= size


def test_ranks_are_here_or_on_a_cluster() -> None:
    with pytest.raises(PtoError, match="actors of a cluster, one each"):
        World(2, jobs=2)
