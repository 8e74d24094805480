"""A launch as data: its program as text, its arguments as arrays and numbers.

Other machines are given this and nothing else. The functions below are what they do with it; arrays
that come from elsewhere are read-only, so that every run has copies.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import Diagnostic, PtoWarning
from ptokit.machine.explore import Explorer
from ptokit.machine.scheduler import Schedule

if TYPE_CHECKING:
    from ptokit.kernels.launch import Launch


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


def timed(sent: Sent, check: bool, data: bool) -> float:
    """The microseconds of a launch that is right; what is wrong with it is raised."""
    with warnings.catch_warnings(action="ignore", category=PtoWarning):
        launch = sent.launch
        return launch.kernel.checked_us(
            launch.blocks, sent.values(), check, data=data, **sent.options
        )
