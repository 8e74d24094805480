"""Numbers of the model: none without provenance, and one for every class of every target."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptokit.base.diagnostics import PtoError, UsageError
from ptokit.isa.devices import TARGETS as DEVICES
from ptokit.isa.samples import samples
from ptokit.isa.spec import INSTRUCTIONS
from ptokit.isa.targets import TARGETS
from ptokit.timing.params import load, read

GOOD = """
[scalar.issue]
value = 4.0
unit = "cycles"
source = "a page"
range = "1 to 2"
residual = "3 %"
"""


def refused(tmp_path: Path, text: str) -> str:
    file = tmp_path / "a2a3.toml"
    file.write_text(text)
    with pytest.raises(PtoError) as error:
        read(file)
    assert error.value.codes == ("timing.provenance",)
    return str(error.value)


def test_a_number_with_its_evidence_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a2a3.toml"
    file.write_text(GOOD)
    assert read(file)["scalar.issue"] == 4.0


@pytest.mark.parametrize("missing", ["unit", "source", "range", "residual"])
def test_a_number_without_provenance_is_refused(tmp_path: Path, missing: str) -> None:
    text = "\n".join(line for line in GOOD.splitlines() if not line.startswith(missing))
    assert missing in refused(tmp_path, text)


def test_a_bare_number_is_refused(tmp_path: Path) -> None:
    assert "bare number" in refused(tmp_path, "[scalar]\nissue = 4.0\n")


def test_assumed_wants_a_reason(tmp_path: Path) -> None:
    text = '[scalar.issue]\nvalue = 4.0\nunit = "cycles"\nassumed = ""\n'
    assert "reason" in refused(tmp_path, text)


def test_the_hash_is_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a2a3.toml"
    file.write_text(GOOD)
    before = read(file).digest
    file.write_text(GOOD.replace("4.0", "5.0"))
    assert read(file).digest != before


@pytest.mark.parametrize("name", list(DEVICES))
def test_every_instruction_of_a_target_has_a_law(name: str) -> None:
    params, target = load(name), TARGETS[name]
    for insn in INSTRUCTIONS.values():
        if name not in insn.targets or insn.orders or insn.moves_entries or insn.pipe is None:
            continue
        written = {operand.name for operand in insn.operands if operand.writes}
        for sample in samples(insn, target):
            ops = sample.facts()
            features = insn.cost.measure(ops)
            assert all(value >= 0 for value in features.values()), sample
            if "scalar" in insn.cost.name:
                continue  # the scalar unit issues it, and that is all
            law = params.law(insn, insn.cost.of(ops, written))
            for _, terms in law.bounds:
                assert {feature for feature, _ in terms} <= set(features), sample


def test_a_class_without_numbers_is_an_error_by_name() -> None:
    with pytest.raises(PtoError, match="TADD belongs to the class 'nothing'"):
        load("a2a3").law(INSTRUCTIONS["TADD"], "nothing")


def test_a_target_without_a_file_says_which_have_one() -> None:
    with pytest.raises(UsageError, match="a2a3"):
        load("cpu")


def test_no_instruction_is_named_in_a_parameter() -> None:
    """Classes are named by records; a number of one instruction would be knowledge of its own."""
    for name in DEVICES:
        for number in load(name).numbers:
            assert not {word.strip(",") for word in number.split()} & set(INSTRUCTIONS), number
