"""The steps of docs/add-an-instruction.md, performed on a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/add-an-instruction.md"
BLOCK = re.compile(r"^```(\w+)(?: (create|replace)=(\S+))?\n(.*?)^```$", re.M | re.S)


def run(command: str, cwd: Path) -> str:
    """Run one command of the page with the interpreter of this test run."""
    words = command.replace("python ", f"{sys.executable} ", 1)
    env = {**os.environ, "PYTHONPATH": str(cwd / "src"), "COLUMNS": "200"}
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(words, shell=True, cwd=cwd, env=env, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_every_step_shows_what_the_page_says(tmp_path: Path) -> None:
    for name in ("src", "tools", "docs", "tests", "examples"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    steps = BLOCK.findall(PAGE.read_text("utf-8"))
    assert len(steps) >= 6
    for language, action, target, text in steps:
        if action == "create":
            (tmp_path / target).write_text(text, "utf-8")
        elif action == "replace":
            old, new = text.split("---\n")
            path = tmp_path / target
            source = path.read_text("utf-8")
            assert source.count(old) == 1, f"{target} does not hold this text once:\n{old}"
            path.write_text(source.replace(old, new), "utf-8")
        elif language == "console":
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
                output = run(command, tmp_path)
                for line in expected.splitlines():
                    assert line in output, f"$ {command}\nexpected: {line}\ngot:\n{output}"
