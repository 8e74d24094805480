"""Regions: sets of bytes that instructions touch, each of which knows the ones it overlaps.

A kernel touches few different regions, over and over. So overlap is worked out once, when a region
is first seen, and a later access looks only at its peers; nothing is kept per byte, and yet two
regions are peers exactly when they share one. The index that finds the candidates follows rows: a
tile of a wide matrix is a rectangle in a plane whose rows are one pitch apart, and only its
neighbours in that plane are looked at, however many bytes lie between its first and its last row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.walks import Walk

Ranges = tuple[tuple[int, int], ...]
_SEVERAL = "several"  # ways to change memory in place
_MANY_ROWS = 256  # to be compared one by one
_FLAT = 1 << 62  # the pitch of the plane that is one row: all addresses
_FEW = 8  # regions that are looked at one by one; more are found by their places
_MOST_ROWS = 64  # looked up one by one in another plane; more are taken as one stretch


class Rows(NamedTuple):
    """Stretches of `width` bytes, `number` of them, each `pitch` behind the one before."""

    start: int
    width: int
    pitch: int
    number: int

    @property
    def ranges(self) -> Ranges:
        starts = range(self.start, self.start + self.pitch * self.number, self.pitch)
        return tuple((start, start + self.width) for start in starts)

    def behind(self, base: int) -> Rows:
        """The same stretches behind another address."""
        return Rows(base + self.start, self.width, self.pitch, self.number)


def behind(place: Rows | Ranges, base: int) -> Rows | Ranges:
    """The same bytes from another address on."""
    if isinstance(place, Rows):
        return place.behind(base)
    return tuple((base + start, base + stop) for start, stop in place)


def hull(place: Rows | Ranges) -> tuple[int, int]:
    """The first byte, and the one behind the last."""
    if isinstance(place, Rows):
        start, width, pitch, number = place
        return start, start + pitch * (number - 1) + width
    return place[0][0], place[-1][1]


def evenly(ranges: Ranges) -> Rows | None:
    """Ascending ranges as stretches of one length at one distance; None where they are not."""
    (start, stop), count = ranges[0], len(ranges)
    pitch = ranges[1][0] - start if count > 1 else stop - start
    rows = Rows(start, stop - start, pitch, count)
    return rows if rows.ranges == ranges else None


def within(inner: Rows | Ranges, outer: Rows | Ranges, shift: int) -> bool:
    """Whether every byte of one place, moved by so many, is one of another."""
    if not inner or not outer:
        return not inner
    if (
        isinstance(inner, Rows)
        and isinstance(outer, Rows)
        and (inner.number == 1 or inner.pitch % outer.pitch == 0)
    ):
        row, col = divmod(inner.start + shift - outer.start, outer.pitch)
        last = row + inner.pitch * (inner.number - 1) // outer.pitch
        return row >= 0 and last < outer.number and col + inner.width <= outer.width
    starts, stops = _edges(inner)
    own_starts, own_stops = _edges(outer)
    found = np.searchsorted(own_starts, starts + shift, "right") - 1
    return bool((found >= 0).all() and (stops + shift <= own_stops[found]).all())


def _edges(place: Rows | Ranges) -> tuple[Any, Any]:
    """The first byte of every stretch, and the one behind its last."""
    edges = np.array(place.ranges if isinstance(place, Rows) else place, np.int64)
    return edges[:, 0], edges[:, 1]


@dataclass(slots=True)
class Use:
    """One operand of an instruction as the hazard log sees it."""

    operand: str
    writes: bool
    region: Region
    walk: Walk | None
    atomic: str  # how it changes memory in place
    is_over: bool = False  # later work of its pipe need not wait for this use to end


class Region:
    """Bytes of one memory, and who touched them last."""

    __slots__ = (
        "_ranges", "additions", "combines", "is_shade", "memory", "peers", "reads", "rows",
        "settled", "start", "stop", "sweep", "write",
    )  # fmt: skip

    def __init__(self, memory: str, place: Rows | Ranges) -> None:
        self.memory = memory
        self.rows = rows = place if isinstance(place, Rows) else evenly(place)
        self._ranges = None if isinstance(place, Rows) else place
        self.start, self.stop = hull(place)
        if rows is not None:
            start, width, pitch, number = rows
            if pitch == width and number > 1:  # rows without a gap are one stretch
                self.rows, self._ranges = Rows(start, width * number, width * number, 1), None
        self.peers: list[Region] = [self]
        # Records: the last write, atomic writes since then by agent, and reads by agent.
        self.write: Any = None
        self.additions: dict[tuple[int, str], Any] = {}
        self.combines = ""  # how all of them do it; _SEVERAL where they differ
        self.reads: dict[int, Any] = {}
        self.is_shade = False  # what values might have led to, and did not
        self.sweep: Any = None  # whose hull it is: some of its bytes may not have been touched
        self.settled: Any = None  # an epoch in which all these additions are known to be complete

    @property
    def ranges(self) -> Ranges:
        """The bytes, as ascending ranges [start, stop)."""
        if self._ranges is None:
            assert self.rows is not None
            self._ranges = self.rows.ranges
        return self._ranges

    def overlaps(self, other: Region) -> bool:
        """Whether the two have a byte in common."""
        if self.stop <= other.start or other.stop <= self.start:
            return False
        mine, others = self.rows, other.rows
        if mine is not None and others is not None:
            if mine.number == 1 == others.number:
                return True
            if mine.number == 1 or others.number == 1 or mine.pitch == others.pitch:
                return _rows_meet(mine, others)
        return _ranges_meet(self.ranges, other.ranges)

    def common(self, other: Region) -> tuple[int, int]:
        """The first stretch of bytes the two share."""
        for a, b in self.ranges:
            for c, d in other.ranges:
                if a < d and c < b:
                    return max(a, c), min(b, d)
        return self.start, self.start

    def add(self, agent: int, atomic: str, event: Any) -> None:
        """Note an atomic write."""
        self.combines = atomic if not self.additions or self.combines == atomic else _SEVERAL
        self.additions[agent, atomic] = event
        self.settled = None

    def writes(self, atomic: str) -> list[Any]:
        """The last write, and atomic ones since then that do not commute with such an access."""
        found = [event for (_, how), event in self.additions.items() if how != atomic]
        return found if self.write is None else [self.write, *found]

    @property
    def is_touched(self) -> bool:
        """Whether anybody is known to have touched it."""
        return self.write is not None or bool(self.reads or self.additions)

    def forget(self) -> None:
        """Start over: the memory is given to somebody else."""
        self.write = self.sweep = None
        self.additions.clear()
        self.reads.clear()


class Box(NamedTuple):
    """Rows and columns of a plane: `rows` from `row` on, `cols` bytes of each from `col` on."""

    row: int
    rows: int
    col: int
    cols: int


class Plane:
    """Addresses as rows of one pitch; finds regions by the rectangles they are in it.

    Rectangles of about one size - up to powers of two - are kept in one grid of cells of that size,
    so that each lies in at most four of them. Few sizes occur in a program.
    """

    def __init__(self, pitch: int) -> None:
        self.pitch = pitch
        self.low, self.high = _FLAT, 0  # all regions lie between
        self._grids: dict[tuple[int, int], dict[tuple[int, int], list[Region]]] = {}

    def _boxes(self, region: Region) -> list[Box]:
        """The rectangles of a region, or some that hold it."""
        rows, pitch = region.rows, self.pitch
        if rows is None:
            return self._stretch(region.start, region.stop)
        start, width, own, number = rows
        if number == 1 or own == pitch:
            return self._stretch(start, start + width, number)
        return self._stretch(region.start, region.stop)

    def _stretch(self, start: int, stop: int, number: int = 1) -> list[Box]:
        """The rectangles of `number` equal stretches in rows that follow each other."""
        (row, col), width = divmod(start, self.pitch), stop - start
        over = col + width - self.pitch
        if over <= 0:
            return [Box(row, number, col, width)]
        if over <= self.pitch:
            return [Box(row, number, col, width - over), Box(row + 1, number, 0, over)]
        return [Box(row, (stop - 1) // self.pitch - row + number, 0, self.pitch)]

    def add(self, region: Region) -> list[Region]:
        """Put a region in; returns those that may share bytes with it, as `near` does."""
        if region.start < self.low:
            self.low = region.start
        if region.stop > self.high:
            self.high = region.stop
        found: list[Region] = []
        for box in self._boxes(region):
            size = box.rows.bit_length(), box.cols.bit_length()
            for other, grid in self._grids.items():
                if other != size:
                    found += _listed(grid, other, box)
            grid = self._grids.get(size)
            if grid is None:
                grid = self._grids[size] = {}
            for cell in _cells(box, size):
                listed = grid.get(cell)
                if listed is None:
                    grid[cell] = [region]
                else:
                    found += listed
                    listed.append(region)
        return found

    def near(self, region: Region) -> list[Region]:
        """Regions that may share bytes with this one, some of them more than once."""
        return [
            other
            for box in self._boxes(region)
            for size, grid in self._grids.items()
            for other in _listed(grid, size, box)
        ]


def _listed(
    grid: dict[tuple[int, int], list[Region]], size: tuple[int, int], box: Box
) -> list[Region]:
    """The regions in those cells of a grid that a rectangle touches."""
    many = ((box.rows >> size[0]) + 1) * ((box.cols >> size[1]) + 1)
    cells = grid if many > len(grid) else [cell for cell in _cells(box, size) if cell in grid]
    return [region for cell in cells for region in grid[cell]]


def _cells(box: Box, size: tuple[int, int]) -> list[tuple[int, int]]:
    """The cells of a grid that a rectangle touches."""
    (row, rows, col, cols), (tall, wide) = box, size
    top, bottom = row >> tall, row + rows - 1 >> tall
    left, right = col >> wide, col + cols - 1 >> wide
    if top == bottom and left == right:
        return [(top, left)]
    return [(r, c) for r in range(top, bottom + 1) for c in range(left, right + 1)]


class Line(Plane):
    """All addresses as one row: a stretch lies in one or two cells of its size."""

    def __init__(self) -> None:
        super().__init__(_FLAT)
        self._by_size: dict[int, dict[int, list[Region]]] = {}

    def add(self, region: Region) -> list[Region]:
        if region.start < self.low:
            self.low = region.start
        if region.stop > self.high:
            self.high = region.stop
        found: list[Region] = []
        for start, stop in _stretches(region):
            size = (stop - start).bit_length()
            if size not in self._by_size:
                self._by_size[size] = {}
            for other, grid in self._by_size.items():
                first, last = start >> other, stop - 1 >> other
                if other != size:
                    found += grid.get(first, ()) if first == last else _between(grid, first, last)
                    continue
                for cell in (first,) if first == last else (first, last):
                    listed = grid.get(cell)
                    if listed is None:
                        grid[cell] = [region]
                    else:
                        found += listed
                        listed.append(region)
        return found

    def near(self, region: Region) -> list[Region]:
        return [
            other
            for start, stop in _stretches(region)
            for size, grid in self._by_size.items()
            for other in _between(grid, start >> size, stop - 1 >> size)
        ]


def _stretches(region: Region) -> Iterable[tuple[int, int]]:
    """The bytes of a region, or, where there are many stretches, one that holds it."""
    rows = region.rows
    is_short = rows is not None and 1 < rows.number <= _MOST_ROWS
    return region.ranges if is_short else ((region.start, region.stop),)


def _between(grid: dict[int, list[Region]], first: int, last: int) -> Iterable[Region]:
    cells = grid if last - first >= len(grid) else range(first, last + 1)
    return [region for cell in cells if cell in grid for region in grid[cell]]


class RegionIndex:
    """All regions of one address space."""

    def __init__(self, memory: str) -> None:
        self.memory = memory
        self.known: dict[Any, Region] = {}  # by what an access says of its place
        self._few: list[Region] | None = []  # all of them, as long as they are few
        self._planes: dict[int, Plane] = {}
        self._used: set[Region] = set()  # since the launch began, as far as it was forgotten
        self.is_closed = False

    def get(self, key: Any) -> Region | None:
        return self.known.get(key)

    def add(self, key: Any, place: Rows | Ranges) -> Region | None:
        """Make the region of this key and connect it; None when it is empty."""
        if not place:
            return None
        region = self.known[key] = Region(self.memory, place)
        self.connect(region)
        return region

    def connect(self, region: Region, near: list[Region] | None = None) -> None:
        """Make a region known to those it overlaps, and they to it; `near` are those, if known."""
        if self._few is None:
            plane = self._plane_of(region)
            listed = plane.add(region)
            peers = self._meeting(region, plane, listed) if near is None else near
        else:
            peers = self.near(region) if near is None else near
            self._few.append(region)
            if len(self._few) > _FEW:
                for each in self._few:
                    self._plane_of(each).add(each)
                self._few = None
        region.peers += peers
        for other in peers:
            other.peers.append(region)

    def _plane_of(self, region: Region) -> Plane:
        """The plane of its rows."""
        rows = region.rows
        pitch = rows.pitch if rows and rows.number > 1 else _FLAT
        plane = self._planes.get(pitch)
        if plane is None:
            plane = self._planes[pitch] = Line() if pitch == _FLAT else Plane(pitch)
        return plane

    def is_costly(self, region: Region) -> bool:
        """Whether comparing a region takes long: many rows, and others at another distance."""
        rows = region.rows
        if rows is None or rows.number <= _MANY_ROWS:
            return False
        return any(pitch not in (rows.pitch, _FLAT) for pitch in self._pitches())

    def _pitches(self) -> Iterable[int]:
        if self._few is None:
            return self._planes
        return [each.rows.pitch for each in self._few if each.rows and each.rows.number > 1]

    def near(self, region: Region) -> list[Region]:
        """The regions that share bytes with one that is not connected."""
        if self._few is not None:
            return [each for each in self._few if region.overlaps(each)]
        return self._meeting(region)

    def _meeting(
        self, region: Region, known: Plane | None = None, listed: Iterable[Region] = ()
    ) -> list[Region]:
        """The regions that share bytes with one; of a plane that is known those may be `listed`."""
        start, stop = region.start, region.stop
        found: list[Region] = []
        seen = {region}
        for plane in self._planes.values():
            if stop <= plane.low or plane.high <= start:
                continue
            for other in listed if plane is known else plane.near(region):
                # Most candidates lie before or behind it: that is seen here.
                if stop <= other.start or other.stop <= start or other in seen:
                    continue
                seen.add(other)
                if region.overlaps(other):
                    found.append(other)
        return found

    def close(self) -> None:
        """Let go of all regions, which are their own peers: only a collection would free them."""
        self.is_closed = True
        for region in self.known.values():
            region.peers.clear()
            region.write, region.additions, region.reads = None, {}, {}
        self.known.clear()
        self._planes.clear()
        self._used.clear()
        self._few = []

    def forget(self) -> None:
        """Forget who touched what; the regions stay known."""
        for region in self.known.values():
            if region.is_touched:
                self._used.add(region)
                region.forget()

    def begin(self) -> None:
        """Another launch begins, whatever became of the one before."""
        self.forget()
        self._used.clear()

    @property
    def is_stale(self) -> bool:
        """Whether the launch that was forgotten has touched less than half of the regions.

        Where addresses come from data, each launch has others: to compare with all of them, again
        and again, would cost more than to make anew those that one launch touches.
        """
        return 2 * len(self._used) < len(self.known)


def _rows_meet(mine: Rows, others: Rows) -> bool:
    """Rows of one pitch: some distance of whole rows brings two of them together."""
    pitch = others.pitch if mine.number == 1 else mine.pitch
    distance = others.start - mine.start
    low = (distance - mine.width) // pitch + 1
    high = -(-(distance + others.width) // pitch) - 1
    return max(low, 1 - others.number) <= min(high, mine.number - 1)


def _ranges_meet(first: Ranges, second: Ranges) -> bool:
    one, two = np.asarray(first), np.asarray(second)
    index = np.searchsorted(two[:, 1], one[:, 0], side="right")
    inside = index < len(two)
    return bool((two[index[inside], 0] < one[inside, 1]).any())
