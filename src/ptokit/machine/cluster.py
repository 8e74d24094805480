"""A cluster: one cube core and its two vector cores, with the counters they signal each other by.

Interactive use has a single instruction stream that plays every part; there the "cores" are the
faces of one core, which share all memories but the vector working memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.isa.targets import Target
from ptokit.machine.core import Core
from ptokit.machine.flags import Semaphore
from ptokit.machine.memory import Storage

SUBBLOCKS = 2
SECOND = 16  # what is added to a flag id to mean vector core 1, seen from the cube core

Role = str | int  # "cube", or the number of a vector core


class Cluster:
    """The cores of one block and what they share."""

    def __init__(self, target: Target, block: int = 0) -> None:
        self.target = target
        self.block = block
        self.cores: dict[Role, Core] = {}
        self.rings: dict[Any, Array] = {}  # slots of FIFOs that lie in no memory of the user
        self._semaphores: dict[tuple[Any, ...], Semaphore] = {}

    @staticmethod
    def of_one(core: Core) -> Cluster:
        """The cluster of a core that plays every part."""
        cluster = Cluster(core.target, core.block)
        core.cluster = cluster
        second = Core(core.target, core.kind, core.block, 1)
        second.cluster = cluster
        second.number, second.rank = core.number, core.rank
        second.registers = core.registers
        second.share_memories(core, apart=TileType.Vec)
        second.flags = core.flags
        second.issuer = core
        cluster.cores = {"cube": core, 0: core, 1: second}
        return cluster

    @staticmethod
    def of_all(target: Target, subblocks: int, block: int = 0) -> Cluster:
        """The cluster of a cube core and so many vector cores."""
        cluster = Cluster(target, block)
        cluster.cores["cube"] = Core(target, "cube", block)
        for sub in range(subblocks):
            cluster.cores[sub] = Core(target, "vector", block, sub)
        for core in cluster.cores.values():
            core.cluster = cluster
        return cluster

    def semaphore(self, role: Role, flag: int, *, of: Any = None, title: str = "") -> Semaphore:
        """The counter `flag` of one core; on the cube core vector core 1 counts from 16 on.

        `of` keeps the counters of different FIFOs apart where flag numbers do not.
        """
        key = (role, flag, of)
        found = self._semaphores.get(key)
        if found is None:
            limit = 15 if of is None else 1 << 30
            found = self._semaphores[key] = Semaphore(title or self._title(role, flag), limit)
        elif title:
            found.title = title
        return found

    def _title(self, role: Role, flag: int) -> str:
        who = "the cube core" if role == "cube" else f"vector core {role}"
        return f"cross-core flag {flag} of {who}"

    @property
    def semaphores(self) -> dict[tuple[Any, ...], Semaphore]:
        """All counters used so far, by (role, flag, FIFO)."""
        return self._semaphores

    def begin_again(self) -> None:
        """Be ready for another block."""
        self._semaphores.clear()
        self.rings.clear()

    def vector_memory(self, subblock: int) -> Storage:
        """The working memory of a vector core."""
        return self.cores[subblock].memory(TileType.Vec)

    def ring(self, key: Any, nbytes: int) -> Array:
        """Bytes for the slots of a FIFO that were given no memory."""
        found = self.rings.get(key)
        if found is None:
            found = self.rings[key] = np.zeros(nbytes, np.uint8)
        return found

    def __repr__(self) -> str:
        return f"cluster {self.block}"


def cluster_of(core: Core) -> Cluster:
    """The cluster a core belongs to; a core on its own becomes one."""
    if core.cluster is None:
        Cluster.of_one(core)
    assert isinstance(core.cluster, Cluster)
    return core.cluster
