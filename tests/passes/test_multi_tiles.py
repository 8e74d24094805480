"""A run-time choice among tiles: a loop stays a loop, on every level of the text and in C++."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit import Kernel, PtoError

X = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
Row = Tile[TileType.Vec, float32, 1, 32]


def _doubled(x, y, n, count):
    tiles = [Row() for _ in range(count)]
    for i in range(n):
        t = tiles[i % count]
        TLOAD(t, GlobalTensor(x)[i : i + 1, :])
        TADD(t, t, t)
        TSTORE(GlobalTensor(y)[i : i + 1, :], t)


@kernel(mode="auto")
def pipelined(x, y, n, *, count):
    _doubled(x, y, n, count)


@kernel(mode="auto")
def of_known_length(x, y, *, rounds):
    tiles = [Row(), Row()]
    for i in range(rounds):
        TLOAD(tiles[i % 2], GlobalTensor(x)[i % 16 : i % 16 + 1, :])
        TSTORE(GlobalTensor(y)[i % 16 : i % 16 + 1, :], tiles[i % 2])


@kernel(mode="auto")
def carried(x, y, n, *, count):
    """What one round loads the next one stores: the tiles of the list are kept between rounds."""
    tiles = [Row() for _ in range(count)]
    last = tiles[0]
    TLOAD(last, GlobalTensor(x)[0:1, :])
    for i in range(1, n):
        TSTORE(GlobalTensor(y)[i - 1 : i, :], last)
        last = tiles[i % count]
        TLOAD(last, GlobalTensor(x)[i : i + 1, :])
    TSTORE(GlobalTensor(y)[15:16, :], last)


@kernel
def by_hand(x, y, n):
    """Tiles at addresses of the author's: a switch chooses."""
    tiles = [Row(), Row()]
    TASSIGN(tiles[0], 0x0)
    TASSIGN(tiles[1], 0x800)
    for i in range(n):
        TLOAD(tiles[i % 2], GlobalTensor(x)[i : i + 1, :])
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(y)[i : i + 1, :], tiles[i % 2])
        pipe_barrier(PIPE_ALL)


def results(made: Kernel, *args: object, **consts: object) -> list[np.ndarray]:
    """What a kernel writes as it stands, lowered, under the reference engine and from texts."""
    found = []
    texts = [loads(made.text(X, X, *args, form=form, **consts)).entry() for form in ("l2", "l3")]
    for program, options in [
        (made, {**consts}),
        (made, {"path": "lowered", **consts}),
        (made, {"path": "lowered", "engine": "reference", **consts}),
        *((text, {}) for text in texts),
    ]:
        y = np.zeros_like(X)
        program[1](X, y, *args, **options)
        found.append(y)
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 5, 16])
@pytest.mark.parametrize("count", [2, 3, 16])
@pytest.mark.parametrize("made", [pipelined, carried], ids=lambda k: k.name)
def test_every_path_chooses_the_same_tile(made: Kernel, count: int, n: int) -> None:
    first, *others = results(made, n, count=count)
    assert all(np.array_equal(first, each) for each in others)
    if made is pipelined:
        assert np.array_equal(first[:n], X[:n] * 2)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_tiles_with_addresses_are_chosen_by_a_switch(n: int) -> None:
    for path in ("eager", "lowered"):
        y = np.zeros_like(X)
        by_hand[1](X, y, n, path=path)
        assert np.array_equal(y[:n], X[:n])
    assert "scf.index_switch" in by_hand.text(X, X, 1)
    assert "switch (" in by_hand.cpp(X, X, 1)


def test_a_loop_of_known_length_stays_a_loop() -> None:
    sizes = {len(of_known_length.text(X, X, rounds=n).splitlines()) for n in (4, 512, 4096)}
    assert len(sizes) == 1
    assert sizes.pop() < 50
    y = np.zeros_like(X)
    of_known_length[1](X, y, rounds=16, path="lowered")
    assert np.array_equal(y, X)


def test_the_slots_lie_side_by_side() -> None:
    text = pipelined.text(X, X, 1, count=3)
    assert "pto.alloc_multi_tile addr" in text
    assert "count=3" in text
    assert "pto.multi_tile_get" in text
    tiles = pipelined.memory_map(X, X, 1, count=3).tiles
    assert [tile.start for tile in tiles] == [0, 128, 256]
    assert "TASSIGN(t, t_address)" in pipelined.cpp(X, X, 1, count=3)


def test_level_1_says_that_it_has_no_choice() -> None:
    with pytest.raises(PtoError, match="no run-time choice among tiles"):
        pipelined.text(X, X, 1, count=2, form="l1")


@pytest.mark.parametrize("slot", [-1, 2])
def test_an_index_outside_is_an_error_when_it_runs(slot: int) -> None:
    text = loads(
        """func.func @f(%k: index) {
          %m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 16x64xf32, count=2>
          %t = pto.multi_tile_get %m[%k] : !pto.multi_tile_buf<vec, 16x64xf32, count=2>
               -> !pto.tile_buf<vec, 16x64xf32>
          %c = arith.constant 1.0 : f32
          pto.texpands ins(%c : f32) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
          return
        }"""
    ).entry()
    text[1](1)
    with pytest.raises(PtoError, match=r"the index lies in 0\.\.1"):
        text[1](slot)


@kernel(mode="auto")
def filled_before(x, y, n):
    tiles = [Row(), Row(), Row()]
    for k in static_range(3):
        TLOAD(tiles[k], GlobalTensor(x)[k : k + 1, :])
    for i in range(n):
        TADDS(tiles[i % 3], tiles[i % 3], 1.0)
    for k in static_range(3):
        TSTORE(GlobalTensor(y)[k : k + 1, :], tiles[k])


@pytest.mark.parametrize("n", [0, 2, 7])
def test_tiles_chosen_by_constants_do_not_wait_for_each_other(n: int) -> None:
    """Only what is chosen as the kernel runs may be any of them."""
    body = filled_before.text(X, X, n).splitlines()
    loads_of = [k for k, line in enumerate(body) if "pto.tload" in line]
    between = [line for line in body[loads_of[0] : loads_of[-1]] if "barrier" in line]
    assert len(loads_of) == 3
    assert not between
    first, *others = results(filled_before, n)
    assert all(np.array_equal(first, other) for other in others)
