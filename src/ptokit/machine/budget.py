"""Budgets: what a run may take before it is stopped, with the place where it was.

Steps are the instructions that are issued, the rounds of loops, the calls of functions and the
blocks that begin; bytes are those of the memories that the run makes for its cores and tiles. A run
without a budget counts nothing.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import ProgramError, PtoError, fail, usage_error
from ptokit.base.entry import is_library
from ptokit.base.location import Location, Site, is_ours

if TYPE_CHECKING:
    from ptokit.machine.core import Core

_AGAIN = 0.05  # seconds until a run is asked again whose time is over
_LONGEST = 1e8  # seconds that a timer takes


class OverBudget(ProgramError):  # noqa: N818 - named after what happened
    """A run has used up what it was given."""


class Budget:
    """What one run may take, and what it has taken."""

    def __init__(
        self,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self.limits = {"steps": max_steps, "seconds": max_seconds, "bytes": max_bytes}
        for what, most in self.limits.items():
            if most is not None and not (isinstance(most, int | float) and most > 0):
                raise usage_error(
                    "budget",
                    f"max_{what} is a positive number, or left out",
                    got=[(f"max_{what}", most)],
                    fix=f"max_{what}=1_000_000",
                )
        self._steps, self._bytes = 0, 0
        self._most_steps = float("inf") if max_steps is None else max_steps
        self._most_bytes = float("inf") if max_bytes is None else max_bytes
        self._started = monotonic()
        self._end = float("inf") if max_seconds is None else self._started + max_seconds
        self._core: Core | None = None
        self._site: Any = None  # where it was last

    @staticmethod
    def of(
        max_steps: int | None, max_seconds: float | None, max_bytes: int | None
    ) -> Budget | None:
        """A budget whose time begins now; None where nothing is limited."""
        given = max_steps, max_seconds, max_bytes
        return None if given == (None, None, None) else Budget(*given)

    def step(self, core: Core, site: Site | Location | None = None) -> None:
        """A core goes on, at a place of its program where that is known."""
        self._core, self._site = core, site or self._site
        self._steps += 1
        if self._steps > self._most_steps:
            raise self._over("steps")
        if monotonic() > self._end:
            raise self._over("seconds")

    def take(self, nbytes: int) -> None:
        """The run makes a memory of so many bytes."""
        self._bytes += nbytes
        if self._bytes > self._most_bytes:
            raise self._over("bytes")

    def _over(self, what: str, site: Any = None) -> PtoError:
        most, core = self.limits[what] or 0, self._core
        fix = f"look whether the loop around this line ends, or give it more: max_{what}={2 * most}"
        if what == "bytes":
            fix = f"use smaller tiles, or give it more: max_bytes={2 * self._bytes}"
        return fail(
            "budget",
            f"the run was stopped: it takes more than max_{what} = {most}",
            got=[
                ("steps", self._steps),
                ("seconds", f"{monotonic() - self._started:.1f}"),
                ("bytes", self._bytes),
                ("core", "none has begun" if core is None else core.name),
            ],
            fix=fix,
            site=site or self._site,
            kind=OverBudget,
        )

    @contextmanager
    def watching(self) -> Generator[None, None, None]:
        """Stop code of the user that runs on without a step, as an empty loop does, when its time
        is over. It is stopped in its own lines only: what is ours comes to its next step."""
        in_main = threading.current_thread() is threading.main_thread()
        if self._end == float("inf") or not in_main or not hasattr(signal, "setitimer"):
            yield
            return

        def over(_: int, frame: FrameType | None) -> None:
            while frame is not None and frame.f_code.co_filename == "<string>":
                frame = frame.f_back  # made by @dataclass and its kin, for whoever calls it
            if frame is None or is_ours(frame) or is_library(frame):
                return
            collecting = [getattr(each, "__code__", None) for each in gc.callbacks]
            if frame.f_code not in collecting:  # what is raised there is lost
                raise self._over("seconds", Location(frame.f_code.co_filename, frame.f_lineno))

        handler = signal.signal(signal.SIGALRM, over)
        left = min(max(self._end - monotonic(), _AGAIN), _LONGEST)
        timer, _ = signal.setitimer(signal.ITIMER_REAL, left, _AGAIN)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, timer)
            signal.signal(signal.SIGALRM, handler)
