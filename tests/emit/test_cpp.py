"""PTO C++ from IR, compared with expected files.

After a change that is meant, `pytest tests/emit --update-golden` writes them anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import Kernel, PtoError
from ptokit.base.dtypes import dtype
from ptokit.base.enums import Direction, TileType
from ptokit.base.tiles import TileSpec
from ptokit.emit.cpp import emit_cpp
from ptokit.emit.spelling import brackets
from ptokit.from_text import load, loads
from ptokit.ir.types import TileBufType
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.opcodes import op_codes
from ptokit.isa.spec import Pipe
from ptokit.isa.targets import target
from tests.emit import kernels as k

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
X = np.zeros((64, 64), np.float32)
BLOCK = X[:16]
HALF = X.astype(np.float16)

RING, RINGS = np.zeros((2, 32, 64), np.float32), np.zeros((4, 32, 64), np.float16)

# Files are called after the kernel, those of kernels for several targets after the target too.
SOURCES: list[tuple[Kernel, tuple[Any, ...], str]] = [
    (k.add, (BLOCK, BLOCK, BLOCK), "a2a3"),
    (k.control, (X, X, BLOCK, 3), "a2a3"),
    (k.brackets, (X, X, X, 3), "a5"),
    (k.product, (HALF, HALF, X), "a5"),
    (k.cluster, (RING, RINGS), "a2a3"),
    (k.cluster, (RING, RINGS), "a5"),
    (k.one_vector_core, (RINGS, 64), "a2a3"),
    (k.through_memory, (RING,), "a5"),
    (k.convolution, (HALF, X, 4, 0.5), "a5"),
]


@pytest.mark.parametrize(
    ("kernel", "args", "on"),
    SOURCES,
    ids=lambda v: v.name if isinstance(v, Kernel) else v if isinstance(v, str) else "",
)
def test_kernels_are_written_as_expected(
    kernel: Kernel, args: tuple[Any, ...], on: str, pytestconfig: pytest.Config
) -> None:
    several = sum(each is kernel for each, _, _ in SOURCES) > 1
    name = f"{kernel.name}_{on}.cpp" if several else f"{kernel.name}.cpp"
    compare(kernel.cpp(*args, target=on), name, pytestconfig)


def compare(source: str, name: str, config: pytest.Config) -> None:
    path = GOLDEN / name
    if config.getoption("--update-golden"):
        path.write_text(source)
    assert source == path.read_text()


@pytest.mark.parametrize(("on", "way"), [("a2a3", "DIR_C2V"), ("a5", "DIR_C2V_GM")])
def test_slots_in_hand(on: str, way: str, pytestconfig: pytest.Config) -> None:
    source = k.slots.cpp(RING, target=on, way=Direction[way])
    compare(source, f"slots_{on}.cpp", pytestconfig)


@pytest.mark.parametrize("name", ["pipes", "pipe_handles"])
def test_texts_are_written_as_expected(name: str, pytestconfig: pytest.Config) -> None:
    program = load(HERE / f"{name}.pto")
    assert not program.check()
    on = program.target()
    compare(emit_cpp(program.executable(on), on), f"{name}.cpp", pytestconfig)


def test_a_buffer_without_a_base_lies_behind_the_tiles_for_the_engine_too() -> None:
    x = np.random.default_rng(0).integers(-3, 4, (16, 16)).astype("f4")
    z = np.zeros_like(x)
    load(HERE / "pipes.pto")["both"][1](x, z)
    assert np.array_equal(z, x @ x + 1)


def test_what_cpp_cannot_say_is_refused() -> None:
    gather = INSTRUCTIONS["MGATHER"]
    assert brackets(gather, {"dst", "src", "indexes", "scratch"}, {}) is None
    tile = TileBufType(TileSpec.of(TileType.Vec, dtype("f32"), 16, 64))
    text = f"""
    func.func @f(%n: index) {{
      %t = pto.alloc_tile : {tile}
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%u = %t) -> ({tile}) {{
        scf.yield %u : {tile}
      }}
      return
    }}
    """
    with pytest.raises(PtoError, match="a tile without an address carried through control flow"):
        emit_cpp(loads(text).module, target("a2a3"))


REFUSED = [
    ("func.call @later() : () -> ()", "a call of @later, which is declared but not defined"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED)
def test_what_needs_another_part_of_the_program(line: str, message: str) -> None:
    text = f"func.func private @later()\nfunc.func @f() {{\n  {line}\n  return\n}}"
    with pytest.raises(PtoError, match=message) as caught:
        emit_cpp(loads(text).module, target("a5"))
    assert caught.value.diagnostics[0].location is not None
    assert caught.value.diagnostics[0].location.line == 3


def test_only_a_view_without_memory_is_a_slot() -> None:
    view = "!pto.partition_tensor_view<8x8xf32>"
    text = f"""
    func.func @f(%gm: !pto.ptr<f32>, %at: i32) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %p = pto.initialize_l2g2l_pipe {{dir_mask = 2, slot_size = 256, slot_num = 2, flag_base = 0}}
        (%gm : !pto.ptr<f32>, %at : i32) -> !pto.pipe
      %v = pto.make_tensor_view %gm, shape = [%c8, %c8], strides = [%c8, %c1]
        : !pto.tensor_view<8x8xf32>
      %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c8]
        : !pto.tensor_view<8x8xf32> -> {view}
      pto.talloc(%w, %p : {view}, !pto.pipe) {{split = 0}}
      return
    }}
    """
    program = loads(text)
    assert [complaint.code for complaint in program.check()] == ["pipe-entry"]
    with pytest.raises(PtoError, match="a view that has memory of its own"):
        emit_cpp(program.module, target("a2a3"))


def test_results_of_functions_are_refused() -> None:
    """C++ returns one value, and on every core."""
    text = "func.func @f() -> i32 {\n  %c = arith.constant 1 : i32\n  return %c : i32\n}"
    assert "AICORE int32_t f()" in emit_cpp(loads(text).module, target("a5"))
    two = text.replace("-> i32", "-> (i32, i32)").replace("%c : i32\n}", "%c, %c : i32, i32\n}")
    with pytest.raises(PtoError, match="a function that returns several values"):
        emit_cpp(loads(two).module, target("a5"))
    kind = text.replace("i32 {", "i32 attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {")
    with pytest.raises(PtoError, match="of one kind of core that returns a value"):
        emit_cpp(loads(kind).module, target("a5"))


def test_a_direction_that_does_not_exist() -> None:
    text = """
    func.func @f(%at: i32) {
      %p = pto.initialize_l2l_pipe {dir_mask = 9, slot_size = 64, slot_num = 2, flag_base = 0}
        (%at : i32) -> !pto.pipe
      return
    }
    """
    with pytest.raises(PtoError, match=r"dir_mask is one of 1 \(DIR_C2V\), 2"):
        emit_cpp(loads(text).module, target("a5"))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_signals_between_cores_have_an_address_where_the_target_wants_one(target: str) -> None:
    """The host passes it as the first argument; a kernel that sets it itself has no other."""
    ring = "%ring: !pto.ptr<f32>"
    given = (HERE / "pipes.pto").read_text("utf-8")
    given = given.replace("(%x: !pto.ptr<f32>", f"({ring}, %x: !pto.ptr<f32>")
    given = given.replace("(%z: !pto.ptr<f32>", f"({ring}, %z: !pto.ptr<f32>")
    given = given.replace("(%x) : (", "(%ring, %x) : (!pto.ptr<f32>, ")
    given = given.replace("(%z) : (", "(%ring, %z) : (!pto.ptr<f32>, ")
    given = given.replace("(c2v_", f"(gm_slot_buffer = {ring.replace(':', ' :')}, c2v_")
    text = loads(given).cpp(target)
    (entry,) = re.findall(r"__global__ AICORE void \w+\(\s*([^)]*)\)", text)
    assert entry.startswith("__gm__ uint64_t *ffts, ") == (target == "a2a3")
    assert text.count("set_ffts_base_addr((uint64_t)ffts);") == (target == "a2a3")
    own = (GOLDEN / "one_vector_core.cpp").read_text("utf-8")
    assert len(re.findall(r"^ +set_ffts_base_addr\(", own, re.MULTILINE)) == 1


def test_a_bound_that_is_a_choice_stands_in_brackets() -> None:
    source = """
func.func @f(%n: index, %m: index, %x: !pto.ptr<f32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.minui %n, %m : index
  scf.for %i = %0 to %2 step %1 {
    pto.barrier_sync [#pto.sync_op_type<TVEC>]
  }
  return
}
"""
    written = str(loads(source).cpp("a2a3", sync="keep"))
    (bound,) = re.findall(r"i < (.*); \+\+i", written)
    assert bound.startswith("(")
    assert bound.endswith(")")
    (name,) = re.findall(r"TSYNC<Op::(\w+)>\(\);", written)  # C++ has no TVEC
    assert op_codes()[name].pipe is Pipe.V
