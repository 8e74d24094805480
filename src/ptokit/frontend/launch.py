"""Running a program on a grid of clusters from plain functions, one per kind of core.

`@kernel` and programs in text build on this; it is also the way to drive cube and vector cores by
hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

from ptokit.base.diagnostics import (
    Diagnostic,
    ProgramError,
    Warnings,
    tell,
    usage_error,
    with_doubts,
)
from ptokit.base.entry import public
from ptokit.base.location import user_frame
from ptokit.frontend.policies import policy_for
from ptokit.frontend.session import running
from ptokit.isa.targets import Target, target
from ptokit.machine.budget import Budget
from ptokit.machine.explore import explore as search
from ptokit.machine.gm import as_array
from ptokit.machine.jobs import Keeper, apart, spread
from ptokit.machine.machine import Machine
from ptokit.machine.recording import Recording, joined
from ptokit.machine.scheduler import Options, Outcome, Schedule, Scheduler
from ptokit.repair.advice import advised

__all__ = ["Options", "Outcome", "Schedule", "explore", "launch", "run"]

Programs = Mapping[str, Callable[[], Any]]
SHOWN_FROM = 64  # blocks: a shorter launch is over before a progress bar is read


@public
def launch(
    programs: Programs,
    target_name: str | Target = "a2a3",
    mode: str = "manual",
    *,
    seed: int | None = None,
    rules: str | None = None,
    allow: Iterable[str] = (),
    max_steps: int | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = None,
    **options: Any,
) -> Outcome:
    """Run a function per kind of core ("cube", "vector", or "mix") and raise all that is wrong.

    `seed` is short for `schedule=Schedule(seed)`, `rules` and `allow` make up the policy,
    `max_steps`, `max_seconds` and `max_bytes` the budget; see `Options` for the others.
    """
    options.setdefault("budget", Budget.of(max_steps, max_seconds, max_bytes))
    options.setdefault("schedule", Schedule(seed))
    options.setdefault("policy", policy_for(user_frame().f_code.co_filename, rules, allow))
    outcome = run(programs, target(target_name), mode, Options(**options))
    for each in outcome.warnings:
        tell(each)
    return outcome


def run(
    programs: Programs,
    on: Target,
    mode: str,
    options: Options,
    keeper: Keeper | None = None,
) -> Outcome:
    """Run all blocks of a launch: here or in processes, once or under many schedules.

    Code that may crash runs in a process even when it runs alone: it has a `keeper`.
    """
    hazards, jobs, grid = options.hazards, options.jobs, options.grid
    if jobs > 1 and options.subscribers:
        raise usage_error(
            "launch",
            "subscribers are told of what happens in this process",
            fix="leave jobs out, or take the recorded events: events=True",
        )
    if hazards not in (True, False, "full", "explore") or jobs < 1:
        raise usage_error(
            "launch",
            'check is True, False, "full" or "explore", and jobs a positive number',
            got=[("check", hazards), ("jobs", jobs)],
        )
    memory = [as_array(a) for a in options.arrays if getattr(a, "shape", ())]

    def scheduled(**changed: Any) -> Outcome:
        return _scheduled(programs, on, mode, replace(options, arrays=memory, **changed))

    def share_of(blocks: range) -> _Sent:
        return _Sent.of(scheduled(blocks=blocks, arena=None))

    def all_of_it() -> _Sent:
        return _Sent.of(run(programs, on, mode, replace(options, jobs=1, arena=None)))

    if keeper is not None and (jobs == 1 or hazards == "explore"):
        return _joined([apart(all_of_it, memory, keeper)], on, mode, options)
    if jobs > 1 and grid > 1:
        parts = spread(share_of, memory, grid, min(jobs, grid), keeper)
        return _joined(parts, on, mode, options)
    if hazards != "explore":
        return scheduled()
    outcomes: list[Outcome] = []

    def explored(order: Schedule) -> Outcome:
        events = options.events and not outcomes
        outcomes.append(scheduled(schedule=order, arena=None, events=events))
        return outcomes[-1]

    found = search(explored, memory, seed=options.schedule.seed or 0)
    if found:
        raise ProgramError(found)
    return outcomes[0]


class _Sent(NamedTuple):
    """What a process tells of its outcome."""

    warnings: tuple[Diagnostic, ...]
    events: Recording | None
    chosen: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, outcome: Outcome) -> _Sent:
        return cls(outcome.warnings, outcome.events, outcome.chosen)


def _joined(parts: Sequence[_Sent], on: Target, mode: str, options: Options) -> Outcome:
    """The outcome of what ran in processes."""
    found = Warnings()
    for part in parts:
        for each in part.warnings:
            found.add(each)
    events = joined(filter(None, (part.events for part in parts))) if options.events else None
    chosen = parts[0].chosen if len(parts) == 1 else ()  # several had choices of their own
    machine = Machine(on, mode, policy=options.policy)
    return Outcome(machine, tuple(found), events, chosen=chosen)


def _scheduled(programs: Programs, on: Target, mode: str, options: Options) -> Outcome:
    """Run blocks under one schedule and raise all that is wrong."""
    blocks = options.grid if options.blocks is None else len(options.blocks)
    budget = options.budget
    with progress(blocks) as done, nullcontext() if budget is None else budget.watching():
        scheduler = Scheduler(on, mode, replace(options, done=done))
        with running(scheduler.machine):
            try:
                outcome = scheduler.run(programs)
            except ProgramError as error:
                error.diagnostics = advised(error.diagnostics)
                raise
    outcome.diagnostics = advised(outcome.diagnostics)
    if outcome.errors:
        raise ProgramError(with_doubts(outcome.errors, outcome.warnings))
    if outcome.verdict is not None:
        outcome.verdict = advised(outcome.verdict)
    return outcome


@public
def explore(
    programs: Programs,
    arrays: Sequence[Any],
    target_name: str | Target = "a2a3",
    mode: str = "manual",
    *,
    schedules: int = 40,
    seed: int = 0,
    hazards: bool = False,
    **options: Any,
) -> list[Diagnostic]:
    """Run under many schedules and report the first that gives other bytes in `arrays`."""

    def run(schedule: Schedule) -> None:
        launch(programs, target_name, mode, schedule=schedule, hazards=hazards, **options)

    return search(run, [as_array(a) for a in arrays], schedules, seed)


@contextmanager
def progress(
    count: int, of_what: str = "blocks", shown_from: int = SHOWN_FROM
) -> Generator[Callable[[int], None] | None, None, None]:
    """A progress bar for long work in a terminal; of blocks it is told one by one."""
    if count < shown_from or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(of_what, total=count)
        yield lambda more: bar.advance(task, 1 if of_what == "blocks" else more)
