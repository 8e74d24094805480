"""Lay out the documentation for `mkdocs build` (`make docs`).

python tools/docs_site.py [DIR]      write build/docs, or DIR, and mkdocs.yml beside it

The pages of the repository are copied. Links that lead out of them, to a source or an example, lead
to a page with that file; so a reader needs no repository and no network. Pages of instructions get
their figure and links to those they speak of, a program that is wrong on purpose is told by its
code, and the Chinese pages are added: none of these is kept in the repository.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO
from ptokit.isa.spec import Insn
from ptokit.report.insn_svg import insn_svg
from ptokit.report.pages import index, markdown

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
ALSO = ("CHANGELOG.md", "CONTRIBUTING.md")  # pages that lie above the folder
SHOWN = (".md", ".svg", ".png")
LINK = re.compile(r"(!?\[[^\]\n]*\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.M | re.S)
WRONG = re.compile(r"^```python raises=(\S+)\n.*?^```$", re.M | re.S)  # a program, on purpose
# Instructions in a sentence: not in a link, nor as part of an id (TLOAD.unit-stride).
NAMED = re.compile(
    rf"(?<![\w.\[/])(?:{'|'.join(map(re.escape, sorted(INSTRUCTIONS, key=len, reverse=True)))})"
    r"(?![\w\]/-]|\.\w)"
)
SENTENCES = re.compile(r"^(?!#).+$", re.M)  # all lines but headings
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"  # sources would crowd the answers
LEXERS = {".py": "python", ".cpp": "cpp", ".hpp": "cpp", ".json": "json", ".toml": "toml"}
PARTS = ROOT / "tools/site"  # the style sheet, and a script for the search

Page = str | bytes | Callable[[], str]  # made when it is wanted: figures run programs


class Site:
    """The files of the site by their paths; sources are added as pages link to them."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {each.name: each.read_bytes() for each in PARTS.iterdir()}
        for path in sorted(DOCS.rglob("*")):
            if path.suffix in SHOWN:
                place = path.relative_to(DOCS).as_posix()
                self.pages[place] = (
                    self._page(path, place) if path.suffix == ".md" else path.read_bytes()
                )
            elif path.suffix == ".ipynb":
                place = path.relative_to(DOCS).with_suffix(".md").as_posix()
                self.pages[place] = _notebook(json.loads(path.read_text("utf-8")))
        for name in ALSO:
            self.pages[name] = self._page(ROOT / name, name)
        for insn in INSTRUCTIONS.values():
            self._instruction(insn)
        self.pages["zh/README.md"] = index(list(INSTRUCTIONS.values()), "zh")

    def _instruction(self, insn: Insn) -> None:
        """The figure of an instruction in its page and the Chinese one; each leads to the other."""
        english, chinese = f"isa/{insn.name}.md", f"zh/{insn.name}.md"
        self.pages[chinese] = lambda: _led(
            _with_figure(_linked(_plain(markdown(insn, "zh")), insn), insn), "English", english
        )
        page = _linked(str(self.pages[english]), insn)
        if insn.targets - {"cpu"}:
            self.pages[f"pictures/isa/{insn.name}.svg"] = lambda: insn_svg(insn)
            page = _with_figure(page, insn)
        self.pages[english] = _led(page, "中文", chinese)

    def _page(self, path: Path, place: str) -> str:
        """A page of the repository with links that work on the site."""

        def moved(match: re.Match[str]) -> str:
            before, target, anchor, after = match.groups()
            found = Path(os.path.normpath(path.parent / target))
            if not found.exists():
                return match[0]  # a link that leads nowhere: mkdocs and the tests complain
            to = self._place(found)
            away = os.path.relpath(to, PurePosixPath(place).parent)
            return f"{before}{away}{anchor or ''}{after}"

        text = WRONG.sub(partial(_told, path), path.read_text("utf-8"))
        parts = CODE.split(_plain(text))
        parts[::2] = [LINK.sub(moved, part) for part in parts[::2]]
        return "".join(parts)

    def _place(self, path: Path) -> str:
        """Where a file of the repository is on the site."""
        if path.is_relative_to(DOCS) and path.suffix in (*SHOWN, ".ipynb"):
            return path.relative_to(DOCS).as_posix().replace(".ipynb", ".md")
        name = path.relative_to(ROOT).as_posix()
        if name in ALSO:
            return name
        if name == "README.md":
            return "index.md"
        place = f"code/{name}.md"
        if place not in self.pages:
            self.pages[place] = _source(path, name)
        return place

    def write(self, folder: Path) -> int:
        """Write all files that differ from what is there, and remove others."""
        written = 0
        for place, page in self.pages.items():
            made = page() if callable(page) else page
            data = made.encode() if isinstance(made, str) else made
            path = folder / place
            if not path.exists() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                written += 1
        for path in [p for p in folder.rglob("*") if p.is_file()]:
            if path.relative_to(folder).as_posix() not in self.pages:
                path.unlink()
        return written


