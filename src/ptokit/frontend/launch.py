"""Running a program on a grid of clusters from plain functions, one per kind of core.

`@kernel` and programs in text build on this; it is also the way to drive cube and vector cores by
hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ptokit.base.diagnostics import Diagnostic, ProgramError, UsageError, fail
from ptokit.base.entry import public
from ptokit.frontend.session import running
from ptokit.isa.targets import Target, target
from ptokit.machine.arena import Arena
from ptokit.machine.executor import Executor
from ptokit.machine.explore import explore as search
from ptokit.machine.jobs import spread
from ptokit.machine.machine import Machine, Subscriber
from ptokit.machine.objects import as_array
from ptokit.machine.recording import Recording, joined
from ptokit.machine.scheduler import Outcome, Schedule, run_cluster

__all__ = ["Outcome", "Schedule", "explore", "launch"]

Programs = Mapping[str, Callable[[], Any]]
SHOWN_FROM = 64  # blocks: a shorter launch is over before a progress bar is read


@public
def launch(
    programs: Programs,
    target_name: str | Target = "a2a3",
    mode: str = "manual",
    *,
    grid: int = 1,
    seed: int | None = None,
    schedule: Schedule | None = None,
    hazards: bool | str = True,
    arrays: Sequence[Any] = (),
    jobs: int = 1,
    arena: Arena | None = None,
    executor: Callable[[Any], Executor] | None = None,
    events: bool = False,
    subscribers: Sequence[Subscriber] = (),
) -> Outcome:
    """Run a function per kind of core ("cube", "vector", or "mix") and raise all that is wrong.

    `hazards` is False, True, or "explore": then the program runs under many schedules and must
    leave the same bytes in `arrays` each time. `jobs` spreads the blocks over processes.
    `arena` is what an earlier launch of the same programs left; it serves a single plain run.
    `executor` makes what executes the instructions: an engine's, or else the fast one.
    `events` records every executed operation as plain data, however many there are; `subscribers`
    are told of each event as it happens, in this process.
    """
    if jobs > 1 and subscribers:
        raise fail(
            "launch",
            "subscribers are told of what happens in this process",
            fix="leave jobs out, or take the recorded events: events=True",
            kind=UsageError,
        )
    if hazards not in (True, False, "explore") or jobs < 1:
        raise fail(
            "launch",
            'check is True, False or "explore", and jobs a positive number',
            got=[("check", hazards), ("jobs", jobs)],
            kind=UsageError,
        )
    chosen = target(target_name)
    memory = [as_array(a) for a in arrays if hasattr(a, "shape")]

    def run(
        order: Schedule,
        blocks: range | None = None,
        careful: bool = True,
        arena: Arena | None = None,
        events: bool = events,
    ) -> Outcome:
        with _progress(grid if blocks is None else len(blocks)) as done:
            return run_cluster(
                programs,
                chosen,
                mode,
                grid=grid,
                schedule=order,
                hazards=careful,
                session=running,
                blocks=blocks,
                done=done,
                arena=arena,
                executor=executor,
                recording=Recording(memory) if events else None,
                subscribers=subscribers,
            )

    first = schedule or Schedule(seed)
    if jobs > 1 and grid > 1:
        parts = spread(
            lambda share: run(first, share, bool(hazards)).events, memory, grid, min(jobs, grid)
        )
        return Outcome(Machine(chosen, mode), (), joined(parts) if events else None)
    if hazards != "explore":
        return run(first, careful=bool(hazards), arena=arena)
    outcomes: list[Outcome] = []
    found = search(
        lambda order: outcomes.append(run(order, events=events and not outcomes)),
        memory,
        seed=seed or 0,
    )
    if found:
        raise ProgramError(found)
    return outcomes[0]


@public
def explore(
    programs: Programs,
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


@contextmanager
def _progress(blocks: int) -> Generator[Callable[[int], None] | None, None, None]:
    """A progress bar for long launches in a terminal."""
    if blocks < SHOWN_FROM or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("blocks", total=blocks)
        yield lambda _: bar.advance(task)
