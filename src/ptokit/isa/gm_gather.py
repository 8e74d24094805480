"""Gathers from and scatters to a table in global memory, by an index list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ptokit.base.enums import (
    GatherExec,
    GatherOOB,
    Layout,
    ScatterAtomicOp,
    ScatterConflict,
    ScatterOOB,
    TileType,
)
from ptokit.base.layout import Array
from ptokit.base.tiles import DYNAMIC
from ptokit.isa.costs import GATHER
from ptokit.isa.devices import on
from ptokit.isa.facts import Ops
from ptokit.isa.freedom import reassociates, unspecified
from ptokit.isa.gm_table import (
    A2A3_TYPES,
    A5_TYPES,
    COALESCE,
    TABLE_DEVICES,
    Coalesce,
    element_at,
    entries_at,
    entry_count,
    index_view,
    moves_whole_rows,
    reached,
    row_mode,
    table_rules,
    table_view,
    touched,
)
from ptokit.isa.idioms import Lookup
from ptokit.isa.memory import as_bits_of
from ptokit.isa.rules import both, in_types, must
from ptokit.isa.spec import Asm, Attr, Cpp, Operand, Pipe, View, gm_in, insn, out, src, types

_HAS_SIMT = on("a5")


def _to_mat(o: Any) -> bool:
    return o.dst.loc == TileType.Mat


def _by_rows(o: Any) -> bool:
    """With scratch memory always elements; without, a Mat tile on a device always gets rows."""
    if o.scratch is not None:
        return False
    return (o.target.is_device and _to_mat(o)) or row_mode(o)


def _landing(o: Any) -> Any:
    """What is written: the tile as a whole where it is cleared first."""
    zeroes = _by_rows(o) and o.attrs["gatherOob"] == GatherOOB.Zero
    clears = zeroes and (_to_mat(o) or moves_whole_rows(o, "src"))
    if o.target.is_device and (o.scratch is not None or clears):
        return View.WHOLE
    return touched(o, "dst", "src", _by_rows(o))


def _sources(
    ops: Ops, src: Array, indexes: Array, beyond: GatherOOB
) -> tuple[Array, Array, int | None]:
    """The entries that are gathered, which of them count, and the columns of a row, if by rows."""
    rows, size = _by_rows(ops), (ops.dst.vr, ops.dst.vc)
    numbers = indexes.reshape(-1)[: size[0] if rows else size[0] * size[1]]
    many = entry_count(ops, "src", rows)
    entries, counted = reached(numbers, many, beyond.name, not ops.target.is_device)
    if not rows:
        return entries, counted, None
    return entries, counted, src.shape[1] if moves_whole_rows(ops, "src") else size[1]


def _gathered(ops: Ops, given: Mapping[str, Any]) -> tuple[Array, ...]:
    """The elements of the table that are read."""
    table = given["src"]
    entries, counted, width = _sources(ops, table, given["indexes"], ops.attrs["gatherOob"])
    return entries_at(table, entries[counted], width)


def _names_entries(o: Ops) -> Lookup | None:
    """Rows or elements by number, where only these are written."""
    rows, beyond = _by_rows(o), o.attrs["gatherOob"]
    is_cleared = rows and beyond == GatherOOB.Zero and _to_mat(o)
    if o.scratch is not None or is_cleared:
        return None
    return _entries(o, "dst", "src", rows, "" if beyond == GatherOOB.Undefined else beyond.name)


def _entries(o: Ops, tile: str, table: str, rows: bool, beyond: str) -> Lookup | None:
    if not o.target.is_device or (rows and moves_whole_rows(o, table)):
        return None
    size, many = o[tile].itemsize, entry_count(o, table, rows)
    found = Lookup(tile, table, "indexes", size, size, many, is_unsigned=True, beyond=beyond)
    return replace(found, size=size * o[tile].vc, step=None, per_row=True) if rows else found


_MAT_RULES = [
    must("mat-index", TABLE_DEVICES, _to_mat)(
        "the indices of a Mat tile are a GlobalTensor", lambda o: o.indexes.kind == "global"
    ),
    must("mat-tile", TABLE_DEVICES, _to_mat)(
        "a Mat dst is Nz with whole boxes of 512 bytes, and its table ND",
        lambda o: (
            (o.dst.layout, o.dst.fractal, o.src.layout) == ("NZ", 512, Layout.ND)
            and o.dst.cols % (32 // o.dst.itemsize) == 0
            and o.dst.rows % 16 == 0
        ),
    ),
    must("mat-rows", TABLE_DEVICES, both(_to_mat, _by_rows))(
        "rows of a Mat tile have elements of at most 4 bytes, and the table has their columns",
        lambda o: o.dst.itemsize <= 4 and o.src.shape[4] >= o.dst.vc,
    ),
    must("index-count", None, lambda o: o.indexes.kind == "global")(
        "indexes has an index for each valid row (with scratch: each valid element) of dst",
        lambda o: prod(o.indexes.shape) >= o.dst.vr * (1 if _by_rows(o) else o.dst.vc),
    ),
    must("scratch", None, lambda o: o.scratch is not None)(
        "scratch goes with a Mat dst, has its element type and room for Rows * Cols elements",
        lambda o: (
            _to_mat(o)
            and o.scratch.dtype == o.dst.dtype
            and prod(o.scratch.shape) >= o.dst.rows * o.dst.cols
        ),
    ),
    must("simt", TABLE_DEVICES, lambda o: o.attrs["gatherExec"] == GatherExec.Simt)(
        "GatherExec.Simt is for A5, Coalesce.Elem and a call with scratch",
        lambda o: _HAS_SIMT(o) and o.attrs["coalesce"] == Coalesce.Elem and o.scratch is not None,
    ),
]


@insn(
    out("dst", view=_landing),
    gm_in("src", view=table_view("dst", "src", _by_rows), touches=_gathered, note="the table"),
    Operand(
        "indexes",
        "in",
        kinds=("tile", "global"),
        view=index_view("dst", _by_rows),
        steers=True,
    ),
    Operand("scratch", "tmp", kinds=("global",), view=View.STORAGE, optional=True),
    attrs=[
        COALESCE,
        Attr("gatherOob", GatherOOB, GatherOOB.Undefined, "what an index beyond the table means"),
        Attr("gatherExec", GatherExec, GatherExec.Scalar, "who gathers elements into a Mat tile"),
    ],
    pipe=lambda o: Pipe.MTE2 if _to_mat(o) else Pipe.V,
    ops={"MGATHER_VEC": Pipe.V, "MGATHER_MAT": Pipe.MTE2},
    types=types("dst", a2a3=A2A3_TYPES, a5=A5_TYPES),
    rules=[table_rules("dst", "src", _by_rows, "SA-0069", "SA-0070"), _MAT_RULES],
    asm=Asm(
        ins=("src", "indexes"),
        outs=("dst",),
        called={"mem": "src", "idx": "indexes"},
        attrs={"gatherOob": "gatherOob", "coalesce": "coalesce"},
        order=("src", "indexes", "dst", "scratch"),
        mandatory={"coalesce": ()},
    ),
    example={"indexes": "Vec i32 16x64", "coalesce": "Elem"},
    more_examples="""
        dst              | src             | indexes      | scratch      | coalesce | on
                         |                 | Vec i32 1x16 |              | Row      |
        Vec f16 16x64 NZ | GM f16 16x64 NZ | Vec i32 1x16 |              | Row      | a2a3
        Mat f16 16x64 NZ | GM f16 16x64    | GM i32 1x16  |              |          | a2a3 a5
        Mat f16 16x64 NZ | GM f16 16x64    | GM i32 16x64 | GM f16 16x64 |          | a2a3 a5
    """,
    cpp=Cpp(asks_for={"scratch": "coalesce"}),
    cost=GATHER,
    idiom=_names_entries,
)
def MGATHER(
    dst: Array, src: Array, indexes: Array, scratch: Array | None, gatherOob: GatherOOB, ops: Ops
) -> None:
    """Gather rows or single elements of a table in global memory into a tile.

    With Coalesce.Row the k-th index names the table row that becomes row k of `dst`; with
    Coalesce.Elem each index names one element. Always say which: without it devices take rows, the
    permissive profile elements. A Mat `dst` takes its indices from global memory: rows in the call
    with three operands, elements in the one with `scratch`, which rewrites the whole tile with
    zeros outside the valid region.

    An index beyond the table reads the last entry (Clamp), entry index mod entries (Wrap), or gives
    zeros (Zero); with Undefined it is an error here. Row gathers on A2A3 move whole rows of an NZ
    table, beyond the valid columns. With Zero, row gathers into an Nz tile clear all of it first.
    """
    entries, counted, width = _sources(ops, src, indexes, gatherOob)
    found = src[element_at(src, entries)] if width is None else src[entries, :width]
    found[~counted] = 0
    found = as_bits_of(found.reshape(ops.dst.vr, -1), dst)
    if dst.shape != found.shape:  # cleared first
        dst[...] = np.zeros((), dst.dtype)
    dst[: found.shape[0], : found.shape[1]] = found
    if scratch is not None:  # it is filled in the order of the tile: column blocks of 32 bytes
        blocks = dst.reshape(dst.shape[0], -1, 32 // dst.itemsize).transpose(1, 0, 2)
        scratch[: dst.size] = blocks.reshape(-1)


_ADD_TYPES = {"a2a3": "i8 i16 i32 f16 bf16 f32", "a5": "i32 u32 f32 f16 bf16"}
_OPERATIONS = {
    ScatterAtomicOp.Add: np.add,
    ScatterAtomicOp.Max: np.maximum,
    ScatterAtomicOp.Min: np.minimum,
}


def _by_indexes(tiles: Mapping[str, Any]) -> Coalesce | None:
    """What a text means that does not say it: an index for every element, or as always."""
    given = [tiles.get(name) for name in ("src", "indexes")]
    src, indexes = [each and (each.valid_row, each.valid_col) for each in given]
    is_known = src and DYNAMIC not in src and src[1] != 1
    return Coalesce.Elem if is_known and src == indexes else None


def _adds(o: Any) -> bool:
    return o.attrs["scatterAtomicOp"] == ScatterAtomicOp.Add


def _picks(o: Any) -> bool:
    return o.attrs["scatterAtomicOp"] in (ScatterAtomicOp.Max, ScatterAtomicOp.Min)


def _targets(ops: Ops, src: Array, indexes: Array, beyond: ScatterOOB) -> tuple[Array, Array]:
    """The entries that are scattered to, and which of them count."""
    rows = row_mode(ops)
    numbers = indexes.reshape(-1)[: src.shape[0] if rows else src.size]
    many = entry_count(ops, "dst", rows)
    return reached(numbers, many, beyond.name, not ops.target.is_device)


def _goes_to_entries(o: Ops) -> Lookup | None:
    """Rows or elements by number, where nothing is combined with what is there."""
    if o.attrs["scatterAtomicOp"] != ScatterAtomicOp.None_:
        return None
    beyond = o.attrs["scatterOob"]
    name = "" if beyond == ScatterOOB.Undefined else beyond.name
    found = _entries(o, "src", "dst", row_mode(o), name)
    return None if found is None else replace(found, scatters=True)


def _scattered(ops: Ops, given: Mapping[str, Any]) -> tuple[Array, ...]:
    """The elements of the table that are written."""
    src = given["src"]
    entries, counted = _targets(ops, src, given["indexes"], ops.attrs["scatterOob"])
    return entries_at(given["dst"], entries[counted], src.shape[1] if row_mode(ops) else None)


@insn(
    Operand(
        "dst",
        "inout",
        kinds=("global",),
        view=table_view("src", "dst", row_mode),
        touches=_scattered,
        note="the table",
    ),
    src("src", view=lambda o: touched(o, "src", "dst", row_mode(o))),
    src("indexes", view=index_view("src", row_mode), steers=True),
    attrs=[
        COALESCE,
        Attr("scatterAtomicOp", ScatterAtomicOp, ScatterAtomicOp.None_, "combine with the table"),
        Attr("scatterOob", ScatterOOB, ScatterOOB.Undefined, "an index beyond the table"),
        Attr("scatterConflict", ScatterConflict, None, "who wins when an index occurs twice"),
    ],
    types=types("src", a2a3=A2A3_TYPES, a5=A5_TYPES),
    rules=[
        table_rules("src", "dst", row_mode, "SA-0072", "SA-0073"),
        [
            must("add-dtype", target, _adds)(
                f"ScatterAtomicOp.Add works on {kinds}", in_types("src", kinds)
            )
            for target, kinds in _ADD_TYPES.items()
        ],
        must("pick-dtype", "a5", _picks)(
            "ScatterAtomicOp.Max and Min work on i32, u32 and f32", in_types("src", "i32 u32 f32")
        ),
        must("pick-target", "a2a3")(
            "A2A3 has no ScatterAtomicOp.Max and Min", lambda o: not _picks(o)
        ),
        must("conflict-target", "a2a3")(
            "A2A3 takes no ScatterConflict: there the last source always wins",
            lambda o: o.attrs["scatterConflict"] is None,
            "leave the argument out",
        ),
    ],
    asm=Asm(
        ins=("src", "indexes"),
        outs=("dst",),
        called={"mem": "dst", "idx": "indexes"},
        attrs={
            name: name for name in ("scatterAtomicOp", "scatterOob", "coalesce", "scatterConflict")
        },
        mandatory={"coalesce": ("scatterAtomicOp", "scatterOob", "scatterConflict")},
        inferred={"coalesce": _by_indexes},
    ),
    example={"indexes": "Vec i32 16x64", "coalesce": "Elem"},
    more_examples="""
        dst             | src              | indexes      | coalesce | on
                        |                  | Vec i32 1x16 | Row      |
        GM f16 16x64 NZ | Vec f16 16x64 NZ | Vec i32 1x16 | Row      | a2a3
    """,
    freedom=[
        unspecified(
            "ScatterConflict.Default with one index twice",
            "Where duplicate indices leave the winner open (ScatterConflict.Default on A5), the "
            "largest source position wins.",
        ),
        reassociates("Atomic operations are applied in source order."),
    ],
    cost=GATHER,
    idiom=_goes_to_entries,
)
def MSCATTER(
    dst: Array,
    src: Array,
    indexes: Array,
    scatterAtomicOp: ScatterAtomicOp,
    scatterOob: ScatterOOB,
    ops: Ops,
) -> None:
    """Scatter rows or single elements of a Vec tile into a table in global memory.

    With Coalesce.Row the k-th index names the table row that row k of `src` goes to; with
    Coalesce.Elem each index names one element. Always say which: without it devices take rows, the
    permissive profile elements. An index beyond the table is dropped (Skip), goes to the last entry
    (Clamp) or to index mod entries (Wrap); with Undefined it is an error here.

    ScatterAtomicOp combines with what is in the table, in its element type (integers wrap, f16 and
    bf16 round once per addition). Otherwise, of several sources with one index the last in
    row-major order wins; ScatterConflict.Default on A5 leaves the winner open. Entries that no
    index names are untouched.
    """
    rows = row_mode(ops)
    entries, counted = _targets(ops, src, indexes, scatterOob)
    values = as_bits_of(src if rows else src.reshape(-1), dst)
    entries, values = entries[counted], values[counted]
    combine = _OPERATIONS.get(scatterAtomicOp)
    if combine is None:  # of equal indices only the last
        entries, last = np.unique(entries[::-1], return_index=True)
        values = values[::-1][last]
    where: Any = (entries, slice(0, values.shape[1])) if rows else element_at(dst, entries)
    if combine is None:
        dst[where] = values
    else:
        combine.at(dst, where, values)
