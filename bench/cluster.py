"""What a task costs, here and on Ray, and how far one driver reaches: `python bench/cluster.py`.

    python bench/cluster.py                     # all of it, on 2,000 tasks of 50 ms
    python bench/cluster.py cost                # of an empty task, beside a bare one of Ray
    python bench/cluster.py use --tasks 10000   # of two processors, by tasks that compute for 50 ms
    python bench/cluster.py use --crew ray      # the same on Ray alone, or in processes
    python bench/cluster.py memory              # of the driver, for 1,000 to 8,000 tasks
    python bench/cluster.py threads             # a sweep in two threads, beside two processes
    python bench/cluster.py windows             # what they take, of 2 to 8 ranks in a ring
    python bench/cluster.py crossover           # how much work repays starting a cluster
    python bench/cluster.py scale --per-task US # simulated: 1 to 4,096 nodes

Costs are ratios of rounds that take turns, the best of each. Where other work runs beside it, the
use of the processors is also given as a share of the time that others have left.
"""

from __future__ import annotations

import argparse
import heapq
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ptokit import *
from ptokit.tasks import Executor, Task, Work

EMPTY, SECONDS = 2000, 0.05
SWEPT = 200  # runs of a small kernel
ROUNDS = 3
NODES = (1, 4, 16, 64, 256, 1024, 4096)
WORKERS = 4  # of a node
ROUND_TRIP = 0.002  # seconds between machines: a task there, an answer back


def nothing(number: int) -> int:
    return number


def compute(_: int, seconds: float) -> float:
    """Use a processor for so long, whoever else wants it; how long that took."""
    began, until = time.perf_counter(), time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(2000))
    return time.perf_counter() - began


def some(count: int) -> Any:
    return (Task(str(n), n) for n in range(count))


def started(executor: Executor, work: Work, count: int) -> Any:
    """The results of so many tasks, once the workers have begun."""
    found = executor.results(work, some(count + 100))
    for _ in range(100):
        next(found)
    return found


# ---- an empty task -------------------------------------------------------------------------------


def cost(crews: dict[str, Executor]) -> float:
    """Print what an empty task costs; gives back the driver's seconds of one on Ray."""
    has_ray = find_spec("ray") is not None
    ray: Any = import_module("ray" if has_ray else "builtins")
    bare = ray.remote(nothing) if has_ray else None
    best: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        if bare is not None:
            ray.get([bare.remote(n) for n in range(200)])
            began, computed = time.perf_counter(), time.process_time()
            ray.get([bare.remote(n) for n in range(EMPTY)])
            took = time.perf_counter() - began, time.process_time() - computed
            best["a bare task of Ray"] = min(best.get("a bare task of Ray", took), took)
        for name, executor in crews.items():
            found = started(executor, Work(nothing), EMPTY)
            began, computed = time.perf_counter(), time.process_time()
            assert sum(1 for _ in found) == EMPTY
            took = time.perf_counter() - began, time.process_time() - computed
            best[name] = min(best.get(name, took), took)
    for name, (wall, driver) in best.items():
        print(f"{name:<22} {wall / EMPTY * 1e6:6.0f} us, of the driver {driver / EMPTY * 1e6:4.0f}")
    if bare is not None:
        ratio = best["Ray"][0] / best["a bare task of Ray"][0]
        print(f"a task costs {ratio:.2f} times a bare task of Ray (goal: at most 1.5)")
    return list(best.values())[-1][1] / EMPTY


# ---- processors ----------------------------------------------------------------------------------


def idle() -> float:
    """Seconds in which processors of this machine had nothing to do, since it started."""
    ticks = Path("/proc/stat").read_text().splitlines()[0].split()
    return (int(ticks[4]) + int(ticks[5])) / os.sysconf("SC_CLK_TCK")


