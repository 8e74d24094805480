"""The command line in this process: its exit code and what it prints, without a start of Python."""

from __future__ import annotations

import io
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

import pytest

from ptokit import cli
from ptokit.frontend.policies import project_policy


class Answer(NamedTuple):
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def command(*words: object) -> Answer:
    """What `ptokit WORDS` answers; that it is no bug of ours is checked here."""
    out, err = io.StringIO(), io.StringIO()
    project_policy.cache_clear()  # of files that another test wrote
    with (
        patch.object(sys, "argv", ["ptokit", *map(str, words)]),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    assert "Traceback" not in err.getvalue()
    assert "bug of ptokit" not in err.getvalue()
    return Answer(int(ended.value.code or 0), out.getvalue(), err.getvalue())
