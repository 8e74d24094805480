"""The vocabulary of a journal: entries are numbers, and some of them stand for operations."""

from __future__ import annotations

from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.machine.flags import Clock

# What the last bits of an entry say; the others are an agent, or the core whose pipes MEET, or
# whose TURN it is to execute instructions. Tokens are numbered as they are given; the entry behind
# TAKE and LEARN says how many tokens ago theirs was. A token that is taken at once, as most flags
# are, has no number: an agent HANDs on what it knows to the one that stands behind the entry.
# Negative entries stand for listed operations.
GIVE, TAKE, LEARN, BARRIER, MEET, TURN, HAND = range(7)
SHIFT, KINDS = 3, 7  # bits, and all that they can say


@dataclass(frozen=True, slots=True)
class Complete:
    """An agent has completed all of its work but so much of the last."""

    agent: int
    less: int


@dataclass(frozen=True, slots=True)
class Prove:
    """A token is given that proves all work of an agent but so much of the last."""

    agent: int
    less: int


@dataclass(frozen=True, slots=True)
class Done:
    """A token is given that proves the work of an agent, and nothing that it knows."""

    agent: int


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A token is given that proves what somebody has found out by other means."""

    clock: Clock


@dataclass(frozen=True, slots=True)
class Start:
    """A token is given that proves nothing yet."""


@dataclass(frozen=True, slots=True)
class Gather:
    """A token proves what another one does, too; both numbers follow, as with TAKE."""


@dataclass(frozen=True, slots=True)
class Share:
    """A token is given to everybody who met: it proves what was gathered in another one."""


@dataclass(frozen=True, slots=True)
class Recycle:
    """Memories are handed to another block."""

    memories: tuple[int, ...]


class Notes:
    """What was noted and not read yet."""

    def __init__(self) -> None:
        self.entries: list[int] = []
        # Tokens that are taken more than once: how often at most from now on.
        self.kept: dict[int, int] = {}
        self.addresses: list[int] = []  # of instructions that move through global memory
        self.operations: list[Any] = []  # ~code of them

    def add(self, operation: Any) -> int:
        """List an operation; returns what stands for it."""
        self.operations.append(operation)
        return -len(self.operations)

    def clear(self) -> None:
        """Begin anew."""
        for each in (self.entries, self.addresses, self.operations):
            each.clear()
