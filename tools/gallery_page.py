"""`docs/gallery.md`: the examples, with what they teach, their code and where their tiles lie."""

from __future__ import annotations

import ast
from pathlib import Path

from memory_pages import EXAMPLES, NOT_EXAMPLES

HEAD = """# Gallery

Whole kernels, each of which runs on every target that has its instructions, as Python and lowered,
against NumPy: `make examples`. The picture is where its tiles lie in on-chip memory, and from which
instruction to which ([how to read it](memory-maps.md)).
"""


def page(pictures: list[Path]) -> str:
    """The text of the page; `pictures` are the memory maps that there are."""
    lines = [HEAD]
    for path in sorted(EXAMPLES.glob("*.py")):
        if path.stem in NOT_EXAMPLES:
            continue
        said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        title, _, rest = said.partition("\n\n")
        lines += [f"## {path.stem}", "", " ".join(title.split()), ""]
        lines += [rest, ""] if rest else []
        lines += [f"[Code: {path.name}](../examples/{path.name})", ""]
        mine = [p for p in pictures if p.name.startswith(f"{path.stem}-")]
        lines += [f"![Memory map of {p.stem}](memory/{p.name})" for p in mine[:1]]
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"


__all__ = ["page"]
