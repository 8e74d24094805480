"""What `fast.py` measures: a row is some ways to one result, and that result.

`again` is our launch; `numpy` and, where they are installed, `torch` and `triton` (its interpreter)
are what one would write instead, each on one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import conv as cv
import layer_norm as ln
import layers
import topk as tk
from gemm import gemm
from softmax import softmax

from ptokit import *
from ptokit.kernels import Kernel

torch: Any = import_module("torch") if find_spec("torch") else None
if torch is not None:
    torch.set_num_threads(1)
triton: Any = import_module("triton_kernels") if torch and find_spec("triton") else None

Call = Callable[[], np.ndarray]


class Row(NamedTuple):
    """Something that is measured."""

    ways: Mapping[str, Call]
    expected: np.ndarray


def launches(kernel: Kernel, out: np.ndarray, *args: Any, blocks: int = 1, **consts: Any) -> Any:
    """The same launch, step by step and repeated."""

    def run(engine: str, jobs: int = 1) -> np.ndarray:
        kernel[blocks](*args, out, target="a5", engine=engine, jobs=jobs, **consts)
        return out

    ways = {"again": partial(run, "fast"), "steps": partial(run, "stepwise")}
    return ways | ({"threads": partial(run, "fast", 2)} if blocks > 1 else {})


# ---- products ------------------------------------------------------------------------------------


def product(size: int, kind: Any, tile: tuple[int, int, int], blocks: int = 1) -> Row:
    rng = np.random.default_rng(0)
    exact = kind is int8
    if exact:
        a, b = rng.integers(-8, 8, (2, size, size)).astype(kind.np)
    else:
        a, b = rng.standard_normal((2, size, size), np.float32).astype(kind.np)
    out = np.zeros((size, size), np.int32 if exact else np.float32)
    if blocks > 1:
        ways = launches(layers.product, out, a, b, blocks=blocks, kind=kind, tile=tile)
    else:
        sums = int32 if exact else float32
        ways = launches(gemm, out, a, b, kind=kind, acc_kind=sums, tile=tile)
    ways["numpy"] = lambda: a.astype(np.float32) @ b.astype(np.float32)
    # Its products of half on a processor take a thousand times ours: 2048 is 40 s a call.
    if torch is not None and not exact and not (kind is half and size > 1024):
        of = getattr(torch, {half: "float16", bfloat16: "bfloat16"}.get(kind, "float32"))
        left, right = (torch.from_numpy(each.astype(np.float32)).to(of) for each in (a, b))
        ways["torch"] = lambda: (left @ right).float().numpy()
    if triton is not None and kind is half and size <= 512:
        ways["triton"] = lambda: triton.gemm(a, b, tile)
    return Row(ways, ways["numpy"]())


# ---- rows ----------------------------------------------------------------------------------------


def plain_softmax(values: np.ndarray) -> np.ndarray:
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def soft(rows: int, blocks: int = 1) -> Row:
    x = np.random.default_rng(1).standard_normal((rows, 128)).astype(np.float32) * 3
    of = softmax if blocks == 1 else layers.banded
    ways = launches(of, np.zeros_like(x), x, blocks=blocks)
    ways["numpy"] = lambda: plain_softmax(x)
    if torch is not None:
        given = torch.from_numpy(x)
        ways["torch"] = lambda: torch.softmax(given, 1).numpy()
    return Row(ways, plain_softmax(x.astype(np.float64)))


def layer_norm(rows: int) -> Row:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((rows, ln.COLS)).astype(np.float32) * 2 + 1
    gamma, beta = rng.standard_normal((2, 1, ln.COLS)).astype(np.float32)

    def plain() -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(ln.EPS))
        return centred / spread * gamma + beta

    ways = launches(ln.layer_norm, np.zeros_like(x), x, gamma, beta)
    ways["numpy"] = plain
    if torch is not None:
        given, factor, term = map(torch.from_numpy, (x, gamma[0], beta[0]))
        norm = torch.nn.functional.layer_norm
        ways["torch"] = lambda: norm(given, (ln.COLS,), factor, term, ln.EPS).numpy()
    return Row(ways, ln.expected(x, gamma, beta, None)[0])


def plain_rms_norm(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    mean = (x * x).mean(axis=1, keepdims=True)
    return x / np.sqrt(mean + x.dtype.type(1e-5)) * gamma


def rms_norm(rows: int) -> Row:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((rows, 128)).astype(np.float32)
    gamma = rng.standard_normal((1, 128)).astype(np.float32)
    ways = launches(layers.rms_norm, np.zeros_like(x), x, gamma)
    ways["numpy"] = lambda: plain_rms_norm(x, gamma)
    if torch is not None:
        given, factor = torch.from_numpy(x), torch.from_numpy(gamma[0])
        ways["torch"] = lambda: torch.nn.functional.rms_norm(given, (128,), factor, 1e-5).numpy()
    return Row(ways, plain_rms_norm(x.astype(np.float64), gamma))


def top(rows: int, k: int) -> Row:
    x = np.random.default_rng(5).standard_normal((rows, tk.COLS)).astype(np.float32)
    values = np.zeros((rows, k), np.float32)
    runs = launches(tk.topk, np.zeros((rows, k), np.uint32), x, values, k=k)

    def kept(run: Call) -> np.ndarray:
        run()
        return values

    ways = {name: partial(kept, run) for name, run in runs.items()}
    plain = tk.expected_for(k)
    ways["numpy"] = lambda: plain(x, None, None)[0]
    if torch is not None:
        given = torch.from_numpy(x)
        ways["torch"] = lambda: torch.topk(given, k, dim=1).values.numpy()
    return Row(ways, plain(x, None, None)[0])


def convolution() -> Row:
    x, weights, out = cv.inputs_for(1)(np.random.default_rng(6))
    w = weights.astype(np.float32).reshape(cv.C1, cv.FILTER, cv.FILTER, cv.C0, cv.OUT)

    def plain() -> np.ndarray:
        pads = (0, 0), (cv.PAD, cv.PAD), (cv.PAD, cv.PAD), (0, 0)
        padded = np.pad(x[0].astype(np.float32), pads)
        size = (cv.FILTER, cv.FILTER)
        windows = np.lib.stride_tricks.sliding_window_view(padded, size, axis=(1, 2))
        found = np.tensordot(windows, w, axes=((0, 4, 5, 3), (0, 1, 2, 3)))
        return found.reshape(-1, cv.OUT)

    ways = launches(cv.conv, out, x, weights, stride=1)
    ways["numpy"] = plain
    return Row(ways, cv.expected_for(1)(x, weights, None)[0])


# ---- chains --------------------------------------------------------------------------------------


def chain(size: int, side: int) -> Row:
    x = np.random.default_rng(2).standard_normal((size, size)).astype(np.float32)
    ways = launches(layers.chain, np.zeros_like(x), x, side=side)
    ways["numpy"] = lambda: np.maximum(x + x * np.float32(0.5), 0) + np.float32(1)
    if torch is not None:
        given = torch.from_numpy(x)
        ways["torch"] = lambda: (torch.relu(given + given * 0.5) + 1).numpy()
    return Row(ways, np.maximum(x.astype(np.float64) * 1.5, 0) + 1)


def additions(count: int) -> Row:
    x = np.ones((16, 16), np.float32)

    def plain() -> np.ndarray:
        y = x.copy()
        for _ in range(count):
            np.add(y, x, out=y)
        return y

    ways = launches(layers.sums, np.zeros_like(x), x, count=count)
    ways["numpy"] = plain
    return Row(ways, plain())


# ---- attention -----------------------------------------------------------------------------------


def plain_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """Of heads along the first axis, in the type of the arrays."""
    found = np.empty_like(q)
    for head in range(len(q)):
        s = q[head] @ k[head].T * q.dtype.type(q.shape[-1] ** -0.5)
        if causal:
            s[~np.tri(len(s), dtype=np.bool_)] = -np.inf
        found[head] = plain_softmax(s) @ v[head]
    return found


def attention(length: int, width: int, kind: Any, causal: bool = False, heads: int = 1) -> Row:
    tile = 128 if width == 64 and kind is half else 64
    *args, out = layers.attention_arrays(kind, length, width, tile, heads)
    consts = {"kind": kind, "causal": causal, "tile": tile, "heads": heads}
    ways = launches(layers.attention, out, *args, blocks=heads, **consts)
    apart = [each.reshape(heads, length, width) for each in args[:3]]

    def plain() -> np.ndarray:
        q, k, v = (each.astype(np.float32) for each in apart)
        return plain_attention(q, k, v, causal).reshape(-1, width)

    ways["numpy"] = plain
    if torch is not None:
        whole = torch.nn.functional.scaled_dot_product_attention
        for name in ("torch", "torch f32"):
            of = torch.float32 if name == "torch f32" or kind is float32 else torch.float16
            given = [torch.from_numpy(each).to(of)[None] for each in apart]

            def call(given: Any = given) -> np.ndarray:
                return whole(*given, is_causal=causal)[0].float().numpy().reshape(-1, width)

            ways[name] = call
    is_interpreted = kind is half and not causal and (length, width, heads) == (1024, 64, 1)
    if triton is not None and is_interpreted:
        ways["triton"] = lambda: triton.attention(*args[:3], 0.125, tile)
    return Row(ways, plain())


# ---- a decoder layer -----------------------------------------------------------------------------


def decoder(length: int, width: int, heads: int, hidden: int) -> Row:
    """Attention and a gated layer, each behind a norm and added to what it is given."""
    rng = np.random.default_rng(7)

    def weights(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32) / np.float32(shape[0] ** 0.5)

    size = width // heads
    x = rng.standard_normal((length, width), np.float32)
    gains = [1 + weights(1, width) / 8 for _ in range(2)]
    wq, wk, wv, wo = (weights(width, width) for _ in range(4))
    wg, wu, wd = weights(width, hidden), weights(width, hidden), weights(hidden, width)

    def by_heads(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.reshape(length, heads, size).transpose(1, 0, 2))

    def side_by_side(values: np.ndarray) -> np.ndarray:
        apart = values.reshape(heads, length, size)
        return np.ascontiguousarray(apart.transpose(1, 0, 2)).reshape(length, width)

    def ours(engine: str) -> np.ndarray:
        how: dict[str, Any] = {"target": "a5", "engine": engine}

        def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            c = np.empty((len(a), b.shape[1]), np.float32)
            gemm[1](a, b, c, kind=float32, acc_kind=float32, tile=(128, 128, 64), **how)
            return c

        def norm(values: np.ndarray, gain: np.ndarray) -> np.ndarray:
            found = np.empty_like(values)
            layers.rms_norm[1](values, gain, found, **how)
            return found

        state = x.copy()
        h = norm(state, gains[0])
        *work, found = work_arrays
        flat = [by_heads(times(h, w)).reshape(-1, size) for w in (wq, wk, wv)]
        consts = {"kind": float32, "causal": True, "tile": 64, "heads": heads}
        layers.attention[heads](*flat, *work, found, **consts, **how)
        layers.added[1](times(side_by_side(found), wo), state, **how)
        h = norm(state, gains[1])
        opened = np.empty((length, hidden), np.float32)
        layers.gated[1](times(h, wg), times(h, wu), opened, **how)
        layers.added[1](times(opened, wd), state, **how)
        return state

    work_arrays = layers.attention_arrays(float32, length, size, 64, heads)[3:]

    def plain(kind: Any) -> np.ndarray:
        state, *every = (w.astype(kind) for w in (x, *gains, wq, wk, wv, wo, wg, wu, wd))
        g1, g2, q, k, v, o, gate, up, down = every
        h = plain_rms_norm(state, g1)
        found = plain_attention(*(by_heads(h @ w) for w in (q, k, v)), causal=True)
        state = state + side_by_side(found) @ o
        h = plain_rms_norm(state, g2)
        open_ = h @ gate
        return state + (open_ / (1 + np.exp(-open_)) * (h @ up)) @ down

    ways: dict[str, Call] = {
        "again": partial(ours, "fast"),
        "steps": partial(ours, "stepwise"),
        "numpy": partial(plain, np.float32),
    }
    if torch is not None:
        every = [torch.from_numpy(w) for w in (x, gains[0][0], gains[1][0], wq, wk, wv, wo)]
        every += [torch.from_numpy(w) for w in (wg, wu, wd)]

        def in_torch() -> np.ndarray:
            state, g1, g2, q, k, v, o, gate, up, down = every
            functions = torch.nn.functional
            h = functions.rms_norm(state, (width,), g1, 1e-5)
            three = [(h @ w).view(length, heads, size).transpose(0, 1)[None] for w in (q, k, v)]
            found = functions.scaled_dot_product_attention(*three, is_causal=True)
            state = state + found[0].transpose(0, 1).reshape(length, width) @ o
            h = functions.rms_norm(state, (width,), g2, 1e-5)
            return (state + (functions.silu(h @ gate) * (h @ up)) @ down).numpy()

        ways["torch"] = in_torch
    return Row(ways, plain(np.float64))


# ---- everything ----------------------------------------------------------------------------------

_KINDS = (float32, half, bfloat16, int8)


def _products(whole: bool) -> Iterator[tuple[str, Callable[[], Row]]]:
    chosen = [(size, kind, (128, 128, 64)) for size in (512, 1024, 2048) for kind in _KINDS]
    chosen += [(size, half, (128, 128, 128)) for size in (512, 1024, 2048)]
    chosen += [(4096, float32, (256, 256, 32)), (4096, half, (256, 256, 64))]
    if whole:
        chosen += [(4096, kind, (256, 256, 64)) for kind in (bfloat16, int8)]
    for kind, deep in ((float32, 32), (half, 64)):  # two of each fit into L0
        chosen += [(512, kind, (32, 32, 32)), (1024, kind, (64, 64, 32))]
        chosen.append((1024, kind, (256, 256, deep)))
    for each in chosen:
        yield _name(*each), partial(product, *each)
    tile = (128, 128, 64)
    yield f"{_name(1024, half, tile)}, 8 blocks", partial(product, 1024, half, tile, 8)


def _name(size: int, kind: Any, tile: tuple[int, int, int]) -> str:
    return f"GEMM {size} {kind.name}, tiles {'x'.join(map(str, tile))}"


def _attentions(whole: bool) -> Iterator[tuple[str, Callable[[], Row]]]:
    some = {(1024, 128), (4096, 64), (1024, 64)}
    for length in (512, 1024, 2048, 4096, 8192):
        for width in (64, 128):
            for kind in (half, float32):
                for causal in (False, True):
                    is_usual = width == 64 and kind is half and not causal
                    if not (whole or is_usual or (length, width) in some):
                        continue
                    if length == 4096 and kind is float32 and causal and not whole:
                        continue
                    name = f"attention {length}x{width} {kind.name}{', causal' * causal}"
                    yield name, partial(attention, length, width, kind, causal)
    for length, width in ((512, 64), (1024, 128), (2048, 64)):
        if whole or length < 2048:
            name = f"attention {length}x{width} f16, 32 heads"
            yield name, partial(attention, length, width, half, False, 32)


def rows(whole: bool = False) -> Iterator[tuple[str, Callable[[], Row]]]:
    """What is measured, by name, the longest last; `whole`: also what says least."""
    large = [*_products(whole), *_attentions(whole)]
    is_long = [any(size in name for size in ("4096", "8192", "32 heads")) for name, _ in large]
    yield from (each for each, last in zip(large, is_long, strict=True) if not last)
    yield "softmax 1024x128", partial(soft, 1024)
    yield "softmax 16384x128, 16 blocks", partial(soft, 16384, 16)
    for side in (16, 64, 128):
        yield f"chain 512, tiles {side}x{side}", partial(chain, 512, side)
    yield "4096 x TADD 16x16", partial(additions, 4096)
    yield "layer norm 1024x64", partial(layer_norm, 1024)
    yield "RMS norm 1024x128", partial(rms_norm, 1024)
    yield "top 8 of 512, 64 rows", partial(top, 64, 8)
    yield "convolution 3x3, stride 1", convolution
    yield "decoder layer 256x512, 8 heads", partial(decoder, 256, 512, 8, 1024)
    yield from (each for each, last in zip(large, is_long, strict=True) if last)
