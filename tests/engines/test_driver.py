"""Programs as one function: the bytes and the complaints of the reference, at the first launch.

Random programs and what the loops of a text can do; every example runs as one in test_programs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError
from ptokit.engines import ENGINES
from ptokit.engines.compiled import driver
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.replay import Tape
from ptokit.from_text import loads
from ptokit.frontend.launch import launch
from ptokit.frontend.session import current
from ptokit.ir.core import Module
from ptokit.kernels import Kernel
from tests.passes.programs import random_program, rotation
from tests.passes.test_auto_mode import arguments, synchronised

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")


@pytest.fixture(params=[1, 2], autouse=True)
def _soon(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands need not come often in short programs, and few memories are soon too many."""
    monkeypatch.setattr(driver, "_OFTEN", request.param)
    if request.param == 1:
        monkeypatch.setattr(driver, "_MEMORIES", 0)
        monkeypatch.setattr(driver, "_BUFFERS", 0)


# ---- random programs -----------------------------------------------------------------------------


def interpreted(module: Module, on: str) -> list[np.ndarray]:
    arrays, prepared = arguments(), ENGINES["reference"].prepare(module)

    def body() -> None:
        prepared.run(current(), module.functions[0], tuple(arrays))

    executor = ENGINES["reference"].executor
    launch({"mix": body}, on, "manual", hazards=False, executor=executor)
    return arrays


def driven(drivers: driver.Drivers, on: str) -> list[np.ndarray]:
    arrays = arguments()
    runs = drivers.of(Tape(arrays))

    def body() -> None:
        runs.run(current(), runs.module.functions[0], tuple(arrays))

    launch({"mix": body}, on, "manual", hazards=False, follow=runs.follow)
    return arrays


def check(program: Module | None, on: str, seed: int) -> driver.Drivers | None:
    if program is None:
        return None
    wanted, drivers = interpreted(program, on), driver.Drivers(program)
    for _ in range(2):  # with the variants of the launch before
        assert all(map(np.array_equal, wanted, driven(drivers, on))), f"seed {seed}"
    return drivers


@pytest.mark.parametrize("start", [0, 12])
def test_random_programs_leave_the_same_bytes(start: int) -> None:
    found = 0
    for seed in range(start, start + 12):
        on = ("a2a3", "a5")[seed % 2]
        drivers = check(synchronised(random_program(seed, on), on), on, seed)
        if drivers is not None:
            assert not drivers.lacks
            found += sum(drivers.asked.values()) > 0
    assert found > 4  # the others have no loop


def test_rotations_leave_the_same_bytes() -> None:
    for seed in range(4):
        check(synchronised(rotation(3, 4, seed, "a5"), "a5"), "a5", seed)


# ---- texts ---------------------------------------------------------------------------------------

_TILE = "!pto.tile_buf<vec, 8x64xf32>"
_WIDE = "!pto.tile_buf<vec, 4x128xf32>"
_PART = "!pto.partition_tensor_view<8x64xf32>"
_LOAD = f"pto.tload ins(%px : {_PART}) outs(%t : {_TILE})"
_ADD = f"pto.tadd ins(%t, %u : {_TILE}, {_TILE}) outs(%t : {_TILE})"
_STORE = f"pto.tstore ins(%t : {_TILE}) outs(%py : {_PART})"
_IN_ORDER = "pto.barrier <PIPE_ALL>"


def looped(body: str, before: str = "", behind: str = "", on: str = "a5") -> Kernel:
    """A kernel of (x, y, n, k): `body` for each of n parts of x and y, the i-th beginning at row
    %r; `before` and `behind` the loop."""
    text = f"""module attributes {{pto.target_arch = "{on}"}} {{
  func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index, %k: index)
      attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 4096 : i64
    %rows = arith.muli %n, %c8 : index
    %vx = pto.make_tensor_view %x, shape = [%rows, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<?x?xf32>
    %vy = pto.make_tensor_view %y, shape = [%rows, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<?x?xf32>
    %t = pto.alloc_tile addr = %a0 : {_TILE}
    %u = pto.alloc_tile addr = %a1 : {_TILE}
    {before}
    scf.for %i = %c0 to %n step %c1 {{
      %r = arith.muli %i, %c8 : index
      %px = pto.partition_view %vx, offsets = [%r, %c0], sizes = [%c8, %c64]
        : !pto.tensor_view<?x?xf32> -> {_PART}
      %py = pto.partition_view %vy, offsets = [%r, %c0], sizes = [%c8, %c64]
        : !pto.tensor_view<?x?xf32> -> {_PART}
      {body}
    }}
    {behind}
    return
  }}
}}
"""
    return loads(text, "looped.pto")["f"]


def drivers_of(kernel: Kernel) -> list[driver.Drivers]:
    return list(kernel.programs.memory._drivers.values())


