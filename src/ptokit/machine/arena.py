"""Arenas: what can outlive a machine, so that the next run of the same program finds it.

An arena holds memories and the calls that are laid over them. Nothing a program could see is left
in it: memories are poisoned, flags and registers cleared, and calls know no array of the user.
Only the work of making them is saved. An arena serves one machine at a time.
"""

from __future__ import annotations

import threading

from ptokit.isa.targets import Target
from ptokit.machine.calls import CallCache
from ptokit.machine.cluster import Cluster
from ptokit.machine.memory import StoragePool


class Arena:
    """Clusters at rest, storages of tiles that are gone, and verified calls over all of them."""

    def __init__(self, target: Target, mode: str) -> None:
        self.clusters: list[Cluster] = []
        self.pool = StoragePool()
        self.calls = CallCache(target, mode)
        self.lock = threading.Lock()  # held while a program runs on its memories
