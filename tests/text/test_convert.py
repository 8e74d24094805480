"""Conversion between the levels: expected lines, equal results, and clear refusals."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError
from ptokit.from_text import Program, load, loads
from ptokit.passes.levels import LEVELS, level_of

HERE = Path(__file__).parent
SIMPLE = HERE / "convert" / "simple.pto"
VIEW = "!pto.partition_tensor_view<16x64xf32>"
TILE = "!pto.tile_buf<vec, 16x64xf32>"
WIDE = "!pto.tile_buf<vec, 8x128xf32>"


def expectations() -> list[tuple[str, list[str]]]:
    parts = re.split(r"(?m)^// to (\w+)\n", SIMPLE.read_text("utf-8"))
    return [
        (level, re.findall(r"(?m)^//\| (.*)$", lines))
        for level, lines in zip(parts[1::2], parts[2::2], strict=True)
    ]


@pytest.mark.parametrize(("level", "wanted"), expectations(), ids=lambda x: str(x)[:5])
def test_lines_of_each_level(level: str, wanted: list[str]) -> None:
    lines = [line.strip() for line in str(load(SIMPLE).convert(level)).splitlines()]
    at = [lines.index(line) for line in wanted]
    assert at == sorted(at)


def run(program: Program) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((16, 64)).astype("f4")
    z = np.zeros_like(x)
    program.entry()[1](x, z)
    assert np.array_equal(z, x + x * x)
    return z


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_computes_the_same(level: str) -> None:
    converted = load(SIMPLE).convert(level)
    assert level_of(converted.module) == level
    run(loads(str(converted), "simple.pto"))


@pytest.mark.parametrize("first", LEVELS)
@pytest.mark.parametrize("second", LEVELS)
def test_conversions_compose(first: str, second: str) -> None:
    there = load(SIMPLE).convert(first).convert(second)
    assert level_of(there.module) == second
    run(loads(str(there), "simple.pto"))


PARAMS = f"%px: {VIEW}, %pz: {VIEW}, %c: i1, %n: index, %p: !pto.pipe"


def body(lines: str, params: str = PARAMS) -> Program:
    return loads(f"func.func @f({params}) {{\n{lines}\n  return\n}}\n", "k.pto")


REFUSALS = {
    "written in a branch": (
        f"""  %t = pto.alloc_tile : {TILE}
  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
  scf.if %c {{
    pto.tabs ins(%t : {TILE}) outs(%t : {TILE})
  }}
  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})""",
        "pto.tstore: which value of %t is read depends on the path taken",
        7,
    ),
    "carried by a loop": (
        f"""  %t = pto.alloc_tile : {TILE}
  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
  scf.for %i = %n to %n step %n {{
    pto.tabs ins(%t : {TILE}) outs(%t : {TILE})
  }}""",
        "pto.tabs: which value of %t is read depends on the path taken",
        5,
    ),
    "read before written": (
        f"""  %t = pto.alloc_tile : {TILE}
  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})""",
        "pto.tstore: %t is read before anything is written to it",
        3,
    ),
    "written under another name": (
        f"""  %t = pto.alloc_tile : {TILE}
  %w = pto.alloc_tile : !pto.tile_buf<vec, 8x128xf32>
  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
  pto.treshape ins(%t : {TILE}) outs(%w : !pto.tile_buf<vec, 8x128xf32>)
  pto.tneg ins(%w : !pto.tile_buf<vec, 8x128xf32>) outs(%w : !pto.tile_buf<vec, 8x128xf32>)
  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})""",
        "pto.tstore: the bytes of %t were written under another name",
        7,
    ),
    "its source was written afterwards": (
        f"""  %t = pto.alloc_tile : {TILE}
  %w = pto.alloc_tile : {WIDE}
  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
  pto.treshape ins(%t : {TILE}) outs(%w : {WIDE})
  pto.tneg ins(%t : {TILE}) outs(%t : {TILE})
  pto.tneg ins(%w : {WIDE}) outs(%w : {WIDE})""",
        "pto.tneg: the bytes of %w were written under another name",
        7,
    ),
    "written under another name in a branch": (
        f"""  %t = pto.alloc_tile : {TILE}
  %w = pto.alloc_tile : {WIDE}
  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
  pto.treshape ins(%t : {TILE}) outs(%w : {WIDE})
  scf.if %c {{
    pto.tneg ins(%w : {WIDE}) outs(%w : {WIDE})
  }}
  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})""",
        "pto.tstore: which value of %t is read depends on the path taken",
        9,
    ),
    "filled by a FIFO": (
        f"""  %t = pto.alloc_tile : {TILE}
  pto.tpop(%t, %p : {TILE}, !pto.pipe) {{split = 0}}
  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})""",
        "pto.tpop: it fills %t; values are results",
        3,
    ),
    "run-time valid size": (
        "  %t = pto.alloc_tile valid_row = %n valid_col = %n "
        ": !pto.tile_buf<vec, 16x64xf32, valid=?x?>",
        "pto.alloc_tile: Level 1 has no valid_row",
        2,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_the_operation_and_its_line(name: str) -> None:
    lines, message, line = REFUSALS[name]
    with pytest.raises(ProgramError) as caught:
        body(lines).convert("l1")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == message
    assert diagnostic.location is not None
    assert diagnostic.location.line == line


def test_a_loop_carried_value_stays_correct_when_the_old_one_is_still_needed() -> None:
    """Each round reads the old value after the new one was made: one buffer must not serve both."""
    x = np.random.default_rng(1).uniform(0.5, 1.5, (16, 64)).astype("f4")
    want, value = np.zeros_like(x), x.copy()
    for _ in range(3):
        new = value * value
        want, value = new - value, new
    got = np.zeros_like(x)
    load(HERE / "convert" / "loop.pto").convert("l2").entry()[1](x, got, 3)
    assert np.array_equal(got, want)


def test_a_function_without_a_body_stays_without() -> None:
    level1 = load(SIMPLE).convert("l1")
    declared = loads(f"func.func private @elsewhere(index)\n{level1}", "k.pto").convert("sync")
    elsewhere, add = declared.module.functions
    assert elsewhere.body is None
    assert level_of(declared.module) == "sync"
    assert add.body is not None
