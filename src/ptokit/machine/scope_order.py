"""The order of accesses inside a scope of the vector unit.

The unit keeps the dependences between registers and runs ahead with everything else: it does not
compare addresses. So of two accesses to common bytes, one of them a store, one must come before
the other by more than its place in the program:

1. y uses a value that x has made;
2. a `mem_bar` stands between them whose first class is that of x and whose second that of y;
3. both are accesses of the scalar unit;

and what follows from these. Accesses are numbered; a set of them is an integer with a bit for
each. Every value carries the set of accesses before it, every class of accesses the set that
barriers have put before its next one: an access is checked against those that lie in common bytes
and are in neither.

Sets reach back a window of accesses. What is further back counts as done: no unit runs ahead so
far, and all of the unified buffer has been gone over several times since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ptokit.base.location import Location, Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.machine.regions import Ranges

Place = Site | Location
WINDOW = 4096  # accesses
_STRIPE = 256  # bytes: accesses are looked up by the stripes in which they lie

VLD, VST, LD, ST = "VLD", "VST", "LD", "ST"  # loads and stores of the vector and the scalar unit
_VECTOR, _SCALAR = (VLD, VST), (LD, ST)
_STORES = frozenset({VST, ST})
BARRIERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "VV_ALL": (_VECTOR, _VECTOR),
    "VST_VLD": ((VST,), (VLD,)),
    "VLD_VST": ((VLD,), (VST,)),
    "VST_VST": ((VST,), (VST,)),
    "VS_ALL": (_VECTOR, _SCALAR),
    "VST_LD": ((VST,), (LD,)),
    "VLD_ST": ((VLD,), (ST,)),
    "VST_ST": ((VST,), (ST,)),
    "SV_ALL": (_SCALAR, _VECTOR),
    "ST_VLD": ((ST,), (VLD,)),
    "LD_VST": ((LD,), (VST,)),
    "ST_VST": ((ST,), (VST,)),
}


class Conflict(NamedTuple):
    """Two accesses to common bytes that nothing orders, in the order of the program."""

    first: str  # the class of each
    second: str
    before: Place
    place: Place
    start: int  # the bytes in common
    stop: int


Report = Callable[[Conflict], None]


class _Known:
    """Accesses of one class, at one line, to the same bytes."""

    __slots__ = ("kind", "numbers", "place", "start", "stop")

    def __init__(self, kind: str, place: Place, start: int, stop: int) -> None:
        self.kind, self.place, self.start, self.stop = kind, place, start, stop
        self.numbers = 0


class Order:
    """The accesses of one scope to one memory, as far as they can still be in conflict."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._next = 0  # the number of the next access
        self.turn = 0  # how often numbers have been taken back by a window
        # By stripe: what is looked at by loads, and by stores; keyed by line and first byte.
        self._stores: dict[int, dict[Any, _Known]] = {}
        self._loads: dict[int, dict[Any, _Known]] = {}
        self._before: dict[str, int] = dict.fromkeys((VLD, VST, LD, ST), 0)
        # Of each class its accesses, with all before them.
        self._done: dict[str, int] = dict.fromkeys((VLD, VST, LD, ST), 0)

    @property
    def last(self) -> int:
        """The access that was noted last, as a set."""
        return 1 << (self._next - 1)

    def since(self, value: Any) -> int:
        """The accesses before a value, in the numbers of now."""
        if value.turn != self.turn:
            value.after >>= WINDOW * (self.turn - value.turn)
            value.turn = self.turn
        return value.after

    def access(self, kind: str, ranges: Iterable[tuple[int, int]], after: int, place: Place) -> int:
        """Take part in the order; return what comes before whoever uses the result."""
        if self._next >= 2 * WINDOW:
            after = self._move_on(after)
        before = self._before[kind] | after
        if kind in _SCALAR:
            before |= self._done[LD] | self._done[ST]
        own = 1 << self._next
        self._next += 1
        writes = kind in _STORES
        mine = self._stores if writes else self._loads
        for start, stop in ranges:
            for stripe in range(start // _STRIPE, (stop - 1) // _STRIPE + 1):
                for other in self._stores.get(stripe, _NONE).values():
                    if other.start < stop and start < other.stop and other.numbers & ~before:
                        self._tell(other, kind, start, stop, place)
                if writes:
                    for other in self._loads.get(stripe, _NONE).values():
                        if other.start < stop and start < other.stop and other.numbers & ~before:
                            self._tell(other, kind, start, stop, place)
                known = mine.setdefault(stripe, {})
                key = kind, id(place), start, stop
                entry = known.get(key)
                if entry is None:
                    entry = known[key] = _Known(kind, place, start, stop)
                entry.numbers |= own
        own |= before
        self._done[kind] |= own
        return own

    def barrier(self, kind: str) -> None:
        """`mem_bar`: what came of the first classes is before what comes of the second."""
        first, second = BARRIERS[kind]
        for each in second:
            for other in first:
                self._before[each] |= self._done[other]

    def _tell(self, other: _Known, kind: str, start: int, stop: int, place: Place) -> None:
        low, high = max(start, other.start), min(stop, other.stop)
        self._report(Conflict(other.kind, kind, other.place, place, low, high))

    def _move_on(self, after: int) -> int:
        """Forget what lies further back than a window."""
        self._next -= WINDOW
        self.turn += 1
        for sets in (self._before, self._done):
            for kind in sets:
                sets[kind] >>= WINDOW
        for index in (self._stores, self._loads):
            for stripe, known in list(index.items()):
                for key, entry in list(known.items()):
                    entry.numbers >>= WINDOW
                    if not entry.numbers:
                        del known[key]
                if not known:
                    del index[stripe]
        return after >> WINDOW


_NONE: dict[Any, _Known] = {}


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges [start, stop) in ascending order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return tuple(found)
