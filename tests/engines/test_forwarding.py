"""Products that read past the copies on their way: the same results and bytes in all memories."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import Kernel
from ptokit.engines.compiled import forwarding, replay
from ptokit.engines.compiled.fusion import Record
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.product import LEFT, PACKS_LEFT, PACKS_RIGHT, Multiply

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

M, K, N = 32, 16, 48
Step = tuple[str, int, int]


def boxed(kind: Any, rows: int, cols: int) -> Any:
    return Tile[TileType.Mat, kind, rows, cols, BLayout.ColMajor, rows, cols, SLayout.RowMajor]


@kernel(mode="auto")
def walk(x: Any, y: Any, *, kind: Any, program: tuple[Step, ...]) -> None:
    """Tiles come and go in any order; what is stored may be loaded again."""
    a, b = [boxed(kind, M, K)() for _ in range(2)], [boxed(kind, K, N)() for _ in range(2)]
    left = [TileLeft[kind, M, K]() for _ in range(2)]
    right = [TileRight[kind, K, N]() for _ in range(2)]
    acc = TileAcc[float32, M, N]()
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    for name, number, place in program:
        if name == "a":
            TLOAD(a[number], gx[place : place + M, place : place + K])
        elif name == "b":
            TLOAD(b[number], gx[place : place + K, place : place + N])
        elif name == "again":
            TLOAD(a[number], gy[place : place + M, place : place + K])
        elif name == "b again":
            TLOAD(b[number], gy[place : place + K, place : place + N])
        elif name == "left":
            TMOV(left[place % 2], a[number])
        elif name == "right":
            TMOV(right[place % 2], b[number])
        elif name == "product":
            TMATMUL(acc, left[number], right[place % 2])
        elif name == "more":
            TMATMUL_ACC(acc, left[number], right[place % 2])
        elif name == "store":
            TSTORE(gy[place : place + M, place : place + N], acc)


START = (
    *(("a", 0, 0), ("a", 1, 8), ("b", 0, 3), ("b", 1, 0)),
    *(("left", 0, 0), ("left", 1, 1), ("right", 1, 0), ("right", 0, 1), ("product", 0, 0)),
)


def some_program(seed: int, kind: Any) -> tuple[Step, ...]:
    rng = random.Random(seed)
    names = ["a", "b", "left", "right", "left", "right", "more", *["product", "store"] * 3]
    names += ["again", "b again"] if kind is float32 else []
    steps = [(rng.choice(names), rng.randrange(2), rng.randrange(16)) for _ in range(24)]
    return *START, *steps, ("store", 0, 0)


def repeating(name: str) -> tuple[Step, ...]:
    """The same product again and again; what is between writes to what the second one reads."""
    factors = ("a", 0, 0), ("left", 0, 0), (name, 0, 0), ("right", 0, 0)
    return *START, *(*factors, ("product", 0, 0), ("store", 0, 0)) * 3


class Left:
    """What two launches leave: their arrays, and the memories of the cores."""

    def __init__(self, kind: Any, program: tuple[Step, ...], columns: int = 64) -> None:
        fresh = Kernel(walk.source)
        for _ in range(2):
            x = np.random.default_rng(1).integers(-3, 4, (64, columns)).astype(kind.np)
            self.y = np.zeros((64, 64), np.float32)
            fresh[1](x, self.y, target="a5", kind=kind, program=program)
        (found,) = [each for each in fresh.programs.memory.replays if each is not None]
        assert isinstance(found, replay.Replay)
        assert not found.bodies
        self.memories = found.contents()
        self.products = [each for each in found.kernels if isinstance(each, Multiply)]


def as_they_are(stretches: Sequence[Sequence[Record]], _: Any) -> list[list[Record]]:
    return [list(calls) for calls in stretches]


@pytest.mark.parametrize("kind", [float32, half], ids=lambda kind: kind.name)
def test_random_programs_leave_the_same_bytes(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shorter, landings, inner = 0, list[Any](), forwarding.landed

    def noted(*args: Any) -> Any:
        landings.append(inner(*args))
        return landings[-1]

    monkeypatch.setattr(forwarding, "landed", noted)
    for seed in range(24):
        program = some_program(seed, kind)
        found = Left(kind, program)
        with monkeypatch.context() as patch:
            patch.setattr(replay, "forwarded", as_they_are)
            wanted = Left(kind, program)
        assert found.y.tobytes() == wanted.y.tobytes(), seed
        assert found.memories == wanted.memories, seed
        shorter += any(each.is_wide for each in found.products)
        assert not any(each.is_wide for each in wanted.products)
    assert shorter > 12
    assert sum(each is not None for each in landings) > 6  # results that skip the accumulator


@pytest.mark.parametrize(("columns", "in_place"), [(1000, True), (1024, False)])
def test_rows_a_page_apart_are_packed(
    columns: int, in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (*START, ("store", 0, 0))
    found = Left(float32, program, columns)
    with monkeypatch.context() as patch:
        patch.setattr(replay, "forwarded", as_they_are)
        wanted = Left(float32, program, columns)
    assert found.y.tobytes() == wanted.y.tobytes()
    assert [each.is_read_in_place for each in found.products] == [in_place]


def test_a_result_that_lies_over_a_factor_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The left rows are read where they lie, from the first panel of the result to the last."""
    stored = ("store", 0, 0), ("again", 0, 0), ("left", 0, 0)
    program = (
        *START,
        *stored,
        ("product", 0, 0),
        ("store", 0, 4),
        ("product", 1, 1),
        ("store", 0, 9),
    )
    found = Left(float32, program)
    with monkeypatch.context() as patch:
        patch.setattr(replay, "forwarded", as_they_are)
        wanted = Left(float32, program)
    assert found.y.tobytes() == wanted.y.tobytes()


@pytest.mark.parametrize("name", ["b", "b again"])
def test_a_factor_that_stays_is_packed_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packed, inner = list[bool](), forwarding.packed_at

    def noted(words: Sequence[int], operand: int, offset: int, is_first: bool) -> list[int]:
        changed = inner(words, operand, offset, is_first)
        packed.append(bool(changed[PACKS_LEFT if operand == LEFT else PACKS_RIGHT]))
        return changed

    monkeypatch.setattr(forwarding, "packed_at", noted)
    found = Left(float32, repeating(name))
    with monkeypatch.context() as patch:
        patch.setattr(replay, "forwarded", as_they_are)
        wanted = Left(float32, repeating(name))
    assert found.y.tobytes() == wanted.y.tobytes()
    assert packed == ([True, False, False, False] if name == "b" else [])


def test_products_that_differ_in_what_they_start_from_are_one_function() -> None:
    """Nor does it make a second one that a factor has been packed already."""
    again = ("product", 0, 0), ("more", 0, 0), ("store", 0, 0)
    found = Left(float32, (*START, *again, *again))
    assert len(found.products) == 1
