"""Which tests run which blocks of the package, and which of them to ask first.

Found out once, by running all tests with marks in the blocks (trace.py), and kept while sources
and tests stay the same.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from spread import ROOT, state

from mutating.changes import Change
from mutating.running import environment

PACKAGE = ROOT / "src" / "ptokit"
KEPT = ROOT / ".pytest_cache" / "mutation"
FEW, SECONDS = 48, 25.0  # tests and their time in the first round
MORE_SECONDS = 60.0  # of whole files of tests in the second, and of some tests of the others
SPREAD = 4  # tests of each of those


def traced() -> dict[str, dict[str, Any]]:
    """Test -> the blocks it runs and its time; from the last run if nothing has changed."""
    kept = KEPT / f"{state(('src', 'tests'))}.json"
    if kept.exists():
        return json.loads(kept.read_text("utf-8"))
    print("mutation: finding out which tests run what ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        env = environment(ROOT / "src") | {"PTOKIT_TRACE": folder}
        env["PYTHONPATH"] += os.pathsep + str(ROOT / "tools")
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "mutating.trace", "tests"],
            cwd=ROOT,
            env=env,
            check=False,
            stdout=subprocess.DEVNULL,
        )
        found: dict[str, dict[str, Any]] = {}
        for part in Path(folder).glob("gw*.json"):
            found |= json.loads(part.read_text("utf-8"))
    found = {test: noted for test, noted in found.items() if "seconds" in noted}
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(parents=True)
    kept.write_text(json.dumps(found), "utf-8")
    return found


def block_of(change: Change) -> str:
    """The innermost block around a change, as the trace names it."""
    source = (PACKAGE / change.file).read_text("utf-8")
    line = change.line
    best = ""
    for node in ast.walk(ast.parse(source)):
        blocks: list[list[Any]] = []
        if isinstance(node, ast.Lambda):
            blocks = [[node.body]]
        elif not isinstance(node, ast.Module | ast.ClassDef):
            parts = [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]
            blocks = [p for p in parts if isinstance(p, list) and p and isinstance(p[0], ast.stmt)]
        for block in blocks:
            if block[0].lineno <= line <= (block[-1].end_lineno or line):
                best = f"{change.file}:{block[0].lineno}"  # inner ones come later
    return best


class Tests:
    """The tests, with what is known of each."""

    def __init__(self, traced: dict[str, dict[str, Any]]) -> None:
        self.seconds = {test: noted["seconds"] for test, noted in traced.items()}
        self._blocks = {test: noted["blocks"] for test, noted in traced.items()}
        self._running: dict[str, list[str]] = {}
        self._file_seconds: dict[str, float] = {}
        for test, seconds in self.seconds.items():
            file = test.partition("::")[0]
            self._file_seconds[file] = self._file_seconds.get(file, 0.0) + seconds
        for test, blocks in self._blocks.items():
            for block in blocks:
                self._running.setdefault(block, []).append(test)

    def of(self, change: Change) -> dict[str, list[str]]:
        """The tests that run the changed block, by file: those most about its module first."""
        about = {t: self._about(t, change.file) for t in self._running.get(block_of(change), [])}
        files: dict[str, list[str]] = {}
        for test in sorted(about, key=lambda t: (-about[t], self.seconds[t])):
            files.setdefault(test.partition("::")[0], []).append(test)
        return files

    def _about(self, test: str, file: str) -> float:
        """How much of what a test runs lies in a module, in tenths of what any test has.

        Those whose file has the name of the module are the first of all.
        """
        if Path(test.partition("::")[0]).stem == f"test_{Path(file).stem}":
            return 10.0
        blocks = self._blocks[test]
        return round(10 * sum(b.startswith(file) for b in blocks) / (len(blocks) + 50), 1)

    def few(self, files: dict[str, list[str]]) -> list[str]:
        """Some tests of each file, in turn, as far as time allows."""
        found: list[str] = []
        spent = 0.0
        for nth in range(FEW):
            for tests in files.values():
                if nth < len(tests) and len(found) < FEW and spent < SECONDS:
                    found.append(tests[nth])
                    spent += self.seconds[tests[nth]]
        return found

    def more(self, files: dict[str, list[str]]) -> list[str]:
        """Whole files, those most about the module first, then some tests of every other one.

        Kernels keep what was lowered, so only the first test of a file is seen to run it.
        """
        whole: list[str] = []
        spent = 0.0
        for file in files:
            if spent < MORE_SECONDS:
                whole.append(file)
                spent += self._file_seconds[file]
        others = [tests for file, tests in files.items() if file not in whole]
        spread = [test for tests in others for test in tests[:: max(1, len(tests) // SPREAD)]]
        found = list(whole)
        spent = 0.0
        for test in spread:
            if spent < MORE_SECONDS:
                found.append(test)
                spent += self.seconds[test]
        return found
