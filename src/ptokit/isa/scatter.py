"""Scatters: the destination becomes zero, then elements go to where an index or a pattern says."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.enums import MaskPattern, ScatterAxis
from ptokit.base.layout import Array
from ptokit.isa.costs import GATHER
from ptokit.isa.devices import A5_FAMILY, DEVICES, on
from ptokit.isa.facts import Ops
from ptokit.isa.freedom import unspecified
from ptokit.isa.idioms import MOVES, Lookup, Moves
from ptokit.isa.lane_masks import selected, start_of, step_of
from ptokit.isa.pointwise import COPIED, plain
from ptokit.isa.rules import behind, located, must, on_devices, same_dtype, separate
from ptokit.isa.services import Beyond, Poison, Refused
from ptokit.isa.spec import Asm, Attr, Extent, View, insn, out, src, types
from ptokit.isa.vector_rules import rows_16bit

_SIGNED = on("a2a3")  # takes the sign of an index seriously; either way it lies inside the tile


def _by_index(o: Any) -> bool:
    return o.indexes is not None


def _moves(o: Any) -> bool:
    """Whether the pattern is the full one, which makes the instruction a TMOV."""
    return not _by_index(o) and o.attrs["maskPattern"] == MaskPattern.P1111


def _by_columns(o: Any) -> bool:
    return _spreads(o) and o.attrs["ScatterType"] == ScatterAxis.SCATTER_ROW


def _by_rows(o: Any) -> bool:
    return _spreads(o) and o.attrs["ScatterType"] == ScatterAxis.SCATTER_COL


def _spreads(o: Any) -> bool:
    return not _by_index(o) and not _moves(o)


def _in_memory(o: Any) -> bool:
    """Whether the elements of dst are counted in memory order: devices clear the whole tile."""
    return _by_index(o) or (_spreads(o) and o.target.is_device)


def _dst_region(o: Any) -> View | Extent:
    """The whole tile, and as far behind it as a pattern spreads src; otherwise the valid region."""
    if _in_memory(o):
        return slice(0, max(o.dst.numel, _reach(o)))
    return _common(o) if _moves(o) else View.VALID


def _reach(o: Any) -> int:
    """Elements of dst up to the last one that a pattern fills."""
    if _by_index(o) or 0 in (o.src.vr, o.src.vc):
        return 0
    return int(_places(o, o.src.vr, o.src.vc)[-1, -1]) + 1


def _places(o: Any, rows: int, cols: int) -> Array:
    """Where a pattern puts each element of src, in elements of dst in memory order."""
    row, col = np.indices((rows, cols))
    if _by_rows(o):
        row = row * step_of(o) + start_of(o)
    else:
        col = col * step_of(o) + start_of(o)
    return row * o.dst.row_stride + col


def _common(o: Any) -> Extent:
    return min(o.dst.vr, o.src.vr), min(o.dst.vc, o.src.vc)


def _src_region(o: Any) -> View | Extent:
    if _by_index(o):
        return o.indexes.vr, o.indexes.vc
    return _common(o) if _moves(o) else View.VALID


def _moved(o: Any) -> Moves | Lookup:
    """A pattern moves bytes; an index names an element of dst."""
    if not _by_index(o):
        return MOVES
    size, signed = o.dst.itemsize, _SIGNED(o)
    return Lookup(
        "src",
        "dst",
        "indexes",
        size,
        size,
        o.dst.numel,
        scatters=True,
        clears=True,
        is_unsigned=not signed,
    )


_BY_INDEXES = behind(
    "the valid region of indexes decides, also where src has no valid elements",
    lambda o: o.indexes.vr <= o.src.rows and o.indexes.vc <= o.src.cols,
)
_BY_SRC = behind(
    "all of dst is cleared and the valid region of src is spread in its rows, also past them",
    lambda o: _reach(o) <= o.dst.numel,
)


@insn(
    out("dst", view=_dst_region),
    src("src", view=_src_region),
    src("indexes", optional=True, steers=True, note="elements of dst, in memory order"),
    attrs=[
        Attr("maskPattern", MaskPattern, MaskPattern.P1111, "which of every two or four"),
        Attr(
            "ScatterType",
            ScatterAxis,
            ScatterAxis.SCATTER_ROW,
            "SCATTER_COL: the pattern is of rows",
        ),
    ],
    forms=["dst src indexes", "dst src"],
    types=types(**COPIED, ids={"a2a3": "SA-0324"}),
    rules=[
        same_dtype("dst", "src"),
        located("Vec", "dst", "src", "indexes"),
        plain("dst", "src", "indexes"),
        must("SA-0325", None, _by_index)(
            "indexes are 16- or 32-bit integers",
            lambda o: o.indexes.dtype in (dt.i16, dt.u16, dt.i32, dt.u32),
        ),
        must("index-size", DEVICES, _by_index)(
            "indexes have 2 bytes for elements of 1 or 2 bytes, 4 bytes for wider ones",
            lambda o: o.indexes.itemsize == (2 if o.dst.itemsize <= 2 else 4),
        ),
        must("PA-0018", None, _by_index)(
            "src has a valid column for each of indexes",
            lambda o: o.src.vc >= o.indexes.vc,
            otherwise=_BY_INDEXES,
        ),
        must("PA-0021", None, _by_index)(
            "src has a valid row for each of indexes",
            lambda o: o.src.vr >= o.indexes.vr,
            otherwise=_BY_INDEXES,
        ),
        must("column-pattern", None, _by_columns)(
            "by a pattern of columns: dst has the valid rows of src, and two or four times its "
            "valid columns",
            lambda o: o.dst.vr == o.src.vr and o.dst.vc == step_of(o) * o.src.vc,
            otherwise=_BY_SRC,
        ),
        must("row-pattern", None, _by_rows)(
            "by a pattern of rows: dst has the valid columns of src, and two or four times its "
            "valid rows",
            lambda o: o.dst.vc == o.src.vc and o.dst.vr == step_of(o) * o.src.vr,
            otherwise=_BY_SRC,
        ),
        must("full-pattern", None, _moves)(
            "by the full pattern: dst and src have the same valid region",
            lambda o: o.dst.vr == o.src.vr and o.dst.vc == o.src.vc,
            otherwise=on_devices("the smaller sizes are copied, and nothing is cleared"),
        ),
        must("row-offset", DEVICES, _by_rows)(
            "by a pattern of rows: the last selected row of dst starts within 65535 elements",
            lambda o: (step_of(o) * (o.src.vr - 1) + start_of(o)) * o.dst.row_stride <= 65535,
        ),
        must("byte-rows", "a2a3", _by_rows)(
            "by a pattern of rows: elements have more than one byte", lambda o: o.dst.itemsize > 1
        ),
        must("i64-columns", "a5")(
            "64-bit elements: src or indexes have at most 64 valid columns",
            lambda o: o.dst.itemsize != 8 or (o.indexes or o.src).vc <= 64,
        ),
        must("row-pitch", A5_FAMILY, _by_columns)(
            "by a pattern of columns: rows of dst and src are at most 65535 elements apart",
            lambda o: max(o.dst.row_stride, o.src.row_stride) <= 65535,
        ),
        rows_16bit("indexes"),
        separate("dst", "src", "indexes"),
    ],
    asm=Asm(
        ins=("src", "indexes"),
        order=("src", "dst", "indexes"),
        place={"maskPattern": "own,"},
        words={"ScatterType": ("row", "col")},
        either=("indexes", "maskPattern"),
    ),
    example={"dst": "Vec {T} 16x64", "src": "Vec {T} 16x32", "maskPattern": "P1010"},
    more_examples="""
        dst           | src           | indexes      | maskPattern | ScatterType | on
        Vec f16 16x64 | Vec f16 8x64  | Vec i16 8x64 |             |             |
        Vec f32 16x64 | Vec f32 8x64  | Vec u32 8x64 |             |             |
        Vec f32 16x64 | Vec f32 4x64  |              | P1000       | SCATTER_COL |
        Vec f32 16x64 | Vec f32 16x64 |              |             |             |
        Vec i64 16x64 | Vec i64 8x64  | Vec i32 8x64 |             |             | a5
    """,
    freedom=unspecified(
        "one index twice",
        "Of several elements with one index the last in row order wins on a2a3 and in the "
        "reference; on a5 and kirin the winner inside a vector is not stated.",
    ),
    cost=GATHER,
    idiom=_moved,
)
def TSCATTER(
    dst: Array,
    src: Array,
    indexes: Array | None,
    maskPattern: MaskPattern,
    ScatterType: ScatterAxis,
    ops: Ops,
    poison: Poison,
    beyond: Beyond,
) -> None:
    """Clear dst, then scatter the elements of src to where an index tile or a pattern says.

    `TSCATTER(dst, src, indexes)` moves the elements under the valid region of indexes; an index
    counts the elements of dst in memory order, padding included. `TSCATTER[pattern](dst, src)`
    spreads columns to every second or fourth, `TSCATTER[pattern, ScatterAxis.SCATTER_COL](dst,
    src)` rows. The whole tile becomes zero first, padding included; only the full pattern, P1111,
    is a plain copy. The permissive profile clears the valid region for a pattern.
    """
    if _in_memory(ops):
        before = poison.undefined("dst")
        dst[: ops.dst.numel] = 0
        if indexes is not None:
            _scatter(dst, src, indexes, ops, beyond)
            return
        places = _places(ops, *src.shape).reshape(-1)
        dst[places] = src.reshape(-1)
        if before is not None and before[0, ops.dst.numel :].any():  # behind dst nothing is cleared
            before[0, : ops.dst.numel] = before[0, places] = False
            poison.poison_where("dst", before)
    elif maskPattern == MaskPattern.P1111:
        dst[...] = src
    else:
        rows, cols = src.shape
        dst[...] = 0
        if ScatterType == ScatterAxis.SCATTER_COL:
            dst[selected(maskPattern)][:rows, :cols] = src
        else:
            dst[:, selected(maskPattern)][:rows, :cols] = src


def _scatter(dst: Array, src: Array, indexes: Array, o: Ops, beyond: Beyond) -> None:
    """By index; one that is out of range leads to what lies around dst."""
    places = indexes if _SIGNED(o) else indexes.view(f"u{indexes.itemsize}")
    places, values = places.reshape(-1).astype(np.int64), src.reshape(-1)
    wrong = (places < 0) | (places >= dst.size)
    if wrong.any():
        row, col = divmod(int(np.flatnonzero(wrong)[0]), indexes.shape[1])
        error = Refused(
            "index-range",
            f"indexes count the {dst.size} elements of dst from 0",
            got=[(f"indexes[{row}, {col}]", int(indexes[row, col]))],
            fix="check how the indexes are computed; they are not rows but elements",
        )
        beyond.lead("dst", places[wrong], error, "doc", "what lies there in UB is overwritten")
        beyond.write("dst", places[wrong], values[wrong])
        places, values = places[~wrong], values[~wrong]
    dst[places] = values
