"""The two kernels of kernels.py once more, for the interpreter of Triton (on the CPU, over NumPy).

Import it only where `torch` and `triton` are installed; neither is needed for anything else.
Same tiles and steps as the NumPy versions there, no masks (all sizes divide), one program per tile
of the result. As Triton users write it, attention keeps its scores out of global memory.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is decorated

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def block(start, rows: tl.constexpr, first, cols: tl.constexpr, stride):
    """Offsets of a tile of a row-major matrix."""
    row, col = start + tl.arange(0, rows), first + tl.arange(0, cols)
    return row[:, None] * stride + col[None, :]


@triton.jit
def gemm_kernel(a, b, c, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    m, n = tl.program_id(0) * TM, tl.program_id(1) * TN
    acc = tl.zeros((TM, TN), tl.float32)
    for k in range(0, K, TK):
        left = tl.load(a + block(m, TM, k, TK, K))
        acc = tl.dot(left, tl.load(b + block(k, TK, n, TN, N)), acc)
    tl.store(c + block(m, TM, n, TN, N), acc)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, T: tl.constexpr, D: tl.constexpr):
    i = tl.program_id(0) * T
    left = tl.load(q + block(i, T, 0, D, D))
    top = tl.full((T,), -1.0e30, tl.float32)
    norm = tl.zeros((T,), tl.float32)
    total = tl.zeros((T, D), tl.float32)
    for j in range(0, length, T):
        scores = tl.dot(left, tl.trans(tl.load(k + block(j, T, 0, D, D)))) * scale
        new_top = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - new_top[:, None])
        drop = tl.exp(top - new_top)
        norm = norm * drop + tl.sum(weights, 1)
        values = tl.load(v + block(j, T, 0, D, D))
        total = tl.dot(weights.to(tl.float16), values, total * drop[:, None])
        top = new_top
    tl.store(out + block(i, T, 0, D, D), total / norm[:, None])


def gemm(a: np.ndarray, b: np.ndarray, tile: tuple[int, int, int]) -> np.ndarray:
    (M, K), N = a.shape, b.shape[1]
    c = torch.zeros((M, N), dtype=torch.float32)
    TM, TN, TK = tile
    gemm_kernel[M // TM, N // TN](*map(torch.from_numpy, (a, b)), c, N, K, TM, TN, TK)
    return c.numpy()


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, tile: int) -> np.ndarray:
    length, D = q.shape
    out = torch.zeros((length, D), dtype=torch.float32)
    tensors = map(torch.from_numpy, (q, k, v))
    attention_kernel[(length // tile,)](*tensors, out, length, scale, tile, D)
    return out.numpy()
