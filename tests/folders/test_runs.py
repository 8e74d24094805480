"""Folders of programs: manifests, random inputs, and what becomes of each run."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from ptokit import PtoError, load, loads, run_folder
from ptokit.base.dtypes import f32, u32
from ptokit.cli.run import _code
from ptokit.folders.inputs import RANGES, draw, random_array
from ptokit.folders.runs import Status
from ptokit.passes.extents import extents
from tests.command import command

FOLDER = Path(__file__).parents[2] / "examples" / "folder"
SCALE = (FOLDER / "scale.pto").read_text("utf-8")
ENDLESS = """func.func @endless(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %many = arith.constant 1000000000000 : index
  scf.for %i = %c0 to %many step %c1 {
  }
  return
}
"""


def folder(tmp_path: Path, manifest: str = "", **programs: str) -> Path:
    for name, text in programs.items():
        (tmp_path / f"{name}.pto").write_text(text)
    if manifest:
        (tmp_path / "runs.toml").write_text(manifest)
    return tmp_path


def test_the_example_runs_and_agrees() -> None:
    found = run_folder(FOLDER)
    assert found.is_clean
    assert [(each.kernel, each.status) for each in found] == [
        ("scale", Status.AGREES),
        ("scale", Status.AGREES),
        ("square", Status.RAN),
    ]
    assert found.counts == {"agrees": 2, "ran": 1}
    assert found[2].changed == ("z",)


def test_a_seed_draws_the_same_again_and_another_something_else() -> None:
    program = load(FOLDER / "scale.pto")
    function = program["scale"].function
    first, again, other = (draw(program.module, function, n, RANGES[0], {}) for n in (1, 1, 2))
    assert [np.array_equal(a, b) for a, b in zip(first, again, strict=True)] == [True] * 4
    assert not np.array_equal(first[0], other[0])
    assert first[2] == RANGES[0].extent  # a number that is the size of a view
    assert first[0].shape == (RANGES[0].extent * 64,)


def test_extents_are_those_of_the_farthest_view_behind_a_pointer() -> None:
    text = """func.func @k(%x: !pto.ptr<f32>, %n: index, %at: index) {
      %c2 = arith.constant 2 : index
      %twice = arith.muli %n, %c2 : index
      %behind = pto.addptr %x, %at : !pto.ptr<f32> -> !pto.ptr<f32>
      func.call @h(%behind, %twice) : (!pto.ptr<f32>, index) -> ()
      return
    }
    func.func private @h(%p: !pto.ptr<f32>, %n: index) {
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c9 = arith.constant 9 : index
      %v = pto.make_tensor_view %p, shape = [%n, %c3], strides = [%c9, %c1]
        : !pto.tensor_view<?x?xf32>
      return
    }"""
    module = loads(text).module
    found = extents(module, module.functions[0], [None, 4, 5])
    assert found.elements == {0: 5 + 7 * 9 + 2 + 1}
    assert found.sizes == {1}


def test_numbers_that_lead_out_of_a_view_are_drawn_anew(tmp_path: Path) -> None:
    """The view has one tile of rows, so that no number but 0 is a place in it."""
    text = SCALE.replace("to %rows step", "to %c16 step").replace(
        "shape = [%rows, %c64]", "shape = [%c16, %c64]"
    ).replace("offsets = [%row, %c0]", "offsets = [%rows, %c0]").replace(
        "%left = arith.subi %rows, %row", "%left = arith.subi %c16, %c0"
    )  # fmt: skip
    (outcome,) = run_folder(folder(tmp_path, scale=text))
    assert outcome.status is Status.RAN, outcome.reason
    assert "numbers 0" in outcome.inputs


SHIFT = """func.func @shift(%x: !pto.ptr<i32>, %y: !pto.ptr<i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %v = pto.make_tensor_view %x, shape = [%c1, %c8], strides = [%c8, %c1] : !pto.tensor_view<1x8xi32>
  %w = pto.make_tensor_view %y, shape = [%c1, %c8], strides = [%c8, %c1] : !pto.tensor_view<1x8xi32>
  %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c8]
    : !pto.tensor_view<1x8xi32> -> !pto.partition_tensor_view<1x8xi32>
  %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c1, %c8]
    : !pto.tensor_view<1x8xi32> -> !pto.partition_tensor_view<1x8xi32>
  %a = pto.alloc_tile : !pto.tile_buf<vec, 1x8xi32>
  %b = pto.alloc_tile : !pto.tile_buf<vec, 1x8xi32>
  pto.tload ins(%p : !pto.partition_tensor_view<1x8xi32>) outs(%a : !pto.tile_buf<vec, 1x8xi32>)
  pto.tshl ins(%a, %a : !pto.tile_buf<vec, 1x8xi32>, !pto.tile_buf<vec, 1x8xi32>)
    outs(%b : !pto.tile_buf<vec, 1x8xi32>)
  pto.tstore ins(%b : !pto.tile_buf<vec, 1x8xi32>) outs(%q : !pto.partition_tensor_view<1x8xi32>)
  return
}
"""


def test_numbers_that_leave_results_undefined_are_drawn_anew(tmp_path: Path) -> None:
    """Shifts by 32 and more are; of floats nothing smaller is drawn, so that they are told once."""
    (outcome,) = run_folder(folder(tmp_path, shift=SHIFT), sync="insert")
    assert outcome.status is Status.RAN, outcome.reason
    assert "contents 0..15" in outcome.inputs
    unwritten = SHIFT.replace("i32", "f32").replace("tshl", "tadd").replace("ins(%a,", "ins(%b,")
    (outcome,) = run_folder(folder(tmp_path, shift=unwritten), sync="insert")
    assert [each.code for each in outcome.diagnostics] == ["poison-read"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_wrong_with_one_program_does_not_stop_the_others(tmp_path: Path, jobs: int) -> None:
    manifest = """max_seconds = 0.5
