"""Generated files are fresh, and the example of every instruction page runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptokit import PtoError
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO, Micro
from ptokit.isa.spec import Insn
from ptokit.report.pages import markdown

# What they do is seen in no tile, view or number of their own call.
WITHOUT_ASSERTION = """
    SETFMATRIX SET_IMG2COL_PADDING SET_IMG2COL_RPT SET_QUANT_SCALAR SET_QUANT_VECTOR TSETHF32MODE
    TSETTF32MODE SYNCALL TSYNC barrier_all cacheinvalid dcci dsb ffts_cross_core_sync get_buf
    pipe_barrier rls_buf set_cross_block set_ffts_base_addr set_flag set_intra_block sync_set
    sync_wait wait_cross_block wait_flag wait_flag_dev wait_intra_block comm.TWAIT TFREE TPUSH
    TPREFETCH TPREFETCH_ASYNC TPRINT store_scalar
    comm.TBROADCAST comm.TSCATTER
    TGEMV TGEMV_ACC TGEMV_BIAS TGEMV_MX
    TMATMUL_MX_HIF4 TPACK TQUANT_HIF4
"""  # groups of ranks; rows that the cube leaves undefined; what no device has
# They take no operand, or any.
WITHOUT_MISTAKE = """
    TRESHAPE SETFMATRIX TSETTF32MODE TSETHF32MODE TSYNC dcci dsb cacheinvalid barrier_all
    load_scalar store_scalar TMATMUL_MX_HIF4 TPACK TQUANT_HIF4
"""

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


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=str)
def test_the_page_shows_what_comes_of_it_and_a_mistake(insn: Insn) -> None:
    """What writes data asserts some of it; the mistake is refused under its code."""
    page = markdown(insn)
    example = page.partition("## Example")[2].partition("## A mistake")[0]
    asserts = re.search(r"^    (np\.testing\.|assert )", example, re.M)
    assert bool(asserts) != (insn.name in WITHOUT_ASSERTION.split())
    mistakes = re.findall(
        r"^```python raises=(\S+)\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.M | re.S
    )
    assert bool(mistakes) != (insn.name in WITHOUT_MISTAKE.split())
    for code, program, message in mistakes:
        assert f"error[{code}]" in message
        with pytest.raises(PtoError) as caught:
            exec(compile(program, f"docs/isa/{insn.name}.md", "exec"), {})
        assert caught.value.codes == (code,)


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
