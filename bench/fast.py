"""Repeated launches against what a user would write instead: the NumPy call, and our own steps.

    python bench/fast.py            print the table
    python bench/fast.py --json     print it as JSON

All ways to a result are measured in one run, in interleaved rounds, on one thread; the best round
counts, and every result is compared with the definition in float64. `first` is the launch that is
executed step by step with all checks, `steps` one whose verdict is known, `again` the repetition;
`threads` the repetition on two threads, of launches with several blocks.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import flash_attention as fa
from gemm import gemm
from softmax import softmax

from ptokit import *
from ptokit.engines.compiled.host import host
from ptokit.kernels import Kernel

ROUNDS = 9
Ways = dict[str, Callable[[], np.ndarray]]


@kernel(mode="auto")
def chain(x, y, *, side):
    """Four operations on square tiles, one after the other over a matrix."""
    Square = Tile[TileType.Vec, float32, side, side]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, b = Square(), Square()
    for row in range(0, x.shape[0], side):
        for col in range(0, x.shape[1], side):
            TLOAD(a, gx[row : row + side, col : col + side])
            TMULS(b, a, 0.5)
            TADD(a, a, b)
            TRELU(b, a)
            TADDS(a, b, 1.0)
            TSTORE(gy[row : row + side, col : col + side], a)


@kernel(mode="auto")
def banded(x, y):
    """Softmax of the rows of a block."""
    Rows = Tile[TileType.Vec, float32, 32, 128]
    Column = Tile[TileType.Vec, float32, 32, 1, BLayout.ColMajor]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, scratch, column = Rows(), Rows(), Column()
    rows = x.shape[0] // get_block_num()
    for row in range(get_block_idx() * rows, (get_block_idx() + 1) * rows, 32):
        TLOAD(a, gx[row : row + 32, :])
        TROWMAX(column, a, scratch)
        TROWEXPANDSUB(a, a, column)
        TEXP(a, a)
        TROWSUM(column, a, scratch)
        TROWEXPANDDIV(a, a, column)
        TSTORE(gy[row : row + 32, :], a)


def launches(kernel: Kernel, out: np.ndarray, *args: Any, blocks: int = 1, **consts: Any) -> Ways:
    """The same launch, step by step and repeated."""

    def run(engine: str, jobs: int = 1) -> np.ndarray:
        kernel[blocks](*args, out, target="a5", path="lowered", engine=engine, jobs=jobs, **consts)
        return out

    ways: Ways = {"steps": lambda: run("stepwise"), "again": lambda: run("fast")}
    return ways | ({"threads": lambda: run("fast", 2)} if blocks > 1 else {})


def gemm_ways(size: int, element: Any, tile: tuple[int, int, int]) -> tuple[Ways, np.ndarray]:
    rng = np.random.default_rng(0)
    ours, exact = element.np, element is int8
    if exact:
        a, b = rng.integers(-8, 8, (2, size, size)).astype(ours)
    else:
        a, b = rng.standard_normal((2, size, size)).astype(ours)
    out = np.zeros((size, size), np.int32 if exact else np.float32)
    kinds = {"kind": element, "acc_kind": int32 if exact else float32, "tile": tile}
    ways = launches(gemm, out, a, b, **kinds)
    ways["numpy"] = lambda: a.astype(np.float32) @ b.astype(np.float32)
    return ways, a.astype(np.float64) @ b.astype(np.float64)


def softmax_ways(rows: int, blocks: int = 1) -> tuple[Ways, np.ndarray]:
    x = np.random.default_rng(1).standard_normal((rows, 128)).astype(np.float32) * 3

    def plain(values: np.ndarray) -> np.ndarray:
        e = np.exp(values - values.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    of = softmax if blocks == 1 else banded
    ways = launches(of, np.zeros_like(x), x, blocks=blocks)
    ways["numpy"] = lambda: plain(x)
    return ways, plain(x.astype(np.float64))


def chain_ways(size: int, side: int) -> tuple[Ways, np.ndarray]:
    x = np.random.default_rng(2).standard_normal((size, size)).astype(np.float32)
    ways = launches(chain, np.zeros_like(x), x, side=side)
    ways["numpy"] = lambda: np.maximum(x + x * np.float32(0.5), 0) + np.float32(1)
    return ways, np.maximum(x.astype(np.float64) * 1.5, 0) + 1


def attention_ways(length: int) -> tuple[Ways, np.ndarray]:
    *args, out = fa.inputs(np.random.default_rng(0), length, 128)
    q, k, v = (each.astype(np.float32) for each in args[:3])
    consts = {"scale": 0.125, "causal": False, "tile": 128}

    def plain() -> np.ndarray:
        s = q @ k.T * np.float32(0.125)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        return (p / p.sum(axis=1, keepdims=True)) @ v

    ways = launches(fa.flash_attention, out, *args, **consts)
    ways["numpy"] = plain
    return ways, fa.attention(causal=False)(*args[:3])[0]


def rows() -> dict[str, tuple[Ways, np.ndarray]]:
    """Everything that is measured."""
    found = {
        f"gemm {size} {element.name}, tiles {m}x{n}x{k}": gemm_ways(size, element, (m, n, k))
        for size, element, (m, n, k) in (
            (512, half, (128, 128, 64)),
            (512, half, (64, 64, 32)),
            (512, float32, (64, 64, 32)),
            (512, bfloat16, (128, 128, 64)),
            (512, int8, (128, 128, 64)),
            (1024, half, (128, 128, 64)),
        )
    }
    found["softmax 1024x128"] = softmax_ways(1024)
    found["softmax 16384x128, 16 blocks"] = softmax_ways(16384, 16)
    found |= {f"chain 512, tiles {side}x{side}": chain_ways(512, side) for side in (16, 64, 128)}
    found["attention 1024x64 f16"] = attention_ways(1024)
    return found


def measure(ways: Ways, expected: np.ndarray) -> dict[str, float]:
    """Microseconds of each way in its best round."""
    started = time.perf_counter()
    ways["again"]()
    first = time.perf_counter() - started
    for name, call in ways.items():
        np.testing.assert_allclose(call(), expected, rtol=1e-2, atol=1e-2, err_msg=name)
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, call in ways.items():
            started = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - started)
    return {"first": first * 1e6} | {name: seconds * 1e6 for name, seconds in best.items()}


def main() -> None:
    table = {name: measure(*each) for name, each in rows().items()}
    if "--json" in sys.argv:
        print(json.dumps(table, indent=1))
        return
    found = host()
    print(f"{found.processor if found else 'no compiler'}; microseconds, one thread\n")
    heads = (f"{head:>10}" for head in ("first", "steps", "again", "numpy"))
    print(f"{'':34}{''.join(heads)}{'x numpy':>9}{'x steps':>9}{'2 threads':>11}")
    for name, us in table.items():
        columns = "".join(f"{us[way]:10.0f}" for way in ("first", "steps", "again", "numpy"))
        ratios = us["again"] / us["numpy"], us["steps"] / us["again"]
        gain = f"{us['again'] / us['threads']:10.2f}x" if "threads" in us else ""
        print(f"{name:34}{columns}{ratios[0]:9.2f}{ratios[1]:9.1f}{gain}")


if __name__ == "__main__":
    main()
