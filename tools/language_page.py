"""`docs/guide/language.md`: the Python that a kernel may use, from the table that the tests run."""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the table lies beside the tests that run it

from tests.frontend.constructs import CONSTRUCTS, Construct  # noqa: E402

HEAD = """# The Python of a kernel

A kernel takes two paths. *Eager*, it is the Python function that it looks like: anything that
Python can do between instructions, it can do. *Lowered* (`path="lowered"`, `text`, `cpp`,
`check`), it is interpreted once: what is known then is computed then, and what is known only when
the kernel runs - numbers among its arguments, block indices, elements read from tiles and memory
- becomes operations. Arguments after `*` are known; so are shapes of arrays.

What this page lists as running gives the same bytes on both paths and from its own text. The rest
is refused when it is lowered, at its line, under the code given. Page and tests are made of one
table (`tests/frontend/constructs.py`).

* Run-time integers have 64 bits. A run-time float that comes from memory or from the caller is an
  f32 and stays one, as NumPy's float32 does; what Python computes of integers and literals is a
  double, rounded once where an instruction takes it.
* A variable that is first assigned inside a run-time loop or branch is gone after it; assign it
  before.
* A loop over a range stays a loop, also when its length is known. Where its body needs the
  variable at compile time - for a type, a text, an index into a list of numbers - the rounds are
  written out, at most 1024 of them.
* Functions of yours are interpreted wherever they are defined. Functions of libraries run while
  the kernel is lowered, and so see known values only.
* Arrays, numbers, and tuples and dataclasses of them are arguments. Numbers in them are run-time
  values; texts, types and enumerations specialise the kernel. A kernel does not change them.
* `k[6]`, `k[2, 3]` and `k[1, 2, 3]` launch six blocks. The device numbers blocks in one
  dimension: `row, col = divmod(get_block_idx(), 3)`.
"""


def page() -> str:
    """The text of the page."""
    lines = [HEAD]
    for chapter in dict.fromkeys(each.chapter for each in CONSTRUCTS.values()):
        mine = [each for each in CONSTRUCTS.values() if each.chapter == chapter]
        lines += [f"## {chapter}", "", "| | eager | lowered |", "|---|---|---|"]
        lines += [f"| {each.says} | {_eager(each)} | {_lowered(each)} |" for each in mine]
        shown = next(each for each in mine if not each.refused)
        lines += [
            "",
            f"For example, {_clause(shown.says)}:",
            "",
            "```python",
            _source(shown),
            "```",
        ]
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def _eager(each: Construct) -> str:
    return {"": "runs", "-": "as Python does"}.get(each.eager, f"`{each.eager}`")


def _lowered(each: Construct) -> str:
    return f"`{each.refused}`" if each.refused else "runs"


def _clause(says: str) -> str:
    return says if says.startswith("`") else says[0].lower() + says[1:]


def _source(each: Construct) -> str:
    lines = textwrap.dedent(inspect.getsource(each.kernel.function)).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(lines[start:])
