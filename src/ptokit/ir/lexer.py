"""From text to tokens. Types and attributes with their brackets are one token each, so the parser
can look a spelling it has met before up instead of reading it again.

No pattern goes back over what it has read: a text is cut into tokens in time that grows with its
length, whatever it holds.

A comment starts with `//`, or with `#` and a space as on the instruction pages."""

from __future__ import annotations

import re
from bisect import bisect_right

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import ProgramError
from ptokit.base.location import Location
from ptokit.base.patterns import regex
from ptokit.ir.limits import DEFAULT, TextLimits, admitted, check_lines

_FLAT = r"<(?:->|[^<>])*+>"
_NEST = rf"<(?:->|[^<>]|<(?:->|[^<>]|<(?:->|[^<>]|{_FLAT})*+>)*+>)*+>"
_OPEN = r'"(?:[^"\\\n]|\\.)*+'  # a string up to its closing quote, or to where it should be

_TOKEN = rf"""
    (?:[ \t\r\n]+|//[^\n]*|\#(?=\s|\Z)[^\n]*)*  # stands in front of every token
    (?:(?P<value>%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:\#\d+)?)
  | (?P<type>![A-Za-z_][\w$.]*(?:{_NEST})?|(?:memref|vector|tensor){_NEST})
  | (?P<attr>\#[A-Za-z_][\w$.-]*(?:{_NEST})?|(?:dense|array|affine_map|strided){_NEST})
  | (?P<symbol>@(?:[A-Za-z_$.][\w$.-]*|"[^"\n]*"))
  | (?P<label>\^[\w$.-]+)
  | (?P<string>{_OPEN}")
  | (?P<unclosed>{_OPEN})
  | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))
  | (?P<word>\.?[A-Za-z_][\w$.]*)
  | (?P<mark>->|\.\.\.|[()\[\]{{}}<>,:=?;*])
  | (?P<end>\Z)
  | (?P<bad>.))
    """


class Source:
    """A text with its name: turns offsets into locations."""

    def __init__(self, text: str, file: str, limits: TextLimits = DEFAULT) -> None:
        self.text = admitted(text, file, limits)
        self.file = file
        self.limits = limits
        self._starts = [0, *(m.end() for m in re.finditer("\n", self.text))]
        self._latest = (0, "")  # the number and the text of the line that was asked for last
        check_lines(self._starts, len(self.text), file, limits)

    def line(self, offset: int) -> int:
        """The line an offset lies on, from 1."""
        return bisect_right(self._starts, offset)

    def location(self, start: int, end: int) -> Location:
        """The place of a span; one that runs over a line break ends with its first line."""
        number = bisect_right(self._starts, start)
        first = self._starts[number - 1]
        if self._latest[0] != number:  # the locations of a line share its text
            stop = self._starts[number] if number < len(self._starts) else len(self.text)
            self._latest = (number, self.text[first:stop].rstrip("\r\n"))
        line = self._latest[1]
        col = start - first
        return Location(
            self.file, number, col + 1, min(max(end - first, col + 1), len(line) + 1) + 1, line
        )


_COMMENT = regex(rf'{_OPEN}"?|(?P<lead>^[ \t]*)?(?P<comment>(?://|#(?=\s|\Z))[^\n]*)', re.MULTILINE)


@dataclass(frozen=True)
class Comment:
    """A comment with its line; `is_own_line` when nothing stands in front of it."""

    line: int
    text: str
    is_own_line: bool


def comments_of(source: Source) -> list[Comment]:
    """All comments of a text, in order."""
    return [
        Comment(source.line(m.start("comment")), m["comment"].rstrip(), m["lead"] is not None)
        for m in _COMMENT.finditer(source.text)
        if m["comment"]
    ]


_DIGITS = regex(r"0x[0-9A-Fa-f]+|[0-9]+")
_WITH_NUMBERS = ("number", "type", "attr", "value")
_AHEAD = 4  # tokens, at most, that a parser looks at behind the next one


class Tokens:
    """The tokens of a text as parallel lists; the last ones have kind "end" and no text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        kinds, texts, starts = self.kinds, self.texts, self.starts
        short = source.limits.digits
        # Compiled when there is a text to read: it takes as long as checking a small one.
        for match in re.finditer(_TOKEN, source.text, re.VERBOSE | re.ASCII):
            kind = match.lastgroup
            assert kind is not None
            text = match[kind]
            kinds.append(kind)
            texts.append(text)
            starts.append(match.start(kind))
            if len(text) > short and kind in _WITH_NUMBERS:
                self._check_digits(text, starts[-1])
            if kind == "end":
                break
        kinds += ["end"] * _AHEAD
        texts += [""] * _AHEAD
        starts += [len(source.text)] * _AHEAD

    def _check_digits(self, text: str, start: int) -> None:
        limits = self.source.limits
        for found in _DIGITS.finditer(text):
            length = found.end() - found.start()
            if length > limits.digits:
                at = start + found.start()
                what, place = "digits of a number", self.source.location(at, at + 1)
                raise ProgramError([limits.exceeded("digits", what, length, place)])
