"""Layouts: where the lanes of a vector lie in registers, and that nothing is lost on the way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ptokit.isa.micro.layouts import Layout
from tests.micro.programs import run, scope


def naive(text: str, lanes: int, size: int) -> list[tuple[int, int]]:
    """The register and the place of each lane, by filling registers one by one."""
    words = dict(w.split(" = ") if " = " in w else (w, "1") for w in text.split(", "))
    per, stride = 256 // size, int(words.get("lane_stride", 1))
    if "num_groups" in words:
        slots = int(words["slots"])
        return [(n // slots, n % slots) for n in range(lanes)]
    factor = int(words.get("deinterleaved") or words.get("block_deinterleaved") or 1)
    block = per // 8 if "block_deinterleaved" in words else 1
    channels: list[list[int]] = [[] for _ in range(factor)]
    for lane in range(lanes):
        channels[lane // block % factor].append(lane)
    found: dict[int, tuple[int, int]] = {}
    first = 0
    for channel in channels:
        places = [n * stride for n in range(len(channel))]
        for lane, place in zip(channel, places, strict=True):
            found[lane] = first + place // per, place % per
        first += places[-1] // per + 1 if places else 0
    return [found[lane] for lane in range(lanes)]


MASK = "!pto.vmi.mask<64xb32, #pto.vmi.layout<contiguous>>"
LAYOUTS = [
    "contiguous",
    "contiguous, lane_stride = 2",
    "deinterleaved = 2",
    "deinterleaved = 4",
    "deinterleaved = 2, lane_stride = 2",
    "block_deinterleaved = 2",
    "block_deinterleaved = 4",
]


CASES = list(product(LAYOUTS, (8, 100, 256), (1, 2, 4)))


@pytest.mark.parametrize(("text", "lanes", "size"), CASES)
def test_lanes_lie_where_the_layout_says(text: str, lanes: int, size: int) -> None:
    registers, numbers = Layout.parse(f"#pto.vmi.layout<{text}>").places(lanes, size)
    assert list(zip(registers.tolist(), numbers.tolist(), strict=True)) == naive(text, lanes, size)


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_groups_lie_in_slots(slots: int) -> None:
    text = f"num_groups = 10, slots = {slots}"
    registers, numbers = Layout.parse(f"#pto.vmi.layout<{text}>").places(10, 4)
    assert list(zip(registers.tolist(), numbers.tolist(), strict=True)) == naive(text, 10, 4)


@pytest.mark.parametrize("text", LAYOUTS)
def test_registers_and_back(text: str) -> None:
    """The first register holds what the layout puts there; packed, the vector is as it was."""
    lanes = 96
    places = naive(text, lanes, 4)
    count = max(register for register, _ in places) + 1
    spread = f"!pto.vmi.vreg<{lanes}xf32, #pto.vmi.layout<{text}>>"
    parts = ", ".join(f"%p{n}" for n in range(count))
    types = ", ".join(["!pto.vreg<64xf32>"] * count)
    body = f"""%v = pto.vmi.load %x[%c0] : !pto.ptr<f32, ub> -> {spread}
{parts} = "pto.vmi.unpack"(%v) : ({spread}) -> ({types})
%m = pto.vmi.create_mask %c1 : index -> {MASK}
%lone = "pto.vmi.unpack"(%m) : ({MASK}) -> !pto.mask<b32>
pto.vsts %p{count - 1}, %out[%far], %lone : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
%w = "pto.vmi.pack"({parts}) : ({types}) -> {spread}
pto.vmi.store %w, %out[%c0] : {spread}, !pto.ptr<f32, ub>"""
    more = "%c1 = arith.constant 1 : index\n%far = arith.constant 128 : index"
    x, out = np.arange(1, lanes + 1, dtype=np.float32), np.zeros(192, np.float32)
    run(scope(body, "x:f32", "f32", more), x, out=out)
    assert (out[:lanes] == x).all()
    assert out[128] == x[places.index((count - 1, 0))]
