"""--strict, --release and --allow: warnings are printed and counted, and decide the exit code."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from tests.command import command

# TLOAD moves what the tile asks for of a wider view, which a debug build asserts against.
TEXT = """
func.func @narrow(%x: !pto.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %t = pto.alloc_tile : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, v_row=16, v_col=32, \
blayout=row_major, slayout=none_box, fractal=512, pad=0>
  %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : \
!pto.tensor_view<16x64xf32>
  %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : \
!pto.tensor_view<16x64xf32> -> !pto.partition_tensor_view<16x64xf32>
  pto.tload ins(%p : !pto.partition_tensor_view<16x64xf32>) outs(%t : !pto.tile_buf<loc=vec, \
dtype=f32, rows=16, cols=64, v_row=16, v_col=32, blayout=row_major, slayout=none_box, \
fractal=512, pad=0>)
  return
}
"""


def ptokit(*words: str) -> tuple[int, str]:
    code, out, err = command(*words)
    return code, out + err


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "narrow.pto"
    path.write_text(TEXT, "utf-8")
    return str(path)


@pytest.fixture
def commands(file: str, tmp_path: Path) -> list[list[str]]:
    array = str(tmp_path / "x.npy")
    np.save(array, np.ones((16, 64), np.float32))
    return [
        ["check", file],
        ["check", "--run", file, "--arg", array],
        ["run", file, array],
        ["run", file, array, "--jobs", "2", "--grid", "2"],
        ["asm", file, "--to", "l3"],
        ["emit", file],
    ]


def test_a_warning_is_printed_once_and_counted(commands: list[list[str]]) -> None:
    for each in commands:
        code, out = ptokit(*each)
        assert code == 0, each
        assert (out).count("warning[PA-0044]") == 1, each
        assert "an assertion of debug builds" in out
        assert "0 errors, 1 warning" in out, each


def test_strict_refuses_and_allow_silences(commands: list[list[str]]) -> None:
    forms = cycle(["PA-0044", "PA-0044@narrow.pto", "PA-0044@narrow.pto:11"])
    for each in commands:
        code, out = ptokit(*each, "--strict")
        assert code == 1, each
        assert "error[PA-0044]" in out
        code, out = ptokit(*each, "--strict", "--allow", next(forms))
        assert code == 0, (each, out)
        assert "[PA-0044]" not in out


def test_an_unknown_id_is_wrong_usage(file: str) -> None:
    code, out = ptokit("check", file, "--allow", "PA-44")
    assert code == 2
    assert "did you mean PA-0044" in out


def test_the_profiles_exclude_each_other(file: str) -> None:
    assert ptokit("check", file, "--strict", "--release")[0] == 2


def test_json_has_the_severity_and_the_outcome(file: str) -> None:
    code, out = ptokit("check", file, "--json")
    assert code == 0
    (found,) = json.loads(out)["diagnostics"]
    assert found["severity"] == "warning"
    assert found["notes"][0]["text"].startswith("otherwise: ")


def test_a_project_file_holds_for_the_command_line(file: str, commands: list[list[str]]) -> None:
    Path(file).with_name("ptokit.toml").write_text('allow = ["PA-0044"]\n', "utf-8")
    for each in commands:
        code, out = ptokit(*each)
        assert code == 0
        assert "PA-0044" not in out
