"""Tables in global memory: how MGATHER and MSCATTER address them, and what they demand of them.

A table is addressed in one of two ways. By rows: an index names a row of the view. By elements: an
index counts elements from the base of an ND table, whatever its strides, or row by row through the
logical matrix of an NZ table. Indices are unsigned: a negative one is huge, and what happens to one
beyond the table is chosen by a template argument.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ptokit.base.enums import Coalesce, Layout, TileType
from ptokit.base.layout import Array, AxisMap
from ptokit.base.tiles import DYNAMIC
from ptokit.isa.devices import on
from ptokit.isa.memory import view_rows_cols
from ptokit.isa.rules import Predicate, behind, both, in_types, must
from ptokit.isa.services import Refused
from ptokit.isa.spec import Attr, Extent, Rule, View, rule

TABLE_DEVICES = "a2a3 a5"
A2A3_TYPES = "i8 u8 i16 u16 i32 u32 f16 bf16 f32"
A5_TYPES = A2A3_TYPES + " f8e4m3 f8e5m2 hif8"
COALESCE = Attr("coalesce", Coalesce, None, "one index per row or one per element; say which")

_DENSE_ROWS = on("a5")
_OLD = on("a2a3")  # knows NZ tables, and counts the rows of all matrices of a table
_SIMT_BUDGET = 216 * 1024  # bytes of UB that remain beside the caches of a SIMT launch


def row_mode(o: Any) -> bool:
    """The template argument; by default rows on devices, elements on the permissive profile."""
    chosen = o.attrs["coalesce"]
    return o.target.is_device if chosen is None else chosen == Coalesce.Row


def moves_whole_rows(o: Any, table: str) -> bool:
    """Whether a row move takes all columns of the table: NZ tables on A2A3."""
    return _OLD(o) and o[table].layout == Layout.NZ


def touched(o: Any, tile: str, table: str, rows: bool) -> Any:
    """The part of the tile that meets the table."""
    if rows and moves_whole_rows(o, table):
        return o[tile].vr, view_rows_cols(o, table)[1]
    return View.VALID


def table_view(tile: str, table: str, rows: Predicate) -> Any:
    """A matrix for rows and for NZ tables; for elements the flat memory behind the pointer.

    A5 steps from row to row by the valid columns of the tile, whatever the table is like.
    """

    def view(o: Any) -> View | Extent:
        if rows(o) and _DENSE_ROWS(o) and o[tile].loc != TileType.Mat:
            size = o[table].shape[3], o[tile].vc
            return AxisMap(size, (o[tile].vc, 1), (0,), (1,))
        by_matrix = rows(o) or (o[table].layout == Layout.NZ and not _DENSE_ROWS(o))
        return View.VALID if by_matrix else View.STORAGE

    return view


def index_view(tile: str, rows: Predicate) -> Any:
    """The index list; A5 reads the indices of rows one after the other from the start of it."""

    def view(o: Any) -> View | Extent:
        if o.indexes.kind == "global":
            return View.STORAGE
        return slice(0, o[tile].vr) if rows(o) and _DENSE_ROWS(o) else View.VALID

    return view


def entry_count(o: Any, table: str, rows: bool) -> int:
    """Capacity of the table: rows of all matrices on A2A3, of one elsewhere; or all elements."""
    if not rows:
        return prod(o[table].shape)
    return view_rows_cols(o, table)[0] if _OLD(o) else o[table].shape[3]


def reached(indexes: Array, entries: int, beyond: str, wide_sign: bool) -> tuple[Array, Array]:
    """Apply the out-of-bounds mode; return entry numbers, and which of them count.

    Devices compute with 32 bits; the simulator extends the sign to 64 first (`wide_sign`), which
    shows only in what a negative index wraps to.
    """
    wide = indexes.astype(np.int64)
    found = (wide if wide_sign else wide & 0xFFFF_FFFF).view(np.uint64)
    outside = found >= entries
    if beyond == "Undefined" and outside.any():
        raise Refused(
            "index-range",
            "every index names an entry of the table",
            got=[("index", int(wide[outside][0])), ("entries", entries)],
            fix="mend the index list, or choose what happens beyond the table with a template "
            "argument (Clamp, Wrap, ...)",
        )
    if beyond == "Wrap":
        return (found % entries).astype(np.int64), np.ones_like(outside)
    inside = np.minimum(found, entries - 1).astype(np.int64)
    return inside, np.ones_like(outside) if beyond == "Clamp" else ~outside


def entries_at(table: Array, entries: Array, width: int | None) -> tuple[Array, ...]:
    """The places of entries along the axes of a table: of rows so wide, or of elements."""
    if width is None:
        return element_at(table, entries)
    return entries[:, None], np.arange(width)[None, :]


def element_at(table: Array, entries: Array) -> tuple[Array, ...]:
    """Where elements with these numbers lie: in a flat table, or row by row in a matrix."""
    return (entries,) if table.ndim == 1 else np.divmod(entries, table.shape[1])


# ---- rules -------------------------------------------------------------------------------------


def table_rules(tile: str, table: str, rows: Predicate, sizes: str, index: str) -> list[Rule]:
    """What gather and scatter share; `sizes` and `index` are the ids of the simulator's checks."""

    def vec(o: Any) -> bool:
        return o[tile].loc != TileType.Mat

    def listed(o: Any) -> bool:
        """Whether the indices are in a tile (those of a Mat tile are in global memory)."""
        return o.indexes.kind == "tile" and vec(o)

    def nz(o: Any) -> bool:
        return vec(o) and o[table].layout == Layout.NZ

    def c0(o: Any) -> int:
        return 32 // o[tile].itemsize

    def pair(o: Any) -> bool:
        if o[table].layout == Layout.ND:
            return o[tile].layout == "ND"
        return o[tile].layout == "NZ" and o[tile].fractal == 512

    def is_line(o: Any) -> bool:
        """One index for each row, as a row or a column."""
        return (o.indexes.vr, o.indexes.vc) in ((o[tile].vr, 1), (1, o[tile].vr))

    def in_order(o: Any) -> bool:
        """Whether they lie one after the other."""
        return o.indexes.layout == ("DN" if o.indexes.vr > 1 else "ND")

    def fixed(o: Any) -> int:
        """How many of the four valid sizes are known statically."""
        sizes = (t for n in (tile, "indexes") for t in (o[n].valid_row, o[n].valid_col))
        return sum(size != DYNAMIC for size in sizes)

    return [
        must("table-layout")(
            "the table is ND or NZ", lambda o: o[table].layout.name in ("ND", "NZ")
        ),
        rule("table-size", "no dimension of the table is empty", lambda o: min(o[table].shape) > 0),
        must("table-dtype", TABLE_DEVICES)(
            f"{tile} and {table} have the same element type",
            lambda o: o[tile].dtype == o[table].dtype,
        ),
        must(sizes, "cpu")(
            f"elements of {tile} and {table} have the same size",
            lambda o: o[tile].itemsize == o[table].itemsize,
        ),
        must("index-dtype", TABLE_DEVICES)(
            "indices are i32 or u32", in_types("indexes", "i32 u32")
        ),
        rule(index, "indices are integers", lambda o: o.indexes.dtype.is_integer, "cpu"),
        must("location", TABLE_DEVICES, vec)(
            f"{tile} and indexes are Vec tiles",
            lambda o: o[tile].loc == TileType.Vec and listed(o) and o.indexes.loc == TileType.Vec,
        ),
        must("index-layout", "a2a3", listed)(
            "indexes is a row-major tile without boxes", lambda o: o.indexes.layout == "ND"
        ),
        must("layout-pair", "a2a3", vec)(
            f"an ND table meets a row-major {tile} without boxes, an NZ table one of Nz boxes of "
            "512 bytes",
            pair,
        ),
        must("plain-tile", "a5", vec)(f"{tile} has no boxes", lambda o: not o[tile].is_boxed),
        must("plain-table", "a5", vec)(
            "the table is ND",
            lambda o: o[table].layout == Layout.ND,
            otherwise="the layout of the table is ignored",
        ),
        must("line-size", "a2a3")(
            f"Cols * sizeof of {tile} is a multiple of 32 bytes",
            lambda o: o[tile].cols * o[tile].itemsize % 32 == 0,
        ),
        must("nz-table", "a2a3", nz)(
            "dimensions 3 and 4 of an NZ table are 16 and 32/sizeof, statically",
            lambda o: o[table].static_shape[3:] == (16, c0(o)),
        ),
        must("nz-tile", "a2a3", nz)(
            f"{tile} consists of whole boxes of 16 rows and 32/sizeof columns",
            lambda o: o[tile].cols % c0(o) == 0 and o[tile].rows % 16 == 0,
        ),
        must("nz-width", "a2a3", both(nz, rows))(
            f"rows of an NZ table, which move as a whole, fit into {tile}",
            lambda o: view_rows_cols(o, table)[1] <= o[tile].cols,
        ),
        must("row-width", "a2a3 cpu", lambda o: rows(o) and o[table].layout == Layout.ND)(
            f"rows of the table have the valid columns of {tile} (S4 >= valid columns)",
            lambda o: o[table].shape[4] >= o[tile].vc,
        ),
        must("dense-rows", "a5", both(vec, rows))(
            f"rows of the table are just the valid columns of {tile} and follow each other",
            lambda o: o[table].shape[4] == o[tile].vc == o[table].stride[3],
            otherwise="row k is taken to lie k * valid columns past the first one",
        ),
        must("row-index", "a2a3", both(listed, rows))(
            f"indexes is one row with an index for each valid row of {tile}",
            lambda o: (o.indexes.vr, o.indexes.vc) == (1, o[tile].vr),
        ),
        must("row-index", "a5", both(listed, rows))(
            f"indexes is one row or one column, with an index for each valid row of {tile}", is_line
        ),
        must("index-order", "a5", both(listed, rows))(
            "a column of indexes is column-major, a row of them row-major",
            in_order,
            otherwise=behind(
                "index r is the one that lies r words past the first one",
                lambda o: o.indexes.numel >= o[tile].vr,
            ),
        ),
        must("row-index", "cpu", lambda o: rows(o) and o.indexes.kind == "tile")(
            f"indexes has an index for each valid row of {tile}",
            lambda o: o.indexes.vr * o.indexes.vc >= o[tile].vr,
        ),
        must("element-index", None, lambda o: not rows(o) and o.indexes.kind == "tile")(
            f"indexes and {tile} have the same valid rows and columns",
            lambda o: (o.indexes.vr, o.indexes.vc) == (o[tile].vr, o[tile].vc),
        ),
        must("static-sizes", "a5", listed)(
            f"the valid sizes of {tile} and indexes are static (for single elements: or all "
            "DYNAMIC)",
            lambda o: fixed(o) == 4 or (fixed(o) == 0 and not rows(o)),
            "declare the valid rows and columns in the tile types",
            "the sizes in force count",
        ),
        must("simt-budget", "a5", listed)(
            f"{tile} and indexes end below 216 KiB of UB; the rest serves the SIMT launch",
            lambda o: (
                max(o[tile].addr + o[tile].nbytes, o.indexes.addr + o.indexes.nbytes)
                <= _SIMT_BUDGET
            ),
        ),
    ]
