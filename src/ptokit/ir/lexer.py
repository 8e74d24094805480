"""From text to tokens. Types and attributes with their brackets are one token each, so the parser
can look a spelling it has met before up instead of reading it again.

A comment starts with `//`, or with `#` and a space as on the instruction pages."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from ptokit.base.location import Location

_FLAT = r"<(?:->|[^<>])*>"
_NEST = rf"<(?:->|[^<>]|<(?:->|[^<>]|<(?:->|[^<>]|{_FLAT})*>)*>)*>"

_TOKEN = re.compile(
    rf"""
    (?:[ \t\r\n]+|//[^\n]*|\#(?=\s|\Z)[^\n]*)*  # stands in front of every token
    (?:(?P<value>%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:\#\d+)?)
  | (?P<type>![A-Za-z_][\w$.]*(?:{_NEST})?|(?:memref|vector|tensor){_NEST})
  | (?P<attr>\#[A-Za-z_][\w$.-]*(?:{_NEST})?|(?:dense|array|affine_map|strided){_NEST})
  | (?P<symbol>@(?:[A-Za-z_$.][\w$.-]*|"[^"\n]*"))
  | (?P<label>\^[\w$.-]+)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))
  | (?P<word>\.?[A-Za-z_][\w$.]*)
  | (?P<mark>->|\.\.\.|[()\[\]{{}}<>,:=?;*])
  | (?P<end>\Z)
  | (?P<bad>.))
    """,
    re.VERBOSE,
)


class Source:
    """A text with its name: turns offsets into locations."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def line(self, offset: int) -> int:
        """The line an offset lies on, from 1."""
        return bisect_right(self._starts, offset)

    def location(self, start: int, end: int) -> Location:
        """The place of a span; one that runs over a line break ends with its first line."""
        number = bisect_right(self._starts, start)
        first = self._starts[number - 1]
        stop = self.text.find("\n", first)
        line = self.text[first : stop if stop >= 0 else len(self.text)]
        col = start - first
        return Location(
            self.file, number, col + 1, min(max(end - first, col + 1), len(line) + 1) + 1, line
        )


_COMMENT = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|(?P<lead>^[ \t]*)?(?P<comment>(?://|#(?=\s|\Z))[^\n]*)', re.MULTILINE
)


@dataclass(frozen=True)
class Comment:
    """A comment with its line; `is_own_line` when nothing stands in front of it."""

    line: int
    text: str
    is_own_line: bool


def comments_of(text: str) -> list[Comment]:
    """All comments of a text, in order."""
    source = Source(text, "")
    return [
        Comment(source.line(m.start("comment")), m["comment"].rstrip(), m["lead"] is not None)
        for m in _COMMENT.finditer(text)
        if m["comment"]
    ]


class Tokens:
    """The tokens of a text as parallel lists; the last one has kind "end" and no text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        kinds, texts, starts = self.kinds, self.texts, self.starts
        for match in _TOKEN.finditer(source.text):
            kind = match.lastgroup
            assert kind is not None
            kinds.append(kind)
            texts.append(match[kind])
            starts.append(match.start(kind))
            if kind == "end":
                break
