"""Running a program on a grid of clusters from plain functions, one per kind of core.

`@kernel` builds on this; it is also the way to drive cube and vector cores by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ptokit.base.diagnostics import Diagnostic
from ptokit.frontend.session import running
from ptokit.isa.targets import Target, target
from ptokit.machine.explore import explore as search
from ptokit.machine.objects import as_array
from ptokit.machine.scheduler import Outcome, Schedule, run_cluster

__all__ = ["Outcome", "Schedule", "explore", "launch"]


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


def explore(
    programs: Mapping[str, Callable[[], Any]],
    arrays: Sequence[Any],
    target_name: str | Target = "a2a3",
    mode: str = "manual",
    *,
    grid: int = 1,
    schedules: int = 40,
    seed: int = 0,
    hazards: bool = False,
) -> list[Diagnostic]:
    """Run under many schedules and report the first that gives other bytes in `arrays`."""

    def run(schedule: Schedule) -> None:
        launch(programs, target_name, mode, grid=grid, schedule=schedule, hazards=hazards)

    return search(run, [as_array(a) for a in arrays], schedules, seed)
