"""How long the second launch of a kernel waits for its compiled code: compiled anew, and cached.

    python bench/compiling.py

For each example a process with an empty cache and one that finds what the first has left. Printed
are milliseconds of processor time in which functions are compiled and loaded, the best of some
rounds, and how many functions that is; goals: 20 ms for 50 tile operations, 2 ms from the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

ROUNDS = 3
EXAMPLES = ("vector_add", "softmax", "layer_norm", "gelu", "gemm", "flash_attention", "conv")
FOLDER = Path(__file__).resolve().parent.parent / "examples"


def measured(name: str) -> tuple[int, float]:
    """The functions that a repetition wants, and the seconds until they are there."""
    sys.path.insert(0, str(FOLDER))
    import numpy as np

    from ptokit.engines.compiled.host import Host

    asked, taken = 0, 0.0
    addresses = Host.addresses

    def timed(self: Host, texts: Any, **how: Any) -> list[int]:
        nonlocal asked, taken
        started = process_time()
        found = addresses(self, texts, **how)
        asked, taken = asked + len(texts), taken + process_time() - started
        return found

    Host.addresses = timed
    case = import_module(name).CASES[0]
    arguments = case.inputs(np.random.default_rng(0))
    for _ in range(2):
        case.kernel[1](*arguments, **getattr(case, "consts", {}))
    return asked, taken


def in_a_process(name: str, cache: str) -> tuple[int, float]:
    command = [sys.executable, __file__, name]
    out = subprocess.run(
        command, env={**os.environ, "PTOKIT_CACHE": cache}, check=True, capture_output=True
    )
    count, seconds = json.loads(out.stdout)
    return count, seconds


def main() -> None:
    print(f"{'':20}functions    cold  cached  (ms)")
    for name in EXAMPLES:
        cold = warm = float("inf")
        count = 0
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as cache:
                count, taken = in_a_process(name, cache)
                cold = min(cold, taken)
                warm = min(warm, in_a_process(name, cache)[1])
        print(f"{name:20}{count:9}{cold * 1e3:8.1f}{warm * 1e3:8.1f}")


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(measured(sys.argv[1])))
    else:
        main()
