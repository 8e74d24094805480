"""A verdict is remembered exactly where the next launch can only come to the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.machine.hazards import HazardLog

TileT = Tile[TileType.Vec, float32, 16, 16]


@kernel(mode="manual")
def plus(x: Any, y: Any, n: int) -> None:
    """y = x + n, sixteen rows per block; the author left one barrier out."""
    tile = TileT()
    TASSIGN(tile, 0)
    first = get_block_idx() * 16
    TLOAD(tile, GlobalTensor(x)[first : first + 16, :])
    PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
    for _ in range(n):
        TADDS(tile, tile, 1.0)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y)[first : first + 16, :], tile)


@kernel(mode="manual")
def by_data(x: Any, y: Any) -> None:
    """What is done depends on what x holds: a flag is forgotten where it holds zero."""
    tile = TileT()
    TASSIGN(tile, 0)
    TLOAD(tile, GlobalTensor(x))
    if load_scalar(x, 0) > 0:
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(y), tile)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many accesses the checker has looked at."""
    count = [0]
    see = HazardLog.see

    def counted(self: HazardLog, event: Any) -> None:
        count[0] += 1
        see(self, event)

    monkeypatch.setattr(HazardLog, "see", counted)
    return count


@pytest.fixture(params=["eager", "lowered"])
def launch(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A launch of two blocks that do two rounds, on each path."""

    def launched(x: Any, y: Any, n: int = 2, blocks: int = 2, **more: Any) -> Any:
        return plus[blocks](x, y, n, target="a2a3", path=request.param, **more)

    return launched


def test_the_next_launch_of_the_same_is_not_looked_at(
    looks: list[int], launch: Callable[..., Any]
) -> None:
    plus.programs.memory.forget_verdicts()
    x, y = np.ones((32, 16), np.float32), np.zeros((32, 16), np.float32)
    first = launch(x, y)
    assert looks[0] > 0
    looks[0] = 0
    again = launch(x + 1, np.zeros_like(y))
    assert looks[0] == 0
    assert [(w.code, w.location) for w in again.warnings] == [
        (w.code, w.location) for w in first.warnings
    ]
    assert {w.code for w in again.warnings} == {"E8"}
    launch(x, y, check="full")
    assert looks[0] > 0, "the full log asks nobody"


@pytest.mark.parametrize("what", ["blocks", "number", "alias", "rules"])
def test_whatever_matters_is_looked_at_anew(
    looks: list[int], what: str, launch: Callable[..., Any]
) -> None:
    plus.programs.memory.forget_verdicts()
    x, y = np.ones((48, 16), np.float32), np.zeros((48, 16), np.float32)
    launch(x, y)
    looks[0] = 0
    if what == "blocks":
        launch(x, y, blocks=3)
    elif what == "number":
        launch(x, y, 3)
    elif what == "rules":
        with pytest.raises(ProgramError, match="E8"):
            launch(x, y, rules="strict")
    else:  # block 1 reads what block 0 writes
        both = np.ones((64, 16), np.float32)
        with pytest.raises(ProgramError, match="E7"):
            launch(both[:48], both[16:])
    assert looks[0] > 0


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_what_data_decides_is_looked_at_each_time(path: str) -> None:
    x, y = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    by_data[1](x, y, target="a2a3", path=path, allow=["E14", "E7"])
    with pytest.raises(ProgramError, match="E6"):
        by_data[1](0 * x, y, target="a2a3", path=path, allow=["E14", "E7"])


def test_a_failure_is_found_each_time(launch: Callable[..., Any]) -> None:
    both = np.ones((48, 16), np.float32)
    for _ in range(2):
        with pytest.raises(ProgramError, match="E7"):
            launch(both[:32], both[16:])
