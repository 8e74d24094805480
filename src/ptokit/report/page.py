"""One page that shows a launch: a single file of HTML that needs no network and no server.

The numbers are embedded as JSON; the scripts and styles of `web/` draw them. Charts are drawn by
uPlot, which is bundled there with its licence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.files import write_text

WEB = Path(__file__).parent / "web"
_STYLES = ("uPlot.min.css", "page.css")
_SCRIPTS = ("uPlot.iife.min.js", "base.js", "timeline.js", "memory.js", "code.js", "main.js")
_FRAME = 860  # pixels of a page inside a notebook


def _read(name: str) -> str:
    return (WEB / name).read_text("utf-8")


@dataclass(frozen=True)
class Page:
    """Launches as a page; shows itself in a notebook, and writes itself to a file."""

    title: str
    launches: Sequence[Mapping[str, Any]]  # what `page_data` says of each

    @cached_property
    def html(self) -> str:
        """The whole page."""
        numbers = json.dumps({"launches": list(self.launches)}, separators=(",", ":"))
        licence = f"/*\n{_read('uPlot.LICENSE')}*/\n"
        parts = {
            "title": escape(self.title),
            "styles": "\n".join(map(_read, _STYLES)),
            "scripts": licence + "\n".join(map(_read, _SCRIPTS)),
            "numbers": numbers.replace("<", "\\u003c"),  # a text may hold the end of a script
        }
        page = _read("page.html")
        for name, text in parts.items():
            page = page.replace(f"@@{name}@@", text)
        return page

    def write(self, path: str | Path) -> None:
        """Write the page to a file."""
        write_text(path, self.html)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.title)}" '
            f'style="width:100%;height:{_FRAME}px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {self.title}: {len(self.html) / 1e6:.1f} MB>"


__all__ = ["Page"]
