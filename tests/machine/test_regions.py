"""Regions overlap exactly when they share a byte, however they are described."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptokit.machine.regions import Region, RegionIndex, Rows, evenly, within

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


@given(places, places, st.integers(-30, 30))
def test_within_is_every_byte(inner: Rows, outer: Rows, shift: int) -> None:
    moved = {byte + shift for byte in bytes_of(Region("GM", inner))}
    assert within(inner, outer, shift) == (moved <= bytes_of(Region("GM", outer)))


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


def test_the_index_finds_exactly_the_regions_that_share_bytes() -> None:
    """Tiles of matrices of several pitches, columns, long stretches and boxes, at random."""
    random = np.random.default_rng(1)
    for _ in range(20):
        index = RegionIndex("GM")
        known: list[tuple[Region, set[int]]] = []
        for key in range(60):
            pitch = int(random.choice([48, 64, 100, 4096]))
            width, number = int(random.integers(1, pitch)), int(random.integers(1, 80))
            if random.random() < 0.3:
                width, number = int(random.integers(1, 3000)), 1
            place: Any = Rows(int(random.integers(0, 9000)), width, pitch, number)
            if random.random() < 0.2:
                place = ((5, 9), (20, 300), (4000 + key, 5000 + key))
            region = index.add(key, place)
            assert region is not None
            touched = bytes_of(region)
            expected = {id(other) for other, theirs in known if touched & theirs}
            assert {id(p) for p in region.peers} == {*expected, id(region)}
            known.append((region, touched))


def test_tiles_of_a_wide_matrix_look_at_their_neighbours_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long the rows are."""
    looked = 0

    def counted(self: Region, other: Region) -> bool:
        nonlocal looked
        looked += 1
        return False

    monkeypatch.setattr(Region, "overlaps", counted)
    tiles, index = 512, RegionIndex("GM")
    for key in range(tiles):
        index.add(key, Rows(1024 * key, 1024, 1024 * tiles, 16))
    assert looked < 4 * tiles
