"""Exploration: run a program under many schedules and compare what it leaves behind.

A race shows as soon as two schedules give different bytes. The late schedules hold one pipe back
until nothing else can move, which is the worst case for whoever forgot to wait for it; random ones
mix cores and pipes. A program with few orders of its work is run in all of them. Every finding
names the schedule that reproduces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError
from ptokit.base.evidence import Evidence, causes
from ptokit.base.layout import Array, raw_bytes
from ptokit.isa.spec import Pipe
from ptokit.machine.scheduler import Schedule
from ptokit.tasks import Executor, Journal, Task, Work

# PIPE_ALL stands for the engines beside the cores.
_HELD_BACK = (Pipe.MTE2, Pipe.MTE3, Pipe.V, Pipe.MTE1, Pipe.M, Pipe.FIX, Pipe.ALL)


_CHUNK = 8  # schedules of a task: how often a progress bar moves
_SEEDS = 6  # tried for one that shows a race
_MOST_SHOWN = 10  # causes for which one is looked for
_HOPELESS = 1000  # times as many orders as may be tried, to judge by the first one


def schedules(count: int, seed: int = 0) -> Iterator[Schedule]:
    """The worst cases first, then random ones, `count` in all."""
    worst = [Schedule(late=(pipe,)) for pipe in _HELD_BACK]
    worst.append(Schedule(late=_HELD_BACK))
    worst += [Schedule(late=tuple(p for p in _HELD_BACK if p is not pipe)) for pipe in _HELD_BACK]
    yield from worst[:count]
    for number in range(max(0, count - len(worst))):
        yield Schedule(seed + number)


@dataclass(frozen=True)
class Exploration:
    """What many schedules have shown."""

    count: int  # schedules tried
    is_complete: bool  # whether these were all orders that the work of the pipes can take
    found: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        tried = f"{self.count:,} schedule{'' if self.count == 1 else 's'}"
        if self.found:
            return f"the result depends on the schedule: found after {tried}"
        if self.is_complete:
            return f"all {tried} agree" if self.count > 1 else "its work has one order only"
        return f"sampled {tried}: they agree"


def explore(
    run: Callable[[Schedule], Any], arrays: Sequence[Array], count: int = 40, seed: int = 0
) -> list[Diagnostic]:
    """Run once in order, then under `count` other schedules; report what differs.

    `arrays` is the global memory of the program. It is set back before every run and holds the
    result of the first one in the end. A first run that fails raises.
    """
    return list(Explorer(run, arrays).sample(list(schedules(count, seed))))


class Explorer:
    """A program with the bytes it leaves in order; whatever was tried, the arrays hold these."""

    def __init__(
        self, run: Callable[[Schedule], Any], arrays: Sequence[Array], names: Sequence[str] = ()
    ) -> None:
        self._run = run
        self._arrays = arrays
        self._names = names or [f"array {number}" for number in range(len(arrays))]
        self._before = [a.copy() for a in arrays]
        run(Schedule())
        self._expected = [a.copy() for a in arrays]
        self._chosen: Sequence[tuple[int, int]] = ()

    def attempt(self, schedule: Schedule) -> Diagnostic | None:
        """Run under one schedule: what is different then."""
        _put_back(self._arrays, self._before)
        try:
            outcome = self._run(schedule)
            self._chosen = getattr(outcome, "chosen", ())
            different = _difference(self._names, self._arrays, self._expected)
            return _differs(schedule, different) if different else None
        except PtoError as error:
            return _failed(schedule, error)
        finally:
            _put_back(self._arrays, self._expected)

    def sample(self, tried: Sequence[Schedule]) -> Iterator[Diagnostic]:
        """The first difference among some schedules."""
        yield from islice(filter(None, map(self.attempt, tried)), 1)

    def search(
        self,
        count: int,
        seed: int = 0,
        executor: Executor = Executor(),  # noqa: B008 - which is frozen
        done: Callable[[int], None] = lambda _: None,
        likely: Sequence[Schedule] = (),
        *,
        work: Work | None = None,
        journal: Journal | None = None,
    ) -> Exploration:
        """Try all orders of the work where there are at most `count`, or else a sample.

        The executor spreads a sample; `done` is told how many schedules were tried. Those that are
        `likely` come first; they are some of all orders. `work` is `tried` for other machines.
        """
        for number, schedule in enumerate(likely, 1):
            found = self.attempt(schedule)
            if found is not None:
                return Exploration(number, False, (found,))
        tried = 0
        for found in self._orders(count):
            tried += 1
            done(1)
            if found is not None:
                return Exploration(tried, False, (found,))
        if not self._has_more:
            return Exploration(tried, True)
        tasks = _chunks(schedules(count - tried, seed))
        work = work or Work(self.tried)
        with closing(executor.results(work, tasks, ordered=True, journal=journal)) as results:
            for number, found in (each.get() for each in results):
                tried += number
                done(number)
                if found is not None:
                    return Exploration(tried, False, (found,))
        return Exploration(tried, False)

    def tried(self, chosen: Sequence[Schedule]) -> tuple[int, Diagnostic | None]:
        """How many of some schedules were tried, and what is different with the last of them."""
        for number, schedule in enumerate(chosen, 1):
            found = self.attempt(schedule)
            if found is not None:
                return number, found
        return len(chosen), None

    def _orders(self, most: int) -> Iterator[Diagnostic | None]:
        """Every order of the work, one after the other, unless there are far too many."""
        choices: tuple[int, ...] | None = ()
        self._has_more = True
        for number in range(most):
            assert choices is not None
            yield self.attempt(Schedule(choices=choices))
            if not number and prod(width for _, width in self._chosen) > _HOPELESS * most:
                return
            choices = _next(self._chosen)
            if choices is None:
                self._has_more = False
                return


def _chunks(chosen: Iterator[Schedule]) -> Iterator[Task]:
    number = 0
    while part := tuple(islice(chosen, _CHUNK)):
        yield Task(f"schedules from {number}", part)
        number += len(part)


def witnesses(explorer: Explorer, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Races with a schedule in which they show, and what it changes; the first of each cause.

    A pipe that is late shows what nobody waited for; a seed that changes the result too is easier
    to say.
    """
    kept = list(found)
    seeded: Diagnostic | None = None
    for number, cause in enumerate(causes(kept)[:_MOST_SHOWN]):
        if cause.evidence is None:
            continue
        if number == 0:
            seeded = next(explorer.sample([Schedule(seed) for seed in range(_SEEDS)]), None)
        shown = explorer.attempt(Schedule(late=(Pipe[cause.evidence.earlier.pipe],)))
        if shown is not None:
            place = kept.index(cause.first)
            kept[place] = _with_witness(cause.first, cause.evidence, shown, seeded)
    return tuple(kept)


