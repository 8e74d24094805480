"""What the ranks of a world know of each other: clocks, windows and signals that all of them share.

Every rank looks for races by itself. What makes one log of them all is kept here: the clocks of
their cores, whose numbers tell the ranks apart, who touched the windows last, and what a signal
proves. Whatever a rank has done is complete when its next launch begins, and for everybody when all
ranks have ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ptokit.base.layout import Array
from ptokit.machine.clocks import CORES, PIPES, Clocks
from ptokit.machine.flags import Clock
from ptokit.machine.regions import RegionIndex

if TYPE_CHECKING:
    from ptokit.machine.access import Access
    from ptokit.machine.core import Core
    from ptokit.machine.events import Event
    from ptokit.machine.findings import Findings
    from ptokit.machine.words import Written


class History:
    """The accesses and signals by which the ranks of one world meet."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self.windows = RegionIndex("GM")
        self.words: dict[int, Written] = {}  # by address
        self.cores: dict[int, Core] = {}  # by number, for the names in messages
        self._bounds: list[tuple[int, int]] = []  # of the windows, in ascending order

    def add_window(self, arrays: Iterable[Array]) -> None:
        """Memory that several ranks reach."""
        self._bounds += [np.lib.array_utils.byte_bounds(array) for array in arrays]
        self._bounds.sort()

    def holds(self, access: Access) -> bool:
        """Whether an access goes to a window; other arrays are the affair of one rank."""
        address = access.memory.base + access.offset
        at = bisect_right(self._bounds, (address, 1 << 64)) - 1
        return at >= 0 and address < self._bounds[at][1]

    def seen(self, event: Event, known: Clock, findings: Findings) -> None:
        """An access that was held against all earlier ones of this process."""

    @staticmethod
    def first_core(rank: int) -> int:
        """The number of the core that runs what a rank does outside launches; others follow."""
        return rank * CORES

    def done_by(self, rank: int) -> Clock:
        """All that a rank has done so far, and all it has learnt of others, as complete."""
        first, last = rank * CORES * PIPES, (rank + 1) * CORES * PIPES
        known = self.clocks.known
        agents = [a for a in (*known, *self.clocks.count) if first <= a < last]
        cores = (c for core, c in known.cores.items() if first <= core * PIPES < last)
        return self._complete(agents, cores)

    def launch_ended(self, rank: int) -> None:
        """What a rank does outside launches comes after a launch that has ended."""
        self.clocks.learn(self.first_core(rank), self.done_by(rank))

    def settle(self) -> None:
        """Nobody runs any more: whatever comes next comes behind it all."""
        known = self.clocks.known
        known.begin_again(self._complete([*known, *self.clocks.count], known.cores.values()))

    def _complete(self, agents: Iterable[int], cores: Iterable[Clock]) -> Clock:
        found, clocks = self.clocks.known.all.copy(), self.clocks
        for each in cores:
            found.join(each)
        for agent in set(agents):
            found.join(clocks.known[agent])
        for agent in agents:
            found[agent] = clocks.count[agent]
        return found.shared()
