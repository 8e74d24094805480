"""How long a process takes that does little: imports and commands, against `import numpy`.

    python bench/starting.py

Processor time of whole processes, the best of rounds in which all of them take turns.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 9
TEXT = """\
module {
  func.func @add(%x: !pto.partition_tensor_view<16x64xf32>,
                 %z: !pto.partition_tensor_view<16x64xf32>) {
    %a = pto.tload %x : !pto.partition_tensor_view<16x64xf32> -> !pto.tile<16x64xf32>
    %b = pto.tadd %a, %a : (!pto.tile<16x64xf32>, !pto.tile<16x64xf32>) -> !pto.tile<16x64xf32>
    pto.tstore %b, %z : (!pto.tile<16x64xf32>, !pto.partition_tensor_view<16x64xf32>) -> ()
    return
  }
}
"""
PYTHON = """\
from ptokit import *

TileT = Tile[TileType.Vec, float32, 16, 64]

@kernel(mode="auto")
def add(x: float32[16, 64], y: float32[16, 64], z: float32[16, 64]):
    a, b, c = TileT(), TileT(), TileT()
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(y))
    TADD(c, a, b)
    TSTORE(GlobalTensor(z), c)
"""
GOALS = {"import ptokit": 1.5, "--version": 2.0, "check k.pto": 2.0, "check k.py": 2.0}


def seconds(command: list[str], folder: str) -> float:
    """Processor time of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, cwd=folder, env=surroundings, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    python = [sys.executable, "-c"]
    ours = [sys.executable, "-m", "ptokit"]
    commands = {
        "import numpy": [*python, "import numpy"],
        "import ptokit": [*python, "import ptokit"],
        "--version": [*ours, "--version"],
        "check k.pto": [*ours, "check", "k.pto"],
        "check k.py": [*ours, "check", "k.py"],
        "from ptokit import *": [*python, "from ptokit import *"],
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "k.pto").write_text(TEXT)
        Path(folder, "k.py").write_text(PYTHON)
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(ROUNDS):
            for name, command in commands.items():
                best[name] = min(best[name], seconds(command, folder))
    numpy = best["import numpy"]
    for name, taken in best.items():
        goal = f"goal {GOALS[name]:.1f}" if name in GOALS else ""
        print(f"{name:<22} {taken * 1e3:7.0f} ms {taken / numpy:6.2f} x import numpy  {goal}")


if __name__ == "__main__":
    main()
