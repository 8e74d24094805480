"""The page in a browser: nothing is loaded, nothing is complained about, clicks and keys work."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.kernels import arrays, doubles

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
WIDTHS = (1280, 390)
EXAMPLES = ("gemm_manual", "flash_attention_cluster", "softmax")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        try:
            found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except playwright.Error:
            pytest.skip("there is no Chromium")
        yield found
        found.close()


class Visit:
    """A page that was opened, and what it said and asked for meanwhile."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_timeout(100)

    def close(self) -> None:
        self.page.close()
        assert not self.said
        assert len(self.asked) == 1  # the page itself

    def state(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {expression}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.page.wait_for_timeout(50)


def written(name: str, folder: Path) -> Path:
    path = folder / f"{name}.html"
    if name == "doubles":
        page = doubles.report(1, arrays(), target="a2a3", times=4)
    else:
        case = import_module(name).CASES[0]
        values = case.inputs(np.random.default_rng(0))
        page = case.kernel.report(case.blocks, values, target="a2a3", check=False, **case.consts)
    page.write(path)
    return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    folder = tmp_path_factory.mktemp("pages")
    return {name: written(name, folder) for name in ("doubles", *EXAMPLES)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_opens_without_a_word_at_every_width(
    browser: Any, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    visit = Visit(browser, pages[name], width, scheme)
    assert visit.state("document.documentElement.scrollWidth") <= width
    assert visit.state("document.documentElement.dataset.theme") == scheme
    assert visit.page.locator("#us").inner_text().endswith("µs")
    assert visit.page.locator(".map").count() >= 1
    assert visit.page.locator("#wait-rows tr").count() >= 1
    visit.close()


def test_a_click_on_a_line_marks_work_ir_and_cpp(browser: Any, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["doubles"])
    visit.page.locator(".pane").nth(0).get_by_text("TADD(b, a, a)").click()
    marked = visit.page.locator(".pane .l.on")
    texts = [marked.nth(n).inner_text() for n in range(marked.count())]
    assert any("pto.tadd" in text for text in texts)
    assert any("TADD(b, a, a);" in text for text in texts)
    assert "4 instructions" in visit.page.locator("#inspector").inner_text()
    visit.press("Escape")
    assert marked.count() == 0
    visit.close()


def test_advice_leads_to_its_line(browser: Any, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["gemm_manual"])
    first = visit.page.locator("#advice-rows li").first
    assert "double-buffer" in first.inner_text()
    first.click()
    assert "TMATMUL" in visit.page.locator(".pane").nth(0).locator(".l.on").inner_text()
    visit.close()


def test_a_click_on_work_marks_its_line_and_on_bytes_their_uses(
    browser: Any, pages: dict[str, Path]
) -> None:
    visit = Visit(browser, pages["doubles"])
    at = visit.state(
        "(() => { const row = timeline.rows.find((r) => r.lane && r.lane.pipe === 'V');"
        " const node = row.lane.nodes[0];"
        " return [timeline.x(row.core.start[node] + row.core.length[node] / 2), row.y + 9]; })()"
    )
    visit.page.locator("#lanes").click(position={"x": at[0], "y": at[1]})
    said = visit.page.locator("#inspector").inner_text()
    assert said.startswith("TADD")
    assert "TLOAD" in said  # by whose signal it went on
    visit.page.locator("#maps canvas").first.click(position={"x": 400, "y": 10})
    marked = visit.page.locator(".pane").nth(0).locator(".l.on")
    texts = " ".join(marked.nth(n).inner_text() for n in range(marked.count()))
    assert {w for w in ("TLOAD", "TADD", "TSTORE") if w in texts} == {"TLOAD", "TADD"}
    visit.close()


def test_keys_zoom_search_and_step(browser: Any, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["doubles"])
    whole = visit.state("state.range[1] - state.range[0]")
    visit.press("+", "+")
    assert visit.state("state.range[1] - state.range[0]") < whole / 2
    visit.press("ArrowRight", "0")
    assert visit.state("state.range[1] - state.range[0]") == whole
    visit.press("/")
    visit.page.keyboard.type("TSTORE")
    assert visit.page.locator("#matches").inner_text() == "4 found"
    visit.press("Enter", "Enter")
    assert visit.page.locator("#matches").inner_text() == "2 of 4"
    visit.press("Escape")
    visit.press(".")
    assert "TSTORE" in visit.page.locator("#inspector").inner_text()
    visit.press("ArrowUp")
    assert "TADD" in visit.page.locator("#inspector").inner_text()
    visit.press("a", "c", "t", "z", "?")
    assert visit.state("state.arrows && !state.path")
    assert visit.page.locator("#help").is_visible()
    visit.close()


def test_dragging_moves_and_the_wheel_zooms(browser: Any, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["doubles"])
    visit.press("+")
    before = visit.state("state.range")
    box = visit.page.locator("#lanes").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 50
    visit.page.mouse.move(x, y)
    visit.page.mouse.down()
    visit.page.mouse.move(x - 120, y, steps=4)
    visit.page.mouse.up()
    assert visit.state("state.range[0]") > before[0]
    visit.page.keyboard.down("Control")
    visit.page.mouse.wheel(0, -300)
    visit.page.keyboard.up("Control")
    visit.page.wait_for_timeout(50)
    assert visit.state("state.range[1] - state.range[0]") < before[1] - before[0]
    visit.close()
