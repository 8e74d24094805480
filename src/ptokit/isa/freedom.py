"""What the hardware leaves open, and the reference engine decides: as data, with its sentence.

An instruction without any is exact: every engine gives the same bits. A comparison of engines, or
of ptokit with hardware, reads its tolerance from here; the documentation prints the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from ptokit.base.dataclass import dataclass


class Openness(Enum):
    """In which way a result may differ from the reference's."""

    ULP = "ulp"  # by so many units in the last place
    REASSOCIATES = "reassociates"  # elements may be combined in another order
    UNSPECIFIED = "unspecified"  # in any way, where the operands are what `where` says


@dataclass(frozen=True)
class Freedom:
    """One thing that is left open."""

    kind: Openness
    text: str  # the sentence of the documentation
    ulps: int | None = None  # None: the accuracy is not stated
    where: str = ""


def ulp(count: int | None, text: str) -> Freedom:
    """Floats may be off by so many units in the last place; None: nobody says by how many."""
    return Freedom(Openness.ULP, text, count)


def reassociates(text: str) -> Freedom:
    """The order in which elements are combined is open, hence what is rounded on the way."""
    return Freedom(Openness.REASSOCIATES, text)


def unspecified(where: str, text: str) -> Freedom:
    """The result is open where the operands are as described: "NaN", "x / 0"."""
    return Freedom(Openness.UNSPECIFIED, text, where=where)


Freedoms = Freedom | Iterable[Freedom]


def freedoms(given: Freedoms) -> tuple[Freedom, ...]:
    """All of them."""
    return (given,) if isinstance(given, Freedom) else tuple(given)
