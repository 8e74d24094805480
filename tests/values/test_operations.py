"""Every operation of values against NumPy: with tiles, numbers, columns and rows, on both paths."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.testing import assert_tile_equal
from ptokit.values import *
from ptokit.values import value as style

ROWS, COLS = 16, 64
PATHS = ["eager", "lowered"]
TARGETS = ["a2a3", "a5", "kirin9030", "kirinx90"]
# Every target and both paths, but not every target on both.
ROUNDS = [("eager", "a2a3"), ("lowered", "a5"), ("lowered", "kirin9030"), ("eager", "kirinx90")]
# Shapes of operands; None is a number.
SHAPES: dict[str, tuple[int, int] | None] = {
    "tile": (ROWS, COLS),
    "column": (ROWS, 1),
    "row": (1, COLS),
    "number": None,
}
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "+": (lambda a, b: a + b, np.add),
    "-": (lambda a, b: a - b, np.subtract),
    "*": (lambda a, b: a * b, np.multiply),
    "/": (lambda a, b: a / b, np.divide),
    "maximum": (maximum, np.maximum),
    "minimum": (minimum, np.minimum),
}
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp": (exp, np.exp),
    "log": (log, np.log),
    "sqrt": (sqrt, np.sqrt),
    "rsqrt": (rsqrt, lambda a: 1 / np.sqrt(a)),
    "recip": (recip, lambda a: 1 / a),
    "relu": (relu, lambda a: np.maximum(a, 0)),
    "abs": (abs, np.abs),
    "-": (operator.neg, np.negative),
}
REDUCTIONS = {
    "rowsum": (rowsum, np.sum, 1),
    "rowmax": (rowmax, np.max, 1),
    "rowmin": (rowmin, np.min, 1),
    "rowprod": (rowprod, np.prod, 1),
    "colsum": (colsum, np.sum, 0),
    "colmax": (colmax, np.max, 0),
    "colmin": (colmin, np.min, 0),
    "colprod": (colprod, np.prod, 0),
}
COMPARISONS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def numbers(shape: tuple[int, ...], seed: int, kind: Any = np.float32) -> Any:
    """Small positive numbers, most of them different."""
    return (np.random.default_rng(seed).integers(1, 40, shape) / 8).astype(kind)


def part(x: Any, shape: tuple[int, int] | None) -> Any:
    """An operand of a shape: a column is a value per row, which a reduction has left."""
    if shape is None:
        return x
    if shape[1] == 1:
        return rowmax(load(x[:, :]))
    return load(x[:, :])


@kernel(mode="auto")
def combined(x: Any, y: Any, out: Any, *, function: Any, first: Any, second: Any) -> None:
    store(out[:, :], function(part(x, first), part(y, second)))


@kernel(mode="auto")
def applied(x: Any, out: Any, *, function: Any) -> None:
    store(out[:, :], function(load(x[:, :])))


def given(shape: tuple[int, int] | None, seed: int, kind: Any) -> tuple[Any, Any]:
    """What the kernel is given for an operand, and what NumPy computes with."""
    if shape is None:
        return 1.5, kind(1.5)
    if shape[1] == 1:
        wide = numbers((shape[0], COLS), seed, kind)
        return wide, wide.max(1, keepdims=True)
    x = numbers(shape, seed, kind)
    return x, x


@pytest.mark.parametrize(("path", "target"), ROUNDS)
@pytest.mark.parametrize("second", SHAPES)
@pytest.mark.parametrize("first", SHAPES)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, first: str, second: str, target: str, path: str) -> None:
    if first == second == "number":
        pytest.skip("numbers are Python's")
    (ours, numpys), kind = BINARY[name], np.float32
    (x, a), (y, b) = given(SHAPES[first], 1, kind), given(SHAPES[second], 2, kind)
    expected = numpys(a, b)
    # One element a row lies in memory as a row does.
    out = np.zeros(expected.shape if expected.shape[1] > 1 else (1, ROWS), kind)
    shapes = {"first": SHAPES[first], "second": SHAPES[second]}
    combined[1](x, y, out, function=ours, **shapes, path=path, target=target)
    assert_tile_equal(out, expected.reshape(out.shape), ulp=1)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str, target: str, path: str) -> None:
    ours, numpys = UNARY[name]
    x = numbers((ROWS, COLS), 3)
    out = np.zeros_like(x)
    applied[1](x, out, function=ours, path=path, target=target)
    assert_tile_equal(out, numpys(x), ulp=2)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, target: str, path: str) -> None:
    ours, numpys, axis = REDUCTIONS[name]
    x = (1 + numbers((ROWS, COLS), 4) / 64).astype(np.float32)
    out = np.zeros((1, ROWS if axis else COLS), np.float32)
    applied[1](x, out, function=ours, path=path, target=target)
    assert_tile_equal(out[0], numpys(x, axis=axis), rtol=2e-6)


@kernel(mode="auto")
def chosen(x: Any, y: Any, out: Any, *, compare: Any, second: Any) -> None:
    a, b = load(x[:, :]), part(y, second)
    store(out[:, :], where(compare(a, b), a, -1.0))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("second", ["tile", "number", "column"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_choose(name: str, second: str, target: str, path: str) -> None:
    x = numbers((ROWS, COLS), 5)
    y, b = given(SHAPES[second], 6, np.float32)
    out = np.zeros_like(x)
    consts = {"compare": COMPARISONS[name], "second": SHAPES[second]}
    chosen[1](x, y, out, **consts, path=path, target=target)
    assert_tile_equal(out, np.where(COMPARISONS[name](x, b), x, np.float32(-1)))


WHOLE = {"&": operator.and_, "|": operator.or_, "^": operator.xor, "+": operator.add}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers(name: str, path: str) -> None:
    x, y = (np.random.default_rng(n).integers(0, 99, (ROWS, COLS), np.int16) for n in (7, 8))
    out = np.zeros_like(x)
    tile = {"first": (ROWS, COLS), "second": (ROWS, COLS)}
    combined[1](x, y, out, function=WHOLE[name], **tile, path=path)
    assert_tile_equal(out, WHOLE[name](x, y))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("to", [float16, int32])
def test_conversions(to: Any, target: str, path: str) -> None:
    x = numbers((ROWS, COLS), 9)
    out = np.zeros((ROWS, COLS), to.np)
    applied[1](x, out, function=lambda a: a.to(to), path=path, target=target)
    assert_tile_equal(out, np.rint(x) if to.is_integer else x)


def test_every_operation_has_an_instruction_of_that_name() -> None:
    from ptokit.isa import INSTRUCTIONS

    assert {*style._MEANT.values(), *style._REDUCED.values()} <= {*INSTRUCTIONS}
