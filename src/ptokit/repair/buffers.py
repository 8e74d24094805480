"""Numbered buffers of which one end is missing: a pipe acquires one before its work, and then
releases it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from ptokit.base.dataclass import dataclass
from ptokit.repair.outline import Outline, Statement
from ptokit.repair.signals import buffer_ends, names
from ptokit.repair.steps import Remedy, Step


@dataclass(frozen=True)
class _End:
    """A statement that acquires a buffer for a pipe, or releases it."""

    at: Statement
    code: str
    acquires: bool
    what: str  # the pipe and the number, as they are written

    @property
    def other(self) -> str:
        """The statement at the other end."""
        one, two = (each.name for each in buffer_ends())
        old, new = (one, two) if self.acquires else (two, one)
        return re.sub(rf"\b{old}(?=\b|_dyn\b)", new, self.code, count=1)


def remedies_of_buffers(program: Outline, near: Statement) -> Iterator[Remedy]:
    """Ends without the other one, which is put around the work beside them.

    Two of one block that lack each other were meant for each other.
    """
    ends = _ends(program, near)
    whole = {end.what for end in ends if end.acquires} & {e.what for e in ends if not e.acquires}
    lonely = [end for end in ends if end.what not in whole]
    for one in lonely:
        for two in lonely:
            if one.acquires and not two.acquires and one.at.block is two.at.block:
                yield Remedy((Step(two.other, one.at, instead=True),))
                yield Remedy((Step(one.other, two.at, instead=True),))
    taken = {end.at for end in ends}
    for end in lonely:
        beside = end.at.block.statements
        at = beside.index(end.at)
        work = _work(beside[at + 1 :] if end.acquires else beside[:at][::-1], taken)
        if work:
            yield Remedy((Step(end.other, work[-1], behind=end.acquires),))


def _work(statements: Iterable[Statement], ends: set[Statement]) -> list[Statement]:
    """The work that comes first, behind ends of buffers that stand together."""
    rest = iter(statements)
    first = next((each for each in rest if each not in ends), None)
    return [] if first is None else [first, *takewhile(lambda each: each not in ends, rest)]


def _ends(program: Outline, near: Statement) -> list[_End]:
    acquires, releases = (names(each) for each in buffer_ends())
    call = re.compile(rf"(?:\w+\.)*(?:({acquires})|({releases}))\b\s*[(\[]?(.*?)[)\]]?$")
    found: list[_End] = []
    for each in program.related(near):
        code = "" if each.blocks else program.code(each)
        end = call.match(code)
        if end is not None:
            found.append(_End(each, code, end[1] is not None, re.sub(r"\s", "", end[3])))
    return found
