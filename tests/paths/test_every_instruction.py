"""Every instruction x every path: its own example works, or stands in the list with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import TARGETS, Insn
from ptokit.report.paths import PATHS, gap
from tests.paths.harness import CHECKS, Example

REAL = [insn for insn in INSTRUCTIONS.values() if not insn.targets.isdisjoint(TARGETS)]


def test_every_path_has_a_check() -> None:
    assert list(CHECKS) == list(PATHS)


@pytest.mark.parametrize("insn", REAL, ids=str)
def test_the_example_takes_every_path(insn: Insn, tmp_path: Path) -> None:
    example = Example(insn, tmp_path)
    wrong: list[str] = []
    for path, check in CHECKS.items():
        reason = gap(insn, path)
        try:
            check(example)
        except Exception as error:
            if not reason:
                wrong.append(f"{path}: {type(error).__name__}: {error}")
        else:
            if reason:
                wrong.append(f"{path} works, but is listed: {reason}")
    assert not wrong, "\n".join(wrong)
