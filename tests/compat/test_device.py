"""Programs that expect a device: tools, libraries and tensors that lead to the simulator."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.base.layout import Array
from ptokit.compat.device import libraries, memory, shell
from ptokit.compat.device.libraries import DynamicLibrary, asked
from ptokit.native import sources
from tests.command import command
from tests.compat.programs import ADD
from tests.native.support import needs_compiler

KERNEL = """
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" __global__ AICORE void twice(__gm__ float *x, __gm__ float *y)
{
#if defined(__DAV_VEC__)
    const int64_t part = get_block_idx() * get_subblockdim() + get_subblockid();
    using Part = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
    Tile<TileType::Vec, float, 1, 64> t;
    TASSIGN(t, 0x0);
    Part from(x + part * 64), to(y + part * 64);
    TLOAD(t, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(t, t, t);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, t);
#endif
}
"""
CALLER = """
#ifndef KERNEL_CPP
#define KERNEL_CPP "other.cpp"
#endif
#include KERNEL_CPP
extern "C" void call(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y)
{
    twice<<<blocks, nullptr, stream>>>((float *)x, (float *)y);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("device")
    (folder / "twice.cpp").write_text(KERNEL, "utf-8")
    (folder / "caller.cpp").write_text(CALLER, "utf-8")
    file = folder / "twice.so"
    flags = ["-fPIC", "-shared", "-xcce", "-O2", "-mllvm", "-cce-x=1", "--npu-arch=dav-2201"]
    macro = '-DKERNEL_CPP="twice.cpp"'
    libraries.make([*flags, macro, str(folder / "caller.cpp"), "-o", str(file)])
    return file


def shown(array: Array) -> Any:
    """The address of an array that the device knows."""
    memory.note(array.ctypes.data, array.nbytes, lambda: False)
    return ctypes.c_void_p(array.ctypes.data)


@needs_compiler
def test_a_library_launches_clusters(library: Path) -> None:
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    DynamicLibrary(str(library)).call(2, None, shown(x), shown(y))
    np.testing.assert_array_equal(y, x * 2)  # two blocks with two vector cores each


@needs_compiler
def test_what_a_launch_lacks_is_raised_by_the_call(library: Path) -> None:
    x, y = np.zeros(128, np.float32), np.zeros(256, np.float32)
    call = DynamicLibrary(str(library)).call
    with pytest.raises(PtoError, match=r"twice\.cpp:12.*gm-bounds"):
        call(2, None, shown(x), shown(y))
    call(1, None, shown(x), shown(y))  # and is forgotten then


ADDED = "    TADD(t, t, t);"
READY = "    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);\n    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);"
TALKING = KERNEL.replace(ADDED, f"""{READY}
    cce::printf("%d of %d\\n", (int)part, 2);
    TPRINT(t);
{ADDED}
    cce::printf("added\\n");""")  # fmt: skip


@needs_compiler
def test_what_a_kernel_prints_stands_among_its_instructions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "twice.cpp").write_text(TALKING, "utf-8")
    (tmp_path / "caller.cpp").write_text(CALLER, "utf-8")
    file = tmp_path / "twice.so"
    macro = '-DKERNEL_CPP="twice.cpp"'
    libraries.make(["--npu-arch=dav-2201", macro, str(tmp_path / "caller.cpp"), "-o", str(file)])
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    for _ in range(2):
        DynamicLibrary(str(file)).call(1, None, shown(x), shown(y))
        said = capsys.readouterr().out
        order = [said.index(each) for each in ("0 of 2\n", "TPRINT", "added\n")]
        assert order == sorted(order)
        assert said.count("added\n") == 2  # a block has two vector cores


BARE = """#include <stdint.h>
#ifndef AICORE
#define AICORE [aicore]
#endif
extern "C" __global__ AICORE void add(__gm__ float *x, __gm__ float *y, __gm__ float *z);
extern "C" void call(uint32_t blocks, void *stream, float *x, float *y, float *z)
{
    add<<<blocks, nullptr, stream>>>((__gm__ float *)x, (__gm__ float *)y, (__gm__ float *)z);
}
"""


