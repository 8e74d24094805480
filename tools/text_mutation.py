"""The programs in text that lack one piece of synchronisation, or have it wrong.

Texts of auto kernels are full of it: what the compiler has inserted is what an author would write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ptokit.ir.core import Op
from ptokit.ir.fifos import is_transfer
from ptokit.ir.ordering import effects_of, orders_pipes
from ptokit.ir.parser import parse
from ptokit.isa.effects import Barrier
from ptokit.repair.outline import Statement, of_text


@dataclass(frozen=True)
class TextMutant:
    """One text with one thing taken out or changed."""

    line: int
    what: str
    kind: str
    source: str

    def __str__(self) -> str:
        return f"line {self.line} {self.what}"


def _kind(op: Op) -> str:
    """What kind of order an operation is about; empty: it is work."""
    if is_transfer(op):
        return "fifo"
    if op.insn is not None and op.insn.sets:
        return "register"
    if not orders_pipes(op):
        return ""
    return "barrier" if any(isinstance(e, Barrier) for e in effects_of(op)) else "flag"


def text_mutants(text: str) -> Iterator[TextMutant]:
    """Every program in text with one piece of synchronisation less, changed, or elsewhere."""
    program = of_text(text)
    assert program is not None
    lines = text.splitlines()
    kinds = {op.location.line: _kind(op) for op in parse(text).walk()}
    ends: dict[str, list[int]] = {}
    for each in program:
        kind = kinds.get(each.first, "")
        if not kind or each.first != each.last:
            continue
        code, at = lines[each.first - 1].strip(), each.first

        def changed(instead: str, how: str, at: int = at, kind: str = kind) -> TextMutant:
            after = list(lines)
            after[at - 1] = instead
            return TextMutant(at, how, kind, "\n".join(after) + "\n")

        yield changed("", f"without {code}")
        if kind == "flag":
            ends.setdefault(code.partition("[")[2], []).append(at)
            number = re.search(r"EVENT_ID(\d)", code)
            if number is not None:
                other = f"EVENT_ID{(int(number[1]) + 1) % 8}"
                yield changed(code.replace(number[0], other), f"with {other} in {code}")
            first, second = re.findall(r"PIPE_\w+", code)[:2]
            instead = re.sub(r"PIPE_\w+", lambda m: second if m[0] == first else first, code)  # noqa: B023
            yield changed(instead, f"with pipes exchanged in {code}")
        if kind != "fifo":
            yield from _moved(each, kinds, lines, kind)
    for what, places in ends.items():
        if len(places) > 1:
            after = list(lines)
            for place in places:
                after[place - 1] = ""
            source = "\n".join(after) + "\n"
            yield TextMutant(places[0], f"without the flag [{what}", "flag", source)


def _moved(
    each: Statement, kinds: dict[int, str], lines: list[str], kind: str
) -> Iterator[TextMutant]:
    """The operation behind the work that follows it, or before the work that it follows."""
    beside = each.block.statements
    place = beside.index(each)
    for other in (*beside[max(place - 1, 0) : place], *beside[place + 1 : place + 2]):
        is_work = not kinds.get(other.first) and other.first == other.last
        if is_work and re.match(r"pto\.t", lines[other.first - 1].strip()):
            after = list(lines)
            after[each.first - 1], after[other.first - 1] = (
                lines[other.first - 1],
                lines[each.first - 1],
            )
            how = "before" if other.first < each.first else "behind"
            what = f"{lines[each.first - 1].strip()} moved {how} its neighbour"
            yield TextMutant(each.first, what, kind, "\n".join(after) + "\n")
