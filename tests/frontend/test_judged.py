"""A kernel that runs as it stands is first judged by the program that a device would be given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *

X = np.ones((16, 64), np.float32)
T = Tile[TileType.Vec, float32, 16, 64]
MODES = ("manual", "auto")


def make(mode: str, middle: Any) -> Kernel:
    """Load, do something that depends on a run-time number, store."""

    @kernel(mode=mode)
    def copies(x: Any, y: Any, n: int) -> None:
        tile, half = T(), Tile[TileType.Vec, float16, 16, 64]()
        if mode == "manual":
            TASSIGN(tile, 0x0)
            TASSIGN(half, 0x4000)
        TLOAD(tile, GlobalTensor(x))
        middle(tile, half, n)
        if mode == "manual":
            set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(y), tile)

    return copies


def breaks_a_rule(tile: Any, half: Any, n: int) -> None:
    if n > 5:
        TADD(half, tile, tile)


def has_no_such_tile(tile: Any, half: Any, n: int) -> None:
    if n > 5:
        Tile[TileType.Vec, float32, 16, 3]()


def cannot_be_lowered(tile: Any, half: Any, n: int) -> None:
    try:
        assert n == 0
    finally:
        del half


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("middle", "code"), [(breaks_a_rule, "TADD.same-dtype"), (has_no_such_tile, "SA-0006")]
)
def test_what_another_path_breaks_is_an_error_of_the_kernel(
    mode: str, middle: Any, code: str
) -> None:
    for path in ("eager", "lowered"):
        y = np.zeros_like(X)
        with pytest.raises(ProgramError) as caught:
            make(mode, middle)[1](X, y, 0, path=path)
        assert caught.value.codes == (code,)
        assert not y.any()


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_lowered_is_judged_as_it_runs(mode: str) -> None:
    y, made = np.zeros_like(X), make(mode, cannot_be_lowered)
    made[1](X, y, 0)
    assert np.array_equal(y, X)
    with pytest.raises(ProgramError) as caught:
        made[1](X, y, 0, path="lowered")
    assert caught.value.codes[0].startswith("lower.")
