"""The same on a Ray cluster: nothing is lost when a node goes, a store is full, a driver dies.

These run where Ray is installed: `pip install ptokit[ray]`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.comm import World
from ptokit.conform import load_cases, run_cases
from ptokit.folders.runs import run_folder
from ptokit.from_text import loads
from ptokit.tasks import Executor, Task, Work
from tests.command import command
from tests.frontend.test_world import COLS, ROWS, ring_all_reduce
from tests.tasks import work
from tests.tasks.test_executor import expected, tasks, told
from tests.tasks.test_spreading import BLOCKS, arrays, in_place
from tests.tasks.work import act

ray: Any = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
STORE = 80 << 20  # bytes
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "folder"


@pytest.fixture
def started() -> Iterator[Callable[[int], Any]]:
    """Start a cluster of so many nodes with a processor each, and connect to it."""
    made: list[Any] = []

    def start(nodes: int) -> Any:
        cluster = Cluster(True, head_node_args={"num_cpus": 1, "object_store_memory": STORE})
        made.append(cluster)
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(cluster.address, logging_level="ERROR", log_to_driver=False)
        return cluster

    yield start
    ray.shutdown()
    for cluster in made:
        cluster.shutdown()


def remote(cluster: Any, **how: Any) -> Executor:
    return Executor(address=cluster.address, **how)


@pytest.mark.parametrize("nodes", [2, 4])
def test_the_report_is_that_of_one_process(
    started: Callable[[int], Any], tmp_path: Path, nodes: int
) -> None:
    """Only the task that hangs needs to come to its limit, which may be as long as one likes."""
    ways = ["plain"] * 40 + ["raises", "dies once", "dies", "prints", "hangs"] + ["plain"] * 40
    executor = remote(started(nodes), seconds=15)
    found = executor.results(Work(work.acts, (str(tmp_path),)), tasks(ways), ordered=True)
    ended = "died: its worker was ended"  # Ray does not say with which code
    wanted = [(*each[:3], ended if ways[n] == "dies" else each[3])
              for n, each in enumerate(expected(ways, 15))]  # fmt: skip
    assert list(map(told, found)) == wanted
    begun = work.noted(str(tmp_path))
    tries = Counter(ways[number] for _, number, *_ in begun)
    # Beside the first time, when its worker had others at hand, whose answers may go with it.
    assert tries["dies"] in (3, 4)
    assert (tries["dies once"], tries["hangs"]) == (2, 1)
    assert max(Counter(number for _, number, *_ in begun).values()) <= 4
    (hung,) = (pid for _, number, _, pid in begun if ways[number] == "hangs")
    work.until(lambda: not Path(f"/proc/{hung}").exists())  # it was ended, not waited for


def test_nodes_may_go(started: Callable[[int], Any], tmp_path: Path) -> None:
    """What they had begun is done by others, once."""
    cluster = started(4)
    lost = [each.node_id for each in list(cluster.worker_nodes)[:2]]

    def remove() -> None:
        work.until(lambda: len({each[2] for each in work.noted(str(tmp_path), "begins")}) == 4)
        for each in [n for n in cluster.worker_nodes if n.node_id in lost]:
            cluster.remove_node(each, allow_graceful=False)
        there = [pid for _, _, node, pid in work.noted(str(tmp_path)) if node in lost]
        work.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in there))
        (tmp_path / "gone").touch()

    thread = Thread(target=remove)
    thread.start()
    some = (Task(str(n), n) for n in range(120))
    found = remote(cluster).results(Work(work.held, (str(tmp_path),)), some)
    assert sorted(each.get() for each in found) == list(range(120))
    thread.join()
    begun = work.noted(str(tmp_path), "begins")
    first = {number for _, number, node, _ in begun if node in lost}
    assert len(first) >= 2
    assert first == {n for n, tries in Counter(each[1] for each in begun).items() if tries > 1}


def test_arrays_are_sent_once_and_results_may_fill_the_store(started: Callable[[int], Any]) -> None:
    cluster = started(2)
    array = np.ones(20 << 20, np.uint8)  # a quarter of a store
    some = (Task(str(n), n) for n in range(60))
    found = [r.get() for r in remote(cluster).results(Work(work.total, (array,)), some)]
    assert sorted(each[0] for each in found) == [array.size + n for n in range(60)]
    assert len({pid for _, pid, _ in found} - {os.getpid()}) <= 2
    assert not any(is_writeable for *_, is_writeable in found)  # it is the one of the store
    size = 12 << 20
    for n, each in enumerate(
        remote(cluster).results(
            Work(work.large, (size,)), (Task(str(n), n) for n in range(30)), ordered=True
        )
    ):
        assert each.get().nbytes == size
        assert each.value[-1] == n


def test_a_slow_node_is_given_less(started: Callable[[int], Any], tmp_path: Path) -> None:
    cluster = started(2)
    slow = next(iter(cluster.worker_nodes)).node_id
    shared, some = (slow, str(tmp_path), 60), (Task(str(n), n) for n in range(60))
    found = [r.get() for r in remote(cluster).results(Work(work.beside, shared), some)]
    assert sorted(number for number, _ in found) == list(range(60))
    nodes = Counter(node for _, node in found)
    assert len(nodes) == 2
    assert 1 <= nodes[slow] <= 6  # while it does one, the other one does ten


DRIVER = """
import sys
from contextlib import closing
from pathlib import Path
from ptokit.tasks import Executor, Journal, Task, Work
from tests.tasks.work import computed
with closing(Journal(Path(sys.argv[2]), "naps", int)) as journal:
    print(journal.count, flush=True)
    some = (Task(str(n), n) for n in range(60))
    work = Work(computed, (0.05,))
    results = Executor(address=sys.argv[1]).results(work, some, ordered=True, journal=journal)
    for each in results:
        print(each.get(), flush=True)
