"""The memory map of a kernel as a picture: addresses against the instructions that use them.

A column is an instruction, in program order; loops are bands over their columns. A tile is pale
while its bytes must be kept, and full from what writes it to the last use of that. Addresses are to
scale, except that nothing is too thin to be seen; how full the whole memory is says the bar above.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise

from ptokit.base.dataclass import dataclass
from ptokit.pictures.svg import COLOURS, EDGE, INK, SOFT, WELL, box, drawing, words
from ptokit.report.memory_map import Placed, Step, covered

WIDTH, HEIGHT = 720, 150  # of one panel
LEFT, RIGHT, TOP, GAP = 74, 44, 30, 24
THIN = 13  # pixels of the smallest tile: its name fits
NAMED = 44  # instructions whose names fit below their columns


def memory_svg(
    title: str,
    tiles: Iterable[Placed],
    steps: Sequence[Step] = (),
    loops: Sequence[tuple[int, int]] = (),
) -> str:
    """Draw all memories, one panel each, as a self-contained SVG."""
    panels: dict[str, list[Placed]] = {}
    for tile in tiles:
        panels.setdefault(tile.memory, []).append(tile)
    columns = _Columns([step.position for step in steps])
    parts: list[str] = []
    top = TOP
    for memory, group in panels.items():
        panel = _Panel(memory, group, columns, top)
        parts += panel.drawn(loops)
        top = panel.bottom + GAP
    if steps and len(steps) <= NAMED:
        parts += _names(steps, columns, top - GAP + 6)
        top += 64
    whole = LEFT + WIDTH + RIGHT
    heading = words(LEFT, 20, title, INK, 'font-size="14" font-weight="bold"')
    return drawing(whole, top, [heading, *parts], f"memory map of {title}", themed=True)


@dataclass(frozen=True)
class _Columns:
    """Positions as places from left to right; those that use no tile take no room."""

    positions: Sequence[int]

    @property
    def width(self) -> float:
        return WIDTH / max(1, len(self.positions))

    def x(self, position: int) -> float:
        """The left edge of the first column at or behind a position."""
        return LEFT + self.width * bisect_left(self.positions, position)

    def span(self, first: int, last: int) -> tuple[float, float]:
        """Left edge and width of the columns between two positions, both included."""
        left, right = self.x(first), self.x(last + 1)
        return left, max(right - left, self.width / 2)


class _Panel:
    """One memory: stretches between the edges of tiles, each tall enough to be seen."""

    def __init__(self, memory: str, tiles: list[Placed], columns: _Columns, top: float) -> None:
        self.memory, self.columns, self.top = memory, columns, top + 22
        self.tiles = sorted(tiles, key=lambda t: (t.start, -t.nbytes, t.name))
        self.capacity = tiles[0].capacity
        edges = sorted({e for t in tiles for e in (t.start, t.start + t.nbytes)})
        height = min(HEIGHT, 44 * len({t.start for t in tiles}))
        scale = height / max(1, covered((t.start, t.start + t.nbytes) for t in tiles))
        self.at: dict[int, float] = {}
        y = self.top + (6 if edges[0] else 0)
        for low, high in pairwise(edges):
            self.at[low] = y
            held = any(t.start <= low and high <= t.start + t.nbytes for t in tiles)
            y += max(THIN, scale * (high - low)) if held else 6  # nobody lies there
        self.at[edges[-1]] = y
        self.bottom = y

    def drawn(self, loops: Sequence[tuple[int, int]]) -> Iterator[str]:
        used = covered((t.start, t.start + t.nbytes) for t in self.tiles)
        share = 100 * used / self.capacity
        yield (
            f'<text x="{LEFT}" y="{self.top - 7}" fill="{INK}" font-weight="bold">'
            f"{escape(self.memory)}</text>"
            f'<text x="{LEFT + 34}" y="{self.top - 7}" fill="{SOFT}">{used:,} of '
            f"{self.capacity:,} bytes, {share:.1f} %</text>"
        )
        yield from self._gauge()
        yield box(LEFT, self.top, WIDTH, self.bottom - self.top, WELL, f'stroke="{EDGE}"')
        for first, behind in sorted(loops):
            x, wide = self.columns.span(first, behind)
            yield box(x, self.top, wide, self.bottom - self.top, INK, 'fill-opacity=".06"')
        for number, tile in enumerate(self.tiles):
            yield from self._tile(tile, COLOURS[number % len(COLOURS)])
        for first, behind in loops:
            x, wide = self.columns.span(first, behind)
            at = f'x="{x + wide - 12:.1f}" y="{self.bottom - 3:.1f}"'
            yield f'<text {at} fill="{INK}" font-size="11">⟳</text>'

    def _gauge(self) -> Iterator[str]:
        """All of the memory, to scale, at the right of the title."""
        wide, left, y = 220, LEFT + WIDTH - 220, self.top - 15
        yield box(left, y, wide, 8, WELL, f'stroke="{EDGE}"')
        for number, tile in enumerate(self.tiles):
            x = left + wide * tile.start / self.capacity
            yield box(x, y, max(1.0, wide * tile.nbytes / self.capacity), 8,
                       COLOURS[number % len(COLOURS)])  # fmt: skip

    def _tile(self, tile: Placed, colour: str) -> Iterator[str]:
        y, tall = self.at[tile.start], self.at[tile.start + tile.nbytes] - self.at[tile.start]
        x, wide = self.columns.span(*tile.life)
        label = f"{tile.name}: {tile.what}, {tile.nbytes:,} bytes at 0x{tile.start:x}"
        yield f"<g><title>{escape(label)}</title>"
        yield box(x, y, wide, tall - 1, colour, 'fill-opacity=".28"')
        for first, last in _lives(tile):
            left, across = self.columns.span(first, last)
            yield box(left, y, across, tall - 1, colour)
        yield "</g>"
        beside = f'<text y="{y + min(tall, 26) / 2 + 3.5:.1f}" font-size="10"'
        yield f'{beside} x="{x + 4:.1f}" fill="{INK}">{escape(tile.name)}</text>'
        yield f'{beside} x="{LEFT - 6}" text-anchor="end" fill="{SOFT}">0x{tile.start:x}</text>'


def _lives(tile: Placed) -> Iterator[tuple[int, int]]:
    """From a position that writes anew to the last use of that."""
    first = last = -1
    was_read = False
    for position, only_writes in tile.uses:
        if first < 0 or (only_writes and was_read):
            if first >= 0:
                yield first, last
            first, was_read = position, False
        last = position
        was_read |= not only_writes
    if first >= 0:
        yield first, last


def _names(steps: Sequence[Step], columns: _Columns, y: float) -> Iterator[str]:
    for number, step in enumerate(steps):
        x = LEFT + columns.width * (number + 0.5)
        line = f":{step.line}" if step.line else ""
        yield (
            f'<text transform="translate({x:.1f},{y:.1f}) rotate(48)" fill="{SOFT}" '
            f'font-size="9">{escape(step.name)}{line}</text>'
        )


__all__ = ["memory_svg"]
