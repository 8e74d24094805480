"""Exploration: run a program under many schedules and compare what it leaves behind.

A race shows as soon as two schedules give different bytes. The late schedules hold one pipe back
until nothing else can move, which is the worst case for whoever forgot to wait for it; random ones
mix cores and pipes. Every finding names the schedule that reproduces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ptokit.base.diagnostics import Diagnostic, PtoError
from ptokit.base.layout import Array, raw_bytes
from ptokit.isa.spec import Pipe
from ptokit.machine.scheduler import Schedule

# PIPE_ALL stands for the engines beside the cores.
_HELD_BACK = (Pipe.MTE2, Pipe.MTE3, Pipe.V, Pipe.MTE1, Pipe.M, Pipe.FIX, Pipe.ALL)


def schedules(count: int, seed: int = 0) -> Iterator[Schedule]:
    """The worst cases first, then random ones, `count` in all."""
    worst = [Schedule(late=(pipe,)) for pipe in _HELD_BACK]
    worst.append(Schedule(late=_HELD_BACK))
    worst += [Schedule(late=tuple(p for p in _HELD_BACK if p is not pipe)) for pipe in _HELD_BACK]
    yield from worst[:count]
    for number in range(max(0, count - len(worst))):
        yield Schedule(seed + number)


def explore(
    run: Callable[[Schedule], Any], arrays: Sequence[Array], count: int = 40, seed: int = 0
) -> list[Diagnostic]:
    """Run once in order, then under `count` other schedules; report what differs.

    `arrays` is the global memory of the program. It is set back before every run and holds the
    result of the first one in the end. A first run that fails raises.
    """
    before = [a.copy() for a in arrays]
    run(Schedule())
    expected = [a.copy() for a in arrays]
    found: list[Diagnostic] = []
    try:
        for schedule in schedules(count, seed):
            _put_back(arrays, before)
            try:
                run(schedule)
            except PtoError as error:
                found.append(_failed(schedule, error))
                break
            different = _difference(arrays, expected)
            if different:
                found.append(_differs(schedule, different))
                break
    finally:
        _put_back(arrays, expected)
    return found


def _put_back(arrays: Sequence[Array], contents: Sequence[Array]) -> None:
    for array, content in zip(arrays, contents, strict=True):
        if array.flags.writeable:
            array[...] = content


def _difference(arrays: Sequence[Array], expected: Sequence[Array]) -> str:
    """Where the first array differs; empty when none does."""
    for number, (got, want) in enumerate(zip(arrays, expected, strict=True)):
        unlike = raw_bytes(got) != raw_bytes(want)
        if unlike.any():
            where = int(np.flatnonzero(unlike)[0]) // got.itemsize
            at = tuple(int(i) for i in np.unravel_index(where, got.shape))
            elements = int(unlike.reshape(-1, got.itemsize).any(axis=1).sum())
            return (
                f"array {number}: {elements} of {got.size} elements, the first at {at}: "
                f"{got[at]} instead of {want[at]}"
            )
    return ""


def _differs(schedule: Schedule, what: str) -> Diagnostic:
    return Diagnostic(
        "schedule-dependent",
        f"the result depends on the schedule: with {schedule} it differs from a run in order",
        got=(("difference", what), ("schedule", str(schedule))),
        fix="run it with the hazard check on: it names the pair of instructions without order",
    )


def _failed(schedule: Schedule, error: PtoError) -> Diagnostic:
    first = error.diagnostics[0]
    return Diagnostic(
        "schedule-dependent",
        f"the program fails with {schedule} and runs in order: {first.message}",
        first.location,
        got=(*first.got, ("schedule", str(schedule))),
        fix=first.fix,
        target=first.target,
        notes=first.notes,
    )
