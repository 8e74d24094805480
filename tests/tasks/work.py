"""What tasks do in these tests; in a module of its own, so that other machines can import it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np


def act(data: tuple[str, int], marks: str = "") -> int:
    """Square a number, in one of several ways."""
    way, number = data
    if way == "raises":
        raise ValueError(f"not {number}")
    if way == "dies":
        os._exit(7)
    if way == "hangs":
        while True:
            time.sleep(0.01)
    if way == "dies once" and not (mark := Path(marks) / str(number)).exists():
        mark.touch()
        os._exit(9)
    if way == "slow":
        time.sleep(0.03)
    if way == "prints":
        print("nobody hears this")
    return number * number


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def computed(number: int, seconds: float) -> int:
    """Keep a processor busy for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
    return number


def total(number: int, array: Any) -> tuple[int, int, bool]:
    """What is shared, where, and whether it may be written to."""
    return int(array.sum()) + number, os.getpid(), bool(array.flags.writeable)


def large(number: int, count: int) -> Any:
    """An array that does not fit into an answer."""
    return np.full(count, number, np.uint8)


# ---- on nodes ------------------------------------------------------------------------------------

PATIENCE = 300.0  # seconds after which something that must come does not


def node() -> str:
    from importlib import import_module

    return import_module("ray").get_runtime_context().get_node_id()


def note(folder: str, what: str, number: int) -> None:
    """A file that says what happens to a task here."""
    (Path(folder) / f"{what} {number} {node()} {os.getpid()} {time.monotonic_ns()}").touch()


def noted(folder: str, what: str = "*") -> list[tuple[str, int, str, int]]:
    """What has happened to tasks: what, to which, on which node, in which process."""
    found = (each.name.split() for each in Path(folder).glob(f"{what} *"))
    return [(what, int(number), node, int(pid)) for what, number, node, pid, _ in found]


def until(ready: Any) -> None:
    """Wait for a fact, however long that takes."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def acts(data: tuple[str, int], folder: str) -> int:
    """As `act`, with a note of each attempt."""
    note(folder, "begins", data[1])
    return act(data, folder)


def held(number: int, folder: str) -> int:
    """A task that does not end before a node has gone."""
    note(folder, "begins", number)
    until((Path(folder) / "gone").exists)
    return number


def beside(number: int, slow: str, folder: str, count: int) -> tuple[int, str]:
    """A task of so many on two nodes, of which one does nothing while the other does ten."""
    mine = node()
    note(folder, "begins", number)
    until(lambda: len({each[2] for each in noted(folder, "begins")}) == 2)
    if mine == slow:
        before = len(noted(folder, "ends"))
        until(lambda: len(noted(folder, "ends")) >= min(before + 10, count - 1))
        time.sleep(0.15)  # so long that it has no other task at hand
    note(folder, "ends", number)
    return number, mine
