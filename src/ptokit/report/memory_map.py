"""Who lives where in on-chip memory: as bars for the terminal, as a picture for everything else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

BAR = 24  # characters for the whole memory
WIDTH, HEIGHT = 640, 220  # of one panel
LEFT, TOP, GAP = 70, 34, 26
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")


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


def memory_svg(tiles: Iterable[Placed], title: str = "") -> str:
    """Draw all memories, one panel each, as a self-contained SVG."""
    panels: dict[str, list[Placed]] = {}
    for tile in tiles:
        panels.setdefault(tile.memory, []).append(tile)
    height = TOP + len(panels) * (HEIGHT + GAP + 18)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<text x="{LEFT}" y="18" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for index, (memory, group) in enumerate(panels.items()):
        parts += _panel(memory, group, TOP + index * (HEIGHT + GAP + 18))
    return "\n".join([*parts, "</svg>"])


def _panel(memory: str, group: list[Placed], top: int) -> list[str]:
    end = max(t.start + t.nbytes for t in group)
    last = max(t.life[1] for t in group) + 1
    capacity = group[0].capacity
    parts = [
        f'<text x="{LEFT}" y="{top + 10}">{escape(memory)}: '
        f"up to {end:,} of {capacity:,} bytes</text>",
        f'<rect x="{LEFT}" y="{top + 16}" width="{WIDTH}" height="{HEIGHT}" fill="#f7f7f7" '
        'stroke="#bbb"/>',
    ]
    for n, tile in enumerate(sorted(group, key=lambda t: t.start)):
        x = LEFT + WIDTH * tile.life[0] / last
        wide = max(2.0, WIDTH * (tile.life[1] + 1 - tile.life[0]) / last)
        y = top + 16 + HEIGHT * tile.start / end
        tall = max(2.0, HEIGHT * tile.nbytes / end)
        label = f"{tile.name}: {tile.what} at 0x{tile.start:x}, live {tile.life[0]}..{tile.life[1]}"
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" '
            f'fill="{COLOURS[n % len(COLOURS)]}" stroke="white">'
            f"<title>{escape(label)}</title></rect>"
        )
        if tall >= 11:
            parts.append(
                f'<text x="{x + 4:.1f}" y="{y + min(tall, 22) / 2 + 4:.1f}" fill="white">'
                f"{escape(tile.name)}</text>"
            )
            parts.append(
                f'<text x="{LEFT - 6}" y="{y + 10:.1f}" text-anchor="end" fill="#555">'
                f"0x{tile.start:x}</text>"
            )
    parts.append(
        f'<text x="{LEFT + WIDTH / 2}" y="{top + HEIGHT + 30}" text-anchor="middle" fill="#555">'
        "program order</text>"
    )
    return parts


@dataclass(frozen=True)
class Map:
    """The memory map of a kernel; prints as text, shows as a picture in notebooks."""

    kernel: str
    tiles: tuple[Placed, ...]

    def svg(self) -> str:
        """The map as a picture: address against lifetime, per memory."""
        return memory_svg(self.tiles, self.kernel)

    _repr_svg_ = svg

    def __str__(self) -> str:
        return memory_map(self.tiles)

    __repr__ = __str__
