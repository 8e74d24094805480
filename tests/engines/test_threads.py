"""Blocks repeated by several threads: the same bytes, and only where nothing forbids it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import Kernel
from ptokit.engines.compiled import replay
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.library import library

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

ROWS, COLS = 16, 64
Block = Tile[TileType.Vec, float32, ROWS, COLS]


@kernel(mode="auto")
def apart(x: Any, y: Any) -> None:
    """Every block has rows of its own."""
    row = get_block_idx() * ROWS
    t = Block()
    TLOAD(t, GlobalTensor(x)[row : row + ROWS, :])
    TEXP(t, t)
    TADDS(t, t, 1.0)
    TSTORE(GlobalTensor(y)[row : row + ROWS, :], t)


@kernel(mode="auto")
def summed(x: Any, y: Any) -> None:
    """All blocks add to the same rows: a sum of floats depends on its order."""
    row = get_block_idx() * ROWS
    t = Block()
    TLOAD(t, GlobalTensor(x)[row : row + ROWS, :])
    TSTORE[AtomicType.AtomicAdd](GlobalTensor(y)[0:ROWS, :], t)


@kernel(mode="manual", core="vector")
def met(x: Any, y: Any) -> None:
    """Each block reads what another one has written, after all have met."""
    block, blocks = get_block_idx(), get_block_num()
    row, other = block * ROWS, (block + 1) % blocks * ROWS
    t = Block()
    TASSIGN(t, 0)
    if get_subblockid() == 0:
        TLOAD(t, GlobalTensor(x)[row : row + ROWS, :])
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(y)[row : row + ROWS, :], t)
        pipe_barrier(PIPE_ALL)
    SYNCALL()
    if get_subblockid() == 0:
        TLOAD(t, GlobalTensor(y)[other : other + ROWS, :])
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(x)[row : row + ROWS, :], t)


def arrays(blocks: int) -> tuple[Any, Any]:
    x = np.random.default_rng(1).standard_normal((blocks * ROWS, COLS)).astype(np.float32)
    return x, np.zeros_like(x)


def threads_of(
    launched: Kernel,
    blocks: int,
    jobs: int,
    monkeypatch: Any,
    gated: bool = False,
    path: str = "lowered",
) -> int:
    """In how many threads the library was called by the third launch, which leaves equal bytes."""
    wanted = arrays(blocks)
    launched[blocks](*wanted, path=path, engine="stepwise")
    seen: set[int] = set()
    of_library = library()
    assert of_library is not None
    inner, gate = of_library.run, threading.Barrier(jobs)

    def noted(*args: Any) -> None:
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            if is_gated:
                gate.wait(10)  # until as many threads are at it as there should be
        inner(*args)

    for launch in range(3):
        given = arrays(blocks)
        is_gated = launch == 2 and gated
        seen.clear()
        with monkeypatch.context() as patch:
            patch.setattr(of_library, "run", noted)
            launched[blocks](*given, path=path, jobs=jobs)
        for a, b in zip(given, wanted, strict=True):
            assert np.array_equal(a, b)
    return len(seen)


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_blocks_are_shared_among_threads(
    jobs: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert threads_of(apart, 7, jobs, monkeypatch, gated=True, path=path) == jobs


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_sums_keep_their_order(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads_of(summed, 5, 3, monkeypatch, path=path) == 1


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_blocks_that_meet_stay_together(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads_of(met, 4, 2, monkeypatch, path=path) <= 1


def test_without_a_device_nobody_proves_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The permissive profile has no order to break: blocks may write the same bytes there."""
    inner, seen = library(), set[int]()
    assert inner is not None
    run = inner.run

    def noted(*args: Any) -> None:
        seen.add(threading.get_ident())
        run(*args)

    monkeypatch.setattr(inner, "run", noted)
    for _ in range(3):
        apart[4](*arrays(4), target="cpu", jobs=4)
    assert len(seen) == 1


def test_without_a_verdict_there_is_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that nobody has checked may write the same bytes."""

    @kernel(mode="auto")
    def same(x: Any, y: Any) -> None:
        t = Block()
        TEXPANDS(t, 1.0 + get_block_idx())
        TSTORE(GlobalTensor(y)[0:ROWS, :], t)

    found = library()
    assert found is not None
    inner, seen = found.run, set[int]()

    def noted(*args: Any) -> None:
        seen.add(threading.get_ident())
        inner(*args)

    monkeypatch.setattr(found, "run", noted)
    for _ in range(3):
        x, y = arrays(4)
        same[4](x, y, path="lowered", check=False, jobs=4)
        assert (y[:ROWS] == 4.0).all()
    assert len(seen) == 1


def test_bodies_keep_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run on the machine, of which there is one, whatever the blocks touch."""
    inner = replay.natives

    def without_exponents(call: Any, *args: Any) -> Any:
        if call.insn.name == "TEXP":
            raise Unsupported("for this test")
        return inner(call, *args)

    monkeypatch.setattr(replay, "natives", without_exponents)
    alone = Kernel(apart.source)
    assert threads_of(alone, 7, 3, monkeypatch) == 1
    (found,) = alone.programs.memory.replays
    assert found is not None
    assert set(found.bodies) == {"TEXP"}


def test_what_adds_to_global_memory_is_compiled() -> None:
    summing = Kernel(summed.source)
    summing[5](*arrays(5), path="lowered")
    (found,) = summing.programs.memory.replays
    assert found is not None
    assert not found.bodies
