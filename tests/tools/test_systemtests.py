"""The tool that tries public test programs: on a folder of our own, laid out as theirs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.support import HEAD, needs_compiler

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from cmakelists import Lists  # noqa: E402
from systemtests import Row, ruled  # noqa: E402

pytestmark = pytest.mark.slow  # compilers and processes take their time

LISTS = """
set(ALL_TESTCASES
tfill
tbad)
function(make NAME)  # a comment (with a bracket
    add_library(${NAME}_kernel SHARED ${NAME}_kernel.cpp)
    target_compile_options(${NAME}_kernel PRIVATE ${NONE}
        --cce-aicore-arch=dav-c220-vec -DA_MACRO -DPLUS=2)
    add_executable(${NAME} main.cpp)
    target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR}/../../../../common)
    target_link_libraries(${NAME} PRIVATE ${NAME}_kernel $<BUILD_INTERFACE:runtime> m GTest::gtest)
endfunction()
if(WIN32)
  message(FATAL_ERROR "no")
endif()
"""
KERNEL = (
    HEAD
    + """
extern "C" __global__ AICORE void fill(__gm__ float* out, float value)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, value);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    G g(out);
    TSTORE(g, x);
}
extern "C" __global__ AICORE void race(__gm__ float* out, float value)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, value);
    G g(out);
    TSTORE(g, x);  // nothing orders it
}
void launch_race(float* out, float value) { race<<<1, nullptr, nullptr>>>(out, value); }
void launch(float* out, float value) { fill<<<1, nullptr, nullptr>>>(out, value + PLUS - 2); }
extern "C" __global__ AICORE void crash() { *(volatile int*)8 = 1; }
void launch_crash() { crash<<<1, nullptr, nullptr>>>(); }
"""
)
MAIN = """#include "common.h"
#include <acl/acl.h>
#include <gtest/gtest.h>
void launch(float* out, float value);
void launch_race(float* out, float value);
void launch_crash();
class Fill : public testing::Test {};
bool holds(float value, float wanted, bool races = false)
{
    float* out;
    aclrtMalloc((void**)&out, SIZE, ACL_MEM_MALLOC_HUGE_FIRST);
    (races ? launch_race : launch)(out, value);
    if (aclrtSynchronizeStream(nullptr)) return false;
    return out[0] == wanted;
}
float golden()
{
    float value;
    std::ifstream("../Fill.golden/golden.bin", std::ios::binary).read((char*)&value, 4);
    return value;
}
TEST_F(Fill, golden) { EXPECT_TRUE(holds(2, golden())); }
TEST_F(Fill, racing) { EXPECT_TRUE(holds(2, 2, true)); }
TEST_F(Fill, wrong_and_racing) { EXPECT_TRUE(holds(2, 3, true)); }
TEST_F(Fill, wrong) { EXPECT_TRUE(holds(2, 3)); }
TEST_F(Fill, crash) { launch_crash(); EXPECT_TRUE(false); }
TEST_F(Fill, idle) { holds(4, 0); }
"""
DATA = """import os, struct
os.makedirs("Fill.golden")
open("Fill.golden/golden.bin", "wb").write(struct.pack("f", 2.0))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "tests/npu/a2a3/src/st/testcase"
    for name, text in {
        "CMakeLists.txt": LISTS,
        "tfill/CMakeLists.txt": "make(tfill)",
        "tfill/main.cpp": MAIN,
        "tfill/tfill_kernel.cpp": KERNEL,
        "tfill/gen_data.py": DATA,
        "tbad/CMakeLists.txt": "make(tbad)",
        "tbad/main.cpp": MAIN,
        "tbad/tbad_kernel.cpp": "#include <pto/pto-inst.hpp>\nint x = no_such_name;\n",
        "tdraft/CMakeLists.txt": "make(tdraft)",
        "../../../../../common/common.h": "#define SIZE 4096\n",
    }.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_build_files_say_which_sources_belong_to_a_program(folder: Path) -> None:
    top = folder / "tests/npu/a2a3/src/st"
    lists = Lists(PROJECT_SOURCE_DIR=str(top))
    lists.read(top / "testcase/CMakeLists.txt", functions_only=True)
    lists.read(top / "testcase/tfill/CMakeLists.txt")
    (built,) = lists.programs()
    assert [(each.path.name, each.core, each.defines) for each in built.sources] == [
        ("main.cpp", "single", ()),
        ("tfill_kernel.cpp", "vector", ("A_MACRO", "PLUS=2")),
    ]
    assert built.includes == (folder / "tests/common",)


