"""Kernels in text that load some tiles, compute, and store others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.from_text import Program, loads

# ---- texts -------------------------------------------------------------------------------------


def tile(shape: str, more: str = "") -> str:
    """The type of a vector tile: `tile("16x64xf32")`."""
    return f"!pto.tile_buf<vec, {shape}{more and ', '}{more}>"


def kernel(
    lines: str, loaded: dict[str, str], stored: dict[str, str], target: str = "a5"
) -> Program:
    """A kernel whose arguments are the tiles to load, then those to store, in order.

    Every tile is given by its type; the arrays are as large as what is valid of it.
    """
    made: list[str] = []
    for name, kind in (loaded | stored).items():
        rows, cols, element = sizes(kind)
        view, part = f"!pto.tensor_view<?x?x{element}>", part_of(kind)
        made += [
            f"%{name}_r = arith.constant {rows} : index",
            f"%{name}_w = arith.constant {cols} : index",
            f"%{name}_v = pto.make_tensor_view %{name}_p, shape = [%{name}_r, %{name}_w],"
            f" strides = [%{name}_w, %one] : {view}",
            f"%{name}_g = pto.partition_view %{name}_v, offsets = [%zero, %zero],"
            f" sizes = [%{name}_r, %{name}_w] : {view} -> {part}",
            f"%{name} = pto.alloc_tile : {kind}",
        ]
    made += [
        f"pto.tload ins(%{name}_g : {part_of(kind)}) outs(%{name} : {kind})"
        for name, kind in loaded.items()
    ]
    made.append(lines)
    made += [
        f"pto.tstore ins(%{name} : {kind}) outs(%{name}_g : {part_of(kind)})"
        for name, kind in stored.items()
    ]
    params = ", ".join(
        f"%{name}_p: !pto.ptr<{sizes(kind)[2]}>" for name, kind in (loaded | stored).items()
    )
    body = "\n    ".join(made)
    return loads(
        f"""module attributes {{pto.target_arch = "{target}"}} {{
  func.func @f({params}) attributes {{pto.entry}} {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    {body}
    return
  }}
}}
""",
        "k.pto",
    )


def sizes(kind: str) -> tuple[int, int, str]:
    """What is valid of a tile, and its element type."""
    shape = re.search(r"(\d+)x(\d+)x([!.\w]+)", kind)
    assert shape is not None, kind
    valid = re.search(r"valid=(\d+)x(\d+)", kind) or shape
    return int(valid[1]), int(valid[2]), shape[3]


def part_of(kind: str) -> str:
    rows, cols, element = sizes(kind)
    return f"!pto.partition_tensor_view<{rows}x{cols}x{element}>"


# ---- runs --------------------------------------------------------------------------------------


def ran(made: Program, arrays: Sequence[np.ndarray], engine: str = "fast", **more: Any) -> None:
    """Check a kernel, print it and read it again, and run it."""
    assert not made.check(), made.check()
    assert_fixpoint(made)
    made["f"][1](*arrays, engine=engine, **more)


def assert_fixpoint(made: Program) -> None:
    """What is printed reads back as what prints the same."""
    text = str(made)
    assert str(loads(text)) == text
