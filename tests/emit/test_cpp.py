"""PTO C++ from IR, compared with expected files.

After a change that is meant, `pytest tests/emit --update-golden` writes them anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import Kernel, PtoError
from ptokit.base.dtypes import dtype
from ptokit.base.enums import TileType
from ptokit.base.tiles import TileSpec
from ptokit.driver import loads
from ptokit.emit.cpp import emit_cpp
from ptokit.emit.spelling import brackets
from ptokit.ir.types import TileBufType
from ptokit.isa import INSTRUCTIONS
from tests.emit import kernels as k

GOLDEN = Path(__file__).parent / "golden"
X = np.zeros((64, 64), np.float32)
BLOCK = X[:16]
HALF = X.astype(np.float16)

SOURCES: list[tuple[Kernel, tuple[Any, ...], str]] = [
    (k.add, (BLOCK, BLOCK, BLOCK), "a2a3"),
    (k.control, (X, X, BLOCK, 3), "a2a3"),
    (k.brackets, (X, X, X, 3), "a5"),
    (k.product, (HALF, HALF, X), "a5"),
    (k.convolution, (HALF, X, 4, 0.5), "a5"),
]


@pytest.mark.parametrize(
    ("kernel", "args", "target"), SOURCES, ids=lambda v: getattr(v, "name", "")
)
def test_kernels_are_written_as_expected(
    kernel: Kernel, args: tuple[Any, ...], target: str, pytestconfig: pytest.Config
) -> None:
    source = kernel.cpp(*args, target=target)
    path = GOLDEN / f"{kernel.name}.cpp"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(source)
    assert source == path.read_text()


def test_what_cpp_cannot_say_is_refused() -> None:
    move = INSTRUCTIONS["TMOV"]
    assert brackets(move, {"dst", "src"}, {"grp_axis": 0}) is None
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
        emit_cpp(loads(text).module)
