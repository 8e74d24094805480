"""Static rules of the types: told under their ids, at the line of the kernel that breaks them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.native.complaints import complaints
from ptokit.native.headers import digest
from tests.native.support import line_of, needs_compiler, source

BROKEN = {
    "Tile<TileType::Vec, float, 0, 64> t;": "SA-0065",
    "Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 17, 64> t;": "SA-0065",
    "Tile<TileType::Vec, float, 16, 7> t;": "SA-0006",
    "Tile<TileType::Mat, half, 16, 24, BLayout::ColMajor, 16, 24, SLayout::RowMajor> t;": "SA-0066",
    "Tile<TileType::Mat, half, 24, 32, BLayout::ColMajor, 24, 32, SLayout::RowMajor> t;": "SA-0067",
    "Tile<TileType::Mat, half, 16, 32, BLayout::ColMajor, 16, 32, SLayout::RowMajor, 64> t;": (
        "SA-0095"
    ),
    "Shape<1, 1, 1, -1, -1> s(5);": "SA-0001",
    "Shape<1, 1, 1, 1, -1> s(5, 6);": "SA-0002",
    "int n = GlobalTensor<float, Shape<1, 1, 1, -1, 4>, Stride<1, 1, 1, 4, 1>>::GetShape<3>();": (
        "SA-0015"
    ),
    "TPipe<0, Direction::DIR_C2V, 512, 0> p(x);": "TPipe.slots",
}


@needs_compiler
@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_rule_is_told_by_its_id(tmp_path: Path, text: str) -> None:
    kernel = f'extern "C" __global__ AICORE void k(__gm__ float* x)\n{{\n    {text}\n}}\n'
    with pytest.raises(PtoError) as raised:
        source(tmp_path, kernel).k[1](np.zeros(8, np.float32))
    found = raised.value.diagnostics[0]
    assert found.code == BROKEN[text]
    assert found.location is not None
    assert found.location.line == line_of(kernel, text)


def test_lines_of_other_compilers_are_understood() -> None:
    ours = f"/cache/include-{digest()}/ptokit/tile.hpp"
    said = f"""{ours}:9:5: error: static assertion failed due to requirement 'x': SA-0065: a rule
k.cpp:3:7: note: in instantiation of template class 'Tile<1>' requested here
k.cpp:8:2: error: no such name
"""
    assert [(d.code, d.message, d.location and d.location.line) for d in complaints(said)] == [
        ("SA-0065", "a rule", 3),
        ("cpp", "no such name", 8),
    ]