def ours() -> float:
    """Seconds of computing of this process and all that it has started, Ray among it."""
    parents, ticks = dict[int, int](), dict[int, int]()
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = each.read_text().rpartition(")")[2].split()
            parents[int(each.parent.name)] = int(words[1])
            ticks[int(each.parent.name)] = sum(map(int, words[11:15]))  # ended children too
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(ticks.get(pid, 0) for pid in mine) / os.sysconf("SC_CLK_TCK")


def use(crews: dict[str, Executor], asked: int, most: float) -> None:
    """Print how much of two processors tasks use that compute: so many, in so many seconds."""
    for name, executor in crews.items():
        found = started(executor, Work(compute, (SECONDS,)), asked)
        began, before, count, walls, wall = time.perf_counter(), ours() + idle(), 0, 0.0, 0.0
        while count < asked and wall < most:
            walls += next(found).get()
            count, wall = count + 1, time.perf_counter() - began
        available = ours() + idle() - before  # while the workers are still there
        found.close()
        share, stretched = count * SECONDS / 2 / wall, walls / (count * SECONDS)
        print(
            f"{name:<22} {count:,} tasks of {SECONDS * 1e3:.0f} ms of computing in {wall:.1f} s: "
            f"{share:.1%} of two processors (goal: 90 %), and "
            f"{count * SECONDS / available:.1%} of the time of theirs that nobody else took; "
            f"workers were busy {walls / 2 / wall:.1%} of the time, and tasks took "
            f"{stretched:.2f} times as long beside other work"
        )


# ---- threads -------------------------------------------------------------------------------------


def scheduled(seed: int) -> bytes:
    """One run of a sweep: a small kernel under a random schedule."""
    x, y = np.ones((4 * 16, 64), np.float32), np.zeros((4 * 16, 64), np.float32)
    scaled[4](x, y, seed=seed)
    return y.tobytes()


@kernel(mode="auto")
def scaled(x: Any, y: Any) -> None:
    t, row = Tile[TileType.Vec, float32, 16, 64](), get_block_idx() * 16
    for _ in range(8):
        TLOAD(t, GlobalTensor(x[row : row + 16]))
        TMULS(t, t, 2.0)
        TSTORE(GlobalTensor(y[row : row + 16]), t)


def threads() -> None:
    """Print what a sweep takes in one process, in two threads of it, and in two processes."""

    def in_threads() -> list[bytes]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(scheduled, range(SWEPT)))

    def in_processes(count: int) -> list[bytes]:
        found = Executor(count).results(Work(scheduled), some(SWEPT), ordered=True)
        return [each.get() for each in found]

    ways: dict[str, Callable[[], list[bytes]]] = {
        "this process": lambda: in_processes(1),
        "two threads": in_threads,
        "two processes": lambda: in_processes(2),
    }
    best = dict.fromkeys(ways, float("inf"))
    expected = ways["this process"]()
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            assert way() == expected
            best[name] = min(best[name], time.perf_counter() - began)
    for name, took in best.items():
        print(f"{name:<22} {SWEPT} runs of a sweep in {took:.2f} s, "
              f"{best['this process'] / took:.2f} times the speed of one process")  # fmt: skip


# ---- memory --------------------------------------------------------------------------------------


def resident() -> float:
    """Megabytes of this process, now."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory(crews: dict[str, Executor]) -> None:
    """Print the memory of the driver behind ever more tasks."""
    for name, executor in crews.items():
        for count in (500, 1000, 2000, 4000, 8000):  # the first one warms up
            before, most = resident(), 0.0
            for n, _ in enumerate(executor.results(Work(nothing), some(count), ordered=True)):
                if n % 100 == 0:
                    most = max(most, resident())
            if count >= 1000:
                print(f"{name:<22} {count:5,} tasks: {before:6.1f} MB before, {most:6.1f} at most")


# ---- windows of ranks ----------------------------------------------------------------------------


def private() -> float:
    """Megabytes that only this process has."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def handed_on(rank: int, data: Any, told: Any) -> float:
    """Fill the window of the next rank, wait for one's own; how much memory that took."""
    comm: Any = import_module("ptokit.comm")
    before, right = private(), (rank + 1) % comm.get_rank_num()
    data[right][...] = rank + 1
    comm.TNOTIFY(told.signal(right), 1, comm.NotifyOp.Set)
    comm.TWAIT(told.signal(), 1, comm.WaitCmp.EQ)
    assert data.local.min() >= 1
    return private() - before


