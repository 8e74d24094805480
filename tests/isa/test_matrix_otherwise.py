"""Matrix products whose tiles do not agree: valid sizes decide, each tile lies as it is declared.

The memories are full of small numbers; an element of a tile is found by the formula of its layout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.dtypes import dtype
from ptokit.base.layout import Array
from ptokit.frontend.session import current
from ptokit.machine.faults import OutOfBounds
from tests.isa.raw import tile, warned

BY_ROWS = ("a2a3", "kirinx90")  # boxes of the left operand; the others have columns of boxes
ACC = {"a2a3": "f32", "a5": "f32", "kirin9030": "f16", "kirinx90": "f16"}


def small_numbers(loc: TileType, kind: str) -> Array:
    """A memory full of small numbers, all of them defined, and its elements."""
    memory = current().core.memory(loc)
    elements = memory.data.view(dtype(kind).np)
    elements[:] = np.random.default_rng(int(loc)).integers(-2, 3, elements.size)
    memory.shadow[:] = 1
    return elements


def left(target: str, rows: int, cols: int, r: Any, c: Any, c0: int = 16) -> Any:
    if rows == 1:
        return c
    if target in BY_ROWS:
        return r // 16 * 16 * cols + c // c0 * 16 * c0 + r % 16 * c0 + c % c0
    return c // c0 * rows * c0 + r * c0 + c % c0


def right(cols: int, r: Any, c: Any, c0: int = 16) -> Any:
    return r // c0 * c0 * cols + c * c0 + r % c0


def acc(rows: int, r: Any, c: Any) -> Any:
    return c // 16 * rows * 16 + r * 16 + c % 16


SHAPES = [
    # a, b and c as declared; m and k of a, k and n of b
    ((32, 48), (48, 32), (32, 32), (20, 33), (33, 27)),
    ((32, 48), (64, 32), (48, 64), (20, 33), (33, 27)),
    ((32, 64), (48, 48), (16, 32), (16, 40), (10, 20)),
    ((48, 32), (16, 48), (64, 48), (40, 30), (16, 48)),
]


@pytest.mark.parametrize("target", ACC)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("start", ["", "_ACC", "_BIAS"])
def test_valid_sizes_decide(target: str, shapes: Any, start: str) -> None:
    """k is that of the left operand: rows past the right one take part with what they hold."""
    a_size, b_size, c_size, (m, k), (other_k, n) = shapes
    kind = ACC[target]
    with device(target):
        a, b = small_numbers(TileType.Left, "f16"), small_numbers(TileType.Right, "f16")
        c, bias = small_numbers(TileType.Acc, kind), small_numbers(TileType.Bias, kind)
        rows, inner, cols = np.arange(m), np.arange(k), np.arange(n)
        x = a[left(target, *a_size, rows[:, None], inner)].astype(np.float64)
        y = b[right(b_size[1], inner[:, None], cols)].astype(np.float64)
        places = acc(c_size[0], rows[:, None], cols)
        expected = x @ y
        if start == "_ACC":
            expected += c[places]
        if start == "_BIAS":
            expected += bias[:n]
        operands: list[Any] = [
            tile(f"Acc {kind} {c_size[0]}x{c_size[1]}", 0),
            tile(f"Left f16 {a_size[0]}x{a_size[1]}", 0, (m, k)),
            tile(f"Right f16 {b_size[0]}x{b_size[1]}", 0, (other_k, n)),
        ]
        if start == "_ACC":  # another accumulator is not looked at
            operands.insert(1, tile(f"Acc {kind} {c_size[0]}x{c_size[1]}", 32768))
        if start == "_BIAS":
            operands.append(tile(f"Bias {kind} 1x16", 0))
        globals()[f"TMATMUL{start}"](*operands)
        assert (c[places] == expected.astype(dtype(kind).np)).all()


@pytest.mark.parametrize("target", ACC)
@pytest.mark.parametrize("start", ["", "_ACC", "_BIAS"])
def test_rows_of_the_right_operand_decide_for_a_vector(target: str, start: str) -> None:
    kind = ACC[target]
    with device(target) as machine:
        a, b = small_numbers(TileType.Left, "f16"), small_numbers(TileType.Right, "f16")
        c, bias = small_numbers(TileType.Acc, kind), small_numbers(TileType.Bias, kind)
        inner, cols = np.arange(40), np.arange(30)
        expected = a[:40].astype(np.float64) @ b[right(48, inner[:, None], cols)]
        places = acc(16, 0, cols)
        expected += c[places] if start == "_ACC" else bias[:30] if start == "_BIAS" else 0
        operands: list[Any] = [
            tile(f"Acc {kind} 16x32", 0),
            tile("Left f16 1x256", 0, (1, 50)),
            tile("Right f16 48x48", 0, (40, 30)),
        ]
        if start == "_ACC":
            operands.insert(1, tile(f"Acc {kind} 16x32", 4096))
        if start == "_BIAS":
            operands.append(tile(f"Bias {kind} 1x32", 0))
        globals()[f"TGEMV{start}"](*operands)
        assert (c[places] == expected.astype(dtype(kind).np)).all()
        assert f"TGEMV{start}.same-k" in warned(machine)


def test_what_is_touched_has_to_fit() -> None:
    """A compact tile that is declared twice as large as its memory holds its valid part."""
    with device("a2a3"):
        a, b = small_numbers(TileType.Left, "f32"), small_numbers(TileType.Right, "f32")
        c = small_numbers(TileType.Acc, "f32")
        inner, cols = np.arange(22), np.arange(215)
        y = b[right(224, inner[:, None], cols, 8)]
        x = a[left("a2a3", 16, 32, np.arange(16)[:, None], inner, 8)]
        operands = (
            tile("Acc f32 16x256", 0),
            tile("Left f32 16x32", 0, (16, 22)),
            tile("Right f32 128x256 compact Normal", 0, (22, 215)),
        )
        TMATMUL(*operands)
        assert (c[acc(16, np.arange(16)[:, None], cols)] == x @ y).all()
        plain = tile("Right f32 128x256", 0, (127, 256))
        with pytest.raises(ProgramError, match="fits"):
            TMATMUL(operands[0], tile("Left f32 16x128", 0), plain)
        with pytest.raises(OutOfBounds):
            TMATMUL(*operands[:2], tile("Right f32 128x256 compact Normal", 65536 - 64, (22, 215)))


def test_scales_are_bytes_whatever_they_are_called() -> None:
    results: list[Array] = []
    for kind in ("f8e8m0", "u8", "f8e5m2"):
        with device("a5") as machine:
            for loc in (TileType.Left, TileType.Right, TileType.Acc):
                small_numbers(loc, "i8" if loc != TileType.Acc else "f32")
            for loc in (TileType.ScaleLeft, TileType.ScaleRight):
                memory = current().core.memory(loc)
                memory.data[:] = np.random.default_rng(int(loc)).integers(120, 132, memory.nbytes)
                memory.shadow[:] = 1
            result = tile("Acc f32 16x64", 0)
            TMATMUL_MX(
                result,
                tile("Left f8e5m2 16x64", 0),
                tile(f"ScaleLeft {kind} 16x2", 0),
                tile("Right f8e5m2 64x64", 0),
                tile(f"ScaleRight {kind} 2x64", 0),
            )
            results.append(result.numpy())
            assert warned(machine) == (set() if kind == "f8e8m0" else {"TMATMUL_MX.scale-type"})
    assert np.array_equal(results[0], results[1], equal_nan=True)
    assert np.array_equal(results[0], results[2], equal_nan=True)
