"""Questions about a program as it stands in an editor: what is wrong, what a word means, where it
comes from, what may be written here. Nothing of a text is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError
from ptokit.base.patterns import regex
from ptokit.base.policy import comment_that_allows
from ptokit.from_text import loads
from ptokit.ir.dialects import DEFINITIONS
from ptokit.ir.instructions import forms_by_mnemonic, forms_called
from ptokit.ir.sections import sections
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO
from ptokit.report.micro_pages import page as micro_page
from ptokit.report.pages import markdown

# A name of an operation, of a value, of a function, or of something in Python.
_WORD = regex(r"[%@#!]?[A-Za-z0-9_][\w.$]*|[%@][\w$]+")
_ENDS = regex(r"\r\n|\n|\r")
_MADE = regex(r"(%[\w$]+)(?::\d+)?")  # values on the left of `=`, or arguments of a block


@dataclass(frozen=True)
class Span:
    """Characters of a line; both count from 0."""

    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Offer:
    """Something that may be written: its name, and what it is in a line."""

    name: str
    about: str


def lines_of(text: str) -> list[str]:
    """The lines as editors count them: other separators than these three do not end one."""
    return _ENDS.split(text)


def findings(name: str, text: str) -> list[Diagnostic]:
    """All that `ptokit check` says of a text, for the target that it is written for."""
    found: list[Diagnostic] = []
    for part in sections(text).values():
        try:
            program = loads(part, name)
            found += program.check(program.target())
        except PtoError as error:
            found += error.diagnostics
    return found


def word_at(text: str, line: int, column: int) -> tuple[str, Span] | None:
    """The word under the cursor."""
    lines = lines_of(text)
    if line >= len(lines):
        return None
    for match in _WORD.finditer(lines[line]):
        if match.start() <= column <= match.end():
            return match.group(), Span(line, *match.span())
    return None


def page_of(word: str) -> str:
    """The page of an instruction or operation under any of its names; empty: it has none."""
    if word in INSTRUCTIONS:
        return markdown(INSTRUCTIONS[word])
    own = word.removeprefix("pto.")
    if own in MICRO:
        return micro_page(MICRO[own])
    forms = forms_called(own)
    return markdown(forms[0].insn) if forms else ""


def offers(text: str, line: int, column: int) -> list[Offer]:
    """What may stand where the cursor is: operations behind `pto.`, values behind `%`."""
    lines = lines_of(text)
    before = lines[line][:column] if line < len(lines) else ""
    begun = re.search(r"([%@]?[\w.$]*)$", before)
    word = begun.group(1) if begun else ""
    if word.startswith("%"):
        return [Offer(name, "value") for name in _values_above(lines, line)]
    if word.startswith("@"):
        return [Offer(each, "function") for each in re.findall(r"func\.func\b.*?(@[\w$]+)", text)]
    return [each for each in _operations() if each.name.startswith(word)] if "." in word else []


@cache
def _operations() -> tuple[Offer, ...]:
    named = {f"pto.{name}": _first_line(forms[0].insn.doc)
             for name, forms in forms_by_mnemonic().items()}  # fmt: skip
    named |= {f"pto.{name}": _first_line(record.doc) for name, record in MICRO.items()}
    others = dict.fromkeys(DEFINITIONS, "")
    return tuple(Offer(name, about) for name, about in sorted({**others, **named}.items()))


def _first_line(doc: str) -> str:
    return doc.strip().partition("\n")[0]


def names_of_python(word: str) -> list[Offer]:
    """Instructions of the API that begin so."""
    begun = [i for name, i in INSTRUCTIONS.items() if name.startswith(word) and "." not in name]
    return [Offer(insn.name, _first_line(insn.doc)) for insn in begun]


def definition(text: str, line: int, column: int) -> Span | None:
    """Where the value, block or function under the cursor is made."""
    found = word_at(text, line, column)
    if found is None:
        return None
    word, _ = found
    lines = lines_of(text)
    if word.startswith("@"):
        return next(_places(lines, rf"func\.func\b.*?({re.escape(word)})(?![\w$])"), None)
    if not word.startswith("%"):
        return None
    word = word.partition("#")[0]
    made = [span for span in _made(lines) if lines[span.line][span.start : span.end] == word]
    above = [span for span in made if span.line <= line]
    return above[-1] if above else next(iter(made), None)


def allowance(line: str, finding: str, sign: str) -> tuple[int, str]:
    """The comment that allows a finding on a line: the column where it goes, and its words."""
    written = comment_that_allows(line)
    if written is not None:
        return written.end(), f", {finding}"
    return len(line.rstrip()), f"  {sign} ptokit: allow {finding}"


def _places(lines: list[str], pattern: str) -> Iterator[Span]:
    for number, line in enumerate(lines):
        for match in re.finditer(pattern, line):
            yield Span(number, *match.span(1))


def _made(lines: list[str]) -> Iterator[Span]:
    """Where values are made: results, parameters of functions, what loops carry."""
    for number, line in enumerate(lines):
        code = line.partition("//")[0]
        left, is_result, _ = code.partition(" = ")
        if is_result and re.fullmatch(r"\s*%[\w$]+(:\d+)?(\s*,\s*%[\w$]+)*\s*", left):
            yield from (Span(number, *m.span(1)) for m in _MADE.finditer(left))
        elif "func.func" in code or code.lstrip().startswith("^"):
            yield from (Span(number, *m.span(1)) for m in re.finditer(r"(%[\w$]+)\s*:", code))
        for each in re.finditer(r"scf\.(?:for|while|parallel)\s*\(?(%[\w$]+)\s*=", code):
            yield Span(number, *each.span(1))
        for carried in re.finditer(r"iter_args\(([^)]*)\)", code):
            for each in re.finditer(r"(%[\w$]+)\s*=", carried.group(1)):
                at = carried.start(1)
                yield Span(number, at + each.start(1), at + each.end(1))


def _values_above(lines: list[str], line: int) -> list[str]:
    spans = (span for span in _made(lines) if span.line <= line)
    return [*dict.fromkeys(lines[s.line][s.start : s.end] for s in spans)]
