"""Tiles as values get buffers: every door finishes the same program, or says the same of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import NotSupported, ProgramError
from ptokit.from_text import Program, loads
from tests.native.support import compiled
from tests.text.random_values import VIEW, program, random_program
from tests.text.test_windows import BOXED, product

X = (np.arange(1024, dtype="f4").reshape(16, 64) % 7) - 3
SEEDS, ROUNDS = range(60), (0, 1, 4)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    texts = [loads(random_program(seed).text).cpp() for seed in SEEDS[::3]]
    return compiled(texts, tmp_path_factory.mktemp("host"))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_values_are_computed_at_every_level(seed: int) -> None:
    made = random_program(seed)
    for form in ("l1", "l2", "l3"):
        kernel = loads(str(loads(made.text, "k.pto").convert(form))).entry()
        for n in ROUNDS:
            z = np.zeros_like(X)
            kernel[1](X.copy(), z, n)
            assert np.array_equal(z, made.computes(X, n)), (form, n)


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_and_in_cpp(seed: int, library: Any) -> None:
    for n in ROUNDS:
        x, z = X.copy(), np.zeros_like(X)
        library[f"f{seed}"][1](x, z, n)
        assert np.array_equal(z, random_program(seed).computes(X, n)), n


# ---- accumulators --------------------------------------------------------------------------------

ACC, LEFT, RIGHT = (
    f"!pto.tile<{loc}, 16x16xf32, {more}>"
    for loc, more in (
        ("acc", "blayout=col_major, slayout=row_major, fractal=1024"),
        ("left", "blayout=row_major, slayout=row_major"),
        ("right", "blayout=row_major, slayout=col_major"),
    )
)
MAT = "!pto.tile<mat, 16x16xf32, blayout=col_major, slayout=row_major>"
PART = "!pto.partition_tensor_view<16x16xf32>"
PRODUCT = f"""  %vw = pto.make_tensor_view %x, shape = [%rows, %rows], strides = [%rows, %k1]
    : !pto.tensor_view<?x?xf32>
  %vo = pto.make_tensor_view %z, shape = [%rows, %rows], strides = [%rows, %k1]
    : !pto.tensor_view<?x?xf32>
  %pw = pto.partition_view %vw, offsets = [%k0, %k0], sizes = [%rows, %rows]
    : !pto.tensor_view<?x?xf32> -> {PART}
  %po = pto.partition_view %vo, offsets = [%k0, %k0], sizes = [%rows, %rows]
    : !pto.tensor_view<?x?xf32> -> {PART}
  %m = pto.tload %pw : {PART} -> {MAT}
  %l = pto.tmov %m : {MAT} -> {LEFT}
  %r = pto.tmov %m : {MAT} -> {RIGHT}
  %c = pto.tmatmul %l, %r : ({LEFT}, {RIGHT}) -> {ACC}
"""
ADD = f"pto.tmatmul.acc %{{}}, %l, %r : ({ACC}, {LEFT}, {RIGHT}) -> {ACC}"
LOOP = f"""  %s = scf.for %i = %k0 to %n step %k1 iter_args(%a = %c) -> ({ACC}) {{
    %next = {ADD.format("a")}
    scf.yield %next : {ACC}
  }}
"""


def store(name: str) -> str:
    return f"  pto.tstore %{name}, %po : ({ACC}, {PART}) -> ()"


def summed(text: str) -> tuple[Program, np.ndarray]:
    made, x, z = loads(program(PRODUCT + text, "f"), "k.pto"), X[:, :16].copy(), np.zeros((16, 16))
    z = z.astype("f4")
    made["f"][1](x, z, 3)
    assert not made.check()
    assert "TMATMUL_ACC" in made.cpp()
    return made, z


@pytest.mark.parametrize(
    ("text", "times"),
    [(f"  %s = {ADD.format('c')}\n" + store("s"), 2), (LOOP + store("s"), 4)],
    ids=["once", "in a loop"],
)
def test_a_product_adds_to_the_accumulator_it_is_given(text: str, times: int) -> None:
    _, z = summed(text)
    product = X[:, :16] @ X[:, :16]
    assert np.array_equal(z, times * product)


@pytest.mark.parametrize("after", ["c", "s"])
def test_an_accumulator_that_is_still_needed_cannot_be_added_to(after: str) -> None:
    text = f"  %t = {ADD.format('c')}\n  %s = {ADD.format('c')}\n"
    made = loads(program(PRODUCT + text + store(after), "f"), "k.pto")
    lines = program(PRODUCT + text, "f").splitlines()
    text_line = next(n for n, line in enumerate(lines, 1) if "%t = " in line)
    for door in (lambda: made["f"][1](X, X.copy(), 3), made.cpp, lambda: made.convert("l3")):
        with pytest.raises(ProgramError) as caught:
            door()
        assert caught.value.codes == ("convert-level",)
        assert caught.value.diagnostics[0].location.line == text_line
    assert [each.code for each in made.check()] == ["convert-level"]


# ---- windows -------------------------------------------------------------------------------------

WINDOWS = {"rows": (4, 0, 8, 64), "columns": (0, 32, 16, 32), "inside": (3, 8, 9, 40)}


def window(name: str, offsets: str) -> str:
    _, _, rows, cols = WINDOWS[name]
    kind = "!pto.tile_buf<vec, 16x64xf32>"
    return f"""  %t = pto.alloc_tile : {kind}
  pto.tload ins(%px : {VIEW}) outs(%t : {kind})
  %s = pto.subset %t[{offsets}] sizes [{rows}, {cols}] : {kind}
