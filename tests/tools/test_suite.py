"""`tools/suite.py`: a test of another tool, from its own generator to its own comparison."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # compilers and processes take their time

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
module attributes {pto.target_arch = "a5"} {
  func.func @SCALE_small(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %k: f32) attributes {pto.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %v = pto.make_tensor_view %x, shape = [%c8, %c8], strides = [%c8, %c1]
        : !pto.tensor_view<8x8xf32>
    %w = pto.make_tensor_view %y, shape = [%c8, %c8], strides = [%c8, %c1]
        : !pto.tensor_view<8x8xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c8]
        : !pto.tensor_view<8x8xf32> -> !pto.partition_tensor_view<8x8xf32>
    %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c8, %c8]
        : !pto.tensor_view<8x8xf32> -> !pto.partition_tensor_view<8x8xf32>
    %a = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>
    pto.tload ins(%p : !pto.partition_tensor_view<8x8xf32>) outs(%a : !pto.tile_buf<vec, 8x8xf32>)
    pto.tmuls ins(%a, %k : !pto.tile_buf<vec, 8x8xf32>, f32) outs(%a : !pto.tile_buf<vec, 8x8xf32>)
    pto.tstore ins(%a : !pto.tile_buf<vec, 8x8xf32>) outs(%q : !pto.partition_tensor_view<8x8xf32>)
    return
  }
}
"""
GENERATOR = """
import os
import numpy as np
for name, factor in (("right", 3), ("wrong", 4), ("absent", 3)):
    os.makedirs(name, exist_ok=True)
    x = np.arange(64, dtype="f4")
    x.tofile(f"{name}/input.bin")
    (x * factor).tofile(f"{name}/golden.bin")
"""
COMPARISON = """
import sys
import numpy as np
found = [np.fromfile(f"{sys.argv[1]}/{name}.bin", "f4") for name in ("golden", "output")]
if not np.array_equal(*found):
    print(f"{sys.argv[1]} is off by {abs(found[0] - found[1]).max()}")
    sys.exit(2)
"""
LAUNCHER = """
extern "C" __global__ AICORE void SCALE_small(__gm__ float *, __gm__ float *, float);
void Launch(float *x, float *y, void *stream) {
    SCALE_small<<<1, nullptr, stream>>>((__gm__ float *)x, (__gm__ float *)y, 3.0f);
}
"""
HOST = """
#include "acl/acl.h"
#include <cstdio>
#include <string>
void Launch(float *x, float *y, void *stream);
int main(int, char **words) {
    std::string name = words[1];
    if (name == "absent") return 0;
    float host[64];
    void *x, *y;
    aclrtMalloc(&x, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&y, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);
    FILE *in = std::fopen((name + "/input.bin").c_str(), "rb");
    if (std::fread(host, 4, 64, in) != 64) return 1;
    std::fclose(in);
    aclrtMemcpy(x, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE);
    Launch((float *)x, (float *)y, nullptr);
    aclrtMemcpy(host, sizeof host, y, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST);
    FILE *out = std::fopen((name + "/output.bin").c_str(), "wb");
    std::fwrite(host, 4, 64, out);
    return std::fclose(out);
}
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "suite.py"), str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    test = tmp_path / "scale"
    test.mkdir()
    for name, text in (
        ("scale.pto", PROGRAM),
        ("gen_data.py", GENERATOR),
        ("compare.py", COMPARISON),
        ("launch.cpp", LAUNCHER),
        ("main.cpp", HOST),
    ):
        (test / name).write_text(text)
    return tmp_path


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler at hand")
def test_each_case_has_the_verdict_of_its_own_comparison(folder: Path) -> None:
    done = run(folder, "--run-scripts")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        "unread: scale/absent: the host program launches no kernel for it",
        "differs: scale/wrong: wrong is off by 63.0",
        "suite: 1 of 3 cases agree (33.3%); 1 unread, 1 differs",
    ]


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler at hand")
def test_a_test_that_its_own_assembler_refuses_does_not_count(folder: Path) -> None:
    boxed = "!pto.tile_buf<mat, 16x8xf16, blayout=col_major, slayout=row_major>"  # half a box wide
    tile = "    %a = pto.alloc_tile"
    text = PROGRAM.replace(tile, f"    %z = pto.alloc_tile : {boxed}\n{tile}")
    (folder / "scale" / "scale.pto").write_text(text)
    done = run(folder, "--run-scripts", "--journal", str(folder / "journal.jsonl"))
    assert done.stdout.splitlines() == [
        "unread: scale/absent: the host program launches no kernel for it",
        "2 more cases are refused by the assembler they were written for, too",
        "suite: 0 of 1 cases agree (0.0%); 1 unread",
    ]
    again = run(folder, "--run-scripts", "--journal", str(folder / "journal.jsonl"))
    assert again.stdout.splitlines()[-2:] == done.stdout.splitlines()[-2:]


def test_code_of_the_folder_runs_only_when_it_may(folder: Path) -> None:
    done = run(folder)
    assert done.returncode == 2
    assert "--run-scripts" in done.stderr
