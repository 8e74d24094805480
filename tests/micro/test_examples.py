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


@pytest.mark.parametrize("record", [r for r in MICRO.values() if not r.is_logical], ids=str)
def test_the_program_of_a_page_holds(record: Micro) -> None:
    code = program(record)
    assert record.name in code
    assert "assert" in code
    names: dict[str, Any] = {}
    exec(code, names)
