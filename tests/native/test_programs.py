"""Whole C++ programs: main, the host API, launches, clusters, tests, and how they may end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.isa.targets import target as find_target
from ptokit.native.program import Program, Ran, Source, execute
from tests.native.support import HEAD, needs_compiler

pytestmark = needs_compiler

KERNEL = (
    HEAD
    + """
template <int N> __global__ AICORE void add(__gm__ float* out, __gm__ float* a, float s, int mode)
{
    T x, z;
    TASSIGN(x, 0); TASSIGN(z, 0x4000);
    G ga(a), gz(out);
    TLOAD(x, ga);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    TADDS(z, x, s);  // the last call
    if (mode == 1) *(volatile int*)8 = 1;
    if (mode == 2) for (volatile int i = 0;;) i = 1;
    if (mode == 4) __builtin_abort();
    if (mode != 3) PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(gz, z);  // may race
}
#define LAUNCH(NAME, N, ...) NAME<N><<<1, nullptr, stream>>>(__VA_ARGS__)
void launch(float* out, float* a, float s, int mode, void* stream)
{
    LAUNCH(add, 4, out, a, s, mode);
}
"""
)
MAIN = """#include <acl/acl.h>
#include <gtest/gtest.h>
void launch(float* out, float* a, float s, int mode, void* stream);
int ran(int mode)
{
    aclrtStream stream;
    aclrtCreateStream(&stream);
    float host[1024], *out, *a;
    aclrtMalloc((void**)&out, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void**)&a, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    for (int i = 0; i < 1024; i++) host[i] = i;
    aclrtMemcpy(a, 4096, host, 4096, ACL_MEMCPY_HOST_TO_DEVICE);
    launch(out, a, 1.5f, mode, stream);
    int code = aclrtSynchronizeStream(stream);
    aclrtMemcpy(host, 4096, out, 4096, ACL_MEMCPY_DEVICE_TO_HOST);
    for (int i = 0; i < 1024 && !code; i++) code = host[i] != i + 1.5f;
    EXPECT_EQ(aclrtFree(out), ACL_SUCCESS);
    EXPECT_NE(aclrtFree(host), ACL_SUCCESS);  // the device has no such memory
    aclrtFree(a);
    aclrtDestroyStream(stream);
    return code;
}
class Add : public testing::Test {
protected:
    void SetUp() override { ready = true; }
    bool ready = false;
};
TEST_F(Add, right) { ASSERT_TRUE(ready); EXPECT_EQ(ran(0), ACL_SUCCESS) << "bytes"; }
TEST_F(Add, races) { EXPECT_EQ(ran(3), ACL_ERROR_RT_AICORE_EXCEPTION); }
TEST_F(Add, crashes) { ran(1); }
TEST_F(Add, aborts) { ran(4); }
TEST_F(Add, turns) { ran(2); }
TEST(Plain, passes) { EXPECT_FLOAT_EQ(0.1f + 0.2f, 0.3f); EXPECT_NEAR(1, 1.5, 0.5); }
TEST(Plain, fails)
{
    SCOPED_TRACE(std::string("in round ") + "5");
    EXPECT_LT(2, 1) << "message " << 7;
    ASSERT_STREQ("a", "b");
    EXPECT_TRUE(false) << "not reached";
}
TEST(Plain, skips) { GTEST_SKIP() << "later"; }
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, ...]:
    folder = tmp_path_factory.mktemp("program")
    (folder / "main.cpp").write_text(MAIN)
    (folder / "kernel.cpp").write_text(KERNEL)
    return Source(folder / "main.cpp"), Source(folder / "kernel.cpp", "vector")


def tried(sources: tuple[Source, ...], chosen: str, **options: Any) -> Ran:
    program = Program(sources, find_target("a2a3"))
    return execute(program, [f"--gtest_filter={chosen}"], **options)


def line(words: str) -> int:
    return KERNEL[: KERNEL.index(words)].count("\n") + 1


