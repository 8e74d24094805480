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


def where(number: int, slow: str) -> tuple[int, str]:
    """The node that a task is done on, which takes its time on one of them."""
    from importlib import import_module

    node = import_module("ray").get_runtime_context().get_node_id()
    time.sleep(1.0 if node == slow else 0.1)
    return number, node
