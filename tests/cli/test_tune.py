"""`ptokit tune`: declared or given values, the file that is kept."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ptokit.base.diagnostics import UsageError
from ptokit.cli import COMMANDS
from ptokit.cli.module_constants import constants_of, declared_choices, replaced
from ptokit.cli.parser import app

KERNEL = """
from typing import Literal
import numpy as np
from ptokit import *

@kernel(mode="auto")
def double(x, y, *, rows: Literal[8, 32] = 8):
    for i in range(0, 64, rows):
        tile = Tile[TileType.Vec, float32, rows, 64]()
        TLOAD(tile, GlobalTensor(x)[i : i + rows, :])
        TADD(tile, tile, tile)
        TSTORE(GlobalTensor(y)[i : i + rows, :], tile)

if __name__ == "__main__":
    x, y = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
    double[1](x, y, target="a2a3")
    double[1](x, y, target="a2a3", rows=32)
"""


def invoke(*words: object) -> Result:
    if "tune" not in {c.name for c in app.registered_commands}:
        app.command("tune")(import_module(COMMANDS["tune"]).command)
    return CliRunner().invoke(app, ["tune", *map(str, words)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    return path


def test_declared_values_are_ranked_and_kept(file: Path) -> None:
    done = invoke(file, "--target", "a2a3")
    assert done.exit_code == 0, done.output
    first, best, other = done.stdout.splitlines()[:3]
    assert first == "double: 2 settings, 0 discarded"
    assert best.startswith("  rows=32: ")
    assert other.startswith("  rows=8: ")
    kept = json.loads(file.with_suffix(".tune.json").read_text())
    assert [each["constants"] for each in kept["trials"]] == [{"rows": 32}, {"rows": 8}]


def test_given_values_and_a_place(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "best.json"
    done = invoke(file, "--set", "rows=16,64,1024", "-o", place, "--jobs", 2, "--json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["tuned"]
    assert [each["constants"]["rows"] for each in found["trials"]] == [64, 16, 1024]
    assert found["trials"][2]["reason"]
    assert json.loads(place.read_text()) == found


AT_THE_TOP = (
    KERNEL.replace(", *, rows: Literal[8, 32] = 8", ", *, twice: Literal[False, True] = False")
    .replace("@kernel", "rows: Literal[8, 32, 1024] = 8\nCOLS, NAME = 64, 'é'\n\n@kernel")
    .replace("rows, 64]()", "rows, COLS]()")
    .replace("TADD(tile, tile, tile)", "TADD(tile, tile, tile)\n        if twice:\n"
             "            TADD(tile, tile, tile)")
    .replace(", rows=32)", ")")
)  # fmt: skip


def test_constants_at_the_top_of_a_file_are_tried_with_those_of_kernels(file: Path) -> None:
    """All that is built of them is built anew; what does not fit is discarded."""
    file.write_text(AT_THE_TOP)
    done = invoke(file, "--target", "a2a3", "--set", "COLS=32,64", "--json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["tuned"]
    times = {tuple(t["constants"].values()): t.get("us") for t in found["trials"]}
    assert {rows for (rows, _, _), us in times.items() if us is not None} == {8, 32}
    for cols in (32, 64):
        assert times[32, cols, False] < times[32, cols, True] < times[8, cols, False]
    assert len(found["trials"]) == 12
    assert all(trial["reason"] for trial in found["trials"] if "us" not in trial)
    again = invoke(file, "--target", "a2a3", "--set", "COLS=32,64", "--json", "--jobs", 2)
    assert json.loads(again.stdout)["tuned"] == [found]


def test_values_are_put_in_place_of_those_at_the_top() -> None:
    text = "A, B = 64, 'é'; C = 3\nD: Literal[1, 2] = 1\nE = A + 1\nF = 1\nF = 2\nG = [\n1]\n"
    assert set(constants_of(text)) == {"A", "B", "C", "D"}
    assert declared_choices(text) == {"D": (1, 2)}
    expected = text.replace("64, 'é'; C = 3", "128, 'ü'; C = 10").replace("] = 1", "] = 2")
    assert replaced(text, {"C": 10, "A": 128, "D": 2, "B": "ü"}) == expected


def test_what_cannot_be_tuned_is_told(file: Path, tmp_path: Path) -> None:
    file.write_text(KERNEL.replace(": Literal[8, 32]", ""))
    with pytest.raises(UsageError, match="no kernel with constants to choose"):
        raise invoke(file).exception or AssertionError
    with pytest.raises(UsageError, match="NAME=VALUE,VALUE"):
        raise invoke(file, "--set", "rows").exception or AssertionError
    text = tmp_path / "k.pto"
    text.write_text("module {}")
    with pytest.raises(UsageError, match="takes Python files"):
        raise invoke(text).exception or AssertionError
