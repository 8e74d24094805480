"""Budgets: a run that takes more than it was given is stopped, and says where it was."""

from __future__ import annotations

import inspect
import signal
import threading
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import loads
from ptokit.frontend.launch import launch
from ptokit.machine.budget import OverBudget

TileT = Tile[TileType.Vec, float32, 16, 64]


@kernel(mode="auto")
def copies(x: Any, y: Any, times: int) -> None:
    for _ in range(times):
        tile = TileT()
        TLOAD(tile, GlobalTensor(x))
        TSTORE(GlobalTensor(y), tile)


COUNTS = """
func.func @count(%n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.index_cast %n : i32 to index
  scf.for %i = %c0 to %m step %c1 {
    %x = arith.addi %i, %i : index
  }
  return
}
"""
FOREVER = """
func.func @forever() {
  %true = arith.constant true
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    scf.yield
  }
  return
}
"""


def arrays() -> list[Any]:
    return [np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)]


def stopped(run: Any) -> Any:
    with pytest.raises(OverBudget) as caught:
        run()
    found = caught.value.diagnostics[-1]
    assert found.code == "budget"
    assert found.fix
    return found


def is_in(kernel: Any, location: Any) -> bool:
    """Whether a place lies in the function of a kernel."""
    lines, first = inspect.getsourcelines(kernel.function)
    return location.file == __file__ and first < location.line < first + len(lines)


@pytest.mark.parametrize("by", ["fast", "reference"])
@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(
    "limit", [{"max_steps": 40}, {"max_seconds": 0.1}, {"max_bytes": 1000}], ids=str
)
def test_a_loop_that_takes_too_long(limit: dict[str, Any], path: str, by: str) -> None:
    found = stopped(lambda: copies[1](*arrays(), 10**9, path=path, engine=by, **limit))
    ((name, most),) = limit.items()
    assert f"{name} = {most}" in found.message
    assert is_in(copies, found.location)
    assert dict(found.got)["core"] == "mix core of block 0"


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_what_is_within_its_budget(path: str) -> None:
    x, y = arrays()
    copies[2](x, y, 3, path=path, max_steps=100, max_seconds=100, max_bytes=10**7, check=False)
    assert (y == 1).all()


def test_the_steps_of_a_run_are_counted_anew() -> None:
    for _ in range(3):
        copies[1](*arrays(), 3, max_steps=20)


@pytest.mark.parametrize("by", ["fast", "reference"])
@pytest.mark.parametrize("limit", [{"max_steps": 40}, {"max_seconds": 0.1}], ids=str)
@pytest.mark.parametrize(("text", "args", "line"), [(COUNTS, (2**31 - 1,), 6), (FOREVER, (), 4)])
def test_a_text_without_instructions(
    text: str, args: tuple[int, ...], line: int, limit: dict[str, Any], by: str
) -> None:
    found = stopped(lambda: loads(text).entry()[1](*args, engine=by, **limit))
    assert (found.location.file, found.location.line) == ("<text>", line)


def test_python_that_never_comes_to_an_instruction() -> None:
    @kernel
    def spin() -> None:
        n = 0
        while True:
            n += 1

    before = signal.getsignal(signal.SIGALRM)
    found = stopped(lambda: spin[1](max_seconds=0.2))
    assert is_in(spin, found.location)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_budget_in_another_thread() -> None:
    found: list[Any] = []
    run = threading.Thread(
        target=lambda: found.append(stopped(lambda: copies[1](*arrays(), 10**9, max_seconds=0.1)))
    )
    run.start()
    run.join(60)
    assert found


def test_blocks_that_wait_for_all_others_take_their_memory_at_once() -> None:
    @kernel(mode="manual", core="vector")
    def meet() -> None:
        tile = TileT()
        TASSIGN(tile, 0)
        TEXPANDS(tile, 1.0)
        SYNCALL()

    meet[8](max_bytes=8 * 192 * 1024)
    stopped(lambda: meet[9](max_bytes=8 * 192 * 1024))


def test_functions_per_core_have_budgets_too() -> None:
    def body() -> None:
        while True:
            TEXPANDS(TileT(), 1.0)

    stopped(lambda: launch({"mix": body}, mode="auto", max_steps=40))


@pytest.mark.parametrize("given", [0, -1, "many", float("nan")])
@pytest.mark.parametrize("name", ["max_steps", "max_seconds", "max_bytes"])
def test_limits_are_positive_numbers(name: str, given: Any) -> None:
    with pytest.raises(PtoError, match=f"{name} is a positive number"):
        copies[1](*arrays(), 1, **{name: given})


# ---- numbers that are too large ------------------------------------------------------------------


@pytest.mark.parametrize("given", [10**20, 2**32, -(2**31) - 1])
def test_an_argument_outside_its_type(given: int) -> None:
    with pytest.raises(PtoError, match="argument-range") as caught:
        loads(COUNTS).entry()[1](given)
    assert "-2147483648..4294967295" in caught.value.diagnostics[0].fix
    assert caught.value.diagnostics[0].location.line == 2


@pytest.mark.parametrize("given", [2**32 - 1, 2**31, -(2**31), 0])
def test_both_readings_of_a_type_without_a_sign(given: int) -> None:
    """As a signed number it is negative, and the loop has no round."""
    loads(COUNTS).entry()[1](given, max_steps=10)


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_number_of_a_python_kernel_has_64_bits(path: str) -> None:
    with pytest.raises(PtoError, match="argument-range"):
        copies[1](*arrays(), 10**20, path=path)


def test_a_float_that_is_none() -> None:
    with pytest.raises(PtoError, match="argument-range"):
        loads("func.func @f(%x: f32) {\n  return\n}").entry()[1](10**400)


@pytest.mark.parametrize("grid", [10**20, (2**16, 2**16)])
def test_a_grid_that_no_launch_can_have(grid: Any) -> None:
    with pytest.raises(PtoError, match="number of blocks has 32 bits"):
        copies[grid]
