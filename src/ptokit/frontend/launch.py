"""Running a program on a grid of clusters from plain functions, one per kind of core.

`@kernel` builds on this; it is also the way to drive cube and vector cores by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptokit.frontend.session import running
from ptokit.isa.targets import Target, target
from ptokit.machine.scheduler import Outcome, Schedule, run_cluster

__all__ = ["Outcome", "Schedule", "launch"]


def launch(
    programs: Mapping[str, Callable[[], Any]],
    target_name: str | Target = "a2a3",
    mode: str = "manual",
    *,
    grid: int = 1,
    seed: int | None = None,
    schedule: Schedule | None = None,
    hazards: bool = True,
) -> Outcome:
    """Run a function per kind of core ("cube", "vector", or "mix") and raise all that is wrong."""
    return run_cluster(
        programs,
        target(target_name),
        mode,
        grid=grid,
        schedule=schedule or Schedule(seed),
        hazards=hazards,
        session=running,
    )
