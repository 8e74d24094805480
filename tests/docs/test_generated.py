"""Generated files are fresh, and the example of every instruction page runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO, Micro
from ptokit.isa.spec import Insn
from ptokit.report.pages import markdown

ROOT = Path(__file__).resolve().parents[2]


def test_generated_files_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools/gen.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=str)
def test_the_example_of_the_page_runs(insn: Insn) -> None:
    blocks = re.findall(r"^## Example\n\n```python\n(.*?)^```$", markdown(insn), re.M | re.S)
    assert len(blocks) == (1 if insn.targets - {"cpu"} else 0)
    for block in blocks:
        exec(compile(block, f"docs/isa/{insn.name}.md", "exec"), {})


@pytest.mark.parametrize("record", [r for r in MICRO.values() if r.is_logical], ids=str)
def test_the_example_of_an_operation_on_vectors_asserts_what_it_makes(record: Micro) -> None:
    page = (ROOT / f"docs/isa/micro/{record.name}.md").read_text("utf-8")
    (block,) = re.findall(r"^## Example\n\n```python\n(.*?)^```$", page, re.M | re.S)
    assert f"pto.{record.name}" in block
    assert "assert_array_equal" in block
    exec(compile(block, f"docs/isa/micro/{record.name}.md", "exec"), {})


def test_asterisks_of_rules_stay_asterisks() -> None:
    """Pages escape them, terminals show them, messages never had anything else."""
    from rich.console import Console
    from rich.markdown import Markdown

    page = markdown(INSTRUCTIONS["TLOAD"])
    assert r"S0\*S1\*S2\*S3" in page
    console = Console(width=300)
    with console.capture() as shown:
        console.print(Markdown(page))
    assert "valid rows of dst == S0*S1*S2*S3" in shown.get()
    assert not any("\\" in rule.text for insn in INSTRUCTIONS.values() for rule in insn.rules)
