"""What the pipes of cores do over time: a lane per pipe, work as boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import floor, log10

from ptokit.pictures.svg import EDGE, INK, SOFT, WELL, box, drawing, line, words

WIDTH, LEFT, LANE, HEAD = 640, 104, 18, 20
PIPES = {
    "MTE2": "#3b7dd8", "MTE2 (vector)": "#5a9bea", "MTE1": "#1f9d8f", "M": "#7d5bd9",
    "V": "#e0762f", "FIX": "#5a9e2f", "MTE3": "#b58a12", "S": "#87909e",
}  # fmt: skip
MOST_LANES = 16
LETTER = 5.5  # pixels: work that has room for its name shows it

Work = tuple[str, float, float]  # what, from when, to when, in microseconds


def timeline_svg(lanes: Mapping[tuple[str, str], Sequence[Work]], end: float) -> str:
    """The work of each core and pipe, in order, from 0 to `end`; who has none is left out."""
    busy = {key: work for key, work in lanes.items() if work}
    scale = WIDTH / (end or 1.0)
    parts: list[str] = []
    y, before = 24.0, ""
    for (core, pipe), work in list(busy.items())[:MOST_LANES]:
        if core != before:
            parts.append(words(10, y + 13, core, INK, 'font-weight="bold"'))
            y, before = y + HEAD, core
        parts += [
            words(LEFT - 8, y + 12, pipe, SOFT, 'text-anchor="end"'),
            box(LEFT, y + 1, WIDTH, LANE - 3, WELL),
            *(_drawn(group, y + 1, scale, PIPES.get(pipe, SOFT)) for group in _groups(work, scale)),
        ]
        y += LANE
    axis: list[str] = []
    for at in _ticks(end):
        x = LEFT + at * scale
        axis.append(line([(x, 18), (x, y)], EDGE, 'stroke-width=".5"'))
        axis.append(words(x, 14, f"{at:g} µs", SOFT, 'text-anchor="middle"'))
    if len(busy) > MOST_LANES:
        y += 14
        parts.append(words(10, y, f"and {len(busy) - MOST_LANES} pipes more", SOFT))
    return drawing(LEFT + WIDTH + 24, y + 10, [*parts, *axis], f"timeline of {end:.1f} µs")


def _groups(work: Sequence[Work], scale: float) -> Iterator[Sequence[Work]]:
    """Work one by one; pieces too thin to be told apart that follow each other are one."""
    group: list[Work] = []
    for each in work:
        _, start, end = each
        is_one = group and (end - start) * scale < 2 and (start - group[-1][2]) * scale < 0.5
        if group and not is_one:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _drawn(group: Sequence[Work], y: float, scale: float, colour: str) -> str:
    (label, start, _), (_, _, end) = group[0], group[-1]
    names = ", ".join(dict.fromkeys(each[0] for each in group))
    count = f"{len(group)} of " if len(group) > 1 else ""
    title = f"<title>{escape(f'{count}{names}: {start:.3f} to {end:.3f} µs')}</title>"
    x, wide = LEFT + start * scale, max(1.0, (end - start) * scale)
    drawn = box(x, y, wide, LANE - 3, colour)
    if len(group) == 1 and wide > LETTER * len(label) + 8:
        drawn += words(x + 3, y + 11, label, "white", 'font-size="9"')
    return f"<g>{title}{drawn}</g>"


def _ticks(end: float) -> Iterator[float]:
    """Round numbers up to the end, four to ten of them."""
    step = 10.0 ** floor(log10(end)) if end > 0 else 1.0
    step *= next(part for part in (0.2, 0.5, 1.0) if end / (step * part) <= 10)
    for number in range(int(end / step) + 1):
        yield round(number * step, 9)


__all__ = ["PIPES", "Work", "timeline_svg"]
