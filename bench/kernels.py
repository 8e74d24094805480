"""Whole kernels on the simulator, against plain NumPy doing the same tile steps.

    python bench/kernels.py

Flash attention (S=1024, D=64, 128x128 tiles) and GEMM (512^3, f16, 128x128x64 tiles), lowered path,
all default checks on. The kernels are those of examples/.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import flash_attention as fa
from gemm import gemm

from ptokit import float32, half

ROUNDS = 5


def best(call: Callable[[], object]) -> float:
    """Milliseconds of the best round."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times) * 1e3


def bench_gemm() -> tuple[float, float]:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 512, 512)).astype(np.float16)
    c = np.zeros((512, 512), np.float32)
    consts = {"kind": half, "acc_kind": float32, "tile": (128, 128, 64)}

    def ours() -> None:
        gemm[1](a, b, c, target="a5", path="lowered", **consts)

    def numpy_tiles() -> None:
        out = np.zeros((512, 512), np.float32)
        for m in range(0, 512, 128):
            for n in range(0, 512, 128):
                acc = np.zeros((128, 128), np.float32)
                for k in range(0, 512, 64):
                    left = a[m : m + 128, k : k + 64].astype(np.float32)
                    acc += left @ b[k : k + 64, n : n + 128].astype(np.float32)
                out[m : m + 128, n : n + 128] = acc

    ours()
    assert np.allclose(c, a.astype("f4") @ b.astype("f4"), rtol=1e-3, atol=1e-2)
    return best(ours), best(numpy_tiles)


def bench_attention() -> tuple[float, float]:
    args = fa.inputs(np.random.default_rng(0), 1024, 128)
    q, k, v = args[:3]
    consts = {"scale": 0.125, "causal": False, "tile": 128}

    def ours() -> None:
        fa.flash_attention[1](*args, target="a5", path="lowered", **consts)

    def numpy_tiles() -> None:
        out = np.zeros((1024, 64), np.float32)
        for i in range(0, 1024, 128):
            top = np.full((128, 1), -1e30, np.float32)
            norm = np.zeros((128, 1), np.float32)
            total = np.zeros((128, 64), np.float32)
            left = q[i : i + 128].astype(np.float32)
            for j in range(0, 1024, 128):
                s = left @ k[j : j + 128].astype(np.float32).T * np.float32(0.125)
                new = np.maximum(top, s.max(axis=1, keepdims=True))
                s = np.exp(s - new)
                drop = np.exp(top - new)
                norm = norm * drop + s.sum(axis=1, keepdims=True)
                p = s.astype(np.float16).astype(np.float32)
                total = total * drop + p @ v[j : j + 128].astype(np.float32)
                top = new
            out[i : i + 128] = total / norm

    ours()
    return best(ours), best(numpy_tiles)


def main() -> None:
    print(f"{'kernel':<44}{'ptokit ms':>10}{'numpy ms':>10}{'ratio':>8}")
    for name, bench in (
        ("GEMM 512^3 f16, 128x128x64 tiles", bench_gemm),
        ("flash attention S=1024 D=64, 128x128 tiles", bench_attention),
    ):
        ours, theirs = bench()
        print(f"{name:<44}{ours:>10.1f}{theirs:>10.1f}{ours / theirs:>8.2f}")


if __name__ == "__main__":
    main()
