"""Running a program on a grid of clusters from plain functions, one per kind of core.

`@kernel` and programs in text build on this; it is also the way to drive cube and vector cores by
hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import (
    Diagnostic,
    ProgramError,
    tell,
    usage_error,
)
from ptokit.base.entry import public
from ptokit.base.location import user_frame
from ptokit.base.namedtuple import NamedTuple
from ptokit.frontend.policies import policy_for
from ptokit.frontend.session import running
from ptokit.isa.targets import Target, target
from ptokit.machine.arena import Arena
from ptokit.machine.budget import Budget
from ptokit.machine.gm import as_array
from ptokit.machine.machine import Machine
from ptokit.machine.scheduler import Options, Outcome, Schedule, Scheduler
from ptokit.tasks.progress import progress

if TYPE_CHECKING:
    from ptokit.machine.jobs import Keeper
    from ptokit.machine.recording import Recording
    from ptokit.machine.resident import Again, Resident

__all__ = ["Options", "Outcome", "Schedule", "explore", "launch", "run"]

Programs = Mapping[str, Callable[[], Any]]


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
    """Run all blocks of a launch, once or under many schedules.

    Code that may crash runs in a process of its own: it has a `keeper`.
    """
    hazards = options.hazards
    if hazards not in (True, False, "full", "explore"):
        raise usage_error(
            "launch", 'check is True, False, "full" or "explore"', got=[("check", hazards)]
        )
    memory = [as_array(a) for a in options.arrays if getattr(a, "shape", ())]

    def scheduled(**changed: Any) -> Outcome:
        return _scheduled(programs, on, mode, replace(options, arrays=memory, **changed))

    def sent() -> tuple[_Sent, Again | None]:
        arena = None if options.again is None else Arena(on, mode)
        outcome = run(programs, on, mode, replace(options, arena=arena))
        again = None if options.again is None else options.again(outcome)
        return _Sent(outcome.warnings, outcome.events, outcome.verdict, outcome.chosen), again

    if keeper is not None:  # most kernels run in this process
        from ptokit.machine.jobs import apart
        from ptokit.machine.recording import taken_over
        from ptokit.machine.resident import may_stay, resident

        stays: Resident | None = None
        if options.again is not None and may_stay(memory):
            back, stays = resident(sent, memory, keeper)
        else:
            back = apart(lambda: sent()[0], memory, keeper)
        machine = Machine(on, mode, policy=options.policy)
        events = None if back.events is None else taken_over(back.events)
        return Outcome(machine, back.warnings, events, back.verdict, back.chosen, stays)
    if hazards != "explore":
        return scheduled()
    from ptokit.machine.explore import explore as search  # few launches do

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
    verdict: tuple[Diagnostic, ...] | None
    chosen: Sequence[tuple[int, int]]


def _scheduled(programs: Programs, on: Target, mode: str, options: Options) -> Outcome:
    """Run blocks under one schedule and raise all that is wrong."""
    from ptokit.repair.advice import advised

    blocks = options.grid if options.blocks is None else len(options.blocks)
    budget = options.budget
    with progress(blocks) as done, nullcontext() if budget is None else budget.watching():
        scheduler = Scheduler(on, mode, replace(options, done=done))
        with running(scheduler.machine):
            try:
                outcome = scheduler.run(programs)
            except ProgramError as error:
                error.diagnostics = advised(error.diagnostics)
                error.doubted(scheduler.machine.warnings)
                raise
    outcome.diagnostics = advised(outcome.diagnostics)
    if outcome.errors:
        error = ProgramError(outcome.errors)
        error.doubted(outcome.warnings)
        raise error
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
    from ptokit.machine.explore import explore as search

    def run(schedule: Schedule) -> None:
        launch(programs, target_name, mode, schedule=schedule, hazards=hazards, **options)

    return search(run, [as_array(a) for a in arrays], schedules, seed)