def _notebook(book: dict[str, Any]) -> str:
    """An executed notebook as a page: what is written, what is typed, what comes of it."""
    parts: list[str] = []
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            drawn = data.get("text/html") or data.get("image/svg+xml")
            if drawn:  # in one line: what follows a blank line would be Markdown again
                parts.append(f"<div>{' '.join(''.join(drawn).split(chr(10)))}</div>")
                continue
            said = data.get("text/plain") or output.get("text") or output.get("traceback") or ""
            words = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(said) if "traceback" in output else
                           "".join(said))  # fmt: skip
            parts.append(f"```text\n{words.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Blocks of code begin with their language only: the tests read more there."""
    return re.sub(r"^(```\w+) .*$", r"\1", text, flags=re.M)


def _told(path: Path, wrong: re.Match[str]) -> str:
    """A program that is wrong on purpose, with the code of what is said of it."""
    code = wrong[1]
    if wrong.string.startswith("\n\n```text", wrong.end()):
        return wrong[0]  # the message follows, and says more
    place = _codes().get(code)
    word = f"`{code}`"
    if place is not None:
        word = f"[{word}]({os.path.relpath(DOCS, path.parent)}/{place})"
    return f"{wrong[0]}\n\n*raises* {word}"


@cache
def _codes() -> dict[str, str]:
    """Where the page of each code is, from the folder of the pages on."""
    listed = (DOCS / "errors.md").read_text("utf-8")
    return dict(re.findall(r"^\| \[(\S+)\]\((errors/[^)]+)\)", listed, re.M))


def _linked(page: str, own: Insn) -> str:
    """A page of an instruction with links to the others that its sentences name."""
    seen = {own.name}

    def link(match: re.Match[str]) -> str:
        name = match[0]
        if name in seen:
            return name
        seen.add(name)
        return f"[{name}]({name}.md)"

    parts = CODE.split(page)
    parts[::2] = [SENTENCES.sub(lambda line: NAMED.sub(link, line[0]), p) for p in parts[::2]]
    return "".join(parts)


def navigation() -> str:
    """The settings of mkdocs, with the instructions under their classes in the navigation."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    for line, folder, groups in (
        ("Instructions", "isa", _by(INSTRUCTIONS.values(), lambda insn: insn.cost.name)),
        ("Micro-operations", "isa/micro", _by(MICRO.values(), lambda record: record.family)),
    ):
        entry = f"      - {line}: {folder}/README.md\n"
        assert entry in text, entry
        more = [f"      - {line}:", f"          - {folder}/README.md"]
        for title, names in groups.items():
            more.append(f"          - {title[0].upper()}{title[1:]}:")
            more += [f"              - {name}: {folder}/{name}.md" for name in names]
        text = text.replace(entry, "\n".join(more) + "\n")
    return text.replace(": build/", ": ")


def _by(records: Iterable[Any], group: Callable[[Any], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for record in records:
        found.setdefault(group(record), []).append(record.name)
    return {title: sorted(names) for title, names in sorted(found.items())}


def _with_figure(page: str, insn: Insn) -> str:
    """The page with its figure behind the title and what it says first."""
    if not insn.targets - {"cpu"}:
        return page
    head, first, rest = page.split("\n\n", 2)
    figure = f"![{insn.name}](../pictures/isa/{insn.name}.svg)"
    return "\n\n".join([head, first, figure, rest])


def _led(page: str, word: str, place: str) -> str:
    """The page with a link behind its title that leads to the same in another language."""
    head, rest = page.split("\n\n", 1)
    return f"{head}\n\n[{word}](../{place})\n\n{rest}"


def _source(path: Path, name: str) -> str:
    """A page with a file of the repository, or with the list of a folder."""
    if path.is_dir():
        listed = "\n".join(f"* `{each.name}`" for each in sorted(path.iterdir()))
        return f"# {name}\n\n{listed}\n"
    text = path.read_text("utf-8")
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`{3,}", text)), default=0))
    head = f"{UNSEARCHED}# {name}\n\n{fence}{LEXERS.get(path.suffix, 'text')}"
    return f"{head}\n{text.rstrip()}\n{fence}\n"


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/docs"
    site = Site()
    count = site.write(folder)
    (folder.parent / "mkdocs.yml").write_text(navigation(), "utf-8")
    print(f"{count} of {len(site.pages)} files written to {folder}")
    return 0


__all__ = ["Site", "navigation"]

if __name__ == "__main__":
    sys.exit(main())
