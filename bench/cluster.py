"""What a task costs, here and on Ray, and how far one driver reaches: `python bench/cluster.py`.

Measured: microseconds of an empty task, and how much of two workers 50 ms tasks use. Simulated with
the measured constants: a driver that hands out and takes back one task after the other, and nodes
with four workers each that have the next task at hand.
"""

from __future__ import annotations

import argparse
import heapq
import time
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ptokit.tasks import Executor, Task, Work

EMPTY, NAPS, SECONDS = 3000, 400, 0.05
NODES = (1, 4, 16, 64, 256, 1024, 4096)
WORKERS = 4  # of a node
ROUND_TRIP = 0.002  # seconds between machines: a task there, an answer back


def nothing(number: int) -> int:
    return number


def nap(_: int, seconds: float) -> None:
    time.sleep(seconds)


def cost(executor: Executor) -> tuple[float, float]:
    """Seconds of an empty task, and those of them that the driver computes."""
    tasks = (Task(str(n), n) for n in range(EMPTY + 100))
    found = executor.results(Work(nothing), tasks)
    for _ in range(100):  # the workers have begun
        next(found)
    began, computed = time.perf_counter(), time.process_time()
    assert sum(1 for _ in found) == EMPTY
    return (time.perf_counter() - began) / EMPTY, (time.process_time() - computed) / EMPTY


def use(executor: Executor) -> float:
    """How much of two workers short naps use, once they have begun."""
    tasks = (Task(str(n), n) for n in range(NAPS + 10))
    found = executor.results(Work(nap, (SECONDS,)), tasks)
    for _ in range(10):
        next(found)
    began = time.perf_counter()
    assert sum(1 for _ in found) == NAPS
    return NAPS * SECONDS / 2 / (time.perf_counter() - began)


def simulated(nodes: int, seconds: float, per_task: float) -> float:
    """The share of all workers that is used, when one driver has tasks of a length without end."""
    workers = nodes * WORKERS
    depth = 1 + min(63, int(0.1 / seconds))  # as `pool.py` has it
    # Times at which an answer reaches the driver; a worker goes on with what it has at hand.
    free = [0.0] * workers
    answers = [(0.0, worker) for worker in range(workers) for _ in range(depth)]
    driver, done, count = 0.0, 0, 8 * depth * workers
    while done < count:
        at, worker = heapq.heappop(answers)
        driver = max(driver, at) + per_task
        begin = max(free[worker], driver + ROUND_TRIP / 2)
        free[worker] = begin + seconds
        heapq.heappush(answers, (free[worker] + ROUND_TRIP / 2, worker))
        done += 1
    return min(1.0, done * seconds / (max(free) * workers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-task", type=float, help="simulate only: driver's us of a task")
    given = parser.parse_args()
    per_task = (given.per_task or 0) / 1e6
    if not given.per_task:
        crews: dict[str, Executor] = {"two processes": Executor(2)}
        if find_spec("ray"):
            ray: Any = import_module("ray")
            ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR",
                     log_to_driver=False, object_store_memory=100 << 20)  # fmt: skip
            bare = ray.remote(nothing)
            ray.get([bare.remote(n) for n in range(200)])
            began = time.perf_counter()
            ray.get([bare.remote(n) for n in range(EMPTY)])
            each = (time.perf_counter() - began) / EMPTY
            print(f"a bare task of Ray          {each * 1e6:7.0f} us")
            crews["Ray, two processors"] = Executor("auto")
        for name, executor in crews.items():
            wall, per_task = cost(executor)
            print(f"{name:<27} {wall * 1e6:7.0f} us, of the driver {per_task * 1e6:.0f} us; "
                  f"50 ms tasks use {use(executor):.1%}")  # fmt: skip
    lengths = (0.05, 0.5, 5.0)
    print(f"simulated, {per_task * 1e6:.0f} us of the driver a task, {WORKERS} workers a node")
    print("nodes", *(f"{length:>6g} s" for length in lengths))
    for nodes in NODES:
        shares = [simulated(nodes, length, per_task) for length in lengths]
        print(f"{nodes:5}", *(f"{share:8.1%}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