def test_an_object_of_a_command_is_its_source_with_its_macros(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("""
        set(OBJECT ${CMAKE_CURRENT_BINARY_DIR}/k.o)
        set(PLACE ${CMAKE_CURRENT_SOURCE_DIR})
        add_custom_command(OUTPUT ${OBJECT} COMMAND make_directory x
            COMMAND cc --cce-aicore-arch=dav-c310-cube -DCUBE -o ${OBJECT} -c ${PLACE}/k.cpp)
        add_library(k SHARED ${OBJECT})
        add_executable(p main.cpp)
        target_link_libraries(p PRIVATE k)
    """)
    lists = Lists()
    lists.read(tmp_path / "CMakeLists.txt")
    (built,) = lists.programs()
    assert built.sources[1].path == tmp_path / "k.cpp"
    assert (built.sources[1].core, built.sources[1].defines) == ("cube", ("CUBE",))


@needs_compiler
def test_programs_are_tried_with_a_control_and_told_in_a_table(folder: Path) -> None:
    page, found = folder / "page.md", folder / "found.json"
    page.write_text("before\n<!-- system tests of a2a3 -->\nold\n<!-- end of a2a3 -->\nafter\n")
    words = ["--target", "a2a3", "--json", str(found), "--page", str(page)]
    words += ["--journal", str(folder / "journal"), "--work", str(folder / "work")]
    command = [sys.executable, str(ROOT / "tools/systemtests.py"), str(folder), *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "[2/2]" in ran.stdout
    bad, fill = sorted(json.loads(found.read_text()), key=lambda row: row["name"])
    assert bad["verdict"] == "does not compile"
    assert "tbad_kernel.cpp:2" in bad["reason"]
    assert fill["cases"] == {
        "Fill.golden": "equal",
        "Fill.racing": "equal beside a race",
        "Fill.wrong_and_racing": "reported",
        "Fill.wrong": "differs",
        "Fill.crash": "crashed",
        "Fill.idle": "idle",
    }
    said = "1 of 2 programs compile and run; 2 of 5 counted cases are equal (40.0 %), 1 of them"
    assert said in ran.stdout
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    reported = "E6 (2), cpp-crash (1), 1 differ"
    cases = "racing, wrong_and_racing, wrong, crash: nobody has said why"
    assert f"| tfill | vector | 6 | 5 | 2 | 1 | deviates | {reported}; {cases} |" in text
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "[" not in again.stdout  # all of it is in the journal
    assert again.stdout.splitlines()[-1] == ran.stdout.splitlines()[-1]
    assert page.read_text() == text
    (folder / "journal").unlink()
    control = folder / "work/a2a3/tfill/control.json"
    kept = json.loads(control.read_text())
    assert kept["cases"]["Fill.idle"] == "passed"
    kept["cases"]["Fill.golden"] = "passed"  # what a control has said is not asked again
    control.write_text(json.dumps(kept))
    subprocess.run(command, capture_output=True, check=True)
    rows = {row["name"]: row for row in json.loads(found.read_text())}
    assert rows["tfill"]["cases"]["Fill.golden"] == "idle"


def test_a_case_has_the_ruling_of_its_name_or_that_of_its_program() -> None:
    row = Row("t", "vector", cases={"T.a1": "differs", "T.a2": "differs", "T.b": "reported"})
    assert ruled(row, {"a*": "rounds", "*": "races"}) == ["a1, a2: rounds", "b: races"]
    assert ruled(row, "races") == ["a1, a2, b: races"]
    assert ruled(row, {"a*": "rounds"})[1] == "b: nobody has said why"
    row.cases = {"T.a1": "equal", "T.b": "idle"}
    assert ruled(row, "races") == []


@needs_compiler
def test_what_the_usual_compiler_refuses_another_one_may_take(folder: Path) -> None:
    kernel = folder / "tests/npu/a2a3/src/st/testcase/tbad/tbad_kernel.cpp"
    kernel.write_text(KERNEL + "int x = no_such_name;\n")
    other, found = folder / "other", folder / "found.json"
    other.write_text('#!/bin/sh\nexec c++ -Dno_such_name=1 "$@"\n')
    other.chmod(0o755)
    words = ["--only", "tbad", "--json", str(found), "--other-compiler", str(other)]
    tool = str(ROOT / "tools/systemtests.py")
    subprocess.run([sys.executable, tool, str(folder), *words], capture_output=True, check=True)
    (bad,) = json.loads(found.read_text())
    assert bad["cases"]["Fill.idle"] == "idle"
    assert bad["compiler"]
