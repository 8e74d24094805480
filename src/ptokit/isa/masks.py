"""Packed predicate masks: what TCMP and TCMPS write, and TSEL and TSELS read.

A mask holds one bit per element, 1 for true. Row i of the mask starts at row i of the mask tile,
and element j of that row is bit j % 8, counted from the lowest, of byte j // 8. The element type of
the mask tile decides how wide its rows are, never the order of the bits.

A comparison stores whole vector registers, so it writes more of a mask row than its elements ask
for: `stored_bytes` tells how much, `compared_mask` and `undefined_tail` say it in the terms of an
operand declaration.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import CmpMode
from ptokit.isa.expr import Expr, apply
from ptokit.isa.rules import must
from ptokit.isa.spec import Extent, Rule, View


def compared(a: Expr, b: Expr, mode: CmpMode) -> Expr:
    """The answer to a comparison."""
    return apply(mode.name.lower(), a, b)


def mask_extent(mask: Any, rows: int, cols: int) -> Extent:
    """The part of a mask tile, given by its facts, that holds rows x cols bits."""
    return rows, -(-cols // (8 * mask.itemsize))


# ---- what a comparison stores ------------------------------------------------------------------


def stored_bytes(o: Any) -> int:
    """Bytes of a mask row that a comparison of src0 writes on a device: whole registers."""
    size, cols = o.src0.itemsize, o.src0.vc
    if size == 8:
        return 32
    lanes = 256 // size if o.target.name == "a2a3" else 128 if size > 1 else 256
    return -(-cols // lanes) * lanes // 8


def compared_mask(o: Any) -> View | Extent:
    """The region of `dst` that a comparison of src0 writes; the permissive profile clears all."""
    if not o.target.is_device:
        return View.WHOLE
    return o.src0.vr, stored_bytes(o) // o.dst.itemsize


def undefined_tail(o: Any) -> tuple[slice, slice] | None:
    """The bytes behind the last element that A2/A3 fills with comparisons of whatever follows.

    NE is EQ with all columns of the mask tile inverted, hence reaches to the end of the row.
    """
    if o.target.name != "a2a3":
        return None
    stop = o.dst.cols if _mode(o) == CmpMode.NE else stored_bytes(o)
    start = -(-o.src0.vc // 8)
    return (slice(0, o.src0.vr), slice(start, stop)) if start < stop else None


def _mode(o: Any) -> CmpMode:
    return next(value for value in o.attrs.values() if isinstance(value, CmpMode))


# ---- rules -------------------------------------------------------------------------------------


def is_mask(name: str, on: str | None = None) -> list[Rule]:
    """The rules every packed mask obeys: a plain row-major tile of integers."""
    return [
        must("mask-layout", on)(
            f"{name} is a packed mask: row-major, without an inner box",
            lambda o: o[name].layout == "ND",
            "declare the mask tile with BLayout.RowMajor and SLayout.NoneBox",
        ),
        must("mask-type", on)(
            f"{name} is a packed mask: its elements are integers of whole bytes",
            lambda o: o[name].dtype.is_integer and not o[name].dtype.is_packed,
            "declare the mask tile with uint8_t elements",
        ),
    ]


def mask_fits(name: str, of: str, on: str | None = None) -> list[Rule]:
    """The mask has a row for every valid row of `of`, and a bit for every valid column."""
    return [
        must("mask-rows", on)(
            f"{name} has a row for every valid row of {of}",
            lambda o: o[name].rows >= o[of].vr,
            "give the mask tile as many rows as the data tile",
        ),
        must("mask-width", on)(
            f"a row of {name} holds one bit per valid column of {of}",
            lambda o: 8 * o[name].cols * o[name].itemsize >= o[of].vc,
            "give the mask tile more columns",
        ),
    ]


def stored_mask_fits() -> Rule:
    """The rows of `dst` hold the registers a comparison of src0 stores."""
    return must("mask-store", "a2a3 a5 kirin9030 kirinx90")(
        "a row of dst holds the whole vector registers of bits that are stored for src0",
        lambda o: o.dst.cols * o.dst.itemsize >= stored_bytes(o),
        "give the mask tile more columns: 16 bytes for every 128 columns of src0, "
        "32 for every 256 when its elements are bytes",
    )