[[run]]
program = "wrong.pto"
args = { x = { fill = 1, shape = [16, 64] }, rows = 16, factor = 2 }
expected = { y = { fill = 3 } }
"""
    place = folder(
        tmp_path,
        manifest,
        bad="func.func @bad( {",
        endless=ENDLESS,
        good=SCALE,
        wrong=SCALE,
        unplaced=SCALE.replace("16x64xf32", "16384x64xf32"),
    )
    found = run_folder(place, jobs=jobs, max_seconds=0.5)
    assert {each.program: each.status for each in found} == {
        "bad.pto": Status.REFUSED,
        "endless.pto": Status.STOPPED,
        "good.pto": Status.RAN,
        "unplaced.pto": Status.REFUSED,
        "wrong.pto": Status.DIFFERS,
    }
    told = str(found)
    assert "1024 of 1024 differ, most at [0]: 2, not 3" in told
    assert told.endswith(" s")
    assert "5 runs: 1 ran, 1 differs, 1 stopped, 2 refused" in told


def test_options_of_a_manifest_hold_below_it(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    folder(tmp_path, 'target = "a2a3"', a=SCALE)
    folder(inner, b=SCALE)
    (outer, other) = run_folder(tmp_path, target="a5")
    assert (outer.target, other.target) == ("a2a3", "a2a3")
    (inner / "runs.toml").write_text("seed = 3")
    assert [each.target for each in run_folder(tmp_path, target="a5")] == ["a2a3", "a5"]


def test_a_file_of_several_parts_is_run_part_by_part(tmp_path: Path) -> None:
    parts = f"//--- one\n{SCALE}\n//--- two\n{SCALE.replace('@scale', '@other')}"
    assert [each.kernel for each in run_folder(folder(tmp_path, k=parts))] == ["scale", "other"]


def test_a_process_that_dies_is_one_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptokit.folders import runs

    def dies(case: object) -> list[object]:
        if "a.pto" in str(case):
            os._exit(7)
        return known(case)  # type: ignore[arg-type]

    known = runs.run_case
    monkeypatch.setattr(runs, "run_case", dies)
    found = run_folder(folder(tmp_path, a=SCALE, b=SCALE), jobs=2)
    assert [each.status for each in found] == [Status.BUG, Status.RAN]
    assert "ended with code 7" in found[0].reason


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ("[[run]]\nprogramm = 'k.pto'", "did you mean program?"),
        ("[[run]]\nprogram = 'other.pto'", "there is no program"),
        ("[[run]]\ngrid = 2", "a run names its program"),
        ("[[run]]\nprogram = 'k.pto'\ngrid = 0", "grid is a positive number of blocks, not 0"),
        ("[[run]]\nprogram = 'k.pto'\nargs = { x = true }", "args is by parameter a number"),
        ("rules = 'lax'", "rules is one of"),
        ("args = {}", "there is no option args here"),
        ("run = 3", "run is a list of tables"),
        ("[[run", "runs.toml: "),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path: Path, manifest: str, says: str) -> None:
    with pytest.raises(PtoError) as error:
        run_folder(folder(tmp_path, manifest, k=SCALE))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("{ z = 1 }", "there is no parameter %z"),
        ("{ x = 1 }", "%x is given as an .npy file or a table"),
        ("{ rows = { fill = 1 } }", "%rows is given as a number"),
        ('{ x = "none.npy" }', "%x: cannot read"),
    ],
)
def test_a_wrong_argument_stops_its_run(tmp_path: Path, args: str, says: str) -> None:
    place = folder(tmp_path, f"[[run]]\nprogram = 'k.pto'\nargs = {args}", k=SCALE)
    (outcome,) = run_folder(place)
    assert outcome.status is Status.STOPPED
    assert says in outcome.reason


def test_arrays_of_a_manifest_come_from_files(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((32, 64)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", x * np.float32(0.25))
    manifest = """[[run]]
