"""Repeated launches against what a user would write instead: the NumPy call, and our own steps.

    python bench/fast.py            print the table
    python bench/fast.py --json     print it as JSON
    python bench/fast.py --docs     write docs/guide/speed.md, its numbers and its picture

All ways to a result are measured in one run, in interleaved rounds, on one thread; the best call
counts, and every result is compared with the definition in float64. `first` is the launch that is
executed step by step with all checks, `steps` one whose verdict is known, `again` the repetition;
`threads` the repetition on two threads, of launches with several blocks. Where torch is installed,
its functions are a way, too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import conv as cv
import flash_attention as fa
import layer_norm as ln
import topk as tk
from gemm import gemm
from softmax import softmax

from ptokit import *
from ptokit.engines.compiled.host import host
from ptokit.kernels import Kernel

ROUNDS = 9
DOCS = Path(__file__).resolve().parent.parent / "docs/guide"
torch: Any = import_module("torch") if find_spec("torch") else None
if torch is not None:
    torch.set_num_threads(1)
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


@kernel(mode="auto")
def rms_norm(x, gamma, y):
    """x / sqrt(mean(x ** 2) + eps) * gamma, row by row."""
    Rows = Tile[TileType.Vec, float32, 32, 128]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    a, square, scratch = Rows(), Rows(), Rows()
    size, flat = (
        Tile[TileType.Vec, float32, 32, 1, BLayout.ColMajor](),
        Tile[TileType.Vec, float32, 1, 32](),
    )
    scale = Tile[TileType.Vec, float32, 1, 128]()
    TLOAD(scale, GlobalTensor(gamma))
    for row in range(0, x.shape[0], 32):
        TLOAD(a, gx[row : row + 32, :])
        TMUL(square, a, a)
        TROWSUM(size, square, scratch)
        TRESHAPE(flat, size)
        TMULS(flat, flat, 1.0 / 128)
        TADDS(flat, flat, 1e-5)
        TSQRT(flat, flat)
        TROWEXPANDDIV(a, a, size)
        TCOLEXPANDMUL(a, a, scale)
        TSTORE(gy[row : row + 32, :], a)


def launches(kernel: Kernel, out: np.ndarray, *args: Any, blocks: int = 1, **consts: Any) -> Ways:
    """The same launch, step by step and repeated."""

    def run(engine: str, jobs: int = 1) -> np.ndarray:
        kernel[blocks](*args, out, target="a5", engine=engine, jobs=jobs, **consts)
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
    if torch is not None and element in (half, float32):
        left, right = map(torch.from_numpy, (a, b))
        ways["torch"] = lambda: (left @ right).float().numpy()
    return ways, a.astype(np.float64) @ b.astype(np.float64)


def softmax_ways(rows: int, blocks: int = 1) -> tuple[Ways, np.ndarray]:
    x = np.random.default_rng(1).standard_normal((rows, 128)).astype(np.float32) * 3

    def plain(values: np.ndarray) -> np.ndarray:
        e = np.exp(values - values.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    of = softmax if blocks == 1 else banded
    ways = launches(of, np.zeros_like(x), x, blocks=blocks)
    ways["numpy"] = lambda: plain(x)
    if torch is not None:
        given = torch.from_numpy(x)
        ways["torch"] = lambda: torch.softmax(given, 1).numpy()
    return ways, plain(x.astype(np.float64))


def layer_norm_ways(rows: int) -> tuple[Ways, np.ndarray]:
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
    return ways, ln.expected(x, gamma, beta, None)[0]


def rms_norm_ways(rows: int) -> tuple[Ways, np.ndarray]:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((rows, 128)).astype(np.float32)
    gamma = rng.standard_normal((1, 128)).astype(np.float32)

    def plain(values: np.ndarray) -> np.ndarray:
        mean = (values * values).mean(axis=1, keepdims=True)
        return values / np.sqrt(mean + values.dtype.type(1e-5)) * gamma

    ways = launches(rms_norm, np.zeros_like(x), x, gamma)
    ways["numpy"] = lambda: plain(x)
    return ways, plain(x.astype(np.float64))


def topk_ways(rows: int, k: int) -> tuple[Ways, np.ndarray]:
    x = np.random.default_rng(5).standard_normal((rows, tk.COLS)).astype(np.float32)
    values = np.zeros((rows, k), np.float32)
    runs = launches(tk.topk, np.zeros((rows, k), np.uint32), x, values, k=k)

    def kept(run: Callable[[], Any]) -> np.ndarray:
        run()
        return values

    ways: Ways = {name: lambda run=run: kept(run) for name, run in runs.items()}
    plain = tk.expected_for(k)
    ways["numpy"] = lambda: plain(x, None, None)[0]
    if torch is not None:
        given = torch.from_numpy(x)
        ways["torch"] = lambda: torch.topk(given, k, dim=1).values.numpy()
    return ways, plain(x, None, None)[0].astype(np.float64)


def conv_ways() -> tuple[Ways, np.ndarray]:
    x, weights, out = cv.inputs_for(1)(np.random.default_rng(6))
    exact = cv.expected_for(1)
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
    return ways, exact(x, weights, None)[0]


def chain_ways(size: int, side: int) -> tuple[Ways, np.ndarray]:
    x = np.random.default_rng(2).standard_normal((size, size)).astype(np.float32)
    ways = launches(chain, np.zeros_like(x), x, side=side)
    ways["numpy"] = lambda: np.maximum(x + x * np.float32(0.5), 0) + np.float32(1)
    return ways, np.maximum(x.astype(np.float64) * 1.5, 0) + 1


def attention_ways(length: int, causal: bool = False) -> tuple[Ways, np.ndarray]:
    *args, out = fa.inputs(np.random.default_rng(0), length, 128)
    q, k, v = (each.astype(np.float32) for each in args[:3])
    consts = {"scale": 0.125, "causal": causal, "tile": 128}
    seen = np.tri(length, dtype=np.bool_)

    def plain() -> np.ndarray:
        s = q @ k.T * np.float32(0.125)
        if causal:
            s = np.where(seen, s, np.float32(-np.inf))
        p = np.exp(s - s.max(axis=1, keepdims=True))
        return (p / p.sum(axis=1, keepdims=True)) @ v

    ways = launches(fa.flash_attention, out, *args, **consts)
    ways["numpy"] = plain
    if torch is not None:
        heads = [torch.from_numpy(each)[None, None] for each in args[:3]]
        whole = torch.nn.functional.scaled_dot_product_attention
        ways["torch"] = lambda: whole(*heads, is_causal=causal)[0, 0].float().numpy()
    return ways, fa.attention(causal=causal)(*args[:3])[0]


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
            (1024, float32, (128, 128, 64)),
        )
    }
    found["softmax 1024x128"] = softmax_ways(1024)
    found["softmax 16384x128, 16 blocks"] = softmax_ways(16384, 16)
    found |= {f"chain 512, tiles {side}x{side}": chain_ways(512, side) for side in (16, 64, 128)}
    found["layer norm 1024x64"] = layer_norm_ways(1024)
    found["RMS norm 1024x128"] = rms_norm_ways(1024)
    found["top 8 of 512, 64 rows"] = topk_ways(64, 8)
    found["convolution 3x3, stride 1"] = conv_ways()
    for length in (512, 1024, 2048):
        found[f"attention {length}x64 f16"] = attention_ways(length)
    found["attention 1024x64 f16, causal"] = attention_ways(1024, causal=True)
    return found


def measure(ways: Ways, expected: np.ndarray) -> dict[str, float]:
    """Microseconds of each way in its best call."""
    started = time.perf_counter()
    ways["again"]()
    first = time.perf_counter() - started
    for name, call in ways.items():
        np.testing.assert_allclose(call(), expected, rtol=1e-2, atol=1e-2, err_msg=name)
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, call in ways.items():
            # Of one thread, the time it has run: others may want the processor, too.
            clock = time.perf_counter if name == "threads" else time.thread_time
            for _ in range(1 if name == "steps" else 3):  # what came before has used the caches
                started = clock()
                call()
                best[name] = min(best[name], clock() - started)
    return {"first": first * 1e6} | {name: seconds * 1e6 for name, seconds in best.items()}


HEADS = ("first", "steps", "again", "numpy", "torch")


def line(us: Mapping[str, float]) -> list[str]:
    """The cells of a row: microseconds of each way, and how they compare."""
    cells = [f"{us[way]:.0f}" if way in us else "" for way in HEADS]
    cells += [f"{us['again'] / us['numpy']:.2f}", f"{us['steps'] / us['again']:.1f}"]
    return [*cells, f"{us['again'] / us['threads']:.2f}" if "threads" in us else ""]


def picture(table: Mapping[str, Mapping[str, float]]) -> str:
    """The repetition next to the NumPy call, as bars."""
    high, left, unit = 22, 250, 150
    most = max(us["again"] / us["numpy"] for us in table.values())
    width, height = left + unit * max(most, 1) + 70, high * len(table) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width:.0f}" height="{height}" fill="#fff"/>',
    ]
    for row, (name, us) in enumerate(table.items()):
        ratio, top = us["again"] / us["numpy"], high * row
        colour = "#2a7" if ratio <= 1 else "#68b"
        parts += [
            f'<text x="{left - 8}" y="{top + 15}" text-anchor="end">{name}</text>',
            f'<rect x="{left}" y="{top + 3}" width="{unit * ratio:.0f}" height="{high - 6}" '
            f'fill="{colour}"/>',
            f'<text x="{left + unit * ratio + 5:.0f}" y="{top + 15}">{ratio:.2f}</text>',
        ]
    end = high * len(table)
    parts.append(f'<path d="M{left + unit} 0V{end}" stroke="#222" stroke-dasharray="3 3"/>')
    parts.append(f'<text x="{left + unit}" y="{end + 16}" text-anchor="middle">NumPy = 1</text>')
    return "\n".join([*parts, "</svg>", ""])


PAGE = """# How fast launches are

