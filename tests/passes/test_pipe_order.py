"""Pairs of one pipe that need no barrier, for compiler and checker alike."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError
from ptokit.from_text import Program, loads
from tests.passes.test_finish import HEAD, PARTS, TILE, VIEW, ran

BARRIER = "pto.barrier <PIPE_V>"


def chain(rows: int, *, cols: int = 64, valid: int | None = None, second: str = "tabs") -> Program:
    """A tile is written and read again by the vector unit."""
    size = f"loc=vec, dtype=f32, rows={rows}, cols={cols}, v_row={rows}, v_col={valid or cols}"
    tile = f"!pto.tile_buf<{size}>"
    lines = [
        "  %next = arith.constant 32768 : i64\n  %s = arith.constant -1.0 : f32\n",
        f"  %a = pto.alloc_tile addr = %at : {tile}\n  %b = pto.alloc_tile addr = %next : {tile}\n",
        f"  pto.texpands ins(%s : f32) outs(%a : {tile})\n",
        f"  pto.{second} ins(%a : {tile}) outs(%b : {tile})\n  return\n}}\n",
    ]
    return loads(HEAD + PARTS + "".join(lines))


@pytest.mark.parametrize(
    ("made", "has_barrier"),
    [
        (chain(16), False),  # 16 repeats of 256 bytes
        (chain(15), True),
        (chain(1, cols=1024), False),
        (chain(1, cols=960), True),
        (chain(32, valid=32), True),  # rows with gaps
        (chain(32), False),
    ],
)
def test_a_long_stretch_is_read_behind_its_writer(made: Program, has_barrier: bool) -> None:
    text = str(made.convert("l3", "a2a3", sync="insert"))
    assert (BARRIER in text) == has_barrier
    ran(loads(text)["f"], target="a2a3", sync="keep", rules="strict")
    without = loads(text.replace(f"{BARRIER}\n", "\n"))
    if has_barrier:
        with pytest.raises(ProgramError, match="E8"):
            ran(without["f"], target="a2a3", sync="keep", rules="strict")
    assert BARRIER not in str(made.convert("l3", "a5", sync="insert"))


def test_rounds_of_a_loop_are_not_neighbours() -> None:
    """What the last round wrote is read in the next one, far from where it was written."""
    lines = [
        "  %next = arith.constant 32768 : i64\n  %s = arith.constant 1.0 : f32\n",
        f"  %a = pto.alloc_tile addr = %at : {TILE}\n  %b = pto.alloc_tile addr = %next : {TILE}\n",
        f"  pto.texpands ins(%s : f32) outs(%a : {TILE})\n",
        "  scf.for %i = %c0 to %r step %c1 {\n",
        f"    pto.tabs ins(%a : {TILE}) outs(%b : {TILE})\n",
        f"    pto.texpands ins(%s : f32) outs(%a : {TILE})\n",
        "  }\n  return\n}\n",
    ]
    text = str(loads(HEAD + PARTS + "".join(lines)).convert("l3", "a2a3", sync="insert"))
    inside = text[text.index("scf.for") :]
    assert BARRIER in inside
    ran(loads(text)["f"], target="a2a3", sync="keep", rules="strict")


@pytest.mark.parametrize("on", ["a2a3", "a5"])
def test_loads_over_each_other_land_in_order(on: str) -> None:
    lines = [
        f"  %a = pto.alloc_tile addr = %at : {TILE}\n",
        f"  pto.tload ins(%pz : {VIEW}) outs(%a : {TILE})\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%a : {TILE})\n",
        f"  pto.tstore ins(%a : {TILE}) outs(%pz : {VIEW})\n  return\n}}\n",
    ]
    made = loads(HEAD + PARTS + "".join(lines))
    assert "PIPE_MTE2>\n" not in str(made.convert("l3", on, sync="insert"))
    for seed in (None, *range(8)):
        assert (ran(made["f"], target=on, rules="strict", seed=seed) == -1).all()


def test_scratch_makes_no_stretch() -> None:
    """An instruction with a temporary goes through its source more than once."""
    column = "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=1, blayout=col_major>"
    lines = [
        "  %next = arith.constant 32768 : i64\n  %far = arith.constant 65536 : i64\n",
        f"  %s = arith.constant 1.0 : f32\n  %a = pto.alloc_tile addr = %at : {TILE}\n",
        f"  %t = pto.alloc_tile addr = %next : {TILE}\n",
        f"  %c = pto.alloc_tile addr = %far : {column}\n",
        f"  pto.texpands ins(%s : f32) outs(%a : {TILE})\n",
        f"  pto.trowsum ins(%a, %t : {TILE}, {TILE}) outs(%c : {column})\n  return\n}}\n",
    ]
    text = str(loads(HEAD + PARTS + "".join(lines)).convert("l3", "a2a3", sync="insert"))
    assert BARRIER in text
    with pytest.raises(ProgramError, match="E8"):
        ran(loads(text.replace(f"{BARRIER}\n", "\n"))["f"], target="a2a3", sync="keep")
    assert np.isfinite(ran(loads(text)["f"], target="a2a3", sync="keep")).all()
