"""Rules that many instructions share, each said once.

A factory takes operand names and returns a `Rule`. Operands that were left out of a call (optional
ones) make a shared rule vacuously true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptokit.base.enums import TileType
from ptokit.isa.spec import Rule, rule


def _all(names: tuple[str, ...], test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda o: all(o[n] is None or test(o[n]) for n in names)


def listed(names: tuple[str, ...]) -> str:
    """Join names as a sentence does: a, b and c."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def verb(names: tuple[str, ...], one: str, many: str) -> str:
    return one if len(names) == 1 else many


def same_dtype(*names: str, id: str = "same-dtype", on: str | None = None) -> Rule:
    """All named operands have one element type."""
    return rule(
        id,
        f"{listed(names)} have the same element type",
        lambda o: len({o[n].dtype for n in names if o[n] is not None}) == 1,
        on,
        "declare the tiles with one element type, or convert with TCVT first",
    )


def same_size(*names: str, id: str = "same-element-size", on: str | None = None) -> Rule:
    """All named operands have elements of one width."""
    return rule(
        id,
        f"elements of {listed(names)} have the same size",
        lambda o: len({o[n].itemsize for n in names if o[n] is not None}) == 1,
        on,
        "use element types of equal width on both sides",
    )


def row_major(*names: str, id: str = "row-major", on: str | None = None) -> Rule:
    """All named tiles are row-major."""
    return rule(
        id,
        f"{listed(names)} {verb(names, 'is', 'are')} row-major",
        _all(names, lambda t: t.is_row_major),
        on,
        "declare the tile with BLayout.RowMajor, or TMOV/TTRANS it first",
    )


def unboxed(*names: str, id: str = "unboxed", on: str | None = None) -> Rule:
    """All named tiles have no inner box."""
    return rule(
        id,
        f"{listed(names)} {verb(names, 'has', 'have')} no inner box (SLayout.NoneBox)",
        _all(names, lambda t: not t.is_boxed),
        on,
        "declare the tile with SLayout.NoneBox",
    )


def located(where: str, *names: str, id: str = "location", on: str | None = None) -> Rule:
    """All named tiles live in one of the given spaces ("Vec", "Vec Mat")."""
    spaces = tuple(TileType[w] for w in where.split())
    return rule(
        id,
        f"{listed(names)} {verb(names, 'is a', 'are')} {' or '.join(where.split())} "
        f"{verb(names, 'tile', 'tiles')}",
        _all(names, lambda t: t.loc in spaces),
        on,
        "declare the tile with that TileType and bring the data over with TMOV or TEXTRACT",
    )


def same_valid(*names: str, id: str = "same-valid", on: str | None = None) -> Rule:
    """All named tiles have one valid region."""
    return rule(
        id,
        f"{listed(names)} have the same valid rows and columns",
        lambda o: len({(o[n].vr, o[n].vc) for n in names if o[n] is not None}) == 1,
        on,
        "give the tiles the same valid region (the template arguments, or SetValidShape)",
    )


def static_valid_fits(
    *names: str, rows: str = "SA-0084", cols: str = "SA-0083", on: str | None = None
) -> list[Rule]:
    """Static valid sizes do not exceed the capacity."""
    return [
        rule(
            rows,
            f"ValidRow <= Rows of {listed(names)}",
            _all(names, lambda t: t.valid_row <= t.rows),
            on,
        ),
        rule(
            cols,
            f"ValidCol <= Cols of {listed(names)}",
            _all(names, lambda t: t.valid_col <= t.cols),
            on,
        ),
    ]
