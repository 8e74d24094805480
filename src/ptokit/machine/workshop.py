"""What a launch can leave to the next one of the same program: clean clusters, and its plans.

Nothing a program could see is left: memories are poisoned, flags and registers cleared, and plans
forget the arrays they have reached. Only the work of making them is saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptokit.machine.cluster import Cluster
from ptokit.machine.memory import StoragePool
from ptokit.machine.plan import Plan

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine


class Workshop:
    """Clusters at rest, and plans over their memories."""

    def __init__(self) -> None:
        self.clusters: list[Cluster] = []
        self.plans: dict[tuple[Any, ...], Plan] = {}
        self.pool = StoragePool()

    def open(self, machine: Machine) -> None:
        """Hand the plans over to another machine."""
        for plan in self.plans.values():
            plan.begin_again(machine)

    def close(self) -> None:
        """The launch is over: keep nothing of it alive."""
        for plan in self.plans.values():
            plan.rest()
