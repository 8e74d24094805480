"""Cores that meet by counting in global memory: every launch counts."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.engines.compiled.library import library
from ptokit.from_text import loads

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

TEXT = """
func.func @meet(%count: !pto.ptr<i32, gm>, %cores: i32) attributes {pto.entry} {
  pto.syncall(%count, %cores : !pto.ptr<i32, gm>, i32) mode = #pto.sync_all_mode<soft>,
    core_type = #pto.sync_core_type<aiv_only>
  return
}
"""


@pytest.mark.parametrize("how", ["fast", "stepwise"])
def test_every_launch_counts(how: str) -> None:
    """What orders work is left out where a launch is repeated, but this leaves something behind."""
    kernel, count = loads(TEXT)["meet"], np.zeros(64, np.int32)
    for launches in (1, 2, 3):
        kernel[1](count, 1, engine=how, check=False)
        assert count.tolist() == [launches, *[0] * 63]
