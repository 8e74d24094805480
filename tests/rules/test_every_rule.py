"""Every rule that can be broken by a call gets one verdict: called from Python, and as text."""

from __future__ import annotations

from typing import Any

import pytest

from ptokit.base.diagnostics import Diagnostic, NotSupported, ProgramError, PtoError
from ptokit.base.enums import Layout
from ptokit.base.location import Location
from ptokit.base.policy import PROFILES, Policy
from ptokit.base.tensors import GlobalSpec
from ptokit.engines import ENGINES
from ptokit.frontend.session import running
from ptokit.ir.core import Module
from ptokit.isa.samples import Sample
from ptokit.isa.spec import Insn
from ptokit.isa.verify import code_of
from ptokit.machine.machine import Machine
from ptokit.passes.verify import Verify
from tests.isa.test_bounds import WITH_RULES
from tests.rules.test_table import broken
from tests.support import contents, sample_function, sample_operands

Verdict = dict[str, str]  # code -> severity


def verdict(found: Any) -> Verdict:
    """The errors, or the warnings where there are none."""
    listed: list[Diagnostic] = list(found)
    errors = {d.code: d.severity for d in listed if d.severity == "error"}
    return errors or {d.code: d.severity for d in listed}


def called(sample: Sample, policy: Policy, engine: str) -> tuple[Verdict, Any] | None:
    """What a call of the instruction finds, and the bytes it leaves where it goes on.

    None where there are no such operands.
    """
    machine = Machine(sample.target, "auto", executor=ENGINES[engine].executor, policy=policy)
    with running(machine):
        try:
            operands = sample_operands(sample)
        except (PtoError, AssertionError, ValueError, IndexError):
            return None  # the operand itself is refused, or has no bytes
        attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
        try:
            machine.execute(sample.insn, tuple(operands.values()), attrs, Location("here", 1))
        except NotSupported:
            return None
        except ProgramError as error:
            return verdict(error.diagnostics), None
    return verdict(machine.warnings), contents(machine, operands)


def checked(sample: Sample, policy: Policy) -> Verdict | None:
    """What the verifier finds in a text of this one line; None where it has no plain form."""
    try:
        function = sample_function(sample)
    except (PtoError, KeyError, AssertionError, ValueError, AttributeError):
        return None
    if function is None:
        return None
    return verdict(Verify(policy=policy).check(Module([function]), sample.target))


def is_told_whole(sample: Sample) -> bool:
    """Whether the parameters of a function tell all of it: no shared tiles, no layouts of views."""
    views = [s for s in sample.operands.values() if isinstance(s, GlobalSpec)]
    return not sample.same and all(view.layout == Layout.ND for view in views)


@pytest.fixture(autouse=True)
def without_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that would mend a rule take longest to find, and are tested elsewhere."""
    monkeypatch.setattr("ptokit.isa.remedies.remedies", lambda *_: "")


@pytest.mark.parametrize("insn", WITH_RULES, ids=str)
def test_one_verdict_per_rule(insn: Insn) -> None:
    """The same codes with the same severity, and the same bytes on every engine where a call goes
    on; a text may know less of its operands, never more."""
    done: set[str] = set()
    for rule, _, call in broken(insn):
        code = code_of(insn, rule)
        if call.mode != "auto" or (code in done and not rule.otherwise):
            continue
        # All profiles once; on other targets what happens may differ, the profiles do not.
        profiles = ["release"] if code in done else PROFILES if rule.otherwise else PROFILES[:1]
        done.add(code)
        for profile in profiles:
            policy = Policy(profile)
            eager = called(call.sample, policy, "fast")
            if eager is None:
                break
            assert called(call.sample, policy, "reference") == eager, f"{code}, {profile}"
            text, said = checked(call.sample, policy), eager[0]
            if text and code in text and code in said:
                assert text[code] == said[code], f"{code}, {profile}"
                own = {c for c in text if c.startswith(insn.name) or c[:3] in ("SA-", "PA-")}
                assert own <= set(said) or not is_told_whole(call.sample), f"{code}, {profile}"
