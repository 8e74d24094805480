"""Reductions: every row into column 0, or every column into row 0, of the destination.

Only that column or row is written. Where the order of a sum or product matters it differs between
targets; `folds.py` has the orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import convert
from ptokit.base.layout import Array
from ptokit.isa.folds import (
    BLOCK_BYTES,
    REGISTER_BYTES,
    first_extreme,
    fold_rows,
    row_products,
    row_sums,
    row_sums_by_blocks,
    simulated_row_products,
    simulated_row_sums,
    tree_rows,
)
from ptokit.isa.rules import disjoint, listed, located, same_dtype, verb
from ptokit.isa.spec import Asm, Attr, Operand, Rule, insn, out, rule, src, tmp, types

A5_ON = "a5 kirin9030 kirinx90"
DEVICES = "a2a3 " + A5_ON
ROW_TMP = Asm(tmp=frozenset({"l1", "l2"}))

# The widening sums of the public simulator, which the permissive profile takes over.
WIDENING = {(dt.f16, dt.f32), (dt.bf16, dt.f32), (dt.i16, dt.i32)}

FLOAT_ORDER = (
    "A device adds 256-byte pieces of a row in its own order, which the reference follows; inside "
    "a piece the order is not stated, and the reference adds neighbours, then neighbouring sums. "
    "Compare float sums with a tolerance."
)
SCAN = "For NaN, and for the sign of a zero, the reference does what a scan with > or < does."


# ---- shared rules --------------------------------------------------------------------------------


def by_target(a2a3: str, a5: str, make: Callable[[str, str], Rule]) -> list[Rule]:
    """One rule, reported under one id on a2a3 (and `cpu`), under another on the later targets."""
    return [make(a2a3, "a2a3 cpu"), make(a5, A5_ON)]


def plain(*names: str, id: str, on: str | None = None) -> Rule:
    """All named tiles are row-major without an inner box."""
    return rule(
        id,
        f"{listed(names)} {verb(names, 'is', 'are')} row-major without an inner box (ND)",
        lambda o: all(o[n] is None or o[n].layout == "ND" for n in names),
        on,
        "declare the tile with BLayout.RowMajor and SLayout.NoneBox",
    )


def result_column(*names: str, id: str, on: str | None = None) -> Rule:
    """All named tiles can take one value per row."""
    return rule(
        id,
        f"{listed(names)} {verb(names, 'is', 'are')} ND, or DN with a single column",
        lambda o: all(
            o[n] is None or o[n].layout == "ND" or (o[n].layout == "DN" and o[n].cols == 1)
            for n in names
        ),
        on,
        "declare the result as Tile[Vec, T, Rows, 1, BLayout.ColMajor] or as a row-major tile",
    )


def columns_64bit(name: str, on: str = "a5") -> Rule:
    """64-bit kernels handle one register pair per row."""
    return rule(
        "columns-64bit",
        f"64-bit elements: {name} has at most 64 valid columns",
        lambda o: o[name].itemsize != 8 or o[name].vc <= 64,
        on,
        "split the tile into pieces of 64 columns",
    )


def rows_16bit(name: str, on: str = A5_ON) -> Rule:
    """Rows are counted in 16 bits."""
    return rule(
        "row-count",
        f"{name} has at most 65535 valid rows",
        lambda o: o[name].vr <= 65535,
        on,
        "split the tile into shorter ones",
    )


def row_rules(*outs: str) -> list[Rule]:
    """What all reductions of rows demand of their tiles."""
    return [
        *by_target(
            "SA-0211", "SA-0212", lambda i, on: located("Vec", *outs, "src", id=i, on=on)
        ),
        *by_target("SA-0207", "SA-0209", lambda i, on: plain("src", id=i, on=on)),
        *by_target("SA-0208", "SA-0210", lambda i, on: result_column(*outs, id=i, on=on)),
        rule(
            "PA-0030",
            "src has at least one valid row and column",
            lambda o: o.src.vr != 0 and o.src.vc != 0,
        ),
        rule(
            "PA-0032",
            f"{listed(outs)} {verb(outs, 'has', 'have')} as many valid rows as src",
            lambda o: all(o[n] is None or o[n].vr == o.src.vr for n in outs),
        ),
        located("Vec", "tmp", id="tmp-location"),
        same_dtype("tmp", "src", id="tmp-type"),
        disjoint(*outs, "src", "tmp"),
        rows_16bit("src"),
    ]


def same_row_dtype() -> list[Rule]:
    """Row reductions keep the element type."""
    return by_target(
        "SA-0190", "SA-0091", lambda i, on: same_dtype("dst", "src", id=i, on=on)
    )


def may_widen(o: Any) -> bool:
    return o.dst.dtype is o.src.dtype or (o.src.dtype, o.dst.dtype) in WIDENING


def widening(id: str = "widening") -> Rule:
    """The permissive profile also sums into a wider type."""
    return rule(
        id,
        "dst has the element type of src, or f32 for f16 and bf16, or i32 for i16",
        may_widen,
        "cpu",
    )


def lanes(tile: Any) -> int:
    """Elements per 256-byte register."""
    return REGISTER_BYTES // tile.itemsize


def sums_by_blocks(o: Any) -> bool:
    """Whether a2a3 takes its block path: f32, a column result, and one of four full shapes."""
    shape = (o.src.rows, o.src.cols)
    return (
        o.target.name == "a2a3"
        and o.src.dtype is dt.f32
        and o.dst.layout == "DN"
        and o.dst.valid_col == 1
        and shape == (o.src.valid_row, o.src.valid_col)
        and shape in BLOCK_PATHS
    )


BLOCK_PATHS = {(16, 512): "SA-0213", (32, 256): "SA-0214", (64, 128): "SA-0215", (8, 1024): "SA-0216"}


def block_path_rules() -> list[Rule]:
    """The block path of a2a3 uses tmp as 1024 contiguous floats, whatever its shape."""
    return [
        rule(
            id,
            f"f32, {rows}x{cols} into a column: tmp holds {rows * cols // 8} elements",
            lambda o, shape=(rows, cols): (
                not sums_by_blocks(o) or (o.src.rows, o.src.cols) != shape or o.tmp.numel >= 1024
            ),
            "a2a3",
            "give tmp at least 4096 bytes",
        )
        for (rows, cols), id in BLOCK_PATHS.items()
    ]


BLOCK_PATH_SAMPLES = [
    {"dst": f"Vec f32 {r}x1 DN", "src": f"Vec f32 {r}x{c}", "tmp": f"Vec f32 {r}x{c}"}
    for r, c in BLOCK_PATHS
]


def scratch_rows(columns: Callable[[Any], int], text: str) -> Rule:
    """On a2a3, floats wider than a register need a row of scratch per source row."""
    return rule(
        "tmp-size",
        f"f16 and f32 with more than 256 bytes per row: tmp has a row per valid row of src, {text}",
        lambda o: (
            not o.src.dtype.is_float
            or o.src.vc <= lanes(o.src)
            or sums_by_blocks(o)
            or (o.tmp.rows >= o.src.vr and o.tmp.cols >= columns(o.src))
        ),
        "a2a3",
        "declare tmp with the type and shape of src",
    )


def _tree_columns(tile: Any) -> int:
    return lanes(tile) * max(1, tile.vc // lanes(tile) // 2)


SUM_SCRATCH = scratch_rows(
    _tree_columns, "of half as many registers as src has whole ones, at least one"
)
EXTREME_SCRATCH = scratch_rows(lanes, "of at least 256 bytes")


def _on_a2a3(o: Any) -> bool:
    return o.target.name == "a2a3"


def scratch() -> Operand:
    """The scratch tile of a row reduction: only a2a3 touches it."""
    return tmp("tmp", lost=_on_a2a3, note="scratch, used on a2a3 only")


def column_of(name: str = "dst", **more: Any) -> Operand:
    """Column 0 of a result, one element per valid row of src."""
    return out(name, view=lambda o: (o.src.vr, 1), **more)


def row_of(name: str = "dst", **more: Any) -> Operand:
    """Row 0 of a result, one element per valid column of src; nothing when src has no rows."""
    return out(
        name,
        view=lambda o: (min(1, o.src.vr), o.src.vc),
        **more,
    )


def block_tail(o: Any) -> tuple[slice, slice] | None:
    """a2a3 copies whole 32-byte blocks: what lies behind the columns of dst is overwritten."""
    per_block = BLOCK_BYTES // o.dst.itemsize
    stop = -(-o.src.vc // per_block) * per_block
    if not _on_a2a3(o) or o.src.vr == 0 or stop in (o.src.vc, 0):
        return None
    return slice(0, 1), slice(o.src.vc, stop)


def column_rules() -> list[Rule]:
    """What the column reductions without indices demand of their tiles."""
    return [
        located("Vec", "dst", "src", id="SA-0211"),
        plain("dst", "src", id="SA-0207"),
        rule(
            "PA-0031",
            "dst has as many valid columns as src",
            lambda o: o.dst.vc == o.src.vc,
        ),
        rows_16bit("src"),
    ]


# ---- rows ----------------------------------------------------------------------------------------


@insn(
    column_of("dst"),
    src("src"),
    scratch(),
    types=types(
        "src",
        a2a3="f16 f32 i16 i32",
        a5="f16 f32 i16 i32 i64 u64",
        kirin="f16 f32 i16 i32",
        ids={"a2a3": "SA-0187"} | dict.fromkeys(A5_ON.split(), "SA-0087"),
    ),
    rules=[
        row_rules("dst"),
        by_target("SA-0190", "SA-0091", lambda i, on: same_dtype("dst", "src", id=i, on=on)),
        SUM_SCRATCH,
        block_path_rules(),
        columns_64bit("src"),
    ],
    asm=ROW_TMP,
    example={"dst": "Vec {T} 16x1 DN", "src": "Vec {T} 16x64", "tmp": "Vec {T} 16x64"},
    freedom=FLOAT_ORDER,
)
def TROWSUM(dst: Array, src: Array, tmp: Array, ctx: Any) -> None:
    """Sum every row of src into column 0 of dst.

    The valid region of src governs; other columns of dst keep their contents. Sums are formed in
    the element type: f16 partial sums round, and overflow to infinity, as f16; integers wrap. tmp
    is scratch that only a2a3 uses; one of the type and shape of src is always large enough. The
    permissive profile adds from left to right, f16 and bf16 in f32, and may sum into f32 or i32.
    """
    o = ctx.ops
    if o.target.name == "cpu":
        dst[:, 0] = simulated_row_sums(src, o.src.dtype, o.dst.dtype)
    elif sums_by_blocks(o):
        dst[:, 0] = row_sums_by_blocks(src)
    else:
        dst[:, 0] = row_sums(src, o.target.name)
