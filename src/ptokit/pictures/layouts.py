"""A layout as a picture: the order in which the elements of a matrix lie in memory.

At the left all of it, the darker the later in memory, with its boxes and the way through them; at
the right the first elements with their offsets.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ptokit.base.layout import AxisMap
from ptokit.pictures.png import between, image
from ptokit.pictures.svg import EDGE, INK, SOFT, box, drawing, line, words

SIDE = 160  # pixels of the longer side of the whole
CELL = 26  # of one element at the right
SHOWN = 8  # elements along a side there
MOST_BOXES = 256  # whose order is drawn
MOST_PIXELS = 128  # along a side of the whole

PALE, DARK = (238, 243, 250), (38, 84, 140)


def layout_svg(axes: AxisMap, inner: tuple[int, int] = (1, 1), title: str = "") -> str:
    """Where the elements of a matrix lie; `inner` are the rows and columns of one box of it."""
    top = 24 if title else 8
    whole, wide, tall = _whole(axes, inner, 10, top)
    corner, right, below = _corner(axes, inner, wide + 34, top)
    parts = [words(10, 16, title, INK, 'font-weight="bold"')] if title else []
    note = f"{axes.rows} x {axes.cols}"
    if inner != (1, 1):
        note += f" in boxes of {inner[0]} x {inner[1]}"
    bottom = max(top + tall, below) + 16
    parts += [*whole, *corner, words(10, bottom, f"{note}; offsets in elements", SOFT)]
    said = f"{title or 'layout'}: {note}"
    return drawing(max(right, 10 + wide) + 12, bottom + 8, parts, said)


def _whole(
    axes: AxisMap, inner: tuple[int, int], left: float, top: float
) -> tuple[list[str], float, float]:
    """All elements as an image; gives what is drawn, its width and its height."""
    rows, cols = axes.rows, axes.cols
    scale = SIDE / max(rows, cols)
    wide, tall = max(12.0, cols * scale), max(12.0, rows * scale)
    step = -(-max(rows, cols) // MOST_PIXELS)
    shades = axes.offsets[::step, ::step] * 255 // max(1, axes.span - 1)
    parts = [
        f'<image x="{left}" y="{top}" width="{wide:.1f}" height="{tall:.1f}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" '
        f'href="{image(shades, between(PALE, DARK, 256))}"/>',
        box(left, top, wide, tall, "none", f'stroke="{EDGE}"'),
    ]
    down, across = -(-rows // inner[0]), -(-cols // inner[1])
    if inner == (1, 1) or down * across > MOST_BOXES:
        return parts, wide, tall
    high, broad = tall / rows * inner[0], wide / cols * inner[1]
    for number in range(1, across):
        x = left + number * broad
        parts.append(line([(x, top), (x, top + tall)], "white", 'stroke-width="1"'))
    for number in range(1, down):
        y = top + number * high
        parts.append(line([(left, y), (left + wide, y)], "white", 'stroke-width="1"'))
    firsts = axes.offsets[:: inner[0], :: inner[1]]
    way = [divmod(int(place), across) for place in np.argsort(firsts, axis=None, kind="stable")]
    points = [(left + (col + 0.5) * broad, top + (row + 0.5) * high) for row, col in way]
    parts.append(line(points, "#e0762f", 'stroke-width="1.5" stroke-linejoin="round"'))
    x, y = points[0]
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#e0762f"/>')
    return parts, wide, tall


def _corner(
    axes: AxisMap, inner: tuple[int, int], left: float, top: float
) -> tuple[list[str], float, float]:
    """The first elements with their offsets; gives what is drawn, its right and lower edges."""
    rows, cols = min(axes.rows, SHOWN), min(axes.cols, SHOWN)
    offsets = axes.offsets[:rows, :cols]
    shades = between(PALE, DARK, 256)
    parts: list[str] = []
    for row in range(rows):
        for col in range(cols):
            offset = int(offsets[row, col])
            shade = shades[offset * 255 // max(1, axes.span - 1)]
            x, y = left + col * CELL, top + row * CELL
            parts.append(box(x, y, CELL - 1, CELL - 1, f"rgb{shade}"))
            small = 'font-size="8.5" text-anchor="middle"'
            ink = INK if sum(shade) > 380 else "white"
            parts.append(words(x + CELL / 2, y + CELL / 2 + 3, str(offset), ink, small))
    places = {int(offset): at for at, offset in np.ndenumerate(offsets)}
    for first, after in pairwise(sorted(places)):
        if after == first + 1:  # neighbours in memory
            ends = [
                (left + (col + 0.5) * CELL, top + (row + 0.5) * CELL)
                for row, col in (places[first], places[after])
            ]
            parts.append(line(ends, "#e0762f", 'stroke-width="2" stroke-opacity=".35"'))
    for number in range(0, cols, inner[1]):
        if number and inner[1] > 1:
            x = left + number * CELL - 0.5
            parts.append(line([(x, top - 3), (x, top + rows * CELL)], INK))
    for number in range(0, rows, inner[0]):
        if number and inner[0] > 1:
            y = top + number * CELL - 0.5
            parts.append(line([(left - 3, y), (left + cols * CELL, y)], INK))
    right, below = left + cols * CELL, top + rows * CELL
    if axes.cols > cols:
        parts.append(words(right + 3, top + CELL / 2 + 3, "…", SOFT))
        right += 14
    if axes.rows > rows:
        parts.append(words(left + CELL / 2 - 3, below + 10, "⋮", SOFT))
        below += 12
    return parts, right, below


__all__ = ["layout_svg"]
