"""The memory maps of the examples: a picture each, and a page that shows them."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(EXAMPLES))
NOT_EXAMPLES = ("harness", "run_all")
TITLE = """# Where the tiles of the examples lie

`k.memory_map(x, y)` prints it, shows it in a notebook, and `.svg()` is the picture. A column is an
instruction, in program order, with its line; a loop (⟳) is a band over its columns. A tile is pale
while its bytes must be kept, and full from what writes it to the last use of that. Addresses are to
scale, except that nothing is too thin to be seen; the bar at the right is all of the memory.
"""


def pages() -> dict[Path, str]:
    """Path -> contents of the pictures and of their page."""
    files: dict[Path, str] = {}
    lines = [TITLE]
    for path in sorted(EXAMPLES.glob("*.py")):
        if path.stem in NOT_EXAMPLES:
            continue
        for case in import_module(path.stem).CASES:
            target = case.targets[0]
            values = case.inputs(np.random.default_rng(7))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = case.kernel.memory_map(*values, target=target, **case.consts)
            place = ROOT / f"docs/memory/{path.stem}-{case.kernel.name}.svg"
            if place not in files:
                files[place] = found.svg() + "\n"
                lines += [f"## {path.name}: {case.kernel.name} on {target}", ""]
                lines += [f"![{case.kernel.name}](memory/{place.name})", ""]
    files[ROOT / "docs/memory-maps.md"] = "\n".join(lines)
    return files


__all__ = ["pages"]
