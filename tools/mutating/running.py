"""Runs tests against changed sources.

What bounds a run is the time of the processor, which does not depend on what else a machine does;
only a run that waits is ended by the clock, much later.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from spread import ROOT

LIMIT = 400  # seconds of the processor, until a run counts as one without end
WAITING = 8  # times as long by the clock
MEMORY = 16 << 20  # KiB of addresses: some changes fill whatever there is
NO_TESTS = 5  # pytest ran none
_BOUNDED = 'ulimit -c 0; ulimit -v "$1"; ulimit -S -t "$2"; shift 2; exec "$@"'


def environment(sources: Path) -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(sources), "CI": "true"}


def failing(sources: Path, tests: Sequence[str], limit: float = LIMIT) -> str:
    """The first test that fails against these sources; "": none."""
    try:
        run = _pytest(sources, ["-x", *tests], limit)
    except subprocess.TimeoutExpired:
        return "no end"
    if run.returncode == 0:
        return ""
    if run.returncode == -signal.SIGXCPU:
        return "no end"
    if run.returncode == -signal.SIGKILL:
        raise RuntimeError(f"ended from outside: {' '.join(tests)}")
    # Tests that are not there notice nothing: what was asked for is wrong, not what was changed.
    if run.returncode == NO_TESTS or "ERROR: not found" in run.stderr + run.stdout:
        raise LookupError(f"no such tests: {' '.join(tests)}")
    failed = [w for w in run.stdout.splitlines() if w.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else "pytest"


def failing_of_many(sources: Path, tests: Sequence[str], limit: float) -> str:
    """The same for more tests than a command line holds."""
    with _listed(tests) as file:
        return failing(sources, [f"@{file}"], limit)


def passing(sources: Path, tests: Sequence[str]) -> frozenset[str]:
    """Those of some tests, or files of tests, that are there and pass."""
    left = [test for test in tests if (ROOT / test.partition("::")[0]).exists()]
    while left:
        with _listed(left) as file:
            run = _pytest(sources, ["-rp", f"@{file}"], LIMIT + len(left) * LIMIT)
        gone = [line for line in run.stderr.splitlines() if line.startswith("ERROR: not found")]
        if not gone:
            words = (line.partition(" ") for line in run.stdout.splitlines())
            passed = {test for word, _, test in words if word == "PASSED"}
            return frozenset(left) & (passed | {test.partition("::")[0] for test in passed})
        left = [test for test in left if not any(line.endswith(f"/{test}") for line in gone)]
    return frozenset()


def _pytest(sources: Path, words: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
    bounds = ["sh", "-c", _BOUNDED, "sh", str(MEMORY), str(int(limit))]
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*bounds, sys.executable, "-m", "pytest", *options, *words],
        cwd=ROOT,
        env=environment(sources),
        capture_output=True,
        text=True,
        timeout=WAITING * limit,
        check=False,
    )


@contextmanager
def _listed(tests: Sequence[str]) -> Generator[str]:
    """A file with the names of tests."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as listed:
        listed.write("\n".join(tests))
        listed.flush()
        yield listed.name
