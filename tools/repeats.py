"""Whether launches of public programs that are repeated as compiled code leave the same bytes.

python tools/repeats.py DIR [--seconds N] [--table]

Every kernel in the `.pto` files of a folder is launched on random inputs with `engine="stepwise"`,
and three times as usual on the same inputs: executed and noted, repeated, repeated. Printed is how
many were repeated, how many of these had instructions that run as their body, and each whose bytes
differ from those of the steps; `--table` prints a line for every kernel. Kernels that take longer
than N seconds, or are wrong with all inputs that are drawn for them, take no part.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ptokit.base.diagnostics import ProgramError, PtoError, PtoWarning
from ptokit.engines.compiled.replay import Replay
from ptokit.folders.inputs import attempts, is_misled
from ptokit.from_text import Program, load_parts
from ptokit.kernels import Kernel

sys.path.insert(0, str(Path(__file__).resolve().parent))
from journal import TimeUp, limited

DIFFERS, ALONE = "differs", "compiled"
TIMES = 3


def arrays(values: list[Any]) -> list[np.ndarray]:
    return [value for value in values if isinstance(value, np.ndarray)]


def repeated(kernel: Kernel, program: Program) -> str:
    """What becomes of a kernel."""
    options = {"rules": "release"}
    for within, make in attempts(program.launchable, kernel.function, 0, {}):
        wanted = make()
        try:
            kernel[1](*wanted, engine="stepwise", **options)
        except ProgramError as error:
            if is_misled(error, kernel.function, within):
                continue
            return "wrong"
        for _ in range(TIMES):
            found = make()
            run = kernel[1](*found, **options)
            if any(each.code == "poison-store" for each in run.warnings):
                return "stores what nothing has written"
            pairs = zip(arrays(wanted), arrays(found), strict=True)
            if any(a.tobytes() != b.tobytes() for a, b in pairs):
                return DIFFERS
        return how(kernel)
    return "wrong"


def how(kernel: Kernel) -> str:
    """How the last launch of a kernel came about."""
    known = next(iter(kernel.programs.memory.replays), None)
    if not isinstance(known, Replay):
        return "not repeated"
    if known.in_vain:
        return "not repeated: values made a difference"
    return f"with {', '.join(sorted(known.bodies))}" if known.bodies else ALONE


def outcomes(folder: Path, seconds: float) -> Iterator[tuple[str, str]]:
    """Every kernel of a folder, and what became of it."""
    for path in sorted(folder.rglob("*.pto")):
        try:
            parts = list(load_parts(path).values())
        except PtoError:
            continue
        for program in parts:
            for name in program.kernels:
                try:
                    with limited(seconds):
                        found = repeated(program[name], program)
                except TimeUp:
                    found = "too long"
                except PtoError as error:
                    found = f"refused: {type(error).__name__}"
                except Exception as error:  # a fault of ours is a line like any other
                    found = f"bug: {error!r}"
                yield f"{path.relative_to(folder)}: {name}", found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    kinds: Counter[str] = Counter()
    with warnings.catch_warnings(action="ignore", category=PtoWarning):
        for name, found in outcomes(given.folder, given.seconds):
            kinds[found] += 1
            if given.table or found == DIFFERS or found.startswith("bug"):
                print(f"{found:24}{name}", flush=True)
    for kind, number in kinds.most_common():
        print(f"{number:6} {kind}")
    return int(DIFFERS in kinds)


if __name__ == "__main__":
    sys.exit(main())
