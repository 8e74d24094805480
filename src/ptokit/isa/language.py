"""What the verifier of texts states of an instruction, beside the instruction's own rules.

The language has a verifier of its own, which is part of the tool chain: what it refuses is an
error, also where the instruction would do something known. It looks at the types and the operands
that a line writes out. A size that a type leaves open fits whatever is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ptokit.base.tiles import DYNAMIC
from ptokit.isa.rules import (
    APART,
    Predicate,
    Words,
    both,
    listed,
    must,
    same_valid_shape,
    separate,
)
from ptokit.isa.spec import Rule


def in_text(id: str, text: str, holds: Predicate, on: str | None = None, fix: str = "") -> Rule:
    """A rule of texts alone."""
    return replace(must(id, on)(text, holds, fix), typed=holds, is_of_texts=True)


def typed(*rules: Rule, of: Mapping[str, Predicate]) -> list[Rule]:
    """Rules that the verifier of texts states too, and what it asks of types under each id."""
    return [replace(each, typed=of.get(each.id)) for each in rules]


def of_elements(number: str, tile: str) -> Rule:
    """A number has the type of the elements; texts do not tell signs apart."""

    def holds(o: Any) -> bool:
        given, wanted = o[number].dtype, o[tile].dtype
        kinds = None if given is None else (given.is_float, given.bits)
        return kinds in (None, (wanted.is_float, wanted.bits))

    text = f"{number} has the element type of {tile}"
    return in_text("scalar-type", text, holds, fix="convert the number first")


def is_open(size: int) -> bool:
    return size == DYNAMIC


def agree(*names: str, facts: str = "valid_row valid_col") -> Predicate:
    """Whether sizes in types are equal."""

    def holds(o: Any) -> bool:
        tiles = [o[n] for n in names if o[n] is not None and o[n].kind == "tile"]
        every = ({getattr(t, fact) for t in tiles} - {DYNAMIC} for fact in facts.split())
        return all(len(sizes) <= 1 for sizes in every)

    return holds


def covers(tile: str, fact: str, least: Any) -> Predicate:
    """Whether a size of a tile, if it is written, is as large as what `least` makes of the rest.

    `least` gives None where that is open.
    """

    def holds(o: Any) -> bool:
        size = DYNAMIC if o[tile] is None else getattr(o[tile], fact)
        wanted = None if is_open(size) else least(o)
        return wanted is None or size >= wanted

    return holds


def known(size: int, *, plus: int = 0, per: int = 1) -> int | None:
    """One element for so many of a size, rounded up, and some more; None where it is open."""
    return None if is_open(size) else -(-size // per) + plus


def one_region(*names: str, rows: str, cols: str, otherwise: Words = "") -> list[Rule]:
    """`same_valid_shape`, which the verifier of texts states too."""
    of = {rows: agree(*names, facts="valid_row"), cols: agree(*names, facts="valid_col")}
    return typed(*same_valid_shape(*names, rows=rows, cols=cols, otherwise=otherwise), of=of)


def filled(*names: str, marker: str = "") -> Rule:
    """The tiles are not empty; an empty `marker` says that the line does nothing."""
    return in_text(
        "not-empty",
        f"the valid sizes of {listed(names)} are not zero",
        lambda o: (
            _is_marked(o, marker)
            or all(0 not in (o[n].valid_row, o[n].valid_col) for n in names if o[n] is not None)
        ),
        fix="leave the line out where there is nothing to do",
    )


def single(name: str, fact: str, marker: str = "") -> Rule:
    """A tile has one valid row, or one valid column."""
    what = "row" if fact == "valid_row" else "column"
    return in_text(
        f"one-{what}",
        f"{name} has one valid {what}",
        lambda o: getattr(o[name], fact) in (DYNAMIC, 1) or _is_marked(o, marker),
        fix=f"write a type with one valid {what}",
    )


def remainder_room(rows: int) -> Rule:
    """A remainder keeps so many rows of dst in a temporary that is written."""
    return in_text(
        "tmp-columns",
        f"tmp has {rows} valid row{'s' * (rows > 1)} with the valid columns of dst",
        both(
            covers("tmp", "valid_row", lambda o: rows),
            covers("tmp", "valid_col", lambda o: known(o.dst.valid_col)),
        ),
        "a2a3",
        "declare tmp with the shape of dst",
    )


def apart(*names: str, on: str | None = None) -> Rule:
    """The first tile shares no byte with the others, where addresses are written."""
    first, *others = names
    return in_text(
        "separate",
        f"{first} does not lie where {listed(tuple(others))} does",
        separate(*names).holds,
        on,
        APART,
    )


def room(least: Callable[[Any], int], text: str) -> Rule:
    """A temporary that is written out has so many bytes on A2/A3, whoever places it."""
    return in_text(
        "tmp-size",
        f"tmp has {text}",
        lambda o: o.tmp is None or o.tmp.nbytes >= least(o),
        "a2a3",
        "declare a larger tile",
    )


def precise_with_tmp() -> Rule:
    """The accurate sequence is written with the temporary it needs."""
    return in_text(
        "precision-tmp",
        "HIGH_PRECISION is written with a tmp",
        lambda o: o.tmp is not None or not _is_precise(o),
        fix="write a tmp, or leave precisionType out",
    )


def _is_precise(o: Any) -> bool:
    with suppress(KeyError):  # not every instruction of a family has the choice
        return o.attrs["PrecisionType"] != 0
    return False


def _is_marked(o: Any, name: str) -> bool:
    """Whether a tile without valid rows and columns says that nothing is done."""
    return name != "" and o[name].valid_row == o[name].valid_col == 0
