"""Completeness over the instruction table: every record is legal somewhere, runs, and bites.

Gaps are allowed only through the lists below, and a listed gap that has closed fails the suite.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ptokit import device
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.facts import Ops
from ptokit.isa.samples import samples
from ptokit.isa.spec import Insn, Rule
from ptokit.isa.targets import TARGETS, Target
from ptokit.isa.verify import assertions, code_of, is_assertion_id, verify
from tests.isa.follow import not_mended
from tests.isa.mutate import violating
from tests.support import run_sample

ROOT = Path(__file__).resolve().parents[2]

# Records whose rules look at more than types: which tests break each of them.
RULES_ELSEWHERE: dict[str, str] = {
    "TIMG2COL": "tests/isa/test_img2col.py",
    **dict.fromkeys(("TALLOC", "TPUSH", "TPOP", "TFREE"), "tests/machine/test_fifo_rules.py"),
    "TSYNC": "tests/machine/test_events.py",
}
# (instruction, rule id, target) for which no violating example is found, with the reason.
UNREACHABLE: dict[tuple[str, str, str], str] = {
    ("TASSIGN", "SA-0054", t): "a sample has no pointers" for t in TARGETS if t != "cpu"
} | {
    ("TGATHER", "compare-available", t): "no legal call of that form to start from"
    for t in ("kirin9030", "kirinx90")
}

PAIRS = [
    pytest.param(insn, target, id=f"{insn.name}-{target.name}")
    for insn in INSTRUCTIONS.values()
    for target in TARGETS.values()
    if target.name in insn.targets
]


@pytest.mark.parametrize(("insn", "target"), PAIRS)
def test_samples_are_legal_and_run(insn: Insn, target: Target) -> None:
    """Every combination of element types the record lists verifies and runs."""
    for sample in samples(insn, target):
        if not insn.setup and not any(isinstance(s, str) for s in sample.operands.values()):
            found = verify(insn, sample.facts("auto"))
            assert not found, f"{sample}\n" + "\n".join(d.render() for d in found)
        with device(target, mode="auto"):
            run_sample(sample)  # the machine verifies every instruction that it runs


RULES = [
    pytest.param(insn, rule, target, id=f"{code_of(insn, rule)}-{insn.name}-{target.name}")
    for insn in INSTRUCTIONS.values()
    for target in TARGETS.values()
    if target.name in insn.targets and target.is_device and insn.name not in RULES_ELSEWHERE
    for rule in insn.rules
    if rule.targets is None or target.name in rule.targets
]


@pytest.mark.parametrize(("name", "path"), RULES_ELSEWHERE.items())
def test_rules_broken_elsewhere_are(name: str, path: str) -> None:
    """The other tests exist and know the instruction."""
    assert name in (ROOT / path).read_text("utf-8")


@pytest.mark.parametrize(("insn", "rule", "target"), RULES)
def test_each_rule_has_a_violating_example(insn: Insn, rule: Rule, target: Target) -> None:
    """A rule that nothing can break protects nobody; the advice it gives must mend it."""
    found = violating(list(samples(insn, target)), rule)
    gap = (insn.name, rule.id, target.name)
    if gap in UNREACHABLE:
        assert found is None, f"{gap} is reachable now: {found}; take it off the list"
    else:
        assert found is not None, f"no neighbour of the sample breaks: {rule.text}"
        if target.name == min(rule.targets or ("a2a3",)):  # one target says enough, and costs less
            assert not not_mended(found, rule)


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=str)
def test_assertion_ids_are_in_the_catalogue(insn: Insn) -> None:
    known = assertions()["assertions"]
    used = {r.id for r in insn.rules} | {i for t in insn.types for i in t.ids.values()}
    assert {i for i in used if is_assertion_id(i)} <= set(known)


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=str)
def test_unavailable_targets_say_so(insn: Insn) -> None:
    for target in TARGETS.values():
        if target.name not in insn.targets:
            empty = Ops({o.name: None for o in insn.operands}, {}, target, "auto")
            (found,) = verify(insn, empty)
            assert found.message == f"{insn.name} does not exist on {target.name}"


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=str)
def test_record_is_documented(insn: Insn) -> None:
    first = insn.doc.splitlines()[0]
    assert first.endswith("."), "the first line of the docstring is a sentence"
    assert insn.cost
