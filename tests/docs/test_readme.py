"""The programs of the README and the guides do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptokit import PtoError

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {"races-and-hangs.md"}  # its programs are wrong on purpose; it has a test of its own
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs/guide").glob("*.md") if p.name not in GENERATED),
]
FENCED = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)  # code is not a link
BLOCK = re.compile(r"^```python(?: raises=(\S+))?\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_programs_run(page: Path) -> None:
    """Blocks of one page share their names, as a reader would type them one after another."""
    names: dict[str, object] = {}
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        code, source = block.groups()
        # The lines keep their numbers, so that kernels can find their own source in the page.
        above = "\n" * (text.count("\n", 0, block.start(2)))
        program = compile(above + source, str(page), "exec")
        if code:
            with pytest.raises(PtoError) as caught:
                exec(program, names)
            assert code in caught.value.codes
            _says_what_follows(str(caught.value), text[block.end() :])
        else:
            exec(program, names)


def _says_what_follows(said: str, behind: str) -> None:
    """The message that a page shows under a program is the one that is raised."""
    shown = re.match(r"\n\n```text\n(.*?)^```$", behind, re.M | re.S)
    heads = re.findall(r"error\[.*", shown[1]) if shown else []
    assert not shown or heads
    for head in heads:
        assert head in said


def test_links_lead_somewhere() -> None:
    pages = [*PAGES, *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/errors").glob("*.md")]
    pages.append(ROOT / "docs/isa/README.md")
    broken = [
        f"{page.relative_to(ROOT)} -> {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)\)", FENCED.sub("", page.read_text("utf-8")))
        if not (page.parent / link).exists()
    ]
    assert not broken
