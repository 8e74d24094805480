"""Shell completion: commands, their options, and names that options take."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ptokit ch", "check"),
        ("ptokit check --sar", "--sarif"),
        ("ptokit check k.py --target a2a3,kirinx", "a2a3,kirinx90"),
        ("ptokit isa TROWEXPANDS", "TROWEXPANDSUB"),
    ],
)
def test_what_a_shell_is_offered(words: str, offered: str) -> None:
    asked = {
        "_PTOKIT_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "ptokit"], env=os.environ | asked, capture_output=True, text=True
    )
    assert done.stdout.split() == [offered]
