"""Every rule of the table has the severity that its origin asks for, in every profile."""

from __future__ import annotations

import pytest

from ptokit.base.policy import PROFILES, Origin, Policy
from ptokit.frontend.policies import known_codes
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.facts import Unknown
from ptokit.isa.spec import Insn, Rule
from ptokit.isa.verify import code_of, outcome, verify
from tests.isa.bounds import Call, applicable, broken_by
from tests.isa.test_bounds import WITH_RULES, lookup

# Origin -> severity where it is known what happens, by profile: default, strict, release.
SEVERITIES = {
    "static": ("error", "error", "error"),
    "static, seed": ("error", "error", "error"),
    "runtime": ("error", "error", "error"),
    "runtime, seed": ("error", "error", "error"),
    "debug": ("warning", "error", "warning"),
    "debug, seed": ("error", "error", "warning"),
    "doc": ("warning", "error", "warning"),
    "doc, seed": ("error", "error", "warning"),
    "own": ("warning", "error", "warning"),
    "own, seed": ("error", "error", "warning"),
}


@pytest.mark.parametrize("said", SEVERITIES)
def test_severity_follows_from_the_origin(said: str) -> None:
    kind, _, seed = said.partition(", ")
    origin = Origin(kind, bool(seed))
    found = tuple(Policy(p).severity(origin, is_defined=True) for p in PROFILES)
    assert found == SEVERITIES[said]


@pytest.mark.parametrize("said", SEVERITIES)
def test_what_nobody_knows_is_an_error(said: str) -> None:
    kind, _, seed = said.partition(", ")
    origin = Origin(kind, bool(seed))
    found = {Policy(p).severity(origin, is_defined=False) for p in PROFILES}
    assert found == {"error"}


def broken(insn: Insn) -> list[tuple[Rule, str, Call]]:
    """A call that breaks a rule, for every rule that a change of its operands can break."""
    record, found = lookup(insn), []
    for name, rule, targets in applicable(insn):
        for target in targets:
            noted = record.get((name, rule.text, target))
            call = broken_by(insn, target, noted, rule) if noted else None
            if call is not None:
                found.append((rule, target, call))
    return found


@pytest.mark.parametrize("insn", WITH_RULES, ids=str)
def test_every_rule_is_reported_with_its_severity(insn: Insn) -> None:
    for rule, target, call in broken(insn):
        origin, then = insn.origin(rule, target), ""
        is_open = False  # what happens is known only to the running program
        try:
            then = outcome(insn, rule, call.sample.facts(call.mode))
        except Unknown:
            is_open = True
        for index, profile in enumerate(PROFILES):
            facts = call.sample.facts(call.mode)
            found = verify(insn, facts, policy=Policy(profile), advise=False)
            text = f"{insn.name}: {rule.text}"
            mine = [
                d for d in found if d.code == code_of(insn, rule) and d.message.startswith(text)
            ]
            wanted = SEVERITIES[str(origin)][index] if then or is_open else "error"
            if is_open:
                assert {d.severity for d in mine} == {wanted} - {"warning"}, f"{rule.id}, {profile}"
                continue
            assert {d.severity for d in mine} == {wanted}, f"{rule.id} on {target}, {profile}"
            assert all(origin.words in d.message for d in mine if then)
            assert all(d.is_allowable == bool(origin.words) for d in mine)


def test_a_rule_says_what_happens_in_words() -> None:
    """An outcome is a sentence about the program, not a mark."""
    for insn in INSTRUCTIONS.values():
        for said in [r.otherwise for r in insn.rules] + [g.otherwise for g in insn.types]:
            assert not isinstance(said, str) or not said or len(said.split()) > 1, insn.name


def test_every_code_of_the_table_can_be_named() -> None:
    """Whatever the verifier reports, `allow` knows."""
    for insn in WITH_RULES:
        for _, _, call in broken(insn):
            found = verify(insn, call.sample.facts(call.mode), advise=False)
            assert {d.code for d in found} <= known_codes() | {f"{insn.name}.unavailable"}
