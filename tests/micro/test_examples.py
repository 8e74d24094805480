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
    assert f"{record.name}(" in code or f"{record.name}[" in code
    assert "assert" in code
    names: dict[str, Any] = {}
    exec(code, names)


def test_every_operation_on_registers_has_one() -> None:
    """Streams and barriers are shown by what comes behind them: tests/micro/test_memory.py."""
    without = {r.name for r in MICRO.values() if r.is_inside and not r.is_logical} - {
        r.name for r in SHOWN
    }
    streams = {"vldas", "vldus", "init_align", "vstus", "vstas", "vstur", "vstar", "pstu"}
    assert without == streams | {"sprclr", "sprsti", "sprsts", "mem_bar"}
