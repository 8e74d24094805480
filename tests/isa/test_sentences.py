"""What the specification says happens where a rule is broken, sentence by sentence.

Each `otherwise` of the families of moves, products, quantisation, binding and order is either done
by a rule of the table that says what happens, or stands in a list with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Insn
from tests.isa import specification
from tests.isa.sentences_left import LEFT
from tests.isa.specification import Statement, entries
from tests.isa.test_spec import devices, stated

FAMILIES = {
    *("memory", "movement", "irregular", "matrix", "quant", "misc", "binding", "pipes", "sync"),
}
UNENFORCED = ("debug", "doc", "own")
pytestmark = pytest.mark.skipif(bool(specification.missing()), reason=specification.missing())


def sentences(insn: Insn, device: str) -> Iterator[Statement]:
    """What its own entry states of an instruction: rules nothing enforces, with an outcome."""
    for entry in entries().get(insn.name, []):
        if entry.file in FAMILIES:
            yield from (
                one
                for one in entry.rules[device]
                if one.otherwise
                and not one.undefined
                and not one.borrowed
                and one.origin in UNENFORCED
            )


def done(insn: Insn, device: str) -> set[Statement]:
    """The sentences whose outcome a rule of the table, or a list of types, tells and models.

    Or a rule says that nobody knows, where the sentence says so too.
    """
    ids = [r.id for r in insn.rules if (r.otherwise or r.unknown) and r.binds(device)]
    ids += [g.ids.get(device, "dtype") for g in insn.types if g.otherwise]
    return {one for id in ids for one in stated(insn, id, device)}


def left(insn: Insn) -> dict[str, list[str]]:
    """The beginning of each sentence that is not done -> where."""
    found: dict[str, list[str]] = {}
    for device in devices(insn):
        for one in sentences(insn, device):
            if one not in done(insn, device):
                found.setdefault(one.text[:60], []).append(device)
    return found


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=str)
def test_every_outcome_is_done_or_listed(insn: Insn) -> None:
    listed = {begin for reason in LEFT.values() for begin in reason.get(insn.name, ())}
    missing = {text for text in left(insn) if not any(text.startswith(b) for b in listed)}
    stale = {b for b in listed if not any(text.startswith(b) for text in left(insn))}
    assert (missing, stale) == (set(), set())


def test_lists_name_instructions() -> None:
    assert {name for reason in LEFT.values() for name in reason} <= set(INSTRUCTIONS)
