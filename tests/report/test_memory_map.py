"""The memory map: capacity, lives inside loops, tiles of any size."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ptokit import *
from ptokit.report.memory_map import Map
from ptokit.report.memory_svg import THIN
from tests.report.kernels import arrays, doubles

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [p.stem for p in (ROOT / "examples").glob("*.py") if "CASES = [" in p.read_text()]


@kernel(mode="auto")
def sums(x, y):
    block, scratch = [Tile[TileType.Vec, float32, 32, 128]() for _ in range(2)]
    column = Tile[TileType.Vec, float32, 32, 1, BLayout.ColMajor]()
    for row in range(0, x.shape[0], 32):
        TLOAD(block, GlobalTensor(x)[row : row + 32, :])
        TROWSUM(column, block, scratch)
        TROWEXPANDDIV(block, block, column)
        TSTORE(GlobalTensor(y)[row : row + 32, :], block)


def mapped() -> Map:
    x = np.ones((64, 128), np.float32)
    return sums.memory_map(x, x.copy(), target="a2a3")


def boxes(svg: str) -> list[dict[str, Any]]:
    """The boxes of tiles by their titles: pale first, then full ones."""
    tree = ElementTree.fromstring(svg)
    name = "{http://www.w3.org/2000/svg}"
    return [
        {
            "title": group.findtext(f"{name}title"),
            "rects": [
                {k: float(v) for k, v in rect.attrib.items() if k in ("x", "y", "width", "height")}
                for rect in group.findall(f"{name}rect")
            ],
        }
        for group in tree.findall(f"{name}g")
    ]


def test_the_instructions_and_loops_of_a_map() -> None:
    found = mapped()
    assert [step.name for step in found.steps] == ["TLOAD", "TROWSUM", "TROWEXPANDDIV", "TSTORE"]
    ((first, behind),) = found.loops
    assert all(first < step.position < behind for step in found.steps)
    (column,) = [tile for tile in found.tiles if tile.name == "column"]
    assert [only_writes for _, only_writes in column.uses] == [True, False]


def test_a_tile_lives_in_a_loop_from_its_write_to_its_last_use() -> None:
    svg = mapped().svg()
    columns = {box["title"].split(":")[0]: box["rects"] for box in boxes(svg)}
    pale, full = columns["column"]
    assert full["width"] == pytest.approx(pale["width"] / 2)  # two of the four instructions
    assert full["x"] == pytest.approx(pale["x"] + pale["width"] / 4)
    assert "⟳" in svg


def test_capacity_is_said_and_small_tiles_can_be_seen() -> None:
    svg = mapped().svg()
    assert re.search(r"of\s+196,608 bytes", svg)
    small = next(box for box in boxes(svg) if box["title"].startswith("column"))
    assert small["rects"][0]["height"] >= THIN - 1
    tops = sorted((box["rects"][0]["y"], box["rects"][0]["height"]) for box in boxes(svg))
    for (y, tall), (below, _) in pairwise(tops):
        assert y + tall <= below + 0.11  # tiles that lie apart are drawn apart


def test_a_program_in_manual_mode_has_a_map_too() -> None:
    svg = doubles.memory_map(*arrays(), target="a2a3", times=4).svg()
    assert {box["title"].split(":")[0] for box in boxes(svg)} == {"a", "b"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_docs_show_every_example(name: str) -> None:
    page = (ROOT / "docs/memory-maps.md").read_text("utf-8")
    pictures = re.findall(rf"\(memory/({name}-\w+\.svg)\)", page)
    assert pictures
    for picture in pictures:
        ElementTree.parse(ROOT / "docs/memory" / picture)
