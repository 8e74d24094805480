"""`ptokit sweep`: settings, targets and schedules, and going on where it was stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.command import command

KERNEL = """
import numpy as np
from ptokit import *

COLS = 64

@kernel(mode="auto")
def double(x, y, *, rows: int = 8):
    for i in range(0, 64, rows):
        tile = Tile[TileType.Vec, float32, rows, COLS]()
        TLOAD(tile, GlobalTensor(x)[i : i + rows, :])
        TADD(tile, tile, tile)
        TSTORE(GlobalTensor(y)[i : i + rows, :], tile)

@kernel
def racy(x, y):
    tile = Tile[TileType.Vec, float32, 16, 64]()
    TASSIGN(tile, 0)
    TLOAD(tile, GlobalTensor(x)[:16, :64])
    TSTORE(GlobalTensor(y)[:16, :64], tile)

if __name__ == "__main__":
    x, y = np.ones((64, COLS), np.float32), np.zeros((64, COLS), np.float32)
    double[1](x, y, target="a2a3")
    double[1](x, y, target="a2a3", rows=32)
"""
RACY = KERNEL + "    racy[1](x, y, check=False)\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTOKIT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    return path


@pytest.mark.parametrize("name", ["sweep", "explore", "time"])
def test_arguments_of_a_python_file_are_its_own(file: Path, name: str) -> None:
    """Those of the command line would be ignored."""
    code, _, told = command(name, file, "f32[16,64]", "f32[16,64]")
    assert code == 2
    assert "ARG is for PTO text and C++" in told


def test_every_setting_runs_on_every_target_under_every_seed(file: Path) -> None:
    words = ("sweep", file, "--grid", "rows=8,32,1024", "--targets", "a2a3,a5", "--seeds", "3:20")
    code, out, _ = command(*words, "--json")
    rows = json.loads(out)["rows"]
    assert code == 1
    assert [(r["setting"]["rows"], r["target"], r["verdict"], r["runs"]) for r in rows] == [
        (rows, target, "agrees" if rows < 1000 else "refused", 18 if rows < 1000 else 0)
        for rows in (8, 32, 1024)
        for target in ("a2a3", "a5")
    ]
    assert command(*words, "--json", "--jobs", "3")[1] == out  # byte for byte
    table = command(*words)[1].splitlines()
    assert table[-1] == "sweep: 6 cells: 4 agrees, 2 refused; 72 runs"
    assert "rows=1024" in table[-2]
    assert "slice-range" in table[-2]


def test_constants_at_the_top_are_settings_too(file: Path) -> None:
    words = ("--grid", "COLS=32,64", "--grid", "rows=8,16", "--target", "a5", "--seeds", "0:2")
    code, out, _ = command("sweep", file, *words)
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[:-1]] == [
        [f"COLS={cols}", f"rows={rows}"] for cols in (32, 64) for rows in (8, 16)
    ]


def test_a_race_is_found_with_its_line(file: Path) -> None:
    file.write_text(RACY)
    code, out, _ = command("sweep", file, "--kernel", "racy", "--target", "a2a3", "--seeds", "0:8")
    assert code == 1
    assert out.startswith("a2a3  racy  fails  9 runs  in order: E")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "5"), "--seeds takes FROM:TO"),
        (("--seeds", "5:2"), "--seeds takes FROM:TO"),
        (("--grid", "rows"), "--grid takes NAME=VALUE,VALUE"),
        (("--grid", "cols=3"), "unexpected keyword argument 'cols'"),
        (("--jobs", "0"), "--jobs takes a positive number"),
        (("--target", "b9"), "b9"),
    ],
)
def test_wrong_words_are_told(file: Path, words: tuple[str, ...], said: str) -> None:
    code, out, err = command("sweep", file, *words)
    assert code == 2
    assert said in out + err


def test_a_text_is_swept_as_it_stands(file: Path) -> None:
    text = file.with_suffix(".pto")
    text.write_text("func.func @k(%x: !pto.ptr<f32, gm>) {\n  return\n}\n")
    code, out, _ = command("sweep", text, "--targets", "a2a3,a5", "--seeds", "0:3")
    assert (code, out.splitlines()[-1]) == (0, "sweep: 2 cells: 2 agrees; 8 runs")


def test_ctrl_c_leaves_a_journal(file: Path) -> None:
    many = 1200
    seeds = ["--seeds", f"0:{many}", "--jobs", "2"]
    words = [sys.executable, "-m", "ptokit", "sweep", str(file), *seeds]
    how: dict[str, Any] = {"text": True, "stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    # Whatever runs the tests in the background has it ignored, and children would inherit that.
    how["preexec_fn"] = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    journals = file.parent / "cache" / "journals"
    with subprocess.Popen(words, **how, start_new_session=True) as stopped:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if any(path.stat().st_size > 2000 for path in journals.glob("*")):
                break
            time.sleep(0.05)
        os.killpg(stopped.pid, signal.SIGINT)
        _, said = stopped.communicate()
    assert stopped.returncode == 130
    assert "--resume goes on" in said
    (journal,) = journals.glob("*")
    lines = journal.read_text().splitlines(keepends=True)
    # What is known is believed: a run that says so was not run again.
    journal.write_text(lines[0] + "".join(lines[1:]).replace('"runs": 8', '"runs": 88'))
    done = subprocess.run([*words, "--resume"], text=True, capture_output=True, check=False)
    assert done.returncode == 0
    runs = int(done.stdout.splitlines()[-1].split()[-2].replace(",", ""))
    assert runs >= 2 * (many + 1) + 80
    assert not list(journals.glob("*"))
