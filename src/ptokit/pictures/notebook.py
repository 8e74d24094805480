"""What notebooks show: a heading, pictures beside each other, tables. Styles stand in the tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CARD = (
    "font:13px/1.45 system-ui,sans-serif;color:#24292f;background:#fff;border:1px solid #dfe3e9;"
    "border-radius:8px;padding:8px 12px;max-width:900px;overflow-x:auto"
)
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;border:0;background:none;"
TONES = {"good": "#2b8a3e", "warn": "#b35c00", "bad": "#c92a2a", "soft": "#6a737d"}


def card(title: str, *parts: str, note: str = "") -> str:
    """A frame with a heading; parts are HTML."""
    small = f' <span style="color:{TONES["soft"]}">{escape(note)}</span>' if note else ""
    head = f"<div><b>{escape(title)}</b>{small}</div>"
    return f'<div class="ptokit" style="{_CARD}">{head}{"".join(parts)}</div>'


def beside(*pictures: str) -> str:
    """Pictures beside each other, or below where there is no room."""
    style = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:8px"
    return f'<div style="{style}">{"".join(pictures)}</div>'


def toned(said: str, tone: str) -> str:
    """Words in the colour of what they mean."""
    return f'<span style="color:{TONES[tone]}">{escape(said)}</span>'


def plain(said: str) -> str:
    """Text as it stands."""
    style = "margin:4px 0;white-space:pre-wrap;font:12px/1.4 ui-monospace,monospace;color:inherit"
    return f'<pre style="{style};background:none">{escape(said)}</pre>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML."""
    head = "".join(
        f'<th style="{_CELL}color:{TONES["soft"]}">{escape(each)}</th>' for each in heads
    )
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    style = "border-collapse:collapse;border:0;margin:4px 0;font:inherit;color:inherit"
    return f'<table style="{style}"><tr>{head}</tr>{body}</table>'


__all__ = ["beside", "card", "plain", "table", "toned"]
