"""Many tasks in processes: nothing is lost, whatever becomes of single ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptokit.base.diagnostics import PtoError
from ptokit.tasks import Executor, Journal, Result, Task, Work
from ptokit.tasks import pool as pools
from tests.tasks.work import act, total

WAYS = st.sampled_from(["plain"] * 6 + ["slow", "raises", "dies", "dies once", "prints"])


def tasks(ways: list[str]) -> Iterator[Task]:
    return (Task(f"task {n}", (way, n)) for n, way in enumerate(ways))


def told(result: Result) -> tuple[int, str, Any, str]:
    trouble = "" if result.trouble is None else f"{result.trouble.kind}: {result.trouble.reason}"
    return result.number, result.task.name, result.value, trouble


def expected(ways: list[str], seconds: float = 0.5) -> list[tuple[int, str, Any, str]]:
    troubles = {
        "raises": "raised: ValueError: not {}",
        "dies": "died: its process ended with code 7",
        "hangs": f"time: it was ended after {seconds:g} s",
    }
    return [
        (n, f"task {n}", None if way in troubles else n * n, troubles.get(way, "").format(n))
        for n, way in enumerate(ways)
    ]


@pytest.mark.usefixtures("ends_its_processes")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(WAYS, max_size=40), st.integers(2, 4), st.booleans(), st.sampled_from([2, 500]))
def test_the_report_is_the_same_whoever_does_what(
    tmp_path_factory: pytest.TempPathFactory,
    ways: list[str],
    jobs: int,
    ordered: bool,
    life: int,
) -> None:
    marks = str(tmp_path_factory.mktemp("marks"))
    executor = Executor(jobs, life=life)
    found = list(executor.results(Work(act, (marks,)), tasks(ways), ordered=ordered))
    assert sorted(map(told, found)) == expected(ways)
    if ordered:
        assert [each.number for each in found] == list(range(len(ways)))


@pytest.mark.usefixtures("ends_its_processes")
def test_a_task_that_hangs_is_ended_and_the_others_are_not(tmp_path: Path) -> None:
    ways = ["plain"] * 3 + ["hangs"] + ["slow"] * 12 + ["hangs", "plain"]
    for jobs in (1, 3):
        began = time.monotonic()
        executor = Executor(jobs, seconds=0.5)
        found = executor.results(Work(act, (str(tmp_path),)), tasks(ways), ordered=True)
        assert list(map(told, found)) == expected(ways)
        assert time.monotonic() - began < 20


def test_one_process_takes_tasks_one_by_one() -> None:
    """Nothing is taken before it is wanted, and what one raises is told of it alone."""
    taken: list[int] = []

    def some() -> Iterator[Task]:
        for number in range(10):
            taken.append(number)
            yield Task(str(number), ("raises" if number == 1 else "plain", number))

    found = Executor().results(Work(act), some())
    assert [each.value for each in islice(found, 3)] == [0, None, 4]
    assert taken == [0, 1, 2]


def test_what_is_taken_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that wait for an earlier one are few, and so are tasks that wait for a worker."""
    monkeypatch.setattr(pools, "LEAD", 20)
    taken = 0

    def some() -> Iterator[Task]:
        nonlocal taken
        for number in range(400):
            taken = number
            yield Task(str(number), 0.4 if number == 0 else 0.0)

    found = Executor(2).results(Work(time.sleep), some(), ordered=True)
    next(found)
    assert taken < 200
    assert [each.number for each in found] == list(range(1, 400))


def test_memory_does_not_grow_with_the_number_of_tasks() -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        work, some = Work(lambda n: n), (Task(str(n), n) for n in range(count))
        assert sum(1 for _ in Executor(2).results(work, some, ordered=True)) == count
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(300)  # what is loaded late
    assert peak(2000) < peak(300) + 200_000


def test_large_data_goes_both_ways() -> None:
    """Neither side waits for the other to listen."""
    data = os.urandom(1 << 20)
    some = (Task(str(n), data) for n in range(12))
    assert all(r.value == data for r in Executor(2).results(Work(lambda d: d), some))


def test_a_value_that_cannot_be_sent_is_an_error_of_its_task() -> None:
    work = Work(lambda n: (lambda: n) if n else n)
    results = Executor(2).results(work, [Task("a", 0), Task("b", 1)])
    first, second = sorted(results, key=lambda each: each.number)
    assert first.value == 0
    assert second.trouble is not None
    assert "local object" in second.trouble.reason


def test_what_all_tasks_share_need_not_be_sent() -> None:
    import numpy as np

    results = Executor(2).results(Work(total, (np.arange(10),)), [Task("a", 1)])
    assert [each.value[0] for each in results] == [46]


@pytest.mark.usefixtures("ends_its_processes")
def test_whoever_stops_leaves_no_process() -> None:
    found = Executor(3).results(Work(act), tasks(["plain"] * 9 + ["hangs"] * 4))
    next(found)
    found.close()


def test_a_process_ends_with_what_it_has_started() -> None:
    def starts(_: int) -> int:
        return subprocess.Popen(["sleep", "600"]).pid

    (result,) = Executor(2).results(Work(starts), [Task("one", 0)])
    for _ in range(100):
        try:
            state = Path(f"/proc/{result.value}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            break
        if state == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("it sleeps on")


def test_workers_end_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    code = (
        "import os\nfrom ptokit.tasks import *\n"
        "def f(n):\n    open(f'{n}', 'w').write(str(os.getpid())); return n\n"
        "it = Executor(2).results(Work(f), (Task(str(n), n) for n in range(2)))\n"
        "next(it), next(it)\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    pids = {int(path.read_text()) for path in tmp_path.iterdir()}
    assert pids
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until, "they work on"
        time.sleep(0.05)


@pytest.mark.parametrize("jobs", [0, -1, "many", True, 1.5])
def test_jobs_are_a_number_of_workers(jobs: Any) -> None:
    with pytest.raises(PtoError, match="jobs is a number of workers"):
        Executor(jobs)


def test_a_failure_that_nobody_expects_is_raised() -> None:
    (result,) = Executor(2, retries=0).results(Work(act), [Task("task", ("dies", 1))])
    with pytest.raises(PtoError, match="task: its process ended with code 7"):
        result.get()


# ---- journals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_run_that_was_stopped_goes_on(tmp_path: Path, jobs: int, ordered: bool) -> None:
    path, executor = tmp_path / "j.jsonl", Executor(jobs)
    ways = ["plain"] * 30
    with closing(Journal(path, "squares", int)) as journal:
        found = executor.results(Work(act), tasks(ways), journal=journal, ordered=ordered)
        before = [next(found) for _ in range(11)]
        found.close()
    with closing(Journal(path, "squares", int)) as journal:
        assert journal.count == len(before)
        results = list(executor.results(Work(act), tasks(ways), journal=journal, ordered=ordered))
    assert sorted(map(told, results)) == expected(ways)
    assert {r.number for r in results if r.is_known} == {r.number for r in before}
    if ordered:
        assert [each.number for each in results] == list(range(30))


def test_what_has_failed_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    ways = ["plain", "raises"]
    for known in (0, 1):
        with closing(Journal(path, "x", int)) as journal:
            assert journal.count == known
            assert len(list(Executor().results(Work(act), tasks(ways), journal=journal))) == 2
