"""Rules that reductions, broadcasts, partial operations, sorts and gathers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptokit.isa.devices import A5_FAMILY
from ptokit.isa.folds import BLOCK_BYTES, REGISTER_BYTES
from ptokit.isa.language import agree, filled, in_text, room, single
from ptokit.isa.pointwise import arithmetic, on_a2a3, one_vector, plain
from ptokit.isa.rules import (
    USED_AS_UB,
    disjoint,
    listed,
    located,
    must,
    or_else,
    same_dtype,
    separate,
    verb,
)
from ptokit.isa.spec import Rule


def lanes(tile: Any) -> int:
    """Elements per 256-byte vector register."""
    return REGISTER_BYTES // tile.itemsize


def per_block(tile: Any) -> int:
    """Elements per 32-byte block."""
    return BLOCK_BYTES // tile.itemsize


def ceil_to(size: int, step: int) -> int:
    """Round up to a multiple."""
    return -(-size // step) * step


def same_region(tile: Any, dst: Any) -> bool:
    """Whether a tile has as many valid rows and columns as the destination."""
    return tile.vr == dst.vr and tile.vc == dst.vc


def block_tail(o: Any, rows: int, cols: int) -> tuple[slice, slice] | None:
    """a2a3 copies whole 32-byte blocks: what lies past these columns of dst is overwritten."""
    stop = ceil_to(cols, per_block(o.dst))
    written = on_a2a3(o) and rows > 0 and stop > cols
    return (slice(0, rows), slice(cols, stop)) if written else None


def counted(o: Any, rows: int) -> int:
    """The rows that a loop goes over: its counter has 16 bits after a2a3."""
    return rows if on_a2a3(o) or not o.target.is_device else rows % 65536


# ---- rules ---------------------------------------------------------------------------------------


def by_target(
    a2a3: str, a5: str, make: Callable[[str, str], Rule], *, cpu: bool = True
) -> list[Rule]:
    """One rule under two ids: that of a2a3 (and the permissive profile), that of later targets."""
    return [make(a2a3, "a2a3 cpu" if cpu else "a2a3"), make(a5, A5_FAMILY)]


def rows_16bit(name: str, on: str = A5_FAMILY) -> Rule:
    """Loops over rows count in 16 bits."""
    return must("row-count", on)(
        f"{name} has at most 65535 valid rows",
        lambda o: o[name] is None or o[name].vr <= 65535,
        "split the tile into shorter ones",
        "the counter holds the number modulo 65536, and only so many rows are processed",
    )


def result_column(*names: str, id: str, on: str | None = None) -> Rule:
    """All named tiles can take one value per row."""
    return must(id, on)(
        f"{listed(names)} {verb(names, 'is', 'are')} ND, or DN with a single column",
        lambda o: all(
            o[n] is None or o[n].layout == "ND" or (o[n].layout == "DN" and o[n].cols == 1)
            for n in names
        ),
        "declare the result as Tile[Vec, T, Rows, 1, BLayout.ColMajor] or as a row-major tile",
    )


def row_reduction(*outs: str) -> list[Rule]:
    """What all reductions of rows demand of their tiles."""
    return [
        *by_target("SA-0211", "SA-0212", lambda i, on: located("Vec", *outs, "src", id=i, on=on)),
        *by_target("SA-0207", "SA-0209", lambda i, on: plain("src", id=i, on=on)),
        *by_target("SA-0208", "SA-0210", lambda i, on: result_column(*outs, id=i, on=on)),
        must("PA-0030")(
            "src has at least one valid row and column",
            lambda o: o.src.vr != 0 and o.src.vc != 0,
            otherwise="without rows nothing is written, without columns the results are undefined",
            voids=True,
        ),
        must("PA-0032")(
            f"{listed(outs)} {verb(outs, 'has', 'have')} as many valid rows as src",
            lambda o: all(o[n] is None or o[n].vr == o.src.vr for n in outs),
            otherwise="the valid rows of src govern: there is a result for every one of them",
        ),
        arithmetic("src"),
        *or_else(USED_AS_UB, located("Vec", "tmp", id="tmp-location", on="a2a3")),
        *or_else(
            "the scratch is addressed in elements of the type of tmp",
            same_dtype("tmp", "src", id="tmp-type", on="a2a3"),
        ),
        disjoint(*outs, "src"),
        separate("tmp", *outs, "src", id="tmp-apart", on="a2a3"),
        rows_16bit("src"),
        room(lambda o: 32, "32 bytes"),
        *_typed_column(outs[-1], marker=outs[-1] if len(outs) == 1 else ""),
    ]


def _typed_column(result: str, marker: str) -> list[Rule]:
    """What texts state of a column of results; an empty one stands for a line without effect."""
    return [
        single(result, "valid_col", marker),
        filled("src", marker=marker),
        in_text(
            "PA-0032",
            f"{result} has as many valid rows as src",
            lambda o: (
                agree(result, "src", facts="valid_row")(o)
                or (marker != "" and o[result].valid_row == o[result].valid_col == 0)
            ),
            fix="give it the valid rows of src",
        ),
    ]


def reduced_rows(o: Any) -> tuple[int, int]:
    """The rows and columns of src that are reduced, row by row."""
    return counted(o, o.src.vr), one_vector(o, "src")[1]


def row_results(o: Any) -> tuple[int, int]:
    """A result for every row, in column 0."""
    return counted(o, o.src.vr), 1
