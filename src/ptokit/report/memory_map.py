"""Who lives where in on-chip memory, as plain records and as bars for the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from ptokit.base.dataclass import dataclass

BAR = 24  # characters for the whole memory


@dataclass(frozen=True)
class Placed:
    """A tile with its place: a plain record, whoever made it."""

    name: str
    memory: str
    capacity: int
    start: int
    nbytes: int
    what: str
    life: tuple[int, int] = (0, 0)  # first and last position in which it is live
    uses: tuple[tuple[int, bool], ...] = ()  # positions, and whether only to write


def memory_map(tiles: Iterable[Placed]) -> str:
    """Draw each memory as a bar per tile: address range, share of the capacity, type."""
    lines: list[str] = []
    by_memory: dict[str, list[Placed]] = {}
    for tile in tiles:
        by_memory.setdefault(tile.memory, []).append(tile)
    width = max((len(t.name) for group in by_memory.values() for t in group), default=0)
    for memory, group in by_memory.items():
        capacity = group[0].capacity
        used = covered((t.start, t.start + t.nbytes) for t in group)
        lines.append(f"{memory}  {used} of {capacity} bytes used ({100 * used / capacity:.1f} %)")
        scale = max(t.start + t.nbytes for t in group)
        for t in sorted(group, key=lambda t: (t.start, t.name)):
            first = t.start * BAR // scale
            length = max(1, t.nbytes * BAR // scale)
            bar = " " * first + "█" * length
            span = f"0x{t.start:05x}..0x{t.start + t.nbytes:05x}"
            lines.append(f"  {t.name:<{width}}  {span}  |{bar:<{BAR}}|  {t.what}")
    return "\n".join(lines)


def covered(ranges: Iterable[tuple[int, int]]) -> int:
    """Bytes covered by possibly overlapping ranges."""
    total = end = 0
    for start, stop in sorted(ranges):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


@dataclass(frozen=True)
class Step:
    """An instruction that uses tiles: its position among all operations, its name and line."""

    position: int
    name: str
    line: int = 0


@dataclass(frozen=True)
class Map:
    """The memory map of a kernel; prints as text, shows as a picture in notebooks."""

    kernel: str
    tiles: tuple[Placed, ...]
    steps: tuple[Step, ...] = ()  # the instructions that use them
    loops: tuple[tuple[int, int], ...] = ()  # first position, and the one behind the last

    def svg(self) -> str:
        """The map as a picture: address against lifetime, per memory."""
        from ptokit.report.memory_svg import memory_svg

        return memory_svg(self.kernel, self.tiles, self.steps, self.loops)

    _repr_svg_ = svg

    def __str__(self) -> str:
        return memory_map(self.tiles)

    __repr__ = __str__
