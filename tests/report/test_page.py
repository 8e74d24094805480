"""The page: its numbers are those of the timing, its links name the lines, its size is bounded."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from ptokit.base.diagnostics import UsageError
from ptokit.report import page_data
from ptokit.report.page import WEB, Page
from ptokit.report.page_data import MOST_EVENTS, lifetimes
from ptokit.timing.streams import Item, Kind, Touch
from tests.report import kernels
from tests.report.kernels import arrays, doubles, races

LINES = Path(kernels.__file__).read_text().splitlines()


def page_of(times: int = 4, **options: Any) -> Page:
    return doubles.report(1, arrays(), target="a2a3", times=times, **options)


def numbers(page: Page) -> dict[str, Any]:
    """What the page itself embeds."""
    found = re.search(r'id="numbers">(.*?)</script>', page.html, re.S)
    assert found is not None
    (launch,) = json.loads(found[1])["launches"]
    return launch


def text_of(data: dict[str, Any], place: int) -> str:
    file, line = data["places"][place]
    return data["files"][file]["lines"][line - 1]


def test_the_numbers_are_those_of_the_timing() -> None:
    timing = doubles.time(1, arrays(), target="a2a3", times=4)
    data = numbers(page_of())
    assert data["us"] == round(timing.us, 3)
    assert data["busy"] == timing.as_dict()["busy"]
    assert sum(part["cycles"] for part in data["breakdown"]) == pytest.approx(data["cycles"], abs=9)
    (core,) = data["cores"]
    assert len(core["item"]) == data["events"] == 12
    labels = {data["items"][item]["label"] for item in core["item"]}
    assert labels == {"TLOAD", "TADD", "TSTORE"}
    assert sum(core["start"]) + core["length"][-1] <= data["cycles"]


def test_every_signal_is_an_arrow_forward_in_time() -> None:
    data = numbers(page_of())
    (core,), (flows,) = data["cores"], data["flows"]
    starts = list(accumulate(core["start"]))
    # A load, an addition and a store in turn: all but the first take a signal of the one before.
    assert len(flows["giver"]) == 11
    for giver, taker in zip(accumulate(flows["giver"]), accumulate(flows["taker"]), strict=True):
        assert starts[giver] + core["length"][giver] <= starts[taker]


def test_lines_of_ir_and_cpp_name_the_lines_they_come_from() -> None:
    data = numbers(page_of())
    for text, word in ((data["ir"], "pto.tadd"), (data["cpp"], "TADD(")):
        linked = [p for line, p in zip(text["lines"], text["places"], strict=True) if word in line]
        assert linked
        assert all("TADD(b, a, a)" in text_of(data, place) for place in linked)
        assert not any("loc(" in line for line in text["lines"])
    assert data["files"][0]["lines"] == LINES


def test_cycles_per_line_add_up_to_the_busy_pipes() -> None:
    timing = doubles.time(1, arrays(), target="a2a3", times=4)
    data = numbers(page_of())
    worked = sum(cycles for _, cycles, _, _ in data["lines"])
    assert worked == pytest.approx(sum(timing.busy.values()) * timing.cycles, rel=0.01)
    (load,) = [line for line in data["lines"] if "TLOAD" in text_of(data, line[0])]
    assert load[3] == 4


def test_memories_show_capacity_and_lives() -> None:
    data = numbers(page_of())
    (memory,) = data["memory"]
    assert (memory["memory"], memory["capacity"]) == ("UB", 192 * 1024)
    assert [(b["name"], b["start"], b["stop"]) for b in memory["blocks"]] == [
        ("a", 0, 0x1000),
        ("b", 0x1000, 0x2000),
    ]
    assert [len(b["lives"]) for b in memory["blocks"]] == [8, 8]  # four lives each


def life(*uses: tuple[float, float, str]) -> list[list[float]]:
    """The lives of one stretch, used from and to, by reading and writing."""
    items, nodes = [], []
    for number, (start, end, how) in enumerate(uses):
        touch = Touch("UB", 0, 32, "r" in how, "w" in how, "dst")
        items.append(Item(Kind.WORK, 1, None, "", touches=(touch,)))  # type: ignore[arg-type]
        nodes.append((number, 1, start, end, -1))
    return lifetimes(nodes, items, 0.5)["UB", 0, 32]


def test_a_life_goes_from_a_write_to_the_last_use() -> None:
    assert life((0, 1, "w"), (5, 6, "r"), (8, 9, "w"), (10, 11, "r")) == [[0, 6], [8, 11]]
    assert life((0, 1, "w"), (5, 6, "rw"), (8, 9, "r")) == [[0, 9]]
    assert life((0, 1, "w"), (2, 3, "w"), (8, 9, "r")) == [[0, 9]]  # in two parts
    assert life((0, 1, "w"), (2, 3, "r"), (3.2, 4, "w")) == [[0, 4]]  # too close to be told apart


def test_findings_are_on_the_page() -> None:
    data = numbers(races.report(1, arrays(), target="a2a3"))
    first = data["findings"][0]
    assert first["severity"] == "error"
    assert any("TADD" in text_of(data, place) for place in first["places"])
    assert data["checked"]
    unchecked = numbers(races.report(1, arrays(), target="a2a3", check=False))
    assert not unchecked["checked"]
    assert not unchecked["findings"]


def test_a_run_has_a_page_and_a_notebook_shows_it() -> None:
    run = doubles[1](*arrays(), target="a2a3", times=4)
    assert numbers(run.report())["us"] == numbers(page_of())["us"]
    shown = run.report()._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "&quot;launches&quot;" in shown


def test_fifty_thousand_events_fit() -> None:
    page = page_of(MOST_EVENTS // 3, check=False)
    assert not numbers(page)["aggregated"]
    assert len(page.html) < 3_000_000


def test_more_events_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_data, "MOST_EVENTS", 200)
    data = numbers(page_of(300))
    assert data["aggregated"]
    assert data["events"] == 900
    (core,) = data["cores"]
    assert len(core["item"]) <= 200
    many = core["many"]
    grouped = dict(zip(accumulate(many["at"]), many["count"], strict=True))
    assert sum(grouped.get(n, 1) for n in range(len(core["item"]))) == 900
    assert sum(many["busy"]) <= data["cycles"] * len(data["busy"])


def test_a_text_cannot_end_the_numbers() -> None:
    assert "</script><b>" not in Page("t", [{"kernel": "</script><b>"}]).html


def test_the_licence_of_the_charts_is_on_the_page() -> None:
    assert (WEB / "uPlot.LICENSE").read_text() in page_of().html


def test_a_page_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    page = Page("empty", [])
    for place in (tmp_path / "no" / "k.html", tmp_path, 3):
        with pytest.raises(UsageError, match=r"cannot write|has a name"):
            page.write(place)  # type: ignore[arg-type]
