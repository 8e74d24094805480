"""How long the second launch of a kernel waits for its compiled code: compiled anew, and cached.

    python bench/compiling.py           words choose kernels: `gemm`, `fifty`

For each kernel a process with an empty cache and one that finds what the first has left. Printed
are the tile operations that the kernel is written in, the functions of the library that they come
to, and milliseconds of processor time in which these are compiled and loaded, the best of some
rounds; then the same for 50 tile operations. Goals: 20 ms for 50 tile operations, 2 ms from the
cache. Examples have few operations; `fifty` has that many, of forty kinds.
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

import numpy as np

from ptokit import *

ROUNDS = 3
EXAMPLES = ("vector_add", "softmax", "layer_norm", "gelu", "gemm", "flash_attention", "conv")
FIFTY = "fifty"
FOLDER = Path(__file__).resolve().parent.parent / "examples"
ROWS, COLS = 16, 64

Block, Line = Tile[TileType.Vec, float32, ROWS, COLS], Tile[TileType.Vec, float32, 1, COLS]
Column, Flat = (
    Tile[TileType.Vec, float32, ROWS, 1, BLayout.ColMajor],
    Tile[TileType.Vec, float32, 1, ROWS],
)
Short = Tile[TileType.Vec, half, ROWS, COLS]


@kernel(mode="auto")
def fifty(x, y, gamma, beta, out, short) -> None:
    """A layer norm, a gate, a softmax, a step of Adam and a conversion, for one tile."""
    a, b, c, d, scratch = Block(), Block(), Block(), Block(), Block()
    mean, spread, flat, flat_spread = Column(), Column(), Flat(), Flat()
    scale, shift, best = Line(), Line(), Line()
    narrow = Short()
    TLOAD(scale, GlobalTensor(gamma))
    TLOAD(shift, GlobalTensor(beta))
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(y))
    TROWSUM(mean, a, scratch)  # layer norm
    TRESHAPE(flat, mean)
    TMULS(flat, flat, 1.0 / COLS)
    TROWEXPANDSUB(a, a, mean)
    TMUL(c, a, a)
    TROWSUM(spread, c, scratch)
    TRESHAPE(flat_spread, spread)
    TMULS(flat_spread, flat_spread, 1.0 / COLS)
    TADDS(flat_spread, flat_spread, 1e-5)
    TSQRT(flat_spread, flat_spread)
    TROWEXPANDDIV(a, a, spread)
    TCOLEXPANDMUL(a, a, scale)
    TCOLEXPANDADD(a, a, shift)
    TMULS(c, a, -1.702)  # a gate, whose range is cut
    TEXP(c, c)
    TADDS(c, c, 1.0)
    TDIV(c, a, c)
    TMINS(c, c, 6.0)
    TMAXS(c, c, -6.0)
    TRELU(d, b)
    TMUL(c, c, d)
    TADD(c, c, a)
    TROWMAX(mean, c, scratch)  # a softmax of rows
    TROWEXPANDSUB(c, c, mean)
    TEXP(c, c)
    TROWSUM(spread, c, scratch)
    TROWEXPANDDIV(c, c, spread)
    TCOLMAX(best, c)  # and what is the most in each column
    TCOLEXPANDSUB(d, c, best)
    TNEG(d, d)
    TABS(b, b)
    TLOG(b, b)
    TSUB(b, c, b)
    TMULS(a, a, 0.9)  # a step of Adam
    TMULS(b, b, 0.1)
    TADD(a, a, b)
    TMUL(b, b, b)
    TADDS(b, b, 1e-8)
    TRSQRT(b, b)
    TMUL(a, a, b)
    TMAX(a, a, d)
    TMIN(a, a, c)
    TSUBS(a, a, 0.5)
    TCVT(narrow, a, RoundMode.CAST_RINT)
    TSTORE(GlobalTensor(out), a)
    TSTORE(GlobalTensor(short), narrow)


def given(name: str) -> tuple[Any, list[Any], dict[str, Any]]:
    """A kernel with its arguments and constants."""
    rng = np.random.default_rng(0)
    if name == FIFTY:
        tiles = rng.standard_normal((2, ROWS, COLS)).astype(np.float32)
        lines = rng.standard_normal((2, 1, COLS)).astype(np.float32)
        outs = np.zeros((ROWS, COLS), np.float32), np.zeros((ROWS, COLS), np.float16)
        return fifty, [*tiles, *lines, *outs], {}
    sys.path.insert(0, str(FOLDER))
    case = import_module(name).CASES[0]
    return case.kernel, list(case.inputs(rng)), case.consts


def operations(name: str) -> int:
    """How many tile operations a kernel is written in."""
    run, arguments, consts = given(name)
    ops = run.lower(*arguments, **consts).walk()
    insns = (op.insn for op in ops if op.insn is not None)
    return sum(not (insn.orders or insn.binds) for insn in insns)


def measured(name: str) -> tuple[int, float]:
    """The functions that a repetition wants, and the seconds until they are there."""
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
    run, arguments, consts = given(name)
    for _ in range(2):
        run[1](*arguments, **consts)
    return asked, taken


def in_a_process(name: str, cache: str) -> tuple[int, float]:
    command = [sys.executable, __file__, "--one", name]
    out = subprocess.run(
        command, env={**os.environ, "PTOKIT_CACHE": cache}, check=True, capture_output=True
    )
    count, seconds = json.loads(out.stdout)
    return count, seconds


def main(names: list[str]) -> None:
    print(f"{'':20}operations  functions    cold  cached (ms)  for 50: cold  cached")
    for name in names or [*EXAMPLES, FIFTY]:
        cold = warm = float("inf")
        count, written = 0, operations(name)
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as cache:
                count, taken = in_a_process(name, cache)
                cold = min(cold, taken)
                warm = min(warm, in_a_process(name, cache)[1])
        cells = f"{name:20}{written:10}{count:11}{cold * 1e3:8.1f}{warm * 1e3:8.1f}"
        print(f"{cells}{cold * 5e4 / written:18.1f}{warm * 5e4 / written:8.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(sys.argv[2])))
    else:
        main(sys.argv[1:])
