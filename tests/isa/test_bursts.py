"""Transfers whose tile and view do not agree, against the bursts of the specification.

The expected bytes are computed here burst by burst, from the sentences about sizes that differ:
rows come from the view, their length from the tile, and the two generations of devices differ in
the distance of bursts in global memory.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.base.dtypes import dtype
from ptokit.base.layout import Array
from ptokit.base.tensors import GlobalSpec
from ptokit.frontend.session import current
from ptokit.frontend.tensor_types import global_class
from ptokit.machine.faults import OutOfBounds
from tests.operands import make

COUNTS_GAPS = ("a2a3", "kirinx90")  # the others step through global memory as the view does
AT = 4096  # where the tile lies


def up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def cut(size: int, unit: int) -> int:
    return size // unit * unit


Burst = tuple[int, int, int]  # byte in the tile, element in global memory, number of elements


def bursts(
    target: str, loc: str, tile: tuple[int, int], valid: tuple[int, int], view: Any, is_load: bool
) -> list[Burst]:
    """The pieces that move between a tile of the arrangement of its view and that view."""
    size = view.dtype.itemsize
    unit = 32 // size
    (s0, s1, s2, s3, s4), (t0, t1, t2, t3, t4) = view.shape, view.stride
    (rows, cols), (vr, vc) = tile, valid
    old = target in COUNTS_GAPS
    found: list[Burst] = []
    if view.layout == Layout.NZ:
        pitch = t1
        if old and (loc == "Mat" or not is_load):
            pitch = t1 - s2 * s3 * s4 + vr * s4
        for i, j in product(range(s0), range(s1)):
            found.append(((i * s1 + j) * rows * 32, i * t0 + j * pitch, vr * s4))
        return found
    if view.layout == Layout.ND:
        count, length, step, room, moved = s3, s4, t3, cols, vc
        gap_of = room - moved
    else:
        count, length, step, room, moved = s4, s3, t4, rows, vr
        gap_of = room - (length if loc == "Vec" else moved)
    gap, pitch, apart = step - length, step, room * size
    if old:
        if loc == "Mat" and target == "a2a3":
            apart = cut(moved, unit) * size + cut(gap_of, unit) * size
            gap = gap if moved == length else cut(gap, unit)
            moved = cut(moved, unit)
        else:
            apart = up(moved * size, 32) + cut(gap_of * size, 32)
        pitch = moved + gap
    for i, j, k in product(range(s0), range(s1), range(s2)):
        start = ((i * s1 + j) * s2 + k) * count * room * size
        for n in range(count):
            found.append((start + n * apart, i * t0 + j * t1 + k * t2 + n * pitch, moved))
    return found


@st.composite
def differing(draw: Any) -> tuple[Any, ...]:
    """A target, an element type, a tile with its valid sizes, and a view of other sizes."""
    target = draw(st.sampled_from(["a2a3", "a5", "kirin9030", "kirinx90"]))
    kind = draw(st.sampled_from(["i8", "f16", "f32"]))
    layout = draw(st.sampled_from(["ND", "DN", "NZ"]))
    unit = 32 // dtype(kind).itemsize
    loc = draw(st.sampled_from(["Vec", "Mat"])) if layout != "NZ" and target == "a2a3" else "Vec"
    outer = draw(st.tuples(*[st.integers(0, 2)] * 3))
    if layout == "NZ":
        rows, cols = 16 * draw(st.integers(1, 3)), unit * draw(st.integers(1, 3))
        valid = draw(st.integers(0, rows)), draw(st.integers(0, cols))
        high = draw(st.integers(0, 3))
        shape = (draw(st.integers(0, 2)), draw(st.integers(0, 3)), high, 16, unit)
        pitch = max(high * 16, rows) * unit + draw(st.integers(0, 40))
        stride = (shape[1] * pitch + 3, pitch, 16 * unit, unit, 1)
    else:
        long = unit * draw(st.integers(2 if loc == "Mat" else 1, 3))
        lines = draw(st.integers(2 if loc == "Mat" else 1, 6))
        valid_length, valid_lines = draw(st.integers(0, long)), draw(st.integers(0, lines))
        count, length = draw(st.integers(0, 5)), draw(st.integers(0, long))
        step = max(length, valid_length) + draw(st.integers(0, 9))
        t2 = count * step + draw(st.integers(0, 9))
        t1 = outer[2] * t2 + draw(st.integers(0, 9))
        t0 = outer[1] * t1
        if layout == "ND":
            rows, cols, valid = lines, long, (valid_lines, valid_length)
            shape, stride = (*outer, count, length), (t0, t1, t2, step, 1)
        else:
            rows, cols, valid = long, lines, (valid_length, valid_lines)
            shape, stride = (*outer, length, count), (t0, t1, t2, 1, step)
    view = GlobalSpec.of(dtype(kind), shape, stride, Layout[layout])
    return target, loc, (rows, cols), valid, view


def both_sides(loc: str, tile: Any, valid: Any, view: GlobalSpec) -> tuple[Any, Array, Any]:
    """A tile whose memory is full of known bytes, and a view of an array of others."""
    text = f"{loc} {view.dtype.name} {tile[0]}x{tile[1]} {view.layout.name} valid ?x?"
    made = make(text, AT)
    made.SetValidShape(*valid)
    rng = np.random.default_rng(11)
    memory = made.storage
    memory.data[:] = rng.integers(0, 256, memory.nbytes, np.uint8)
    memory.shadow[:] = 1
    array = rng.integers(0, 256, 20_000 * view.dtype.itemsize, np.uint8).view(view.dtype.np)
    return made, array, global_class(view)(array)


@settings(max_examples=150, deadline=None)
@given(differing())
def test_loads_move_the_bursts_of_the_sentence(case: tuple[Any, ...]) -> None:
    target, loc, tile, valid, view = case
    size = view.dtype.itemsize
    with device(target, rules="release"):
        made, array, tensor = both_sides(loc, tile, valid, view)
        memory = made.storage
        expected, known = memory.data.copy(), memory.shadow.copy()
        source = array.view(np.uint8)
        for place, start, count in bursts(target, loc, tile, valid, view, is_load=True):
            piece = source[start * size : (start + count) * size]
            expected[AT + place : AT + place + count * size] = piece
            # What follows to the end of the block is whatever the pad rule says: not looked at.
            end = AT + place + up(count * size, 32)
            if view.layout != Layout.NZ:
                known[AT + place + count * size : end] = 0
        TLOAD(made, tensor)
        assert (memory.data == expected)[known == 1].all()


@settings(max_examples=150, deadline=None)
@given(differing())
def test_stores_move_the_bursts_of_the_sentence(case: tuple[Any, ...]) -> None:
    target, loc, tile, valid, view = case
    size = view.dtype.itemsize
    with device(target):
        made, array, tensor = both_sides(loc, tile, valid, view)
        expected = array.view(np.uint8).copy()
        for place, start, count in bursts(target, loc, tile, valid, view, is_load=False):
            piece = made.storage.data[AT + place : AT + place + count * size]
            expected[start * size : (start + count) * size] = piece
        TSTORE(tensor, made)
        assert (array.view(np.uint8) == expected).all()


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90"])
@pytest.mark.parametrize(("view", "box"), [("ND", "NZ"), ("DN", "ZN"), ("DN", "NZ")])
@pytest.mark.parametrize("shape", [(20, 40), (48, 20), (1, 1)])
def test_boxes_take_their_sizes_from_the_view(
    target: str, view: str, box: str, shape: tuple[int, int]
) -> None:
    """A2/A3: both of them. A5: the lines from the view, of each the valid part of the tile."""
    if (view, box) == ("DN", "NZ") and target != "a5":
        return  # no such load
    valid = (24, 30)
    with device(target):
        tile = make(f"Mat f16 64x64 {box} valid ?x?", AT)
        tile.SetValidShape(*valid)
        steps = (80, 1) if view == "ND" else (1, 70)
        spec = GlobalSpec.of(dtype("f16"), (1, 1, 1, *shape), (0, 0, 0, *steps), Layout[view])
        values = np.random.default_rng(3).integers(1, 1 << 16, 70 * 80, np.uint16)
        TLOAD(tile, global_class(spec)(values.view(np.float16)))
        rows, cols = shape
        if target not in COUNTS_GAPS:
            rows, cols = (valid[0], cols) if box == "ZN" else (rows, valid[1])
        boxes = tile.storage.data[AT : AT + 8192].view(np.uint16)
        defined = tile.storage.shadow[AT : AT + 8192].view(np.uint16) != 0
        r, c = np.indices((64, 64))
        block, line, at = (c // 16, r, c % 16) if box == "NZ" else (r // 16, c, r % 16)
        place = block * 64 * 16 + line * 16 + at
        there = r * 80 + c if view == "ND" else c * 70 + r
        inside = (r < rows) & (c < cols)
        assert (boxes[place[inside]] == values[there[inside]]).all()
        end = (r < rows) & (c < up(cols, 16)) if box == "NZ" else (r < up(rows, 16)) & (c < cols)
        assert (boxes[place[end & ~inside]] == 0).all()
        assert not defined[place[~end]].any()


def test_a_transfer_ends_with_its_memory() -> None:
    """Rows behind the tile are other tiles' bytes; behind the memory there is nothing."""
    with device("a2a3") as machine:
        last = current().core.memory(TileType.Vec).nbytes - 2 * 64
        tile = make("Vec f32 2x16", last)
        TLOAD(tile, make("GM f32 2x16"))
        assert not machine.warnings
        with pytest.raises(OutOfBounds):
            TLOAD(tile, make("GM f32 3x16"))


