"""The order of work inside one pipe.

Most pipes complete their instructions one after the other. In those that a target calls `unordered`
an instruction may begin before the one in front of it is complete, and two that touch the same
bytes need a barrier between them - unless both walk through the bytes element by element in the
same way: then the later one stays behind. The compiler, which writes barriers, and the checker,
which misses them, both ask here.
"""

from __future__ import annotations

from collections.abc import Container, Hashable
from math import prod
from typing import NamedTuple

from ptokit.isa.spec import Insn


class Walk(NamedTuple):
    """A way through bytes, element by element."""

    where: Hashable
    shape: tuple[int, ...]
    itemsize: int


def walk_of(
    insn: Insn,
    where: Hashable,
    shape: tuple[int, ...],
    itemsize: int,
    results: Container[tuple[int, ...]],
) -> Walk | None:
    """How an instruction goes through an operand; None if not in step with one of its results."""
    return Walk(where, shape, itemsize) if insn.streams and shape in results else None


def stays_behind(later: Walk | None, earlier: Walk | None) -> bool:
    """Whether an access needs no barrier behind an earlier one of the same unordered pipe."""
    return later is not None and later == earlier


def keeps_pace(later: Walk | None, earlier: Walk | None) -> bool:
    """Whether two walks pass the same bytes in one direction, in rows of other lengths.

    Kernels that were shipped leave out the barrier between such neighbours; no source promises it.
    """
    if later is None or earlier is None or later.where != earlier.where:
        return False
    return later.itemsize == earlier.itemsize and prod(later.shape) == prod(earlier.shape)
