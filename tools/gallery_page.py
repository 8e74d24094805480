"""`docs/gallery.md`: the examples, with what they teach, their code and where their tiles lie."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from memory_pages import EXAMPLES, NOT_EXAMPLES

HEAD = """# Gallery

Whole kernels, each of which runs on every target that has its instructions, as Python and lowered,
against NumPy: `make examples`. The picture is where its tiles lie in on-chip memory, and from which
instruction to which ([how to read it](memory-maps.md)). Below stands the same kernel
[computing with values](guide/values.md).
"""


def page(pictures: list[Path]) -> str:
    """The text of the page; `pictures` are the memory maps that there are."""
    lines, values = [HEAD], with_values()
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
        written = values.get(re.sub("_(manual|auto)$", "", path.stem))
        lines += ["With values:", "", "```python", written, "```", ""] if written else []
    return "\n".join(lines).rstrip() + "\n"


def with_values() -> dict[str, str]:
    """The first kernel of each example that computes with values, by the file it stands for."""
    text = (EXAMPLES / "value_style.py").read_text("utf-8")
    tree = ast.parse(text)
    files = {alias.asname: alias.name for node in tree.body if isinstance(node, ast.Import)
             for alias in node.names}  # fmt: skip
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    table = next(node.value for node in tree.body if isinstance(node, ast.Assign)
                 and isinstance(node.value, ast.Dict))  # fmt: skip
    found: dict[str, str] = {}
    for key, cases in zip(table.keys, table.values, strict=True):
        assert isinstance(key, ast.Name)
        named = [n.id for n in ast.walk(cases) if isinstance(n, ast.Name)]
        if isinstance(cases, ast.Call):  # a helper picks the cases
            named += [n.id for n in ast.walk(functions[named[0]]) if isinstance(n, ast.Name)]
        file = next(files[name] for name in named if name in files)
        kernel = functions[key.id]
        first = min(node.lineno for node in (kernel, *kernel.decorator_list))
        source = "\n".join(text.splitlines()[first - 1 : kernel.end_lineno])
        found.setdefault(file, source)
    return found


__all__ = ["page"]