def test_a_program_runs_as_it_is(sources: tuple[Source, ...], tmp_path: Path) -> None:
    ran = tried(sources, "*.right:Plain.*", output=tmp_path / "said.txt")
    assert ran.cases == {
        "Add.right": "passed",
        "Plain.passes": "passed",
        "Plain.fails": "failed",
        "Plain.skips": "skipped",
    }
    assert (ran.code, ran.found) == (1, [])
    said = (tmp_path / "said.txt").read_text()
    assert "main.cpp:37" in said
    assert "main.cpp:36: in round 5" in said
    assert "message 7" in said
    assert "not reached" not in said


def test_without_its_kernels_a_program_checks_nothing(sources: tuple[Source, ...]) -> None:
    ran = tried(sources, "*.right:*.turns", without_kernels=True)
    assert ran.cases == {"Add.right": "failed", "Add.turns": "passed"}


def test_a_race_is_told_at_its_line_with_its_callers(sources: tuple[Source, ...]) -> None:
    ran = tried(sources, "Add.ra*:Add.right")
    assert ran.cases == {"Add.right": "passed", "Add.races": "passed"}
    ((case, found),) = ran.found
    assert case == "Add.races"
    assert found.code == "E6"
    assert found.location is not None
    assert found.location.line == line("TSTORE(gz")
    assert [each.line for each in found.location.callers][:1] == [line("LAUNCH(add")]


@pytest.mark.parametrize(("case", "reason"), [("crashes", "SIGSEGV"), ("aborts", "SIGABRT")])
def test_a_crash_is_told_at_the_last_instruction(
    sources: tuple[Source, ...], case: str, reason: str
) -> None:
    ran = tried(sources, f"Add.right:Add.{case}")
    assert ran.cases == {"Add.right": "passed", f"Add.{case}": "begun"}
    ((where, found),) = ran.found
    assert where == f"Add.{case}"
    assert found.code == "cpp-crash"
    assert reason in found.message
    assert found.location is not None
    assert found.location.line == line("TADDS(z")


def test_a_kernel_that_never_ends_is_stopped(sources: tuple[Source, ...]) -> None:
    ran = tried(sources, "Add.turns", time_limit=0.5)
    ((_, found),) = ran.found
    assert found.code == "cpp-endless"
    assert found.location is not None
    assert found.location.line == line("TADDS(z")


CLUSTER = (
    HEAD
    + """
extern "C" __global__ AICORE void which(__gm__ float* out)
{
#ifdef __DAV_VEC__
    T x; TASSIGN(x, 0);
    TEXPANDS(x, (float)(1 + get_block_idx() * 2 + get_subblockid()));
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    G g(out + (get_block_idx() * 2 + get_subblockid()) * 1024);
    TSTORE(g, x);
#endif
#ifdef __DAV_CUBE__
    if (get_block_num() != 2) trap();
#endif
}
void launch(float* out, void* stream) { which<<<2, nullptr, stream>>>(out); }
"""
)
CLUSTER_MAIN = """#include <acl/acl.h>
#include <cstdio>
#include <cstdlib>
void launch(float* out, void* stream);
int main(int argc, char** argv)
{
    float* out;
    aclrtMalloc((void**)&out, 4 * 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    launch(out, nullptr);
    std::printf("%s: %g %g %g %g\\n", argv[1], out[0], out[1024], out[2048], out[4095]);
    exit(argc + 5);
}
"""


