"""The blocks of one launch, spread over workers: processes of this machine, or of a cluster.

Blocks that never wait for each other have no order, so that each group of them may run anywhere on
the arrays as they were before the launch. A worker has one copy of these; behind every group it
sends back the bytes that were written, as the accesses of the instructions tell, and puts back what
was there. Whether blocks of different groups touch the same bytes is seen when all have come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, NotSupported, PtoError, fail
from ptokit.base.layout import Array, raw_bytes
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.verdicts import meeting_of
from ptokit.ir.core import Module
from ptokit.machine.call_facts import facts_of
from ptokit.machine.gm import GmBuffer, as_array
from ptokit.machine.machine import Machine
from ptokit.machine.regions import Rows

if TYPE_CHECKING:
    from ptokit.kernels.sending import Sent

GROUPS = 256  # of blocks, at most


class Group(NamedTuple):
    """Blocks that are done together."""

    first: int
    last: int  # behind them

    def __str__(self) -> str:
        one = self.last - self.first == 1
        return f"block {self.first}" if one else f"blocks {self.first} to {self.last - 1}"


def groups_of(blocks: int) -> Iterator[Group]:
    """All blocks of a launch, in groups: the same ones wherever they run."""
    step = -(-blocks // GROUPS)
    for first in range(0, blocks, step):
        yield Group(first, min(first + step, blocks))


def refuse_meetings(name: str, module: Module) -> None:
    """Blocks that wait for each other have to run at the same time, in one place."""
    op = meeting_of(module)
    if op is not None:
        raise fail(
            "spread",
            f"the blocks of {name} wait for each other ({op.name}), so that they run in one place",
            fix="leave jobs out, or divide the kernel into launches where its blocks meet",
            site=op.location,
            kind=NotSupported,
        )


# ---- what a group touches ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Part:
    """Some blocks of a launch, and who notes which bytes they touch."""

    blocks: range
    reads: set[Any] = field(default_factory=set[Any])
    writes: set[Any] = field(default_factory=set[Any])

    def follow(self, machine: Machine) -> None:
        """Hear of every instruction that touches global memory."""
        publish = machine.publish

        def noted(call: Any, site: Any, bound: Sequence[Any]) -> None:
            for access in bound:
                if isinstance(access.memory, GmBuffer):
                    if access.writes:
                        self.writes.add(access.place)
                    if access.reads or facts_of(call).atomic:
                        self.reads.add(access.place)
            publish(call, site, bound)

        machine.publish = noted


Span = tuple[int, int, int]  # of an array, from one byte up to another


@dataclass(frozen=True)
class Did:
    """What came of a group of blocks."""

    reads: Sequence[Span]
    writes: Sequence[Span]
    data: Sequence[bytes]  # that lie where it writes
    warnings: tuple[Diagnostic, ...]


def did(blocks: Group, sent: Sent) -> Did:
    """Run some blocks of a launch."""
    values, arrays = _copies(sent)
    part = Part(range(*blocks))
    memory = [raw_bytes(each) for each in arrays]
    try:
        run = sent.launch.part(part, values, sent.options)
    except PtoError:
        _copies.cache_clear()  # nobody knows how far it came
        raise
    reads, writes = (_spans(each, arrays) for each in (part.reads, part.writes))
    data = [memory[n][start:stop].tobytes() for n, start, stop in writes]
    before = [raw_bytes(as_array(each)) for each in sent.args if getattr(each, "shape", ())]
    for number, start, stop in writes:
        memory[number][start:stop] = before[number][start:stop]
    return Did(reads, writes, data, run.warnings)


@lru_cache(maxsize=1)  # a worker has many groups of one launch
def _copies(sent: Sent) -> tuple[tuple[Any, ...], list[Array]]:
    values = sent.values()
    return values, [as_array(each) for each in values if getattr(each, "shape", ())]


def _spans(places: set[Any], arrays: Sequence[Array]) -> list[Span]:
    """The bytes of some places as stretches of arrays, in order and joined where they meet."""
    found: list[Span] = []
    edges = [
        each for place in places for each in (place.ranges if isinstance(place, Rows) else place)
    ]
    for number, array in enumerate(arrays):
        low, high = np.lib.array_utils.byte_bounds(array)
        inside = sorted((a - low, b - low) for a, b in edges if low <= a < high)
        merged: list[list[int]] = []
        for start, stop in inside:
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(stop, merged[-1][1])
            else:
                merged.append([start, stop])
        found += [(number, start, stop) for start, stop in merged]
    return found


# ---- all groups together -------------------------------------------------------------------------


class Merged:
    """What all groups have written, in the arrays of the launch, and who touched what."""

    def __init__(self, name: str, arrays: Sequence[tuple[str, Array]]) -> None:
        self._name, self._names = name, [each.lstrip("%") for each, _ in arrays]
        self._memory = [raw_bytes(array) for _, array in arrays]
        self._groups: list[Group] = []
        self._reads: list[tuple[int, ...]] = []
        self._writes: list[tuple[int, ...]] = []

    def add(self, group: Group, came: Did) -> None:
        """Take over what a group has written: these bytes, and no others."""
        number = len(self._groups)
        self._groups.append(group)
        for (array, start, stop), data in zip(came.writes, came.data, strict=True):
            self._memory[array][start:stop] = np.frombuffer(data, np.uint8)
        self._reads += [(*each, number) for each in came.reads]
        self._writes += [(*each, number) for each in came.writes]

    def check(self) -> None:
        """Refuse groups that touch the same bytes, one of them to write: their order decides."""
        self._writes.sort()
        for one, two in pairwise(self._writes):
            if one[0] == two[0] and two[1] < one[2]:
                raise self._met(one, two, "write the same bytes")
        table = np.array(self._writes, np.int64).reshape(-1, 4)
        for array in range(len(self._memory)):
            mine = table[table[:, 0] == array]
            for read in (each for each in self._reads if each[0] == array):
                low = int(np.searchsorted(mine[:, 2], read[1], "right"))
                high = int(np.searchsorted(mine[:, 1], read[2], "left"))
                other = next((w for w in mine[low:high].tolist() if w[3] != read[3]), None)
                if other is not None:
                    raise self._met(other, read, "write and read the same bytes")

    def _met(self, one: Sequence[int], two: Sequence[int], does: str) -> PtoError:
        start, stop = max(one[1], two[1]), min(one[2], two[2])
        array, (first, second) = self._names[one[0]], (self._groups[one[3]], self._groups[two[3]])
        return fail(
            "spread",
            f"{first} and {second} of {self._name} {does} in {array}, and nothing orders blocks: "
            "they run in one place",
            got=[("bytes", f"{start}..{stop} of {array}")],
            fix="leave jobs out: in one place sums are added in order, and a race is told with "
            "both lines",
            kind=NotSupported,
        )