@needs_compiler
def test_objects_are_linked_to_a_library(tmp_path: Path) -> None:
    """One of the assembler, and one of a source that includes no header of the device."""
    (tmp_path / "launch.cpp").write_text(BARE, "utf-8")
    (tmp_path / "builder.py").write_text(ADD, "utf-8")
    commands = """
python builder.py > add.pto
ptoas --pto-arch=a3 --enable-insert-sync --enable-tile-op-expand add.pto -o add.o
bisheng -xcce --cce-aicore-arch=dav-c220-vec -Dcall_EXPORTS -c launch.cpp -o launch.o
bisheng -shared --cce-fatobj-link -Wl,--no-undefined -o add.so launch.o add.o -L/none -lruntime
"""
    env = shell.environment(replace=True)
    done = subprocess.run(["sh", "-ec", commands], cwd=tmp_path, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    x, y, z = (np.full((16, 64), n, np.float32) for n in (1, 2, 0))
    DynamicLibrary(str(tmp_path / "add.so")).call(1, None, shown(x), shown(y), shown(z))
    assert (z == 3).all()


def test_an_object_of_another_compiler_is_told(tmp_path: Path) -> None:
    (tmp_path / "k.o").write_bytes(bytes(64))
    with pytest.raises(PtoError, match=r"k\.o is no object that was made here"):
        asked([str(tmp_path / "k.o"), "-o", "k.so"])


def test_scripts_find_a_place_for_headers() -> None:
    """Some move the folder of the tool chain's away, and back."""
    home = Path(shell.environment()["ASCEND_HOME_PATH"])
    assert (home / "include" / "pto").is_dir()


@needs_compiler
def test_memory_that_is_gone_is_no_argument(library: Path) -> None:
    x, y = np.zeros(256, np.float32), np.zeros(256, np.float32)
    gone = [False]
    memory.note(x.ctypes.data, x.nbytes, lambda: gone[0])
    address, there = ctypes.c_void_p(x.ctypes.data), shown(y)
    loaded = DynamicLibrary(str(library))
    loaded.call(2, None, address, there)
    gone[0] = True
    with pytest.raises(PtoError, match="gm-pointer"):
        loaded["call"](2, None, address, there)


def test_other_libraries_are_loaded_as_ever(tmp_path: Path) -> None:
    assert DynamicLibrary(None).abs(-3) == 3
    with pytest.raises(OSError, match="missing"):
        DynamicLibrary(str(tmp_path / "missing.so"))


@pytest.mark.parametrize(
    ("words", "target", "cores"),
    [
        (["--npu-arch=dav-2201"], "a2a3", "mix"),
        (["--npu-arch=dav-2201", "--cce-soc-core-type=VectorCore"], "a2a3", "vector"),
        (["--npu-arch=dav-c220-cube", "-D", "MEMORY_BASE"], "a2a3", "cube"),
        (["-DREGISTER_BASE"], "a5", "mix"),
        (["--cce-aicore-arch=dav-c220-vec"], "a2a3", "vector"),
        (["--cce-aicore-arch=dav-c310"], "a5", "mix"),
    ],
)
def test_the_compiler_is_told_what_it_compiles_for(
    words: list[str], target: str, cores: str
) -> None:
    found = asked([*words, "k.cpp", "-I", "inc", "-o", "k.so"])
    assert (found.target.name, found.cores(KERNEL)) == (target, cores)
    assert (found.output, found.includes) == (Path("k.so"), [Path("inc").resolve()])
    assert found.cores("no kind of core is named") in ("single", cores)


@pytest.mark.parametrize("words", [["k.cpp"], ["-DMEMORY_BASE"], ["-DMEMORY_BASE", "k.o"], ["-o"]])
def test_what_the_compiler_is_not_told_it_asks_for(words: list[str]) -> None:
    with pytest.raises(PtoError):
        _ = asked(words).target


def test_a_file_that_a_macro_names_is_part_of_the_source(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.cpp").write_text(f"int {name};\n", "utf-8")
    main = tmp_path / "main.cpp"
    main.write_text('#ifndef K\n#define K "a.cpp"\n#endif\n#include K\n', "utf-8")

    def names(*defines: str) -> list[str]:
        return [path.name for path in sources.gathered((main,), (), defines)]

    assert names() == ["main.cpp", "a.cpp"]
    assert names('K="b.cpp"') == ["main.cpp", "b.cpp"]


SCRIPT = """
set -e
cd "$(dirname "$0")"
python -u builder.py > add.pto
ptoas --enable-insert-sync add.pto -o add.cpp
ptoas --enable-insert-sync < add.pto > same.cpp
cmp add.cpp same.cpp
echo "$1" > said
"""


def test_a_script_of_the_shell_finds_the_stand_ins(tmp_path: Path) -> None:
    (tmp_path / "builder.py").write_text(ADD, "utf-8")
    (tmp_path / "build.sh").write_text(SCRIPT, "utf-8")
    done = command("run", "--compat", str(tmp_path / "build.sh"), "--", "its own word")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "said").read_text("utf-8").strip() == "its own word"
    assert "set_flag" in (tmp_path / "add.cpp").read_text("utf-8")
    (tmp_path / "build.sh").write_text("exit 3", "utf-8")
    assert command("run", "--compat", str(tmp_path / "build.sh")).returncode == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "import sys, mlir.ir; print(sys.argv)", "x"], "['-c', 'x']"),
        (["-m", "timeit", "-n1", "-r1", "import mlir.ir"], "1 loop"),
        (["--version"], "Python 3"),
        (["-"], "from standard input"),
    ],
)
def test_python_in_a_script_is_python(words: list[str], said: str) -> None:
    done = subprocess.run(
        ["python", *words],
        env=shell.environment(replace=True),
        input="import mlir.ir; print('from standard input')",
        capture_output=True,
        text=True,
        check=True,
    )
    assert said in done.stdout


def test_tools_that_are_installed_win_unless_replaced(tmp_path: Path) -> None:
    before = os.environ["PATH"]
    first = shell.environment(replace=True)["PATH"].split(os.pathsep)
    last = shell.environment()["PATH"].split(os.pathsep)
    assert Path(first[1], "bisheng").exists()
    assert Path(last[-1], "bisheng").exists()
    assert Path(last[0], "python").exists()
    assert os.environ["PATH"] == before


TORCH = """
import ctypes, torch, torch_npu

torch.npu.set_device("npu:0")
x = torch.arange(128, dtype=torch.float32, device="npu:0")
y = torch.empty(128, device=torch.device("npu")).zero_()
kept = x.cpu()
lib = ctypes.CDLL({library!r})
stream = torch.npu.current_stream()._as_parameter_
lib.call(1, stream, ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()))
torch.npu.synchronize()
torch.testing.assert_close(y.cpu(), torch.arange(128.0) * 2)
lib.call(1, stream, ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(x.data_ptr()))
torch.testing.assert_close(kept, torch.arange(128.0))  # a copy
torch.testing.assert_close(x, y)
try:
    torch.npu.frobnicate
except AttributeError as error:
    print(error)
"""


@needs_compiler
def test_tensors_of_a_device_are_those_of_this_machine(library: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "use.py"
    file.write_text(TORCH.format(library=str(library)), "utf-8")
    done = command("run", "--compat", str(file))
    assert done.returncode == 0, done.stderr
    assert "torch.npu has no frobnicate here" in done.stderr
