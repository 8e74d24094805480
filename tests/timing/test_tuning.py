"""Tuning: every setting is tried, wrong ones are discarded with the reason, the rest are ranked."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from ptokit import (
    PIPE_MTE2,
    PIPE_MTE3,
    PIPE_V,
    TADD,
    TASSIGN,
    TLOAD,
    TSTORE,
    GlobalTensor,
    Tile,
    TileType,
    float32,
    get_block_idx,
    kernel,
    set_flag,
    static_range,
    wait_flag,
)
from ptokit.base.diagnostics import UsageError
from ptokit.tasks import Executor, Result, Work
from ptokit.tasks.work import done
from ptokit.timing.tuning import Trial, Tries, Tuned, settings, sweep


@kernel(mode="manual")
def doubles(
    x,
    y,
    *,
    rows: Literal[8, 16, 512] = 16,
    buffers: Literal[1, 2] = 1,
    ordered: Literal[True, False] = True,
):
    """512 rows do not fit; what is not ordered races."""
    tiles = [Tile[TileType.Vec, float32, rows, 128]() for _ in static_range(buffers)]
    for turn in static_range(buffers):
        TASSIGN(tiles[turn], turn * rows * 512)
        set_flag(PIPE_MTE3, PIPE_MTE2, turn)
    first = get_block_idx() * 128
    for i in static_range(128 // rows if rows < 128 else 1):
        turn, start = i % buffers, first + i * rows
        wait_flag(PIPE_MTE3, PIPE_MTE2, turn)
        TLOAD(tiles[turn], GlobalTensor(x)[start : start + rows, :])
        set_flag(PIPE_MTE2, PIPE_V, turn)
        wait_flag(PIPE_MTE2, PIPE_V, turn)
        TADD(tiles[turn], tiles[turn], tiles[turn])
        if ordered:
            set_flag(PIPE_V, PIPE_MTE3, turn)
            wait_flag(PIPE_V, PIPE_MTE3, turn)
        TSTORE(GlobalTensor(y)[start : start + rows, :], tiles[turn])
        set_flag(PIPE_MTE3, PIPE_MTE2, turn)
    for turn in static_range(buffers):
        wait_flag(PIPE_MTE3, PIPE_MTE2, turn)


def arrays(rows: int = 512) -> Any:
    return np.ones((rows, 128), np.float32), np.zeros((rows, 128), np.float32)


def tuned(**options: Any) -> Tuned:
    return doubles.tune(1, arrays(), target="a2a3", **options)


def here(attempt: Callable[[Any], Trial]) -> Tries:
    """Settings that are tried on this machine."""
    return Tries(attempt, sent=lambda _: None, there=Work(attempt))


def test_what_is_declared_is_swept_and_ranked() -> None:
    found = tuned()
    assert len(found.trials) == 12
    good = [each for each in found.trials if not each.reason]
    assert [each.us for each in good] == sorted(each.us for each in good)
    assert all(each.constants["ordered"] and each.constants["rows"] < 512 for each in good)
    assert found.best.constants == {"rows": 16, "buffers": 2, "ordered": True}
    assert found.best.us == doubles.time(1, arrays(), target="a2a3", **found.best.constants).us


def test_what_does_not_fit_or_races_is_discarded_with_the_reason() -> None:
    reasons = {tuple(each.constants.values()): each.reason for each in tuned().trials}
    assert reasons[16, 1, False].startswith("E6")
    assert reasons[512, 1, True].startswith("memory-bounds")
    unchecked = tuned(check=False)
    assert any(not each.reason and not each.constants["ordered"] for each in unchecked.trials)


def test_jobs_find_the_same() -> None:
    over = {"rows": (8, 16), "ordered": (True,)}
    assert tuned(over=over, jobs=2) == tuned(over=over)


class Away(Executor):
    """Other machines: they import what is done, and have nothing but what they are sent."""

    is_remote = True

    def results(self, work: Work, tasks: Any, **_: Any) -> Any:
        assert work.name
        for task in tasks:
            data, shared = pickle.loads(pickle.dumps((task.data, work.shared)))
            yield Result(0, task, done(work.do, data, shared).value)


def test_other_machines_find_the_same() -> None:
    assert tuned(jobs=Away()) == tuned()
    grid = {"over": {"rows": (8, 16), "ordered": (True, False)}, "check": False}
    assert tuned(jobs=Away(), **grid) == tuned(**grid)


def test_a_sweep_that_was_stopped_goes_on() -> None:
    tried: list[int] = []
    wanted = list(settings({"n": (1, 2, 3), "shape": ((1, 2),)}))

    def attempt(setting: Any) -> Trial:
        tried.append(setting["n"])
        if tried == [1, 2]:
            raise KeyboardInterrupt
        return Trial(setting, us=float(setting["n"]))

    with pytest.raises(KeyboardInterrupt):
        sweep("k", "stopped", wanted, here(attempt), resume=False)
    found = sweep("k", "stopped", wanted, here(attempt), resume=True)
    assert tried == [1, 2, 2, 3]
    assert found == sweep("k", "stopped", wanted, here(attempt), resume=True)
    assert tried == [1, 2, 2, 3, 1, 2, 3]  # all was done: nothing was left to go on with


def test_a_grid_may_depend_on_the_constants() -> None:
    asked: list[int] = []

    def grid(rows: int, **_: Any) -> int:
        asked.append(rows)
        return 1

    over = {"rows": (8, 16), "buffers": (1,), "ordered": (True,)}
    doubles.tune(grid, arrays(), over=over, target="a2a3")
    assert asked == [8, 16]


def test_what_is_kept_is_not_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "k.tune.json"
    tried: list[Any] = []

    def attempt(setting: Any) -> Trial:
        tried.append(dict(setting))
        return Trial(setting, us=float(setting["n"]))

    first = sweep("k", "v1", list(settings({"n": (3, 1)})), here(attempt))
    first.write(path)
    assert Tuned.read(path) == first
    again = sweep(
        "k", "v1", list(settings({"n": (3, 1, 2)})), here(attempt), known=Tuned.read(path)
    )
    assert tried == [{"n": 3}, {"n": 1}, {"n": 2}]
    assert [each.constants["n"] for each in again.trials] == [1, 2, 3]
    sweep("k", "v2", list(settings({"n": (3,)})), here(attempt), known=Tuned.read(path))
    assert len(tried) == 4  # another program: nothing is known of it


def test_jobs_are_processes() -> None:
    found = sweep(
        "k",
        "",
        list(settings({"n": (1, 2)})),
        here(lambda s: Trial(s, float(os.getpid()))),
        executor=Executor(2),
    )
    assert {each.us for each in found.trials} - {os.getpid()}


@pytest.mark.parametrize("wrong", [{"rows": 3}, {"rows": ()}, {"columns": (1, 2)}])
def test_a_call_that_no_setting_makes_right_is_told(wrong: Any) -> None:
    with pytest.raises(UsageError):
        tuned(over=wrong)


def test_nothing_right_is_told() -> None:
    none = sweep("k", "", [{"n": 1}], here(lambda s: Trial(s, reason="E6: a race")))
    with pytest.raises(UsageError, match="no setting of k is right"):
        none.best  # noqa: B018
    with pytest.raises(UsageError, match="is no result of tuning"):
        Tuned.read(__file__)
