"""Time from a Python kernel of 500 instructions to a verified, placed and synchronised module.

python bench/lowering.py        goal: under 150 ms
"""

from __future__ import annotations

import tempfile
import time
from importlib import util
from pathlib import Path

import numpy as np

from ptokit.ir.core import Op

HEAD = """
from ptokit import *

T = Tile[TileType.Vec, float32, 8, 64]


@kernel(mode="auto")
def big(x, y):
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, b, c, d = T(), T(), T(), T()
"""
STEPS = (
    "    TLOAD(a, gx[0:8, :])",
    "    TLOAD(b, gx[8:16, :])",
    "    TADD(c, a, b)",
    "    TMULS(d, c, 2.0)",
    "    TSTORE(gy[0:8, :], d)",
)
ROUNDS, INSTRUCTIONS = 5, 500


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.py"
        path.write_text(HEAD + "\n".join(STEPS * (INSTRUCTIONS // len(STEPS))) + "\n")
        spec = util.spec_from_file_location("big", path)
        assert spec is not None
        assert spec.loader is not None
        module = util.module_from_spec(spec)
        x, y = np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
        times = []
        for _ in range(ROUNDS):
            spec.loader.exec_module(module)  # a kernel that has not been lowered yet
            started = time.perf_counter()
            lowered = module.big.lower(x, y, target="a2a3")
            times.append(time.perf_counter() - started)
        ops: list[Op] = [op for op in lowered.walk() if op.insn is not None]
        print(f"{len(ops)} instructions lowered, verified and placed in {min(times) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
