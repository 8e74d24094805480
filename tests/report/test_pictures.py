"""Pictures say what the code does: address maps, rings, pipes, what instructions touch."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ptokit.base.dtypes import dtype
from ptokit.base.enums import BLayout, Direction, Layout, SLayout, TileType
from ptokit.base.tensors import global_axis_map, matrix_shape, matrix_stride
from ptokit.base.tiles import LAYOUT_NAMES, TileSpec
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import Pipe
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.targets import TARGETS
from ptokit.pictures.layouts import layout_svg, tile_layout
from ptokit.report.fifo_svg import entries_svg, ring_svg
from ptokit.report.insn_svg import insn_svg
from ptokit.report.pipes_svg import Way, pipes_svg, ways

SVG = "{http://www.w3.org/2000/svg}"
F32, F16 = dtype("f32"), dtype("f16")


def read(svg: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The boxes with a tip and the words of a picture, with their places."""
    tree = ElementTree.fromstring(svg)
    boxes = [
        {"tip": tip, **{k: float(rect.attrib[k]) for k in ("x", "y", "width", "height")}}
        for rect in tree.iter(f"{SVG}rect")
        if (tip := rect.findtext(f"{SVG}title"))
    ]
    words = [
        {"text": each.text or "", "x": float(each.attrib["x"]), "y": float(each.attrib["y"])}
        for each in tree.iter(f"{SVG}text")
    ]
    return boxes, words


def boxed(layout: str, rows: int, cols: int) -> TileSpec:
    pair = next(pair for pair, name in LAYOUT_NAMES.items() if name == layout)
    return TileSpec.of(TileType.Mat, F32, rows, cols, pair[0], None, None, pair[1])


@pytest.mark.parametrize("layout", ["ND", "DN", "NZ", "ZN", "ZZ", "NN"])
def test_elements_of_one_colour_lie_together_in_memory(layout: str) -> None:
    spec = boxed(layout, 32, 32)
    boxes, words = read(tile_layout(spec))
    offsets = spec.axis_map(32, 32).offsets
    left, top = min(b["x"] for b in boxes), min(b["y"] for b in boxes)
    right = max(b["x"] + b["width"] for b in boxes)
    bottom = max(b["y"] + b["height"] for b in boxes)
    wide, tall = (right - left) / 32, (bottom - top) / 32
    seen = np.zeros((32, 32), int)
    for box in boxes:
        first, last = map(int, re.findall(r"\d+", box["tip"]))
        col, row = round((box["x"] - left) / wide), round((box["y"] - top) / tall)
        cols, rows = round(box["width"] / wide), round(box["height"] / tall)
        part = offsets[row : row + rows, col : col + cols]
        assert ((first <= part) & (part <= last)).all()
        seen[row : row + rows, col : col + cols] += 1
    assert (seen == 1).all()
    inside = [w for w in words if w["text"].isdigit() and top < w["y"] < bottom and w["x"] >= left]
    assert len(inside) >= 4
    for word in inside:  # a number stands in the cell of its element
        row, col = int((word["y"] - top) / tall), int((word["x"] - left) / wide)
        assert offsets[row, col] == int(word["text"])


def test_a_valid_region_is_outlined() -> None:
    spec = TileSpec.of(TileType.Vec, F16, 16, 64, BLayout.RowMajor, 13, 50)
    assert "stroke-dasharray" in tile_layout(spec)
    assert "stroke-dasharray" not in tile_layout(spec.but(valid_row=16, valid_col=64))


def test_large_tiles_are_cut_and_say_so() -> None:
    drawn = tile_layout(TileSpec.of(TileType.Vec, F16, 256, 256))
    assert "the first 128 x 128 elements" in drawn
    assert len(drawn) < 60_000


def test_views_of_global_memory_have_pictures_too() -> None:
    kind = dtype("f8e8m0")
    sizes = (kind, 32, 8, Layout.MX_A_ZZ)
    of = global_axis_map(matrix_shape(*sizes), matrix_stride(*sizes), Layout.MX_A_ZZ)
    boxes, _ = read(layout_svg("scales", of, kind, 32))
    assert [b["tip"] for b in boxes].count("elements 32 to 63 of memory") == 1
    assert len(boxes) == 8


def test_pictures_follow_the_scheme_of_the_screen() -> None:
    drawn = tile_layout(TileSpec.of(TileType.Vec, F32, 8, 16, slayout=SLayout.NoneBox))
    assert "prefers-color-scheme:dark" in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_a_ring_holds_what_was_pushed_and_not_popped() -> None:
    spec = PipeSpec(0, Direction.DIR_C2V, 4096, 4)
    words = [w["text"] for w in read(ring_svg(spec, 6, 3))[1]]
    assert {"3", "4", "5", "producer: 6", "consumer: 3"} <= set(words)


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 8])
def test_entries_show_where_the_producer_waits(slots: int) -> None:
    spec = PipeSpec(0, Direction.DIR_C2V, 4096, slots)
    circles = entries_svg(spec).count("<circle")
    count = range(3 * slots)
    assert circles == sum(map(spec.shouldWaitFree, count)) + sum(map(spec.shouldNotifyFree, count))


def test_ways_between_memories_come_from_the_table() -> None:
    found = ways("a2a3", tuple(INSTRUCTIONS.values()))
    assert "TLOAD" in found[Way("GM", "UB", Pipe.MTE2)]
    assert "TSTORE" in found[Way("UB", "GM", Pipe.MTE3)]
    assert "TSTORE" in found[Way("L0C", "GM", Pipe.FIX)]
    assert "TMATMUL" in found[Way("L0A", "L0C", Pipe.M)]
    assert Way("L0C", "UB", Pipe.FIX) not in found  # A5 has it
    assert Way("L0C", "UB", Pipe.FIX) in ways("a5", tuple(INSTRUCTIONS.values()))


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "cpu"])
def test_every_memory_of_a_target_is_drawn(target: str) -> None:
    words = {w["text"] for w in read(pipes_svg(TARGETS[target], INSTRUCTIONS.values()))[1]}
    spaces = {s.memory for s in TARGETS[target].spaces.values() if s.capacity}
    assert spaces <= words


@pytest.mark.parametrize("name", ["TADD", "TROWSUM", "TAXPY", "TLOAD", "set_flag", "TPUSH"])
def test_the_figure_of_an_instruction_shows_its_operands(name: str) -> None:
    boxes, words = read(insn_svg(INSTRUCTIONS[name]))
    texts = {w["text"] for w in words}
    assert name in texts
    tips = " ".join(b["tip"] for b in boxes)
    for operand in INSTRUCTIONS[name].operands:
        if not operand.optional:
            assert operand.name in texts
    expected = {
        "TADD": "read src0[0:16, 0:64] read src1[0:16, 0:64] written dst[0:16, 0:64]",
        "TROWSUM": "written dst[0:32, 0:1]",
        "TAXPY": "read and written dst[0:16, 0:64]",
        "TLOAD": "read src[0:16, 0:64] written dst[0:16, 0:64]",
    }
    assert expected.get(name, "") in tips
    assert name != "set_flag" or "signal MTE2 flag" in texts
    assert name != "TPUSH" or {"PIPE_FIX", "signal slot"} <= texts
