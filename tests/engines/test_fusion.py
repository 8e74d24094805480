"""Chains of loops: the bytes of the calls they are made of, whatever overlaps whatever."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import Kernel, PtoWarning
from ptokit.engines.compiled import fusion
from ptokit.engines.compiled.fusion import Chain, Reduced
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.replay import Replay

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

SIZE = 4096  # bytes of the memory that random programs work on
Whole = Tile[TileType.Vec, float32, 16, 64]
KINDS = {
    "f32": Tile[TileType.Vec, float32, 8, 16],
    "row": Tile[TileType.Vec, float32, 1, 128],
    "part": Tile[TileType.Vec, float32, 8, 16, BLayout.RowMajor, 5, 11],
    "i32": Tile[TileType.Vec, int32, 8, 16],
    "f16": Tile[TileType.Vec, float16, 8, 16],
    "column": Tile[TileType.Vec, float32, 8, 1, BLayout.ColMajor],
}
Line = tuple[str, str, tuple[tuple[str, int], ...]]


@kernel(mode="manual")
def walk(x: Any, y: Any, *, program: tuple[Line, ...]) -> None:
    """Fill the memory, run a program over tiles at any address, store the memory."""
    whole = Whole()
    TASSIGN(whole, 0)
    TLOAD(whole, GlobalTensor(x))
    for name, _, operands in program:
        tiles = [KINDS[kind]() for kind, _ in operands]
        for tile, (_, address) in zip(tiles, operands, strict=True):
            TASSIGN(tile, address)
        if name == "TADD":
            TADD(tiles[0], tiles[1], tiles[2])
        elif name == "TMAX":
            TMAX(tiles[0], tiles[1], tiles[2])
        elif name == "TMULS":
            TMULS(tiles[0], tiles[1], 2)
        elif name == "TEXPANDS":
            TEXPANDS(tiles[0], 3)
        elif name == "TCVT":
            TCVT(tiles[0], tiles[1], RoundMode.CAST_RINT)
        elif name == "TROWEXPANDMUL":
            TROWEXPANDMUL(tiles[0], tiles[1], tiles[2])
    TSTORE(GlobalTensor(y), whole)


def some_program(seed: int) -> tuple[Line, ...]:
    """Instructions on tiles that are often the same, and sometimes overlap."""
    rng = random.Random(seed)
    places = [rng.randrange(0, (SIZE - 512) // 32) * 32 for _ in range(4)]
    places.append(places[0] + rng.choice((32, 64, 256)))
    lines: list[Line] = []
    for _ in range(12):
        name = rng.choice(("TADD", "TADD", "TMAX", "TMULS", "TMULS", "TEXPANDS", "TCVT",
                           "TROWEXPANDMUL"))  # fmt: skip
        kind = rng.choice(("f32", "f32", "f32", "row", "part"))
        kinds = {
            "TADD": (kind,) * 3,
            "TMAX": (kind,) * 3,
            "TMULS": (kind,) * 2,
            "TEXPANDS": (kind,),
            "TCVT": rng.choice((("f16", "f32"), ("f32", "f16"), ("i32", "f32"), ("f32", "i32"))),
            "TROWEXPANDMUL": ("f32", "f32", "column"),
        }[name]
        lines.append((name, "", tuple((k, min(rng.choice(places), SIZE - 512)) for k in kinds)))
    return tuple(lines)


Rows = Tile[TileType.Vec, float32, 8, 64]
Column = Tile[TileType.Vec, float32, 8, 1, BLayout.ColMajor]
Area = Tile[TileType.Vec, float32, 32, 64]


@kernel(mode="manual")
def reducing(x: Any, y: Any, *, program: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
    """The same with rows that are reduced, and columns anywhere."""
    whole, scratch = Area(), Rows()
    TASSIGN(whole, 0)
    TASSIGN(scratch, 8192)
    TLOAD(whole, GlobalTensor(x))
    for name, places in program:
        a, b, column = Rows(), Rows(), Column()
        for tile, place in zip((a, b, column), places, strict=True):
            TASSIGN(tile, place)
        if name == "TMULS":
            TMULS(a, b, 0.5)
        elif name == "TADD":
            TADD(a, a, b)
        elif name == "TROWEXPANDSUB":
            TROWEXPANDSUB(a, b, column)
        elif name == "TEXP":
            TEXP(a, b)
        elif name == "TROWSUM":
            TROWSUM(column, a, scratch)
        elif name == "TROWMAX":
            TROWMAX(column, a, scratch)
        elif name == "TROWMIN":
            TROWMIN(column, b, scratch)
        elif name == "TMULS of a column":
            line = Tile[TileType.Vec, float32, 1, 8]()
            TASSIGN(line, places[2])
            TMULS(line, line, 0.25)
    TSTORE(GlobalTensor(y), whole)


def reducing_program(seed: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    rng = random.Random(seed)
    names = ("TMULS", "TADD", "TROWEXPANDSUB", "TEXP", "TROWSUM", "TROWMAX", "TROWMIN",
             "TMULS of a column")  # fmt: skip
    tiles = [0, 2048, rng.choice((0, 2048, 4096 - 32, 1024))]
    columns = [6144, 6144 + 32, rng.choice((6144 + 64, 2048 + 256, 4096))]
    chosen = (rng.choice(names) for _ in range(14))
    return tuple(
        (name, (rng.choice(tiles), rng.choice(tiles), rng.choice(columns))) for name in chosen
    )


def test_rows_that_are_reduced_on_the_way() -> None:
    met, zero = Counter[str](), np.float32(0)
    for seed in range(60):
        fresh, program = Kernel(reducing.source), reducing_program(seed)
        how: dict[str, Any] = {"target": "a5", "check": False, "program": program}
        x = np.random.default_rng(seed).standard_normal((32, 64)).astype(np.float32)
        x[seed % 32] = np.where(np.arange(64) % 3, zero, -zero)  # the first zero is the extreme
        x[seed % 7, 0] = np.nan
        wanted = np.zeros_like(x)
        try:
            with warnings.catch_warnings(action="ignore", category=PtoWarning):
                fresh[1](x, wanted, engine="stepwise", **how)
                for _ in range(2):
                    y = np.zeros_like(x)
                    fresh[1](x, y, **how)
        except ProgramError:  # what overlaps is undefined for some instructions
            continue
        assert y.tobytes() == wanted.tobytes(), seed
        for chain in chains(fresh):
            met.update(type(s.kernel).__name__ for s in chain.steps if isinstance(s, Reduced))
    assert min(met["Extreme"], met["RegisterSum"]) > 10


def arrays() -> tuple[Any, Any]:
    x = np.random.default_rng(5).standard_normal((16, 64)).astype(np.float32) * 4
    return x, np.zeros_like(x)


def chains(kernel: Kernel) -> list[Chain]:
    found: list[Any] = [each for each in kernel.programs.memory.replays if each is not None]
    return [each for replay in found for each in replay.kernels if isinstance(each, Chain)]


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "_OFTEN", 1)


def test_random_programs_leave_the_same_bytes() -> None:
    met = 0
    for seed in range(100):
        fresh, program = Kernel(walk.source), some_program(seed)
        how: dict[str, Any] = {"target": "cpu", "check": False, "program": program}
        x, wanted = arrays()
        try:
            fresh[1](x, wanted, engine="stepwise", **how)
        except ProgramError:  # what overlaps is undefined for some instructions
            continue
        for _ in range(2):
            x, y = arrays()
            fresh[1](x, y, **how)
            assert y.tobytes() == wanted.tobytes(), seed
        met += bool(chains(fresh))
    assert met > 10


@kernel(mode="auto")
def shifted(x: Any, y: Any) -> None:
    t = Tile[TileType.Vec, float32, 1, 128]()
    TLOAD(t, GlobalTensor(x))
    TADDS(t, t, 1.0)
    TSTORE(GlobalTensor(y), t)


@kernel(mode="auto")
def turned(y: Any, x: Any) -> None:
    t = Tile[TileType.Vec, float32, 1, 128]()
    TLOAD(t, GlobalTensor(x))
    TADDS(t, t, 1.0)
    TSTORE(GlobalTensor(y), t)


@pytest.mark.parametrize("by", [0, 1, 16, 64, 128])
@pytest.mark.parametrize("launched", [shifted, turned], ids=lambda k: k.name)
def test_arrays_that_are_parts_of_one(by: int, launched: Kernel) -> None:
    """A store may land on what a later vector would load."""
    fresh = Kernel(launched.source)
    for engine in ("stepwise", "fast", "fast"):
        memory = np.arange(256, dtype=np.float32)
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            parts = memory[None, :128], memory[None, by : by + 128]
            fresh[1](*(parts if launched is shifted else parts[::-1]), engine=engine)
        assert np.array_equal(memory[by : by + 128], np.arange(128) + 1), engine
    (chain,) = chains(fresh)
    assert len(chain.steps) == (3 if by in (0, 128) else 2)


def test_a_chain_that_is_rare_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "_OFTEN", 2)
    fresh = Kernel(shifted.source)
    for _ in range(2):
        fresh[1](*(np.zeros((1, 128), np.float32) for _ in range(2)))
    assert not chains(fresh)
    assert all(isinstance(each, Replay) for each in fresh.programs.memory.replays)