def _with_witness(
    found: Diagnostic, evidence: Evidence, shown: Diagnostic, seeded: Diagnostic | None
) -> Diagnostic:
    values = dict(shown.got)
    schedule = values["schedule"]
    changes = values.get("difference", f"the run fails: {shown.message.partition(': ')[2]}")
    if seeded is not None:
        schedule += f" (or seed={dict(seeded.got)['schedule'].removeprefix('seed ')})"
    return replace(
        found,
        got=(*found.got, ("shows with", schedule), ("changes", changes)),
        evidence=replace(evidence, schedule=schedule, changes=changes),
    )


def _next(chosen: Sequence[tuple[int, int]]) -> tuple[int, ...] | None:
    """The choices that come behind these, as numbers are counted; None: these were the last."""
    kept = list(chosen)
    while kept and kept[-1][0] + 1 == kept[-1][1]:
        kept.pop()
    if not kept:
        return None
    return (*(number for number, _ in kept[:-1]), kept[-1][0] + 1)


def _put_back(arrays: Sequence[Array], contents: Sequence[Array]) -> None:
    for array, content in zip(arrays, contents, strict=True):
        if array.flags.writeable:
            array[...] = content


def _difference(names: Sequence[str], arrays: Sequence[Array], expected: Sequence[Array]) -> str:
    """Where the first array differs; empty when none does."""
    for name, got, want in zip(names, arrays, expected, strict=True):
        unlike = raw_bytes(got) != raw_bytes(want)
        if unlike.any():
            where = int(np.flatnonzero(unlike)[0]) // got.itemsize
            at = tuple(int(i) for i in np.unravel_index(where, got.shape))
            elements = int(unlike.reshape(-1, got.itemsize).any(axis=1).sum())
            return (
                f"{name}: {elements} of {got.size} elements, the first at {at}: "
                f"{got[at]} instead of {want[at]}"
            )
    return ""


_ADVICE = "run it with the hazard check on: it names the pair of instructions without order"


def _differs(schedule: Schedule, what: str) -> Diagnostic:
    return Diagnostic(
        "schedule-dependent",
        f"the result depends on the schedule: with {schedule} it differs from a run in order",
        got=(("difference", what), ("schedule", str(schedule))),
        fix=_ADVICE,
    )


def _failed(schedule: Schedule, error: PtoError) -> Diagnostic:
    first = error.diagnostics[0]
    return Diagnostic(
        "schedule-dependent",
        f"the program fails with {schedule} and runs in order: {first.message}",
        first.location,
        got=(*first.got, ("schedule", str(schedule))),
        fix=_ADVICE,
        target=first.target,
        notes=first.notes,
    )