def ran(launched: Kernel, parts: int, k: int, **how: Any) -> tuple[bytes, list[str]]:
    """What a launch leaves, and what it complains of."""
    rng = np.random.default_rng(parts)
    x = rng.standard_normal((8 * max(how.pop("held", parts), 1), 64)).astype(np.float32)
    y, said = np.zeros_like(x), list[str]()
    try:
        run = launched[1](x, y, parts, k, check=False, **how)
        said += [d.render() for d in run.warnings]
    except ProgramError as error:
        said += [d.render() for d in error.diagnostics]
    return y.tobytes(), said


def both(make: Callable[[], Kernel], *given: int, asks: int | None = 30, **how: Any) -> list[str]:
    """Launch a kernel as a driver and step by step; what both say, which is the same."""
    launched = make()
    found = ran(launched, *given, **how)
    assert found == ran(make(), *given, engine="stepwise", **how)
    (drivers,) = drivers_of(launched)
    assert not any(each.startswith("@") for each in drivers.lacks), drivers.lacks
    assert asks is None or 0 < sum(drivers.asked.values()) < asks
    return found[1]


ORDERED = f"{_LOAD}\n{_IN_ORDER}\n"
DOUBLED = ORDERED + f"{_ADD}\n{_IN_ORDER}\n{_STORE}\n{_IN_ORDER}\n"
FILLED = f"""%half = arith.constant 0.5 : f32
    pto.texpands ins(%half : f32) outs(%u : {_TILE})
    {_IN_ORDER}"""


@pytest.mark.parametrize("parts", [0, 1, 7, 60])
def test_loops_stay_loops(parts: int) -> None:
    asks = None if parts < 7 else 13
    assert both(lambda: looped(DOUBLED, FILLED), parts, 0, asks=asks) == []


def test_a_launch_with_other_sizes_asks_nothing_again() -> None:
    launched = looped(DOUBLED, FILLED)
    ran(launched, 20, 0)
    (drivers,) = drivers_of(launched)
    asked = sum(drivers.asked.values())
    assert ran(launched, 33, 0) == ran(looped(DOUBLED, FILLED), 33, 0, engine="reference")
    assert sum(drivers.asked.values()) <= asked + 1  # what stands before the loop


def test_a_launch_is_repeated_after_it_ran_as_a_driver() -> None:
    launched = looped(DOUBLED, FILLED)
    wanted = ran(launched, 20, 0)
    (replay,) = launched.programs.memory.replays
    assert replay is not None
    (drivers,) = drivers_of(launched)
    asked = drivers.asked.copy()
    assert ran(launched, 20, 0) == wanted
    assert drivers.asked == asked


def test_what_is_interpreted_is_said_with_the_reason() -> None:
    launched = looped(DOUBLED, FILLED)
    ran(launched, 20, 0)
    assert launched.coverage == {}
    chosen = f"""%is = arith.cmpi eq, %i, %c0 : index
      %w = scf.if %is -> ({_WIDE}) {{ scf.yield %v : {_WIDE} }} else {{ scf.yield %v : {_WIDE} }}
      pto.treshape ins(%u : {_TILE}) outs(%w : {_WIDE})"""
    alike = looped(chosen, f"{FILLED}\n%v = pto.alloc_tile addr = %a1 : {_WIDE}")
    assert ran(alike, 4, 0)[1] == []
    assert alike.coverage == {"@f": "a tile that changes and is handed on"}


FLOW = {
    "branches": f"""%odd = arith.remsi %i, %c2 : index
      %is = arith.cmpi eq, %odd, %c0 : index
      scf.if %is {{ {DOUBLED} }} else {{ {ORDERED} {_STORE}
      {_IN_ORDER} }}""",
    "a number that is carried": f"""%sum = scf.for %j = %c0 to %i step %c1
          iter_args(%s = %c0) -> (index) {{
        %next = arith.addi %s, %j : index
        scf.yield %next : index
      }}
      %is = arith.cmpi sgt, %sum, %c8 : index
      scf.if %is {{ {DOUBLED} }}""",
    "a tile that is chosen": f"""%odd = arith.remsi %i, %c2 : index
      %is = arith.cmpi eq, %odd, %c0 : index
      %w = scf.if %is -> ({_TILE}) {{ scf.yield %t : {_TILE} }} else {{ scf.yield %u : {_TILE} }}
      {ORDERED} pto.tadd ins(%w, %t : {_TILE}, {_TILE}) outs(%w : {_TILE})
      {_IN_ORDER}
      {_STORE}
      {_IN_ORDER}""",
    "until": f"""%left = scf.while (%s = %i) : (index) -> index {{
        %more = arith.cmpi sgt, %s, %c2 : index
        scf.condition(%more) %s : index
      }} do {{
      ^bb0(%s: index):
        {DOUBLED}
        %less = arith.subi %s, %c2 : index
        scf.yield %less : index
      }}""",
    "cases": f"""%m = arith.remsi %i, %c8 : index
      scf.index_switch %m
      case 1 {{ {DOUBLED} scf.yield }}
      case 5 {{ {ORDERED} scf.yield }}
      default {{ {ORDERED} {_STORE}
      {_IN_ORDER} scf.yield }}""",
    "flags": f"""pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
      {_LOAD}
      pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      {_ADD}
      pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]
      pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]
      {_STORE}
      pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]""",
}
FLOW["another name"] = f"""{ORDERED}
      pto.treshape ins(%t : {_TILE}) outs(%w : {_WIDE})
      pto.tadd ins(%w, %w : {_WIDE}, {_WIDE}) outs(%w : {_WIDE})
      {_IN_ORDER}
      {_STORE}
      {_IN_ORDER}"""
