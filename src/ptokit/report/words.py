"""Sentences of pages in another language: a catalogue of phrases beside the one source.

A page is made of what records say, in English, phrase by phrase. `Words("zh")` has a Chinese
phrase for each that its catalogue knows (`zh.po`, in the form that translators' tools read) and
keeps in `missing` what it had none for. In a catalogue {a} and {b} stand for names, or for phrases
that are translated in their turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from importlib import resources

from ptokit.base.namedtuple import NamedTuple
from ptokit.base.patterns import regex

_PAIR = regex(r'^msgid "(.*)"\nmsgstr "(.*)"$', re.M)
_NAMES = regex(r"[\w.<>=%*/+\-\[\]()!&:]+")  # a name or a formula without blanks
_TYPES = regex(r"[a-z]+\d\w*(?: [a-z]+\d\w*)+")  # element types, a blank between
_LISTED = regex(r", | and | or ")


class Language(StrEnum):
    """The languages of pages."""

    en = "en"
    zh = "zh"


class _Pattern(NamedTuple):
    """A phrase with places for others."""

    reads: re.Pattern[str]
    writes: str


class Words:
    """The phrases of one language; called with an English one it gives its own."""

    def __init__(self, lang: str = "en") -> None:
        self.lang = lang
        self.missing: dict[str, None] = {}  # English phrases that the catalogue lacks, in order
        is_zh = lang == "zh"
        self.comma, self.colon, self.semicolon = ("，", "：", "；") if is_zh else (", ", ": ", "; ")

    def __call__(self, text: str) -> str:
        """The phrase in this language; itself, and noted, where there is none."""
        if self.lang == "en" or not text:
            return text
        found = self._found(text)
        if found is None:
            self.missing[text] = None
            return text
        return found

    def aside(self, text: str, more: str) -> str:
        """A phrase with another in brackets."""
        return f"{text} ({more})" if self.lang == "en" else f"{text}（{more}）"

    def listed(self, names: Iterable[str]) -> str:
        """Names that are no words of any language."""
        return (", " if self.lang == "en" else "、").join(names)

    def paragraphs(self, text: str) -> str:
        """A text of paragraphs and lists: each paragraph, and each entry of a list, is a phrase."""
        if self.lang == "en":
            return text
        done: list[str] = []
        for part in re.split(r"\n\s*\n", text):
            entries = re.split(r"^\* ", part, flags=re.M)
            if len(entries) == 1:
                done.append(self(part))
            else:
                done.append("\n".join(f"* {self(each)}" for each in entries[1:]))
        return "\n\n".join(done)

    def _found(self, text: str) -> str | None:
        exact, patterns = _catalogue(self.lang)
        flat = " ".join(text.split())
        if flat in exact:
            return exact[flat]
        for pattern in patterns:
            match = pattern.reads.fullmatch(flat)
            if match is None:
                continue
            inner = {name: self._part(part) for name, part in match.groupdict().items()}
            if None not in inner.values():
                return pattern.writes.format_map(inner)
        return None

    def _part(self, text: str) -> str | None:
        """What stands in a place of a pattern: a phrase, or names."""
        if _TYPES.fullmatch(text):
            return self.listed(text.split())
        names = _LISTED.split(text)
        if all(_NAMES.fullmatch(name) for name in names):
            *first, last = names
            word = "或" if " or " in text else "和"
            return f"{'、'.join(first)} {word} {last}" if first else last
        return self._found(text)


@cache
def _catalogue(lang: str) -> tuple[dict[str, str], list[_Pattern]]:
    text = resources.files("ptokit.report").joinpath(f"{lang}.po").read_text("utf-8")
    exact: dict[str, str] = {}
    patterns: list[tuple[int, _Pattern]] = []
    for source, given in phrases(text):
        exact[source] = given  # one with places too: pages fill in counts themselves
        if re.search(r"\{[a-z]\}", source):
            reads = re.sub(r"\\\{([a-z])\\\}", r"(?P<\1>.+?)", re.escape(source))
            patterns.append((-len(source), _Pattern(re.compile(reads), given)))
    return exact, [pattern for _, pattern in sorted(patterns, key=lambda each: each[0])]


def phrases(text: str) -> list[tuple[str, str]]:
    """The pairs of a catalogue."""
    return [(_unescaped(a), _unescaped(b)) for a, b in _PAIR.findall(text) if a]


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")


__all__ = ["Language", "Words", "phrases"]