"""


def windows(name: str) -> str:
    """A program that negates a window at constant offsets, with another window in it."""
    row, col, rows, cols = WINDOWS[name]
    outer, whole = f"!pto.tile_buf<vec, {rows}x{cols}xf32>", "!pto.tile_buf<vec, 16x64xf32>"
    return (
        f"  %i = arith.constant {row} : index\n  %j = arith.constant {col} : index\n"
        + window(name, "%i, %j")
        + f"""  pto.tneg ins(%s : {outer}) outs(%s : {outer})
  %u = pto.subset %s[%k2, %n] sizes [4, 16] : {outer}
  %v = pto.subset %u[%k0, %k0] sizes [4, 8] : !pto.tile_buf<vec, 4x16xf32, valid=4x?>
  pto.tneg ins(%v : !pto.tile_buf<vec, 4x8xf32, valid=4x?>)
    outs(%v : !pto.tile_buf<vec, 4x8xf32, valid=4x?>)
  pto.tstore ins(%t : {whole}) outs(%pz : {VIEW})"""
    )


def negated(name: str, n: int) -> np.ndarray:
    row, col, rows, cols = WINDOWS[name]
    want = X.copy()
    part = want[row : row + rows, col : col + cols]
    part *= -1
    part[2:6, n : n + 8] *= -1
    return want


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_written_as_cpp(name: str, tmp_path: Path) -> None:
    made = loads(program(windows(name), "f"), "k.pto")
    z = np.zeros_like(X)
    made["f"][1](X.copy(), z, 8)
    assert np.array_equal(z, negated(name, 8))
    x, z = X.copy(), np.zeros_like(X)
    compiled([made.cpp()], tmp_path).f[1](x, z, 8)
    assert np.array_equal(z, negated(name, 8))


def test_a_window_with_gaps_is_not_carried() -> None:
    part = "!pto.tile_buf<vec, 16x32xf32>"
    text = (
        window("columns", "%k0, %k0")
        + f"""  %b = arith.cmpi eq, %n, %k0 : index
  %c = scf.if %b -> ({part}) {{
    scf.yield %s : {part}
  }} else {{
    scf.yield %s : {part}
  }}
  pto.tneg ins(%c : {part}) outs(%c : {part})"""
    )
    with pytest.raises(NotSupported) as caught:
        loads(program(text, "f"), "k.pto").cpp()
    assert "a window with gaps" in caught.value.diagnostics[0].message


def test_other_names_for_storage_are_written_as_cpp(tmp_path: Path) -> None:
    kind, words = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 32x32xf32>"
    text = f"""  %t = pto.alloc_tile : {kind}
  pto.tload ins(%px : {VIEW}) outs(%t : {kind})
  %size = pto.get_tensor_view_dim %vx, %k1 : !pto.tensor_view<?x?xf32> -> index
  %b = arith.cmpi eq, %size, %cols : index
  %u = pto.treshape %t : {kind} -> {words}
  %w = pto.bitcast %u : {words} -> !pto.tile_buf<vec, 16x64xf32>
  scf.if %b {{
    pto.tneg ins(%w : {kind}) outs(%w : {kind})
  }}
  pto.tstore ins(%t : {kind}) outs(%pz : {VIEW})"""
    made = loads(program(text, "f"), "k.pto")
    z = np.zeros_like(X)
    made["f"][1](X.copy(), z, 0)
    assert np.array_equal(z, -X)
    x, z = X.copy(), np.zeros_like(X)
    compiled([made.cpp()], tmp_path).f[1](x, z, 0)
    assert np.array_equal(z, -X)


@pytest.mark.parametrize("layout", BOXED)
def test_a_window_of_boxes_is_bound_to_its_address(layout: str) -> None:
    text = product(layout, (16, 32), (16, 16)).cpp()
    (place,) = re.findall(r"TASSIGN\(s, (.*)\);", text)
    (base,) = re.findall(r"TASSIGN\(t, (.*)\);", text)
    column_of_boxes, row_of_boxes = 32 * 16 * 2, 64 * 16 * 2  # the bytes from one to the next
    inside = 16 * 16 * 2 + column_of_boxes if layout == "NZ" else row_of_boxes + 16 * 16 * 2
    assert eval(place.replace("/", "//")) - int(base, 16) == inside
