"""The page of an instruction says of every rule what comes of breaking it, and why."""

from __future__ import annotations

import pytest

from ptokit.base.policy import DEFAULT
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.devices import TARGETS
from ptokit.isa.spec import Insn
from ptokit.isa.verify import code_of
from ptokit.report.pages import cell, markdown, rule_targets, when_broken


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=lambda insn: insn.name)
def test_every_rule_shows_severity_and_origin(insn: Insn) -> None:
    page = markdown(insn)
    for rule in insn.rules:
        said = when_broken(insn, rule)
        on = [t for t in TARGETS if t in insn.targets and t in rule_targets(rule).split(", ")]
        on = on or [t for t in TARGETS if t in insn.targets and rule.targets is None]
        for target in on:
            origin = insn.origin(rule, target)
            severity = DEFAULT.severity(origin, is_defined=bool(rule.otherwise))
            assert f"{severity} (" in said
            assert origin.words in said
        enforced = not any(insn.origin(rule, target).words for target in on)
        assert enforced or not isinstance(rule.otherwise, str) or rule.otherwise in said
        row = [line for line in page.splitlines() if line.startswith(f"| {code_of(insn, rule)} |")]
        assert any(line.endswith(f"| {cell(said)} |") for line in row), rule.id
