"""Blocks of one launch on several workers: the same bytes, or a refusal by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import UsageError
from ptokit.engines.verdicts import blocks_meet
from ptokit.kernels.spreading import GROUPS, Group, did, groups_of
from ptokit.tasks import Executor
from tests.test_examples import NAMES

T = Tile[TileType.Vec, float32, 16, 64]
TWO = Executor(2)
BLOCKS = 6


def rows(array: Any, block: Any) -> Any:
    return GlobalTensor(array[16 * block : 16 * block + 16])


@kernel(mode="auto")
def in_place(x):
    tile, block = T(), get_block_idx()
    TLOAD(tile, rows(x, block))
    TADD(tile, tile, tile)
    TSTORE(rows(x, block), tile)


@kernel(mode="auto")
def to_one_place(x, y):
    tile = T()
    TLOAD(tile, rows(x, get_block_idx()))
    TSTORE(GlobalTensor(y[0:16]), tile)


@kernel(mode="auto")
def sums(x, y):
    tile = T()
    TLOAD(tile, rows(x, get_block_idx()))
    TSTORE[AtomicType.AtomicAdd](GlobalTensor(y[0:16]), tile)


@kernel(mode="auto")
def shifted(x, y):
    """Each block reads what the one before it writes."""
    tile, block = T(), get_block_idx()
    TLOAD(tile, rows(y, block))
    TSTORE(rows(y, block + 1), tile)


@kernel
def meeting(x, y):
    SYNCALL()


@kernel
def signalling(words):
    comm.TNOTIFY(comm.Signal(words), 1, comm.NotifyOp.AtomicAdd)


def arrays() -> tuple[Any, Any]:
    x = np.random.default_rng(3).standard_normal((16 * BLOCKS, 64)).astype(np.float32)
    return x, np.zeros((16 * BLOCKS + 16, 64), np.float32)


def test_groups_hold_every_block_once() -> None:
    for blocks in (1, 2, GROUPS - 1, GROUPS, GROUPS + 1, 10_000):
        found = list(groups_of(blocks))
        assert len(found) <= GROUPS
        assert [n for first, last in found for n in range(first, last)] == list(range(blocks))


SEVERAL = [
    pytest.param(case, id=f"{name}-{case.name}")
    for name in NAMES
    for case in import_module(name).CASES
    if case.blocks > 1 and "a2a3" in case.targets
]


@pytest.mark.parametrize("case", SEVERAL)
def test_examples_leave_the_same_bytes(case: Any) -> None:
    here = case.inputs(np.random.default_rng(7))
    there = tuple(each.copy() if hasattr(each, "copy") else each for each in here)
    assert not blocks_meet(case.kernel.lower(*here, target="a2a3", grid=case.blocks, **case.consts))
    case.kernel[case.blocks](*here, target="a2a3", **case.consts)
    case.kernel[case.blocks](*there, target="a2a3", jobs=TWO, **case.consts)
    for one, other in zip(here, there, strict=True):
        assert not hasattr(one, "tobytes") or one.tobytes() == other.tobytes()


def test_a_kernel_may_work_in_place() -> None:
    x, _ = arrays()
    wanted = x + x
    run = in_place[BLOCKS](x, target="a2a3", jobs=TWO)
    assert run.blocks == BLOCKS
    assert np.array_equal(x, wanted)


def test_a_group_sends_back_what_it_has_written_and_leaves_nothing() -> None:
    x, _ = arrays()
    sent = in_place[BLOCKS].sent((x,), {"target": "a2a3"})
    for _ in range(2):  # it begins with the arrays of the launch each time
        found = did(Group(2, 4), sent)
        assert list(found.writes) == list(found.reads) == [(0, 2 * 16 * 256, 4 * 16 * 256)]
        assert b"".join(found.data) == (2 * x[32:64]).tobytes()


@pytest.mark.parametrize("made", [to_one_place, sums, shifted])
def test_blocks_that_touch_the_same_bytes_are_refused(made: Any) -> None:
    with pytest.raises(NotSupported) as error:
        made[BLOCKS](*arrays(), target="a2a3", jobs=TWO)
    (found,) = error.value.diagnostics
    assert found.code == "spread"
    assert " in y" in found.message
    assert "block 0" in found.message


@pytest.mark.parametrize(
    ("launched", "what"),
    [
        (lambda: meeting[2](*arrays(), target="a2a3", jobs=TWO), "syncall"),
        (lambda: signalling[2](np.zeros(1, np.int32), target="a2a3", jobs=TWO), "tnotify"),
    ],
)
def test_blocks_that_wait_for_each_other_are_refused(
    launched: Callable[[], Any], what: str
) -> None:
    with pytest.raises(NotSupported, match="wait for each other") as error:
        launched()
    (found,) = error.value.diagnostics
    assert what in found.message.lower()
    assert found.location is not None


def test_an_error_of_a_block_is_told_as_in_one_place() -> None:
    told: list[Any] = []
    for jobs in (1, TWO):
        with pytest.raises(PtoError) as error:  # the last blocks leave the array
            in_place[BLOCKS + 3](arrays()[0], target="a2a3", jobs=jobs, path="lowered")
        told.append([(d.code, d.message, d.got) for d in error.value.diagnostics])
    assert told[0] == told[1]


def test_what_is_followed_is_not_spread() -> None:
    x, _ = arrays()
    followed: list[dict[str, Any]] = [
        {"events": True}, {"seed": 1}, {"timing": True}, {"check": "explore"}
    ]  # fmt: skip
    for options in followed:
        with pytest.raises(UsageError, match="spread over workers"):
            in_place[BLOCKS](x, target="a2a3", jobs=TWO, **options)
