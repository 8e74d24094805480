"""`ptokit time`: Python files, texts, what-if, traces."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ptokit.base.diagnostics import ProgramError, UsageError
from ptokit.cli import COMMANDS
from ptokit.cli.parser import app

KERNEL = """
import numpy as np
from ptokit import *

@kernel(mode="auto")
def double(x, y):
    tile = Tile[TileType.Vec, float32, 16, 64]()
    TLOAD(tile, GlobalTensor(x))
    TADD(tile, tile, tile)
    TSTORE(GlobalTensor(y), tile)

if __name__ == "__main__":
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    for _ in range(3):
        double[1](x, y, target="a2a3")
    print("done")
    raise SystemExit(0)
"""


def invoke(*words: object) -> Result:
    if "time" not in {c.name for c in app.registered_commands}:
        app.command("time")(import_module(COMMANDS["time"]).command)
    return CliRunner().invoke(app, ["time", *map(str, words)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    return path


def timings(*words: object) -> list[dict[str, object]]:
    done = invoke(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["timings"]


def test_the_same_launch_of_a_python_file_is_timed_once(file: Path) -> None:
    (found,) = timings(file, "--target", "a2a3")
    assert found["kernel"] == "double"
    assert float(str(found["us"])) > 0
    said = invoke(file, "--target", "a2a3")
    assert "V waits" in said.stdout
    assert "set after TLOAD k.py:8" in said.stdout


def test_what_if(file: Path) -> None:
    (found,) = timings(file, "--target", "a2a3")
    (slow,) = timings(file, "--target", "a2a3", "--set", "launch.start=1000000")
    assert float(str(slow["us"])) > 100 * float(str(found["us"])) / 2
    assert slow["band"] == "not validated"
    with pytest.raises(UsageError, match="NAME=NUMBER"):
        raise invoke(file, "--set", "launch.start").exception or AssertionError


def test_a_text_and_its_trace(file: Path, tmp_path: Path) -> None:
    scope: dict[str, object] = {"__name__": "k"}
    exec(compile(KERNEL, str(file), "exec"), scope)
    import numpy as np

    double: object = scope["double"]
    args = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    text = tmp_path / "k.pto"
    text.write_text(double.text(*args, target="a2a3"))  # type: ignore[attr-defined]
    trace = tmp_path / "k.json"
    words = (text, "f32[16,64]", "f32[16,64]", "--target", "a2a3")
    (found,) = timings(*words, "--trace", trace)
    assert found["us"] == timings(file, "--target", "a2a3")[0]["us"]
    assert {e["ph"] for e in json.loads(trace.read_text())["traceEvents"]} >= {"X", "s", "f", "M"}


def test_a_file_without_a_launch_says_so(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(KERNEL.split("if __name__")[0])
    with pytest.raises(UsageError, match="launches no kernel"):
        raise invoke(path).exception or AssertionError


DECLARED = """
from types import SimpleNamespace
from ptokit import *

@kernel(mode="auto")
def double(x: float32[16, 64], y: float32[16, 64]):
    tile = Tile[TileType.Vec, float32, 16, 64]()
    TLOAD(tile, GlobalTensor(x))
    TADD(tile, tile, tile)
    TSTORE(GlobalTensor(y), tile)
"""


def test_a_kernel_that_declares_its_arguments_need_not_be_launched(
    file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "declared.py"
    path.write_text(DECLARED)
    (found,) = timings(path)
    assert found["us"] == timings(file, "--target", "a2a3")[0]["us"]
    path.write_text(
        DECLARED.replace(": float32[16, 64]", "")
        + "CASES = [SimpleNamespace(kernel=double, targets=('a5',), inputs=lambda rng: "
        "[rng.random((16, 64), 'f4'), rng.random((16, 64), 'f4')])]\n"
    )
    (found,) = timings(path)
    assert found["target"] == "a5"


@pytest.mark.parametrize(
    ("line", "said"),
    [("import nothing_of_the_kind", "ModuleNotFoundError"), ("1 / 0", "division"), ("(", "Python")],
)
def test_what_a_file_raises_is_told_at_its_line(file: Path, line: str, said: str) -> None:
    file.write_text(f"{KERNEL}    pass\n".replace("    for _ in", f"    {line}\n    for _ in"))
    with pytest.raises(ProgramError, match=said) as error:
        raise invoke(file).exception or AssertionError
    assert (
        error.value.diagnostics[0].location.line
        == file.read_text().split("\n").index(f"    {line}") + 1
    )
