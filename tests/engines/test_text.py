"""What is written for the compiler: loops, addresses, and how much it is asked to do."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ptokit.base import dtypes as dt
from ptokit.base.enums import RoundMode
from ptokit.engines.compiled.host import NAME, Host
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.loops import DENSE, Pointwise
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import F64, Apply, Arg, Convert, Expr

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")


def called(text: str, folder: Path, words: list[int]) -> list[int]:
    """The words behind a call of a function over them."""
    host = Host(folder)  # whose code stays as long as it does
    (address,) = host.addresses([text])
    held = np.array(words, np.int64)
    function: Callable[[int, int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
        address
    )
    function(held.ctypes.data, 0)
    return held.tolist()


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 5, 1), (0, 0, 1), (3, 2, 1), (1, 8, 3)])
@pytest.mark.parametrize("is_known", [False, True])
def test_loops_hand_on_what_they_carry(
    start: int, stop: int, step: int, is_known: bool, tmp_path: Path
) -> None:
    code = Function(NAME)
    first, last = (str(start), str(stop)) if is_known else (code.word(0), code.word(1))

    def body(i: Value, rounds: Value, sum_: Value) -> list[Value]:
        return [code.number("add", rounds, "1"), code.number("add", sum_, i)]

    rounds, sum_ = code.loop(first, last, str(step), body, [("i64", "0"), ("i64", "100")])
    code.store(rounds, "%args", 2)
    code.store(sum_, "%args", 3)
    all_ = range(start, stop, step)
    words = called(code.text(), tmp_path, [start, stop, -1, -1])
    assert words[2:] == [len(all_), 100 + sum(all_)]


@pytest.mark.parametrize("step", [1, 2, 3, 4, 8, 12])
def test_elements_are_found_by_their_steps(step: int, tmp_path: Path) -> None:
    code = Function(NAME)
    place = code.at("%args", code.word(1), str(step))
    code.act(f"store i8 7, ptr {place}")
    held = np.array(called(code.text(), tmp_path, [0, 16, *[0] * 24]), np.int64)
    assert np.flatnonzero(held.view(np.uint8) == 7).tolist() == [16 * step]


def written(expr: Expr) -> str:
    arrays = (("dst", dt.f32, DENSE), ("src", dt.f32, DENSE))
    return Pointwise(expr, arrays, (), 16, 1, True).text(NAME)


SOURCE = Arg(dt.f32, "src")


def test_only_what_takes_long_is_pondered_over() -> None:
    """A sum of products that is not added to in place takes half as long again."""
    wide = Convert(F64, SOURCE, RoundMode.CAST_RINT)
    exponential = Convert(dt.f32, Apply(F64, "exp", (wide,)), RoundMode.CAST_RINT)
    assert "optnone" in written(Apply(dt.f32, "mul", (SOURCE, SOURCE)))
    assert "optnone" not in written(exponential)
    code = Function(NAME)
    code.call("float", "llvm.fma.f32", *[("float", "1.0")] * 3)
    assert "optnone" not in code.text()


def test_variables_become_registers_before_instructions_are_chosen() -> None:
    code = Function(NAME)
    code.variable("i64", "0")
    assert "optnone" not in code.text()
