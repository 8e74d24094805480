"""The lines of a function: statements, and between them what the source says there."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location
from ptokit.base.patterns import regex
from ptokit.ir.origins import written as origin_of

_COMMENT = regex(r"\s*(?:#|//)\s?(.*)")
GUARD = "__PTO_AUTO__"


@dataclass
class Line:
    """A line, and what is special about it."""

    text: str
    depth: int
    orders: bool = False  # the compiler does it in auto mode
    where: tuple[str, int] = ("", 0)
    quotes: str = ""  # the line of the source that it shows


@dataclass
class Lines:
    """Lines as they grow. `quotes`: the lines of the source are shown as comments, once each."""

    quotes: bool
    file: str  # of the source
    depth: int = 1
    _lines: list[Line] = field(default_factory=list[Line])
    _seen: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, text: str, where: Location, *, orders: bool = False) -> None:
        """A statement that a line of the source has led to."""
        if not orders:  # what was inserted stands at the lines that it orders
            self._quote(where)
        self._lines.append(Line(text, self.depth, orders, (where.file, where.line)))

    def insert(self, *texts: str) -> None:
        """Statements of no line of the source."""
        self._lines += [Line(text, self.depth) for text in texts]

    def raw(self, text: str) -> None:
        """A line for the preprocessor."""
        self._lines.append(Line(text, 0))

    def declare(self, kind: str, name: str, where: Location) -> None:
        """A variable; those of one type and one line of the source are declared together."""
        self._quote(where)
        at = len(self._lines) - 1
        while at >= 0 and self._lines[at].text.startswith("TASSIGN("):
            at -= 1
        last = self._lines[at] if at >= 0 else Line("", 0)
        if last.depth == self.depth and re.match(rf"{kind} [\w, ]+;$", last.text):
            last.text = f"{last.text[:-1]}, {name};"
        else:
            self._lines.append(Line(f"{kind} {name};", self.depth))

    @property
    def last(self) -> Line:
        return self._lines[-1]

    def drop(self, line: Line) -> None:
        """Take a line away."""
        self._lines = [each for each in self._lines if each is not line]

    def _quote(self, where: Location) -> None:
        """Show a line of the source, with the comments and the free line before it."""
        place = where.file, where.line
        if not where.line or place in self._seen:
            return
        self._seen.add(place)
        above: list[str] = []
        at = where.line - 1
        while (where.file, at) not in self._seen and (
            match := _COMMENT.fullmatch(linecache.getline(where.file, at).rstrip("\n"))
        ):
            self._seen.add((where.file, at))
            above.insert(0, match[1])
            at -= 1
        shown: list[Line] = []
        start = len(self._lines)
        while start and self._lines[start - 1].orders and self._lines[start - 1].where == place:
            start -= 1  # what orders the statement belongs to it
        is_apart = at > 0 and linecache.getline(where.file, at) == "\n"
        if is_apart and start and not self._lines[start - 1].text.endswith("{"):
            shown.append(Line("", 0))
        shown += [Line(f"// {text}".rstrip(), self.depth) for text in above]
        if self.quotes and (text := where.text.strip()):
            file = "" if where.file == self.file else f"{Path(where.file).name}:"
            shown.append(Line(f"// {file}{where.line}: {text}", self.depth, quotes=text))
        self._lines[start:start] = shown

    def written(self, *, guard: bool, origins: bool = False) -> Iterator[str]:
        """The text of the lines; with `guard`, what auto mode does itself is left out there.

        With `origins` every statement says the line it was made from.
        """
        guarded = False
        for at, line in enumerate(self._lines):
            if line.quotes and self._is_plain(at):
                continue
            if guard and line.orders != guarded:
                guarded = line.orders
                yield f"#ifndef {GUARD}" if guarded else "#endif"
            text = f"{'    ' * line.depth}{line.text}".rstrip()
            if origins and line.where[1]:
                text += f"  // {origin_of(Location(*line.where))}"
            yield text
        if guarded:
            yield "#endif"

    def _is_plain(self, at: int) -> bool:
        """Whether the statements below a quoted line say the same as the line."""
        quoted = _bare(self._lines[at].quotes)
        for line in self._lines[at + 1 :]:
            if line.quotes:
                return False
            if not line.orders:
                return _bare(line.text.removesuffix(";")) == quoted
        return False


def _bare(text: str) -> str:
    """A call in Python and in C++ has the same words."""
    return re.sub(r"\s|(?<=\d)f\b", "", text).replace("::", ".").replace("<", "[").replace(">", "]")
