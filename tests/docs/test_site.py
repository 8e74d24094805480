"""The site is whole: every page of the navigation is there, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from docs_site import CODE, LINK, Site, navigation  # noqa: E402
from operations_page import WRITTEN, operations, syntax  # noqa: E402

from ptokit.from_text import loads  # noqa: E402

yaml = pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def site() -> Site:
    return Site()


def config() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def named(nav: Any) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from named(each)


def test_the_navigation_names_pages_that_are_there(site: Site) -> None:
    pages = [*named(config()["nav"])]
    assert len(set(pages)) == len(pages) > 40
    assert not [page for page in pages if page not in site.pages]


def test_every_instruction_stands_in_the_navigation_that_is_built(site: Site) -> None:
    pages = {*named(yaml.safe_load(navigation())["nav"])}
    listed = {page for page in site.pages if page.startswith("isa/") and page.endswith(".md")}
    assert listed <= pages <= {*site.pages}


def test_pages_of_people_are_in_the_navigation(site: Site) -> None:
    """Only pages that an index lists are left out: of instructions, and of sources."""
    listed = {*named(config()["nav"])}
    left = [
        page
        for page in site.pages
        if page.endswith(".md") and not page.startswith(("isa/", "zh/", "code/"))
    ]
    assert not [page for page in left if page not in listed]


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as the site makes them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}


def test_links_lead_somewhere(site: Site) -> None:
    broken: list[str] = []
    for place, page in site.pages.items():
        if not place.endswith(".md") or not isinstance(page, str):
            continue
        for match in LINK.finditer(CODE.sub("", page)):
            target, anchor = match[2], (match[3] or "").removeprefix("#")
            to = os.path.normpath(PurePosixPath(place).parent / target)
            if to not in site.pages:
                broken.append(f"{place} -> {target}")
            elif anchor and isinstance(found := site.pages[to], str) and to.endswith(".md"):
                known = anchors(found) | {*re.findall(r'(?:id|name)="([^"]+)"', found)}
                broken += [f"{place} -> {target}#{anchor}"] * (anchor not in known)
    assert not broken


def test_nothing_is_loaded_from_elsewhere() -> None:
    found = config()
    assert found["theme"]["font"] is False
    assert "offline" in found["plugins"]
    assert not [each for each in found.get("extra_css", []) if "://" in each]
    assert "extra_javascript" not in found
    assert found["extra"]["polyfills"] == ["iframe-worker.js"]  # not that of the plugin, from afar


def test_instructions_that_a_page_speaks_of_are_links(site: Site) -> None:
    page = str(site.pages["isa/TLOAD.md"])
    assert "use [TFILLPAD](TFILLPAD.md) for more" in page
    assert "[TLOAD](TLOAD.md)" not in page  # not to itself
    assert "| TLOAD.same-element-size |" in page  # an id is no instruction
    assert "# TLOAD\n" in page
    chinese = site.pages["zh/TLOAD.md"]
    assert callable(chinese)
    assert "[TFILLPAD](TFILLPAD.md)" in chinese()


def test_programs_that_are_wrong_on_purpose_lead_to_what_is_said_of_them(site: Site) -> None:
    page = str(site.pages["guide/memory.md"])
    assert "*raises* [`SA-0006`](../errors/tiles.md#sa-0006)" in page
    assert "raises=" not in page
    assert "*raises*" not in str(site.pages["isa/TADD.md"])  # where the message follows


def test_pages_of_instructions_have_a_figure(site: Site) -> None:
    assert "![TADD](../pictures/isa/TADD.svg)" in str(site.pages["isa/TADD.md"])
    figure = site.pages["pictures/isa/TADD.svg"]
    assert callable(figure)
    assert "src0" in figure()
    chinese = site.pages["zh/TLOAD.md"]
    assert callable(chinese)
    assert "![TLOAD]" in chinese()
    assert "(../isa/TLOAD.md)" in chinese()
    assert "(../zh/TLOAD.md)" in str(site.pages["isa/TLOAD.md"])


def test_sources_that_pages_link_to_are_pages(site: Site) -> None:
    assert "code/examples/gemm.py.md" in site.pages
    assert "def gemm" in str(site.pages["code/examples/gemm.py.md"])


def test_every_operation_has_a_syntax() -> None:
    """Written by hand only where the definition has no format of its own."""
    every = {each.name: each for each in operations()}
    assert {name for name, each in every.items() if not each.format} == set(WRITTEN)
    assert syntax(every["pto.addptr"]).startswith("pto.addptr %ptr, %offset")


def test_the_syntax_that_is_written_by_hand_is_read() -> None:
    loads("""
func.func @inner(%n: index) -> index {
  return %n : index
}
func.func @all(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %less = arith.cmpi slt, %c0, %n : index
  %f = arith.constant 1.0 : f32
  %both = arith.cmpf olt, %f, %f : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0) -> (index) {
    %next = arith.addi %x, %i : index
    scf.yield %next : index
  }
  %got = scf.if %less -> (index) {
    scf.yield %sum : index
  } else {
    scf.yield %c0 : index
  }
  %w = scf.while (%x = %c0) : (index) -> index {
    %go = arith.cmpi slt, %x, %n : index
    scf.condition(%go) %x : index
  } do {
  ^bb0(%x: index):
    %y = arith.addi %x, %c1 : index
    scf.yield %y : index
  }
  %called = func.call @inner(%w) : (index) -> index
  return
}
""")


@pytest.fixture(scope="module")
def built(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    if find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    site.write(folder / "docs")
    (folder / "mkdocs.yml").write_text(navigation(), "utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.mark.slow
def test_the_site_is_built_strictly_and_names_nobody_else(built: Path) -> None:
    home = (built / "index.html").read_text("utf-8")
    loaded = re.findall(r'<(?:script|img|iframe)[^>]*src="([^"]+)"', home)
    loaded += re.findall(r'<link[^>]*rel="(?:stylesheet|preload)"[^>]*href="([^"]+)"', home)
    assert loaded
    assert not [each for each in loaded if "://" in each]


SEEN = ("index", "guide/memory", "isa/TLOAD", "zh/TASSIGN", "guide/operations", "errors/tiles")
SEEN += ("guide/language", "compat")
FITTING = ("index", "guide/language")  # of which no table is moved sideways on a phone


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
def test_pages_fit_their_window_and_can_be_searched(built: Path, width: int) -> None:
    """In a browser, from files: nothing is asked of a network, nothing hangs over the edge."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with playwright.sync_playwright() as started:
        try:
            browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except playwright.Error:
            pytest.skip("there is no Chromium")
        page = browser.new_page(viewport={"width": width, "height": 900})
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: said.append(str(error)))
        for name in SEEN:
            page.goto((built / f"{name}.html").as_uri())
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            broken = "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
            assert page.evaluate(broken) == [], name
            if width > 800 or name in FITTING:
                frames = "[...document.querySelectorAll('.md-typeset__scrollwrap')]"
                wide = f"{frames}.filter(each => each.scrollWidth > each.clientWidth + 1).length"
                assert page.evaluate(wide) == 0, name
        if width < 800:
            page.click("label.md-header__button[for=__search]")
        page.click("input.md-search__input")
        page.keyboard.type("TROWSUM", delay=50)
        page.wait_for_selector(".md-search-result__item", timeout=60_000)
        assert not said
        assert all(url.startswith("file:") for url in asked)
        browser.close()