# ---- accumulators ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "view", "step"),
    [
        # Where element (r, c) goes, and how many columns share a block.
        ("a2a3", "GM f32 16x16 ND", lambda r, c: r * 16 + c),
        ("a2a3", "GM f16 16x32 NZ", lambda r, c: c // 16 * 16 * 16 + r * 16 + c % 16),
        ("a2a3", "GM f16 1x2x2x8x16 NC1HWC0", lambda r, c: c // 16 * 256 + r * 16 + c % 16),
        ("a5", "GM f32 16x16 ND", lambda r, c: r * 16 + c),
        ("a5", "GM f32 1x1x2x8x24 NHWC", lambda r, c: r * 24 + c),
        ("a5", "GM f32 1x1x24x2x8 NCHW", lambda r, c: c * 16 + r),
        ("a5", "GM f32 1x24x1x2x8 NCDHW", lambda r, c: c * 16 + r),
    ],
)
@pytest.mark.parametrize("valid", [(13, 32), (20, 16), (16, 48), (5, 27), (0, 32)])
def test_an_accumulator_is_stored_by_its_valid_size(
    target: str, view: str, step: Any, valid: tuple[int, int]
) -> None:
    """The view only gives the distances."""
    if valid[0] > 16 and view.endswith(("NCHW", "NCDHW")):
        return  # columns would overlap, in no order that anybody states
    with device(target):
        acc = make("Acc f32 32x48 valid ?x?")
        acc.SetValidShape(*valid)
        values = np.arange(32 * 48, dtype=np.float32).reshape(32, 48)
        for r, c in np.ndindex(32, 48):
            place = (c // 16 * 32 * 16 + r * 16 + c % 16) * 4
            acc.storage.data[place : place + 4].view(np.float32)[0] = values[r, c]
        acc.storage.shadow[:] = 1
        spec = make(view).spec
        array = np.full(4096, -1, spec.dtype.np)
        expected = array.copy()
        for r, c in np.ndindex(*valid):
            expected[step(r, c)] = values[r, c]
        TSTORE(global_class(spec)(array), acc)
        assert (array == expected).all()


def test_an_accumulator_narrower_than_its_nd_view_is_not_stored() -> None:
    with device("a2a3") as machine:
        acc = make("Acc f32 16x32 valid 16x16")
        acc.storage.shadow[:] = 1
        array = np.full((16, 24), -1, np.float32)
        TSTORE(GlobalTensor(array), acc)
        assert (array == -1).all()
        assert {w.code for w in machine.warnings} == {"PA-0048"}
