"""Reading a call of PTO C++ back: which instruction it is, with which operands and arguments.

The inverse of `calls.py`, from the same records: the name gives the candidates, the number of
arguments the overload, the patterns of the record what the angle brackets say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from ptokit.base.dataclass import dataclass
from ptokit.base.patterns import regex
from ptokit.emit.spelling import brackets, name_of
from ptokit.emit.words import template_text
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Attr, Insn

_CALL = regex(r"(?:.*= )?((?:\w+(?:::|\.))*\w+)(?:<(.*)>)?\((.*)\);?", re.DOTALL)


@dataclass(frozen=True)
class Reading:
    """One meaning of a call: the expression of every operand, the text of template arguments."""

    insn: Insn
    operands: dict[str, str]
    attrs: dict[str, str]


def read_call(text: str) -> list[Reading]:
    """What a call can mean; overloads that differ only in types are all given."""
    match = _CALL.fullmatch(text.strip())
    if match is None:
        return []
    name, inside, passed = match[1], _divided(match[2] or ""), _divided(match[3])
    subject, _, method = name.rpartition(".")
    return [
        reading
        for insn in INSTRUCTIONS.values()
        for form in insn.forms
        for reading in (
            _read(insn, form, method, inside, [subject, *passed])
            if subject and insn.cpp.method == method
            else _read(insn, form, name, inside, passed)
            if not subject and not insn.cpp.method
            else ()
        )
    ]


def _read(
    insn: Insn, form: tuple[str, ...], name: str, inside: list[str], passed: list[str]
) -> Iterator[Reading]:
    """The readings of a call as this overload."""
    present = {o.name for o in insn.operands if o.name in form} | set(insn.cpp.implied)
    together = {n for names in insn.cpp.arrays.values() for n in names}
    order = [o.name for o in insn.operands if o.name in present - together]
    order += list(insn.cpp.arrays) if together & present else []
    behind = [a for a in insn.attrs if a.argument]
    for count in range(len(behind) + 1):
        if len(order) + count != len(passed):
            continue
        values = {n: _bare(insn, n, text) for n, text in zip(order, passed, strict=False)}
        attrs = {a.name: t for a, t in zip(behind[:count], passed[len(order) :], strict=True)}
        for words in _patterns(insn, present, name):
            shown = [(w[1:], text) for w, text in zip(words, inside, strict=False) if w[0] == "@"]
            if len(words) == len(inside) and all(_may_be(insn, n, text) for n, text in shown):
                yield Reading(insn, values, attrs | dict(shown))


def _patterns(insn: Insn, present: set[str], name: str) -> Iterator[list[str]]:
    """The brackets that a call of this name may have: one for each set of arguments it shows."""
    own = [a for a in insn.attrs if not a.argument]
    every = [{}, *({a.name: object() for a in own[:n]} for n in range(1, len(own) + 1))]
    every += [{a.name: object()} for a in own]
    seen: set[tuple[str, ...]] = set()
    for given in every:
        words = brackets(insn, present, given)
        is_name = insn.cpp.method == name or name_of(insn, present, given) == name
        if words is not None and is_name and tuple(words) not in seen:
            seen.add(tuple(words))
            yield words


def _may_be(insn: Insn, name: str, text: str) -> bool:
    """Whether a text is a value of a template argument."""
    attr = next(a for a in insn.attrs if a.name == name)
    return text in _texts(attr) if issubclass(attr.type, IntEnum | bool) else True


def _texts(attr: Attr) -> list[str]:
    if issubclass(attr.type, IntEnum):
        return [template_text(member) for member in attr.type]
    return ["true", "false"]


def _bare(insn: Insn, name: str, text: str) -> str:
    """An argument without the pointer or cast that C++ wants."""
    text = text.removeprefix("&") if name in insn.cpp.pointers else text
    text = text.removeprefix(f"({insn.cpp.casts[name]})") if name in insn.cpp.casts else text
    return re.sub(r"^static_cast<event_t>\((.*)\)$", r"\1", text)


def _divided(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth, start = list[str](), 0, 0
    for at, mark in enumerate(text):
        depth += {"(": 1, "<": 1, "{": 1, ")": -1, ">": -1, "}": -1}.get(mark, 0)
        if mark == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []
