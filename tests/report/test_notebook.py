"""What objects show of themselves in notebooks: values, layouts, verdicts, timelines."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64decode
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ptokit import *
from ptokit.pictures.timeline import MOST_LANES, timeline_svg
from ptokit.pictures.values import values_svg
from ptokit.report.verdicts import Report
from ptokit.values import load, store
from tests.report.kernels import arrays, doubles


def pictures(html: str) -> list[ElementTree.Element]:
    """The pictures in a piece of HTML; all of it must be well-formed."""
    return ElementTree.fromstring(html).findall(".//{*}svg")


def texts(svg: str | ElementTree.Element) -> list[str]:
    tree = ElementTree.fromstring(svg) if isinstance(svg, str) else svg
    return [each.text or "" for each in tree.findall(".//{*}text")]


def pixels(svg: str) -> tuple[np.ndarray[Any, Any], bytes]:
    """The first image of a picture: the number of each colour, and the colours."""
    found = re.search(r"base64,([^\"]+)", svg)
    assert found
    data = b64decode(found.group(1))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = dict[bytes, bytes](), 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        content = data[at + 8 : at + 8 + size]
        (crc,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert crc == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + size
    cols, rows, bits, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (bits, colour) == (8, 3)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, cols + 1)
    assert not lines[:, 0].any()  # no filter
    return lines[:, 1:], chunks[b"PLTE"]


def test_values_are_as_dark_as_they_are_large() -> None:
    values = np.arange(12.0).reshape(3, 4)
    seen, palette = pixels(values_svg(values))
    assert (np.diff(seen.reshape(-1).astype(int)) > 0).all()
    assert (seen[0, 0], seen[-1, -1]) == (0, 250)
    assert len(palette) == 3 * 256


def test_values_of_both_signs_are_white_at_zero() -> None:
    seen, palette = pixels(values_svg(np.array([[-1.0, 0.0, 3.0]])))
    assert seen[0, 1] == 125
    red, green, blue = palette[3 * 125 : 3 * 126]
    assert red == green == blue >= 250
    assert seen[0, 2] == 250
    assert seen[0, 0] > 0  # -1 is not as far from zero as 3


def test_what_is_no_number_has_a_colour_and_a_word() -> None:
    values = np.array([[np.nan, np.inf, -np.inf, 1.0, 2.0]])
    defined = np.array([[True, True, True, True, False]])
    svg = values_svg(values, defined, whole=(2, 8))
    seen, _ = pixels(svg)
    assert len({*seen[0, :5]}) == 5
    words = ("NaN", "inf", "-inf", "never written", "outside the valid region")
    assert {*words} <= {*texts(svg)}
    assert not {*words} & {*texts(values_svg(np.ones((2, 2))))}


def test_large_values_are_thinned_out_and_say_so() -> None:
    svg = values_svg(np.zeros((300, 1000)))
    seen, _ = pixels(svg)
    assert seen.shape == (38, 125)
    assert "every 8. element of a row and column" in texts(svg)


def test_a_tile_shows_its_values_and_its_layout() -> None:
    with device("a2a3", mode="auto"):
        tile = Tile[TileType.Vec, float32, 16, 64]()
        bare = pictures(tile._repr_html_())
        tile.fill(np.arange(64.0))
        values, layout = pictures(tile._repr_html_())
    assert len(bare) == 1  # it has no place yet
    assert {"0", "63"} <= {*texts(values)}
    assert "ND" in texts(layout)


@pytest.mark.parametrize("element", [bfloat16, float8_e4m3, int8, float4_e2m1x2, uint32])
def test_tiles_of_every_kind_of_element_are_shown(element: Any) -> None:
    with device("a5", mode="auto"):
        tile = Tile[TileType.Vec, element, 16, 64]()
        tile.fill(np.ones((16, 64), element.np))
        assert len(pictures(tile._repr_html_())) == 2


def test_showing_a_tile_changes_nothing() -> None:
    with device("a2a3", mode="auto"):
        tile = Tile[TileType.Vec, float32, 16, 64]()
        tile._repr_html_()
        assert tile.storage is None


@kernel(mode="auto")
def halves(x, y):
    store(y[:, :], load(x[:, :]) * 0.5)


def test_a_kernel_shows_what_targets_make_of_its_last_launch() -> None:
    x = np.ones((16, 64), np.float32)
    before = halves._repr_html_()
    assert "<table" not in before
    assert 'halves.check("all", ...)' in before.replace("&quot;", '"')
    halves[1](x, x.copy())
    table = ElementTree.fromstring(halves._repr_html_()).find(".//table")
    assert table is not None
    rows = [[cell.text or cell.findtext("span") for cell in row] for row in table][1:]
    assert rows == [[name, "ok", None] for name in halves.check("all", x, x).found]


@kernel(mode="auto")
def declared(x: float32[16, 64], y: float32[16, 64]):
    store(y[:, :], load(x[:, :]) * 0.5)


def test_a_kernel_that_declares_its_arguments_needs_no_launch() -> None:
    assert "<table" in declared._repr_html_()


def test_a_kernel_remembers_no_contents() -> None:
    x = np.ones((512, 512), np.float32)
    halves[1](x[:16, :64], np.zeros((16, 64), np.float32))
    assert halves.programs.memory.last is not None
    args, _ = halves.programs.memory.last
    assert all(not np.shares_memory(each, x) for each in args)
    assert [each.shape for each in args] == [(16, 64), (16, 64)]


def test_findings_unfold_behind_a_verdict() -> None:
    @kernel(mode="auto")
    def wide(x, y):
        t = Tile[TileType.Vec, float32, 512, 512]()
        TLOAD(t, GlobalTensor(x))
        TSTORE(GlobalTensor(y), t)

    x = np.ones((512, 512), np.float32)
    report = wide.check("a2a3", x, x)
    html = ElementTree.fromstring(report._repr_html_())
    assert isinstance(report, Report)
    assert not report
    (found,) = html.findall(".//details")
    (diagnostic,) = report.diagnostics
    assert diagnostic.code in (found.findtext("summary") or "")
    assert diagnostic.message in (found.findtext("pre") or "")


def test_a_run_shows_when_its_pipes_work_and_that_it_is_clean() -> None:
    x, y = arrays()
    run = doubles[1](x, y, times=2)
    (timeline,) = pictures(run._repr_html_())
    assert {"V", "MTE3"} <= {*texts(timeline)}
    assert "nothing was found" in run._repr_html_()
    again = doubles[1](x, y, times=2)  # repeated, not run
    assert len(pictures(again._repr_html_())) == 1


def test_a_run_shows_what_was_found() -> None:
    @kernel(mode="auto")
    def further(x, y):
        t = Tile[TileType.Vec, float32, 8, 64]()
        TLOAD(t, GlobalTensor[float32, Shape[1, 1, 1, 8, 64], Stride[512, 512, 512, 64, 1]](x))
        TSTORE(GlobalTensor(y), t)

    x, y = np.ones((4, 64), np.float32), np.ones((8, 64), np.float32)
    with pytest.warns(PtoWarning):
        run = further[1](x, y, slack=1024)
    (found,) = run.findings
    assert f"warning[{found.code}]" in run._repr_html_()
    assert "nothing was found" not in run._repr_html_()


def test_a_run_whose_time_depends_on_data_is_shown_without_a_timeline() -> None:
    @kernel(mode="auto")
    def follows(x, y):
        t = Tile[TileType.Vec, float32, 16, 64]()
        TLOAD(t, GlobalTensor(x))
        if t.GetValue(0) > 0:
            TSTORE(GlobalTensor(y), t)

    run = follows[1](np.ones((16, 64), np.float32), np.ones((16, 64), np.float32))
    assert "follows" in run._repr_html_()
    assert not pictures(run._repr_html_())


def test_a_timing_shows_every_piece_of_work() -> None:
    timing = doubles.time(1, arrays(), times=2)
    (svg,) = pictures(timing._repr_html_())
    said = [each.text or "" for each in svg.findall(".//{*}title")]
    assert sum("TLOAD" in text for text in said) >= 1
    assert str(timing).splitlines()[0] in timing._repr_html_().replace("&#x27;", "'")


def test_thin_work_is_drawn_together_and_lanes_have_an_end() -> None:
    work = [("A", n * 0.001, n * 0.001 + 0.001) for n in range(1000)]
    lanes = {("core", f"P{n}"): work for n in range(MOST_LANES + 3)}
    svg = timeline_svg(lanes, 1.0)
    assert "1000 of A: 0.000 to 1.000 µs" in svg
    assert svg.count("<g>") == MOST_LANES
    assert "and 3 pipes more" in texts(svg)
    assert timeline_svg({("core", "V"): []}, 0.0).count("<g>") == 0


@pytest.mark.parametrize(("end", "ticks"), [(0.9, 10), (2.0, 11), (6.9, 7), (49.0, 10), (100.0, 6)])
def test_the_axis_has_round_numbers(end: float, ticks: int) -> None:
    found = [text for text in texts(timeline_svg({}, end)) if text.endswith("µs")]
    assert len(found) == ticks
