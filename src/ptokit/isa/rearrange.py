"""Vector instructions that put elements in another order: join, interleave, pair up, pack."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.isa.fixpipe import convert_out
from ptokit.isa.rules import located, row_major, same_dtype, same_valid, separate
from ptokit.isa.spec import Asm, insn, out, rule, src, types
from ptokit.isa.transfer import c0, up

KIRIN = "kirin9030 kirinx90"
INTEGERS = "i8 u8 i16 u16 i32 u32"


# ---- TCONCAT -----------------------------------------------------------------------------------


def _joined(o: Any) -> tuple[int, int]:
    """The columns a row can reach; with lengths per row, all of them."""
    return o.dst.vr, min(o.src0.vc + o.src1.vc, o.dst.cols) if o.src0Idx is None else o.dst.vc


def _spill(o: Any) -> Any:
    """A2A3 moves whole 32-byte blocks: what follows the joined columns is lost."""
    if o.target.name != "a2a3" or o.src0Idx is not None:
        return None
    end = o.src0.vc + o.src1.vc
    stop = min(up(end, c0(o.dst)), o.dst.cols)
    return (slice(0, o.dst.vr), slice(end, stop)) if end < stop else None


@insn(
    out("dst", view=_joined, unspecified=_spill),
    src("src0"),
    src("src1"),
    out("dstIdx", optional=True, view=lambda o: (o.dst.vr, 1), note="resulting lengths in bytes"),
    src("src0Idx", optional=True, view=lambda o: (o.dst.vr, 1), note="lengths of src0 in bytes"),
    src("src1Idx", optional=True, view=lambda o: (o.dst.vr, 1), note="lengths of src1 in bytes"),
    types=types(
        a2a3=f"{INTEGERS} f16 bf16 f32", a5=f"{INTEGERS} f16 bf16 f32", kirin=f"{INTEGERS} f16 f32"
    ),
    forms=["dst src0 src1", "dst src0 src1 src0Idx src1Idx", "dst src0 src1 dstIdx src0Idx src1Idx"],
    rules=[
        same_dtype("dst", "src0", "src1"),
        rule(
            "index-dtype",
            f"the lengths have one element type of {INTEGERS}",
            lambda o: (
                o.src0Idx is None
                or (
                    o.src0Idx.dtype is o.src1Idx.dtype
                    and (o.dstIdx is None or o.dstIdx.dtype is o.src0Idx.dtype)
                    and o.src0Idx.dtype.name in INTEGERS.split()
                )
            ),
        ),
        located("Vec", "dst", "src0", "src1", "dstIdx", "src0Idx", "src1Idx"),
        rule(
            "same-rows",
            "dst, src0 and src1 have the same valid rows",
            lambda o: o.dst.vr == o.src0.vr == o.src1.vr,
        ),
        rule(
            "one-length",
            "dstIdx has one valid column",
            lambda o: o.dstIdx is None or o.dstIdx.vc == 1,
        ),
        rule(
            "width",
            "the valid columns of src0 and src1 fit into dst",
            lambda o: o.src0Idx is not None or o.src0.vc + o.src1.vc <= o.dst.cols,
            "a2a3",
        ),
        rule(
            "width",
            "the valid columns of src0 and src1 make up those of dst",
            lambda o: o.src0Idx is not None or o.src0.vc + o.src1.vc == o.dst.vc,
            "a5 " + KIRIN,
        ),
        row_major("dst", "src0", "src1", on="a2a3 a5 " + KIRIN),
        rule(
            "offsets",
            "positions in dst fit in an integer of the element's width (1- and 2-byte types)",
            lambda o: (
                o.dst.itemsize > 2
                or (o.dst.vr - 1) * o.dst.cols + o.src0.vc + o.src1.vc <= 1 << 8 * o.dst.itemsize
            ),
            "a5 " + KIRIN,
            "join fewer rows at a time, or use a wider element type",
        ),
    ],
    asm=Asm(forms=frozenset({"l1", "l2"})),
    example={
        "dst": "Vec {T} 2x128 valid 2x64",
        "src0": "Vec {T} 2x64 valid 2x40",
        "src1": "Vec {T} 2x64 valid 2x24",
    },
    more_examples=[
        {
            "dst": "Vec f32 8x64 valid 8x24",
            "src0": "Vec f32 8x32 valid 8x10",
            "src1": "Vec f32 8x32 valid 8x14",
            "dstIdx": "Vec i32 8x8 valid 8x1",
            "src0Idx": "Vec i32 8x8 valid 8x1",
            "src1Idx": "Vec i32 8x8 valid 8x1",
        }
    ],
)
def TCONCAT(
    dst: Array,
    src0: Array,
    src1: Array,
    dstIdx: Array | None,
    src0Idx: Array | None,
    src1Idx: Array | None,
    ctx: Any,
) -> None:
    """Join two tiles side by side, row by row; optionally each row has lengths of its own.

    Without lengths, row r of dst is row r of src0 followed by row r of src1. With them, src0Idx and
    src1Idx say how much of each row to take, as a number of bytes of the index type: the count is
    the value divided by the size of the index type, whatever the data type. What does not fit into
    the valid columns of dst is dropped, and dstIdx receives the length that was written. Columns
    behind the joined ones keep their contents; on A2A3 up to 31 bytes of them are lost in the form
    without lengths. On A2A3 lengths of 0 are not supported by the hardware.
    """
    if src0Idx is None or src1Idx is None:
        dst[:, : src0.shape[1]], dst[:, src0.shape[1] :] = src0, src1
        return
    size = src0Idx.dtype.itemsize
    first, second = (idx[:, 0].astype(np.int64) // size for idx in (src0Idx, src1Idx))
    width = dst.shape[1]
    for row, (n0, n1) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        a = min(n0, width)
        b = min(n1, width - a)
        _take(dst[row, :a], src0[row], ctx)
        _take(dst[row, a : a + b], src1[row], ctx)
    if dstIdx is not None:
        total = first + second
        dstIdx[:, 0] = (np.minimum(total, width) if ctx.target.is_device else total) * size
