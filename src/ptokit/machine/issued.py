"""In which order a core has issued what its pipes have executed in another.

A pipe that waits falls behind: what it was given before is executed after work of other pipes that
was issued later. The program says who comes first, not the schedule. Work that is executed as it is
issued stands where it was executed; of work that had to wait it is kept where it was issued.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

Issued = tuple[int, int]  # behind how many executed instructions, and which of those that waited


class IssueOrder:
    """Where instructions were issued, by the moments at which they were executed."""

    def __init__(self) -> None:
        self._moments = array("q")  # of those that had to wait, in ascending order
        self._behind = array("q")
        self._numbers = array("q")

    def __len__(self) -> int:
        return len(self._moments)

    def note(self, moment: int, issued: Issued) -> None:
        """What is executed at this moment has waited."""
        self._moments.append(moment)
        self._behind.append(issued[0])
        self._numbers.append(issued[1])

    def of(self, moment: int) -> Issued:
        """The place among all that was issued of what was executed at a moment."""
        at = bisect_left(self._moments, moment)
        if at == len(self) or self._moments[at] != moment:
            return moment, 0
        return self._behind[at], self._numbers[at]

    def clear(self) -> None:
        """All that was issued so far is executed: whatever comes was issued behind it."""
        for each in (self._moments, self._behind, self._numbers):
            del each[:]
