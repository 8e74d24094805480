"""The pieces of which pictures are made: boxes, words and lines of SVG, in one set of colours."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

# Things that are told apart, in the order in which they come.
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#9c755f", "#d4a72c")
INK, SOFT, EDGE, WELL = "#24292f", "#6a737d", "#c4c9d0", "#f3f4f6"


def box(x: float, y: float, wide: float, tall: float, fill: str, more: str = "") -> str:
    """A filled rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{fill}"'
        f"{' ' + more if more else ''}/>"
    )


def words(x: float, y: float, said: str, fill: str = INK, more: str = "") -> str:
    """A line of text that begins at x and stands on y."""
    more = f" {more}" if more else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{more}>{escape(said)}</text>'


def line(points: Iterable[tuple[float, float]], stroke: str, more: str = "") -> str:
    """A line from point to point."""
    through = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    more = f" {more}" if more else ""
    return f'<polyline points="{through}" fill="none" stroke="{stroke}"{more}/>'


def drawing(wide: float, tall: float, parts: Iterable[str], said: str = "") -> str:
    """A picture on white paper that stands for itself; `said` is read out instead of it."""
    named = f' role="img" aria-label="{escape(said)}"' if said else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {tall:.0f}" '
            f'width="{wide:.0f}" height="{tall:.0f}" font-family="sans-serif" font-size="11" '
            f'style="max-width:100%;height:auto"{named}>',
            f'<rect width="{wide:.0f}" height="{tall:.0f}" rx="8" fill="white"/>',
            *parts,
            "</svg>",
        ]
    )


__all__ = ["COLOURS", "EDGE", "INK", "SOFT", "WELL", "box", "drawing", "line", "words"]
