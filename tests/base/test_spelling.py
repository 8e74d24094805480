"""The word that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptokit.base.spelling import meant, nearest
from ptokit.isa import INSTRUCTIONS

SOURCES = Path(__file__).parents[2] / "src" / "ptokit"


@pytest.mark.parametrize(
    ("word", "found"),
    [("TLAOD", "TLOAD"), ("tload", "TLOAD"), ("or", "TOR"), ("TADSS", "TADDS")],
)
def test_slips_and_small_letters_are_understood(word: str, found: str) -> None:
    assert nearest(word, INSTRUCTIONS) == [found]


@pytest.mark.parametrize("word", ["In", "x", "", "helper", "T" * 1000])
def test_nothing_is_offered_for_what_is_like_nothing(word: str) -> None:
    assert nearest(word, ["TMIN", "TLOAD", "TOR"]) == []
    assert meant(word, ["TMIN", "TLOAD", "TOR"]) == ""


def test_the_spelling_with_the_same_capitals_comes_first() -> None:
    assert nearest("tile", ["TILE", "Tile", "tiles"], 3) == ["Tile", "TILE", "tiles"]


def test_of_words_as_like_the_one_that_goes_on_comes_first() -> None:
    assert nearest("TROWSU", ["ATROWSU", "TROWSUM"]) == ["TROWSUM"]


def test_as_many_as_are_asked_for() -> None:
    assert meant("a2a", ["a2a3", "a2a4", "b"], 2) == "did you mean a2a3 or a2a4?"


def test_nobody_compares_words_in_a_way_of_their_own() -> None:
    own = {p.name for p in SOURCES.rglob("*.py") if "get_close_matches" in p.read_text("utf-8")}
    assert own == set()
