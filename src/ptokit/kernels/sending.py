"""A launch as data: its program as text, its arguments as arrays and numbers.

Other machines are given this and nothing else. The functions below are what they do with it; arrays
that come from elsewhere are read-only, so that every run has copies.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, ProgramError, PtoWarning
from ptokit.base.layout import raw_bytes
from ptokit.machine.scheduler import Schedule

if TYPE_CHECKING:
    from ptokit.kernels.launch import Launch
    from ptokit.machine.explore import Explorer
    from ptokit.timing.tuning import Trial


@dataclass(frozen=True, eq=False)
class Sent:
    """A launch of a text, with its arguments and options."""

    launch: Launch
    args: tuple[Any, ...]
    options: Mapping[str, Any]

    def values(self) -> tuple[Any, ...]:
        """The arguments for one run."""
        return tuple(each.copy() if hasattr(each, "copy") else each for each in self.args)


def explored(chosen: Sequence[Schedule], sent: Sent) -> tuple[int, Diagnostic | None]:
    """How many of some schedules were tried, and what is different with the last of them."""
    return _explorer(sent).tried(chosen)


@lru_cache(maxsize=1)  # a worker has many tasks of one launch
def _explorer(sent: Sent) -> Explorer:
    return sent.launch.explorer(sent.values(), sent.options)


@dataclass(frozen=True)
class Swept:
    """What runs of one launch under some seeds have left."""

    runs: int = 0
    left: dict[str, str] = field(default_factory=dict[str, str])  # by what they leave: the first
    failed: int = 0
    first: tuple[str, Diagnostic] | None = None  # of those that failed

    def joined(self, later: Swept) -> Swept:
        """The same, and more seeds."""
        left = {**later.left, **self.left}
        first = self.first or later.first
        return Swept(self.runs + later.runs, left, self.failed + later.failed, first)


def swept(data: tuple[int, Sequence[int | None]], cells: Sequence[Sent]) -> Swept:
    """Run a launch under the schedules of some seeds; in order, with every checker, under None."""
    number, seeds = data
    found, sent = Swept(), cells[number]
    for seed in seeds:
        found = found.joined(_run(sent, seed))
    return found


def timed(
    data: tuple[Mapping[str, Any], Sequence[Sent]], check: bool, computes: bool = False
) -> Trial:
    """Try a setting of which the launches were sent."""
    from ptokit.timing.tuning import trial  # few launches are tried

    setting, launches = data
    return trial(
        setting,
        lambda: sum(
            each.launch.kernel.checked_us(
                each.launch.blocks, each.values(), check, data=computes, **each.options
            )
            for each in launches
        ),
    )


def _run(sent: Sent, seed: int | None) -> Swept:
    name, values = str(Schedule(seed)), sent.values()
    options: dict[str, Any] = {"check": seed is None, **sent.options, "seed": seed}
    try:
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            sent.launch(*values, **options)
    except ProgramError as error:
        wrong = next((d for d in error.diagnostics if d.severity == "error"), error.diagnostics[0])
        return Swept(1, failed=1, first=(name, wrong))
    left = sha256(b"".join(raw_bytes(v).tobytes() for v in values if isinstance(v, np.ndarray)))
    return Swept(1, {left.hexdigest()[:16]: name})
