"""Every rule has an edge: the last legal and the first illegal value of what it looks at.

The edges are written down in `bounds/`, one file per instruction; a bound that moves by one fails
here. After a rule was changed on purpose, `pytest tests/isa/test_bounds.py --update-golden` looks
for the edges again: read the difference beside the sentence of the rule.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Insn
from ptokit.isa.verify import code_of, verify
from tests.isa.bounds import Edges, applicable, broken_by, changed, parsed, recorded, written
from tests.isa.follow import not_mended

FOLDER = Path(__file__).with_name("bounds")

# Records whose rules look at more than types: which tests break each of them.
RULES_ELSEWHERE: dict[str, str] = {
    "TIMG2COL": "tests/isa/test_img2col.py",
    **dict.fromkeys(("TALLOC", "TPUSH", "TPOP", "TFREE"), "tests/machine/test_fifo_rules.py"),
    "TSYNC": "tests/machine/test_events.py",
}
# (instruction, rule id) that no change of two facts breaks, with the reason.
UNREACHABLE: dict[tuple[str, str], str] = {
    ("SYNCALL", "workspace-size"): "soft and with a workspace: two changes (test_signals.py)",
    ("SYNCALL", "hard"): "hard and with a workspace: two changes (test_signals.py)",
    ("TASSIGN", "SA-0054"): "a sample has no pointers; tests/seeds/test_tassign.py has",
    ("TDIVS", "sources"): "what kind an operand is, is no fact; tests/isa/test_tile_scalar.py asks",
    ("TGATHER", "compare-available"): "no legal call of that form to start from",
}

WITH_RULES = [i for i in INSTRUCTIONS.values() if i.rules and i.name not in RULES_ELSEWHERE]


def path_of(insn: Insn) -> Path:
    return FOLDER / f"{insn.name}.txt"


def lookup(insn: Insn) -> dict[tuple[str, str, str], Edges]:
    """The edges that are written down, by rule and target."""
    record = parsed(path_of(insn).read_text("utf-8")) if path_of(insn).exists() else {}
    return {
        (id, text, target): noted
        for (id, text, targets), noted in record.items()
        for target in targets
    }


@pytest.mark.parametrize("insn", WITH_RULES, ids=str)
def test_edges_of_every_rule(insn: Insn, request: pytest.FixtureRequest) -> None:
    """Each rule says yes and no exactly where it is written down."""
    if request.config.getoption("--update-golden"):
        path_of(insn).write_text(written(recorded(insn)), "utf-8")
    record = lookup(insn)
    problems: list[str] = []
    expected: set[tuple[str, str, str]] = set()
    for name, rule, targets in applicable(insn):
        for target in targets:
            key = name, rule.text, target
            expected.add(key)
            if key not in record:
                problems.append(f"{rule.id} on {target}: no edges are written down")
                continue
            problems += changed(insn, rule, target, record[key])
            is_listed = (insn.name, rule.id) in UNREACHABLE
            if is_listed == bool(record[key]):
                problems.append(f"{rule.id} on {target}: nothing breaks it, or it is listed")
    problems += [f"{key}: no such rule any more" for key in record if key not in expected]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("insn", WITH_RULES, ids=str)
def test_broken_rules_are_reported_with_advice_that_mends(insn: Insn) -> None:
    """The verifier names a broken rule; whoever follows its advice breaks it no more."""
    record = lookup(insn)
    for name, rule, targets in applicable(insn):
        noted = record.get((name, rule.text, targets[0]))
        call = broken_by(insn, targets[0], noted, rule) if noted else None
        if call is not None:
            found = verify(insn, call.sample.facts(call.mode), advise=False)
            said = [d.message for d in found if d.code == code_of(insn, rule)]
            assert any(text.startswith(f"{insn.name}: {rule.text}") for text in said), f"{call}"
            assert not not_mended(call.sample, rule), f"{rule.id}: {call}"


@pytest.mark.parametrize(("name", "path"), RULES_ELSEWHERE.items())
def test_rules_broken_elsewhere_are(name: str, path: str) -> None:
    """The other tests exist and know the instruction."""
    assert name in (FOLDER.parents[2] / path).read_text("utf-8")


# ---- the numbers of the sentences --------------------------------------------------------------

# What a sentence says of a number N, and the values on both sides of the edge.
SAYINGS = (
    (r"(?:at most|<=|no more than) (\d+)", 0, "+", "-"),
    (r"(?:less than|fewer than|<) (\d+)", -1, "+", "-"),
    (r"(?:at least|>=) (\d+)", -1, "-", "+"),
    (r"(?:greater than|more than|>) (\d+)", 0, "-", "+"),
)


def test_edges_are_those_of_the_sentences() -> None:
    """Where a sentence names a bound and an edge lies beside it, the edge is that bound."""
    compared = 0
    for insn in WITH_RULES:
        for (id, text, target), noted in lookup(insn).items():
            every = " ".join(t for texts in noted.values() for t in texts if " = " not in t)
            steps = set(re.findall(r"(\d+)([+-]) (?=(\d+)([+-]))", every))
            for pattern, low, before, after in SAYINGS:
                for number in re.findall(pattern, text):
                    bound = int(number) + low
                    near = {s for s in steps if abs(int(s[0]) - bound) <= 1 and int(number) > 8}
                    near = {s for s in near if int(s[2]) == int(s[0]) + 1 and s[1] == before}
                    if near:
                        compared += 1
                        wanted = (str(bound), before, str(bound + 1), after)
                        assert wanted in near, f"{insn.name} {id} on {target}: {text}: {near}"
    assert compared > 100


def test_folder_holds_nothing_else() -> None:
    assert {p.stem for p in FOLDER.iterdir()} == {i.name for i in WITH_RULES}
