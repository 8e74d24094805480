"""The program on the page of an operation runs, and asserts something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptokit.isa.micro import MICRO, Micro

PAGES = Path(__file__).parents[2] / "docs/isa/micro"


def program(record: Micro) -> str:
    page = (PAGES / f"{record.name}.md").read_text("utf-8")
    return page.partition("```python\n")[2].partition("```")[0]


SHOWN = [r for r in MICRO.values() if not r.is_logical and program(r)]


@pytest.mark.parametrize("record", SHOWN, ids=str)
def test_the_program_of_a_page_holds(record: Micro) -> None:
    code = program(record)
    assert record.name in code
    assert "assert" in code
    names: dict[str, Any] = {}
    exec(code, names)


def test_which_operations_have_none() -> None:
    """Those whose numbers are told nowhere, or that tests/micro/test_cube.py holds alone."""
    without = {r.name for r in MICRO.values() if not r.is_logical} - {r.name for r in SHOWN}
    scales = {"mte_l1_l0a_mx", "mte_l1_l0b_mx", "mad_mx", "mad_mx_acc", "mad_mx_bias"}
    parameters = {"mte_l1_fb", "copy_cbuf_to_fbuf"}
    assert without == scales | parameters | {"copy_gm_to_cbuf", "vmrgsort4", "get_vms4_sr"}
