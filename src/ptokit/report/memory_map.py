"""A picture of who lives where in on-chip memory, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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


def memory_map(tiles: Iterable[Placed]) -> str:
    """Draw each memory as a bar per tile: address range, share of the capacity, type."""
    lines: list[str] = []
    by_memory: dict[str, list[Placed]] = {}
    for tile in tiles:
        by_memory.setdefault(tile.memory, []).append(tile)
    width = max((len(t.name) for group in by_memory.values() for t in group), default=0)
    for memory, group in by_memory.items():
        capacity = group[0].capacity
        used = _covered((t.start, t.start + t.nbytes) for t in group)
        lines.append(f"{memory}  {used} of {capacity} bytes used ({100 * used / capacity:.1f} %)")
        scale = max(t.start + t.nbytes for t in group)
        for t in sorted(group, key=lambda t: (t.start, t.name)):
            first = t.start * BAR // scale
            length = max(1, t.nbytes * BAR // scale)
            bar = " " * first + "█" * length
            span = f"0x{t.start:05x}..0x{t.start + t.nbytes:05x}"
            lines.append(f"  {t.name:<{width}}  {span}  |{bar:<{BAR}}|  {t.what}")
    return "\n".join(lines)


def _covered(ranges: Iterable[tuple[int, int]]) -> int:
    """Bytes covered by possibly overlapping ranges."""
    total = end = 0
    for start, stop in sorted(ranges):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
