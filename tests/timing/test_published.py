"""Published kernels on the simulator, and what the model says of them."""

from __future__ import annotations

import json
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
