"""Looking after a process that runs compiled code: it may crash, or go round for ever."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, fail, usage_error
from ptokit.base.location import Location
from ptokit.native.library import Trace

TIME_LIMIT = 60.0  # seconds that code of a kernel may run without an instruction


@dataclass(eq=False)
class Keeper:
    """Tells why a process has ended, and which one is to be ended; both at the last instruction."""

    name: str  # of what runs there
    trace: Trace
    libraries: Mapping[str, Path]  # by kind of core
    start: Location  # where the first instruction is looked for
    time_limit: float = TIME_LIMIT
    _seen: int | None = None
    _since: float = 0.0

    def __post_init__(self) -> None:
        if not self.time_limit > 0:
            raise usage_error(
                "time-limit",
                "the time limit is a positive number of seconds",
                got=[("time_limit", self.time_limit)],
            )

    def ended(self, status: int) -> PtoError:
        """Compiled code has ended its process."""
        reason = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        return fail(
            "cpp-crash",
            f"{self.name} has crashed: {reason}, {self._behind}",
            fix="code of the program itself has failed: an index, a pointer, an endless recursion",
            site=self._last or self.start,
        )

    def stuck(self) -> PtoError | None:
        """Code of a kernel that has run for too long without an instruction."""
        moves, now = self.trace.moves, monotonic()
        if moves is None or moves != self._seen:
            self._seen, self._since = moves, now
        elif now - self._since > self.time_limit:
            return fail(
                "cpp-endless",
                f"{self.name} runs without an instruction for more than {self.time_limit:g} "
                f"seconds, {self._behind}",
                fix="look whether the loop after this line ends, or give it more time: "
                f"--time-limit {2 * self.time_limit:g}, time_limit={2 * self.time_limit:g}",
                site=self._last or self.start,
            )
        return None

    @property
    def _last(self) -> Location | None:
        return self.trace.last(self.libraries)

    @property
    def _behind(self) -> str:
        return "after this call" if self._last else "before its first instruction"
