"""The numbers of a matrix as an image: light to dark, or blue to red where they have both signs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ptokit.base.layout import Array
from ptokit.pictures.png import Colour, between, image
from ptokit.pictures.svg import EDGE, INK, SOFT, box, drawing, line, words

SIDE = 240  # pixels of the longer side
LEAST = 26  # of the shorter one
MOST = 128  # elements along a side, at most; of more every second, third ... one is shown

_WHITE = (250, 250, 250)
_BLUE, _RED, _GREEN = (33, 102, 172), (178, 24, 43), (0, 90, 70)
_NAN, _HIGH, _LOW, _UNDEFINED, _OUTSIDE = range(251, 256)  # colours that are no numbers
_OTHERS: dict[int, tuple[str, Colour]] = {
    _NAN: ("NaN", (230, 0, 230)),
    _HIGH: ("inf", (60, 0, 0)),
    _LOW: ("-inf", (0, 0, 60)),
    _UNDEFINED: ("never written", (255, 205, 90)),
    _OUTSIDE: ("outside the valid region", (214, 217, 222)),
}


def values_svg(
    values: Array, defined: Array | None = None, whole: tuple[int, int] | None = None
) -> str:
    """An image of a matrix with its scale.

    `defined` says which elements hold a value; `whole` is the size of the tile of which the values
    are the valid region.
    """
    rows, cols = whole or values.shape
    numbers = values.astype(np.float64)
    known = np.ones(values.shape, np.bool_) if defined is None else defined
    finite = numbers[known & np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    palette, first, last = _scale(low, high)
    pixels = np.full((rows, cols), _OUTSIDE, np.uint8)
    with np.errstate(invalid="ignore"):
        share = (numbers - first) / (last - first or 1.0)
        seen = np.nan_to_num(np.rint(share * 250), nan=0).clip(0, 250).astype(np.uint8)
    seen[np.isnan(numbers)] = _NAN
    seen[numbers == np.inf] = _HIGH
    seen[numbers == -np.inf] = _LOW
    seen[~known] = _UNDEFINED
    pixels[: values.shape[0], : values.shape[1]] = seen
    step = -(-max(rows, cols) // MOST)
    shown = pixels[::step, ::step]
    scale = SIDE / max(rows, cols)
    wide, tall = max(LEAST, cols * scale), max(LEAST, rows * scale)
    parts = [
        f'<image x="10" y="10" width="{wide:.1f}" height="{tall:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="{image(shown, palette)}"/>',
        box(10, 10, wide, tall, "none", f'stroke="{EDGE}"'),
    ]
    parts += _edge(values.shape, (rows, cols), wide, tall)
    y = 10 + tall + 14
    bar = image(np.arange(251, dtype=np.uint8)[None, :], palette)
    said = [f"{low:.4g}", f"{high:.4g}"]
    parts += [
        words(10, y + 4, said[0], INK),
        f'<image x="{24 + 6 * len(said[0])}" y="{y - 5:.1f}" width="90" height="10" '
        f'preserveAspectRatio="none" href="{bar}"/>',
        words(24 + 6 * len(said[0]) + 98, y + 4, said[1], INK),
    ]
    for other, (name, colour) in _OTHERS.items():
        if (pixels == other).any():
            y += 16
            parts += [box(10, y - 6, 12, 10, f"rgb{colour}"), words(28, y + 3, name, SOFT)]
    if step > 1:
        y += 16
        parts.append(words(10, y + 3, f"every {step}. element of a row and column", SOFT))
    note = f"{values.shape[0]} x {values.shape[1]} values from {said[0]} to {said[1]}"
    return drawing(max(20 + wide, 260), y + 14, parts, note)


def _scale(low: float, high: float) -> tuple[list[Colour], float, float]:
    """The colours of numbers, and those at both ends of them."""
    if low < 0 < high:
        most = max(-low, high)
        colours = [*between(_BLUE, _WHITE, 126)[:-1], *between(_WHITE, _RED, 126)]
        first, last = -most, most
    else:
        colours, first, last = between(_WHITE, _GREEN, 251), low, high
    return [*colours, *(colour for _, colour in _OTHERS.values())], first, last


def _edge(valid: tuple[int, ...], whole: tuple[int, int], wide: float, tall: float) -> list[str]:
    """A line around the valid region, where that is not all."""
    if valid == whole:
        return []
    x, y = 10 + wide * valid[1] / whole[1], 10 + tall * valid[0] / whole[0]
    corners = [(10.0, 10.0), (x, 10.0), (x, y), (10.0, y), (10.0, 10.0)]
    return [line(ends, INK, 'stroke-dasharray="3 2"') for ends in pairwise(corners)]


__all__ = ["values_svg"]
