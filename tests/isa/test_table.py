"""Completeness over the instruction table: every record is legal somewhere and runs.

Whether its rules bite, and where, is said in test_bounds.py.
"""

from __future__ import annotations

import pytest

from ptokit import device
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.facts import Ops
from ptokit.isa.samples import samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS, Target
from ptokit.isa.verify import assertions, is_assertion_id, verify
from tests.support import run_sample

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