_PADDED = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=8, cols=64, v_row=8, v_col=61, blayout=row_major, "
    "slayout=none_box, fractal=512, pad=1>"
)
_NARROW = "!pto.partition_tensor_view<8x61xf32>"
# What was loaded and what was padded are two functions, one after the other.
FLOW["padding"] = f"""%c61 = arith.constant 61 : index
      {FILLED.replace("%u", "%t")}
      %p = pto.partition_view %vx, offsets = [%r, %c0], sizes = [%c8, %c61]
        : !pto.tensor_view<?x?xf32> -> {_NARROW}
      pto.tload ins(%p : {_NARROW}) outs(%padded : {_PADDED})
      {_IN_ORDER}
      {_STORE}
      {_IN_ORDER}"""
FLOW["data"] = f"""{ORDERED} %v = pto.tgetval ins(%t, %c8 : {_TILE}, index) outs : f32
      %none = arith.constant 0.0 : f32
      %is = arith.cmpf ogt, %v, %none : f32
      scf.if %is {{ {DOUBLED} }}"""
_SET = "pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]"
_WAIT = "pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]"


@pytest.mark.parametrize("name", FLOW)
def test_flow_leaves_the_same_bytes(name: str) -> None:
    around = {
        "flags": (f"{FILLED}\n{_SET}", _WAIT),
        "another name": (f"{FILLED}\n%w = pto.alloc_tile addr = %a1 : {_WIDE}",),
        "padding": (f"%padded = pto.alloc_tile addr = %a0 : {_PADDED}",),
    }
    given = around.get(name, (FILLED,))
    asks = 60 if name == "data" else 40  # less than one a round, unless data decide
    assert both(lambda: looped(FLOW[name], *given), 40, 0, asks=asks) == []


AT_K = "%is = arith.cmpi eq, %i, %k : index"
WRONG = {
    "poison-read": f"{ORDERED} {AT_K}\nscf.if %is {{ {_ADD} }}",
    "slice-range": f"""{DOUBLED} %end = arith.addi %r, %k : index
      %p = pto.partition_view %vx, offsets = [%end, %c0], sizes = [%c8, %c64]
        : !pto.tensor_view<?x?xf32> -> {_PART}""",
    "arith": f"{DOUBLED} %d = arith.subi %i, %k : index\n%q = arith.divsi %c8, %d : index",
    "loop-step": f"""{DOUBLED} %s = arith.subi %k, %i : index
      scf.for %j = %c0 to %c8 step %s {{ {_IN_ORDER} }}""",
    "E1": f"{DOUBLED} {AT_K}\nscf.if %is {{ {_WAIT} }}",
    "trap": f"{DOUBLED} {AT_K}\nscf.if %is {{ pto.trap }}",
    "valid-capacity": f"""{DOUBLED} %v = pto.alloc_tile addr = %a0 valid_row = %i valid_col = %c64
        : !pto.tile_buf<vec, 8x64xf32, valid=?x?>""",
}


@pytest.mark.parametrize("code", WRONG)
def test_what_is_wrong_in_a_later_round_is_said_as_in_steps(code: str) -> None:
    before = "" if code == "poison-read" else FILLED
    (said,) = both(lambda: looped(WRONG[code], before), 24, 12)
    assert "looped.pto" in said


def test_what_becomes_undefined_again_is_found_by_those_that_have_read_it_often() -> None:
    """In one round a sum has its scratch where the others keep what they add."""
    sums = "!pto.tile_buf<vec, 4x8xf32, valid=4x1>"
    before = f"""{FILLED}
      %far = arith.constant 16384 : i64
      %s = pto.alloc_tile addr = %far : {sums}
      %w = pto.alloc_tile addr = %a0 : {_WIDE}
      %scratch = pto.alloc_tile addr = %a1 : {_WIDE}"""
    clobbered = f"""{DOUBLED} {AT_K}
      scf.if %is {{
        pto.trowsum ins(%w, %scratch : {_WIDE}, {_WIDE}) outs(%s : {sums})
        {_IN_ORDER}
      }}"""
    (said,) = both(lambda: looped(clobbered, before, on="a2a3"), 24, 12)
    assert "poison-read" in said
    assert "pto.tadd" in said


@pytest.mark.parametrize("held", [19, 23, 24])
def test_an_array_that_is_too_short_is_found_in_the_round_that_leaves_it(held: int) -> None:
    said = both(lambda: looped(DOUBLED, FILLED), 24, 0, held=held)
    assert [("gm-bounds" in each) for each in said] == [True] * (held < 24)