"""


def test_a_driver_may_be_killed(started: Callable[[int], Any], tmp_path: Path) -> None:
    cluster, path = started(2), tmp_path / "journal"
    words = [sys.executable, "-c", DRIVER, cluster.address, str(path)]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(words, **how) as driver:
        assert driver.stdout is not None
        for _ in range(15):
            driver.stdout.readline()
        driver.send_signal(signal.SIGKILL)
    done = subprocess.run(words, **how, check=True).stdout.split()
    assert int(done[0]) >= 14
    assert done[1:] == [str(n) for n in range(60)]


def test_commands_say_the_same_on_a_cluster(started: Callable[[int], Any], tmp_path: Path) -> None:
    cluster = started(2)
    kernel = ROOT / "examples" / "softmax_manual.py"
    words = ("sweep", kernel, "--targets", "a2a3,a5", "--seeds", "0:24")
    assert command(*words) == command(*words, "--cluster", cluster.address)
    kept = tmp_path / "kept.json"
    tuned = "tune", ROOT / "examples" / "gelu.py", "--set", "ROWS=8,16,4096", "-o", kept
    here, tried = command(*tuned), kept.read_text()
    kept.unlink()
    assert here.stdout == command(*tuned, "--cluster", cluster.address).stdout
    assert tried == kept.read_text()
    here, there = run_folder(FOLDER), run_folder(FOLDER, jobs=remote(cluster))
    assert [(o.program, o.status, o.reason, o.changed, o.diagnostics) for o in here] == [
        (o.program, o.status, o.reason, o.changed, o.diagnostics) for o in there
    ]
    golden = ROOT.parent.parent / "shared" / "golden"
    if golden.is_dir():
        cases = load_cases(golden)[::200]
        assert list(run_cases(golden, cases)) == list(run_cases(golden, cases, remote(cluster)))


TEXT = """func.func @k(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) {
  return
}
"""


def test_a_kernel_is_explored_as_text(started: Callable[[int], Any]) -> None:
    cluster = started(2)
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        from importlib import import_module

        case = import_module("softmax_manual").CASES[0]
    finally:
        sys.path.remove(str(ROOT / "examples"))
    found = [
        case.kernel[case.blocks].explore(
            *case.inputs(np.random.default_rng(7)), schedules=40, jobs=jobs, target="a2a3"
        )
        for jobs in (1, remote(cluster))
    ]
    assert found[0] == found[1]
    kernel = loads(TEXT).entry()
    arrays = np.zeros(4, "f4"), np.zeros(4, "f4")
    assert not kernel[1].explore(*arrays, schedules=20, jobs=remote(cluster)).found


def test_the_address_of_the_environment_is_taken(
    started: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = started(2)
    ray.shutdown()
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    executor = Executor("auto")
    assert executor.is_remote
    found = executor.results(Work(act), tasks(["plain"] * 3), ordered=True)
    assert [each.get() for each in found] == [0, 1, 4]
    assert ray.get_runtime_context().gcs_address == cluster.address


def test_an_address_that_nobody_has_is_told() -> None:
    with pytest.raises(PtoError, match=r"there is no cluster at 127\.0\.0\.1:1"):
        list(Executor(address="127.0.0.1:1").results(Work(act), tasks(["plain"])))


def test_what_cannot_be_sent_is_told(started: Callable[[int], Any]) -> None:
    with pytest.raises(PtoError, match="cannot be sent to other machines"):
        list(remote(started(2)).results(Work(lambda n: n), tasks(["plain"])))


def test_blocks_of_a_launch_are_spread_over_nodes(started: Callable[[int], Any]) -> None:
    cluster = started(2)
    here, there = arrays()[0], arrays()[0]
    in_place[BLOCKS](here, target="a2a3")
    in_place[BLOCKS](there, target="a2a3", jobs=remote(cluster))
    assert np.array_equal(here, there)


# ---- ranks ---------------------------------------------------------------------------------------


def test_a_node_may_go_with_its_ranks(started: Callable[[int], Any], tmp_path: Path) -> None:
    cluster = started(3)
    plain, world = World(3), World(3, jobs=remote(cluster, seconds=240))
    here, there = (
        (each.window((3, ROWS, COLS)), each.window((4, ROWS, COLS)), each.signals())
        for each in (plain, world)
    )
    for rank in range(3):
        values = np.random.default_rng(rank).random((3, ROWS, COLS))
        here[0][rank][...] = there[0][rank][...] = values

    def program(rank: int, *args: Any) -> None:
        if not (tmp_path / "gone").exists():
            args[0].local[...] = -1  # nobody is to see this
            part = tmp_path / f"{rank} is writing"
            part.write_text(ray.get_runtime_context().get_node_id())
            part.rename(tmp_path / f"rank{rank}")
            time.sleep(600)
        ring_all_reduce(rank, *args)

    def removes() -> None:
        while len(marks := list(tmp_path.glob("rank*"))) < 3:
            time.sleep(0.1)
        used = {each.read_text() for each in marks}
        (tmp_path / "gone").touch()
        node = next(each for each in cluster.worker_nodes if each.node_id in used)
        cluster.remove_node(node, allow_graceful=False)

    thread = Thread(target=removes)
    thread.start()
    world.run(program, *there)
    thread.join()
    assert (tmp_path / "gone").exists()
    plain.run(ring_all_reduce, *here)
    for one, other in zip(here, there, strict=True):
        assert [a.tolist() for a in one] == [a.tolist() for a in other]
