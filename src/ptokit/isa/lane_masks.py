"""The fixed patterns of TGATHER and TSCATTER: which columns or rows of every two or four are meant.

The digits of a pattern are read from the right: P0010 means the second of every four.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import MaskPattern

_STEPS = {
    MaskPattern.P0101: (2, 0),
    MaskPattern.P1010: (2, 1),
    MaskPattern.P0001: (4, 0),
    MaskPattern.P0010: (4, 1),
    MaskPattern.P0100: (4, 2),
    MaskPattern.P1000: (4, 3),
    MaskPattern.P1111: (1, 0),
}


def step_of(o: Any) -> int:
    """One of how many positions the pattern selects."""
    return _STEPS[o.attrs["maskPattern"]][0]


def start_of(o: Any) -> int:
    """The first position the pattern selects."""
    return _STEPS[o.attrs["maskPattern"]][1]


def selected(pattern: MaskPattern) -> slice:
    """The positions a pattern selects."""
    times, first = _STEPS[pattern]
    return slice(first, None, times)


def count_selected(o: Any, extent: int) -> int:
    """How many of the first `extent` positions the pattern selects."""
    return max(0, -((start_of(o) - extent) // step_of(o)))