def test_a_cluster_runs_both_parts_and_the_exit_code_is_the_programs(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(CLUSTER_MAIN)
    (tmp_path / "kernel.cpp").write_text(CLUSTER)
    sources = Source(tmp_path / "main.cpp"), Source(tmp_path / "kernel.cpp")
    program = Program(sources, find_target("a2a3"))
    ran = execute(program, ["cores"], output=tmp_path / "said.txt")
    assert (ran.code, ran.found) == (7, [])
    assert (tmp_path / "said.txt").read_text() == "cores: 1 2 3 4\n"


def test_what_the_stand_in_has_not_is_refused_by_name(tmp_path: Path) -> None:
    text = "#include <gtest/gtest.h>\nclass P : public testing::Test {};\nTEST_P(P, one) {}\n"
    (tmp_path / "main.cpp").write_text(text)
    program = Program((Source(tmp_path / "main.cpp"),), find_target("a2a3"))
    with pytest.raises(PtoError, match=r"main\.cpp:3.*no TEST_P"):
        program.built()


def test_the_command_passes_arguments_on_and_says_what_is_wrong(
    sources: tuple[Source, ...],
) -> None:
    def command(*words: str) -> Any:
        files = [str(each.path) for each in sources]
        whole = [sys.executable, "-m", "ptokit", "exec", *files, *words]
        return subprocess.run(whole, capture_output=True, text=True, check=False)

    right = command("--", "--gtest_filter=Add.right")
    assert right.returncode == 0
    assert "[       OK ] Add.right" in right.stdout
    racing = command("--core", "vector", "--", "--gtest_filter=Add.races")
    assert racing.returncode == 1
    assert "error[E6]" in racing.stderr
    assert "1 error, 0 warnings" in racing.stderr
    told = command("--json", "--", "--gtest_filter=Add.right:Add.races")
    report = json.loads(told.stdout)
    assert report["cases"] == {"Add.right": "passed", "Add.races": "passed"}
    assert (report["exit"], [each["code"] for each in report["diagnostics"]]) == (1, ["E6"])
    wrong = command("more.txt")
    assert wrong.returncode == 2
    assert "more.txt is no C++ source" in wrong.stderr


STOPPED = (
    HEAD
    + """
extern "C" __global__ AICORE void meet(__gm__ float* out, int fails)
{
    T x; TASSIGN(x, 0);
    TEXPANDS(x, 1.0f);
    if (get_block_idx() == 3 && fails) trap();
    SYNCALL<SyncAllMode::Hard, SyncCoreType::AIVOnly>();
    for (int i = 0; i < 100; i++) TEXPANDS(x, 3.0f), pipe_barrier(PIPE_V);  // only where all meet
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    G g(out + get_block_idx() * 1024);
    TSTORE(g, x);
}
#include <acl/acl.h>
int main()
{
    float* out;
    aclrtMalloc((void**)&out, 4 * 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    meet<<<4, nullptr, nullptr>>>(out, 1);
    if (aclrtSynchronizeStream(nullptr) != ACL_ERROR_RT_AICORE_EXCEPTION || out[0] != 0) return 2;
    meet<<<4, nullptr, nullptr>>>(out, 0);
    return aclrtSynchronizeStream(nullptr) || out[4095] != 3;
}
"""
)


def test_cores_that_wait_when_a_launch_fails_do_not_go_on(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(STOPPED)
    program = Program((Source(tmp_path / "main.cpp", "vector"),), find_target("a5"))
    ran = execute(program)
    assert (ran.code, [each.code for _, each in ran.found]) == (0, ["trap"])


PREFETCH = (
    HEAD
    + """#include <pto/comm/async/sdma/sdma_workspace_manager.hpp>
__global__ AICORE void fetch(__gm__ float* x, __gm__ uint8_t* work)
{
    PrefetchAsyncContext context(work);
    G g(x);
    if (!TPREFETCH_ASYNC(g, context).Wait(context.GetSession())) trap();
}
int main()
{
    comm::sdma::SdmaWorkspaceManager workspace;
    float* x;
    aclrtMalloc((void**)&x, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    if (!workspace.Init()) return 1;
    fetch<<<1, nullptr, nullptr>>>(x, (uint8_t*)workspace.GetWorkspaceAddr());
    workspace.Finalize();
    return aclrtSynchronizeDevice() || workspace.GetWorkspaceAddr();
}
"""
)


def test_a_host_has_workspaces_for_engines(tmp_path: Path) -> None:
    path = tmp_path / "main.cpp"
    path.write_text(PREFETCH)
    ran = execute(Program((Source(path),), find_target("a2a3")))
    assert (ran.code, ran.errors) == (0, [])
