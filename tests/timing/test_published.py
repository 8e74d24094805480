"""Published kernels on the simulator, and what the model says of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.timing.model import Model

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import timing as bench  # noqa: E402
from published import conv2d, flash_attention, gemm, topk  # noqa: E402


def run(case: Any, rng: np.random.Generator, fill: int) -> tuple[Any, ...]:
    for array in case.args[:fill]:
        array[...] = rng.integers(-3, 4, array.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the order of vector steps is that of the published code
        case.kernel[case.blocks](*case.args, target="a2a3", **case.consts)
    return case.args


def test_gemm_is_right() -> None:
    a, bt, c = run(gemm.case(2, m=128, k=512, n=512), np.random.default_rng(0), 2)
    assert (c == a.astype("f4") @ bt.astype("f4").T).all()


def test_attention_is_right() -> None:
    rng = np.random.default_rng(0)
    args = flash_attention.arrays(128, 1024, 128)
    for array in args[:3]:
        array[...] = rng.standard_normal(array.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flash_attention.flash_attention[1](*args, target="a2a3")
    q, k, v = (each.astype(np.float64) for each in args[:3])
    scores = np.exp(q @ k.T / np.sqrt(128))
    assert np.allclose(args[-1], scores @ v / scores.sum(axis=1, keepdims=True), atol=2e-3)


def test_topk_is_right() -> None:
    case = topk.case(1, rows=4)
    x = case.args[0]
    x[...] = np.random.default_rng(0).standard_normal(x.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.kernel[1](*case.args, target="a2a3", **case.consts)
    order = np.argsort(-x[:, : topk.COLS], axis=1, kind="stable")[:, : topk.BEST]
    assert (case.args[3] == order).all()


def test_convolution_takes_every_path() -> None:
    """The shapes of a small one; its bytes are those of the unrolled product."""
    case = conv2d.case(4, m=1536, k=288, n=256)
    x, weights, y = run(case, np.random.default_rng(0), 2)
    images, groups, height, width, c0 = x.shape
    padded = np.pad(x.astype("f8"), ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))
    w = weights.reshape(groups, 3, 3, -1, c0).astype("f8")
    total = np.zeros((images, height, width, w.shape[3]))
    for i in range(3):
        for j in range(3):
            part = padded[:, :, i : i + height, j : j + width]
            total += np.einsum("nghwc,goc->nhwo", part, w[:, i, j])
    assert np.array_equal(y, total.reshape(y.shape).astype(y.dtype))


@pytest.mark.parametrize(
    ("words", "least", "most"),
    [
        ("gemm --cores 24 --m 3072 --k 3072 --n 3072", 190, 225),
        ("flash_attention --s0 128 --s1 1024 --head 128", 17, 22),
    ],
)
def test_predict_prints_one_line(words: str, least: float, most: float) -> None:
    call = [sys.executable, str(ROOT / "bench/timing.py"), "predict", *words.split()]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert least < found["us"] < most
    assert found["us"] > found["roofline_us"]
    assert {"us", "busy", "roofline_us", "validated"} <= found.keys()
    assert all(0 < share <= 100 for share in found["busy"].values())


# What is published of each kernel: microseconds, and how much of them its pipes work, in percent.
PUBLISHED: list[tuple[str, str, dict[str, int], float, dict[str, float]]] = [
    ("gemm", "a2a3", {"m": 3072, "k": 3072, "n": 3072}, 206.7,
     {"M": 79.0, "MTE1": 62.0, "MTE2": 90.9, "FIX": 5.8}),
    ("gemm", "a2a3", {"m": 6144, "k": 6144, "n": 6144}, 1506.0,
     {"M": 86.7, "MTE1": 68.1, "MTE2": 95.2, "FIX": 3.1}),
    ("conv2d", "a2a3", {"m": 6144, "k": 4608, "n": 6144}, 1097.9,
     {"M": 90.8, "MTE1": 61.1, "MTE2": 80.4, "FIX": 2.1}),
    ("flash_attention", "a2a3", {"s0": 128, "s1": 1024}, 19.2, {}),
    ("flash_attention", "a2a3", {"s0": 128, "s1": 8192}, 68.8, {}),
    ("topk", "a2a3", {"rows": 4800}, 324.1, {"V": 94.0, "MTE2": 12.0, "MTE3": 10.0}),
    ("matmul_mxfp8", "a5", {"m": 6144, "k": 6144, "n": 6144}, 602.0,
     {"M": 91.6, "MTE1": 57.3, "MTE2": 98.2, "FIX": 3.5}),
    ("matmul_mxfp4", "a5", {"m": 2048, "k": 8192, "n": 8192}, 348.9, {}),
]  # fmt: skip


@pytest.mark.slow
def test_the_model_is_as_far_off_as_the_guide_says() -> None:
    """Every figure that was fitted, the goals they are to meet, and a roofline beside them."""
    guide = (ROOT / "docs/guide/timing.md").read_text()
    table = [line for line in guide.splitlines() if line.startswith("|") and " us |" in line]
    points: list[float] = []
    products: list[tuple[float, float]] = []
    for kernel, target, size, us, busy in PUBLISHED:
        found = bench.timed(kernel, target, None, **size)
        off = 100 * (found.us / us - 1)
        (line,) = [each for each in table if f"{us:g}" in each]
        documented = [float(each) for each in re.findall(r"([+-]?\d+\.\d) %", line)]
        assert min(abs(off - each) for each in documented) < 0.1, (kernel, size, off)
        points += [abs(100 * found.busy[pipe] - share) for pipe, share in busy.items()]
        assert found.validated
        assert abs(off) < (10 if kernel == "flash_attention" else 5)
        if "m" in size:
            products.append((abs(off), 100 * abs(found.roofline_us / us - 1)))
    assert np.median(points) <= 3
    assert max(points) <= 8
    ours, rooflines = np.mean(products, axis=0)
    assert ours <= rooflines / 2


@pytest.mark.parametrize(
    ("kernel", "target", "size"),
    [
        ("gemm", "a5", {"m": 1000, "k": 500, "n": 300}),
        ("conv2d", "a2a3", {"m": 700, "k": 300, "n": 500}),
        ("flash_attention", "a2a3", {"s0": 300, "s1": 700, "head": 64}),
        ("topk", "a2a3", {"rows": 50}),
        ("matmul_mxfp8", "a5", {"m": 100, "k": 700, "n": 900}),
        ("matmul_mxfp4", "a5", {"m": 100, "k": 700, "n": 900}),
    ],
)
def test_kernels_of_any_size_are_predicted(kernel: str, target: str, size: dict[str, int]) -> None:
    found = bench.timed(kernel, target, 8, **size)
    assert found.roofline_us < found.us < 100
    more = {name: 4 * n if name not in ("head",) else n for name, n in size.items()}
    assert bench.timed(kernel, target, 8, **more).us > found.us


@pytest.mark.parametrize("cluster", [False, True])
def test_blocks_that_repeat_each_other_are_timed_as_if_all_had_run(cluster: bool) -> None:
    if cluster:
        case = flash_attention.case(4, s0=512, s1=1024)
    else:
        case = gemm.case(4, m=512, k=1024, n=512)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once = case.kernel.time(case.blocks, case.args, target="a2a3", **case.consts)
        options = {**case.consts, "data": True, "check": False}
        whole = case.kernel.time(case.blocks, case.args, target="a2a3", **options)
    lists = {id(core.items) for block in once.streams.blocks for core in block.cores}
    assert len(lists) == (3 if cluster else 1)  # one block was walked, the others repeat it
    assert {core.weight for core in once.outcome.cores} == {4}
    assert once.cycles == whole.cycles
    for one, other in zip(once.streams.blocks, whole.streams.blocks, strict=True):
        for mine, its in zip(one.cores, other.cores, strict=True):
            assert mine.place == its.place
            assert mine.regions == its.regions
            assert len(mine.items) == len(its.items)


def test_a_whole_chip_is_quick() -> None:
    """By the time of this process: whole launches, and the events that the model follows."""
    case = gemm.case(24, m=6144, k=6144, n=6144)
    began = time.process_time()
    found = case.kernel.time(case.blocks, case.args, target="a2a3", **case.consts)
    walked = time.process_time()
    Model(found.streams, found.params, 24).run()
    ended = time.process_time()
    assert walked - began < 10
    assert found.streams.events / (walked - began) >= 100_000
    followed = sum(len(core.stream.items) for core in found.outcome.cores)
    assert followed / (ended - walked) >= 100_000
