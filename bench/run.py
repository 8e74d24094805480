"""Speed of the simulator, as what it costs over the plain NumPy call a user would write instead.

    python bench/run.py            print the table
    python bench/run.py --json     print it as JSON

Every pair is measured in one run, interleaved, and the best of several rounds counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from ptokit import *

ROUNDS, IMPORTS = 7, 5


@dataclass(frozen=True)
class Row:
    """One comparison, in microseconds per call."""

    what: str
    ptokit_us: float
    numpy_us: float

    @property
    def overhead_us(self) -> float:
        return self.ptokit_us - self.numpy_us


def best(call: Callable[[], object], repeat: int) -> float:
    """Microseconds per call in the best round."""
    fastest = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(repeat):
            call()
        fastest = min(fastest, time.perf_counter() - started)
    return fastest / repeat * 1e6


def compare(what: str, ours: Callable[[], object], theirs: Callable[[], object], n: int) -> Row:
    return Row(what, best(ours, n), best(theirs, n))


def tadd(size: int) -> Row:
    TileT = Tile[TileType.Vec, float32, size, size]
    a, b = TileT(), TileT()
    TASSIGN[0](a)
    TASSIGN[size * size * 4](b)
    a.fill(1)
    b.fill(2)
    x, y, z = (np.ones((size, size), np.float32) for _ in range(3))
    repeat = 20_000 if size <= 16 else 5_000
    return compare(
        f"TADD {size}x{size} f32", lambda: TADD(b, a, b), lambda: np.add(x, y, out=z), repeat
    )


def tload() -> Row:
    tile = Tile[TileType.Vec, float32, 128, 128]()
    TASSIGN[0](tile)
    x, z = np.ones((128, 128), np.float32), np.zeros((128, 128), np.float32)
    view = GlobalTensor(x)
    return compare("TLOAD 128x128 f32", lambda: TLOAD(tile, view), lambda: np.copyto(z, x), 5_000)


def tmatmul() -> Row:
    a, b, acc = (
        TileLeft[half, 128, 128](),
        TileRight[half, 128, 128](),
        TileAcc[float32, 128, 128](),
    )
    for tile in (a, b, acc):
        TASSIGN[0](tile)
    a.fill(1)
    b.fill(1)
    x = np.ones((128, 128), np.float32)
    z = np.zeros_like(x)
    return compare(
        "TMATMUL 128x128x128 f16", lambda: TMATMUL(acc, a, b), lambda: np.matmul(x, x, out=z), 300
    )


def import_seconds() -> float:
    """Time of `import ptokit` in a fresh interpreter with compiled modules, best of some."""
    code = "import time; t = time.perf_counter(); import ptokit; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", code]
        runs = [
            float(subprocess.run(command, capture_output=True, text=True, env=env).stdout)
            for _ in range(IMPORTS + 1)
        ]
    return min(runs[1:])  # the first one compiles


def main() -> None:
    with device("a2a3", check=False):
        rows = [tadd(16), tadd(128), tload(), tmatmul()]
    imported = import_seconds()
    if "--json" in sys.argv:
        print(json.dumps({"rows": [asdict(r) for r in rows], "import_s": imported}))
        return
    print(f"{'instruction':<26}{'ptokit us':>10}{'numpy us':>10}{'overhead us':>13}")
    for row in rows:
        print(f"{row.what:<26}{row.ptokit_us:>10.2f}{row.numpy_us:>10.2f}{row.overhead_us:>13.2f}")
    print(f"import ptokit: {imported:.3f} s")


if __name__ == "__main__":
    main()
