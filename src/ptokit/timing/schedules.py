"""Schedules that a model of time predicts: what a device would show first."""

from __future__ import annotations

from collections import defaultdict

from ptokit.machine.scheduler import Pace, Schedule
from ptokit.timing.model import Outcome
from ptokit.timing.streams import VECTOR_LOADS, Pipe


def predicted(outcome: Outcome) -> tuple[Schedule, ...]:
    """The work of all pipes in the order in which it begins, and in which it ends.

    A piece of work happens at once in a schedule: what it reads is read early in the one, what it
    writes is written late in the other.
    """
    spans: dict[tuple[int, str, int], list[tuple[float, float]]] = defaultdict(list)
    for core in outcome.cores:
        for _, pipe, start, end, _ in core.nodes:
            on = int(Pipe.MTE2) if pipe == VECTOR_LOADS else pipe
            for block in core.blocks:
                spans[block, core.stream.place, on].append((start, end))
    times = {key: sorted(each) for key, each in spans.items()}
    return tuple(
        Schedule(
            pace=Pace(name, {key: [span[which] for span in each] for key, each in times.items()})
        )
        for which, name in enumerate(("begins", "ends"))
    )
