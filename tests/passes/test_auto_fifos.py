"""Auto mode on a cluster: tiles lie beside the slots of FIFOs, and pushes and pops are ordered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import Kernel
from ptokit.from_text import loads
from tests.passes import fifo_kernels as k

WAYS = [("a2a3", "plain"), ("a2a3", "both"), ("a5", "plain"), ("a5", "both"), ("a5", "gm")]
KERNELS = {
    k.one_way: lambda a, b: a @ b + 1,
    k.as_popped: lambda a, b: a @ b,
    k.there_and_back: lambda a, b: (a @ b + 1) @ b,
}


def arguments() -> list[Any]:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-2, 3, (n, 64)).astype(np.float16) for n in (32, 64))
    rings = np.zeros(1 << 13, np.float32), np.zeros(1 << 13, np.float16)
    return [a, b, *rings, np.zeros((32, 64), np.float32)]


def wanted(kernel: Kernel, args: list[Any]) -> np.ndarray:
    return KERNELS[kernel](*(x.astype(np.float64) for x in args[:2]))


# Every way with both addresses and both paths; every kernel with all pairs of these.
RUNS = [
    (kernel, *way, (0, 0x3000)[(n + m + turn) % 2], ("eager", "lowered")[turn])
    for n, kernel in enumerate(KERNELS)
    for m, way in enumerate(WAYS)
    for turn in range(2)
]


@pytest.mark.parametrize(("kernel", "target", "flavour", "at", "path"), RUNS)
def test_every_schedule_gives_the_result(
    kernel: Kernel, target: str, flavour: str, at: int, path: str
) -> None:
    args = arguments()
    kernel[1](*args, target=target, path=path, check="explore", flavour=flavour, at=at)
    np.testing.assert_array_equal(args[-1], wanted(kernel, args))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
@pytest.mark.parametrize(("target", "flavour"), WAYS)
def test_the_text_of_it_runs(kernel: Kernel, target: str, flavour: str) -> None:
    args = arguments()
    program = loads(kernel.text(*args, target=target, flavour=flavour, at=0))
    program.entry()[1](*args, target=target)
    np.testing.assert_array_equal(args[-1], wanted(kernel, args))


@pytest.mark.parametrize(("target", "flavour"), WAYS)
def test_tiles_lie_beside_the_slots(target: str, flavour: str) -> None:
    """Wherever the slots are put, no placed tile of UB or L1 shares a byte with them."""
    for at in (0, 0x400, 0x3000):
        placed = k.there_and_back.memory_map(
            *arguments(), target=target, flavour=flavour, at=at
        ).tiles
        slots = {
            "UB": range(at, at + 2 * 8192),
            "L1": range(at, at + 2 * (8192 if flavour == "both" else 4096)),
        }
        near = [p for p in placed if p.memory in slots]
        assert near
        for each in near:
            taken = slots[each.memory]
            assert each.start + each.nbytes <= taken.start or each.start >= taken.stop


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_one_core_that_plays_both_parts_is_ordered_across_sections(target: str, path: str) -> None:
    a, b, *_, y = arguments()
    work = np.zeros_like(y)
    k.both_parts[1](a, b, work, y, target=target, path=path, check="explore")
    np.testing.assert_array_equal(y, a.astype(np.float64) @ b.astype(np.float64) + 1)