program = "k.pto"
args = { x = "x.npy", y = { shape = [32, 64], fill = 0 }, rows = 32, factor = 0.25 }
expected = { y = "y.npy" }
"""
    (outcome,) = run_folder(folder(tmp_path, manifest, k=SCALE))
    assert outcome.status is Status.AGREES, outcome.reason
    np.save(tmp_path / "y.npy", np.where(x == x[3, 5], 9, x * np.float32(0.25)))
    (outcome,) = run_folder(tmp_path)
    assert outcome.reason.startswith("%y: 1 of 2048 differ, most at [3, 5]: ")


def run(*args: object) -> tuple[int, str]:
    code, out, err = command("run", *args)
    return code, out + err


def test_the_command_answers_with_a_table_and_an_exit_code(tmp_path: Path) -> None:
    code, out = run(FOLDER)
    assert code == 0
    assert out.splitlines()[-1].startswith("3 runs: 2 agrees, 1 ran; ")
    place = folder(tmp_path, bad="func.func @bad( {", good=SCALE)
    code, out = run(place, "--json")
    answer = json.loads(out)
    assert (code, answer["exit"], answer["counts"]) == (1, 1, {"ran": 1, "refused": 1})
    assert answer["runs"][0]["diagnostics"][0]["code"] == "syntax"
    assert run(tmp_path / "none", "--seed", 1)[0] == 2
    assert run(FOLDER, "x.npy")[0] == 2
    code, out = run(FOLDER / "scale.pto", "--seed", 3)
    assert code == 0
    assert "1 runs: 1 ran" in out


@pytest.mark.usefixtures("ends_its_processes")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_leaves_out_the_rest(tmp_path: Path, jobs: int) -> None:
    place = folder(tmp_path, a=SCALE, b=ENDLESS, c=ENDLESS, d=SCALE)
    run_folder(FOLDER)  # what is loaded late is loaded now
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 3)
    try:
        found = run_folder(place, jobs=jobs)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [each.status.value for each in found] == ["ran", *["left out"] * 3]
    assert _code(found) == 130


def test_an_array_takes_up_what_is_written_to_it() -> None:
    """Of a long one most is never touched; one that no computer has room for says so."""
    rng = np.random.default_rng(0)
    (gaps,) = {each for each in RANGES if each.has_gaps and each.extent == RANGES[0].extent}
    assert (random_array(u32, (31,), rng, gaps)[1:] == 0xFFFFFFFF).all()
    long = random_array(f32, (1 << 10, 1 << 18), rng, RANGES[0])  # 1 GiB, if it were there
    assert long.shape == (1 << 10, 1 << 18)
    assert long[0, :4].all()
    long[-1, -1] = 2
    assert long[-1, -2:].tolist() == [0, 2]
    with pytest.raises(MemoryError, match="18446744073709551616 elements of f32"):
        random_array(f32, (1 << 62, 4), rng, RANGES[0])
