"""Whole kernels: what the checks cost, and how we compare with NumPy and Triton's interpreter.

    python bench/kernels.py     goals: NumPy's time x 3, checks on/off <= 3, Triton's time / 5

Flash attention (S=1024, D=64, 128x128 tiles) and GEMM (512^3, f16, 128x128x64 tiles), lowered path
with all checks. NumPy does the same tile steps, the trips of attention through its workspace
included; Triton keeps those tiles to itself. All run on one thread; every result is compared with
the definition in float64; rounds are interleaved and the best one counts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# On a busy machine the threads of a product of tiles wait for each other many times as long as the
# product takes: all would measure the waiting.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import flash_attention as fa
from gemm import gemm

from ptokit import float32, half

ROUNDS = 15
SIDE, LENGTH = 512, 1024  # of the matrices, of the sequence
MOST_FOR_CHECKS, MOST_TO_NUMPY, LEAST_TO_TRITON = 3, 3, 5

# The ways to the same result, by name, and that result.
Ways = dict[str, Callable[[], np.ndarray]]


def gemm_ways(triton: Any) -> tuple[Ways, np.ndarray]:
    a, b = np.random.default_rng(0).standard_normal((2, SIDE, SIDE)).astype(np.float16)
    tile = (128, 128, 64)
    consts = {"kind": half, "acc_kind": float32, "tile": tile}

    def ours(check: bool) -> np.ndarray:
        c = np.zeros((SIDE, SIDE), np.float32)
        gemm[1](a, b, c, target="a5", path="lowered", check=check, **consts)
        return c

    def numpy_tiles() -> np.ndarray:
        out = np.zeros((SIDE, SIDE), np.float32)
        for m in range(0, SIDE, 128):
            for n in range(0, SIDE, 128):
                acc = np.zeros((128, 128), np.float32)
                for k in range(0, SIDE, 64):
                    left = a[m : m + 128, k : k + 64].astype(np.float32)
                    acc += left @ b[k : k + 64, n : n + 128].astype(np.float32)
                out[m : m + 128, n : n + 128] = acc
        return out

    ways: Ways = {"on": partial(ours, True), "off": partial(ours, False), "numpy": numpy_tiles}
    if triton:
        ways["triton"] = partial(triton.gemm, a, b, tile)
    return ways, a.astype(np.float64) @ b.astype(np.float64)


def attention_ways(triton: Any) -> tuple[Ways, np.ndarray]:
    *args, _ = fa.inputs(np.random.default_rng(0), LENGTH, 128)
    q, k, v = args[:3]
    consts = {"scale": 0.125, "causal": False, "tile": 128}

    def ours(check: bool) -> np.ndarray:
        out = np.zeros((LENGTH, 64), np.float32)
        fa.flash_attention[1](*args, out, target="a5", path="lowered", check=check, **consts)
        return out

    def numpy_tiles() -> np.ndarray:
        out = np.zeros((LENGTH, 64), np.float32)
        work_s, work_p = np.zeros((128, 128), np.float32), np.zeros((128, 128), np.float16)
        work_o = np.zeros((128, 64), np.float32)
        for i in range(0, LENGTH, 128):
            top = np.full((128, 1), -1e30, np.float32)
            norm = np.zeros((128, 1), np.float32)
            total = np.zeros((128, 64), np.float32)
            left = q[i : i + 128].astype(np.float32)
            for j in range(0, LENGTH, 128):
                work_s[...] = left @ k[j : j + 128].astype(np.float32).T
                s = work_s * np.float32(0.125)
                new = np.maximum(top, s.max(axis=1, keepdims=True))
                s -= new
                np.exp(s, out=s)
                drop = np.exp(top - new)
                norm = norm * drop + s.sum(axis=1, keepdims=True)
                work_p[...] = s
                work_o[...] = work_p.astype(np.float32) @ v[j : j + 128].astype(np.float32)
                total *= drop
                total += work_o
                top = new
            out[i : i + 128] = total / norm
        return out

    ways: Ways = {"on": partial(ours, True), "off": partial(ours, False), "numpy": numpy_tiles}
    if triton:
        ways["triton"] = partial(triton.attention, q, k, v, 0.125, 128)
    return ways, fa.attention(causal=False)(q, k, v)[0]


def measure(ways: Ways, expected: np.ndarray) -> dict[str, float]:
    """Milliseconds of each way in its best round."""
    for name, call in ways.items():  # also leaves lowering, done once, out of the times
        np.testing.assert_allclose(call(), expected, rtol=1e-3, atol=2e-4, err_msg=name)
    fastest = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, call in ways.items():
            started = time.perf_counter()
            call()
            fastest[name] = min(fastest[name], (time.perf_counter() - started) * 1e3)
    return fastest


def main() -> None:
    triton = None
    if find_spec("torch") and find_spec("triton"):
        import triton_kernels as triton
    head = f"{'kernel':<29}{'ptokit ms':>10}{'unchecked ms':>14}{'on/off':>8}{'numpy ms':>10}"
    print(head + f"{'ratio':>7}" + (f"{'triton ms':>11}{'faster':>8}" if triton else ""))
    costs, ratios, gains = [], [], []
    for name, ways in (
        (f"GEMM {SIDE}^3 f16", gemm_ways),
        (f"flash attention S={LENGTH} D=64", attention_ways),
    ):
        ms = measure(*ways(triton))
        on, off, plain = ms["on"], ms["off"], ms["numpy"]
        costs.append(on / off)
        ratios.append(on / plain)
        row = f"{name:<29}{on:>10.1f}{off:>14.1f}{on / off:>8.2f}{plain:>10.1f}{on / plain:>7.2f}"
        if triton:
            gains.append(ms["triton"] / on)
            row += f"{ms['triton']:>11.1f}{gains[-1]:>7.1f}x"
        print(row)
    met = {True: "met", False: "MISSED"}
    print(f"goal: ratio to NumPy <= {MOST_TO_NUMPY}: {met[max(ratios) <= MOST_TO_NUMPY]}")
    print(f"goal: on/off <= {MOST_FOR_CHECKS}: {met[max(costs) <= MOST_FOR_CHECKS]}")
    if triton:
        goal = f"goal: {LEAST_TO_TRITON}x faster than the Triton interpreter"
        print(f"{goal}: {met[min(gains) >= LEAST_TO_TRITON]}")
    else:
        print("Triton interpreter: not compared, torch and triton are not both installed")


if __name__ == "__main__":
    main()
