"""Which ranges of memory meet."""

from __future__ import annotations

import pytest

from ptokit.passes.storage import Bytes, Neighbours

RANGES = {
    "apart": (Bytes("UB", 0, 32), Bytes("UB", 32, 64), False),
    "one byte": (Bytes("UB", 0, 33), Bytes("UB", 32, 64), True),
    "inside": (Bytes("UB", 0, 64), Bytes("UB", 16, 32), True),
    "other memory": (Bytes("UB", 0, 64), Bytes("L1", 0, 64), False),
    "somewhere": (Bytes("UB"), Bytes("UB", 32, 64), True),
    "somewhere else": (Bytes("L1"), Bytes("UB", 32, 64), False),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_meet_where_they_share_a_byte(name: str) -> None:
    first, second, meet = RANGES[name]
    assert first.meets(second) == second.meets(first) == meet
    for ranges in ((first, second), (second, first)):
        found = Neighbours(ranges)
        assert set(found.of(first)) == ({first, second} if meet else {first})
        assert set(found.of(second)) == ({first, second} if meet else {second})
