"""Execute the notebooks of the documentation, as Jupyter does, and keep what their cells show.

python tools/notebook.py                      execute docs/guide/*.ipynb and write their outputs
python tools/notebook.py --check              fail when an output is stale (the tests do this)
python tools/notebook.py mine.ipynb           others

Cells are executed in one namespace; the last expression of a cell is shown by its `_repr_html_`,
`_repr_svg_` and `repr`. A cell tagged `raises-exception` must raise.
"""

from __future__ import annotations

import ast
import copy
import io
import json
import linecache
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHOWN = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}
UNSTABLE = re.compile(r"\bin \d+\.\d+ ms\b")  # the time that a run took here


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs that its cells have now."""
    found = copy.deepcopy(notebook)
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in found["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        cell["execution_count"] = number
        cell["outputs"] = outputs_of(text_of(cell["source"]), number, names, is_to_raise(cell))
    return found


def text_of(source: str | list[str]) -> str:
    """A text of a notebook, which is stored as a text or as its lines."""
    return source if isinstance(source, str) else "".join(source)


def is_to_raise(cell: dict[str, Any]) -> bool:
    return "raises-exception" in cell["metadata"].get("tags", ())


def outputs_of(
    source: str, number: int, names: dict[str, Any], is_to_raise: bool
) -> list[dict[str, Any]]:
    """Execute one cell; gives what it prints, what it shows and what it raises."""
    name = f"cell_{number}.py"
    lines = f"{source}\n".splitlines(keepends=True)
    linecache.cache[name] = (len(source), None, lines, name)  # kernels are read again
    tree = ast.parse(source, name)
    last = tree.body[-1] if tree.body else None
    value: Any = None
    raised: list[dict[str, Any]] = []
    with redirect_stdout(io.StringIO()) as said:
        try:
            if isinstance(last, ast.Expr):
                tree.body.pop()
                exec(compile(tree, name, "exec", dont_inherit=True), names)
                value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            else:
                exec(compile(tree, name, "exec", dont_inherit=True), names)
        except Exception as error:
            if not is_to_raise:
                raise
            kind, message = type(error).__name__, str(error)
            head = {"output_type": "error", "ename": kind, "evalue": message.splitlines()[0]}
            raised = [{**head, "traceback": f"{kind}: {message}".splitlines()}]
        else:
            if is_to_raise:
                raise AssertionError(f"{name} was to raise an exception")
    shown: list[dict[str, Any]] = []
    if said.getvalue():
        shown.append({"output_type": "stream", "name": "stdout", "text": kept(said.getvalue())})
    if value is not None:
        data = {
            kind: kept(getattr(value, how)()) for kind, how in SHOWN.items() if hasattr(value, how)
        }
        head = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        shown.append({**head, "data": {**data, "text/plain": kept(repr(value))}})
    return shown + raised


def kept(text: str) -> list[str]:
    """A text as a notebook stores it: its lines."""
    return text.splitlines(keepends=True)


def stable(notebook: dict[str, Any]) -> str:
    """The notebook without what differs from run to run."""
    return UNSTABLE.sub("in ... ms", written(notebook))


def written(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    is_check = "--check" in arguments
    given = [Path(each) for each in arguments if each != "--check"]
    stale = 0
    for path in given or sorted((ROOT / "docs/guide").glob("*.ipynb")):
        before = json.loads(path.read_text("utf-8"))
        after = executed(before)
        if stable(before) == stable(after):
            continue
        stale += 1
        if is_check:
            print(f"{path.name} is stale: python tools/notebook.py")
        else:
            path.write_text(written(after), "utf-8")
            print(f"wrote {path.name}")
    return is_check and bool(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
