"""Published cases: a kernel, its host code, and two scripts that make and judge files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptokit import PtoError, run_goldens
from ptokit.folders.host_code import read_host_code
from ptokit.folders.runs import Status
from tests.command import command

KERNEL = """\
module attributes {pto.target_arch = "a5"} {
  func.func @double(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>, %n: i32)
      attributes {pto.kernel} {
    %c0 = arith.constant 0 : index
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %bytes = arith.constant BYTES : i64
    %place = arith.constant 1024 : i64
    %a = pto.castptr %i0 : i64 -> !pto.ptr<f32, ub>
    %b = pto.castptr %place : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %a, %i0, %bytes nburst(%i1, %i0, %i0)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {
      %mask, %left = pto.plt_b32 %n : i32 -> !pto.mask<b32>, i32
      %v = pto.vlds %a[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      %w = pto.vadd %v, %v, %mask : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32>
        -> !pto.vreg<64xf32>
      pto.vsts %w, %b[%c0], %mask : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
    }
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    %out = arith.constant 256 : i64
    pto.mte_ub_gm %b, %y, %out nburst(%i1, %i0, %i0)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }
}
"""
MAIN = """\
void LaunchDouble(float *a, float *b, int32_t n, void *stream);
int main() {
  constexpr size_t COUNT = 16 * 4;
  constexpr size_t BYTES = COUNT * sizeof(float);
  float *inHost = nullptr, *inDevice = nullptr, *outHost = nullptr, *outDevice = nullptr;
  size_t size = BYTES;
  ReadFile("./in.bin", size, inHost, BYTES);  // ReadFile("./other.bin", size, outHost, BYTES);
  LaunchDouble(inDevice, (float *)outDevice, COUNT, stream);
  WriteFile("./result.bin", outHost, BYTES);
}
"""
LAUNCH = """\
extern "C" __global__ [aicore] void double_it(__gm__ float *x, __gm__ float *y, int n);
void LaunchDouble(float *a, float *b, int32_t n, void *stream) {
  double_it<<<1, nullptr, stream>>>((__gm__ float *)a, (__gm__ float *)b, n);
}
"""
GOLDEN = """\
import numpy as np
x = np.arange(64, dtype=np.float32)
x.tofile("in.bin")
(x * 2).tofile("golden_result.bin")
"""
COMPARE = """\
import sys
import numpy as np
found, wanted = (np.fromfile(n, np.float32) for n in ("result.bin", "golden_result.bin"))
if not np.array_equal(found[:PART], wanted[:PART]):
    print("the results differ")
    sys.exit(2)
"""


def case(
    place: Path, nbytes: int = 256, golden: str = GOLDEN, part: int = 64, count: str = "COUNT"
) -> Path:
    place.mkdir(parents=True)
    (place / "kernel.pto").write_text(KERNEL.replace("BYTES", str(nbytes)))
    (place / "main.cpp").write_text(MAIN.replace("outDevice, COUNT", f"outDevice, {count}"))
    (place / "launch.cpp").write_text(LAUNCH)
    (place / "golden.py").write_text(golden)
    (place / "compare.py").write_text(COMPARE.replace("PART", str(part)))
    return place


def test_host_code_is_read() -> None:
    host = read_host_code(MAIN, LAUNCH)
    (launch,) = host.launches
    assert (launch.kernel, launch.grid) == ("double_it", "1")
    assert launch.arguments == ("inDevice", "outDevice", "COUNT")
    assert [host.file_of(a, n) for n, a in enumerate(launch.arguments[:2])] == [
        "in.bin",
        "result.bin",
    ]
    assert host.number("COUNT") == 64
    assert host.number("(BYTES + 99) / 100") == 3
    with pytest.raises(PtoError, match="cannot be told"):
        host.number("std::rand()")


def test_a_case_agrees_or_differs(tmp_path: Path) -> None:
    case(tmp_path / "a" / "good")
    case(tmp_path / "a" / "wrong", golden=GOLDEN.replace("x * 2", "x * 3"))
    case(tmp_path / "broken", golden="raise SystemExit('no data today')")
    found = run_goldens(tmp_path, jobs=2)
    assert {o.program: o.status for o in found} == {
        "a/good": Status.AGREES,
        "a/wrong": Status.DIFFERS,
        "broken": Status.REFUSED,
    }
    assert "no data today" in found[2].reason
    assert "the results differ" in found[1].reason
    assert str(found).endswith("goldens: 1 of 3 agree: vpto 1 of 3")
    with pytest.raises(PtoError, match="holds no case"):
        run_goldens(tmp_path / "a" / "good" / "deeper")


def test_slack_lets_a_kernel_leave_its_arrays(tmp_path: Path) -> None:
    case(tmp_path / "k", nbytes=512)
    (strict,) = run_goldens(tmp_path)
    assert strict.status is Status.STOPPED
    assert "memory-bounds" in strict.reason
    (loose,) = run_goldens(tmp_path, slack=256)
    assert loose.status is Status.AGREES
    assert "leaves its arrays" in loose.reason
    assert [d.severity for d in loose.diagnostics] == ["warning"]
    (short,) = run_goldens(tmp_path, slack=128)
    assert short.status is Status.STOPPED


def test_undefined_bytes_that_are_stored_are_named(tmp_path: Path) -> None:
    case(tmp_path / "k", part=16, count="16")
    (found,) = run_goldens(tmp_path)
    assert found.status is Status.AGREES
    assert "undefined" in found.reason


ROUND_TRIP = """\
module attributes {pto.target_arch = "a5"} {
  func.func @trip(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>, %n: i32) attributes {pto.kernel} {
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %i8 = arith.constant 8 : i64
    %i256 = arith.constant 256 : i64
    %u = pto.castptr %i0 : i64 -> !pto.ptr<f32, ub>
    %v = pto.castptr %i256 : i64 -> !pto.ptr<f32, ub>
    %l = pto.castptr %i0 : i64 -> !pto.ptr<f32, l1>
    pto.section.vector {
      %me = pto.get_subblock_idx
      %is_first = arith.cmpi eq, %me, %i0 : i64
      pto.mte_gm_ub %x, %u, %i0, %i256 nburst(%i1, %i0, %i0)
        : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
      pto.set_flag["PIPE_MTE2", "PIPE_MTE3", "EVENT_ID0"]
      pto.wait_flag["PIPE_MTE2", "PIPE_MTE3", "EVENT_ID0"]
      scf.if %is_first {
        pto.mte_ub_l1 %u, %l, %i8 nburst(%i1, %i0, %i0)
          : !pto.ptr<f32, ub>, !pto.ptr<f32, l1>, i64, i64, i64, i64
      }
      pto.set_intra_block <PIPE_MTE3>, 0
      pto.wait_intra_block <PIPE_MTE3>, 1
      scf.if %is_first {
        pto.mte_ub_gm %v, %y, %i256 nburst(%i1, %i0, %i0)
          : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
      }
    }
    pto.section.cube {
      pto.wait_intra_block <PIPE_MTE1>, 0
      pto.wait_intra_block <PIPE_MTE1>, 16
      pto.mte_l1_ub %l, %v, %i8 nburst(%i1, %i0, %i0)
        : !pto.ptr<f32, l1>, !pto.ptr<f32, ub>, i64, i64, i64, i64
      pto.set_intra_block <PIPE_FIX>, 1
      pto.set_intra_block <PIPE_FIX>, 17
    }
    return
  }
}
"""


def test_a_race_that_a_device_wins_is_told_with_the_order_in_which_it_does(tmp_path: Path) -> None:
    """The cube core signals from a pipe that does not wait for its copy."""
    place = case(tmp_path / "k", golden=GOLDEN.replace("x * 2", "x"))
    (place / "kernel.pto").write_text(ROUND_TRIP)
    (found,) = run_goldens(tmp_path)
    assert found.status is Status.AGREES
    assert "E6: touches bytes on two pipes" in found.reason
    assert "it agrees in another order of the pipes" in found.reason
    (place / "golden.py").write_text(GOLDEN)
    (found,) = run_goldens(tmp_path)
    assert found.status is Status.DIFFERS
    assert "the results differ" in found.reason
    assert "E6" in found.reason


def test_cases_are_counted_by_the_level_of_their_kernels(tmp_path: Path) -> None:
    case(tmp_path / "registers")
    for name, line in {
        "logical": "%v = pto.vmi.broadcast %n : i32 -> !pto.vmi.vreg<64xi32>",
        "threads": "pto.simt_launch @f() : () -> ()",
    }.items():
        place = case(tmp_path / name)
        (place / "kernel.pto").write_text(KERNEL.replace("%out = arith", f"{line}\n%out = arith"))
    found = run_goldens(tmp_path)
    assert found.levels == ("vmi", "vpto", "simt")
    assert found.closing.endswith("vpto 1 of 1, vmi 0 of 1, simt 0 of 1")


def test_command(tmp_path: Path) -> None:
    case(tmp_path / "k")
    answer = command("run", tmp_path, "--golden", "--json")
    told = json.loads(answer.stdout)
    assert (answer.returncode, told["counts"]) == (0, {"agrees": 1})
    assert told["runs"][0]["kernel"] == "double"
    assert command("run", tmp_path / "k" / "kernel.pto", "--slack", "3").returncode == 2