def windows(executor: Executor) -> None:
    """Print what windows of 8 MB take in all ranks together, where each reaches two of them."""
    from ptokit.comm import World

    for size in (2, 4, 8):
        world = World(size, jobs=executor)
        took = sum(world.run(handed_on, world.window(2 << 20), world.signals()))
        print(f"{size} ranks with windows of 8 MB: {took:5.0f} MB in all of them together, "
              f"{took / 8 / size:.1f} windows a rank")  # fmt: skip


# ---- crossover -----------------------------------------------------------------------------------


def begins(executor: Executor) -> float:
    """Seconds until the first result is there."""
    began = time.perf_counter()
    for _ in executor.results(Work(nothing), some(2)):
        pass
    return time.perf_counter() - began


def crossover(first: float, crews: dict[str, Executor]) -> None:
    """Print when a cluster repays its start: it has so many more processors than this machine."""
    begin = {name: min(begins(each) for _ in range(2)) for name, each in crews.items()}
    print(f"a local Ray starts in {first:.1f} s; then the first result of its workers comes after "
          f"{begin['Ray']:.1f} s, of processes after {begin['two processes']:.2f} s")  # fmt: skip
    later = begin["Ray"] - begin["two processes"]
    for factor in (2, 4, 16):
        work = 2 * later / (1 - 1 / factor)
        print(f"a cluster with {factor:2} times the two processors of this machine, which runs, is "
              f"faster from {work:.0f} s of computing on; one that starts first, from "
              f"{2 * (later + first) / (1 - 1 / factor):.0f} s on")  # fmt: skip


# ---- simulation ----------------------------------------------------------------------------------


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


def scale(per_task: float) -> None:
    """Print the share of all workers that tasks of several lengths use."""
    lengths = (0.05, 0.5, 5.0)
    print(f"simulated, {per_task * 1e6:.0f} us of the driver a task, {WORKERS} workers a node")
    print("nodes", *(f"{length:>6g} s" for length in lengths))
    for nodes in NODES:
        shares = [simulated(nodes, length, per_task) for length in lengths]
        print(f"{nodes:5}", *(f"{share:8.1%}" for share in shares), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = ["cost", "use", "threads", "memory", "windows", "crossover", "scale"]
    parser.add_argument("what", nargs="*", help=f"{', '.join(every)}; else all")
    parser.add_argument("--crew", help="processes or ray; else both")
    parser.add_argument("--tasks", type=int, default=2000, help="that compute")
    parser.add_argument("--most", type=float, default=1e9, help="seconds in which they compute")
    parser.add_argument("--per-task", type=float, default=300.0, help="driver's us of a task")
    given = parser.parse_args()
    chosen = given.what or every
    per_task, crews, first = given.per_task / 1e6, {"two processes": Executor(2)}, 0.0
    if find_spec("ray") and given.crew != "processes" and set(chosen) - {"scale", "threads"}:
        ray: Any = import_module("ray")
        began = time.perf_counter()
        ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR",
                 log_to_driver=False, object_store_memory=100 << 20)  # fmt: skip
        first, crews["Ray"] = time.perf_counter() - began, Executor("auto")
    if given.crew == "ray":
        del crews["two processes"]
    runs: dict[str, Callable[[], Any]] = {
        "use": lambda: use(crews, given.tasks, given.most),
        "threads": threads,
        "memory": lambda: memory(crews),
        "windows": lambda: windows(crews["Ray"]) if first else None,
        "crossover": lambda: crossover(first, crews) if first else None,
    }
    for each in chosen:
        if each == "cost":
            per_task = cost(crews)
        elif each == "scale":
            scale(per_task)
        else:
            runs[each]()


if __name__ == "__main__":
    main()
