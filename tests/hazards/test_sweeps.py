"""Where a view lies in all trips of a loop: what is said of it against the bytes themselves."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from ptokit.machine.regions import Region, Rows
from ptokit.machine.sweeps import Sweep, _even

ORIGIN = 0x1000


def sweep(addresses: list[int], rows: Rows) -> Sweep:
    access: Any = SimpleNamespace(memory=SimpleNamespace(base=ORIGIN), writes=True)
    made = Sweep(SimpleNamespace(), 0, access, rows, (), 1, 1)  # type: ignore[arg-type]
    made.addresses = _even(addresses)
    return made


def touched(address: int, rows: Rows) -> set[int]:
    return {byte for start, stop in rows.behind(address).ranges for byte in range(start, stop)}


def places(choose: random.Random, pitch: int) -> list[int]:
    """Steps that are even, along a row, down the rows or across; or two nested loops, or any."""
    count, first = choose.randint(2, 6), ORIGIN + choose.randrange(3 * pitch)
    match choose.randrange(5):
        case 0:
            step = choose.choice([-1, 1]) * choose.randint(1, 9)
        case 1:
            step = choose.choice([-1, 1]) * pitch * choose.randint(1, 4)
        case 2:
            step = choose.randint(1, 3 * pitch)
        case 3:
            across, down = choose.randint(1, 8), pitch * choose.randint(1, 4)
            return [first + row * down + col * across for row in range(2) for col in range(count)]
        case _:
            return [ORIGIN + choose.randrange(6 * pitch) for _ in range(count)]
    return [first + 8 * abs(step) + n * step for n in range(count)]


@pytest.mark.parametrize("seed", range(400))
def test_places_of_a_view_against_its_bytes(seed: int) -> None:
    """What is called apart shares no byte, and the hull holds it all.

    The other way round it holds where places are even: only these must be seen to be apart.
    """
    choose = random.Random(seed)
    pitch, number = choose.randint(8, 24), choose.randint(1, 4)
    width = choose.randint(1, pitch - 1)
    rows = Rows(choose.choice([0, 3]), width, pitch if number > 1 else width, number)
    addresses = places(choose, pitch)
    made = sweep(addresses, rows)
    bytes_of = [touched(address, rows) for address in addresses]
    are_apart = len(set().union(*bytes_of)) == sum(map(len, bytes_of))
    hull = made.hull()
    if hull is None:  # a row goes round the edge: such a loop is read
        return
    assert set().union(*bytes_of) <= {b for low, high in hull.ranges for b in range(low, high)}
    assert are_apart or not made.is_apart()
    if number == 1 or (isinstance(made.addresses, range) and made.addresses.step % pitch == 0):
        assert made.is_apart() == are_apart
    other = Region("GM", Rows(ORIGIN + choose.randrange(6 * pitch), 2, 2, 1))
    meets = any(set(range(other.start, other.stop)) & each for each in bytes_of)
    assert made.may_touch([other]) or not meets


@pytest.mark.parametrize(
    ("addresses", "is_even"),
    [([4, 8, 12], True), ([12, 8, 4], True), ([4, 8, 13], False), ([4, 4, 4], False)],
)
def test_even_places_are_a_range(addresses: list[int], is_even: bool) -> None:
    assert isinstance(_even(addresses), range) is is_even
    assert list(_even(addresses)) == addresses
