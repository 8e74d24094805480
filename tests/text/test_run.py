"""Executing text: results, locations of faults, clusters, and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ptokit.base.diagnostics import ProgramError, UsageError
from ptokit.cli import COMMANDS
from ptokit.cli.parser import app
from ptokit.from_text import Program, load, loads

HERE = Path(__file__).parent
MUL = HERE / "programs" / "elementwise_level2.pto"
FLOW = HERE / "programs" / "control_flow.pto"
PIPE = HERE / "run" / "pipe.pto"
FLAGS = HERE / "run" / "flags.pto"


def without(path: Path, word: str) -> Program:
    """The program with every line that contains a word left blank, so that lines keep numbers."""
    lines = path.read_text("utf-8").splitlines()
    return loads("\n".join("" if word in line else line for line in lines), path.name)


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 16, 64)).astype("f4")
    return x, y, np.zeros_like(x)


def test_a_kernel_updates_its_arrays() -> None:
    x, y, z = arrays()
    load(MUL)["mul"][1](x, y, z)
    assert np.array_equal(z, x * y)


def test_blocks_that_write_the_same_bytes_are_a_race() -> None:
    x, y, z = arrays()
    with pytest.raises(ProgramError) as caught:
        load(MUL)["mul"][3](x, y, z)
    assert set(caught.value.codes) == {"E7"}
    load(MUL)["mul"][3](x, y, z, check=False)
    assert np.array_equal(z, x * y)


def test_control_flow() -> None:
    out = np.full(32, -1, "i4")
    load(FLOW)["flow"][1](out, 5, True)
    assert out[:8].tolist() == [28] * 8
    assert out[16] == 0  # counted down from 28
    assert (out[17:] == -1).all()


def test_an_array_too_small_is_named_with_its_line() -> None:
    x, y, z = arrays()
    with pytest.raises(ProgramError) as caught:
        load(MUL)["mul"][1](x[:8], y, z)
    (found,) = caught.value.diagnostics
    assert (found.code, found.location.line) == ("gm-bounds", 17)
    assert dict(found.got)["array elements"] == "512"


def test_reading_what_nothing_wrote_is_reported_at_its_line() -> None:
    with pytest.raises(ProgramError) as caught:
        without(MUL, "tload ins(%py")["mul"][1](*arrays())
    (found,) = caught.value.diagnostics
    assert found.code == "poison-read"
    assert (found.location.file, found.location.line) == (MUL.name, 19)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (lambda x, y, z: (x, y), "argument-count"),
        (lambda x, y, z: (x.astype("f2"), y, z), "argument-type"),
        (lambda x, y, z: (x.astype("f8"), y, z), "argument-type"),
        (lambda x, y, z: (1, y, z), "argument-type"),
    ],
    ids=["missing", "half", "double", "number"],
)
def test_wrong_arguments(args, code: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load(MUL)["mul"][1](*args(*arrays()))
    assert caught.value.codes == (code,)
    assert caught.value.diagnostics[0].location.line == 3


def test_division_by_zero_is_an_error_of_the_program() -> None:
    text = "func.func @f(%a: i32) {\n  %z = arith.divsi %a, %a : i32\n  return\n}\n"
    loads(text)["f"][1](3)
    with pytest.raises(ProgramError, match="division by zero") as caught:
        loads(text)["f"][1](0)
    assert caught.value.diagnostics[0].location.line == 2


def test_cube_and_vector_functions_run_as_a_cluster() -> None:
    x = np.random.default_rng(0).integers(-3, 4, (16, 16)).astype("f4")
    z = np.zeros_like(x)
    load(PIPE)["both"][1](x, z)
    assert np.array_equal(z, x @ x)


def test_a_consumer_without_a_producer_is_a_hang_that_is_explained() -> None:
    x = np.ones((16, 16), "f4")
    with pytest.raises(ProgramError, match="waits forever") as caught:
        without(PIPE, "tpush_to_aiv")["both"][1](x, x.copy())
    places = {d.location.text.strip() for d in caught.value.diagnostics if d.location}
    assert any("tpop_from_aic" in line for line in places)


def test_a_missing_wait_is_a_race_and_the_repaired_program_is_not() -> None:
    x = -np.ones((16, 64), "f4")
    z = np.zeros_like(x)
    load(FLAGS)["f"][1](x, z)
    assert (z == 1).all()
    with pytest.raises(ProgramError) as caught:
        without(FLAGS, "_flag[<PIPE_V>, <PIPE_MTE3>")["f"][1](x, z)
    shown = str(caught.value)
    assert "tstore" in shown
    assert "tabs" in shown


# ---- the command line ----------------------------------------------------------------------------


@pytest.fixture
def cli():
    from importlib import import_module

    for name in ("run", "check", "fmt", "asm"):
        if name not in {c.name for c in app.registered_commands}:
            app.command(name)(import_module(COMMANDS[name]).command)
    return CliRunner()


def test_run_writes_what_changed(cli: CliRunner, tmp_path: Path) -> None:
    x, y, z = arrays()
    paths = []
    for name, array in (("x", x), ("y", y), ("z", z)):
        np.save(tmp_path / f"{name}.npy", array)
        paths.append(str(tmp_path / f"{name}.npy"))
    result = cli.invoke(app, ["run", str(MUL), *paths, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert np.array_equal(np.load(tmp_path / "out" / "z.npy"), x * y)
    assert not (tmp_path / "out" / "x.npy").exists()
    assert (np.load(paths[2]) == 0).all()
    cli.invoke(app, ["run", str(MUL), *paths, "--in-place"])
    assert np.array_equal(np.load(paths[2]), x * y)


def test_run_with_wrong_arguments_is_a_usage_error(cli: CliRunner) -> None:
    result = cli.invoke(app, ["run", str(MUL), "1"])
    assert isinstance(result.exception, UsageError)


def test_check_reports_and_sets_the_exit_code(cli: CliRunner, tmp_path: Path) -> None:
    assert cli.invoke(app, ["check", str(MUL), "--target", "a2a3,a5"]).exit_code == 0
    bad = tmp_path / "bad.pto"
    bad.write_text("func.func @f() {\n  %a = pto.nothing\n  return\n}\n", "utf-8")
    result = cli.invoke(app, ["check", str(bad), "--json"])
    assert result.exit_code == 1
    (found,) = json.loads(result.output)["diagnostics"]
    assert found["code"] == "unknown-op"
    assert found["location"]["line"] == 2


def test_fmt_checks_and_rewrites(cli: CliRunner, tmp_path: Path) -> None:
    copy = tmp_path / "k.pto"
    copy.write_text(MUL.read_text("utf-8"), "utf-8")
    assert cli.invoke(app, ["fmt", "--check", str(copy)]).exit_code == 1
    assert cli.invoke(app, ["fmt", str(copy)]).exit_code == 0
    assert cli.invoke(app, ["fmt", "--check", str(copy)]).exit_code == 0


def test_asm_converts(cli: CliRunner) -> None:
    simple = HERE / "convert" / "simple.pto"
    result = cli.invoke(app, ["asm", str(simple), "--to", "sync"])
    assert result.exit_code == 0
    assert result.output.startswith(".arg %x : !pto.memref<16x64xf32>;")


def test_a_kernel_runs_whatever_is_wrong_with_others() -> None:
    """Only what has to do with it is checked and placed."""
    text = """
    func.func @small(%y: !pto.ptr<f32>) attributes {pto.entry} {
      %c1 = arith.constant 1 : index
      call @helper(%y, %c1) : (!pto.ptr<f32>, index) -> ()
      return
    }
    func.func private @helper(%y: !pto.ptr<f32>, %at: index) {
      %v = arith.constant 3.0 : f32
      pto.store_scalar %v, %y[%at] : !pto.ptr<f32>, f32
      return
    }
    func.func @huge(%y: !pto.ptr<f32>) attributes {pto.entry} {
      %a = pto.alloc_tile : !pto.tile_buf<vec, 1024x1024xf32>
      pto.tabs ins(%a : !pto.tile_buf<vec, 1024x1024xf32>)
          outs(%a : !pto.tile_buf<vec, 1024x1024xf32>)
      return
    }
    """
    program = loads(text)
    y = np.zeros(16, np.float32)
    program["small"][1](y)
    assert y[1] == 3
    with pytest.raises(ProgramError, match="do not fit"):
        program["huge"][1](y)
    assert {d.code for d in program.check() if d.severity == "error"} == {"place.overflow"}
