"""Regions overlap exactly when they share a byte, however they are described."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ptokit.machine.regions import Region, RegionIndex, Rows, evenly

rows = st.builds(
    lambda start, width, gap, number: Rows(start, width, width + gap, number),
    st.integers(0, 40), st.integers(1, 9), st.integers(1, 9), st.integers(1, 6),
)  # fmt: skip


def scattered(starts: list[int]) -> tuple[tuple[int, int], ...]:
    """Ranges of three bytes that do not touch."""
    return tuple((start * 5, start * 5 + 3) for start in sorted(set(starts)))


uneven = st.builds(scattered, st.lists(st.integers(0, 20), min_size=1, max_size=6))
places = rows | uneven


def bytes_of(region: Region) -> set[int]:
    return {byte for start, stop in region.ranges for byte in range(start, stop)}


@given(places, places)
def test_overlap_is_a_shared_byte(one: Rows, other: Rows) -> None:
    first, second = Region("UB", one), Region("UB", other)
    shared = bytes_of(first) & bytes_of(second)
    assert first.overlaps(second) == second.overlaps(first) == bool(shared)
    if shared:
        low, high = first.common(second)
        assert set(range(low, high)) <= shared
        assert low < high


@given(rows)
def test_rows_and_their_ranges_are_one(given_rows: Rows) -> None:
    if given_rows.number > 1:
        assert evenly(given_rows.ranges) == given_rows
    moved = given_rows.behind(100)
    assert moved.ranges == tuple((a + 100, b + 100) for a, b in given_rows.ranges)


@given(st.lists(places, min_size=1, max_size=8))
def test_the_index_connects_just_those_that_overlap(given_places: list[Rows]) -> None:
    index = RegionIndex("UB")
    found = [index.add(number, place) for number, place in enumerate(given_places)]
    known = [region for region in found if region is not None]
    for region in known:
        peers = {id(peer) for peer in region.peers}
        assert peers == {id(other) for other in known if region.overlaps(other)}
