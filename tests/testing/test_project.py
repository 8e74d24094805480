"""The example project: what its CI file runs passes, and fails on a race."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ptokit

PROJECT = Path(__file__).resolve().parents[2] / "examples/project"
WORKFLOW = ".github/workflows/kernels.yml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT, tmp_path / "project"))


def commands(project: Path) -> list[str]:
    """The commands of the CI file that do not install anything."""
    found = re.findall(r"run: (.*)", (project / WORKFLOW).read_text("utf-8"))
    return [each for each in found if not each.startswith("pip ")]


def run(project: Path, command: str) -> tuple[int, str]:
    tool, _, rest = command.partition(" ")
    options = " -p no:cacheprovider" * (tool == "pytest")
    plugin = " -p ptokit.pytest_plugin" * (tool == "pytest" and not _is_installed())
    paths = [str(Path(ptokit.__file__).parents[1]), str(project / "src")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"}
    env.pop("PYTEST_ADDOPTS", None)
    line = f"{sys.executable} -m {tool}{plugin}{options} {rest}"
    done = subprocess.run(line, shell=True, cwd=project, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return "ptokit" in {each.name for each in entry_points(group="pytest11")}


@pytest.mark.slow
def test_what_ci_runs_passes_and_leaves_findings_and_a_page(project: Path) -> None:
    assert len(commands(project)) == 4
    for command in commands(project):
        code, told = run(project, command)
        assert code == 0, f"{command}\n{told}"
    assert json.loads((project / "findings.sarif").read_text("utf-8"))["version"] == "2.1.0"
    assert "<html" in (project / "report.html").read_text("utf-8")


def test_a_race_fails_and_is_in_the_findings(project: Path) -> None:
    source = project / "src/rowkernels/softmax.py"
    text = source.read_text("utf-8")
    flags = (
        "    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)\n    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)\n"
    )
    assert text.count(flags) == 1
    source.write_text(text.replace(flags, ""), "utf-8")
    line = 1 + source.read_text("utf-8").splitlines().index("    TSTORE(GlobalTensor(y), block)")
    code, told = run(project, "pytest")
    assert code == 1
    assert f"softmax.py:{line}:5: error[E6]" in told
    check = next(each for each in commands(project) if "--sarif" in each)
    code, _ = run(project, check)
    assert code == 1
    (sarif,) = json.loads((project / "findings.sarif").read_text("utf-8"))["runs"]
    places = [each["locations"][0]["physicalLocation"] for each in sarif["results"]]
    assert line in {place["region"]["startLine"] for place in places}
