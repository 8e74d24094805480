"""What the checker takes a trip of a steady loop to do: its tokens, its agents, its bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ptokit.machine.clocks import PIPES
from ptokit.machine.notes import GIVE, LEARN, SHIFT, TAKE, TURN
from ptokit.machine.replay import Replay
from ptokit.machine.steady import Window, regions_of


def window(*entries: int) -> Window:
    notes: Any = SimpleNamespace(entries=[*entries], operations=[])
    return Window(notes, 0, len(entries), 0)


def code(kind: int, agent: int) -> int:
    return agent << SHIFT | kind


def test_tokens_are_counted_from_the_first_that_a_trip_gives() -> None:
    """One is taken in the trip that gives it, the other in the next one."""
    second = PIPES + 3  # of another core
    found = window(
        code(GIVE, 0), code(TAKE, 1), 1, code(GIVE, second), code(TAKE, second), 3
    )  # fmt: skip
    assert (found.given, found.taken, found.depth) == (2, [0, -1], 1)
    assert found.is_plain
    assert found.pending(10) == [9]
    assert found.agents == list(range(2 * PIPES))


def test_a_trip_ends_with_the_core_with_which_the_next_begins() -> None:
    """What stands before the first turn was executed by whoever had it before."""
    assert window(code(TURN, 1), code(TURN, 0)).is_closed
    assert not window(code(TURN, 1)).is_closed


def test_a_token_that_is_never_taken_makes_a_trip_unlike_the_next() -> None:
    assert not window(code(GIVE, 0), code(GIVE, 1), code(TAKE, 2), 1).is_plain


def test_a_token_may_come_from_several_trips_before() -> None:
    found = window(code(GIVE, 0), code(LEARN, 1), 3)
    assert (found.taken, found.depth) == ([-2], 2)
    assert found.pending(10) == [8, 9]


class Bytes:
    """A region, with those that share bytes with it; it is one of them."""

    def __init__(self, *others: Any) -> None:
        self.peers = [self, *others]


def test_a_trip_concerns_all_that_share_bytes_with_what_it_touches() -> None:
    beside = Bytes()
    touched = Bytes(beside)
    log: Any = SimpleNamespace(regions_of=lambda noted, core: [touched])
    trip: Any = SimpleNamespace(instructions=[("an instruction", 0), ("another", 1)])
    assert regions_of(log, trip) == [touched, beside]


def test_what_tokens_prove_behind_the_trips_that_were_passed_over() -> None:
    """The clock of the same token in the last trip that was read, so many trips further."""
    trip = window(code(GIVE, 0), code(TAKE, 1), 1, code(GIVE, 2), code(TAKE, 3), 3)
    replay: Any = object.__new__(Replay)
    replay.notes = SimpleNamespace(kept=set[int]())
    replay._given, replay._proven = 10, {8: "first", 9: "second"}
    shift: Any = SimpleNamespace(of=lambda clock, trips: (clock, trips))
    assert replay._proven_behind(trip, shift, left=5) == {19: ("second", 5)}
    replay._proven = {8: "first"}
    assert replay._proven_behind(trip, shift, left=5) is None
