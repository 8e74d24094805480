"""Order taken out of the test programs of a public folder: of one that is laid out as theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.support import needs_compiler
from tests.tools.test_systemtests import ROOT
from tests.tools.test_systemtests import folder as folder  # its programs

pytestmark = pytest.mark.slow  # compilers and processes take their time


@needs_compiler
def test_the_flag_of_a_program_is_missed_where_it_was(folder: Path) -> None:
    """tbad does not compile, and is passed over; tfill has one pair, V to MTE3."""
    tool = str(ROOT / "tools/public_mutants.py")
    words = [sys.executable, tool, str(folder), "--proof", "1", "-v"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "found: tfill, golden: " in ran.stdout
    assert "V->MTE3: E6" in ran.stdout
    assert "mutants: 1 of 1 found, 0 harmless silent, 0 false alarms" in ran.stdout


@needs_compiler
def test_a_program_that_is_reported_as_it_stands_is_named(folder: Path) -> None:
    kernel = folder / "tests/npu/a2a3/src/st/testcase/tfill/tfill_kernel.cpp"
    kernel.write_text(kernel.read_text().replace("PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();", ""))
    tool = str(ROOT / "tools/public_mutants.py")
    words = [sys.executable, tool, str(folder), "--only", "tfill"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "as it stands: E6" in ran.stdout
    assert "mutants: 0 of 0 found" in ran.stdout
