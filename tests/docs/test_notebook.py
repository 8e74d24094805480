"""The notebooks of the documentation are what Jupyter can open, and their outputs are fresh."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def test_outputs_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools/notebook.py"), "--check", *map(str, NOTEBOOKS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stale_output_is_noticed(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "source": ["1 + 1"], "outputs": [], "id": "a"}]
    path = tmp_path / "stale.ipynb"
    path.write_text(json.dumps({"cells": cells}), "utf-8")
    command = [sys.executable, str(ROOT / "tools/notebook.py"), str(path)]
    assert subprocess.run([*command, "--check"], capture_output=True).returncode == 1
    assert subprocess.run(command, capture_output=True).returncode == 0
    (cell,) = json.loads(path.read_text("utf-8"))["cells"]
    assert cell["outputs"][0]["data"] == {"text/plain": ["2"]}
    assert subprocess.run([*command, "--check"], capture_output=True).returncode == 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_of_the_format_it_names(path: Path) -> None:
    book = json.loads(path.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    shown = {
        kind
        for cell in book["cells"]
        for output in cell.get("outputs", ())
        for kind in (*output.get("data", ()), output["output_type"])
    }
    assert {"text/html", "image/svg+xml", "error", "stream"} <= shown
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(book)
