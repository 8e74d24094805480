"""Live ranges: from when to when a tile must keep its bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import ProgramError
from ptokit.ir.flow import allocates, is_loop
from ptokit.isa.targets import target
from ptokit.passes.accesses import accesses_of
from ptokit.passes.liveness import live_ranges, order_of, read_unwritten

X = np.ones((8, 32), np.float32)
T = Tile[TileType.Vec, float32, 8, 32]


@kernel(mode="auto")
def loaded_in_the_first_round(x: Any, y: Any, n: int) -> None:
    kept = T()
    for i in range(n):
        other = T()
        TLOAD(other, GlobalTensor(x))
        TSTORE(GlobalTensor(y), other)
        if i == 0:
            TLOAD(kept, GlobalTensor(x))
        TSTORE(GlobalTensor(y), kept)


@kernel(mode="auto")
def read_early_in_every_round(x: Any, y: Any, n: int) -> None:
    kept = T()
    TLOAD(kept, GlobalTensor(x))
    for _ in range(n):
        TSTORE(GlobalTensor(y), kept)
        other = T()
        TLOAD(other, GlobalTensor(x))
        TSTORE(GlobalTensor(y), other)


@kernel(mode="auto")
def never_written(x: Any, y: Any) -> None:
    used = T()
    TLOAD(used, GlobalTensor(x))
    TSTORE(GlobalTensor(y), used)
    never = T()
    TSTORE(GlobalTensor(y), never)


def written(kernel: Kernel, *args: Any) -> Any:
    chosen = target("a2a3")
    module = kernel.source.written(chosen, kernel.source.bind(args, {}), 1)
    function = module.functions[0]
    return function, accesses_of(function, chosen)


def test_what_a_round_may_leave_to_the_next_lives_from_the_start_of_the_loop() -> None:
    function, accesses = written(loaded_in_the_first_round, X, X, 3)
    order = order_of(function)
    (loop,) = [op for op in function.walk() if is_loop(op)]
    outside = [op for op in function.body.ops if allocates(op)]
    (kept,) = [live for live in live_ranges(function, accesses) if live.alloc in outside]
    assert kept.start == order.position[loop]


def test_what_the_next_round_reads_lives_to_the_end_of_the_loop() -> None:
    function, accesses = written(read_early_in_every_round, X, X, 3)
    order = order_of(function)
    outside = [op for op in function.body.ops if allocates(op)]
    lives = live_ranges(function, accesses)
    (kept,) = [live for live in lives if live.alloc in outside]
    (other,) = [live for live in lives if live.alloc not in outside]
    ((_, end),) = order.loops[other.alloc]
    assert kept.stop == end >= other.stop


def test_a_tile_that_no_path_writes_before_it_is_read_is_known() -> None:
    function, accesses = written(never_written, X, X)
    (found,) = read_unwritten(function, accesses)
    assert found.name.startswith("never")


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_tile_that_nothing_wrote_does_not_find_what_another_left(path: str) -> None:
    with pytest.raises(ProgramError) as caught:
        never_written[1](X, np.zeros_like(X), path=path)
    assert caught.value.codes == ("poison-read",)


@kernel(mode="auto")
def half_written(x: Any, y: Any) -> None:
    used = T()
    TLOAD(used, GlobalTensor(x))
    TSTORE(GlobalTensor(y), used)
    half = Tile[TileType.Vec, float32, 8, 32, BLayout.RowMajor, 4, 32]()
    TLOAD(half, GlobalTensor(x)[0:4, :])
    whole = T()
    TRESHAPE(whole, half)
    TSTORE(GlobalTensor(y), whole)


def test_a_tile_is_written_when_all_of_it_is() -> None:
    function, accesses = written(half_written, X, X)
    (found,) = read_unwritten(function, accesses)
    assert found.name.startswith("half")


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_the_rest_of_a_tile_does_not_hold_what_another_left(path: str) -> None:
    with pytest.raises(ProgramError) as caught:
        half_written[1](X, np.zeros_like(X), path=path)
    assert caught.value.codes == ("poison-read",)