The second launch of a kernel with the same sizes runs as code compiled for the processor; nothing
in the kernel or the call has to change. The table is what `python bench/fast.py --docs` measured on
one thread of a {processor} ({when}): microseconds, all ways in interleaved rounds of one run, the
best call of {rounds} rounds. `first` is a launch that is executed step by step with all checks,
`steps` one whose verdict is known, `again` the repetition, launch included; `numpy` and `torch` are
what one would write instead. `speed.json` has the numbers.

![Repeated launches relative to NumPy](pictures/speed.svg)

{table}

Which instructions are compiled, and what the others lack, `python tools/compiled.py` prints; the
others run as the NumPy code of their record, on the same memory. Sorting is among them.
"""


def documents(table: Mapping[str, Mapping[str, float]]) -> dict[Path, str]:
    """The page about speed, with its numbers and its picture."""
    found = host()
    heads = ["", *HEADS, "x NumPy", "steps / again", "2 threads"]
    rows_ = [[name, *line(us)] for name, us in table.items()]
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows_)]
    page = PAGE.format(
        processor=found.processor if found else "computer without LLVM",
        when=time.strftime("%Y-%m-%d"),
        rounds=ROUNDS,
        table="\n".join(lines),
    )
    return {
        DOCS / "speed.md": page,
        DOCS / "speed.json": json.dumps(table, indent=1) + "\n",
        DOCS / "pictures/speed.svg": picture(table),
    }


def main() -> None:
    table = {name: measure(*each) for name, each in rows().items()}
    if "--json" in sys.argv:
        print(json.dumps(table, indent=1))
        return
    if "--docs" in sys.argv:
        for path, text in documents(table).items():
            path.write_text(text)
        return
    found = host()
    print(f"{found.processor if found else 'no compiler'}; microseconds, one thread\n")
    print(f"{'':34}{''.join(f'{head:>10}' for head in (*HEADS, 'x numpy', 'x steps', '2 thr.'))}")
    for name, us in table.items():
        print(f"{name:34}{''.join(f'{cell:>10}' for cell in line(us))}")


if __name__ == "__main__":
    main()
