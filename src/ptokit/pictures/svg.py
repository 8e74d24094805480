"""The pieces of which pictures are made: boxes, words and lines of SVG, in one set of colours.

A picture stands for itself, in a page, a notebook or a file. One that is `themed` is light or dark
as the reader's screen is: its style gives the few colours of paper and ink their dark counterparts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

# Things that are told apart, in the order in which they come.
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#9c755f", "#d4a72c")
INK, SOFT, EDGE, WELL, PAPER = "#24292f", "#6a737d", "#c4c9d0", "#f3f4f6", "white"
READ, WRITTEN, LOST = COLOURS[0], COLOURS[1], "#8b949e"  # what becomes of an operand
_AT_NIGHT = {INK: "#e6edf3", SOFT: "#9aa4af", EDGE: "#4a525c", WELL: "#22272e", PAPER: "#161b22"}
_STYLE = "".join(
    f'.pto [{what}="{day}"]{{{what}:{night}}}'
    for day, night in _AT_NIGHT.items()
    for what in ("fill", "stroke")
)
_CLASS = ' class="pto"'
_LETTER = 6.1  # pixels of one, about


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


def drawing(
    wide: float, tall: float, parts: Iterable[str], said: str = "", *, themed: bool = False
) -> str:
    """A picture on paper that stands for itself; `said` is read out instead of it."""
    named = f' role="img" aria-label="{escape(said)}"' if said else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {tall:.0f}" '
            f'width="{wide:.0f}" height="{tall:.0f}" font-family="sans-serif" font-size="11" '
            f'style="max-width:100%;height:auto"{named}{_CLASS * themed}>',
            *[f"<style>@media(prefers-color-scheme:dark){{{_STYLE}}}</style>"] * themed,
            f'<rect width="{wide:.0f}" height="{tall:.0f}" rx="8" fill="{PAPER}"/>',
            *parts,
            "</svg>",
        ]
    )


def letters(said: str, size: float = 11) -> float:
    """How wide words are, about."""
    return len(said) * _LETTER * size / 11


class Picture:
    """Parts that are drawn one over the other; its size is what they reach."""

    def __init__(self, title: str = "", margin: float = 14) -> None:
        self.title, self.margin = title, margin
        self.right = self.bottom = 0.0
        self.parts: list[str] = []
        if title:
            self.text(margin, 22, title, size=14, bold=True)

    def box(
        self,
        x: float,
        y: float,
        wide: float,
        tall: float,
        fill: str = "none",
        *,
        tip: str = "",
        **more: object,
    ) -> None:
        """A rectangle; further words are attributes (`stroke=EDGE`), `tip` shows under a mouse."""
        self._reach(x + wide, y + tall)
        shown = f"<title>{escape(tip)}</title></rect>" if tip else ""
        self.parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(wide)}" height="{_n(tall)}" fill="{fill}"'
            f"{_attributes(more)}{'>' + shown if tip else '/>'}"
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        fill: str = INK,
        size: float = 11,
        anchor: str = "start",
        bold: bool = False,
        mono: bool = False,
    ) -> None:
        """Words on a line; `anchor` says which part of them is at x."""
        wide = letters(words, size) * (1.1 if bold or mono else 1)
        self._reach(x + wide * {"start": 1.0, "middle": 0.5, "end": 0.0}[anchor], y + size / 4)
        more = {"text_anchor": anchor} if anchor != "start" else {}
        more |= {"font_size": _n(size)} if size != 11 else {}
        more |= {"font_weight": "bold"} if bold else {}
        more |= {"font_family": "monospace"} if mono else {}
        self.parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" fill="{fill}"{_attributes(more)}>{escape(words)}</text>'
        )

    def line(
        self,
        points: Iterable[tuple[float, float]],
        stroke: str = INK,
        *,
        arrow: bool = False,
        **more: object,
    ) -> None:
        """A line through points, with a head at the last one if asked."""
        path = list(points)
        for x, y in path:
            self._reach(x, y)
        steps = " ".join(f"{_n(x)} {_n(y)}" for x, y in path)
        self.parts.append(f'<path d="M{steps}" fill="none" stroke="{stroke}"{_attributes(more)}/>')
        if arrow:
            (x0, y0), (x, y) = path[-2:]
            length = max(((x - x0) ** 2 + (y - y0) ** 2) ** 0.5, 1e-6)
            dx, dy = 7 * (x - x0) / length, 7 * (y - y0) / length
            corners = (
                (x, y),
                (x - dx + dy / 2, y - dy - dx / 2),
                (x - dx - dy / 2, y - dy + dx / 2),
            )
            head = " ".join(f"{_n(a)},{_n(b)}" for a, b in corners)
            self.parts.append(f'<polygon points="{head}" fill="{stroke}"/>')

    def raw(self, part: str) -> None:
        """A part as it is written."""
        self.parts.append(part)

    def _reach(self, x: float, y: float) -> None:
        self.right, self.bottom = max(self.right, x), max(self.bottom, y)

    def __str__(self) -> str:
        wide, tall = self.right + self.margin, self.bottom + self.margin
        return drawing(wide, tall, self.parts, self.title, themed=True)


def _attributes(more: Mapping[str, object]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())


def _n(value: float | str) -> str:
    """A coordinate, as short as it can be."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


__all__ = [
    "COLOURS",
    "EDGE",
    "INK",
    "LOST",
    "PAPER",
    "READ",
    "SOFT",
    "WELL",
    "WRITTEN",
    "Picture",
    "box",
    "drawing",
    "letters",
    "line",
    "words",
]
