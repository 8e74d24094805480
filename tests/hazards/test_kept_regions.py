"""Regions on chip outlive launches: what is found does not depend on the launches before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.machine.hazards import HazardLog
from ptokit.machine.regions import RegionIndex, Rows

Half = Tile[TileType.Vec, float32, 8, 16]
Whole = Tile[TileType.Vec, float32, 16, 16]


@kernel(mode="manual")
def halves(x: Any, second_first: int, waits: int) -> None:
    """A load comes over both halves that an addition reads; they are made in either order."""
    low, high, sum_of = Half(), Half(), Half()
    both = Whole()
    TASSIGN(low, 0x0)
    TASSIGN(high, 0x200)
    TASSIGN(sum_of, 0x800)
    TASSIGN(both, 0x0)
    if second_first > 0:
        TEXPANDS(high, 1.0)
        TEXPANDS(low, 1.0)
    else:
        TEXPANDS(low, 1.0)
        TEXPANDS(high, 1.0)
    pipe_barrier(PIPE_V)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE2]()
    TADD(sum_of, low, high)
    if waits > 0:
        PtoSetWaitFlag[PIPE_V, PIPE_MTE2]()
    TLOAD(both, GlobalTensor(x))


def findings(*launches: tuple[int, int]) -> list[str]:
    """What the last of some launches says; they follow each other on the same memories."""
    halves.programs.memory.forget_verdicts()
    x, told = np.ones((16, 16), np.float32), list[str]()
    for second_first, waits in launches:
        try:
            halves[1](x, second_first, waits, target="a2a3", path="lowered", engine="stepwise")
            told = []
        except PtoError as error:
            told = [f"{d.message} {d.got}" for d in error.diagnostics]
    return told


@pytest.mark.parametrize("second_first", [0, 1])
def test_which_operand_is_named_follows_the_program_alone(second_first: int) -> None:
    alone = findings((second_first, 0))
    assert len(alone) == 1
    assert "src0" in alone[0]
    assert findings((1 - second_first, 1), (second_first, 0)) == alone


def test_regions_are_kept_where_a_launch_has_touched_half_of_them() -> None:
    index = RegionIndex("UB")
    made = [index.add(n, Rows(64 * n, 64, 64, 1)) for n in range(4)]
    for touched, is_stale in ((1, True), (2, False), (4, False), (0, True)):
        index.begin()
        for region in made[:touched]:
            assert region is not None
            region.reads[0] = object()
        index.forget()
        assert index.is_stale is is_stale
        assert not any(region.is_touched for region in made if region is not None)


def test_what_several_blocks_touch_on_one_memory_counts() -> None:
    """Each begins with a memory that is forgotten."""
    index = RegionIndex("UB")
    for n in range(4):
        region = index.add(n, Rows(64 * n, 64, 64, 1))
        assert region is not None
        region.write = object()
        index.forget()
    assert not index.is_stale


@kernel(mode="manual")
def at_an_address(x: Any, address: int) -> None:
    tile = Half()
    TASSIGN(tile, address)
    TLOAD(tile, GlobalTensor(x))


def test_regions_that_no_launch_comes_back_to_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch has an address of its own: what is kept does not grow with their number."""
    most, close = list[int](), HazardLog.close

    def watched(log: HazardLog, keeps: bool) -> None:
        most.append(max(len(index.known) for index in log._known.values()))
        close(log, keeps)

    monkeypatch.setattr(HazardLog, "close", watched)
    x = np.ones((8, 16), np.float32)
    for number in range(12):
        at_an_address[1](x, 0x200 * number, target="a2a3", path="lowered", engine="stepwise")
    assert len(most) == 12
    assert max(most) <= 3
