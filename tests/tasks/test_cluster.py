"""The same on a Ray cluster: nothing is lost when a node goes, a store is full, a driver dies.

These run where Ray is installed: `pip install ptokit[ray]`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.conform import load_cases, run_cases
from ptokit.folders.runs import run_folder
from ptokit.from_text import loads
from ptokit.tasks import Executor, Task, Work
from tests.command import command
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
    ways = ["plain"] * 40 + ["raises", "dies once", "dies", "prints", "hangs"] + ["plain"] * 40
    executor = remote(started(nodes), seconds=3)
    found = executor.results(Work(act, (str(tmp_path),)), tasks(ways), ordered=True)
    ended = "died: its worker was ended"  # Ray does not say with which code
    wanted = [(*each[:3], ended if ways[n] == "dies" else each[3])
              for n, each in enumerate(expected(ways, 3))]  # fmt: skip
    assert list(map(told, found)) == wanted


def test_a_node_may_go(started: Callable[[int], Any]) -> None:
    cluster = started(4)
    some = (Task(str(n), n) for n in range(120))
    found = remote(cluster).results(Work(work.computed, (0.05,)), some)
    values = [next(found).value for _ in range(20)]
    for node in list(cluster.worker_nodes)[:2]:
        cluster.remove_node(node, allow_graceful=False)
    values += [each.get() for each in found]
    assert sorted(values) == list(range(120))


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


def test_a_slow_node_is_given_less(started: Callable[[int], Any]) -> None:
    cluster = started(2)
    slow = next(iter(cluster.worker_nodes)).node_id
    some = (Task(str(n), n) for n in range(60))
    found = [r.get() for r in remote(cluster).results(Work(work.where, (slow,)), some)]
    assert sorted(number for number, _ in found) == list(range(60))
    nodes = Counter(node for _, node in found)
    assert nodes[slow] < 20


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
