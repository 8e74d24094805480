"""The order of work inside one pipe.

Most pipes complete their instructions one after the other. In those that a target calls `unordered`
an instruction may begin before the one in front of it is complete, and two that touch the same
bytes need a barrier between them. Where both walk through the bytes element by element the later
one mostly stays behind: a missing barrier is then doubtful, and not plainly wrong.
"""

from __future__ import annotations

from collections.abc import Container, Hashable

from ptokit.base.namedtuple import NamedTuple
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


def is_positionwise(later: Walk | None, earlier: Walk | None) -> bool:
    """Whether two accesses of an unordered pipe go through the same bytes position by position.

    Shipped kernels leave the barrier out between such neighbours, also where the two see the bytes
    in different shapes; every compiler puts one.
    """
    return later is not None and earlier is not None and later.where == earlier.where
