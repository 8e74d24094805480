"""Warnings of a program that fails: those of other lines are shown beside the errors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import ProgramError

T = Tile[TileType.Vec, float32, 16, 64]


@kernel(mode="manual")
def racy(x: Any, wide: Any, y: Any) -> None:
    t, u = T(), T()
    TASSIGN(t, 0)
    TASSIGN(u, 0x1000)
    TLOAD(t, GlobalTensor(x))
    TLOAD(u, GlobalTensor(x))
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(wide), t)  # a warning: the view has more columns than the tile
    TADD(u, u, u)  # an error: nothing has waited for the load


@kernel(mode="manual")
def poisoned(x: Any, wide: Any, y: Any) -> None:
    t, u = T(), T()
    TASSIGN(t, 0)
    TASSIGN(u, 0x1000)
    TLOAD(t, GlobalTensor(x))
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(wide), t)  # a warning
    TSTORE(GlobalTensor(y), u)  # ends the run: nothing has written it


def caught(body: Any, path: str) -> ProgramError:
    x, wide = np.zeros((16, 64), np.float32), np.zeros((16, 128), np.float32)
    with pytest.raises(ProgramError) as error:
        body[1](x, wide, x.copy(), path=path)
    return error.value


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(("body", "code"), [(racy, "E6"), (poisoned, "poison-read")])
def test_a_warning_of_another_line_is_shown(body: Any, code: str, path: str) -> None:
    error = caught(body, path)
    assert code in error.codes
    assert "PA-0044" not in error.codes  # it is no reason for the failure
    assert [each.code for each in error.warnings] == ["PA-0044"]
    said = str(error)
    assert said.count("warning[PA-0044]") == 1
    assert said.index(f"error[{code}]") < said.index("warning[PA-0044]")


def test_it_comes_along_from_another_process() -> None:
    error = caught(racy, "eager")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert [each.code for each in again.warnings] == ["PA-0044"]
